//! What each agent's file tells the line.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use whosup_process::{Details, Pid, Process};
use whosup_sidecar::{AgentId, SessionId};

use super::hooks::Hooks;
use crate::claim::{Claim, Evidence, SessionKey};
use crate::machine::{Environment, Machine};
use crate::phase::{Phase, WaitingFor};
use crate::problem::Found;

/// The longest name that the kernel keeps of a process, in bytes
/// (`TASK_COMM_LEN` less its NUL).
const COMM_BYTES_MAX: usize = 15;

/// Knows one agent: how its processes look, where its files are, what they claim.
///
/// Adapters make claims; they never judge. They read, and write nothing.
pub trait Adapter: Send + Sync {
    /// What is fixed about the agent.
    fn profile(&self) -> &'static Profile;

    /// How its hooks talk and where they are set; `None` for an agent that has none.
    fn hooks(&self) -> Option<&'static Hooks> {
        None
    }

    /// The homes (configuration roots) that a program of this agent uses when
    /// started with `environment`: ours, or one of its processes'. Empty
    /// variables count as unset.
    fn homes(&self, environment: &Environment) -> Vec<PathBuf>;

    /// The homes that a process with these arguments uses, where they name one:
    /// they win over its environment.
    fn homes_named_by(&self, program: &Program<'_>, environment: &Environment) -> Vec<PathBuf> {
        let _ = program;
        self.homes(environment)
    }

    /// Tells whether one of its processes may have this name in the process
    /// table, so that the process is worth a closer look: it is among
    /// [`Profile::comms`], cut as the kernel cuts it.
    fn may_be_called(&self, comm: &str) -> bool {
        let mut names = self.profile().comms.iter();
        names.any(|name| name.get(..COMM_BYTES_MAX).unwrap_or(name) == comm)
    }

    /// Says what a process is to this agent; `None` if it is none of its own.
    ///
    /// Goes by the executable and the arguments; by a title only where the
    /// program overwrites its arguments; never by `comm` alone.
    fn recognize(&self, program: &Program<'_>) -> Option<Role>;

    /// The session that a process's arguments name: an id, or the beginning of
    /// one. Loses to anything newer: the arguments stay when the process moves on.
    fn session_named_by<'a>(&self, program: &Program<'a>) -> Option<&'a str> {
        let _ = program;
        None
    }

    /// The directory that a process's arguments say it works in, where that may
    /// be another than its own.
    fn work_dir_named_by(&self, program: &Program<'_>) -> Option<PathBuf> {
        let _ = program;
        None
    }

    /// What the title that a process has given to its terminal says of the phase
    /// of the session that it shows; `None` if it says nothing.
    fn phase_in_title(&self, title: &str) -> Option<Published> {
        let _ = title;
        None
    }

    /// Its arguments may name a session of any directory. Otherwise one of
    /// another directory is not found by the agent, and so not served.
    fn resumes_from_anywhere(&self) -> bool {
        true
    }

    /// Reads the claims of one home.
    ///
    /// With [`Depth::Live`] it starts from the processes and from what is keyed
    /// by PID or held, and reads only what these lead to; with [`Depth::All`]
    /// it walks every session on disk.
    fn scan(&self, look: &Look<'_>, home: &Home) -> Found<AgentScan>;

    /// Reads what a session's own files tell about it (title, model, …).
    /// Called only for sessions that somebody wants to see.
    fn describe(&self, look: &Look<'_>, sketch: &Sketch) -> Found<Description>;

    /// The last messages of a session, oldest first, at most `messages_max`.
    fn messages(
        &self,
        machine: &Machine,
        sketch: &Sketch,
        messages_max: usize,
    ) -> Found<Vec<Message>>;

    /// How the session is continued once it is not live.
    fn resume(&self, key: &SessionKey, is_default_home: bool) -> Option<Invocation>;

    /// The paths of a home worth watching: what changes when a session starts,
    /// moves or ends.
    fn watch_paths(&self, home: &Home) -> Vec<WatchPath>;
}

/// What is fixed about an agent.
#[derive(Debug)]
pub struct Profile {
    /// Its id, as in `--agent`.
    pub id: &'static str,
    /// Its name for people.
    pub name: &'static str,
    /// Where it keeps its things by default, below the user's home.
    pub default_home: &'static str,
    /// The variables that move its home.
    pub home_variables: &'static [&'static str],
    /// How a live session is found, in a few words, for `agents` and the README.
    pub detection: &'static str,
    /// The version this was checked against, and when.
    pub checked_against: &'static str,
    /// Names its processes may have as `comm` (at most 15 bytes), so that only
    /// these and the runtimes are looked at closer.
    pub comms: &'static [&'static str],
    /// It has a session from launch on, before any prompt.
    pub has_session_at_launch: bool,
    /// A process of it that serves a session always publishes its PID, so that
    /// a session without a claim is served by none of them.
    pub publishes_pid: bool,
}

/// How a process looks, for recognition.
#[derive(Debug, Clone, Copy)]
pub struct Program<'a> {
    /// Its `stat`.
    pub process: &'a Process,
    /// The rest.
    pub details: &'a Details,
}

impl<'a> Program<'a> {
    /// The arguments, empty where they can't be read.
    #[must_use]
    pub fn argv(&self) -> &'a [OsString] {
        self.details.argv.as_deref().unwrap_or_default()
    }

    /// The executable's path, where it can be read.
    #[must_use]
    pub fn exe(&self) -> Option<&'a Path> {
        self.details.exe.as_deref().ok()
    }

    /// The file name of the executable, where it can be read.
    #[must_use]
    pub fn exe_name(&self) -> Option<&'a str> {
        self.exe()?.file_name()?.to_str()
    }

    /// The text that the process put over its arguments, trimmed.
    #[must_use]
    pub fn title(&self) -> Option<&'a str> {
        self.details.title.as_ref().ok()?.as_ref()?.to_str()
    }

    /// `comm`, where it is UTF-8.
    #[must_use]
    pub fn comm(&self) -> Option<&'a str> {
        std::str::from_utf8(&self.process.comm).ok()
    }

    /// The executable is a language runtime that runs scripts.
    #[must_use]
    pub fn is_runtime(&self) -> bool {
        self.exe_name().is_some_and(crate::agents::is_runtime_name)
    }

    /// The script that a runtime runs: its first argument that is no option.
    #[must_use]
    pub fn script(&self) -> Option<&'a Path> {
        if !self.is_runtime() {
            return None;
        }
        self.argv()
            .iter()
            .skip(1)
            .map(Path::new)
            .find(|arg| !arg.as_os_str().as_encoded_bytes().starts_with(b"-"))
    }

    /// The value of an option in the arguments: `--name value` or `--name=value`.
    #[must_use]
    pub fn option(&self, name: &str) -> Option<&'a str> {
        let mut args = self.argv().iter().skip(1);
        while let Some(arg) = args.next() {
            let Some(arg) = arg.to_str() else { continue };
            if arg == name {
                return args.next().and_then(|value| value.to_str());
            }
            if let Some(value) = arg
                .strip_prefix(name)
                .and_then(|rest| rest.strip_prefix('='))
            {
                return Some(value);
            }
        }
        None
    }

    /// Tells whether an argument is exactly `word`.
    #[must_use]
    pub fn has_argument(&self, word: &str) -> bool {
        self.argv().iter().skip(1).any(|arg| arg == word)
    }
}

/// What a process is to its agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Runs one session at a time, or may come to run one.
    Session,
    /// Shows a session that another process runs.
    Client,
    /// Runs many sessions at once: a daemon, an app server.
    Host,
    /// A wrapper above the real process.
    Launcher,
    /// Belongs to the agent and never runs a session (an updater, a
    /// pre-started spare, a hub).
    Auxiliary,
}

/// A process that an adapter recognized.
#[derive(Debug, Clone)]
pub struct AgentProcess {
    /// The agent.
    pub agent: AgentId,
    /// The process.
    pub process: Process,
    /// The rest of what it tells.
    pub details: Arc<Details>,
    /// What it is to the agent.
    pub role: Role,
    /// The homes it uses, by its own environment; empty if that can't be read.
    pub homes: Vec<PathBuf>,
}

impl AgentProcess {
    /// How it looks, for reading its arguments.
    #[must_use]
    pub fn program(&self) -> Program<'_> {
        Program {
            process: &self.process,
            details: &self.details,
        }
    }

    /// Its directory, where it can be read.
    #[must_use]
    pub fn work_dir(&self) -> Option<&Path> {
        self.details.cwd.as_deref().ok()
    }

    /// Tells whether it may use `home`: it does by its environment, or that
    /// can't be read.
    #[must_use]
    pub fn may_use(&self, home: &Home) -> bool {
        self.homes.is_empty() || self.homes.contains(&home.root)
    }
}

/// One home of an agent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Home {
    /// Its root.
    pub root: PathBuf,
    /// It is the one that the agent uses when nothing moves it.
    pub is_default: bool,
    /// The user who owns the root; `None` where that can't be told.
    pub owner_uid: Option<u32>,
}

/// How far a scan looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Depth {
    /// What processes, PID-keyed registries, locks and records lead to.
    Live,
    /// Every session on disk.
    All,
}

/// What an adapter is given to look with.
#[derive(Debug, Clone, Copy)]
pub struct Look<'a> {
    /// The world.
    pub machine: &'a Machine,
    /// How far to look.
    pub depth: &'a Depth,
    /// This agent's processes, of every home.
    pub processes: &'a [AgentProcess],
}

impl<'a> Look<'a> {
    /// This agent's processes that may use `home`.
    pub fn processes_of(&self, home: &'a Home) -> impl Iterator<Item = &'a AgentProcess> + use<'a> {
        self.processes
            .iter()
            .filter(move |process| process.may_use(home))
    }
}

/// What one home of an agent told.
#[derive(Debug, Clone, Default)]
pub struct AgentScan {
    /// Who is said to serve which session.
    pub claims: Vec<Claim>,
    /// What is known of sessions, claimed or not. A claimed session without a
    /// sketch is fine.
    pub sketches: Vec<Sketch>,
}

/// What a scan tells of one session besides claims: enough to group and pair it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sketch {
    /// The session.
    pub key: SessionKey,
    /// The session that this is a sub-agent of.
    pub parent: Option<SessionId>,
    /// The directory it works in.
    pub work_dir: Option<PathBuf>,
    /// When it was born: header, UUIDv7, birth of its lock file.
    pub born_at_ms: Option<i64>,
    /// The date inside its last prompt, reply or other record, not counting
    /// what a later start of the agent writes into old files.
    pub last_record_at_ms: Option<i64>,
    /// Its transcript.
    pub transcript: Option<PathBuf>,
    /// What the agent itself published of its phase.
    pub published: Option<Published>,
    /// How it is paired with processes that claim nothing.
    pub pairing: PairingRule,
    /// A process whose arguments lead to it though they do not name it: they
    /// name the session that this one was forked from.
    pub named_by: Option<Pid>,
    /// The processes that may be its owner, where the agent's files tell that
    /// more closely than directories and dates do. Which of them it is, pairing
    /// has to find out.
    pub possible_owners: Option<BTreeSet<Pid>>,
    /// A process came into being with it: nobody went over to it from another
    /// session. Of several such sessions one at most is a process's.
    pub is_first_of_a_process: bool,
    /// What a terminal shows that is in it, where that is not its title.
    pub terminal_title: Option<String>,
    /// The process that shows it, where that is known for certain (it started
    /// the one that serves it).
    pub client: Option<KnownClient>,
    /// The agent removes what is left here on a clean exit, so a stale claim
    /// without an ended phase is an orphan.
    pub is_orphan_when_stale: bool,
    /// There is something to resume: false only where it is known that nothing
    /// was ever said in it.
    pub is_resumable: bool,
    /// It runs without a person at a terminal; `None` if that isn't told.
    pub is_headless: Option<bool>,
    /// It is a session that the agent started without a real id yet, or one
    /// that never came to be: never shown as a session of its own.
    pub is_provisional: bool,
    /// A title that is known without reading the transcript.
    pub title: Option<String>,
    /// The agent's version, where the claim's file names it.
    pub agent_version: Option<String>,
    /// Where the session's own process listens (a socket path or URL, never a token).
    pub endpoint: Option<String>,
    /// When the session began, by the claim's file.
    pub started_at_ms: Option<i64>,
    /// When the session ended, where somebody recorded that.
    pub ended_at_ms: Option<i64>,
    /// What describing it would tell, where the scan came to know that on the
    /// way: one read of a database tells of every session in it.
    pub described: Option<Description>,
    /// How it is resumed, as the claim's file says. Counts only for an agent
    /// without an adapter, and is shown, never run: anybody may have written it.
    pub resume: Option<Invocation>,
}

impl Sketch {
    /// A sketch that knows nothing but the session's name.
    #[must_use]
    pub fn new(key: SessionKey) -> Self {
        Self {
            key,
            parent: None,
            work_dir: None,
            born_at_ms: None,
            last_record_at_ms: None,
            transcript: None,
            published: None,
            pairing: PairingRule::Never,
            named_by: None,
            possible_owners: None,
            is_first_of_a_process: false,
            terminal_title: None,
            client: None,
            is_orphan_when_stale: false,
            is_resumable: true,
            is_headless: None,
            is_provisional: false,
            title: None,
            agent_version: None,
            endpoint: None,
            started_at_ms: None,
            ended_at_ms: None,
            described: None,
            resume: None,
        }
    }
}

/// The process that shows a session which another process serves, known for
/// certain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownClient {
    /// The process.
    pub process: Process,
    /// How that is known.
    pub evidence: Evidence,
}

/// How a session is paired with processes that claim nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairingRule {
    /// Not at all: whoever serves it says so.
    Never,
    /// A process of the agent may be its owner.
    Owner,
    /// Its owner is known (a shared host); a process with a terminal may be its client.
    Client,
}

/// What an agent itself published of a session's phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// The phase, if the agent's word maps to one.
    pub phase: Option<Phase>,
    /// What it waits for.
    pub waiting_for: Option<WaitingFor>,
    /// The agent's own word.
    pub word: String,
    /// When it was published, in milliseconds since 1970.
    pub at_ms: Option<i64>,
}

/// What a session's own files tell about it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Description {
    /// Its title: given by a person or the agent, else its first prompt.
    pub title: Option<String>,
    /// The title is a prompt's text, so that a setting may keep it out.
    pub is_title_a_prompt: bool,
    /// The model of its last reply.
    pub model: Option<String>,
    /// The agent's version that wrote last.
    pub agent_version: Option<String>,
    /// The branch it was on last.
    pub git_branch: Option<String>,
    /// The directory it works in now.
    pub work_dir: Option<PathBuf>,
    /// When it began, in milliseconds since 1970.
    pub started_at_ms: Option<i64>,
    /// The date inside its last record.
    pub last_activity_at_ms: Option<i64>,
    /// What its last records say it was doing.
    pub phase: Option<Phase>,
    /// What it was waiting for, by its last records.
    pub waiting_for: Option<WaitingFor>,
    /// It runs without a person at a terminal.
    pub is_headless: Option<bool>,
    /// Its transcript.
    pub transcript: Option<PathBuf>,
}

/// One message of a transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Who speaks.
    pub role: MessageRole,
    /// When, in milliseconds since 1970.
    pub at_ms: Option<i64>,
    /// The text; of a tool call its name.
    pub text: String,
}

/// Who speaks in a transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageRole {
    /// The person.
    User,
    /// The agent.
    Assistant,
    /// A tool call or its result.
    Tool,
}

/// A command that somebody may run: shown by us, never run unasked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Variables it needs set.
    pub environment: Vec<(String, PathBuf)>,
}

/// A path worth watching.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchPath {
    /// The directory or file.
    pub path: PathBuf,
    /// Directories below it count too.
    pub is_recursive: bool,
}
