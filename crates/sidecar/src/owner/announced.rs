//! What an agent announces: itself, a session, where the file lies, a phase.

use std::path::{Path, PathBuf};

use whosup_process::Pid;

use super::WriteError;
use crate::{AgentId, Resume, Serves, SessionId};

/// How the names of sidecars end.
pub(super) const SUFFIX: &str = ".runtime.json";
/// The name of a sidecar in a directory that is the session's alone.
const IN_OWN_DIRECTORY: &str = "runtime.json";
/// The directory of the common place, in the state directory.
const COMMON_PLACE: &str = "agent-sessions";

/// The agent that writes: its name, its version, and how many sessions a process of it serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    pub(super) id: AgentId,
    pub(super) version: Option<String>,
    pub(super) serves: Option<Serves>,
}

impl Agent {
    /// An agent by its name: lower-case letters, digits and hyphens.
    ///
    /// # Errors
    ///
    /// [`WriteError::AgentId`] if it can't be a name, [`WriteError::ReservedName`]
    /// if it is `schema`.
    pub fn new(name: &str) -> Result<Self, WriteError> {
        let id = AgentId::parse(name)?;
        if name == "schema" {
            return Err(WriteError::ReservedName);
        }
        Ok(Self {
            id,
            version: None,
            serves: None,
        })
    }

    /// Sets the agent's version.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// Announces how many sessions a process of this agent serves at once. Without it,
    /// readers take every session that the process announces for current.
    #[must_use]
    pub const fn serves(mut self, serves: Serves) -> Self {
        self.serves = Some(serves);
        self
    }
}

/// Where a session's sidecar lies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Place {
    /// `$XDG_STATE_HOME/agent-sessions/AGENT/ID.runtime.json`: where every
    /// reader looks, whether it knows the agent or not.
    #[default]
    Common,
    /// `ID.runtime.json` in this directory, which sessions share.
    Directory(PathBuf),
    /// `runtime.json` in this directory, which is the session's alone.
    SessionDirectory(PathBuf),
}

impl Place {
    /// The directory and the name of a session's file.
    pub(super) fn of(
        &self,
        agent: &AgentId,
        session: &SessionId,
    ) -> Result<(PathBuf, String), WriteError> {
        let named = format!("{session}{SUFFIX}");
        match self {
            Self::Common => Ok((common_place()?.join(agent.as_str()), named)),
            Self::Directory(directory) => Ok((directory.clone(), named)),
            Self::SessionDirectory(directory) => Ok((directory.clone(), IN_OWN_DIRECTORY.into())),
        }
    }
}

impl Place {
    /// How many directories must be ours: of the common place, the state directory too.
    pub(super) const fn levels_of_ours(&self) -> usize {
        match self {
            // The agent's, that of all agents, and what both lie in.
            Self::Common => 3,
            Self::Directory(_) | Self::SessionDirectory(_) => 1,
        }
    }
}

/// `XDG_STATE_HOME` counts if it is absolute (XDG Base Directory
/// Specification 0.8), and otherwise the state directory is `~/.local/state`.
fn common_place() -> Result<PathBuf, WriteError> {
    let state = std::env::var_os("XDG_STATE_HOME")
        .map(PathBuf::from)
        .filter(|directory| directory.is_absolute());
    let home = || std::env::home_dir().filter(|home| home.is_absolute());
    let state = state.or_else(|| Some(home()?.join(".local/state")));
    let state = state.ok_or(WriteError::NoStateDirectory)?;
    Ok(state.join(COMMON_PLACE))
}

/// One session, as an agent announces it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    pub(super) id: SessionId,
    pub(super) work_dir: PathBuf,
    pub(super) place: Place,
    pub(super) transcript: Option<PathBuf>,
    pub(super) client_pid: Option<Pid>,
    pub(super) resume: Option<Resume>,
    pub(super) endpoint: Option<String>,
}

impl Session {
    /// A session by the agent's own id and the directory that it works in,
    /// announced in the common place.
    ///
    /// # Errors
    ///
    /// [`WriteError::SessionId`] if the id could leave its directory or can't be
    /// part of a file name; [`WriteError::Path`] if the directory is not absolute.
    pub fn new(id: &str, work_dir: impl Into<PathBuf>) -> Result<Self, WriteError> {
        let id = SessionId::parse(id)?;
        let work_dir = absolute("work_dir", work_dir.into())?;
        Ok(Self {
            id,
            work_dir,
            place: Place::Common,
            transcript: None,
            client_pid: None,
            resume: None,
            endpoint: None,
        })
    }

    /// Sets where the sidecar lies.
    ///
    /// # Errors
    ///
    /// [`WriteError::Path`] if its directory is not absolute.
    pub fn place(mut self, place: Place) -> Result<Self, WriteError> {
        match &place {
            Place::Common => {}
            Place::Directory(path) | Place::SessionDirectory(path) => {
                require_absolute("place", path)?;
            }
        }
        self.place = place;
        Ok(self)
    }

    /// Names the session's transcript.
    #[must_use]
    pub fn transcript(mut self, transcript: impl Into<PathBuf>) -> Self {
        self.transcript = Some(transcript.into());
        self
    }

    /// Names the process that has the terminal, where it is another one.
    #[must_use]
    pub fn client_pid(mut self, pid: Pid) -> Self {
        self.client_pid = Some(pid);
        self
    }

    /// Sets the command that resumes the session. Readers show it and never run it.
    #[must_use]
    pub fn resume(mut self, resume: Resume) -> Self {
        self.resume = Some(resume);
        self
    }

    /// Sets where the process listens: a socket's path or a URL without secrets.
    #[must_use]
    pub fn endpoint(mut self, endpoint: impl Into<String>) -> Self {
        self.endpoint = Some(endpoint.into());
        self
    }

    /// The agent's own id.
    #[must_use]
    pub const fn id(&self) -> &SessionId {
        &self.id
    }
}

fn absolute(field: &'static str, path: PathBuf) -> Result<PathBuf, WriteError> {
    require_absolute(field, &path)?;
    Ok(path)
}

fn require_absolute(field: &'static str, path: &Path) -> Result<(), WriteError> {
    if path.is_absolute() {
        return Ok(());
    }
    Err(WriteError::Path {
        field,
        path: path.to_owned(),
        reason: "is not absolute",
    })
}

/// What the conversation is doing; for display, and no evidence of life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// It has begun and has reported nothing yet.
    Starting,
    /// It has ended its turn.
    Idle,
    /// It is in a turn.
    Working,
    /// It is in a turn and has stopped until a person answers.
    Waiting(WaitingFor),
}

/// What a waiting session waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WaitingFor {
    /// Leave to do something.
    Permission,
    /// An answer to a question.
    Question,
    /// A login.
    Auth,
    /// The next prompt, which it asked for.
    Prompt,
}

impl Phase {
    /// The word for `phase` in a sidecar.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Idle => "idle",
            Self::Working => "working",
            Self::Waiting(_) => "waiting",
        }
    }

    /// What it waits for, if it does.
    #[must_use]
    pub const fn waiting_for(self) -> Option<WaitingFor> {
        match self {
            Self::Waiting(what) => Some(what),
            Self::Starting | Self::Idle | Self::Working => None,
        }
    }
}

impl WaitingFor {
    /// The word for `waiting_for` in a sidecar.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Permission => "permission",
            Self::Question => "question",
            Self::Auth => "auth",
            Self::Prompt => "prompt",
        }
    }
}
