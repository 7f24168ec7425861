//! One process of a recorded table.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::{
    Absent, Access, Details, Field, FileId, Holder, LockKind, OpenFile, Pid, PidNamespace, Process,
    RunState, StartStamp, TerminalUse, Tty,
};

/// The default memory of a [`RecordedProcess`].
const RSS_BYTES: u64 = 32 * 1024 * 1024;

/// One process of a [`Recorded`](crate::Recorded) table, with everything that can be read of it.
///
/// The fields are open: set one to `Err(reason)` for what can't be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedProcess {
    /// The contents of its `stat`.
    pub process: Process,
    /// Everything that `stat` does not contain.
    pub details: Details,
    /// Its environment, all of it.
    pub environment: Field<Vec<(String, OsString)>>,
    /// Its open files.
    pub open_files: Field<Vec<Holder>>,
    /// The paths of those that have one.
    pub open_paths: Field<Vec<OpenFile>>,
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
            is_fork: false,
            threads: 1,
            stamp: StartStamp::LinuxTicks(ticks),
            began_at_ms: Ok(began_at_ms),
            rss_bytes: Ok(RSS_BYTES),
            cpu_ms: Ok(0),
            tty: None,
            process_group: pid.get(),
            unix_session: pid.get(),
            foreground_group: -1,
            comm: b"sh".to_vec(),
        };
        let details = Details {
            argv: Ok(vec![OsString::from("sh")]),
            is_argv_cut: false,
            title: Ok(None),
            exe: Ok(PathBuf::from("/bin/sh")),
            is_exe_deleted: false,
            cwd: Ok(PathBuf::from("/")),
            uid: Ok(0),
            inner_pids: Ok(vec![pid]),
            pid_namespace: Ok(PidNamespace::INITIAL),
            shares_mounts: Ok(true),
            terminal_use: Err(Absent::Unsupported),
        };
        Self {
            process,
            details,
            environment: Ok(Vec::new()),
            open_files: Ok(Vec::new()),
            open_paths: Ok(Vec::new()),
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

    /// Sets when its terminal was last used.
    #[must_use]
    pub fn terminal_use(mut self, last: TerminalUse) -> Self {
        self.details.terminal_use = Ok(last);
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

    /// Sets the processor time that it has used.
    #[must_use]
    pub fn cpu_ms(mut self, cpu_ms: u64) -> Self {
        self.process.cpu_ms = Ok(cpu_ms);
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
        self.open_paths = Err(Absent::Exited);
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
        self.open_paths = Err(Absent::KernelThread);
        self
    }

    /// Makes it a fork that has executed no program yet.
    #[must_use]
    pub const fn fork(mut self) -> Self {
        self.process.is_fork = true;
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
        self.open_paths = Err(Absent::PermissionDenied);
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

    /// Lets it hold a file that has a path.
    #[must_use]
    pub fn holds_at(self, path: &Path, file: FileId, access: Access, locks: Vec<LockKind>) -> Self {
        let mut process = self.holds(file, access, locks);
        let mut open = process.open_paths.unwrap_or_default();
        open.push(OpenFile {
            path: path.to_owned(),
            file,
        });
        process.open_paths = Ok(open);
        process
    }
}
