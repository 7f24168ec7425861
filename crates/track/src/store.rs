//! Where the files of a session are.

use std::path::{Path, PathBuf};

use whosup_core::machine::Environment;
use whosup_core::sidecar::{AgentId, SessionId};
use whosup_core::sources::record::{ended_root_of, records_root_of};

use crate::TrackError;

/// All records of one user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    root: PathBuf,
}

/// The files of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionFiles {
    /// The agent.
    pub agent: AgentId,
    /// The session.
    pub session: SessionId,
    /// The directory that the others are in.
    pub directory: PathBuf,
    /// The record.
    pub record: PathBuf,
    /// The event log.
    pub log: PathBuf,
    /// The log that is being replaced or removed; left there by a process that was
    /// killed meanwhile.
    pub old_log: PathBuf,
    /// The record, once the session has ended and was put away.
    pub ended: PathBuf,
    /// The lock.
    pub lock: PathBuf,
}

impl Store {
    /// The store that an environment leads to.
    ///
    /// # Errors
    ///
    /// [`TrackError::NoPlace`] if it leads to none.
    pub fn of(environment: &Environment) -> Result<Self, TrackError> {
        let root = records_root_of(environment).ok_or(TrackError::NoPlace)?;
        Ok(Self { root })
    }

    /// The directory of all records.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The files of a session, which need not exist.
    #[must_use]
    pub fn files_of(&self, agent: &AgentId, session: &SessionId) -> SessionFiles {
        let directory = self.root.join(agent.as_str());
        let file = |extension| directory.join(format!("{session}.{extension}"));
        SessionFiles {
            agent: agent.clone(),
            session: session.clone(),
            record: file("json"),
            log: file("jsonl"),
            old_log: file("old"),
            lock: file("lock"),
            ended: ended_root_of(&self.root)
                .join(agent.as_str())
                .join(format!("{session}.json")),
            directory,
        }
    }
}
