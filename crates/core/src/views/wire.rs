//! The JSON of every view; `schema/common.v1.schema.json` describes it.
//!
//! Times are RFC 3339 in UTC with milliseconds. An absent value is null, never 0 or "". Within a
//! version, fields may be added and meanings never change. A path that is not UTF-8 is a lossy
//! text, with its bytes in a second field `..._bytes`.

mod convert;

use std::collections::BTreeMap;

use serde::Serialize;

pub use convert::{limits, usage};
pub use convert::{problem, resources, session, snapshot, timestamp};

/// The text type of a session in its wire form: `String`, or `Cow<str>`, which borrows from the
/// session for output that is dropped at once.
pub trait WireText<'a>: Serialize + From<&'a str> + From<String> {}

impl<'a, T: Serialize + From<&'a str> + From<String>> WireText<'a> for T {}

/// The version of this format.
pub const SCHEMA_VERSION: u32 = 1;

/// One scan of one machine.
#[derive(Debug, Clone, Serialize)]
pub struct WireSnapshot<S = WireSession> {
    /// [`SCHEMA_VERSION`]
    pub schema_version: u32,
    /// When the look was taken.
    pub taken_at: Option<String>,
    /// The PID scope of this machine.
    pub host: WireHost,
    /// The sessions.
    pub sessions: Vec<S>,
    /// Agent processes without a known session.
    pub unattributed: Vec<WireUnattributed>,
    /// What could not be read.
    pub problems: Vec<WireProblem>,
}

/// One session, with the evidence for its answer.
#[derive(Debug, Clone, Serialize)]
pub struct WireExplained {
    /// The session, alone.
    #[serde(flatten)]
    pub snapshot: WireSnapshot,
    /// The evidence, in sentences.
    pub explanation: Vec<String>,
}

/// A PID scope.
#[derive(Debug, Clone, Serialize)]
pub struct WireHost {
    /// The host's name.
    pub hostname: Option<String>,
    /// The boot of its kernel.
    pub boot_id: Option<String>,
    /// The PID namespace.
    pub pid_namespace: Option<u64>,
}

/// One session.
#[derive(Debug, Clone, Serialize)]
pub struct WireSession<T = String> {
    /// The agent.
    pub agent: T,
    /// The agent's own id of it.
    pub session_id: T,
    /// `live`, `exited` or `unknown`.
    pub liveness: &'static str,
    /// The reason for `liveness`.
    pub reason: &'static str,
    /// How certain a live answer is: `proven`, `consistent`, `inferred`.
    pub confidence: Option<&'static str>,
    /// The phase of the conversation.
    pub phase: Option<&'static str>,
    /// The start of the phase, if known.
    pub phase_since: Option<String>,
    /// The phase when its process exited without an end.
    pub phase_at_exit: Option<&'static str>,
    /// What it waits for.
    pub waiting_for: Option<&'static str>,
    /// What it asks the person.
    pub waiting_on: Option<WireWaitingOn<T>>,
    /// The agent's own word for the phase, if it publishes one.
    pub phase_word: Option<T>,
    /// Its owner has exited and no end was recorded.
    pub orphan: bool,
    /// The session that its process moved to.
    pub superseded_by: Option<T>,
    /// The session that it is a sub-agent of.
    pub parent_session_id: Option<T>,
    /// The process that runs it.
    pub owner: Option<WireProcess>,
    /// The owner runs many sessions.
    pub owner_shared: bool,
    /// The process with the terminal, if that is another process.
    pub client: Option<WireProcess>,
    /// Several processes could be its client.
    pub client_ambiguous: bool,
    /// Other live processes that claim it.
    pub other_live: Vec<WireOtherLive>,
    /// It is live and no terminal shows it.
    pub detached: bool,
    /// It runs without a person at a terminal.
    pub headless: bool,
    /// The directory that it works in.
    pub work_dir: Option<T>,
    /// The bytes of `work_dir` in base64, where they are not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work_dir_bytes: Option<String>,
    /// The branch that it was on last.
    pub git_branch: Option<T>,
    /// Its title.
    pub title: Option<T>,
    /// The model of its last reply.
    pub model: Option<T>,
    /// The agent's version.
    pub agent_version: Option<T>,
    /// When it began.
    pub started_at: Option<String>,
    /// When something last happened in it.
    pub last_activity_at: Option<String>,
    /// When it ended.
    pub ended_at: Option<String>,
    /// The cause of the end, if hooks reported it.
    pub end_cause: Option<T>,
    /// The least processor time that was used for it, if hooks reported it.
    pub cpu_seconds_at_least: Option<f64>,
    /// How full its context is.
    pub context: Option<WireContext>,
    /// Its current turn.
    pub turn: Option<WireTurn>,
    /// The tokens that it used in all.
    pub usage: Option<WireUsage>,
    /// The processor time and memory that its processes use.
    pub resources: Option<WireResources>,
    /// The pane that shows it.
    pub pane: Option<WirePane>,
    /// Its files.
    pub files: WireFiles<T>,
    /// Where its own process listens.
    pub endpoint: Option<T>,
    /// The agent's home, when it is not the default one.
    pub home: Option<T>,
    /// The bytes of `home` in base64, where they are not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub home_bytes: Option<String>,
    /// It was hidden with `dismiss`.
    pub dismissed: bool,
    /// How to show it; only while it is live.
    pub attach: Option<WireCommand<T>>,
    /// How to resume it; only while it is not live.
    pub resume: Option<WireResume<T>>,
    /// The evidence for the answer.
    pub evidence: Vec<WireEvidence<T>>,
}

/// A process.
#[derive(Debug, Clone, Serialize)]
pub struct WireProcess {
    /// Its PID here.
    pub pid: i32,
    /// When it began, raw.
    pub start_stamp: String,
    /// The unit of `start_stamp`.
    pub start_stamp_kind: &'static str,
    /// When it began, by today's wall clock.
    pub started_at: Option<String>,
    /// The file that it executes.
    pub executable: Option<String>,
    /// The bytes of `executable` in base64, where they are not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executable_bytes: Option<String>,
    /// It is stopped (state `T`): it does nothing until it is continued.
    pub stopped: bool,
    /// Its controlling terminal, by its name where the process lives.
    pub tty: Option<String>,
}

/// A live process of a session besides its owner.
#[derive(Debug, Clone, Serialize)]
pub struct WireOtherLive {
    /// Its PID here.
    pub pid: i32,
    /// When it began, raw.
    pub start_stamp: String,
    /// Its pane.
    pub pane: Option<WirePane>,
}

/// What a waiting session asks the person.
#[derive(Debug, Clone, Serialize)]
pub struct WireWaitingOn<T = String> {
    /// The tool that it wants to use.
    pub tool: Option<T>,
    /// The question, the command or the like: at most 200 characters.
    pub text: Option<T>,
}

/// How full a session's context is.
#[derive(Debug, Clone, Serialize)]
pub struct WireContext {
    /// Tokens in it.
    pub tokens: u64,
    /// Tokens that fit.
    pub window: Option<u64>,
    /// The ratio as a percentage.
    pub percent: Option<f64>,
    /// The window is that of the model; the session's own window is not known.
    pub window_assumed: bool,
}

/// A session's current or last turn.
#[derive(Debug, Clone, Serialize)]
pub struct WireTurn {
    /// When it began.
    pub started_at: Option<String>,
    /// Tokens that it has produced.
    pub output_tokens: Option<u64>,
}

/// The tokens that a session used in all, without its sub-agents.
#[derive(Debug, Clone, Serialize)]
pub struct WireUsage {
    /// Tokens sent that were neither read from a cache nor written to one. Null, like the next three,
    /// if the agent records only a cost.
    pub input_tokens: Option<u64>,
    /// Tokens read from a cache.
    pub cached_input_tokens: Option<u64>,
    /// Tokens written to a cache.
    pub cache_write_tokens: Option<u64>,
    /// Tokens received, including reasoning.
    pub output_tokens: Option<u64>,
    /// Tokens of reasoning, where the agent counts them.
    pub reasoning_tokens: Option<u64>,
    /// The cost, if the model has a price.
    pub cost: Option<WireCost>,
    /// Tokens whose model has no price: `cost` is without them.
    pub tokens_without_price: u64,
}

/// A limit of an account.
#[derive(Debug, Clone, Serialize)]
pub struct WireLimit {
    /// The agent that recorded it.
    pub agent: String,
    /// The home in which it was recorded.
    pub home: String,
    /// What is limited, in the agent's word.
    pub name: Option<String>,
    /// The length of the window, in minutes.
    pub window_minutes: Option<u64>,
    /// The used share, in percent.
    pub used_percent: f64,
    /// When the window starts anew.
    pub resets_at: Option<String>,
    /// When this was recorded.
    pub recorded_at: Option<String>,
}

/// A sum of money.
#[derive(Debug, Clone, Serialize)]
pub struct WireCost {
    /// The amount.
    pub amount: f64,
    /// The currency, by ISO 4217.
    pub currency: &'static str,
    /// The source: `agent`, or `prices` for a table of prices.
    pub source: &'static str,
}

/// The resources of a session's processes.
#[derive(Debug, Clone, Serialize)]
pub struct WireResources {
    /// The owner serves several sessions: the numbers are for all of them together.
    pub shared: bool,
    /// Its owner alone.
    pub owner: Option<WireProcessResources>,
    /// Its owner and all processes below it that belong to no other session; null if
    /// the owner is shared.
    pub tree: Option<WireTreeResources>,
}

/// What one process uses.
#[derive(Debug, Clone, Serialize)]
pub struct WireProcessResources {
    /// Share of one processor; null in a single scan.
    pub cpu_percent: Option<f64>,
    /// Processor time so far.
    pub cpu_seconds: Option<f64>,
    /// Resident memory.
    pub rss_bytes: Option<u64>,
    /// Resident memory, with shared parts divided among the processes that share them.
    pub pss_bytes: Option<u64>,
    /// Bytes read from storage.
    pub read_bytes: Option<u64>,
    /// Bytes written to storage.
    pub write_bytes: Option<u64>,
    /// Threads.
    pub threads: Option<u32>,
}

/// What a process and those below it use.
#[derive(Debug, Clone, Serialize)]
pub struct WireTreeResources {
    /// The number of processes.
    pub processes: usize,
    /// Share of one processor; null in a single scan.
    pub cpu_percent: Option<f64>,
    /// Processor time so far.
    pub cpu_seconds: Option<f64>,
    /// Resident memory.
    pub rss_bytes: Option<u64>,
}

/// A pane.
#[derive(Debug, Clone, Serialize)]
pub struct WirePane {
    /// The pane host: `tmux`, …
    pub host: &'static str,
    /// The run of its server, if the host has one.
    pub server: Option<WirePaneServer>,
    /// The host's name of the session around it.
    pub session: Option<String>,
    /// The host's name of the window around it.
    pub window: Option<String>,
    /// The host's ID of it; null if the host is recognized but the pane is not known.
    pub pane: Option<String>,
    /// The pane of another host that shows this pane.
    pub outer: Option<Box<Self>>,
}

/// One run of a pane host's server.
#[derive(Debug, Clone, Serialize)]
pub struct WirePaneServer {
    /// Where it listens.
    pub socket: String,
    /// The bytes of `socket` in base64, where they are not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket_bytes: Option<String>,
    /// Its process.
    pub pid: Option<i32>,
    /// When the process began, raw.
    pub start_stamp: Option<String>,
}

/// A session's files.
#[derive(Debug, Clone, Serialize)]
pub struct WireFiles<T = String> {
    /// Its transcript.
    pub transcript: Option<T>,
    /// The bytes of `transcript` in base64, where they are not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transcript_bytes: Option<String>,
    /// Our record of it.
    pub record: Option<T>,
    /// The bytes of `record` in base64, where they are not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record_bytes: Option<String>,
}

/// A command, for a person or a program to run.
#[derive(Debug, Clone, Serialize)]
pub struct WireCommand<T = String> {
    /// Program and arguments.
    pub argv: Vec<T>,
    /// Where to run it.
    pub cwd: Option<T>,
    /// The bytes of `cwd` in base64, where they are not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd_bytes: Option<String>,
    /// Variables to set.
    pub env: BTreeMap<String, String>,
    /// The bytes of those values of `env` in base64 that are not UTF-8.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env_bytes: BTreeMap<String, String>,
}

/// A command that resumes a session.
#[derive(Debug, Clone, Serialize)]
pub struct WireResume<T = String> {
    /// The command.
    #[serde(flatten)]
    pub command: WireCommand<T>,
    /// False if it stands in a file that any program may have written: run it only after a
    /// person has read it.
    pub trusted: bool,
}

/// A piece of evidence.
#[derive(Debug, Clone, Serialize)]
pub struct WireEvidence<T = String> {
    /// What kind of thing it is.
    pub kind: &'static str,
    /// The file, if it is a file.
    pub path: Option<T>,
    /// The bytes of `path` in base64, where they are not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_bytes: Option<String>,
    /// What it says.
    pub says: T,
    /// The date of the evidence.
    pub at: Option<String>,
    /// The verdict.
    pub verdict: &'static str,
    /// The reason of the verdict.
    pub reason: &'static str,
}

/// An agent process without a known session.
#[derive(Debug, Clone, Serialize)]
pub struct WireUnattributed {
    /// The agent.
    pub agent: String,
    /// Its PID.
    pub pid: i32,
    /// When it began, raw.
    pub start_stamp: String,
    /// When it began, by the wall clock of now.
    pub started_at: Option<String>,
    /// Where it works.
    pub work_dir: Option<String>,
    /// The bytes of `work_dir` in base64, where they are not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work_dir_bytes: Option<String>,
    /// Its pane.
    pub pane: Option<WirePane>,
    /// The sessions that it may be serving.
    pub candidates: Vec<String>,
    /// Their titles, in the same order, as far as they are known.
    pub candidate_titles: Vec<Option<String>>,
    /// Why it has no session.
    pub reason: String,
}

/// Something that could not be read.
#[derive(Debug, Clone, Serialize)]
pub struct WireProblem {
    /// The agent.
    pub agent: Option<String>,
    /// The file.
    pub path: Option<String>,
    /// The bytes of `path` in base64, where they are not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_bytes: Option<String>,
    /// What is wrong.
    pub message: String,
}

/// The answer to a question, for readers in other languages: either field.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WireReply<T> {
    /// The answer.
    Answer(T),
    /// Why there is no answer.
    Error(WireError),
}

/// Why a question has no answer.
#[derive(Debug, Clone, Serialize)]
pub struct WireError {
    /// What kind of error it is, for programs. Codes are stable.
    pub code: &'static str,
    /// What failed and why, for people.
    pub message: String,
    /// The sessions that an ambiguous id may mean; at most 20 of them.
    pub candidates: Vec<WireCandidate>,
}

/// A session that an ambiguous ID may mean. `AGENT:SESSION_ID` and the home together identify it.
#[derive(Debug, Clone, Serialize)]
pub struct WireCandidate {
    /// The agent.
    pub agent: String,
    /// The agent's own id of it.
    pub session_id: String,
    /// The agent's home, also where that is the default one.
    pub home: String,
    /// `live`, `exited` or `unknown`.
    pub liveness: &'static str,
    /// The directory that it works in.
    pub work_dir: Option<String>,
}
