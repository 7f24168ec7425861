//! Which of the sessions that one process claims is its current one.

use std::collections::{BTreeSet, HashMap};

use whosup_sidecar::SessionId;

use super::{Drafts, ProcessKey, process_key};
use crate::claim::{EvidenceKind, Serving, SessionKey, TakenUp};

/// When a process took up a session, as one claim has it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Taken {
    key: SessionKey,
    event: Event,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    /// At this time, or at an unknown one. By a hook, or by something else.
    At(Option<i64>, By),
    /// It serves this one now, since an unknown time.
    Current,
    /// It has left it.
    Left,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Hook,
    Other,
}

/// Of several sessions that one process claims, the one that it took up last is current;
/// the process has left the others (`/clear`, `/new`, `/fork`, `/resume`).
///
/// A process that serves many at once keeps them all, and sub-agents run beside their
/// parent.
pub(super) fn supersede(drafts: &mut Drafts) {
    for (process, taken) in taken_up(drafts) {
        let current = current_of(&taken);
        let keys: BTreeSet<&SessionKey> = taken.iter().map(|one| &one.key).collect();
        for key in keys {
            let has_left = match &current {
                Some(current) => key != *current,
                None => taken
                    .iter()
                    .any(|one| one.key == *key && one.event == Event::Left),
            };
            if has_left && let Some(draft) = drafts.get_mut(key) {
                let current: Option<&SessionId> = current.map(|current| &current.session);
                draft.supersede(&process, current);
            }
        }
    }
}

fn taken_up(drafts: &Drafts) -> Vec<(ProcessKey, Vec<Taken>)> {
    let mut taken: HashMap<ProcessKey, Vec<Taken>> = HashMap::new();
    for (key, draft) in drafts {
        if draft.sketch.parent.is_some() {
            continue;
        }
        for judged in draft.live_claims() {
            let claim = &judged.claim;
            let Some(process) = judged.process.as_deref() else {
                continue;
            };
            if claim.serving == Serving::Many {
                continue;
            }
            let by = match claim.evidence.kind {
                EvidenceKind::Record => By::Hook,
                _ => By::Other,
            };
            let event = match claim.taken_up {
                TakenUp::At(at_ms) => Event::At(Some(at_ms), by),
                TakenUp::AsDated => Event::At(claim.dated_at_ms.or(draft.sketch.born_at_ms), by),
                TakenUp::Current => Event::Current,
                TakenUp::Left => Event::Left,
            };
            taken.entry(process_key(process)).or_default().push(Taken {
                key: key.clone(),
                event,
            });
        }
    }
    let mut taken: Vec<_> = taken.into_iter().collect();
    taken.sort_by_key(|((pid, _), _)| *pid);
    taken
}

/// The session of the last claim event. A registry has no date for this: the session that
/// it names is current, unless hooks of this process named that session before a later
/// claim event for another one. `None` if the process has left all of them.
fn current_of(taken: &[Taken]) -> Option<&SessionKey> {
    let is_left = |key: &SessionKey| {
        let mut its = taken.iter().filter(|one| one.key == *key);
        its.any(|one| one.event == Event::Left)
    };
    let events = || {
        let dated = taken.iter().filter(|one| !is_left(&one.key));
        dated.filter_map(|one| match one.event {
            Event::At(at_ms, by) => Some((at_ms, &one.key, by)),
            _ => None,
        })
    };
    let newest = events().max_by_key(|(at_ms, key, _)| (*at_ms, *key));
    let registered = taken
        .iter()
        .find(|one| one.event == Event::Current && !is_left(&one.key));
    let Some(registered) = registered else {
        return newest.map(|(_, key, _)| key);
    };
    let named_at_ms = events()
        .filter(|(_, key, by)| **key == registered.key && *by == By::Hook)
        .filter_map(|(at_ms, ..)| at_ms)
        .max();
    match (named_at_ms, newest) {
        (Some(named), Some((Some(newest), key, _))) if newest > named => Some(key),
        _ => Some(&registered.key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(session: &str) -> SessionKey {
        SessionKey {
            agent: "claude-code".parse().unwrap(),
            session: session.parse().unwrap(),
            home: std::path::Path::new("/h").into(),
        }
    }

    #[track_caller]
    fn check(taken: &[(&str, Event)], right: Option<&str>) {
        let taken: Vec<Taken> = taken
            .iter()
            .map(|(session, event)| Taken {
                key: key(session),
                event: *event,
            })
            .collect();
        let current = current_of(&taken).map(|key| key.session.as_str());
        assert_eq!(current, right);
    }

    const fn hook(at_ms: i64) -> Event {
        Event::At(Some(at_ms), By::Hook)
    }

    const fn other(at_ms: i64) -> Event {
        Event::At(Some(at_ms), By::Other)
    }

    #[test]
    fn the_session_of_the_last_claim_event_is_current() {
        check(&[("a", other(1)), ("b", other(2))], Some("b"));
        check(&[("a", hook(3)), ("b", other(2))], Some("a"));
        check(
            &[("a", Event::At(None, By::Other)), ("b", other(2))],
            Some("b"),
        );
    }

    #[test]
    fn what_a_registry_names_is_current_unless_hooks_saw_it_left() {
        check(&[("a", Event::Current), ("b", hook(2))], Some("a"));
        check(
            &[("a", Event::Current), ("a", hook(1)), ("b", hook(2))],
            Some("b"),
        );
        check(
            &[("b", Event::Current), ("a", hook(1)), ("b", hook(2))],
            Some("b"),
        );
        check(
            &[("a", Event::Current), ("a", hook(3)), ("b", hook(2))],
            Some("a"),
        );
    }

    #[test]
    fn a_session_that_was_left_is_not_current_again() {
        check(&[("a", Event::Left), ("b", hook(2))], Some("b"));
        check(&[("a", Event::Left), ("a", Event::Current)], None);
        check(&[("a", Event::Left)], None);
    }
}
