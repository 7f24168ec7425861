//! Sessions: one per agent, home and id, with the best that is known of each.

use std::collections::BTreeMap;
use std::path::PathBuf;

use whosup_process::{Pid, PidScope, Process, RunState, StartStamp};
use whosup_sidecar::{AgentId, SessionId};

use crate::adapter::{Adapter, AgentProcess, Description, Home, Invocation, Sketch};

use crate::adapter::claim::{Evidence, EvidenceKind, Serving, SessionKey};
use crate::adapter::phase::{BACKGROUND, Doing, FactSource, Phase, WaitingFor, doing, outlived};
use crate::judging::verdict::{ExitedBecause, Liveness, Verdict};
use crate::machine::problem::Problem;
use crate::sessions::resources::Resources;
use crate::sources::panes::{self, Pane};
use crate::sources::usage::Usage;

/// How long an orphan stays in the default view, in milliseconds.
pub(crate) const ORPHAN_SHOWN_MS: i64 = 24 * 60 * 60 * 1_000;

/// One scan's result: everything as of one instant.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// When, in milliseconds since 1970.
    pub taken_at_ms: i64,
    /// The PID scope of this machine.
    pub scope: PidScope,
    /// The sessions, by key.
    pub sessions: Vec<Session>,
    /// Agent processes without a known session.
    pub unattributed: Vec<Unattributed>,
    /// What could not be read.
    pub problems: Vec<Problem>,
    /// Where each agent was looked for.
    pub looked_at: Vec<LookedAt>,
    /// The processes that were inspected: agents, possible agents, and pane servers.
    pub processes: Vec<SeenProcess>,
}

/// A home that was looked at.
#[derive(Debug, Clone)]
pub struct LookedAt {
    /// Its adapter; `None` for sessions of an agent without an adapter.
    pub adapter: Option<&'static dyn Adapter>,
    /// The home.
    pub home: Home,
}

/// A process that was inspected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenProcess {
    /// Its PID.
    pub pid: Pid,
    /// When it began.
    pub stamp: StartStamp,
    /// What it runs: its executable, or the script of a runtime.
    pub program: Option<PathBuf>,
}

/// One conversation of one agent.
#[derive(Debug, Clone)]
pub struct Session {
    /// Its name.
    pub key: SessionKey,
    /// The adapter of its agent, if there is one.
    pub adapter: Option<&'static dyn Adapter>,
    /// It is in the home that the agent uses by default.
    pub is_default_home: bool,
    /// The verdict on its owner.
    pub verdict: Verdict,
    /// The process that runs it, or ran it and is still visible.
    pub owner: Option<Box<Process>>,
    /// The owner runs many sessions.
    pub is_owner_shared: bool,
    /// The process with the terminal, if that is another process.
    pub client: Option<Box<Process>>,
    /// Several processes could be its client.
    pub is_client_ambiguous: bool,
    /// Other live processes that claim it as well, by PID.
    pub other_live: Vec<OtherLive>,
    /// The session that its process moved to.
    pub superseded_by: Option<SessionId>,
    /// What an adapter reported of it.
    pub sketch: Box<Sketch>,
    /// What its own files say; empty until it is described.
    pub description: Description,
    /// What it used; `None` until it is counted.
    pub usage: Option<Usage>,
    /// What the processes use; `None` if that was not measured.
    pub resources: Option<Resources>,
    /// The pane that its client, else its owner, lives in.
    pub pane: Option<Pane>,
    /// A person has hidden it from default views.
    pub is_dismissed: bool,
    /// All evidence about it, best first.
    pub evidence: Vec<JudgedEvidence>,
}

/// A live process of a session beside its owner.
#[derive(Debug, Clone)]
pub struct OtherLive {
    /// The process.
    pub process: Box<Process>,
    /// Its pane.
    pub pane: Option<Pane>,
}

/// A piece of evidence with its verdict.
#[derive(Debug, Clone)]
pub struct JudgedEvidence {
    /// What it rests on.
    pub evidence: Evidence,
    /// The verdict.
    pub verdict: Verdict,
    /// The date of the evidence, in milliseconds since 1970.
    pub at_ms: Option<i64>,
    /// The PID it names.
    pub pid: Option<Pid>,
    /// The host it names.
    pub host: Option<String>,
    /// Whether that process serves other sessions too.
    pub serving: Serving,
}

impl JudgedEvidence {
    /// Evidence without a date about a process of this host, which serves one session.
    pub(crate) fn new(evidence: Evidence, verdict: Verdict, pid: Option<Pid>) -> Self {
        Self {
            evidence,
            verdict,
            at_ms: None,
            pid,
            host: None,
            serving: Serving::One,
        }
    }
}

/// An agent process without a known session.
#[derive(Debug, Clone)]
pub struct Unattributed {
    /// The process.
    pub process: AgentProcess,
    /// Its pane.
    pub pane: Option<Pane>,
    /// The sessions that it may be serving.
    pub candidates: Vec<SessionId>,
    /// The titles of candidates that have a title, once their files were read.
    pub titles: BTreeMap<SessionId, String>,
    /// Why it has no session: `two sessions fit`.
    pub reason: String,
}

impl Session {
    /// The PIDs of the other live processes.
    pub fn other_live_pids(&self) -> impl Iterator<Item = Pid> {
        self.other_live.iter().map(|other| other.process.pid)
    }

    /// The verdict without its reason.
    #[must_use]
    pub fn liveness(&self) -> Liveness {
        self.verdict.liveness()
    }

    /// The agent.
    #[must_use]
    pub fn agent(&self) -> &AgentId {
        &self.key.agent
    }

    /// The phase of the conversation, by the newest dated fact. After the owner's exit only
    /// "ended" counts.
    #[must_use]
    pub fn doing(&self) -> Doing {
        let described = self.description.fact();
        if self.liveness() != Liveness::Live {
            // Records that the agent wrote after the announced end do not reopen it.
            let reported = &self.sketch.facts;
            return if reported.is_empty() {
                outlived(described.iter())
            } else {
                outlived(reported.iter())
            };
        }
        let facts = self.sketch.facts.iter().chain(&described);
        doing(facts, self.owner.as_deref())
    }

    /// The phase; see [`Session::doing`].
    #[must_use]
    pub fn phase(&self) -> Option<Phase> {
        self.doing().phase
    }

    /// What it waits for, while it waits.
    #[must_use]
    pub fn waiting_for(&self) -> Option<WaitingFor> {
        self.doing().waiting_for
    }

    /// Its turn has ended, and its background work continues.
    #[must_use]
    pub fn is_in_background(&self) -> bool {
        let doing = self.doing();
        doing.phase == Some(Phase::Working) && doing.word.as_deref() == Some(BACKGROUND)
    }

    /// It is live, and a process that it needs was stopped (Ctrl-Z, SIGSTOP, a debugger): it
    /// does nothing until that process is continued.
    #[must_use]
    pub fn is_suspended(&self) -> bool {
        let mut processes = self.owner.iter().chain(&self.client);
        self.liveness() == Liveness::Live
            && processes.any(|process| process.run_state == RunState::Stopped)
    }

    /// A process has moved to another session and still holds this session's lock or file:
    /// another process on this session would conflict with it.
    #[must_use]
    pub fn held_by(&self) -> Option<Pid> {
        let left = self.evidence.iter().filter(|judged| {
            let kind = judged.evidence.kind;
            matches!(kind, EvidenceKind::Lock | EvidenceKind::OpenFile)
                && judged.verdict == Verdict::Exited(ExitedBecause::Superseded)
        });
        left.filter_map(|judged| judged.pid).next()
    }

    /// Its owner has exited, it left behind what a clean exit removes, and no end was
    /// recorded.
    #[must_use]
    pub fn is_orphan(&self) -> bool {
        let is_crash = matches!(
            self.verdict,
            Verdict::Exited(
                ExitedBecause::NoSuchProcess
                    | ExitedBecause::RecordedGone
                    | ExitedBecause::Zombie
                    | ExitedBecause::PidIsAThread
                    | ExitedBecause::PidReused
                    | ExitedBecause::Rebooted
                    | ExitedBecause::NamespaceGone
                    | ExitedBecause::LockNotHeld
            )
        );
        let is_open = self.phase() != Some(Phase::Ended);
        let is_without_end = (self.sketch.is_orphan_when_stale && is_open) || self.sketch.has_died;
        is_crash && is_without_end && self.sketch.parent.is_none() && self.held_by().is_none()
    }

    /// The phase when its process exited without an end; `None` unless it is an orphan whose
    /// phase is known.
    #[must_use]
    pub fn phase_at_exit(&self) -> Option<Phase> {
        if !self.is_orphan() {
            return None;
        }
        let described = self.description.fact();
        let facts = self.sketch.facts.iter().chain(&described);
        let before_end = facts.filter(|fact| fact.phase != Some(Phase::Ended));
        let at_end = self.sketch.phase_at_end;
        at_end.or_else(|| doing(before_end, None).phase)
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

    /// The title that was known without reading, else the one in its files.
    #[must_use]
    pub fn title(&self) -> Option<&str> {
        let sketched = self.sketch.title.as_deref();
        let described = self.description.title.as_deref();
        if self.description.is_title_a_prompt {
            sketched.or(described)
        } else {
            described.or(sketched)
        }
    }

    /// The agent's version in its files, else the one that was known without reading.
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
        let facts = self.sketch.facts.iter();
        // A title is as new as the look.
        let dated = facts.filter(|fact| fact.source != FactSource::Title);
        let reported = dated.filter_map(|fact| fact.at_ms);
        [
            self.description.last_activity_at_ms,
            self.sketch.last_record_at_ms,
            self.sketch.heard_at_ms,
        ]
        .into_iter()
        .flatten()
        .chain(reported)
        .max()
    }

    /// When anything was last reported of it, in milliseconds since 1970.
    #[must_use]
    pub fn last_heard_of_ms(&self) -> Option<i64> {
        let said = self.evidence.iter().filter_map(|judged| judged.at_ms);
        said.chain(self.last_activity_at_ms()).max()
    }

    /// Whether a person may hide it: no process that is seen serves it, or may.
    #[must_use]
    pub const fn may_be_dismissed(&self) -> bool {
        match self.verdict {
            Verdict::Exited(_) => true,
            Verdict::Unknown(because) => because.can_last(),
            Verdict::Live(..) => false,
        }
    }

    /// The command that resumes it: by its agent's adapter or, without an adapter, by the file
    /// that claims it. `None` for a sub-agent, and for a session without messages. The caller
    /// has to check whether it may be resumed: a second process on a live session corrupts it.
    #[must_use]
    pub fn invocation(&self) -> Option<Invocation> {
        if self.sketch.parent.is_some() || !self.sketch.is_resumable {
            return None;
        }
        match self.adapter {
            Some(adapter) => adapter.resume(&self.sketch, self.is_default_home),
            None => self.sketch.resume.as_deref().cloned(),
        }
    }

    /// The pane to go to: its own pane, else that of another live process.
    #[must_use]
    pub fn pane_to_show(&self) -> Option<&Pane> {
        let others = self.other_live.iter().map(|other| &other.pane);
        let mut panes = std::iter::once(&self.pane).chain(others).flatten();
        panes.find(|pane| pane.pane.is_some())
    }

    /// The command that shows it while it is live, from a terminal outside of any multiplexer:
    /// the pane host's command, else the agent's.
    #[must_use]
    pub fn attach(&self) -> Option<Invocation> {
        if self.liveness() != Liveness::Live {
            return None;
        }
        let pane = self.pane_to_show();
        pane.and_then(|pane| panes::host_of(pane)?.attach(pane))
            .or_else(|| self.agents_own_attach())
    }

    /// The agent's own command that shows a session which no terminal shows.
    #[must_use]
    pub fn agents_own_attach(&self) -> Option<Invocation> {
        let adapter = self.adapter.filter(|_| self.is_detached())?;
        adapter.attach(&self.sketch, self.is_default_home)
    }

    /// Whether an adapter put [`Session::invocation`] together. Otherwise the command stands
    /// in a file that any program may have written, and must not be run before a person has
    /// read it.
    #[must_use]
    pub fn is_invocation_ours(&self) -> bool {
        self.adapter.is_some()
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
