//! Serves the sessions of one machine over HTTP: a snapshot, a stream of changes, metrics
//! and a dashboard.
//!
//! Everything comes from one [`Engine`]: any number of clients share its scans. This crate
//! judges nothing, and it is the only crate with async code.
//!
//! ```text
//!            ┌ connection ┐   ┌── access ──┐   ┌──────── routes ────────┐
//!  client ──►│ limits     │──►│ Host,      │──►│ state, events, sessions│──► engine (looks)
//!            │ TLS, peer  │   │ Origin,    │   │ timeline, metrics, page│
//!            └────────────┘   │ token      │   └────────────────────────┘
//!                             └────────────┘
//! ```
//!
//! Only the user gets an answer: a request needs the [token](Tokens) in a file that only
//! the user can read, and over a socket the peer must be the user or root. What a web page
//! of another site could send is refused before that.

mod access;
mod actions;
mod answer;
mod connection;
mod events;
mod gate;
mod listen;
mod metrics;
mod page;
mod query;
mod resources;
mod routes;
mod running;
mod server;
mod sessions;
mod snapshot;
mod timeline;
mod token;
mod usage;

use std::io;
use std::path::PathBuf;

use whosup_core::sidecar::WriteError;
use whosup_live::EngineError;

pub use self::actions::{Act, Action, Actions, Done, Refusal, UsageAsked};
pub use self::listen::{Bound, Listen, TlsFiles};
pub use self::running::{Announced, Running, announce, find_running};
pub use self::server::{Options, serve};
pub use self::token::{Tokens, write_opener};

#[cfg(doc)]
use whosup_live::Engine;

/// Why the server can't run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The environment names no directory for the server's own files.
    #[error(
        "cannot find a directory for the server's files: neither HOME nor XDG_STATE_HOME is set"
    )]
    NoPlace,
    /// A file of the server can't be used.
    #[error("cannot {what} `{}`", path.display())]
    File {
        /// The failed operation.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// It can't listen on the address.
    #[error("cannot listen on `{address}`")]
    Listen {
        /// The address, or the path of the socket.
        address: String,
        /// Why.
        source: io::Error,
    },
    /// Other hosts could read the traffic.
    #[error("cannot listen on `{address}` in the clear: other hosts could read the token")]
    InTheClear {
        /// The address.
        address: String,
    },
    /// The files for TLS can't be used.
    #[error("cannot use the certificate `{}` with the key `{}`: {reason}", certificate.display(), key.display())]
    Tls {
        /// The certificate.
        certificate: PathBuf,
        /// Its key.
        key: PathBuf,
        /// Why.
        reason: String,
    },
    /// The server can't announce itself.
    #[error("cannot announce the server")]
    Announce(#[from] WriteError),
    /// Nothing can be watched.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The runtime can't be started.
    #[error("cannot start the server's threads")]
    Runtime(#[source] io::Error),
}

impl ServeError {
    fn file(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { what, path, source }
    }
}
