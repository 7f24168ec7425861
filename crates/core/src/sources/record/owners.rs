//! The owners of a session: every process that hooks reported, and whether it has released the
//! session.
//!
//! Several processes may serve one session (a headless run beside a terminal), and the last to
//! report may be the first to exit. So each is kept, and a session has ended only when all of
//! them have released it.

use std::path::PathBuf;

use serde::Serialize;
use whosup_process::{Pid, StartStamp};
use whosup_sidecar::{FieldError, StrictObject};

use super::format::{RecordError, time};
use super::heard::{EndCause, count};
use super::history::is_overtaken;
use super::log::LoggedEvent;
use super::owner::{
    RecordedOwner, WrittenOwner, parse_owner, parse_stamp, written_path, written_stamp,
};
use super::shown::{Shown, WrittenShown, parse_shown};
use crate::adapter::hook_event::EventKind;
use crate::adapter::phase::Phase;
use crate::views::wire::timestamp;

/// How many owners of one session are kept.
pub const OWNERS_MAX: usize = 16;
/// How many processes above a hook are kept for one owner.
pub const CHAIN_MAX: usize = 16;
/// For how many owners, by the latest events, the processes in between are kept.
const CHAINS_MAX: usize = 4;
/// How often an unrecognized owner must have been the nearest process above a hook before its
/// exit counts for the session: a process that runs a single hook exits at once.
const EVENTS_OF_A_PROVEN_OWNER: u64 = 2;

/// A process between a hook and the owner, or the owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ancestor {
    /// Its PID.
    pub pid: Pid,
    /// When it began, raw.
    pub stamp: Option<StartStamp>,
    /// The program. Never its arguments: these may hold secrets.
    pub executable: Option<PathBuf>,
}

/// One owner that hooks reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownOwner {
    /// Its identity; `None` stands for the events whose owner was not found.
    pub identity: Option<RecordedOwner>,
    /// The time of its first event, in milliseconds since 1970.
    pub first_event_at_ms: i64,
    /// The time of its last event.
    pub last_event_at_ms: i64,
    /// When it last took up the session: its last claim event.
    pub claimed_at_ms: Option<i64>,
    /// The time of its last event that starts work.
    pub worked_at_ms: Option<i64>,
    /// When it released the session.
    pub let_go_at_ms: Option<i64>,
    /// What it was doing at its last event.
    pub shown: Option<Shown>,
    /// How many events it reported.
    pub events: u64,
    /// The processes from the hook up to it, nearest first.
    pub chain: Vec<Ancestor>,
}

impl KnownOwner {
    /// When it took up the session, by the events of hooks.
    #[must_use]
    pub fn taken_up_at_ms(&self) -> i64 {
        self.claimed_at_ms.unwrap_or(self.first_event_at_ms)
    }

    /// Whether it still has the session.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.let_go_at_ms.is_none()
    }

    /// Whether its exit counts for the session.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        let is_recognized = |owner: &RecordedOwner| !owner.is_unrecognized;
        self.identity.as_ref().is_some_and(is_recognized) || self.events >= EVENTS_OF_A_PROVEN_OWNER
    }

    /// An end that the last work has overtaken ends nothing.
    fn let_go(&mut self, at_ms: i64) -> bool {
        let worked_at_ms = self.worked_at_ms;
        let is_late = worked_at_ms.is_some_and(|worked| is_overtaken(at_ms, worked));
        if is_late || !self.is_open() {
            return false;
        }
        self.let_go_at_ms = Some(at_ms);
        true
    }

    fn is(&self, owner: Option<&RecordedOwner>) -> bool {
        match (&self.identity, owner) {
            (Some(mine), Some(other)) => mine.is_same_process(other),
            (None, None) => true,
            _ => false,
        }
    }
}

/// The owners of a session, in the order of their last events.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Owners {
    known: Vec<KnownOwner>,
    /// There were more, and an owner that had not released the session was dropped.
    is_cut: bool,
}

impl Owners {
    /// The single owner in a record of the first format, with the times of its first and
    /// last event.
    #[must_use]
    pub fn of_one(
        owner: RecordedOwner,
        (first_ms, last_ms): (i64, i64),
        let_go_at_ms: Option<i64>,
    ) -> Self {
        let known = KnownOwner {
            identity: Some(owner),
            first_event_at_ms: first_ms,
            last_event_at_ms: last_ms,
            claimed_at_ms: None,
            worked_at_ms: None,
            let_go_at_ms,
            shown: None,
            events: EVENTS_OF_A_PROVEN_OWNER,
            chain: Vec::new(),
        };
        Self {
            known: vec![known],
            is_cut: false,
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &KnownOwner> {
        self.known.iter()
    }

    /// The owners that have not released it.
    pub fn open(&self) -> impl DoubleEndedIterator<Item = &KnownOwner> {
        self.known.iter().filter(|owner| owner.is_open())
    }

    /// An unknown process may have the session: the owner of an event was not found, no owner was
    /// ever reported, or there were too many.
    #[must_use]
    pub fn may_be_another(&self) -> bool {
        self.is_cut || self.known.is_empty() || self.open().any(|owner| owner.identity.is_none())
    }

    /// The last report of it was that an owner released it: those that were silent since and
    /// are gone left nothing unfinished.
    #[must_use]
    pub fn was_released_last(&self) -> bool {
        let released_at_ms = self.known.iter().filter_map(|owner| owner.let_go_at_ms);
        let open = self.open().map(|owner| owner.last_event_at_ms);
        released_at_ms.max() > open.max()
    }

    /// What the owner with the latest event shows, of those that have not released it.
    pub(super) fn shown(&self) -> Option<Shown> {
        self.open().next_back()?.shown
    }

    /// What the owner of the last event shows, whether it has released the session or not.
    pub(super) fn shown_last(&self) -> Option<Shown> {
        self.known.last()?.shown
    }

    /// Notes what the owner of the last event shows; an event that shows nothing leaves that.
    pub(super) fn show(&mut self, shown: Shown) {
        if let Some(last) = self
            .known
            .last_mut()
            .filter(|_| !matches!(shown.phase, Phase::Starting | Phase::Ended))
        {
            last.shown = Some(shown);
        }
    }

    /// Every owner has released it.
    #[must_use]
    pub fn have_let_go(&self) -> bool {
        !self.is_cut && self.open().next().is_none()
    }

    /// The owner with the latest event that has not released it; else the last owner.
    #[must_use]
    pub fn current(&self) -> Option<&RecordedOwner> {
        let open = self.open().rev().find_map(|owner| owner.identity.as_ref());
        let mut all = self.known.iter().rev();
        open.or_else(|| all.find_map(|owner| owner.identity.as_ref()))
    }

    /// Adds an event. `false` if it changes nothing, like a late end.
    pub(super) fn hear(&mut self, event: &LoggedEvent) -> bool {
        if event.kind == EventKind::SessionEnded {
            return self.hear_end(event);
        }
        let is_work = event.kind.starts_work() && !event.has_left;
        let has_ended = !self.known.is_empty() && self.have_let_go();
        if !is_work && has_ended && self.is_new_and_doubtful(event) {
            return false;
        }
        let owner = self.heard_of(event);
        owner.events = owner.events.saturating_add(1);
        if is_work {
            owner.worked_at_ms = owner.worked_at_ms.max(Some(event.at_ms));
            let let_go_at_ms = owner.let_go_at_ms;
            if let_go_at_ms.is_some_and(|at_ms| !is_overtaken(event.at_ms, at_ms)) {
                owner.let_go_at_ms = None;
                owner.shown = None;
            }
        }
        if event.kind.is_claim() {
            owner.claimed_at_ms = owner.claimed_at_ms.max(Some(event.at_ms));
        }
        if event.owner.is_some() {
            // An owner that was not found at first is found now.
            let at_ms = event.at_ms;
            self.known
                .retain(|owner| owner.identity.is_some() || owner.last_event_at_ms > at_ms);
        }
        true
    }

    /// Returns whether an event has no owner that is known and surely the agent. Such an
    /// event, which only trails behind an end, does not reopen the session.
    fn is_new_and_doubtful(&self, event: &LoggedEvent) -> bool {
        let owner = event.owner.as_ref();
        let mut known = self.known.iter();
        owner.is_none_or(|owner| owner.is_unrecognized) && !known.any(|known| known.is(owner))
    }

    /// The owner whose hook reported the end releases the session. A process that ended the session
    /// from outside has checked all owners.
    fn hear_end(&mut self, event: &LoggedEvent) -> bool {
        let cause = event.end.map_or(EndCause::ExitHook, |end| end.cause);
        if !cause.is_announced() && event.owner.is_none() {
            self.is_cut = false;
            let mut is_news = self.known.is_empty();
            for owner in &mut self.known {
                is_news |= owner.let_go(event.at_ms);
            }
            return is_news;
        }
        let has_let_go = self.heard_of(event).let_go(event.at_ms);
        // An agent that is about to exit may leave its last hook without a parent.
        let is_ownerless = event.owner.is_none();
        let mut open = self.known.iter_mut().filter(|owner| owner.is_open());
        match (open.next(), open.next()) {
            (Some(only), None) if is_ownerless => only.let_go(event.at_ms) || has_let_go,
            _ => has_let_go,
        }
    }

    /// The owner of an event, moved to the end of the list.
    fn heard_of(&mut self, event: &LoggedEvent) -> &mut KnownOwner {
        let mut known = self.known.iter();
        let at = known.position(|owner| owner.is(event.owner.as_ref()));
        let mut owner = match at {
            Some(at) => self.known.remove(at),
            None => {
                self.make_room();
                KnownOwner {
                    identity: None,
                    first_event_at_ms: event.at_ms,
                    last_event_at_ms: event.at_ms,
                    claimed_at_ms: None,
                    worked_at_ms: None,
                    let_go_at_ms: None,
                    shown: None,
                    events: 0,
                    chain: Vec::new(),
                }
            }
        };
        owner.first_event_at_ms = owner.first_event_at_ms.min(event.at_ms);
        owner.last_event_at_ms = owner.last_event_at_ms.max(event.at_ms);
        owner.identity.clone_from(&event.owner);
        if owner.chain.is_empty() {
            owner.chain.clone_from(&event.chain);
        }
        self.known.push(owner);
        let without = self.known.len().saturating_sub(CHAINS_MAX);
        for earlier in self.known.iter_mut().take(without) {
            earlier.chain.clear();
        }
        let last = self.known.len() - 1;
        &mut self.known[last]
    }

    /// Drops an owner if there are too many; preferably one that has released the session.
    fn make_room(&mut self) {
        if self.known.len() < OWNERS_MAX {
            return;
        }
        let at = self.known.iter().position(|owner| !owner.is_open());
        self.is_cut |= at.is_none();
        self.known.remove(at.unwrap_or(0));
    }
}

/// The form in which an owner of a list is written.
#[derive(Debug, Serialize)]
pub(super) struct WrittenKnown<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<WrittenOwner<'a>>,
    first_event_at: Option<String>,
    last_event_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    claimed_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    worked_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    let_go_at: Option<String>,
    #[serde(flatten)]
    shown: Option<WrittenShown>,
    events: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    chain: Vec<WrittenAncestor>,
}

/// The form in which a process between a hook and an owner is written.
#[derive(Debug, Serialize)]
pub(super) struct WrittenAncestor {
    pid: i32,
    start_stamp: Option<String>,
    start_stamp_kind: Option<&'static str>,
    executable: Option<String>,
}

pub(super) fn written_chain(chain: &[Ancestor]) -> Vec<WrittenAncestor> {
    let chain = chain.iter().take(CHAIN_MAX);
    chain
        .map(|ancestor| WrittenAncestor {
            pid: ancestor.pid.get(),
            start_stamp: ancestor.stamp.as_ref().map(ToString::to_string),
            start_stamp_kind: written_stamp(ancestor.stamp.as_ref()),
            executable: ancestor.executable.as_deref().map(written_path),
        })
        .collect()
}

impl Owners {
    pub(super) fn written(&self) -> Vec<WrittenKnown<'_>> {
        let known = self.known.iter();
        known
            .map(|owner| WrittenKnown {
                process: owner.identity.as_ref().map(WrittenOwner::new),
                first_event_at: timestamp(owner.first_event_at_ms),
                last_event_at: timestamp(owner.last_event_at_ms),
                claimed_at: owner.claimed_at_ms.and_then(timestamp),
                worked_at: owner.worked_at_ms.and_then(timestamp),
                let_go_at: owner.let_go_at_ms.and_then(timestamp),
                shown: owner.shown.map(WrittenShown::from),
                events: owner.events,
                chain: written_chain(&owner.chain),
            })
            .collect()
    }

    pub(super) const fn is_cut(&self) -> bool {
        self.is_cut
    }
}

/// Reads the owners of a record; `None` in the old form with a single owner.
pub(super) fn parse_owners(object: &StrictObject<'_>) -> Result<Option<Owners>, RecordError> {
    let Some(known) = object.opt_array("owners")? else {
        return Ok(None);
    };
    let known = known.iter().take(OWNERS_MAX);
    let known = known.map(|value| parse_known(&StrictObject::from_value(value)?));
    Ok(Some(Owners {
        known: known.collect::<Result<_, _>>()?,
        is_cut: object.opt_bool("owners_cut")?.unwrap_or(false),
    }))
}

fn parse_known(object: &StrictObject<'_>) -> Result<KnownOwner, RecordError> {
    let needed = |key| -> Result<i64, RecordError> {
        time(object, key)?.ok_or_else(|| FieldError::Missing { key: key.into() }.into())
    };
    Ok(KnownOwner {
        identity: object.opt_object("process")?.map(parse_owner).transpose()?,
        first_event_at_ms: needed("first_event_at")?,
        last_event_at_ms: needed("last_event_at")?,
        claimed_at_ms: time(object, "claimed_at")?,
        worked_at_ms: time(object, "worked_at")?,
        let_go_at_ms: time(object, "let_go_at")?,
        shown: parse_shown(object)?,
        events: count(object, "events")?.unwrap_or(0),
        chain: parse_chain(object)?,
    })
}

pub(super) fn parse_chain(object: &StrictObject<'_>) -> Result<Vec<Ancestor>, RecordError> {
    let chain = object.opt_array("chain")?.unwrap_or_default();
    let chain = chain.iter().take(CHAIN_MAX).map(|value| {
        let ancestor = &StrictObject::from_value(value)?;
        Ok(Ancestor {
            pid: ancestor.pid("pid")?,
            stamp: parse_stamp(ancestor)?,
            executable: ancestor.opt_string("executable")?.map(PathBuf::from),
        })
    });
    chain.collect()
}
