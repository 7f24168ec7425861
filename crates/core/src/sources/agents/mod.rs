//! The agents: a folder or a file for each, the [table](AGENTS) that registers them, and
//! the `kit` that they share. `example` is an adapter to copy, which compiles only in tests.

pub mod claude_code;
pub mod cline;
pub mod codex;
pub mod continue_cli;
pub mod copilot;
pub mod crush;
pub mod droid;
#[cfg(test)]
mod example;
pub mod gemini;
pub mod kilo;
pub mod kimi_cli;
pub mod kimi_code;
pub(crate) mod kit;
pub mod opencode;
pub mod pi;
pub mod qwen_code;
mod table;
pub mod vibe;

pub use table::{AGENTS, adapter, id_of};
