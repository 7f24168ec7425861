//! Removes locks and empty logs of sessions of which nothing else is left.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use whosup_core::machine::Machine;
use whosup_core::machine::problem::Problem;
use whosup_core::sidecar::own_directory::is_temporary;
use whosup_core::sidecar::{AgentId, SessionId};

use super::{SweepOptions, SweepReport};
use crate::shorten::{remove_if_there, take_away};
use crate::{SessionFiles, SessionLock, Store, TrackError};

/// How many agents have records.
const AGENTS_MAX: usize = 256;
/// How many files of an agent's records are looked at.
const ENTRIES_MAX: usize = 300_000;
/// How many locks one sweep removes at most; the next sweep continues.
const REMOVED_MAX: usize = 10_000;
/// The age at which a temporary file is certainly left over: no write takes so long.
const LEFT_OVER_AFTER: Duration = Duration::from_secs(3600);
/// What the names end with of what may be left: hooks make the log, and then the
/// lock, and may be killed before they have written anything.
const SUFFIXES: [&str; 2] = [".lock", ".jsonl"];

/// Removes the locks and empty logs that are older than records are kept and have
/// no session.
pub(super) fn remove_old(
    store: &Store,
    machine: &Machine,
    options: &SweepOptions,
    report: &mut SweepReport,
) {
    if options.is_dry_run {
        return;
    }
    let mut left = REMOVED_MAX;
    for agent in names_in(store.root(), AGENTS_MAX) {
        let Some(agent) = agent.to_str().and_then(|name| AgentId::parse(name).ok()) else {
            continue;
        };
        let directory = store.root().join(agent.as_str());
        let names = names_in(&directory, ENTRIES_MAX);
        remove_temporaries(&directory, &names, machine, &agent, report);
        for session in lone(&names) {
            let files = store.files_of(&agent, &session);
            let is_old = |path: &PathBuf| is_old_and_empty(path, machine, options.keep_ended);
            if left == 0 || ![&files.lock, &files.log].into_iter().all(is_old) {
                continue;
            }
            left -= 1;
            if let Err(error) = remove(&files) {
                report
                    .problems
                    .push(Problem::at(&agent, &files.lock, error));
            }
        }
    }
}

/// The names in a directory. An unreadable directory was reported when it was read for
/// records.
fn names_in(directory: &Path, entries_max: usize) -> Vec<OsString> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    let entries = entries.take(entries_max).filter_map(Result::ok);
    entries.map(|entry| entry.file_name()).collect()
}

/// The sessions of a directory that have a lock or a log and no other file.
fn lone(names: &[OsString]) -> Vec<SessionId> {
    let names: BTreeSet<&str> = names.iter().filter_map(|name| name.to_str()).collect();
    let mut stems = BTreeSet::new();
    for suffix in SUFFIXES {
        stems.extend(names.iter().filter_map(|name| name.strip_suffix(suffix)));
    }
    let is_lone = |stem: &&str| {
        let others = ["json", "old"];
        others
            .iter()
            .all(|other| !names.contains(format!("{stem}.{other}").as_str()))
    };
    let lone = stems.into_iter().filter(is_lone);
    lone.filter_map(|stem| SessionId::parse(stem).ok())
        .collect()
}

/// What is empty was never written to: it was last modified when it was made. So is
/// what is not there at all.
fn is_old_and_empty(path: &Path, machine: &Machine, keep: Duration) -> bool {
    let facts = match std::fs::symlink_metadata(path) {
        Ok(facts) => facts,
        Err(error) => return error.kind() == std::io::ErrorKind::NotFound,
    };
    let age = age_of(&facts, machine);
    facts.is_file() && facts.len() == 0 && age.is_some_and(|age| age > keep)
}

/// How long ago a file was last modified.
fn age_of(facts: &std::fs::Metadata, machine: &Machine) -> Option<Duration> {
    let modified = facts.modified().ok()?;
    let modified = modified.duration_since(std::time::UNIX_EPOCH).ok()?;
    let now_ms = u64::try_from(machine.now_ms()).ok()?;
    Duration::from_millis(now_ms).checked_sub(modified)
}

/// Removes what was about to replace a file when its writer was killed.
fn remove_temporaries(
    directory: &Path,
    names: &[OsString],
    machine: &Machine,
    agent: &AgentId,
    report: &mut SweepReport,
) {
    let names = names.iter().filter_map(|name| name.to_str());
    for name in names.filter(|name| is_temporary(name)) {
        let path = directory.join(name);
        let facts = std::fs::symlink_metadata(&path).ok();
        let age = facts.and_then(|facts| age_of(&facts, machine));
        if age.is_some_and(|age| age > LEFT_OVER_AFTER)
            && let Err(error) = remove_if_there(&path)
        {
            report.problems.push(Problem::at(agent, &path, error));
        }
    }
}

/// Removes a lock under itself, if there is still nothing else of its session.
///
/// A process that waits for the lock finds that it is no longer at its path, and takes
/// the lock that is there then ([`SessionLock::take`]). Nothing is touched here after the
/// lock is gone, so two holders never act on one session. Events that come meanwhile are
/// appended without the lock, and stay: a writer checks whether the log is still there,
/// and appends again.
pub(crate) fn remove(files: &SessionFiles) -> Result<bool, TrackError> {
    let Some(lock) = SessionLock::take(files, Duration::ZERO)? else {
        return Ok(false);
    };
    let others = [&files.record, &files.old_log];
    let is_there = |path: &&PathBuf| std::fs::symlink_metadata(path).is_ok();
    let log = std::fs::symlink_metadata(&files.log);
    let is_heard_of = log.is_ok_and(|log| !log.is_file() || log.len() > 0);
    if is_heard_of || others.iter().any(is_there) || !take_away(files, &lock)? {
        return Ok(false);
    }
    remove_if_there(&files.lock)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use whosup_core::machine::Environment;

    use super::*;

    /// How many threads take the lock.
    const TAKERS: usize = 4;
    /// How often each takes it.
    const ROUNDS: usize = 2_000;

    #[test]
    fn a_lock_that_is_removed_all_the_time_never_has_two_holders() {
        let directory = tempfile::tempdir().unwrap();
        let environment = Environment::new(Some(directory.path().to_owned()), None, []);
        let store = Store::of(&environment).unwrap();
        let agent = AgentId::parse("claude-code").unwrap();
        let files = store.files_of(&agent, &SessionId::parse("s1").unwrap());
        let is_held = AtomicBool::new(false);
        let takers = AtomicUsize::new(TAKERS);
        let removed = std::thread::scope(|threads| {
            for _ in 0..TAKERS {
                threads.spawn(|| {
                    for _ in 0..ROUNDS {
                        let lock = SessionLock::take(&files, Duration::from_secs(60)).unwrap();
                        let lock = lock.expect("the lock within a minute");
                        assert!(!is_held.swap(true, Ordering::SeqCst), "two holders");
                        std::thread::yield_now();
                        assert!(is_held.swap(false, Ordering::SeqCst), "two holders");
                        drop(lock);
                    }
                    takers.fetch_sub(1, Ordering::SeqCst);
                });
            }
            let remover = threads.spawn(|| {
                let mut removed = 0;
                while takers.load(Ordering::SeqCst) > 0 {
                    removed += usize::from(remove(&files).unwrap());
                }
                removed
            });
            remover.join().unwrap()
        });
        assert!(removed > 10, "removed {removed} times: that proves little");
        eprintln!("{} taken, {removed} removed", TAKERS * ROUNDS);
    }

    #[test]
    fn a_lock_is_not_removed_while_it_is_held_nor_beside_what_came_meanwhile() {
        let directory = tempfile::tempdir().unwrap();
        let environment = Environment::new(Some(directory.path().to_owned()), None, []);
        let store = Store::of(&environment).unwrap();
        let agent = AgentId::parse("claude-code").unwrap();
        let files = store.files_of(&agent, &SessionId::parse("s1").unwrap());
        let lock = SessionLock::take(&files, Duration::ZERO).unwrap().unwrap();
        assert!(!remove(&files).unwrap(), "it is held");
        drop(lock);
        for path in [&files.record, &files.log, &files.old_log] {
            std::fs::write(path, "{}").unwrap();
            assert!(!remove(&files).unwrap(), "{}", path.display());
            assert!(files.lock.exists());
            std::fs::remove_file(path).unwrap();
        }
        std::fs::write(&files.log, "").unwrap();
        assert!(remove(&files).unwrap());
        assert!(!files.lock.exists() && !files.log.exists() && !files.old_log.exists());
    }
}
