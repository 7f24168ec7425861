//! Marks the sessions that a process has left for another one.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use super::current::{Event, Taking, current_of};
use super::{Drafts, ProcessKey, process_key, shown};
use crate::adapter::claim::{Claim, EvidenceKind, Serving, SessionKey, Subject, TakenUp};
use crate::judging::verdict::{UnknownBecause, Verdict};
use crate::sessions::merge::{Draft, Parts};

/// Of several sessions that one process claims, the one that it took up last is current;
/// the process has left the others (`/clear`, `/new`, `/fork`, `/resume`).
///
/// A process that serves many at once keeps them all, and sub-agents run beside their
/// parent. What was left stays left when the process exits.
pub(super) fn supersede(drafts: &mut Drafts, parts: &Parts) {
    for (process, mut takings) in takings(drafts) {
        takings.extend(ends(drafts, parts, &process));
        // What a process holds now outweighs earlier reports.
        let held: BTreeSet<SessionKey> = takings
            .iter()
            .filter(|taking| is_held(drafts, &taking.key, &process))
            .map(|taking| taking.key.clone())
            .collect();
        let is_left = |key: &SessionKey| !held.is_empty() && !held.contains(key);
        let left: BTreeSet<SessionKey> = takings
            .extract_if(.., |taking| is_left(&taking.key))
            .map(|taking| taking.key)
            .collect();
        // Hooks may not have heard yet that it was taken up again.
        if held.len() == 1 {
            takings.retain(|taking| !matches!(taking.event, Event::Left(_) | Event::OtherEnded(_)));
        }
        let before = current_of(&takings).current;
        let shown =
            shown::gone_on_to(drafts, parts, &process).filter(|key| before.as_ref() != Some(key));
        takings.extend(shown.iter().map(|key| Taking {
            key: key.clone(),
            event: Event::TakenUp(Some(parts.now_ms)),
            is_from_hooks: false,
        }));
        let mut sessions = current_of(&takings);
        sessions.superseded.extend(left);
        let current = sessions.current.as_ref().map(|key| &key.session);
        for key in &sessions.superseded {
            if let Some(draft) = drafts.get_mut(key) {
                draft.supersede(&process, current);
            }
        }
        if let Some(draft) = sessions.doubtful.and_then(|key| drafts.get_mut(&key)) {
            draft.find_out(
                Verdict::Unknown(UnknownBecause::MayBeServedBy(process.0)),
                None,
            );
        }
        if let Some(key) = shown.filter(|key| sessions.current.as_ref() == Some(key))
            && let Some(draft) = drafts.get_mut(&key)
        {
            shown::serve(draft, parts, &process);
        }
    }
    for draft in drafts.values_mut() {
        draft.supersede_dead();
    }
}

/// The kernel shows that the process holds the session.
fn is_held(drafts: &Drafts, key: &SessionKey, process: &ProcessKey) -> bool {
    let claims = drafts.get(key).into_iter().flat_map(Draft::live_claims);
    let mut claims = claims.filter(|judged| judged.is_about(process));
    claims.any(|judged| matches!(judged.claim.subject, Subject::Holder(_)))
}

/// The sessions that a process has ended, by their claims.
fn ends(drafts: &Drafts, parts: &Parts, process: &ProcessKey) -> Vec<Taking<SessionKey>> {
    let found = parts.process(process);
    let Some(began_ms) = found.and_then(|found| found.process.began_ms()) else {
        return Vec::new();
    };
    let all = drafts.iter().flat_map(|(key, draft)| {
        let claims = draft.claims().map(|judged| &judged.claim);
        let ended = claims.filter(|claim| claim.ended_by == Some(process.0));
        ended.map(move |claim| (key, claim.dated_at_ms))
    });
    let since = all.filter(|(_, at_ms)| at_ms.is_some_and(|at_ms| at_ms >= began_ms));
    since
        .map(|(key, at_ms)| Taking {
            key: key.clone(),
            event: Event::Ended(at_ms),
            is_from_hooks: false,
        })
        .collect()
}

/// When each process took up its sessions, by every live claim.
fn takings(drafts: &Drafts) -> Vec<(ProcessKey, Vec<Taking<SessionKey>>)> {
    let announced = announced(drafts);
    let mut takings: HashMap<ProcessKey, Vec<_>> = HashMap::new();
    for (process, key, draft, claim) in top_claims(drafts) {
        let is_one = match claim.serving {
            Serving::One => true,
            Serving::NotRecorded => {
                let place = announced.get(&(process.clone(), place_of(claim)));
                place.is_none_or(|sessions| sessions.len() == 1)
            }
            Serving::Many => false,
        };
        if !is_one {
            continue;
        }
        let dated_ms = claim.dated_at_ms.or(draft.sketch.born_at_ms);
        let (event, more) = match claim.taken_up {
            TakenUp::AsDated => (Event::TakenUp(dated_ms), None),
            TakenUp::At(at_ms) => (Event::TakenUp(Some(at_ms)), None),
            TakenUp::Current => (Event::Named(dated_ms), None),
            TakenUp::Left(leaving) => {
                let ended = leaving.ended_at_ms.map(Event::OtherEnded);
                (Event::Left(leaving.at_ms), ended)
            }
        };
        let of_process = takings.entry(process).or_default();
        let is_from_hooks = claim.evidence.kind == EvidenceKind::Record;
        of_process.extend([event].into_iter().chain(more).map(|event| Taking {
            key: key.clone(),
            event,
            is_from_hooks,
        }));
    }
    let mut takings: Vec<_> = takings.into_iter().collect();
    takings.sort_by_key(|((pid, _), _)| *pid);
    takings
}

/// The sessions that each process announces in one place. Those whose files do not record
/// how many the process serves are all current if there are several.
fn announced(drafts: &Drafts) -> HashMap<(ProcessKey, Option<&Path>), BTreeSet<&SessionKey>> {
    let mut announced: HashMap<_, BTreeSet<_>> = HashMap::new();
    for (process, key, _, claim) in top_claims(drafts) {
        if claim.evidence.kind == EvidenceKind::Sidecar {
            let sessions = announced.entry((process, place_of(claim))).or_default();
            sessions.insert(key);
        }
    }
    announced
}

/// The place in which a sidecar lies, above the directory of its agent.
fn place_of(claim: &Claim) -> Option<&Path> {
    claim.evidence.path.as_deref()?.ancestors().nth(2)
}

/// The live claims to sessions that are no sub-agents, with their processes.
fn top_claims(drafts: &Drafts) -> impl Iterator<Item = (ProcessKey, &SessionKey, &Draft, &Claim)> {
    let top = drafts
        .iter()
        .filter(|(_, draft)| draft.sketch.parent.is_none());
    top.flat_map(|(key, draft)| {
        draft.live_claims().filter_map(move |judged| {
            let process = judged.process.as_deref()?;
            Some((process_key(process), key, draft, &*judged.claim))
        })
    })
}
