//! What the processes of live sessions use: processor time, memory, threads, storage.
//!
//! [`Sample`] holds the counters of one look at the process table; [`used`] compares two
//! of them. A process counts for one session only: for the nearest owner above it. What a
//! daemon that serves several sessions uses belongs to none of them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use whosup_process::{Absent, Pid, Process, StartStamp, StorageBytes};

use crate::adapter::claim::SessionKey;
use crate::judging::verdict::Liveness;
use crate::machine::Machine;
use crate::sessions::session::Session;

/// How many processes of a session are counted; with more, only the owner is.
const TREE_MAX: usize = 4_096;

/// What a live session uses.
#[derive(Debug, Clone, PartialEq)]
pub struct Resources {
    /// The owner serves several sessions: the numbers are for all of them together.
    pub is_shared: bool,
    /// The owner alone.
    pub owner: ProcessUse,
    /// The owner and the processes below it that belong to no other session. `None` if
    /// the owner is shared, or if there are too many.
    pub tree: Option<TreeUse>,
}

/// What one process uses. What could not be read is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ProcessUse {
    /// Share of one processor, in percent, between two looks.
    pub cpu_percent: Option<f64>,
    /// Processor time so far.
    pub cpu: Option<Duration>,
    /// Resident memory.
    pub rss_bytes: Option<u64>,
    /// Resident memory, shared parts divided among the processes that share them.
    pub pss_bytes: Option<u64>,
    /// Storage, with that of children that have exited.
    pub storage: Option<StorageBytes>,
    /// Threads.
    pub threads: u32,
}

/// What a process and those below it use.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TreeUse {
    /// How many processes.
    pub processes: usize,
    /// Share of one processor, in percent, between two looks; more than 100 if several are busy.
    pub cpu_percent: Option<f64>,
    /// Processor time so far, without that of processes that have exited.
    pub cpu: Option<Duration>,
    /// Resident memory; parts that they share are counted for each of them.
    pub rss_bytes: Option<u64>,
}

/// A live session, and its owner, for measuring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metered {
    /// The session.
    pub key: SessionKey,
    /// The owner.
    pub pid: Pid,
    /// When the owner began.
    pub stamp: StartStamp,
    /// The owner serves other sessions too.
    pub is_shared: bool,
}

impl Metered {
    /// `None` for a session that is not live or has no known owner, and for a sub-agent,
    /// which runs in a process of its parent.
    #[must_use]
    pub fn of(session: &Session) -> Option<Self> {
        let owner = session.owner.as_ref()?;
        let is_measured = session.liveness() == Liveness::Live && session.sketch.parent.is_none();
        is_measured.then(|| Self {
            key: session.key.clone(),
            pid: owner.pid,
            stamp: owner.stamp.clone(),
            is_shared: session.is_owner_shared,
        })
    }
}

/// What is read besides the process table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Nothing: cheap enough to be repeated every second.
    Table,
    /// [`ProcessUse::pss_bytes`] and [`ProcessUse::storage`] of owners too. The first
    /// takes milliseconds for a large process and may hold it up meanwhile.
    Owners,
}

/// Measures the same sessions again and again, each time since the last.
#[derive(Debug, Default)]
pub struct Meter {
    before: Option<Sample>,
}

impl Meter {
    /// Measures; percentages are `None` the first time.
    pub fn measure(
        &mut self,
        machine: &Machine,
        metered: &[Metered],
        detail: Detail,
    ) -> BTreeMap<SessionKey, Resources> {
        let now = Sample::take(machine, metered, detail);
        let before = self.before.as_ref();
        let measured = now.as_ref().map(|now| used(before, now, metered));
        self.before = now;
        measured.unwrap_or_default()
    }

    /// Measures sessions, and stores the results in them.
    pub fn fill(&mut self, machine: &Machine, sessions: &mut [Session], detail: Detail) {
        let metered: Vec<Metered> = sessions.iter().filter_map(Metered::of).collect();
        let mut measured = self.measure(machine, &metered, detail);
        for session in sessions {
            session.resources = measured.remove(&session.key);
        }
    }
}

/// The counters of every process at one time.
#[derive(Debug)]
pub struct Sample {
    /// By a clock that can't be set; `None` if it is not known when the kernel began.
    since_boot_ms: Option<i64>,
    processes: BTreeMap<Pid, Counted>,
    /// Processes that exist and could not be read.
    unreadable: BTreeSet<Pid>,
}

#[derive(Debug)]
struct Counted {
    process: Process,
    pss_bytes: Option<u64>,
    storage: Option<StorageBytes>,
}

impl Sample {
    /// Reads the counters; `None` if the process table could not be read.
    #[must_use]
    pub fn take(machine: &Machine, metered: &[Metered], detail: Detail) -> Option<Self> {
        let table = machine.table();
        let booted_at_ms = table.view().booted_at_ms.as_ref().ok();
        let counted = |process: &Process| Counted {
            process: process.clone(),
            pss_bytes: None,
            storage: None,
        };
        let processes = table.processes().ok()?.iter();
        let mut sample = Self {
            since_boot_ms: booted_at_ms.and_then(|booted| machine.now_ms().checked_sub(*booted)),
            processes: processes
                .map(|process| (process.pid, counted(process)))
                .collect(),
            unreadable: table.unreadable().iter().map(|(pid, _)| *pid).collect(),
        };
        if detail == Detail::Owners {
            for one in metered {
                if let Some(owner) = sample.processes.get_mut(&one.pid) {
                    let backend = table.backend();
                    owner.pss_bytes = backend.pss_bytes(&owner.process).ok();
                    owner.storage = backend.storage_bytes(&owner.process).ok();
                }
            }
        }
        Some(sample)
    }

    /// The process of a session, unless it has exited or another has its PID.
    fn owner(&self, one: &Metered) -> Option<&Counted> {
        let counted = self.processes.get(&one.pid)?;
        let is_owner = counted.process.stamp == one.stamp && !counted.process.is_exited;
        is_owner.then_some(counted)
    }

    /// The children of each process. A parent that is younger than its child has a reused PID.
    fn children(&self) -> HashMap<Pid, Vec<&Counted>> {
        let mut children: HashMap<Pid, Vec<&Counted>> = HashMap::new();
        for counted in self.processes.values() {
            let parent = counted
                .process
                .ppid
                .and_then(|ppid| self.processes.get(&ppid));
            if let Some(parent) = parent.map(|parent| &parent.process)
                && !is_younger(parent, &counted.process)
            {
                children.entry(parent.pid).or_default().push(counted);
            }
        }
        children
    }
}

fn is_younger(one: &Process, other: &Process) -> bool {
    match (&one.began_at_ms, &other.began_at_ms) {
        (Ok(one), Ok(other)) => one > other,
        _ => false,
    }
}

/// What each session uses `now`, and used since `before`. Pure.
#[must_use]
pub fn used(
    before: Option<&Sample>,
    now: &Sample,
    metered: &[Metered],
) -> BTreeMap<SessionKey, Resources> {
    let mut sessions_of: HashMap<Pid, usize> = HashMap::new();
    for one in metered {
        *sessions_of.entry(one.pid).or_default() += 1;
    }
    let children = now.children();
    let since = Since { before, now };
    let measured = metered.iter().filter_map(|one| {
        let owner = now.owner(one)?;
        let is_shared = one.is_shared || sessions_of.get(&one.pid) > Some(&1);
        let tree = if is_shared {
            None
        } else {
            tree(owner, &children, |pid| sessions_of.contains_key(&pid))
        };
        let resources = Resources {
            is_shared,
            owner: since.process(owner),
            tree: tree.map(|tree| since.tree(&tree)),
        };
        Some((one.key.clone(), resources))
    });
    measured.collect()
}

/// An owner and all below it down to other owners; `None` if there are too many.
fn tree<'a>(
    owner: &'a Counted,
    children: &HashMap<Pid, Vec<&'a Counted>>,
    is_owner: impl Fn(Pid) -> bool,
) -> Option<Vec<&'a Counted>> {
    let mut tree = vec![owner];
    let mut at = 0;
    while let Some(counted) = tree.get(at) {
        let below = children.get(&counted.process.pid).into_iter().flatten();
        tree.extend(below.filter(|child| !is_owner(child.process.pid)));
        if tree.len() > TREE_MAX {
            return None;
        }
        at = at.saturating_add(1);
    }
    Some(tree)
}

/// Two samples.
#[derive(Clone, Copy)]
struct Since<'a> {
    before: Option<&'a Sample>,
    now: &'a Sample,
}

impl Since<'_> {
    fn process(self, counted: &Counted) -> ProcessUse {
        let process = &counted.process;
        ProcessUse {
            cpu_percent: self.cpu_percent(process),
            cpu: cpu(process),
            rss_bytes: process.rss_bytes.as_ref().ok().copied(),
            pss_bytes: counted.pss_bytes,
            storage: counted.storage,
            threads: process.threads,
        }
    }

    /// A sum is known only if each of its parts is.
    fn tree(self, tree: &[&Counted]) -> TreeUse {
        let processes = || tree.iter().map(|counted| &counted.process);
        TreeUse {
            processes: tree.len(),
            cpu_percent: processes().map(|process| self.cpu_percent(process)).sum(),
            cpu: processes().try_fold(Duration::ZERO, |sum, one| sum.checked_add(cpu(one)?)),
            rss_bytes: processes().try_fold(0, |sum: u64, one| sum.checked_add(memory(one)?)),
        }
    }

    fn cpu_percent(self, process: &Process) -> Option<f64> {
        let before = self.before?;
        let passed_ms = self.now.since_boot_ms?.checked_sub(before.since_boot_ms?)?;
        let passed = Duration::from_millis(u64::try_from(passed_ms).ok()?);
        let used_before = match before.processes.get(&process.pid) {
            Some(counted) if counted.process.stamp == process.stamp => cpu(&counted.process)?,
            None if before.unreadable.contains(&process.pid) => return None,
            // It has started since.
            _ => Duration::ZERO,
        };
        let used = cpu(process)?.saturating_sub(used_before);
        (!passed.is_zero()).then(|| used.as_secs_f64() / passed.as_secs_f64() * 100.0)
    }
}

fn cpu(process: &Process) -> Option<Duration> {
    process
        .cpu_ms
        .as_ref()
        .ok()
        .copied()
        .map(Duration::from_millis)
}

/// A process that has exited and was not reaped has no memory.
fn memory(process: &Process) -> Option<u64> {
    match &process.rss_bytes {
        Ok(bytes) => Some(*bytes),
        Err(Absent::Exited) => Some(0),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests;
