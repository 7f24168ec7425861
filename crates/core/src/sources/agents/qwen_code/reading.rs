//! One home's scan while it grows.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use whosup_process::{Pid, Process};
use whosup_sidecar::SessionId;
use whosup_sidecar::file::FileFacts;

use super::AGENT;
use crate::adapter::claim::{Claim, EvidenceKind, Exclusivity, Placement, SessionKey, Trust};
use crate::adapter::{AgentScan, Home, Look, Sketch};
use crate::machine::problem::{Found, Problem};
use crate::sources::trust::trust_of;

/// Everything read from one home so far.
pub(super) struct Reading<'a> {
    look: &'a Look<'a>,
    home: &'a Home,
    claims: Vec<Box<Claim>>,
    sessions: BTreeMap<SessionId, SessionFacts>,
    /// Sessions in a shared directory that are another home's.
    elsewhere: BTreeSet<SessionId>,
    problems: Vec<Problem>,
}

/// Facts about one session, from all files read so far.
#[derive(Default)]
struct SessionFacts {
    sketch: Option<Box<Sketch>>,
    /// By the newest file that a clean exit would have removed.
    removed_on_exit: Option<NamedOwner>,
    /// By the newest sidecar. A clean exit leaves it.
    left_on_exit: Option<NamedOwner>,
}

/// Who is named by a file, and since when.
#[derive(Debug, Clone, Copy)]
struct NamedOwner {
    pid: Option<Pid>,
    at_ms: i64,
}

impl<'a> Reading<'a> {
    pub(super) const fn new(look: &'a Look<'a>, home: &'a Home) -> Self {
        Self {
            look,
            home,
            claims: Vec::new(),
            sessions: BTreeMap::new(),
            elsewhere: BTreeSet::new(),
            problems: Vec::new(),
        }
    }

    pub(super) const fn look(&self) -> &'a Look<'a> {
        self.look
    }

    pub(super) const fn home(&self) -> &'a Home {
        self.home
    }

    pub(super) fn key(&self, session: &SessionId) -> SessionKey {
        SessionKey {
            agent: AGENT,
            session: session.clone(),
            home: self.home.root.clone(),
        }
    }

    pub(super) fn trust(&self, facts: &FileFacts) -> Trust {
        trust_of(facts, self.home, self.look.machine)
    }

    pub(super) fn placement(&self, path: &Path, facts: &FileFacts) -> Placement {
        let mounts = self.look.machine.mounts();
        mounts.placement_of_file(path, facts)
    }

    pub(super) fn claim(&mut self, claim: Claim) {
        self.claims.push(Box::new(claim));
    }

    pub(super) fn problem(&mut self, path: &Path, message: impl fmt::Display) {
        self.problems.push(Problem::at(&AGENT, path, message));
    }

    /// Returns whether a session has a sketch.
    pub(super) fn is_known(&self, session: &SessionId) -> bool {
        let facts = self.sessions.get(session);
        facts.is_some_and(|facts| facts.sketch.is_some())
    }

    /// The sketch of a session, new or known.
    pub(super) fn sketch(&mut self, session: &SessionId) -> &mut Sketch {
        let key = self.key(session);
        self.facts_of(session).sketch(key)
    }

    fn facts_of(&mut self, session: &SessionId) -> &mut SessionFacts {
        self.sessions.entry(session.clone()).or_default()
    }

    /// A session in a shared directory is another home's.
    pub(super) fn note_elsewhere(&mut self, session: &SessionId) {
        self.elsewhere.insert(session.clone());
    }

    /// Returns whether a session is known to belong only to another home.
    pub(super) fn is_elsewhere(&self, session: &SessionId) -> bool {
        self.elsewhere.contains(session) && !self.is_known(session)
    }

    /// A file that a clean exit would have removed names `pid` for `session`.
    pub(super) fn note_removed_on_exit(&mut self, session: &SessionId, pid: Pid, at_ms: i64) {
        let named = NamedOwner {
            pid: Some(pid),
            at_ms,
        };
        keep_newest(&mut self.facts_of(session).removed_on_exit, named);
    }

    /// A sidecar names `pid`, or no process any more, for `session`. Returns the sketch, and
    /// whether this sidecar is the first.
    pub(super) fn note_left_on_exit(
        &mut self,
        session: &SessionId,
        pid: Option<Pid>,
        at_ms: i64,
    ) -> (&mut Sketch, bool) {
        let key = self.key(session);
        let facts = self.facts_of(session);
        let is_first = facts.left_on_exit.is_none();
        keep_newest(&mut facts.left_on_exit, NamedOwner { pid, at_ms });
        (facts.sketch(key), is_first)
    }

    /// A process that makes no claims may have resumed a session: a stale claim to the
    /// session does not mean that no process serves it.
    pub(super) fn share(&mut self, session: &SessionId) {
        for claim in &mut self.claims {
            if claim.key.session == *session {
                claim.exclusivity = Exclusivity::Shared;
            }
        }
    }

    /// Returns whether a claim so far may be about this process.
    pub(super) fn may_name(&self, process: &Process) -> bool {
        self.claims
            .iter()
            .any(|claim| claim.may_be_about(process, self.look.machine.table().scope()))
    }

    /// Returns whether a claim of this kind so far may be about this process.
    pub(super) fn is_named_by(&self, kind: EvidenceKind, process: &Process) -> bool {
        let ours = self.look.machine.table().scope();
        self.claims
            .iter()
            .any(|claim| claim.evidence.kind == kind && claim.may_be_about(process, ours))
    }

    /// Returns whether a claim from this file to this session may be about this process.
    pub(super) fn is_named_in(&self, path: &Path, session: &SessionId, process: &Process) -> bool {
        let ours = self.look.machine.table().scope();
        self.claims.iter().any(|claim| {
            claim.evidence.path.as_deref() == Some(path)
                && claim.key.session == *session
                && claim.may_be_about(process, ours)
        })
    }

    /// The directories of a session that running processes claim.
    pub(super) fn open_work_dirs(&self, session: &SessionId) -> impl Iterator<Item = &Path> {
        let ours = self.look.machine.table().scope();
        let of_it = move |claim: &&Claim| {
            let mut processes = self.look.processes_of(self.home);
            claim.key.session == *session
                && processes.any(|process| claim.may_be_about(&process.process, ours))
        };
        let claims = self.claims.iter().map(AsRef::as_ref).filter(of_it);
        claims.filter_map(|claim| claim.work_dir.as_deref())
    }

    /// Ends the scan.
    ///
    /// A left-over registry record or active writer lock makes an orphan of a stale session,
    /// since a clean exit removes it. If another process resumed the session later, the end
    /// of that process counts instead: a clean exit leaves a sidecar behind too.
    pub(super) fn finish(mut self) -> Found<AgentScan> {
        for facts in self.sessions.values_mut() {
            let (Some(named), left) = (facts.removed_on_exit, facts.left_on_exit) else {
                continue;
            };
            let is_taken_up_later =
                left.is_some_and(|left| left.pid != named.pid && left.at_ms > named.at_ms);
            if let Some(sketch) = &mut facts.sketch {
                sketch.is_orphan_when_stale = !is_taken_up_later;
            }
        }
        let sketches = self.sessions.into_values();
        Found {
            found: AgentScan::of(self.claims, sketches.filter_map(|facts| facts.sketch)),
            problems: self.problems,
        }
    }
}

impl SessionFacts {
    fn sketch(&mut self, key: SessionKey) -> &mut Sketch {
        let sketch = &mut self.sketch;
        sketch.get_or_insert_with(|| Box::new(Sketch::new(key)))
    }
}

fn keep_newest(kept: &mut Option<NamedOwner>, named: NamedOwner) {
    if kept.is_none_or(|kept| named.at_ms > kept.at_ms) {
        *kept = Some(named);
    }
}
