//! Collects what connects a process without a claim with a session.

use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::path::Path;

use whosup_process::Pid;

use super::directory::Beside;
use super::shown;
use super::solve::ProcessFacts;
use super::terminal;
use super::{Drafts, Places, ProcessKey, process_key};
use crate::adapter::claim::{CLOCK_SLACK_MS, SessionKey};
use crate::adapter::{AgentProcess, ClueKind, LaunchedIn, Profile, Unclaimed, is_prefix_of};
use crate::sessions::merge::{Draft, Parts};

/// How much earlier than the start of a process its actions may be dated, in milliseconds:
/// kernels date the start in steps of ten milliseconds. One clock dates both.
const TICK_MS: i64 = 10;

/// A process that makes no claim.
pub(super) struct Seeker<'a> {
    pub(super) process: &'a AgentProcess,
    pub(super) profile: &'static Profile,
    pub(super) began_at_ms: Option<i64>,
    places: &'a Places,
    named: Option<&'a str>,
    title: Option<&'a str>,
    now_ms: i64,
    /// Its agent claims a session for it that is none yet.
    pub(super) is_provisional: bool,
    /// When its hooks were heard last, if they alone show its session: it may have gone on to
    /// another one since.
    pub(super) heard_at_ms: Option<i64>,
}

impl<'a> Seeker<'a> {
    pub(super) fn of(
        process: &'a AgentProcess,
        parts: &'a Parts,
        provisional: &HashSet<ProcessKey>,
    ) -> Self {
        let profile = process.adapter.profile();
        let title = parts.terminal_titles.get(&process.process.pid);
        Self {
            process,
            profile,
            began_at_ms: process.process.began_ms(),
            places: &parts.places,
            named: process.named_session(),
            title: title.map(String::as_str),
            now_ms: parts.now_ms,
            is_provisional: provisional.contains(&process_key(&process.process)),
            heard_at_ms: None,
        }
    }

    /// A process whose session its hooks reported, and were heard last then.
    pub(super) fn heard_at(process: &'a AgentProcess, parts: &'a Parts, at_ms: i64) -> Self {
        Self {
            heard_at_ms: Some(at_ms),
            ..Self::of(process, parts, &HashSet::new())
        }
    }

    pub(super) fn pid(&self) -> Pid {
        self.process.process.pid
    }

    pub(super) fn facts(&self, part: Unclaimed, drafts: &Drafts) -> ProcessFacts {
        let has_session = self.profile.has_session_at_launch;
        let clues = || {
            let all = drafts.values().flat_map(|draft| &draft.sketch.clues);
            all.filter(|clue| clue.pid == self.pid())
        };
        let left = clues().filter_map(|clue| match clue.kind {
            ClueKind::Left { at_ms } => Some(at_ms),
            _ => None,
        });
        ProcessFacts {
            began_ms: self.began_at_ms,
            is_run_incomplete: clues().any(|clue| clue.kind == ClueKind::Gap),
            must_have_one: part == Unclaimed::Client && has_session,
            is_lost: self.heard_at_ms.is_some(),
            left_at_ms: left.max().max(self.heard_at_ms),
        }
    }

    /// It works where the session does.
    pub(super) fn is_beside(&self, work_dir: Option<&Path>, is_held: bool) -> bool {
        match work_dir {
            Some(_) => self.beside(work_dir) == Beside::Same,
            // Nothing on disk shows yet where it works.
            None => is_held && self.process.work_dir().is_some(),
        }
    }

    pub(super) fn beside(&self, work_dir: Option<&Path>) -> Beside {
        let (process, details) = (&self.process.process, &self.process.details);
        self.places.beside(process, details, work_dir)
    }

    /// A process that was started in a directory which has another name now was launched with
    /// a session of the former name, unless its arguments name a directory.
    fn may_be_launched_in(&self, work_dir: Option<&Path>) -> bool {
        let LaunchedIn::Gone(gone) = &self.process.launched_in else {
            return true;
        };
        let names_another = || {
            let adapter = self.process.adapter;
            adapter.work_dir_named_by(&self.process.program()).is_some()
        };
        work_dir.is_none_or(|work_dir| work_dir == gone) || names_another()
    }

    pub(super) fn began_before(&self, at_ms: Option<i64>) -> bool {
        at_ms
            .zip(self.began_at_ms)
            .is_some_and(|(at, began)| at >= began.saturating_sub(TICK_MS))
    }

    /// Its agent makes a session at launch, or the process was started to answer one
    /// prompt: in both cases without input in the terminal.
    fn makes_session_unprompted(&self) -> bool {
        self.profile.has_session_at_launch || self.process.process.tty.is_none()
    }

    fn is_silent_since(&self, at_ms: i64) -> bool {
        terminal::was_silent_since(self.process, at_ms)
    }

    /// Whether the start window of the process contains this time.
    pub(super) fn may_be_launched_at(&self, at_ms: i64) -> bool {
        self.may_be_launched_within(&(at_ms..=at_ms))
    }

    /// The process may have begun or taken up the session as it was launched, within this
    /// time.
    pub(super) fn may_be_launched_with(
        &self,
        time_ms: &RangeInclusive<i64>,
        key: &SessionKey,
        draft: &Draft,
        part: Unclaimed,
    ) -> bool {
        let work_dir = draft.sketch.work_dir.as_deref();
        let is_renamed = || self.places.may_be_renamed(self.process, work_dir);
        let is_prompted = || {
            part == Unclaimed::Client
                || self.makes_session_unprompted()
                || !self.is_silent_since(*time_ms.start())
        };
        let is_held = part == Unclaimed::Client && draft.is_live();
        self.may_be_launched_within(time_ms)
            && self.process.may_use(&key.home)
            && (is_renamed()
                || (self.is_beside(work_dir, is_held)
                    && self.may_be_launched_in(work_dir)
                    && is_prompted()))
    }

    /// The process may have taken the session up, which its agent does not date, and its
    /// directory may have been renamed since. A session that was begun there later is not the
    /// one that it was launched with.
    pub(super) fn may_have_resumed_before_rename(&self, key: &SessionKey, draft: &Draft) -> bool {
        let sketch = &draft.sketch;
        self.profile.launch_window_ms.is_some()
            && !self.profile.has_session_at_launch
            && self.process.may_use(&key.home)
            && self.began_before(sketch.last_record_at_ms.max(sketch.perhaps_until_ms))
            && (self.places).may_be_renamed(self.process, sketch.work_dir.as_deref())
    }

    /// Whether the start window of the process overlaps this range.
    pub(super) fn may_be_launched_within(&self, time_ms: &RangeInclusive<i64>) -> bool {
        let window_ms = self.profile.launch_window_ms;
        window_ms
            .zip(self.began_at_ms)
            .is_some_and(|(window, began)| {
                *time_ms.end() >= began.saturating_sub(TICK_MS)
                    && *time_ms.start() <= began.saturating_add(window)
            })
    }

    pub(super) fn shows(&self, draft: &Draft) -> bool {
        let sketch = &draft.sketch;
        let name = sketch.terminal_title.as_deref().or(sketch.title.as_deref());
        let title = self.title.zip(name);
        title.is_some_and(|(title, name)| shown::is_named(title, name))
    }

    /// The arguments of the process name the session, and nothing shows that it has been
    /// left.
    pub(super) fn names(&self, key: &SessionKey, draft: &Draft, is_beside: bool) -> bool {
        let is_named = self
            .named
            .is_some_and(|named| is_prefix_of(named, &key.session));
        is_named
            && (self.profile.resumes_from_anywhere || is_beside)
            && self.may_still_be_named(draft)
            && !self.was_ended_since(draft, Some(&process_key(&self.process.process)))
    }

    /// A claim shows that the session ended, or was left, since the process began: by this
    /// process, or by one that is not known.
    pub(super) fn was_ended_since(&self, draft: &Draft, by: Option<&ProcessKey>) -> bool {
        let began_at_ms = self.began_at_ms;
        began_at_ms.is_some_and(|began| draft.was_ended_since(began, by))
    }

    /// The session was begun or prompted by hand, and not in this terminal.
    pub(super) fn is_ruled_out(&self, draft: &Draft, part: Unclaimed) -> bool {
        let sketch = &draft.sketch;
        let is_begun_elsewhere = sketch
            .born_at_ms
            .is_some_and(|born| terminal::rules_out_birth(self.process, born));
        let is_prompted_elsewhere = sketch
            .prompted_at_ms
            .is_some_and(|at| self.began_before(Some(at)) && self.is_silent_since(at));
        let is_shown_elsewhere = sketch.last_record_at_ms.is_some_and(|at| {
            self.began_before(Some(at)) && terminal::showed_nothing_at(self.process, at)
        });
        part == Unclaimed::Owner
            && (is_begun_elsewhere || is_prompted_elsewhere || is_shown_elsewhere)
    }

    /// The terminal had input since shortly before the session was born, or was
    /// prompted last.
    pub(super) fn was_typed_since(&self, draft: &Draft) -> bool {
        let sketch = &draft.sketch;
        let prompted_at_ms = sketch.prompted_at_ms.or_else(|| {
            // The birth of a session that is older than the process proves nothing.
            let is_born_since = self.began_before(sketch.born_at_ms);
            sketch.last_record_at_ms.filter(|_| !is_born_since)
        });
        // What is missing at the end may have been prompted elsewhere.
        let is_whole = sketch.perhaps_until_ms <= sketch.last_record_at_ms;
        let since = prompted_at_ms.max(sketch.born_at_ms).filter(|_| is_whole);
        since.is_some_and(|since| terminal::was_typed_since(self.process, since))
    }

    /// Some agents show soon after their start which session they serve. After that,
    /// their arguments name a session that they have left.
    pub(super) fn may_still_be_named(&self, draft: &Draft) -> bool {
        let announced_ms = self.profile.announces_within_ms;
        let Some((within, began)) = announced_ms.zip(self.began_at_ms) else {
            return true;
        };
        draft.sketch.unclaimed == Unclaimed::Client
            || self.now_ms.saturating_sub(began) <= within.saturating_add(CLOCK_SLACK_MS)
    }
}
