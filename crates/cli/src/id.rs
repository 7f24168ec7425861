//! The session ID on the command line.

use std::path::PathBuf;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use whosup_core::reader::IdQuery;
use whosup_core::sessions::session::Session;

use crate::app::World;
use crate::completion;

// The session that a command is about.
#[derive(Debug, Clone, Args)]
pub(crate) struct IdArgs {
    /// Session ID or unique prefix, such as `0a022b20` or `codex:01a2`
    #[arg(value_name = "ID", add = ArgValueCompleter::new(completion::sessions))]
    pub(crate) id: String,
    /// Home of the agent, where several homes have the session
    #[arg(long, value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
}

impl IdArgs {
    /// The same, as a query.
    pub(crate) fn query(&self) -> IdQuery {
        IdQuery {
            id: self.id.clone(),
            home: self.home.clone(),
        }
    }
}

/// Finds the session that is meant.
///
/// # Errors
///
/// [`whosup_core::reader::IdError`] if no session or several match, or the ID is invalid.
pub(crate) fn find(world: &World, arguments: &IdArgs) -> anyhow::Result<Session> {
    Ok(world.reader()?.find(&arguments.query())?)
}
