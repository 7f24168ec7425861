//! The one table of agents.

use whosup_sidecar::AgentId;

use super::{
    claude_code, cline, codex, continue_cli, copilot, crush, droid, gemini, kilo, kimi_cli,
    kimi_code, opencode, pi, qwen_code, vibe,
};
use crate::adapter::{Adapter, adapter_of};

/// Every agent that has an adapter, in the order of `whosup agents`.
pub const AGENTS: &[&dyn Adapter] = &[
    &claude_code::ClaudeCode,
    &codex::Codex,
    &qwen_code::QwenCode,
    &kimi_cli::KimiCli,
    &kimi_code::KimiCode,
    &pi::Pi,
    &opencode::OPENCODE,
    &kilo::KILO,
    &cline::Cline,
    &copilot::Copilot,
    &gemini::Gemini,
    &vibe::Vibe,
    &crush::Crush,
    &droid::Droid,
    &continue_cli::Continue,
];

/// Finds the adapter of an agent.
#[must_use]
pub fn adapter(agent: &AgentId) -> Option<&'static dyn Adapter> {
    adapter_of(AGENTS, agent)
}

/// The id of an adapter's agent.
#[must_use]
pub fn id_of(adapter: &dyn Adapter) -> AgentId {
    AgentId::from_static(adapter.profile().id)
}
