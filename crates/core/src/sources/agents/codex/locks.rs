//! Thread locks: who writes to which thread.
//!
//! Seen in Codex 0.171.0, 2026-11: `thread-writer-locks/ID.lock`, empty, held
//! with flock(2) by the process that runs the thread from its launch on, before
//! any prompt; by the daemon while there is one, for 60 s after its last
//! client left. Removed on a clean end; left behind, not held, when its process
//! was killed, until the next start of Codex. `.coordination.lock` beside them
//! is of no thread.

use std::path::{Path, PathBuf};

use whosup_process::{Absent, Among, Details, FileId, Holders, Pid, Process};
use whosup_sidecar::file::{FileFacts, Links, ReadFileError, facts};
use whosup_sidecar::{AgentId, SessionId};

use super::process::PROGRAMS;
use super::thread_id::is_uuid;
use crate::adapter::{AgentProcess, Look, Program};
use crate::machine::problem::Problem;
use crate::sources::agents::kit::folder::names_in;
use crate::sources::recognize::what_it_runs;

/// How many locks of one home are read.
const LOCKS_MAX: usize = 20_000;

/// The lock of one thread.
#[derive(Debug)]
pub(super) struct ThreadLock {
    /// The thread.
    pub(super) id: SessionId,
    /// The file.
    pub(super) path: PathBuf,
    /// Size, dates and owner of the lock file.
    pub(super) facts: FileFacts,
    /// Processes that hold the lock: Codex processes if there are any, else all others.
    pub(super) holders: Vec<Pid>,
    /// Every process that could hold it was asked.
    pub(super) is_everyone_asked: bool,
}

/// Reads the locks of a home and finds who holds them.
pub(super) fn read_locks(
    look: &Look<'_>,
    home: &Path,
    agent: &AgentId,
    problems: &mut Vec<Problem>,
) -> Vec<ThreadLock> {
    let mut locks = list(home, agent, problems);
    if locks.is_empty() {
        return locks;
    }
    let own: Vec<Pid> = look
        .processes
        .iter()
        .map(|process| process.process.pid)
        .collect();
    if let Err(error) = ask(look, &mut locks, Among::These(&own)) {
        problems.push(Problem::of(agent, error));
        return locks;
    }
    // No Codex process holds these. A look at all processes shows whether another does.
    if locks.iter().any(|lock| lock.holders.is_empty())
        && let Err(error) = ask(look, &mut locks, Among::All)
    {
        problems.push(Problem::of(agent, error));
    }
    locks
}

/// The directory of a home's locks.
pub(super) fn locks_in(home: &Path) -> PathBuf {
    home.join("thread-writer-locks")
}

fn list(home: &Path, agent: &AgentId, problems: &mut Vec<Problem>) -> Vec<ThreadLock> {
    let directory = locks_in(home);
    let names = match names_in(&directory, LOCKS_MAX) {
        Ok(names) => names,
        Err(error) => {
            problems.push(Problem::at(agent, &directory, error));
            return Vec::new();
        }
    };
    if names.is_cut {
        let message = format!("it has more than {LOCKS_MAX} entries: the rest is left out");
        problems.push(Problem::at(agent, &directory, message));
    }
    let mut locks = Vec::new();
    for name in &names.names {
        let path = directory.join(name);
        let Some(id) = name.to_str().and_then(thread_in) else {
            continue;
        };
        match facts(&path, Links::Refuse) {
            Ok(facts) => locks.push(ThreadLock {
                id,
                path,
                facts,
                holders: Vec::new(),
                is_everyone_asked: false,
            }),
            // Let go and removed since it was listed.
            Err(ReadFileError::NotFound { .. }) => {}
            Err(error) => problems.push(Problem::at(agent, &path, error.reason())),
        }
    }
    locks
}

/// The thread in the name of a lock file: `ID.lock`.
fn thread_in(name: &str) -> Option<SessionId> {
    let id = name.strip_suffix(".lock").filter(|id| is_uuid(id))?;
    SessionId::parse(&id.to_ascii_lowercase()).ok()
}

/// Looks for holders of the locks that have none so far, among all processes.
fn ask(
    look: &Look<'_>,
    locks: &mut [ThreadLock],
    among: Among<'_>,
) -> Result<(), whosup_process::ProbeError> {
    let free: Vec<FileId> = locks
        .iter()
        .filter(|lock| lock.holders.is_empty())
        .map(ThreadLock::file)
        .collect();
    let holders = look.machine.table().holders(&free, among)?;
    let is_everyone_asked = matches!(among, Among::All) && !may_hide_a_holder(look, &holders);
    for lock in locks.iter_mut().filter(|lock| lock.holders.is_empty()) {
        lock.is_everyone_asked = is_everyone_asked;
        let held = holders
            .of(lock.file())
            .filter(|holder| !holder.locks.is_empty());
        lock.holders = held.map(|holder| holder.pid).collect();
        lock.holders.sort_unstable();
        lock.holders.dedup();
        // A child that inherited the descriptor holds the file too.
        let is_own = |pid: &Pid| process_of(look.processes, *pid).is_some();
        if lock.holders.iter().any(is_own) {
            lock.holders.retain(is_own);
        }
    }
    Ok(())
}

impl ThreadLock {
    /// The file, as descriptors are compared with it.
    pub(super) fn file(&self) -> FileId {
        FileId {
            device: self.facts.device,
            inode: self.facts.inode,
        }
    }
}

/// The process of Codex with this id.
pub(super) fn process_of(processes: &[AgentProcess], pid: Pid) -> Option<&AgentProcess> {
    processes.iter().find(|process| process.process.pid == pid)
}

/// Returns whether a process that could not be asked may be a Codex process.
///
/// Processes of other users can rarely be asked, but their names show a shell or a server.
fn may_hide_a_holder(look: &Look<'_>, holders: &Holders) -> bool {
    let table = look.machine.table();
    holders.unreadable.iter().any(|(pid, _)| {
        let process = table.seen(*pid);
        process.is_none_or(|process| may_be_codex(process, &what_it_runs(look.machine, process)))
    })
}

fn may_be_codex(process: &Process, details: &Details) -> bool {
    if process.is_kernel_thread || process.is_exited {
        return false;
    }
    let program = Program { process, details };
    if PROGRAMS.recognize(&program).is_some() {
        return true;
    }
    if program.exe().is_some() {
        return false;
    }
    let names = |bytes: &[u8]| {
        bytes
            .windows("codex".len())
            .any(|window| window.eq_ignore_ascii_case(b"codex"))
    };
    match &details.argv {
        Ok(argv) => names(&process.comm) || argv.iter().any(|arg| names(arg.as_encoded_bytes())),
        Err(Absent::Vanished | Absent::Exited) => false,
        Err(_) => true,
    }
}
