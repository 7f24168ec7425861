//! Reads and writes the `runtime.json` contract: a small file in which a coding
//! agent records which process serves one of the agent's sessions.
//!
//! ```
//! use whosup_sidecar::{SidecarPid, parse_sidecar};
//!
//! let sidecar = parse_sidecar(br#"{
//!     "schema_version": 1,
//!     "pid": 21775,
//!     "session_id": "0a0cf238-8b66-4429-9815-234560ccc5d1",
//!     "work_dir": "/home/dev/app",
//!     "hostname": "devbox",
//!     "started_at": 1795812879.887,
//!     "qwen_version": "0.24.4"
//! }"#)?;
//!
//! assert_eq!(sidecar.session_id.as_str(), "0a0cf238-8b66-4429-9815-234560ccc5d1");
//! assert_eq!(sidecar.started_at_ms, 1_795_812_879_887);
//! assert_eq!(sidecar.agent_name.as_deref(), Some("qwen"));
//! assert!(matches!(sidecar.pid, SidecarPid::Process(pid) if pid.get() == 21775));
//! # Ok::<(), whosup_sidecar::SidecarError>(())
//! ```
//!
//! A sidecar is a *claim*: it may be stale, copied or false, and a PID alone
//! proves nothing. A reader must judge it against the process table.
//!
//! Each part can also be used alone:
//!
//! - [`SessionId`] and [`AgentId`]: the only way from foreign text to a name
//!   that may become part of a path;
//! - [`mod@file`]: reads a small file without ever waiting for it, whatever lies
//!   at its path;
//! - [`StrictObject`]: a JSON object read without any coercion, whose errors
//!   name the wrong key, what was expected and what was found;
//! - [`parse_sidecar`] (bytes) and [`read_sidecar`] (a file);
//! - [`mod@own_directory`]: writes files where no other user could have planted anything;
//! - [`Owner`]: writes the sidecar of a process, for an agent's author.

mod agent_id;
mod field_error;
pub mod file;
mod invisible;
mod json;
pub mod own_directory;
mod owner;
mod read;
mod session_id;
mod shown;
mod sidecar;
mod strict;
mod surrogate;

pub use agent_id::{AGENT_ID_BYTES_MAX, AgentId, AgentIdError};
pub use field_error::FieldError;
pub use json::{JsonError, parse_json};
pub use owner::{Agent, Owner, Phase, Place, Session, WaitingFor, WriteError, is_sidecar_name};
pub use read::{ReadSidecarError, read_sidecar, read_sidecar_in};
pub use session_id::{SESSION_ID_BYTES_MAX, SessionId, SessionIdError};
pub use sidecar::{
    Resume, SIDECAR_BYTES_MAX, SIDECAR_SCHEMA, STARTED_AT_S_MAX, Serves, Sidecar, SidecarError,
    parse_sidecar,
};
pub use strict::{SidecarPid, StrictObject};
pub use surrogate::without_lone_surrogates;

/// The examples in the README, as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
