//! What a scan finds out about one session besides claims.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use whosup_process::Process;
use whosup_sidecar::SessionId;

use super::{Description, Invocation, LiveTime};
use crate::adapter::claim::{Evidence, SessionKey};
use crate::adapter::phase::{Phase, PhaseFact};
use crate::adapter::{Clue, Switch, Unclaimed, Visit};

/// What a scan finds out about a session besides claims: enough to group and attribute it.
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
    /// If the end of the transcript is missing: the latest time at which the missing part may
    /// have been written.
    pub perhaps_until_ms: Option<i64>,
    /// It is a sub-agent that may have ended before its parent: the end of the file that
    /// would show it is missing.
    pub may_have_ended: bool,
    /// Its transcript.
    pub transcript: Option<PathBuf>,
    /// It has no transcript yet, as its adapter saw: it has no messages.
    pub lacks_transcript: bool,
    /// What hooks and the agent itself report of its phase.
    pub facts: Vec<PhaseFact>,
    /// When a hook last reported anything of it, in milliseconds since 1970.
    pub heard_at_ms: Option<i64>,
    /// Who may serve it without a claim.
    pub unclaimed: Unclaimed,
    /// What the agent's files show about single processes.
    pub clues: Vec<Clue>,
    /// When a process may have been launched with it: its birth, or each time that a
    /// process took it up, in milliseconds since 1970.
    pub launched_at_ms: Vec<i64>,
    /// When a process was launched with it, as a range, if the agent's files have lost the exact
    /// date.
    pub launched_within_ms: Option<RangeInclusive<i64>>,
    /// A running process made it and moved to it, if the agent's log shows that.
    pub switched: Option<Switch>,
    /// When a person last typed a prompt in it.
    pub prompted_at_ms: Option<i64>,
    /// Visits of processes that were launched with this or another session.
    pub visits: Vec<Visit>,
    /// When processes were launched with it that moved to unknown sessions, in milliseconds
    /// since 1970.
    pub lost_launches_ms: Vec<i64>,
    /// What a terminal shows for it, if that is not the title.
    pub terminal_title: Option<String>,
    /// Only a terminal that shows its title makes it a row.
    pub matters_only_if_shown: bool,
    /// The process that shows it, if that is certain (it started the process that serves it).
    pub client: Option<Box<KnownClient>>,
    /// The terminal of its process was made by the agent: no person sits at it, and a client may
    /// show the session in another.
    pub is_terminal_hosted: bool,
    /// The agent removes what is left here on a clean exit, so a stale claim
    /// without an ended phase is an orphan.
    pub is_orphan_when_stale: bool,
    /// There is something to resume: false only if it is known to have no messages.
    pub is_resumable: bool,
    /// It runs without a person at a terminal; `None` if that is not known.
    pub is_headless: Option<bool>,
    /// A session without a real ID yet, or a session that never came to be: never shown as a
    /// session of its own.
    pub is_provisional: bool,
    /// A title that is known without reading the transcript.
    pub title: Option<String>,
    /// The agent's version, where the claim's file names it.
    pub agent_version: Option<String>,
    /// Where the session's own process listens (a socket path or URL, never a token).
    pub endpoint: Option<String>,
    /// When the session began, by the claim's file.
    pub started_at_ms: Option<i64>,
    /// When the session ended, if that was recorded.
    pub ended_at_ms: Option<i64>,
    /// Our record says that its process was found gone, without an announced end.
    pub has_died: bool,
    /// The phase at that time, as far as it was reported.
    pub phase_at_end: Option<Phase>,
    /// The cause of the end, in the word of our own records.
    pub end_cause: Option<String>,
    /// The least processor time that was used for it, in milliseconds.
    pub cpu_at_least_ms: Option<u64>,
    /// How long it was live at least, as hooks reported.
    pub live: Option<LiveTime>,
    /// The description, where the scan got it on the way: one read of a database describes
    /// every session in it.
    pub described: Option<Box<Description>>,
    /// How it is resumed, as the claim's file says. Counts only for an agent without an
    /// adapter, and is shown, never run: any program may have written it.
    pub resume: Option<Box<Invocation>>,
}

impl Sketch {
    /// It waits for its first prompt: there is no transcript, as its adapter saw.
    #[must_use]
    pub fn is_unprompted(&self) -> bool {
        self.lacks_transcript && self.transcript.is_none()
    }

    /// A sketch of which only the key is known.
    #[must_use]
    pub fn new(key: SessionKey) -> Self {
        Self {
            key,
            parent: None,
            work_dir: None,
            born_at_ms: None,
            last_record_at_ms: None,
            perhaps_until_ms: None,
            may_have_ended: false,
            transcript: None,
            lacks_transcript: false,
            facts: Vec::new(),
            heard_at_ms: None,
            unclaimed: Unclaimed::NoProcess,
            clues: Vec::new(),
            launched_at_ms: Vec::new(),
            launched_within_ms: None,
            switched: None,
            prompted_at_ms: None,
            visits: Vec::new(),
            lost_launches_ms: Vec::new(),
            terminal_title: None,
            matters_only_if_shown: false,
            client: None,
            is_terminal_hosted: false,
            is_orphan_when_stale: false,
            is_resumable: true,
            is_headless: None,
            is_provisional: false,
            title: None,
            agent_version: None,
            endpoint: None,
            started_at_ms: None,
            ended_at_ms: None,
            has_died: false,
            phase_at_end: None,
            end_cause: None,
            cpu_at_least_ms: None,
            live: None,
            described: None,
            resume: None,
        }
    }

    /// Adds the sketch of a second source. A known value wins over an unknown one; of two
    /// dates, the later.
    pub(crate) fn join(&mut self, other: Box<Self>) {
        self.parent = self.parent.take().or(other.parent);
        self.work_dir = self.work_dir.take().or(other.work_dir);
        self.born_at_ms = self.born_at_ms.or(other.born_at_ms);
        self.last_record_at_ms = self.last_record_at_ms.max(other.last_record_at_ms);
        self.perhaps_until_ms = self.perhaps_until_ms.max(other.perhaps_until_ms);
        self.may_have_ended |= other.may_have_ended;
        self.transcript = self.transcript.take().or(other.transcript);
        self.facts.extend(other.facts);
        self.heard_at_ms = self.heard_at_ms.max(other.heard_at_ms);
        self.lacks_transcript |= other.lacks_transcript;
        self.is_orphan_when_stale |= other.is_orphan_when_stale;
        self.is_resumable &= other.is_resumable;
        self.is_terminal_hosted |= other.is_terminal_hosted;
        self.is_headless = self.is_headless.or(other.is_headless);
        self.clues.extend(other.clues);
        self.launched_at_ms.extend(other.launched_at_ms);
        self.launched_within_ms = self.launched_within_ms.take().or(other.launched_within_ms);
        self.switched = self.switched.max(other.switched);
        self.prompted_at_ms = self.prompted_at_ms.max(other.prompted_at_ms);
        self.visits.extend(other.visits);
        self.lost_launches_ms.extend(other.lost_launches_ms);
        self.client = self.client.take().or(other.client);
        self.terminal_title = self.terminal_title.take().or(other.terminal_title);
        self.is_provisional &= other.is_provisional;
        self.matters_only_if_shown &= other.matters_only_if_shown;
        self.title = self.title.take().or(other.title);
        self.agent_version = self.agent_version.take().or(other.agent_version);
        self.endpoint = self.endpoint.take().or(other.endpoint);
        self.started_at_ms = self.started_at_ms.or(other.started_at_ms);
        self.ended_at_ms = self.ended_at_ms.max(other.ended_at_ms);
        self.has_died |= other.has_died;
        self.phase_at_end = self.phase_at_end.or(other.phase_at_end);
        self.end_cause = self.end_cause.take().or(other.end_cause);
        self.cpu_at_least_ms = self.cpu_at_least_ms.max(other.cpu_at_least_ms);
        self.live = self.live.or(other.live);
        self.described = self.described.take().or(other.described);
        self.resume = self.resume.take().or(other.resume);
        if self.unclaimed == Unclaimed::NoProcess {
            self.unclaimed = other.unclaimed;
        }
    }
}

/// The process that shows a session of another process, known for certain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownClient {
    /// The process.
    pub process: Process,
    /// How that is known.
    pub evidence: Evidence,
}
