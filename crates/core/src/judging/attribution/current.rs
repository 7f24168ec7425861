//! Decides which session of a process is current, if the process serves one at a time.
//!
//! Only a claim event makes a session current. A heartbeat, the time of a file or the
//! last event do not: a registry is still written after a session was left, and hooks of
//! that session come late.

use std::collections::BTreeSet;

/// What one source reports of one session and the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Taking<K> {
    /// The session.
    pub(crate) key: K,
    /// When the process took it up, or what became of that.
    pub(crate) event: Event,
    /// Hooks of the process reported it.
    pub(crate) is_from_hooks: bool,
}

/// When a process took up a session, or what became of that. Times are in milliseconds
/// since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// It took it up then. `None`: the time is unknown and sorts before all known times.
    TakenUp(Option<i64>),
    /// It took it up then, and it has ended in it since.
    Ended(Option<i64>),
    /// A source names it as the served session, without a date. What
    /// it is dated counts only among several of the kind.
    Named(Option<i64>),
    /// The process has left it for another one, which it took up then.
    Left(i64),
    /// The one that it left it for has ended then.
    OtherEnded(i64),
}

/// The current session of one process, and the sessions that it left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sessions<K> {
    /// The session that it serves; `None` if that has ended, or is unknown.
    pub(crate) current: Option<K>,
    /// Those that it left.
    pub(crate) superseded: BTreeSet<K>,
    /// One that it left and may be back in: the last event is an end, and a source without
    /// dates names this session since. Its hook may not have run yet.
    pub(crate) doubtful: Option<K>,
}

/// Decides which session a process serves.
///
/// The order of the input does not matter. Of two sessions that were taken up at once
/// the greater key is current, so that every look gives the same answer.
pub(crate) fn current_of<K: Ord + Clone>(takings: &[Taking<K>]) -> Sessions<K> {
    let with = |is_wanted: &dyn Fn(&Taking<K>) -> bool| -> BTreeSet<K> {
        let takings = takings.iter().filter(|taking| is_wanted(taking));
        takings.map(|taking| taking.key.clone()).collect()
    };
    let all = with(&|_| true);
    let left = left_of(takings);
    let last = last_event(takings, &left);
    let current = named(takings, &left).or(last).filter(|key| {
        let is_end =
            |taking: &Taking<K>| taking.key == *key && matches!(taking.event, Event::Ended(_));
        !takings.iter().any(is_end)
    });
    let ended = with(&|taking| matches!(taking.event, Event::Ended(_)));
    let superseded = all.into_iter().filter(|key| {
        let is_current = current.as_ref() == Some(key);
        !is_current && (left.contains(key) || !ended.contains(key))
    });
    let superseded = superseded.collect();
    Sessions {
        doubtful: doubtful(takings, &superseded).filter(|_| current.is_none()),
        superseded,
        current,
    }
}

/// A session that was left, and is named by a source that was written after the last event,
/// which is an end.
fn doubtful<K: Ord + Clone>(takings: &[Taking<K>], superseded: &BTreeSet<K>) -> Option<K> {
    let dated = takings.iter().filter_map(|taking| match taking.event {
        Event::TakenUp(at_ms) => Some((at_ms, false)),
        Event::Left(at_ms) => Some((Some(at_ms), false)),
        Event::Ended(at_ms) => Some((at_ms, true)),
        Event::OtherEnded(at_ms) => Some((Some(at_ms), true)),
        Event::Named(_) => None,
    });
    let (last_ms, _) = dated.max().filter(|(_, is_end)| *is_end)?;
    let named = takings.iter().filter_map(|taking| match taking.event {
        Event::Named(named_ms) if named_ms > last_ms => Some((named_ms, &taking.key)),
        _ => None,
    });
    let left = named.filter(|(_, key)| superseded.contains(*key));
    left.max().map(|(_, key)| key.clone())
}

/// The sessions that the process has left and not taken up since. Hooks come late: the
/// file of a session may show that it was taken up again before its hook has run.
fn left_of<K: Ord + Clone>(takings: &[Taking<K>]) -> BTreeSet<K> {
    let is_back = |key: &K, left_ms: i64| {
        let mut its = takings.iter().filter(|taking| taking.key == *key);
        its.any(|taking| matches!(taking.event, Event::TakenUp(at_ms) if at_ms > Some(left_ms)))
    };
    let left = takings.iter().filter_map(|taking| match taking.event {
        Event::Left(at_ms) if !is_back(&taking.key, at_ms) => Some(taking.key.clone()),
        _ => None,
    });
    left.collect()
}

/// The session of the last claim event.
fn last_event<K: Ord + Clone>(takings: &[Taking<K>], left: &BTreeSet<K>) -> Option<K> {
    let dated = takings.iter().filter_map(|taking| match taking.event {
        Event::TakenUp(at_ms) | Event::Ended(at_ms) => Some((at_ms, &taking.key)),
        Event::Named(_) | Event::Left(_) | Event::OtherEnded(_) => None,
    });
    let dated = dated.filter(|(_, key)| !left.contains(key));
    dated.max().map(|(_, key)| key.clone())
}

/// The session that a source without dates names, unless hooks of the process named that
/// session and then another: in that case the source is behind.
fn named<K: Ord + Clone>(takings: &[Taking<K>], left: &BTreeSet<K>) -> Option<K> {
    let hooked = || {
        let takings = takings.iter().filter(|taking| taking.is_from_hooks);
        takings.filter_map(|taking| match taking.event {
            Event::TakenUp(at_ms) | Event::Ended(at_ms) => Some((at_ms, &taking.key)),
            Event::Named(_) | Event::Left(_) | Event::OtherEnded(_) => None,
        })
    };
    let is_behind = |dated_ms: Option<i64>, named: &K| {
        // It was written before another source knew of another session.
        let mut others = takings.iter().filter(|taking| taking.key != *named);
        let is_older = others.any(|taking| {
            matches!(taking.event, Event::TakenUp(at_ms) if dated_ms.is_some() && at_ms > dated_ms)
                && !taking.is_from_hooks
        });
        let latest = hooked().filter(|(_, key)| *key == named).max();
        let later = |(at_ms, _): (Option<i64>, &K)| {
            hooked().any(|(other_ms, key)| key != named && other_ms > at_ms)
        };
        is_older || left.contains(named) || latest.is_some_and(later)
    };
    let named = takings.iter().filter_map(|taking| match taking.event {
        Event::Named(dated_ms) => Some((dated_ms, &taking.key)),
        _ => None,
    });
    let named = named.filter(|(dated_ms, key)| !is_behind(*dated_ms, key));
    named.max().map(|(_, key)| key.clone())
}

#[cfg(test)]
mod tests {
    use super::Event::{Ended, Left, Named, OtherEnded, TakenUp};
    use super::*;

    const HOOK: bool = true;
    const FILE: bool = false;

    /// The input, which session is current (if there is one), and which were left.
    type Row = (
        &'static str,
        &'static [(&'static str, Event, bool)],
        Option<&'static str>,
        &'static [&'static str],
    );

    const ROWS: &[Row] = &[
        ("no source reports anything", &[], None, &[]),
        ("one", &[("a", TakenUp(Some(1)), HOOK)], Some("a"), &[]),
        (
            "the last claim event counts",
            &[
                ("a", TakenUp(Some(1)), HOOK),
                ("b", TakenUp(Some(3)), HOOK),
                ("c", TakenUp(Some(2)), FILE),
            ],
            Some("b"),
            &["a", "c"],
        ),
        (
            "one that was taken up again is current again",
            &[
                ("a", TakenUp(Some(1)), HOOK),
                ("b", TakenUp(Some(2)), HOOK),
                ("a", TakenUp(Some(3)), FILE),
            ],
            Some("a"),
            &["b"],
        ),
        (
            "what has no date is before all that has",
            &[("b", TakenUp(None), FILE), ("a", TakenUp(Some(1)), FILE)],
            Some("a"),
            &["b"],
        ),
        (
            "of two at once it is always the same one",
            &[("b", TakenUp(Some(1)), HOOK), ("a", TakenUp(Some(1)), HOOK)],
            Some("b"),
            &["a"],
        ),
        (
            "a registry decides over what other files knew before",
            &[("a", Named(Some(9)), FILE), ("b", TakenUp(Some(1)), FILE)],
            Some("a"),
            &["b"],
        ),
        (
            "a registry is behind a file that knows of a later session",
            &[("a", Named(Some(1)), FILE), ("b", TakenUp(Some(9)), FILE)],
            Some("b"),
            &["a"],
        ),
        (
            "a registry decides over hooks that never named its session",
            &[("a", Named(Some(1)), FILE), ("b", TakenUp(Some(9)), HOOK)],
            Some("a"),
            &["b"],
        ),
        (
            "a registry is behind hooks that named its session before another",
            &[
                ("a", Named(Some(99)), FILE),
                ("a", TakenUp(Some(1)), HOOK),
                ("b", TakenUp(Some(2)), HOOK),
            ],
            Some("b"),
            &["a"],
        ),
        (
            "a registry is behind hooks that reported the end and another session",
            &[
                ("a", Named(Some(99)), FILE),
                ("a", Ended(Some(1)), HOOK),
                ("b", TakenUp(Some(2)), HOOK),
            ],
            Some("b"),
            &[],
        ),
        (
            "a registry names one that hooks say was left",
            &[("a", Named(Some(99)), FILE), ("a", Left(1), HOOK)],
            None,
            &["a"],
        ),
        (
            "a registry is ahead of hooks that named its session last",
            &[
                ("a", Named(Some(1)), FILE),
                ("b", TakenUp(Some(1)), HOOK),
                ("a", TakenUp(Some(2)), HOOK),
            ],
            Some("a"),
            &["b"],
        ),
        (
            "of two registries the newer counts",
            &[("a", Named(Some(2)), FILE), ("b", Named(Some(1)), FILE)],
            Some("a"),
            &["b"],
        ),
        (
            "the current one has ended: earlier ones do not come back",
            &[("a", TakenUp(Some(1)), HOOK), ("b", Ended(Some(2)), HOOK)],
            None,
            &["a"],
        ),
        (
            "the current one is not looked at",
            &[("a", Left(1), HOOK), ("a", TakenUp(Some(1)), FILE)],
            None,
            &["a"],
        ),
        (
            "a file shows that it was taken up again, before the hook of that has run",
            &[
                ("a", Left(5), HOOK),
                ("a", TakenUp(Some(9)), FILE),
                ("b", TakenUp(Some(5)), HOOK),
            ],
            Some("a"),
            &["b"],
        ),
        (
            "the file is of the time before it was left",
            &[
                ("a", Left(5), HOOK),
                ("a", TakenUp(Some(4)), FILE),
                ("b", TakenUp(Some(5)), HOOK),
            ],
            Some("b"),
            &["a"],
        ),
    ];

    #[test]
    fn the_last_claim_event_decides_which_session_is_current() {
        for (name, input, current, superseded) in ROWS {
            let mut takings: Vec<_> = input
                .iter()
                .map(|(key, event, is_from_hooks)| Taking {
                    key: *key,
                    event: *event,
                    is_from_hooks: *is_from_hooks,
                })
                .collect();
            let expected = Sessions {
                current: *current,
                superseded: superseded.iter().copied().collect(),
                doubtful: None,
            };
            let count = takings.len();
            for _ in 0..count.max(1) {
                assert_eq!(current_of(&takings), expected, "{name}");
                takings.rotate_left(count.min(1));
            }
            takings.reverse();
            assert_eq!(current_of(&takings), expected, "{name}, backwards");
        }
    }

    #[test]
    fn a_process_whose_last_session_has_ended_may_be_back_in_the_one_that_a_registry_names() {
        let doubtful = |named_ms, events: &[(&'static str, Event)]| {
            let hooked = events.iter().map(|(key, event)| Taking {
                key: *key,
                event: *event,
                is_from_hooks: HOOK,
            });
            let registry = Taking {
                key: "a",
                event: Named(Some(named_ms)),
                is_from_hooks: FILE,
            };
            let takings: Vec<_> = hooked.chain([registry]).collect();
            current_of(&takings).doubtful
        };
        let gone_on = [("a", Left(5)), ("b", TakenUp(Some(5)))];
        let ended = [gone_on[0], gone_on[1], ("b", Ended(Some(7)))];
        assert_eq!(doubtful(9, &ended), Some("a"));
        assert_eq!(doubtful(9, &[gone_on[0], ("a", OtherEnded(7))]), Some("a"));
        // Written before the end, as some versions leave it; or the other one has not ended.
        assert_eq!(doubtful(6, &ended), None);
        assert_eq!(doubtful(9, &gone_on), None);
        assert_eq!(doubtful(9, &gone_on[..1]), None);
    }
}
