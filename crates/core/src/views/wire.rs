//! The JSON that every view gives out; `schema/common.v1.schema.json` describes it.
//!
//! Times are RFC 3339 in UTC with milliseconds. What is absent is null, never 0
//! or "". New fields may come, meanings never change within a version. A path that is
//! not UTF-8 is a lossy text, and a field `..._bytes` beside it has its bytes.

mod convert;

use std::collections::BTreeMap;

use serde::Serialize;

#[cfg(feature = "reader")]
pub use convert::{limits, usage};
pub use convert::{problem, resources, session, snapshot, timestamp};

/// What the texts of a session are in its wire form: `String`, or `Cow<str>`, which is
/// lent by the session where it can be. For what is written and let go at once.
pub trait WireText<'a>: Serialize + From<&'a str> + From<String> {}

impl<'a, T: Serialize + From<&'a str> + From<String>> WireText<'a> for T {}

/// The version of this format.
pub const SCHEMA_VERSION: u32 = 1;

/// One look at one machine.
#[derive(Debug, Clone, Serialize)]
pub struct WireSnapshot<S = WireSession> {
    /// [`SCHEMA_VERSION`]
    pub schema_version: u32,
    /// When the look was taken.
    pub taken_at: Option<String>,
    /// Where PIDs mean what they mean here.
    pub host: WireHost,
    /// The sessions.
    pub sessions: Vec<S>,
    /// Agent processes that no session is known of.
    pub unattributed: Vec<WireUnattributed>,
    /// What could not be read.
    pub problems: Vec<WireProblem>,
}

/// One session, and what the answer about it rests on.
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
    /// The run of its kernel.
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
    /// Why.
    pub reason: &'static str,
    /// How a live one is known: `proven`, `consistent`, `inferred`.
    pub confidence: Option<&'static str>,
    /// What the conversation is doing.
    pub phase: Option<&'static str>,
    /// Since when, as far as that is known.
    pub phase_since: Option<String>,
    /// What it was doing when its process exited without an end.
    pub phase_at_exit: Option<&'static str>,
    /// What it waits for.
    pub waiting_for: Option<&'static str>,
    /// What is asked of the person that it waits for.
    pub waiting_on: Option<WireWaitingOn<T>>,
    /// The agent's own word for what it is doing, where it published one.
    pub phase_word: Option<T>,
    /// Its owner has exited and no end was recorded.
    pub orphan: bool,
    /// The session that its process went on to.
    pub superseded_by: Option<T>,
    /// The session that it is a sub-agent of.
    pub parent_session_id: Option<T>,
    /// The process that runs it.
    pub owner: Option<WireProcess>,
    /// The owner runs many sessions.
    pub owner_shared: bool,
    /// The process with the terminal, when that is another one.
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
    /// How that came to be known, where hooks reported it.
    pub end_cause: Option<T>,
    /// The processor time that went into it at least, where hooks reported it.
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
    /// How to get to see it; given only while it is live.
    pub attach: Option<WireCommand<T>>,
    /// How to continue it; given only when it is not live.
    pub resume: Option<WireResume<T>>,
    /// What all this rests on.
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
    /// When it began, by the wall clock of now.
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

/// A live process of a session beside its owner.
#[derive(Debug, Clone, Serialize)]
pub struct WireOtherLive {
    /// Its PID here.
    pub pid: i32,
    /// When it began, raw.
    pub start_stamp: String,
    /// Its pane.
    pub pane: Option<WirePane>,
}

/// What is asked of the person that a session waits for.
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
    /// The one as a percentage of the other.
    pub percent: Option<f64>,
    /// The window is that of the model, and the session's own is not known.
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

/// The tokens that a session used in all, its sub-agents left out.
#[derive(Debug, Clone, Serialize)]
pub struct WireUsage {
    /// Tokens sent that were neither read from a cache nor written to one. Null, as the next
    /// three, where the agent records a cost alone.
    pub input_tokens: Option<u64>,
    /// Tokens read from a cache.
    pub cached_input_tokens: Option<u64>,
    /// Tokens written to a cache.
    pub cache_write_tokens: Option<u64>,
    /// Tokens received, those of reasoning among them.
    pub output_tokens: Option<u64>,
    /// Tokens of reasoning, where the agent counts them.
    pub reasoning_tokens: Option<u64>,
    /// What they cost, where the model has a price.
    pub cost: Option<WireCost>,
    /// Tokens whose model has no price: `cost` is without them.
    pub tokens_without_price: u64,
}

/// A limit of an account.
#[derive(Debug, Clone, Serialize)]
pub struct WireLimit {
    /// The agent that recorded it.
    pub agent: String,
    /// The home in which it did.
    pub home: String,
    /// What is limited, in the agent's word.
    pub name: Option<String>,
    /// Over how many minutes use counts.
    pub window_minutes: Option<u64>,
    /// How much of it was used, in percent.
    pub used_percent: f64,
    /// When use begins anew.
    pub resets_at: Option<String>,
    /// When this was recorded.
    pub recorded_at: Option<String>,
}

/// A sum of money.
#[derive(Debug, Clone, Serialize)]
pub struct WireCost {
    /// How much.
    pub amount: f64,
    /// Of which currency, by ISO 4217.
    pub currency: &'static str,
    /// Who says so: `agent`, or `prices` for a table of prices.
    pub source: &'static str,
}

/// What the processes of a session use.
#[derive(Debug, Clone, Serialize)]
pub struct WireResources {
    /// The owner serves several sessions: its numbers are those of all of them together.
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
    /// How much of one processor; null in a single look.
    pub cpu_percent: Option<f64>,
    /// Processor time so far.
    pub cpu_seconds: Option<f64>,
    /// Memory that it has resident.
    pub rss_bytes: Option<u64>,
    /// The same, what it shares with others divided among them.
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
    /// How many they are.
    pub processes: usize,
    /// How much of one processor; null in a single look.
    pub cpu_percent: Option<f64>,
    /// Processor time so far.
    pub cpu_seconds: Option<f64>,
    /// Memory that they have resident.
    pub rss_bytes: Option<u64>,
}

/// A pane.
#[derive(Debug, Clone, Serialize)]
pub struct WirePane {
    /// The pane host: `tmux`, …
    pub host: &'static str,
    /// The run of its server, where the host has one.
    pub server: Option<WirePaneServer>,
    /// The host's name of the session around it.
    pub session: Option<String>,
    /// The host's name of the window around it.
    pub window: Option<String>,
    /// The host's id of it; null where the host is recognized and the pane is not known.
    pub pane: Option<String>,
    /// The pane of another host that shows this one.
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
    /// When that began, raw.
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

/// A command that continues a session.
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
    /// The file, if it is one.
    pub path: Option<T>,
    /// The bytes of `path` in base64, where they are not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_bytes: Option<String>,
    /// What it says.
    pub says: T,
    /// When that was said.
    pub at: Option<String>,
    /// What it was judged.
    pub verdict: &'static str,
    /// Why.
    pub reason: &'static str,
}

/// An agent's process that no session is known of.
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
    /// Why it has none.
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

/// What a question is answered with, for readers in other languages: one of the two.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WireReply<T> {
    /// The answer.
    Answer(T),
    /// Why there is none.
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

/// A session that an ambiguous id may mean. `AGENT:SESSION_ID` and the home together mean
/// it alone.
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
