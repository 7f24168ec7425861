//! One home's scan while it grows.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use whosup_process::Pid;
use whosup_sidecar::{SessionId, Sidecar};

use super::AGENT;
use crate::adapter::claim::{Claim, Exclusivity, SessionKey};
use crate::adapter::{AgentScan, Home, Look, Sketch};
use crate::machine::problem::Found;
use crate::sources::agents::kit::scan::Scan;
use crate::sources::agents::kit::sidecar_facts;

/// Everything read from one home so far.
pub(super) struct Reading<'a> {
    pub(super) scan: Scan<'a>,
    sessions: BTreeMap<SessionId, SessionFacts>,
    /// Sessions in a shared directory that are another home's.
    pub(super) elsewhere: BTreeSet<SessionId>,
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
            scan: Scan::new(AGENT, look, home),
            sessions: BTreeMap::new(),
            elsewhere: BTreeSet::new(),
        }
    }

    /// Returns whether a session has a sketch.
    pub(super) fn is_known(&self, session: &SessionId) -> bool {
        let facts = self.sessions.get(session);
        facts.is_some_and(|facts| facts.sketch.is_some())
    }

    /// The sketch of a session, new or known.
    pub(super) fn sketch(&mut self, session: &SessionId) -> &mut Sketch {
        let key = self.scan.key(session);
        self.facts_of(session).sketch(key)
    }

    fn facts_of(&mut self, session: &SessionId) -> &mut SessionFacts {
        self.sessions.entry(session.clone()).or_default()
    }

    /// A file that a clean exit would have removed names `pid` for `session`.
    pub(super) fn note_removed_on_exit(&mut self, session: &SessionId, pid: Pid, at_ms: i64) {
        let named = NamedOwner {
            pid: Some(pid),
            at_ms,
        };
        keep_newest(&mut self.facts_of(session).removed_on_exit, named);
    }

    /// A sidecar names a process, or none any more, for its session. Returns the sketch, and
    /// whether this sidecar is the first.
    pub(super) fn note_left_on_exit(&mut self, sidecar: &Sidecar) -> (&mut Sketch, bool) {
        let key = self.scan.key(&sidecar.session_id);
        let facts = self.facts_of(&sidecar.session_id);
        let is_first = facts.left_on_exit.is_none();
        let named = NamedOwner {
            pid: sidecar_facts::pid(sidecar),
            at_ms: sidecar.started_at_ms,
        };
        keep_newest(&mut facts.left_on_exit, named);
        (facts.sketch(key), is_first)
    }

    /// A process that makes no claims may have resumed a session: a stale claim to the
    /// session does not mean that no process serves it.
    pub(super) fn share(&mut self, session: &SessionId) {
        let claims = self.scan.claims.iter_mut();
        for claim in claims.filter(|claim| claim.key.session == *session) {
            claim.exclusivity = Exclusivity::Shared;
        }
    }

    /// The directories of a session that running processes claim.
    pub(super) fn open_work_dirs(&self, session: &SessionId) -> impl Iterator<Item = &Path> {
        let ours = self.scan.look.machine.table().scope();
        let is_open = move |claim: &&Claim| {
            let mut processes = self.scan.processes();
            claim.key.session == *session
                && processes.any(|process| claim.may_be_about(&process.process, ours))
        };
        let claims = self.scan.claims.iter().map(AsRef::as_ref).filter(is_open);
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
        let sketches = sketches.filter_map(|facts| facts.sketch);
        self.scan.finish_with(sketches)
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
