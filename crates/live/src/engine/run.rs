//! The thread of the engine: when it looks, and what it does with what it saw.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::hint;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use whosup_core::machine::{Machine, now_ms};
use whosup_core::process::{Pid, StartStamp};
use whosup_core::sessions::watch::programs_on_path;
use whosup_core::sources::config::Config;
use whosup_core::sources::panes::Panes;

use super::{EngineError, Tally};
use crate::death::Known;
use crate::diff::diff;
use crate::history::Shared;
use crate::look::{Seen, look};
use crate::pace::Pace;
use crate::rows::Rows;
use crate::signals::{Happened, Signals, thread_time};
use crate::steady::{Slow, steady};
use crate::world::{World, WorldError};

/// How often it looks for what gives no event.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// How often it looks where files or processes give no events.
const POLL_EVERY: Duration = Duration::from_secs(2);
/// How often the titles of panes are listed while there are subscribers.
const TITLES_EVERY: Duration = Duration::from_secs(2);
/// How long it waits for what comes together with the first event of a file, if no file is
/// renamed into place meanwhile.
const SETTLES_IN: Duration = Duration::from_millis(1);
/// An allocation that is large for glibc.
const LARGE_BYTES: usize = 64 << 10;
/// When it looks again after an agent was launched: the event comes before the program
/// runs, and some write nothing at launch.
const AFTER_LAUNCH: [Duration; 3] = [
    Duration::from_millis(100),
    Duration::from_millis(700),
    Duration::from_millis(3_000),
];

/// The engine in its thread.
pub(super) struct Run {
    world: Box<dyn World>,
    config: Config,
    signals: Signals,
    shared: Arc<Shared>,
    tally: Arc<Tally>,
    pace: Pace,
    slow: Slow,
    /// What the last look showed, some of which may yet be published.
    latest: Arc<Rows>,
    /// What that look rests on, until something happens that it does not know of.
    known: Option<Known>,
    programs: std::collections::BTreeSet<std::path::PathBuf>,
    /// What gives no events, as problems.
    blind: Vec<Value>,
    is_polling: bool,
    has_panes: bool,
    titles: Option<u64>,
    due: Due,
}

/// When something is to be done though nothing happens.
#[derive(Debug)]
struct Due {
    /// Something happened that has not been looked at.
    is_look_wanted: bool,
    /// No look is taken before that.
    settled: Instant,
    /// After a launch.
    launches: Vec<Instant>,
    /// What gives no event.
    look: Instant,
    /// The answer changes by time alone.
    change: Option<Instant>,
    titles: Option<Instant>,
    /// Fields that were held back.
    slow: Option<Instant>,
}

impl Run {
    pub(super) fn begin(
        mut world: Box<dyn World>,
        signals: Signals,
        tally: Arc<Tally>,
    ) -> Result<Self, EngineError> {
        let now = Instant::now();
        let (machine, config) = world.now();
        let config = config?;
        let seen = look(&machine, &config, &Rows::default());
        let mut run = Self {
            world,
            config,
            signals,
            shared: Arc::new(Shared::new(epoch(), Rows::default())),
            tally,
            pace: Pace::new(now),
            slow: Slow::default(),
            latest: Arc::new(Rows::default()),
            known: None,
            programs: programs_on_path(&machine),
            blind: Vec::new(),
            is_polling: false,
            has_panes: false,
            titles: None,
            due: Due {
                is_look_wanted: false,
                settled: now,
                launches: Vec::new(),
                look: now + LOOK_EVERY,
                change: None,
                titles: None,
                slow: None,
            },
        };
        count(&run.tally.looks, 1);
        run.take(&machine, seen, None, now);
        // A snapshot comes first: nothing of it is a change.
        let rows = (*run.shared.lock().rows).clone();
        run.shared = Arc::new(Shared::new(epoch(), rows));
        Ok(run)
    }

    pub(super) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    pub(super) fn until_stopped(mut self) {
        let why = loop {
            let now = Instant::now();
            let timeout = self.next_at(now).saturating_duration_since(now);
            match self.signals.wait(timeout) {
                Ok(happened) if happened.is_stopped => break "it was stopped".to_owned(),
                Ok(happened) => self.note(happened),
                Err(error) => break format!("cannot wait for events: {error}"),
            }
            count(&self.tally.wakeups, 1);
            self.act(Instant::now());
        };
        self.shared.end(why);
    }

    /// When there is something to do at the latest.
    fn next_at(&mut self, now: Instant) -> Instant {
        let may_look = self.pace.next_at(now);
        let is_watched = self.shared.has_watchers() && self.has_panes;
        let titles = self.due.titles.unwrap_or(now);
        let due = &self.due;
        let looks = [
            due.is_look_wanted.then_some(now),
            due.launches.iter().min().copied(),
            Some(due.look),
            due.change,
        ];
        let look = looks.into_iter().flatten().min().unwrap_or(due.look);
        let others = [due.slow, is_watched.then_some(titles)];
        let others = others.into_iter().flatten();
        others.fold(look.max(may_look).max(due.settled), Instant::min)
    }

    fn note(&mut self, happened: Happened) {
        let now = Instant::now();
        if happened.is_anything || happened.is_launch {
            self.known = None;
        }
        if !happened.exited.is_empty() || happened.is_in_place {
            self.due.settled = now;
        } else if happened.is_change() && !self.due.is_look_wanted {
            self.due.settled = now + SETTLES_IN;
        }
        self.due.is_look_wanted |= happened.is_change() || !happened.exited.is_empty();
        for exited in happened.exited {
            self.publish_exit(&exited, now);
        }
        if happened.is_launch {
            self.due.launches = AFTER_LAUNCH.map(|after| now + after).into();
        }
    }

    /// Publishes what the exit of a process has changed, if that is known before the look.
    fn publish_exit(&mut self, exited: &(Pid, StartStamp), now: Instant) {
        // Who was launched may take the session up, and is seen by the second look at the
        // latest.
        let known = self.known.take();
        let known = known.filter(|_| self.due.launches.len() < AFTER_LAUNCH.len() - 1);
        let Some(mut known) = known else {
            return;
        };
        let mut rows = (*self.latest).clone();
        let Some(gone) = known.without(exited, &mut rows) else {
            return;
        };
        self.known = Some(known);
        if rows.sessions == self.latest.sessions {
            return;
        }
        rows.as_of_ms = now_ms();
        steady(&Arc::clone(&self.shared.lock().rows), &mut rows);
        self.latest = Arc::new(rows);
        self.publish(&gone, now);
        count(&self.tally.exits, 1);
    }

    /// Does what is due.
    fn act(&mut self, now: Instant) {
        if self.shared.has_watchers() && self.has_panes {
            if self.due.titles.is_none_or(|at| at <= now) {
                self.list_titles(now);
            }
        } else {
            self.titles = None;
            self.due.titles = None;
        }
        let due = &mut self.due;
        let timers = [Some(due.look), due.change].into_iter().flatten();
        let is_due = timers
            .chain(due.launches.iter().copied())
            .any(|at| at <= now);
        due.is_look_wanted |= is_due;
        if due.is_look_wanted && self.pace.next_at(now).max(due.settled) <= now {
            self.look(now);
        } else if due.slow.is_some_and(|at| at <= now) {
            self.publish(&BTreeMap::new(), now);
        }
    }

    fn look(&mut self, now: Instant) {
        let is_periodic = self.due.look <= now;
        let before = thread_time();
        let (machine, config) = self.world.now();
        let config_problem = self.use_config(config);
        let published = Arc::clone(&self.shared.lock().rows);
        let mut seen = look(&machine, &self.config, &published);
        let (judged, descriptions) = (seen.judged.take(), std::mem::take(&mut seen.descriptions));
        if is_periodic {
            self.programs = programs_on_path(&machine);
        }
        self.due.launches.retain(|at| *at > now);
        self.due.is_look_wanted = false;
        self.take(&machine, seen, config_problem, now);
        self.shared.finish_look();
        let judged = judged.filter(|_| !self.due.is_look_wanted && !self.is_polling);
        self.known = judged.map(|judged| Known {
            machine,
            judged,
            descriptions,
        });
        // glibc puts freed memory together at the next large allocation, which takes half a
        // millisecond after a look: now, and not when something happens.
        drop(hint::black_box(Vec::<u8>::with_capacity(LARGE_BYTES)));
        let cost = thread_time().saturating_sub(before);
        self.pace.looked(now, Instant::now(), cost);
        count(&self.tally.looks, 1);
        count(
            &self.tally.look_us,
            u64::try_from(cost.as_micros()).unwrap_or(u64::MAX),
        );
    }

    /// Takes the configuration as it is now. One that can't be used changes nothing.
    fn use_config(&mut self, config: Result<Config, WorldError>) -> Option<Value> {
        match config {
            Ok(config) => {
                self.config = config;
                None
            }
            Err(error) => {
                let what = whosup_core::reader::in_full(&error);
                Some(problem(format!(
                    "{what}; the configuration before it is used"
                )))
            }
        }
    }

    /// Takes what was seen: publishes it, and watches what can change it.
    fn take(&mut self, machine: &Machine, seen: Seen, config: Option<Value>, now: Instant) {
        let Seen {
            mut rows,
            gone,
            mut watch,
            has_panes,
            ..
        } = seen;
        let change_at_ms = watch.changes_at_ms;
        watch.programs.extend(self.programs.iter().cloned());
        let blind: Vec<Value> = self.blind.iter().cloned().chain(config).collect();
        if !blind.is_empty() {
            let mut problems = (*rows.problems).clone();
            problems.extend(blind);
            rows.problems = Arc::new(problems);
        }
        let published = Arc::clone(&self.shared.lock().rows);
        steady(&published, &mut rows);
        self.has_panes = has_panes;
        self.latest = Arc::new(rows);
        self.publish(&gone, now);
        // What is said first is what changed; then what else can change is watched.
        let watched = self.signals.watch(machine, &watch);
        self.is_polling = watched.is_polling;
        let every = if self.is_polling {
            POLL_EVERY
        } else {
            LOOK_EVERY
        };
        self.due.look = now + every;
        self.due.change = change_at_ms.map(|at| {
            let after = at.saturating_sub(now_ms()).max(0);
            now + Duration::from_millis(u64::try_from(after).unwrap_or(0))
        });
        let blind: Vec<Value> = watched.problems.into_iter().map(problem).collect();
        // What came to be watched now may have changed since it was looked at.
        self.due.is_look_wanted |= watched.is_more || blind != self.blind;
        self.blind = blind;
    }

    fn publish(
        &mut self,
        gone: &BTreeMap<whosup_core::adapter::claim::SessionKey, crate::rows::Gone>,
        now: Instant,
    ) {
        let published = Arc::clone(&self.shared.lock().rows);
        let (rows, due) = self.slow.hold(&published, &self.latest, now);
        self.due.slow = due;
        let changes = diff(&published, &rows, gone);
        self.shared.publish(Arc::new(rows), changes);
    }

    /// Lists the titles of panes; if they are others than before, it looks.
    fn list_titles(&mut self, now: Instant) {
        self.due.titles = Some(now + TITLES_EVERY);
        count(&self.tally.listings, 1);
        let (machine, _) = self.world.now();
        let mut hash = DefaultHasher::new();
        for pane in Panes::ask(&machine).found.all() {
            let socket = pane.server.as_ref().map(|server| &server.socket);
            (socket, &pane.pane, pane.pid, &pane.title).hash(&mut hash);
        }
        let titles = hash.finish();
        let known = self.titles.replace(titles);
        if known.is_none_or(|known| known != titles) {
            self.due.is_look_wanted = true;
            self.known = None;
        }
    }
}

fn problem(message: String) -> Value {
    json!({ "agent": null, "path": null, "message": message })
}

fn count(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Ordering::Relaxed);
}

/// The name of this run: no other one on this machine has it.
fn epoch() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_microsecond()).unwrap_or_default()
}
