//! A session in the making: its claims, ranked.

use std::collections::BTreeMap;

use whosup_process::{Pid, Process};
use whosup_sidecar::SessionId;

use super::{SUPERSEDED, is_live};
use crate::adapter::claim::{
    Claim, Evidence, EvidenceKind, Exclusivity, Serving, SessionKey, Subject, TakenUp,
};
use crate::adapter::{Adapter, Description, Sketch};
use crate::judging::attribution::{ProcessKey, process_key};
use crate::judging::observe::JudgedClaim;
use crate::judging::verdict::{
    Confidence, ExitedBecause, LiveBecause, Liveness, UnknownBecause, Verdict,
};
use crate::sessions::session::{JudgedEvidence, OtherLive, Session};

/// A session in the making.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) sketch: Box<Sketch>,
    /// Best first.
    claims: Vec<JudgedClaim>,
    /// A verdict without a claim.
    found_out: Option<FoundOut>,
    pub(crate) client: Option<Box<Process>>,
    pub(crate) is_client_ambiguous: bool,
    superseded_by: Option<SessionId>,
    /// Further processes that serve it without a claim.
    other_owners: Vec<Process>,
    /// Evidence beyond claims (clues, parent).
    extra: Vec<JudgedEvidence>,
}

#[derive(Debug)]
struct FoundOut {
    verdict: Verdict,
    owner: Option<Box<Process>>,
    /// Further processes that serve it.
    others: Vec<Process>,
}

/// Groups claims and sketches by session.
pub(crate) fn group(
    sketches: Vec<Box<Sketch>>,
    claims: Vec<JudgedClaim>,
) -> BTreeMap<SessionKey, Draft> {
    // Sorted, so that they can be joined one by one: of a session, the first sketch stays first.
    let mut sketches = sketches;
    let mut claims = claims;
    sketches.sort_by(|one, other| one.key.cmp(&other.key));
    claims.sort_by(|one, other| one.claim.key.cmp(&other.claim.key));
    let mut claims = claims.into_iter().peekable();
    let mut drafts: Vec<(SessionKey, Draft)> = Vec::with_capacity(sketches.len());
    for sketch in sketches {
        while let Some(claim) = claims.next_if(|claim| claim.claim.key < sketch.key) {
            add_claim(&mut drafts, claim);
        }
        match drafts.last_mut() {
            Some((key, draft)) if *key == sketch.key => draft.sketch.join(sketch),
            _ => drafts.push((sketch.key.clone(), Draft::new(sketch))),
        }
    }
    for claim in claims {
        add_claim(&mut drafts, claim);
    }
    for (_, draft) in &mut drafts {
        draft.rank();
    }
    drafts.into_iter().collect()
}

/// Adds the claim that comes next in the order of keys.
fn add_claim(drafts: &mut Vec<(SessionKey, Draft)>, claim: JudgedClaim) {
    match drafts.last_mut() {
        Some((key, draft)) if *key == claim.claim.key => draft.claims.push(claim),
        _ => {
            let key = claim.claim.key.clone();
            let mut draft = Draft::new(Box::new(Sketch::new(key.clone())));
            draft.claims.push(claim);
            drafts.push((key, draft));
        }
    }
}

impl Draft {
    fn new(sketch: Box<Sketch>) -> Self {
        Self {
            sketch,
            claims: Vec::new(),
            found_out: None,
            client: None,
            is_client_ambiguous: false,
            superseded_by: None,
            other_owners: Vec::new(),
            extra: Vec::new(),
        }
    }

    /// Ranks the claims: Live, Unknown, Exited; then by confidence; then the newest first; then
    /// by their text, so that the order of the input does not matter.
    fn rank(&mut self) {
        if self.claims.len() < 2 {
            return;
        }
        self.claims.sort_by(|a, b| {
            let rank = |claim: &JudgedClaim| {
                (
                    claim.verdict.liveness(),
                    std::cmp::Reverse(claim.verdict.confidence()),
                    std::cmp::Reverse(claim.claim.dated_at_ms),
                )
            };
            let text = |claim: &JudgedClaim| {
                let evidence = &claim.claim.evidence;
                (evidence.kind, evidence.path.clone(), evidence.says.clone())
            };
            rank(a).cmp(&rank(b)).then_with(|| text(a).cmp(&text(b)))
        });
    }

    pub(crate) fn claims(&self) -> impl Iterator<Item = &JudgedClaim> {
        self.claims.iter()
    }

    pub(crate) fn live_claims(&self) -> impl Iterator<Item = &JudgedClaim> {
        self.claims.iter().filter(|claim| is_live(claim.verdict))
    }

    pub(crate) fn verdict(&self) -> Verdict {
        if let Some(found_out) = &self.found_out {
            return found_out.verdict;
        }
        self.claims
            .first()
            .map_or(Verdict::Unknown(UnknownBecause::IncompleteView), |claim| {
                claim.verdict
            })
    }

    /// Every claim is that no process serves it, and no claim names a process that is there.
    pub(crate) fn is_claimed_unserved(&self) -> bool {
        let is_dead = |claim: &JudgedClaim| {
            claim.verdict.liveness() == Liveness::Exited && claim.process.is_none()
        };
        self.claims.iter().all(is_dead)
    }

    /// The sketch and the claims.
    pub(crate) fn into_parts(self) -> (Box<Sketch>, Vec<JudgedClaim>) {
        (self.sketch, self.claims)
    }

    /// The process that serves it, if it is live.
    pub(crate) fn served_by(&self) -> Option<Pid> {
        let owner = match &self.found_out {
            Some(found_out) => found_out.owner.as_deref(),
            None => self.live_claims().next()?.process.as_deref(),
        };
        Some(owner?.pid)
    }

    /// It is live, by a claim.
    pub(crate) fn is_live(&self) -> bool {
        self.has_claims() && is_live(self.verdict())
    }

    /// The process that serves it makes a claim that no other process can make meanwhile.
    pub(crate) fn is_exclusive(&self) -> bool {
        self.live_claims().all(|claim| {
            claim.claim.exclusivity == Exclusivity::Exclusive
                && claim.claim.serving != Serving::Many
        })
    }

    /// A claim says that it has ended or was left since then: by this process or, with `None`, in
    /// an unknown process.
    pub(crate) fn was_ended_since(&self, since_ms: i64, by: Option<&ProcessKey>) -> bool {
        self.claims.iter().any(|judged| {
            let is_end = match by {
                Some(_) => judged.verdict.liveness() == Liveness::Exited,
                None => matches!(judged.claim.subject, Subject::Released),
            };
            is_end
                && judged.process_key().as_ref() == by
                && judged.claim.dated_at_ms.is_some_and(|at| at > since_ms)
        })
    }

    pub(crate) fn is_found_live(&self) -> bool {
        let mut found = self.found_out.iter();
        found.any(|found| is_live(found.verdict))
    }

    /// A process was found to serve it. Another process may serve it too.
    pub(crate) fn serve_by(&mut self, verdict: Verdict, process: &Process) {
        if self.is_live() {
            self.other_owners.push(process.clone());
            return;
        }
        match &mut self.found_out {
            Some(found) if is_live(found.verdict) => {
                found.others.push(process.clone());
            }
            _ => self.find_out(verdict, Some(process.clone())),
        }
    }

    /// The process that was found to serve it without a claim.
    pub(crate) fn found_owner(&self) -> Option<&Process> {
        let found = self.found_out.as_ref()?;
        found.owner.as_deref().filter(|_| is_live(found.verdict))
    }

    pub(crate) fn is_found_out(&self) -> bool {
        self.found_out.is_some()
    }

    /// This process has left it for another session.
    pub(crate) fn was_left_by(&self, process: &Process) -> bool {
        let process = process_key(process);
        let mut claims = self.claims.iter();
        claims.any(|claim| claim.verdict == SUPERSEDED && claim.is_about(&process))
    }

    pub(crate) fn has_claims(&self) -> bool {
        !self.claims.is_empty()
    }

    /// A stale claim excludes that it is live elsewhere.
    pub(crate) fn is_dead_for_good(&self) -> bool {
        self.claims.iter().any(|claim| {
            claim.claim.exclusivity == Exclusivity::Exclusive
                && claim.verdict.liveness() == Liveness::Exited
        })
    }

    /// Its owner serves many sessions, or has no terminal with a person: another process may show
    /// it.
    pub(crate) fn may_have_client(&self) -> bool {
        let may_be_shown = self.live_claims().next().is_some_and(|claim| {
            claim.claim.serving == Serving::Many
                || self.sketch.is_terminal_hosted
                || claim
                    .process
                    .as_ref()
                    .is_some_and(|owner| owner.tty.is_none())
        });
        may_be_shown && self.client.is_none()
    }

    /// While it is live, its known client shows it.
    pub(crate) fn take_known_client(&mut self) {
        let verdict = self.verdict();
        let Some(client) = self.sketch.client.take() else {
            return;
        };
        let owner = self
            .claims
            .first()
            .and_then(|claim| claim.process.as_deref());
        let is_owner = owner.map(process_key) == Some(process_key(&client.process));
        if !is_live(verdict) || client.process.is_exited || is_owner {
            return;
        }
        let pid = Some(client.process.pid);
        self.extra
            .push(JudgedEvidence::new(client.evidence, verdict, pid));
        self.client = Some(Box::new(client.process));
    }

    /// An exited process had left this session before.
    pub(crate) fn supersede_dead(&mut self) {
        let left = self.claims.iter().map(|claim| &claim.claim);
        let left = left.filter(|claim| matches!(claim.taken_up, TakenUp::Left(_)));
        let left: Vec<_> = left
            .map(|claim| (claim.subject.pid(), claim.stamp.clone()))
            .collect();
        if left.is_empty() {
            return;
        }
        for claim in &mut self.claims {
            let its = (claim.claim.subject.pid(), claim.claim.stamp.clone());
            if claim.verdict.liveness() == Liveness::Exited && left.contains(&its) {
                claim.verdict = SUPERSEDED;
            }
        }
        self.rank();
    }

    /// `process` has left it for another session.
    pub(crate) fn supersede(&mut self, process: &ProcessKey, current: Option<&SessionId>) {
        for claim in &mut self.claims {
            if claim.is_about(process) {
                claim.verdict = SUPERSEDED;
            }
        }
        self.rank();
        if self.verdict() == SUPERSEDED {
            self.superseded_by = current.cloned();
        }
    }

    /// What names `process` in the home of the session shows nothing, for this reason.
    pub(crate) fn doubt(&mut self, process: &ProcessKey, why: &str) {
        for claim in &mut self.claims {
            if is_live(claim.verdict) && claim.is_about(process) && claim.lies_in_home() {
                claim.verdict = Verdict::Unknown(UnknownBecause::MayBeServedBy(process.0));
                claim.claim.evidence.says.push_str(why);
            }
        }
        self.rank();
    }

    /// It was left for another session, as clues show.
    pub(crate) fn leave_for(&mut self, current: &SessionId) {
        self.find_out(SUPERSEDED, None);
        self.superseded_by = Some(current.clone());
    }

    /// Records a verdict that does not come from a claim.
    pub(crate) fn find_out(&mut self, verdict: Verdict, owner: Option<Process>) {
        self.found_out = Some(FoundOut {
            verdict,
            owner: owner.map(Box::new),
            others: Vec::new(),
        });
        self.superseded_by = None;
    }

    pub(crate) fn add_evidence(
        &mut self,
        kind: EvidenceKind,
        says: String,
        verdict: Verdict,
        process: Option<&Process>,
    ) {
        let evidence = Evidence::new(kind, None, says);
        let pid = process.map(|process| process.pid);
        self.extra.push(JudgedEvidence::new(evidence, verdict, pid));
    }

    /// `served_by` is the process that serves its parent.
    pub(crate) fn follow_parent(&mut self, parent: Verdict, served_by: Option<Pid>) {
        let verdict = match (parent, served_by) {
            (Verdict::Live(..), Some(pid)) if self.sketch.may_have_ended => {
                Verdict::Unknown(UnknownBecause::MayBeServedBy(pid))
            }
            // A live parent does not prove that the sub-agent still runs.
            (Verdict::Live(_, confidence), _) => {
                Verdict::Live(LiveBecause::Parent, confidence.min(Confidence::Consistent))
            }
            (Verdict::Exited(_), _) => Verdict::Exited(ExitedBecause::Parent),
            (Verdict::Unknown(_), _) => Verdict::Unknown(UnknownBecause::Parent),
        };
        let says = match &self.sketch.parent {
            Some(parent) if verdict.reason() == "may-be-served-by" => format!(
                "sub-agent of {parent}; the record of whether it has ended is torn or missing"
            ),
            Some(parent) => format!("sub-agent of {parent}"),
            None => return,
        };
        self.add_evidence(EvidenceKind::Parent, says, verdict, None);
        let owner = self
            .live_claims()
            .find_map(|claim| claim.process.as_deref());
        let owner = owner.filter(|_| is_live(verdict) || !self.sketch.may_have_ended);
        self.find_out(verdict, owner.cloned());
    }

    /// A session that never came to be: its agent gave up the ID before anything happened, or no
    /// terminal was found to show it.
    pub(crate) fn is_nothing(&self) -> bool {
        let never_was = self.sketch.is_provisional && self.verdict().liveness() == Liveness::Exited;
        let is_shown = self.has_claims() || !self.extra.is_empty();
        never_was || (self.sketch.matters_only_if_shown && !is_shown) || self.is_only_named()
    }

    /// Nothing is known of it but that a process left it, or that something is called after it
    /// that can't be read. What else is on disk, a look for this session finds.
    fn is_only_named(&self) -> bool {
        let sketch = &self.sketch;
        let is_bare = sketch.work_dir.is_none()
            && sketch.transcript.is_none()
            && sketch.heard_at_ms.is_none();
        let is_unread = |claim: &Claim| {
            let kind = claim.evidence.kind;
            claim.subject == Subject::Unreadable
                && matches!(kind, EvidenceKind::Sidecar | EvidenceKind::Record)
        };
        let mut claims = self.claims.iter().map(|judged| &*judged.claim);
        is_bare
            && self.has_claims()
            && claims.all(|claim| matches!(claim.taken_up, TakenUp::Left(_)) || is_unread(claim))
    }

    pub(crate) fn into_session(
        self,
        adapter: Option<&'static dyn Adapter>,
        is_default_home: bool,
    ) -> Session {
        let verdict = self.verdict();
        let best = self.claims.first();
        let owner = match &self.found_out {
            Some(found_out) => found_out.owner.clone(),
            None if is_live(verdict) => best.and_then(|claim| claim.process.clone()),
            None => None,
        };
        let owner_pid = owner.as_ref().map(|owner| owner.pid);
        let found = self.found_out.iter().flat_map(|found| &found.others);
        let claimed = self
            .live_claims()
            .filter_map(|claim| claim.process.as_deref());
        let others: BTreeMap<Pid, &Process> = claimed
            .chain(&self.other_owners)
            .chain(found)
            .filter(|process| Some(process.pid) != owner_pid)
            .map(|process| (process.pid, process))
            .collect();
        let others = others.into_values().cloned();
        let other_live = others.map(|process| OtherLive {
            process: Box::new(process),
            pane: None,
        });
        let other_live = other_live.collect();
        let is_owner_shared = self.found_out.is_none()
            && best.is_some_and(|claim| claim.claim.serving == Serving::Many);
        let mut evidence: Vec<_> = self.claims.into_iter().map(judged_evidence).collect();
        evidence.extend(self.extra);
        evidence.sort_by_key(|evidence| evidence.verdict.liveness());
        Session {
            adapter,
            is_default_home,
            key: self.sketch.key.clone(),
            verdict,
            owner,
            is_owner_shared,
            client: self.client,
            is_client_ambiguous: self.is_client_ambiguous,
            other_live,
            superseded_by: self.superseded_by,
            sketch: self.sketch,
            description: Description::default(),
            resources: None,
            pane: None,
            is_dismissed: false,
            usage: None,
            evidence,
        }
    }
}

fn judged_evidence(judged: JudgedClaim) -> JudgedEvidence {
    JudgedEvidence {
        pid: judged.claim.subject.pid(),
        host: judged.claim.scope.host.clone(),
        serving: judged.claim.serving,
        at_ms: judged.claim.dated_at_ms,
        verdict: judged.verdict,
        evidence: judged.claim.evidence,
    }
}
