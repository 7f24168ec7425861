//! Errors of recording.

use std::io;
use std::path::{Path, PathBuf};

use whosup_core::adapter::hook_event::HookError;

/// Why something could not be recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrackError {
    /// The environment names no place for records.
    #[error("no directory for records: neither `XDG_STATE_HOME` nor a home is known")]
    NoPlace,
    /// The host to forget is this host.
    #[error("cannot forget `{host}`: this is it, and what has exited here is seen")]
    OwnHost {
        /// Its name.
        host: String,
    },
    /// The agent's hooks are not known.
    #[error("cannot understand hooks of `{agent}`: no such agent, or it has none")]
    UnknownAgent {
        /// The agent.
        agent: String,
    },
    /// The payload of a hook is no event.
    #[error("cannot understand the event: {0}")]
    Payload(#[from] HookError),
    /// A file or directory could not be used.
    #[error("cannot {verb} `{}`: {source}", path.display())]
    File {
        /// What was tried.
        verb: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// An agent's settings can't be used.
    #[error("cannot use the settings `{}`: {reason}", path.display())]
    Settings {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// A log was replaced each time that something was appended to it.
    #[error("cannot append to `{}`: it was replaced again and again", path.display())]
    Restless {
        /// The log.
        path: PathBuf,
    },
}

impl TrackError {
    /// The file or directory that it is about, if any.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::File { path, .. } | Self::Settings { path, .. } | Self::Restless { path } => {
                Some(path)
            }
            Self::NoPlace | Self::OwnHost { .. } | Self::UnknownAgent { .. } | Self::Payload(_) => {
                None
            }
        }
    }

    /// An error of a file, for `map_err`.
    pub(crate) fn at(verb: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { verb, path, source }
    }
}
