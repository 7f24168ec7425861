//! The backend of an unsupported platform: every question fails.

use std::ffi::OsString;

use crate::{
    Absent, Among, Backend, Details, ExitWatch, Field, FileId, Holders, Listing, Pid, PidScope,
    ProbeError, Process, StartStamp, Still, View,
};

/// A backend that answers "cannot look" to every question.
///
/// It never reports that a process does not exist.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unsupported;

impl Backend for Unsupported {
    fn scope(&self) -> PidScope {
        PidScope {
            host: Err(Absent::Unsupported),
            boot: Err(Absent::Unsupported),
            pid_namespace: Err(Absent::Unsupported),
        }
    }

    fn view(&self) -> View {
        View {
            is_proc_ours: Err(Absent::Unsupported),
            hide_pid: Err(Absent::Unsupported),
            is_everything_shown: Err(Absent::Unsupported),
            is_initial_pid_namespace: Err(Absent::Unsupported),
            is_initial_time_namespace: Err(Absent::Unsupported),
            is_root: false,
            uid: Err(Absent::Unsupported),
            booted_at_ms: Err(Absent::Unsupported),
        }
    }

    fn processes(&self) -> Result<Listing, ProbeError> {
        Err(ProbeError::Unsupported)
    }

    fn probe(&self, _pid: Pid) -> Result<Option<Process>, ProbeError> {
        Err(ProbeError::Unsupported)
    }

    fn is_thread(&self, _pid: Pid) -> Result<bool, ProbeError> {
        Err(ProbeError::Unsupported)
    }

    fn details(&self, _process: &Process) -> Details {
        Details::absent(Absent::Unsupported)
    }

    fn environment(&self, _process: &Process, _names: &[&str]) -> Field<Vec<(String, OsString)>> {
        Err(Absent::Unsupported)
    }

    fn holders(&self, _files: &[FileId], _among: Among<'_>) -> Result<Holders, ProbeError> {
        Err(ProbeError::Unsupported)
    }

    fn is_still(&self, _pid: Pid, _stamp: &StartStamp) -> Result<Still, ProbeError> {
        Err(ProbeError::Unsupported)
    }

    fn watch_exit(&self, _pid: Pid, _stamp: &StartStamp) -> Result<Option<ExitWatch>, ProbeError> {
        Err(ProbeError::Unsupported)
    }
}

/// It can't be known whether this process ignores a signal.
#[cfg(not(target_os = "linux"))]
pub(super) const fn is_signal_ignored(_signal: i32) -> bool {
    false
}
