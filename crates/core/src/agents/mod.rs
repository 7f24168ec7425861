//! The agents: one file or folder each, and the one table that registers them.

mod adapter;
mod bad_lines;
pub mod claude_code;
pub mod cline;
pub mod codex;
pub mod copilot;
pub mod crush;
pub mod droid;
mod event_names;
pub(crate) mod folder;
pub mod gemini;
mod held;
mod hooks;
pub mod kimi_cli;
pub mod kimi_code;
mod kimi_wire;
mod last_messages;
mod one_per_session;
pub mod opencode;
mod package_path;
pub mod pi;
#[cfg(test)]
pub(crate) mod program_tests;
mod prompt;
pub mod qwen_code;
mod title;
pub(crate) mod told_by_sidecar;
pub mod vibe;

use whosup_sidecar::AgentId;

pub use adapter::{
    Adapter, AgentProcess, AgentScan, Depth, Description, Forked, Home, Invocation, KnownClient,
    Look, Message, MessageRole, Profile, Program, Role, Sketch, WatchPath,
};
pub(crate) use folder::names_in;
pub use hooks::{HookCommand, HookTrust, Hooks, SettingsFile, SettingsForm, SettingsPlace};

/// Every agent that has an adapter, in the order of `whosup agents`.
pub const AGENTS: &[&dyn Adapter] = &[
    &claude_code::ClaudeCode,
    &codex::Codex,
    &qwen_code::QwenCode,
    &kimi_cli::KimiCli,
    &kimi_code::KimiCode,
    &pi::Pi,
    &opencode::OpenCode,
    &cline::Cline,
    &copilot::Copilot,
    &gemini::Gemini,
    &vibe::Vibe,
    &crush::Crush,
    &droid::Droid,
];

/// Finds the adapter of an agent.
#[must_use]
pub fn adapter(agent: &AgentId) -> Option<&'static dyn Adapter> {
    AGENTS
        .iter()
        .copied()
        .find(|adapter| adapter.profile().id == agent.as_str())
}

/// The id of an adapter's agent.
#[must_use]
pub fn id_of(adapter: &dyn Adapter) -> AgentId {
    AgentId::from_static(adapter.profile().id)
}

/// Language runtimes that run agents as scripts, by the name of their
/// executable, version suffixes aside (`python3.13`, `node24`).
const RUNTIMES: &[&str] = &["node", "nodejs", "bun", "deno", "python", "pypy"];

/// Tells whether an executable of this name is a language runtime.
#[must_use]
pub fn is_runtime_name(name: &str) -> bool {
    let name = name.strip_suffix(".exe").unwrap_or(name);
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    RUNTIMES.contains(&stem)
}
