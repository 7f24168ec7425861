"""The agents of this suite, one table."""

from agents.claude_code import ClaudeCode
from agents.codex import Codex, CodexAlone
from agents.qwen_code import QwenCode

AGENTS = (ClaudeCode, Codex, CodexAlone, QwenCode)
