//! The process table of a demo: only the demo's own processes.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::sync::Arc;

use whosup_core::process::{
    Absent, Among, Backend, Details, ExitWatch, Field, FileId, HidePid, Holders, Listing, OpenFile,
    Pid, PidScope, ProbeError, Process, StartStamp, Still, View,
};

/// A [`Backend`] that shows only some processes of another.
#[derive(Debug)]
pub(super) struct OnlyThese {
    inner: Arc<dyn Backend>,
    pids: BTreeSet<Pid>,
}

impl OnlyThese {
    pub(super) fn new(inner: Arc<dyn Backend>, pids: impl IntoIterator<Item = Pid>) -> Self {
        Self {
            inner,
            pids: pids.into_iter().collect(),
        }
    }

    fn has(&self, pid: Pid) -> bool {
        self.pids.contains(&pid)
    }
}

impl Backend for OnlyThese {
    fn scope(&self) -> PidScope {
        self.inner.scope()
    }

    /// There are no other processes that could be hidden.
    fn view(&self) -> View {
        View {
            hide_pid: Ok(HidePid::Off),
            is_everything_shown: Ok(true),
            is_initial_pid_namespace: Ok(true),
            is_initial_time_namespace: Ok(true),
            ..self.inner.view()
        }
    }

    fn processes(&self) -> Result<Listing, ProbeError> {
        let (mut processes, mut unreadable) = self.inner.processes()?;
        processes.retain(|process| self.has(process.pid));
        unreadable.retain(|(pid, _)| self.has(*pid));
        Ok((processes, unreadable))
    }

    fn probe(&self, pid: Pid) -> Result<Option<Process>, ProbeError> {
        if self.has(pid) {
            self.inner.probe(pid)
        } else {
            Ok(None)
        }
    }

    fn is_thread(&self, _pid: Pid) -> Result<bool, ProbeError> {
        // Its processes have one thread each.
        Ok(false)
    }

    fn details(&self, process: &Process) -> Details {
        if self.has(process.pid) {
            self.inner.details(process)
        } else {
            Details::absent(Absent::Vanished)
        }
    }

    fn open_files(&self, process: &Process) -> Field<Vec<OpenFile>> {
        if self.has(process.pid) {
            self.inner.open_files(process)
        } else {
            Err(Absent::Vanished)
        }
    }

    fn environment(&self, process: &Process, names: &[&str]) -> Field<Vec<(String, OsString)>> {
        if self.has(process.pid) {
            self.inner.environment(process, names)
        } else {
            Err(Absent::Vanished)
        }
    }

    fn holders(&self, files: &[FileId], among: Among<'_>) -> Result<Holders, ProbeError> {
        let pids: Vec<Pid> = match among {
            Among::All => self.pids.iter().copied().collect(),
            Among::These(pids) => {
                let its = pids.iter().copied();
                its.filter(|pid| self.has(*pid)).collect()
            }
        };
        self.inner.holders(files, Among::These(&pids))
    }

    fn is_still(&self, pid: Pid, stamp: &StartStamp) -> Result<Still, ProbeError> {
        if self.has(pid) {
            self.inner.is_still(pid, stamp)
        } else {
            Ok(Still::Exited)
        }
    }

    fn watch_exit(&self, pid: Pid, stamp: &StartStamp) -> Result<Option<ExitWatch>, ProbeError> {
        if self.has(pid) {
            self.inner.watch_exit(pid, stamp)
        } else {
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests {
    use whosup_core::process::{Recorded, RecordedProcess};

    use super::*;

    #[test]
    fn others_are_not_there() {
        let process = |pid| RecordedProcess::new(pid, 1, 0);
        let pid = |raw| Pid::new(raw).unwrap();
        let all = Recorded::initial()
            .with(process(7))
            .with(process(8))
            .hidden(9);
        let other = all.probe(pid(8)).unwrap().unwrap();
        let these = OnlyThese::new(Arc::new(all), [pid(7)]);
        let (listed, unreadable) = these.processes().unwrap();
        assert_eq!(listed.len(), 1);
        assert!(unreadable.is_empty());
        assert!(these.probe(pid(7)).unwrap().is_some());
        assert_eq!(these.probe(pid(8)), Ok(None));
        assert_eq!(these.probe(pid(9)), Ok(None));
        assert_eq!(these.details(&other).argv, Err(Absent::Vanished));
        assert!(
            these
                .holders(&[], Among::All)
                .unwrap()
                .unreadable
                .is_empty()
        );
    }
}
