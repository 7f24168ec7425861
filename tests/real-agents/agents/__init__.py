"""The agents of this suite, one table."""

from agents.claude_code import ClaudeCode
from agents.cline import Cline
from agents.codex import Codex, CodexAlone
from agents.continue_cli import Continue
from agents.copilot import Copilot
from agents.gemini import Gemini
from agents.kilo import Kilo
from agents.kimi_cli import KimiCli
from agents.kimi_code import KimiCode
from agents.not_run import Crush, Droid
from agents.opencode import OpenCode
from agents.pi import Pi
from agents.qwen_code import QwenCode
from agents.vibe import Vibe

AGENTS = (ClaudeCode, Codex, CodexAlone, QwenCode, Copilot, Gemini, OpenCode, Kilo, KimiCode, Pi, Vibe,
          KimiCli, Cline, Continue, Crush, Droid)
