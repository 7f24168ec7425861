//! The options of the campaign.

use std::path::PathBuf;

use crate::agents::AGENTS;

/// Holds whosup against random worlds with known truth
///
/// Exit status: 0 nothing was wrong, 1 something was, 2 the campaign failed.
#[derive(Debug, Clone, clap::Parser)]
#[command(name = "whosup-campaign")]
pub(crate) struct Options {
    /// End after this many looks at a session
    #[arg(long, value_name = "N")]
    pub(crate) looks: Option<u64>,
    /// End after this many worlds
    #[arg(long, value_name = "N")]
    pub(crate) worlds: Option<u64>,
    /// End after this many minutes
    #[arg(long, value_name = "M")]
    pub(crate) minutes: Option<u64>,
    /// Make the worlds of this seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Make this world alone, to see again what it came to
    #[arg(long, value_name = "K")]
    pub(crate) world: Option<u64>,
    /// Take this many steps in each world
    #[arg(long, value_name = "N", default_value_t = 30)]
    pub(crate) steps: usize,
    /// Leave out these steps of a world
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    pub(crate) without: Vec<usize>,
    /// Leave out steps of `--world` as long as its first wrong answer stays
    #[arg(long, requires = "world")]
    pub(crate) shrink: bool,
    /// Print what happens, and keep a copy of the home of `--world`
    #[arg(long, requires = "world")]
    pub(crate) keep: bool,
    /// Pose as these agents only
    #[arg(long, value_name = "A,…", value_delimiter = ',', value_parser = agent)]
    pub(crate) agents: Vec<String>,
    /// Ask this whosup
    #[arg(long, value_name = "PATH", default_value = "target/release/whosup")]
    pub(crate) whosup: PathBuf,
    /// Run this many worlds at once
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) jobs: usize,
    /// Write the report as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write the report as Markdown
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// The directory of a world, which this process runs
    #[arg(long, hide = true)]
    pub(crate) inside: Option<PathBuf>,
    /// It has a PID namespace of its own
    #[arg(long, hide = true)]
    pub(crate) apart: bool,
}

fn agent(name: &str) -> Result<String, String> {
    let mut ids = AGENTS.iter().map(|agent| agent.id());
    if ids.any(|id| id == name) {
        return Ok(name.to_owned());
    }
    let ids: Vec<_> = AGENTS.iter().map(|agent| agent.id()).collect();
    Err(format!("no such agent; there are {}", ids.join(", ")))
}
