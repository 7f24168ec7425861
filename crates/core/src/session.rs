//! Sessions: one per agent, home and id, with the best that is known of each.

use whosup_process::{Pid, PidScope, Process};
use whosup_sidecar::{AgentId, SessionId};

use crate::agents::{self, AgentProcess, Description, Invocation, Sketch};
use crate::claim::{Evidence, Serving, SessionKey};
use crate::panes::Pane;
use crate::phase::{Phase, WaitingFor};
use crate::problem::Problem;
use crate::verdict::{ExitedBecause, Liveness, Verdict};

/// One scan's result: everything as of one instant.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// When, in milliseconds since 1970.
    pub taken_at_ms: i64,
    /// Where PIDs mean what they mean here.
    pub scope: PidScope,
    /// The sessions, by key.
    pub sessions: Vec<Session>,
    /// Agent processes that no session is known of.
    pub unattributed: Vec<Unattributed>,
    /// What could not be read.
    pub problems: Vec<Problem>,
    /// Where each agent was looked for.
    pub looked_at: Vec<crate::agents::Home>,
}

/// One conversation of one agent.
#[derive(Debug, Clone)]
pub struct Session {
    /// Its name.
    pub key: SessionKey,
    /// It is in the home that the agent uses by default.
    pub is_default_home: bool,
    /// What became of its owner.
    pub verdict: Verdict,
    /// The process that runs it, or ran it and is still there to be seen.
    pub owner: Option<Box<Process>>,
    /// The owner runs many sessions.
    pub is_owner_shared: bool,
    /// The process with the terminal, when that is another one.
    pub client: Option<Box<Process>>,
    /// Several processes could be its client.
    pub is_client_ambiguous: bool,
    /// Other live processes that claim it as well.
    pub other_live_pids: Vec<Pid>,
    /// The session that its process went on to.
    pub superseded_by: Option<SessionId>,
    /// What an adapter told of it.
    pub sketch: Box<Sketch>,
    /// What its own files tell; empty until somebody asks.
    pub description: Description,
    /// The pane that its client, else its owner, lives in.
    pub pane: Option<Pane>,
    /// A person wants it out of default views.
    pub is_dismissed: bool,
    /// Everything that was said of it, best first.
    pub evidence: Vec<JudgedEvidence>,
}

/// A piece of evidence and what came of it.
#[derive(Debug, Clone)]
pub struct JudgedEvidence {
    /// What it rests on.
    pub evidence: Evidence,
    /// What it was judged.
    pub verdict: Verdict,
    /// When it was said, in milliseconds since 1970.
    pub at_ms: Option<i64>,
    /// The PID it names.
    pub pid: Option<Pid>,
    /// Whether that process serves others too.
    pub serving: Serving,
}

/// An agent's process that no session is known of.
#[derive(Debug, Clone)]
pub struct Unattributed {
    /// The process.
    pub process: AgentProcess,
    /// Its pane.
    pub pane: Option<Pane>,
    /// The sessions that it may be serving.
    pub candidates: Vec<SessionId>,
    /// Why it has none: `two sessions fit`.
    pub reason: String,
}

impl Session {
    /// The answer without its reason.
    #[must_use]
    pub fn liveness(&self) -> Liveness {
        self.verdict.liveness()
    }

    /// The agent.
    #[must_use]
    pub fn agent(&self) -> &AgentId {
        &self.key.agent
    }

    /// What the conversation is doing, as far as that is known and still means
    /// something. An exited owner does nothing; only "ended" outlives it. A
    /// live session whose files are silent is idle.
    #[must_use]
    pub fn phase(&self) -> Option<Phase> {
        let published = self.sketch.published.as_ref().and_then(|told| told.phase);
        let told = match (&self.sketch.published, published) {
            (Some(_), Some(Phase::Waiting)) if self.is_answered() => self.description.phase,
            (Some(_), phase) => phase,
            (None, _) => self.description.phase,
        };
        match self.liveness() {
            // What was said before this process began does not end it.
            Liveness::Live if told == Some(Phase::Ended) => Some(Phase::Idle),
            Liveness::Live => told,
            Liveness::Exited | Liveness::Unknown => told.filter(|phase| *phase == Phase::Ended),
        }
    }

    /// Its own files tell of an answer to what was asked. Hooks may tell of that only
    /// once the tool has run that was asked for.
    fn is_answered(&self) -> bool {
        let published = self.sketch.published.as_ref().and_then(|told| told.at_ms);
        let told = &self.description;
        agents::adapter(&self.key.agent).is_some_and(|adapter| adapter.records_questions())
            && matches!(told.phase, Some(Phase::Working | Phase::Idle))
            && told.last_activity_at_ms > published
    }

    /// What it waits for, while it waits.
    #[must_use]
    pub fn waiting_for(&self) -> Option<WaitingFor> {
        if self.phase() != Some(Phase::Waiting) {
            return None;
        }
        let published = self.sketch.published.as_ref();
        published
            .and_then(|told| told.waiting_for)
            .or(self.description.waiting_for)
    }

    /// Its owner has exited, it left behind what a clean exit removes, and
    /// nobody said that it ended.
    #[must_use]
    pub fn is_orphan(&self) -> bool {
        let is_crash = matches!(
            self.verdict,
            Verdict::Exited(
                ExitedBecause::NoSuchProcess
                    | ExitedBecause::Zombie
                    | ExitedBecause::PidIsAThread
                    | ExitedBecause::PidReused
                    | ExitedBecause::Rebooted
                    | ExitedBecause::NamespaceGone
                    | ExitedBecause::LockNotHeld
            )
        );
        is_crash
            && self.sketch.is_orphan_when_stale
            && self.sketch.parent.is_none()
            && self.phase() != Some(Phase::Ended)
    }

    /// It is live and no terminal shows it.
    #[must_use]
    pub fn is_detached(&self) -> bool {
        let has_own_terminal = !self.is_owner_shared
            && !self.sketch.is_terminal_hosted
            && self.owner.as_ref().is_some_and(|owner| owner.tty.is_some());
        self.liveness() == Liveness::Live
            && self.sketch.parent.is_none()
            && self.owner.is_some()
            && self.client.is_none()
            && !self.is_client_ambiguous
            && !has_own_terminal
            && !self.is_headless()
    }

    /// It runs without a person at a terminal.
    #[must_use]
    pub fn is_headless(&self) -> bool {
        if self.client.is_some() {
            return false;
        }
        self.sketch
            .is_headless
            .or(self.description.is_headless)
            .unwrap_or(false)
    }

    /// Its title: what was told without reading, else what its files say.
    #[must_use]
    pub fn title(&self) -> Option<&str> {
        let told = self.sketch.title.as_deref();
        let described = self.description.title.as_deref();
        if self.description.is_title_a_prompt {
            told.or(described)
        } else {
            described.or(told)
        }
    }

    /// The agent's version: what its files say, else what was told without reading.
    #[must_use]
    pub fn agent_version(&self) -> Option<&str> {
        let described = self.description.agent_version.as_deref();
        described.or(self.sketch.agent_version.as_deref())
    }

    /// The directory it works in, newest knowledge first.
    #[must_use]
    pub fn work_dir(&self) -> Option<&std::path::Path> {
        self.description
            .work_dir
            .as_deref()
            .or(self.sketch.work_dir.as_deref())
    }

    /// When something last happened in it, in milliseconds since 1970.
    #[must_use]
    pub fn last_activity_at_ms(&self) -> Option<i64> {
        let published = self.sketch.published.as_ref().and_then(|told| told.at_ms);
        [
            self.description.last_activity_at_ms,
            self.sketch.last_record_at_ms,
            published,
        ]
        .into_iter()
        .flatten()
        .max()
    }

    /// When anything was last said of it, in milliseconds since 1970.
    #[must_use]
    pub fn last_heard_of_ms(&self) -> Option<i64> {
        let said = self.evidence.iter().filter_map(|judged| judged.at_ms);
        said.chain(self.last_activity_at_ms()).max()
    }

    /// How it is continued, by its agent's adapter, or by what the file that claims
    /// it says where the agent has none. `None` for a sub-agent, and for one in
    /// which nothing was said. Whether it may be is for the caller to ask: a second
    /// process on a live session corrupts it.
    #[must_use]
    pub fn invocation(&self) -> Option<Invocation> {
        if self.sketch.parent.is_some() || !self.sketch.is_resumable {
            return None;
        }
        match agents::adapter(&self.key.agent) {
            Some(adapter) => adapter.resume(&self.sketch, self.is_default_home),
            None => self.sketch.resume.as_deref().cloned(),
        }
    }

    /// When it began, in milliseconds since 1970.
    #[must_use]
    pub fn started_at_ms(&self) -> Option<i64> {
        self.description
            .started_at_ms
            .or(self.sketch.born_at_ms)
            .or(self.sketch.started_at_ms)
    }

    /// The process that a person would look at: the client, else the owner.
    #[must_use]
    pub fn terminal_process(&self) -> Option<&Process> {
        match &self.client {
            Some(client) => Some(client),
            None if self.is_owner_shared => None,
            None => self.owner.as_deref(),
        }
    }
}
