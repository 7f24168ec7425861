//! Records what a supervisor knows for certain, because it started and reaped a process:
//! that the process began, and how it ended.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use whosup_core::adapter::hook_event::{EventKind, StartSource};
use whosup_core::machine::mounts::Mounts;
use whosup_core::process::{Backend, Pid, Process};
use whosup_core::sources::record::{
    EndCause, LoggedEnd, LoggedEvent, RecordedOwner, SessionRecord,
};

use crate::append::append;
use crate::end::{Ended, end_session};
use crate::git::branch_of;
use crate::{SessionFiles, SessionLock, TrackError, refresh};

/// How long a supervisor waits for another writer of the record.
const LOCK_PATIENCE: std::time::Duration = std::time::Duration::from_millis(40);

/// A process that a supervisor runs, and the session that it serves.
#[derive(Debug)]
pub struct Supervised {
    noted: AtomicU64,
    files: SessionFiles,
    home: PathBuf,
    work_dir: PathBuf,
    owner: RecordedOwner,
}

impl Supervised {
    /// A child of this process, which it has not reaped yet: so the PID is not reused.
    #[must_use]
    pub fn of(
        process: &Process,
        backend: &dyn Backend,
        files: SessionFiles,
        home: PathBuf,
        work_dir: PathBuf,
    ) -> Self {
        let scope = backend.scope();
        let owner = RecordedOwner {
            pid: process.pid,
            stamp: Some(process.stamp.clone()),
            host: scope.host.ok().map(|host| host.0),
            boot: scope.boot.ok(),
            pid_namespace: scope.pid_namespace.ok(),
            // It may be a script that becomes another program in the end (`exec`).
            executable: None,
            is_shared: false,
            is_unrecognized: false,
        };
        Self {
            noted: AtomicU64::new(0),
            files,
            home,
            work_dir,
            owner,
        }
    }

    /// Records that the process has begun to serve the session.
    ///
    /// # Errors
    ///
    /// [`TrackError`] if it could not be written down.
    pub fn note_start(&self, now_ms: i64) -> Result<(), TrackError> {
        let mut event = self.event(EventKind::SessionStarted(StartSource::Run), now_ms);
        event.work_dir = Some(self.work_dir.clone());
        let mounts = Mounts::of_this_machine();
        // The process was started there, so the caller relies on the directory.
        mounts.rely_on(&self.work_dir);
        event.git_branch = branch_of(&self.work_dir, &mounts);
        self.note(&event)
    }

    /// Records what the process has announced of the conversation.
    ///
    /// # Errors
    ///
    /// [`TrackError`] if it could not be written down.
    pub fn note_event(&self, kind: EventKind, now_ms: i64) -> Result<(), TrackError> {
        self.note(&self.event(kind, now_ms))
    }

    fn note(&self, event: &LoggedEvent) -> Result<(), TrackError> {
        append(&self.files, event)?;
        match SessionLock::take(&self.files, LOCK_PATIENCE)? {
            Some(lock) => refresh(&self.files, &lock).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Records how the process has ended: the caller has reaped it. Returns the record
    /// if the caller is to pass that end on.
    ///
    /// # Errors
    ///
    /// [`TrackError`] if it could not be written down.
    pub fn note_exit(
        &self,
        how: &str,
        cause: EndCause,
        now_ms: i64,
    ) -> Result<Option<SessionRecord>, TrackError> {
        let mut event = self.event(EventKind::SessionEnded, now_ms);
        event.reason = Some(how.to_owned());
        event.end = Some(LoggedEnd {
            cause,
            ended_at_ms: now_ms,
        });
        let ended = end_session(&self.files, &event, None)?;
        Ok(match ended {
            Ended::Now(record) => Some(*record),
            Ended::Already | Ended::GoesOn | Ended::Noted => None,
        })
    }

    fn event(&self, kind: EventKind, at_ms: i64) -> LoggedEvent {
        let supervisor = Pid::own();
        let number = self.noted.fetch_add(1, Ordering::Relaxed);
        LoggedEvent {
            id: format!("run-{supervisor}-{}-{at_ms}-{number}", self.owner.pid),
            at_ms,
            kind,
            home: self.home.clone(),
            owner: Some(self.owner.clone()),
            chain: Vec::new(),
            has_left: false,
            work_dir: None,
            git_branch: None,
            transcript: None,
            prompt: None,
            reason: None,
            pane: None,
            cpu_ms: None,
            is_aftermath: false,
            end: None,
        }
    }
}
