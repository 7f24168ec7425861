//! A process table kept as plain data: for fixtures, replays and tests.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;

use crate::{
    Absent, Among, Backend, BootId, Details, ExitWatch, Field, FileId, HidePid, Holders, HostName,
    Listing, OpenFile, Pid, PidNamespace, PidScope, ProbeError, Process, RecordedProcess,
    StartStamp, Still, View,
};

/// The boot id of [`Recorded::initial`].
const BOOT_ID: &str = "0b0071d0-0000-4000-8000-000000000001";

/// A [`Backend`] that answers from data.
///
/// It keeps to the rules of the real ones: a hidden process exists and can't be
/// looked at, a thread's id names no process, a process whose PID has been
/// reused has vanished.
///
/// ```
/// use whosup_process::{Backend, Pid, Recorded, RecordedProcess};
///
/// let world = Recorded::initial()
///     .with(RecordedProcess::new(4711, 8123, 1_790_000_000_000).comm("node"))
///     .hidden(4712);
/// assert!(world.probe(Pid::new(4711)?)?.is_some());
/// assert!(world.probe(Pid::new(4712)?).is_err());
/// assert_eq!(world.probe(Pid::new(4713)?)?, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Recorded {
    scope: PidScope,
    view: View,
    processes: BTreeMap<Pid, RecordedProcess>,
    unreadable: BTreeMap<Pid, Absent>,
    probe_errors: BTreeMap<Pid, ProbeError>,
    threads: BTreeSet<Pid>,
    hidden: BTreeSet<Pid>,
    exited: BTreeSet<Pid>,
    table_error: Option<ProbeError>,
}

impl Recorded {
    /// Starts an empty table.
    #[must_use]
    pub const fn new(scope: PidScope, view: View) -> Self {
        Self {
            scope,
            view,
            processes: BTreeMap::new(),
            unreadable: BTreeMap::new(),
            probe_errors: BTreeMap::new(),
            threads: BTreeSet::new(),
            hidden: BTreeSet::new(),
            exited: BTreeSet::new(),
            table_error: None,
        }
    }

    /// Starts an empty table of the host `devbox`, as root sees it from the
    /// kernel's first namespaces.
    #[must_use]
    pub fn initial() -> Self {
        let scope = PidScope {
            host: Ok(HostName("devbox".to_owned())),
            boot: BootId::parse(BOOT_ID).ok_or(Absent::Unsupported),
            pid_namespace: Ok(PidNamespace::INITIAL),
        };
        let view = View {
            is_proc_ours: Ok(true),
            hide_pid: Ok(HidePid::Off),
            is_everything_shown: Ok(true),
            is_initial_pid_namespace: Ok(true),
            is_initial_time_namespace: Ok(true),
            is_root: true,
            uid: Ok(0),
            booted_at_ms: Ok(1_790_000_000_000),
        };
        Self::new(scope, view)
    }

    /// Adds a process, in place of one that has the same PID.
    #[must_use]
    pub fn with(mut self, process: RecordedProcess) -> Self {
        self.processes.insert(process.process.pid, process);
        self
    }

    /// Adds a process that is listed and can't be read.
    #[must_use]
    pub fn with_unreadable(mut self, pid: i32, reason: Absent) -> Self {
        self.unreadable.insert(Pid::nearest(pid), reason);
        self
    }

    /// Makes every look at this one PID fail; a list still shows it if it is there.
    #[must_use]
    pub fn with_probe_error(mut self, pid: i32, error: ProbeError) -> Self {
        self.probe_errors.insert(Pid::nearest(pid), error);
        self
    }

    /// Adds the id of a thread that is not its process's leader.
    #[must_use]
    pub fn with_thread(mut self, id: i32) -> Self {
        self.threads.insert(Pid::nearest(id));
        self
    }

    /// Adds a process that exists and that the table does not show.
    #[must_use]
    pub fn hidden(mut self, pid: i32) -> Self {
        self.hidden.insert(Pid::nearest(pid));
        self
    }

    /// Lets a process of the list exit before anything more of it is looked at.
    #[must_use]
    pub fn exited_since(mut self, pid: i32) -> Self {
        self.exited.insert(Pid::nearest(pid));
        self
    }

    /// Makes every look at the table fail.
    #[must_use]
    pub fn with_table_error(mut self, error: ProbeError) -> Self {
        self.table_error = Some(error);
        self
    }

    /// Replaces what can be seen from here.
    #[must_use]
    pub fn with_view(mut self, view: View) -> Self {
        self.view = view;
        self
    }

    /// Replaces where a PID of this table means something.
    #[must_use]
    pub fn with_scope(mut self, scope: PidScope) -> Self {
        self.scope = scope;
        self
    }

    fn require_table(&self) -> Result<(), ProbeError> {
        if let Some(error) = &self.table_error {
            return Err(error.clone());
        }
        let root = PathBuf::from("/proc");
        match &self.view.is_proc_ours {
            Ok(true) => Ok(()),
            Ok(false) => Err(ProbeError::NotOurs { root }),
            Err(reason) => Err(ProbeError::File {
                path: root.join("self"),
                reason: reason.clone(),
            }),
        }
    }

    /// The process as it is recorded, unless its PID is another one's by now.
    fn same(&self, process: &Process) -> Field<&RecordedProcess> {
        self.processes
            .get(&process.pid)
            .filter(|recorded| recorded.process.stamp == process.stamp)
            .filter(|_| !self.exited.contains(&process.pid))
            .ok_or(Absent::Vanished)
    }

    fn add_holders(&self, pid: Pid, files: &[FileId], holders: &mut Holders) {
        if let Some(reason) = self.unreadable.get(&pid) {
            holders.unreadable.push((pid, reason.clone()));
        }
        let Some(recorded) = self.processes.get(&pid) else {
            return;
        };
        match &recorded.open_files {
            Ok(open) => {
                let wanted = open.iter().filter(|holder| files.contains(&holder.file));
                holders.found.extend(wanted.cloned());
            }
            Err(Absent::Vanished | Absent::Exited) => {}
            Err(reason) => holders.unreadable.push((pid, reason.clone())),
        }
    }
}

impl Backend for Recorded {
    fn scope(&self) -> PidScope {
        self.scope.clone()
    }

    fn view(&self) -> View {
        self.view.clone()
    }

    fn processes(&self) -> Result<Listing, ProbeError> {
        self.require_table()?;
        let processes = self.processes.values();
        let unreadable = self.unreadable.iter();
        Ok((
            processes.map(|recorded| recorded.process.clone()).collect(),
            unreadable.map(|(pid, why)| (*pid, why.clone())).collect(),
        ))
    }

    fn probe(&self, pid: Pid) -> Result<Option<Process>, ProbeError> {
        self.require_table()?;
        if let Some(error) = self.probe_errors.get(&pid) {
            return Err(error.clone());
        }
        if self.hidden.contains(&pid) {
            return Err(ProbeError::Hidden { pid });
        }
        if let Some(reason) = self.unreadable.get(&pid) {
            let reason = reason.clone();
            return Err(ProbeError::Process { pid, reason });
        }
        if self.threads.contains(&pid) || self.exited.contains(&pid) {
            return Ok(None);
        }
        let recorded = self.processes.get(&pid);
        Ok(recorded.map(|recorded| recorded.process.clone()))
    }

    fn is_thread(&self, pid: Pid) -> Result<bool, ProbeError> {
        self.require_table()?;
        match self.probe_errors.get(&pid) {
            Some(error) => Err(error.clone()),
            None => Ok(self.threads.contains(&pid)),
        }
    }

    fn details(&self, process: &Process) -> Details {
        match self.same(process) {
            Ok(recorded) => recorded.details.clone(),
            Err(reason) => Details::absent(reason),
        }
    }

    fn environment(&self, process: &Process, names: &[&str]) -> Field<Vec<(String, OsString)>> {
        let environment = self.same(process)?.environment.clone()?;
        let wanted = environment.into_iter();
        Ok(wanted
            .filter(|(name, _)| names.contains(&name.as_str()))
            .collect())
    }

    fn open_files(&self, process: &Process) -> Field<Vec<OpenFile>> {
        self.same(process)?.open_paths.clone()
    }

    fn holders(&self, files: &[FileId], among: Among<'_>) -> Result<Holders, ProbeError> {
        self.require_table()?;
        let mut pids: BTreeSet<Pid> = match among {
            Among::All => self.processes.keys().copied().collect(),
            Among::These(pids) => pids.iter().copied().collect(),
        };
        if matches!(among, Among::All) {
            pids.extend(self.unreadable.keys());
        }
        let mut holders = Holders::default();
        for pid in pids {
            self.add_holders(pid, files, &mut holders);
            if self.hidden.contains(&pid) {
                holders.unreadable.push((pid, Absent::PermissionDenied));
            }
        }
        Ok(holders)
    }

    fn is_still(&self, pid: Pid, stamp: &StartStamp) -> Result<Still, ProbeError> {
        let Some(process) = self.probe(pid)? else {
            return Ok(Still::Exited);
        };
        match process.stamp.is_same_as(stamp) {
            Some(true) if !process.is_exited => Ok(Still::Running),
            Some(_) => Ok(Still::Exited),
            None => Err(ProbeError::Process {
                pid,
                reason: Absent::Unsupported,
            }),
        }
    }

    fn watch_exit(&self, _pid: Pid, _stamp: &StartStamp) -> Result<Option<ExitWatch>, ProbeError> {
        Err(ProbeError::Unsupported)
    }
}
