//! A process table kept as plain data: for fixtures, replays and tests.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;

use crate::{
    Absent, Access, Among, Backend, BootId, Details, ExitWatch, Field, FileId, HidePid, Holder,
    Holders, HostName, LockKind, Pid, PidNamespace, PidScope, ProbeError, Process, RunState,
    StartStamp, Still, Tty, View,
};

/// The boot id of [`Recorded::initial`].
const BOOT_ID: &str = "0b0071d0-0000-4000-8000-000000000001";

/// The memory that a [`RecordedProcess`] has unless it is told otherwise.
const RSS_BYTES: u64 = 32 * 1024 * 1024;

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

    fn processes(&self) -> Result<(Vec<Process>, Vec<(Pid, Absent)>), ProbeError> {
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
        if self.threads.contains(&pid) {
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

/// One process of a [`Recorded`] table, and all that it tells.
///
/// The fields are open: set one to `Err(reason)` for what can't be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedProcess {
    /// What its `stat` tells.
    pub process: Process,
    /// What it tells beyond that.
    pub details: Details,
    /// Its environment, all of it.
    pub environment: Field<Vec<(String, OsString)>>,
    /// Its open files.
    pub open_files: Field<Vec<Holder>>,
}

impl RecordedProcess {
    /// Starts a sleeping process of root, a child of PID 1, without a terminal,
    /// in the kernel's first PID namespace. A number below 1 is no PID and is taken as 1.
    #[must_use]
    pub fn new(pid: i32, ticks: u64, began_at_ms: i64) -> Self {
        let pid = Pid::nearest(pid);
        let process = Process {
            pid,
            ppid: (pid.get() != 1).then(|| Pid::nearest(1)),
            run_state: RunState::Sleeping,
            is_exited: false,
            is_kernel_thread: false,
            threads: 1,
            stamp: StartStamp::LinuxTicks(ticks),
            began_at_ms: Ok(began_at_ms),
            rss_bytes: Ok(RSS_BYTES),
            tty: None,
            process_group: pid.get(),
            unix_session: pid.get(),
            foreground_group: -1,
            comm: b"sh".to_vec(),
        };
        let details = Details {
            argv: Ok(vec![OsString::from("sh")]),
            title: Ok(None),
            exe: Ok(PathBuf::from("/bin/sh")),
            is_exe_deleted: false,
            cwd: Ok(PathBuf::from("/")),
            uid: Ok(0),
            inner_pids: Ok(vec![pid]),
            pid_namespace: Ok(PidNamespace::INITIAL),
        };
        Self {
            process,
            details,
            environment: Ok(Vec::new()),
            open_files: Ok(Vec::new()),
        }
    }

    /// Sets its name as the kernel has it.
    #[must_use]
    pub fn comm(mut self, comm: impl AsRef<[u8]>) -> Self {
        self.process.comm = comm.as_ref().to_vec();
        self
    }

    /// Sets its arguments.
    #[must_use]
    pub fn argv(mut self, argv: &[&str]) -> Self {
        self.details.argv = Ok(argv.iter().map(OsString::from).collect());
        self
    }

    /// Sets the file that it executes.
    #[must_use]
    pub fn exe(mut self, exe: impl Into<PathBuf>) -> Self {
        self.details.exe = Ok(exe.into());
        self
    }

    /// Marks the file that it executes as no longer at its path.
    #[must_use]
    pub const fn exe_deleted(mut self) -> Self {
        self.details.is_exe_deleted = true;
        self
    }

    /// Sets its current directory.
    #[must_use]
    pub fn cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.details.cwd = Ok(cwd.into());
        self
    }

    /// Sets its parent; 0 for none.
    #[must_use]
    pub fn ppid(mut self, ppid: i32) -> Self {
        self.process.ppid = (ppid > 0).then(|| Pid::nearest(ppid));
        self
    }

    /// Gives it a controlling terminal, in whose foreground it is.
    #[must_use]
    pub const fn tty(mut self, major: u32, minor: u32) -> Self {
        self.process.tty = Some(Tty { major, minor });
        self.process.foreground_group = self.process.process_group;
        self
    }

    /// Sets its effective user.
    #[must_use]
    pub fn uid(mut self, uid: u32) -> Self {
        self.details.uid = Ok(uid);
        self
    }

    /// Puts a text over its arguments, as `process.title` of Node does.
    #[must_use]
    pub fn title(mut self, title: &str) -> Self {
        self.details.argv = Ok(vec![OsString::from(title)]);
        self.details.title = Ok(Some(OsString::from(title)));
        self
    }

    /// Adds variables to its environment.
    #[must_use]
    pub fn env(mut self, variables: &[(&str, &str)]) -> Self {
        let variables = variables.iter();
        let more = variables.map(|(name, value)| ((*name).to_owned(), OsString::from(value)));
        match &mut self.environment {
            Ok(environment) => environment.extend(more),
            Err(_) => self.environment = Ok(more.collect()),
        }
        self
    }

    /// Sets its ids in the namespaces below ours, outermost first; its own PID
    /// stays in front of them.
    #[must_use]
    pub fn inner_pids(mut self, inner: &[i32]) -> Self {
        let own = std::iter::once(self.process.pid);
        let pids = own.chain(inner.iter().copied().map(Pid::nearest)).collect();
        self.details.inner_pids = Ok(pids);
        self
    }

    /// Sets the PID namespace that it lives in.
    #[must_use]
    pub fn pid_namespace(mut self, inode: u64) -> Self {
        self.details.pid_namespace = Ok(PidNamespace(inode));
        self
    }

    /// Sets the memory that it has resident.
    #[must_use]
    pub fn rss_bytes(mut self, rss_bytes: u64) -> Self {
        self.process.rss_bytes = Ok(rss_bytes);
        self
    }

    /// Sets what it is doing.
    #[must_use]
    pub const fn run_state(mut self, run_state: RunState) -> Self {
        self.process.run_state = run_state;
        self
    }

    /// Sets how many threads it has.
    #[must_use]
    pub const fn threads(mut self, threads: u32) -> Self {
        self.process.threads = threads;
        self
    }

    /// Makes it a zombie: exited, and not yet reaped.
    #[must_use]
    pub fn zombie(mut self) -> Self {
        self.process.run_state = RunState::Zombie;
        self.process.is_exited = true;
        self.process.rss_bytes = Err(Absent::Exited);
        self.details.argv = Err(Absent::Exited);
        self.details.title = Err(Absent::Exited);
        self.details.exe = Err(Absent::Exited);
        self.details.cwd = Err(Absent::Exited);
        self.environment = Err(Absent::Exited);
        self.open_files = Ok(Vec::new());
        self
    }

    /// Makes it a process whose leader is a zombie while `threads` threads, the
    /// leader counted, are left: it has not exited.
    #[must_use]
    pub const fn zombie_leader(mut self, threads: u32) -> Self {
        self.process.run_state = RunState::Zombie;
        self.process.is_exited = false;
        self.process.threads = threads;
        self
    }

    /// Makes it a thread of the kernel.
    #[must_use]
    pub fn kernel_thread(mut self) -> Self {
        self.process.is_kernel_thread = true;
        self.process.rss_bytes = Err(Absent::KernelThread);
        self.details.argv = Err(Absent::KernelThread);
        self.details.title = Err(Absent::KernelThread);
        self.details.exe = Err(Absent::KernelThread);
        self.details.cwd = Err(Absent::KernelThread);
        self.environment = Err(Absent::KernelThread);
        self
    }

    /// Makes it a process of which we may read no more than its `stat`.
    #[must_use]
    pub fn foreign(mut self) -> Self {
        self.details.exe = Err(Absent::PermissionDenied);
        self.details.cwd = Err(Absent::PermissionDenied);
        self.details.pid_namespace = Err(Absent::PermissionDenied);
        self.environment = Err(Absent::PermissionDenied);
        self.open_files = Err(Absent::PermissionDenied);
        self
    }

    /// Lets it hold a file, on its next free descriptor from 3 up.
    #[must_use]
    pub fn holds(mut self, file: FileId, access: Access, locks: Vec<LockKind>) -> Self {
        let mut open = self.open_files.unwrap_or_default();
        let last = open.iter().map(|holder| holder.descriptor).max();
        open.push(Holder {
            pid: self.process.pid,
            file,
            descriptor: last.unwrap_or(2).saturating_add(1),
            access,
            locks,
        });
        self.open_files = Ok(open);
        self
    }
}
