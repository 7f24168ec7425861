//! Why a sidecar could not be written or removed.

use std::io;
use std::path::PathBuf;

use whosup_process::Pid;

use crate::{AgentIdError, SIDECAR_BYTES_MAX, SessionIdError};

/// Why a sidecar could not be written or removed.
///
/// Only the sidecar is lost: an agent notes the error and continues.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The agent's name can't be one.
    #[error("cannot announce an agent: {0}")]
    AgentId(#[from] AgentIdError),
    /// The agent's name would make its version's key that of the schema's.
    #[error("cannot announce an agent: `schema` is the name of a field, not of an agent")]
    ReservedName,
    /// The session's id can't be one.
    #[error("cannot announce a session: {0}")]
    SessionId(#[from] SessionIdError),
    /// A path can't stand in a sidecar.
    #[error("cannot announce a session: `{field}` is `{}`, which {reason}", path.display())]
    Path {
        /// The field that it was for.
        field: &'static str,
        /// The path.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Neither `XDG_STATE_HOME` nor a home directory is known, so the common place is unknown.
    #[error(
        "cannot find the common place of sidecars: neither `XDG_STATE_HOME` nor a home directory is set"
    )]
    NoStateDirectory,
    /// The process that shall be announced is not there.
    #[error("cannot announce process {pid}: no process has that PID")]
    NoSuchProcess {
        /// The process.
        pid: Pid,
    },
    /// A forked child used its parent's handle. The parent still owns the
    /// session; a child that serves one establishes its own.
    #[error("cannot write the sidecar of process {owner} from process {this}")]
    Forked {
        /// The process that established the session.
        owner: u32,
        /// The process that asked.
        this: u32,
    },
    /// The session was released: nothing is written after that.
    #[error("cannot write a sidecar: it was released")]
    Released,
    /// It would be larger than readers read.
    #[error("cannot write a sidecar of {bytes} bytes: readers read {SIDECAR_BYTES_MAX} at most")]
    TooLarge {
        /// How many bytes it would have.
        bytes: usize,
    },
    /// The directory could not be made.
    #[error("cannot make directory `{}`", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file could not be written. What was there before is as it was.
    #[error("cannot write sidecar `{}`", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Our own file could not be removed. The next call tries again.
    #[error("cannot remove sidecar `{}`", path.display())]
    Remove {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}
