//! Which process is announced, by everything that names it for ever.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use whosup_process::{
    Absent, Backend, BootId, NamedProcess, Pid, PidNamespace, Presence, StampKind, StartStamp,
    system_backend,
};

use super::WriteError;
use super::lock::lock_briefly;
use crate::{Sidecar, SidecarPid};

/// A process, by everything that names it for ever, as far as it can be read.
#[derive(Debug, Clone)]
pub(super) struct Identity {
    pub(super) pid: Pid,
    pub(super) hostname: String,
    pub(super) stamp: Option<StartStamp>,
    pub(super) boot_id: Option<BootId>,
    pub(super) pid_namespace: Option<PidNamespace>,
    pub(super) executable: Option<PathBuf>,
}

/// Ours, read once. A forked child has another PID and reads its own.
static OWN: Mutex<Option<Arc<Identity>>> = Mutex::new(None);

impl Identity {
    /// This process. What can't be read is left out: then readers have less to go by.
    pub(super) fn own() -> Arc<Self> {
        let Some(mut kept) = lock_briefly(&OWN) else {
            return Arc::new(Self::read(&*system_backend(), Pid::own()));
        };
        match &*kept {
            Some(identity) if identity.pid == Pid::own() => Arc::clone(identity),
            _ => Arc::clone(kept.insert(Arc::new(Self::read(&*system_backend(), Pid::own())))),
        }
    }

    /// Another process, which must be there.
    pub(super) fn of(pid: Pid) -> Result<Arc<Self>, WriteError> {
        let backend = system_backend();
        match backend.probe(pid) {
            Ok(None) => Err(WriteError::NoSuchProcess { pid }),
            // It may be a script that becomes another program in the end (`exec`): what it
            // executes now is no mark of it.
            Ok(Some(_)) | Err(_) => Ok(Arc::new(Self {
                executable: None,
                ..Self::read(&*backend, pid)
            })),
        }
    }

    fn read(backend: &dyn Backend, pid: Pid) -> Self {
        let scope = backend.scope();
        let view = backend.view();
        let process = backend.probe(pid).ok().flatten();
        let details = process.as_ref().map(|process| backend.details(process));
        // In a time namespace of its own a process reads another stamp than
        // everybody else does of it.
        let is_stamp_for_all = matches!(
            view.is_initial_time_namespace,
            Ok(true) | Err(Absent::Unsupported)
        );
        Self {
            pid,
            hostname: scope.host.map(|host| host.0).unwrap_or_default(),
            stamp: process
                .filter(|_| is_stamp_for_all)
                .map(|process| process.stamp),
            boot_id: scope.boot.ok(),
            pid_namespace: scope.pid_namespace.ok(),
            executable: details
                .filter(|details| !details.is_exe_deleted)
                .and_then(|details| details.exe.ok()),
        }
    }

    /// Returns whether a sidecar names this very process.
    pub(super) fn is_named_by(&self, sidecar: &Sidecar) -> bool {
        sidecar.pid == SidecarPid::Process(self.pid)
            && self.stamp.is_some()
            && sidecar.process_start == self.stamp
            && sidecar.boot_id == self.boot_id
            && sidecar.pid_namespace == self.pid_namespace
    }
}

/// Returns whether the process that a sidecar names is provably gone.
pub(super) fn is_gone(sidecar: &Sidecar, is_file_shared: bool) -> bool {
    let SidecarPid::Process(pid) = sidecar.pid else {
        return true;
    };
    let named = NamedProcess {
        host: Some(sidecar.hostname.as_str()).filter(|host| !host.is_empty()),
        boot: sidecar.boot_id.as_ref(),
        pid_namespace: sidecar.pid_namespace,
        pid,
        stamp: sidecar.process_start.as_ref(),
        platform: sidecar.process_start_kind.map(StampKind::platform),
        dated_at_ms: Some(sidecar.started_at_ms),
        is_file_shared,
    };
    named.presence(&system_backend()) == Presence::Exited
}
