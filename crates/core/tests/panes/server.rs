//! A tmux server of a test's own, and a machine that shows nothing else.

use std::ffi::OsString;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::process::Signal;
use tempfile::TempDir;
use whosup_core::machine::command::{CommandError, CommandOutput, Commands, SystemCommands};
use whosup_core::machine::mounts::Mounts;
use whosup_core::machine::{Environment, Machine};
use whosup_process::{
    Among, Backend, Details, ExitWatch, Field, FileId, Holders, Listing, OpenFile, Pid, PidScope,
    ProbeError, Process, ProcessTable, StartStamp, Still, View, system_backend,
};

/// How long a condition is waited for.
const WAIT_MAX: Duration = Duration::from_secs(90);
/// How often it is looked at.
const WAIT_STEP: Duration = Duration::from_millis(10);
/// How many parents up a process is looked for.
const ANCESTORS_MAX: usize = 64;

/// Waits until `look` finds something.
#[track_caller]
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(started.elapsed() < WAIT_MAX, "never came: {what}");
        std::thread::sleep(WAIT_STEP);
    }
}

/// A tmux server on a socket of its own; it ends with the value.
#[derive(Debug)]
pub(crate) struct Server {
    directory: TempDir,
    /// Where it listens.
    pub(crate) socket: PathBuf,
    /// Its process.
    pub(crate) pid: Pid,
    /// The server itself, where it was not started in the background.
    foreground: Option<Child>,
    is_stopped: bool,
}

impl Server {
    /// Starts one whose first pane runs a shell command; `None`, aloud, where
    /// tmux is missing.
    pub(crate) fn start(command: &str) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().canonicalize().unwrap().join("sock et");
        let socket_option = ["-S".into(), socket.clone().into_os_string()];
        Self::start_with(directory, socket, &socket_option, &[], command)
    }

    /// Starts one that finds its socket by `options` and `variables`.
    pub(crate) fn start_with(
        directory: TempDir,
        socket: PathBuf,
        options: &[OsString],
        variables: &[(&str, &Path)],
        command: &str,
    ) -> Option<Self> {
        let mut tmux = tmux(directory.path())?;
        tmux.args(["-f", "/dev/null"]).args(options);
        tmux.args(["new-session", "-d", "-x", "80", "-y", "24", "-s", "my work"]);
        tmux.arg(command).envs(variables.iter().copied());
        let output = tmux.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let mut server = Self {
            directory,
            socket,
            pid: Pid::own(),
            foreground: None,
            is_stopped: false,
        };
        server.pid = server.number("%0", "pid");
        Some(server)
    }

    /// Starts one in the foreground (`tmux -D`).
    pub(crate) fn start_in_foreground(command: &str) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().canonicalize().unwrap().join("socket");
        let mut tmux = tmux(directory.path())?;
        tmux.args(["-f", "/dev/null", "-D", "-S"]).arg(&socket);
        let child = tmux.stdin(Stdio::null()).spawn().unwrap();
        wait_for("a socket", || socket.exists().then_some(()));
        let mut server = Self {
            directory,
            socket,
            pid: Pid::new(i64::from(child.id())).unwrap(),
            foreground: Some(child),
            is_stopped: false,
        };
        let created = ["new-session", "-d", "-x", "80", "-y", "24", command];
        wait_for("a tmux session", || server.try_run(&created));
        server.pid = server.number("%0", "pid");
        Some(server)
    }

    /// Takes over a server that was started in a pane, once it answers.
    pub(crate) fn adopt(socket: &Path) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let question = ["display-message", "-p", "#{pid}"];
        let pid = run(directory.path(), socket, &question)?;
        Some(Self {
            directory,
            socket: socket.to_owned(),
            pid: Pid::new(pid.parse().ok()?).ok()?,
            foreground: None,
            is_stopped: false,
        })
    }

    /// A directory of the test's own, without symbolic links.
    pub(crate) fn directory(&self) -> PathBuf {
        self.directory.path().canonicalize().unwrap()
    }

    /// Runs a tmux command and gives what it prints.
    pub(crate) fn run(&self, args: &[&str]) -> String {
        self.try_run(args)
            .unwrap_or_else(|| panic!("tmux failed: {args:?}"))
    }

    fn try_run(&self, args: &[&str]) -> Option<String> {
        run(self.directory.path(), &self.socket, args)
    }

    /// Stops the server, so that it answers nothing until its end.
    pub(crate) fn stop(&mut self) {
        signal(self.pid, Signal::STOP);
        self.is_stopped = true;
    }

    /// A number that tmux knows of a pane.
    pub(crate) fn number(&self, pane: &str, variable: &str) -> Pid {
        let format = format!("#{{{variable}}}");
        let printed = self.run(&["display-message", "-p", "-t", pane, &format]);
        Pid::new(printed.parse().unwrap()).unwrap()
    }

    /// The process that was started in a pane.
    pub(crate) fn process_in(&self, pane: &str) -> Pid {
        self.number(pane, "pane_pid")
    }

    /// Waits for a process of this name below the server.
    pub(crate) fn wait_for_process(&self, comm: &str) -> Process {
        wait_for(comm, || {
            let (all, roots) = (system_backend(), vec![self.pid]);
            let below = Below { all, roots };
            let (processes, _) = below.processes().unwrap();
            processes
                .into_iter()
                .find(|process| process.comm == comm.as_bytes() && !process.is_exited)
        })
    }

    /// Makes a program of this name that waits without end.
    pub(crate) fn waiter(&self, name: &str) -> PathBuf {
        let (program, fifo) = (self.directory().join(name), self.directory().join("fifo"));
        let mode = Mode::RUSR | Mode::WUSR | Mode::XUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, FileType::Fifo, mode, 0).unwrap();
        // To open a FIFO that nobody writes to takes for ever.
        let script = format!("#!/bin/sh\nread -r line < '{}'\n", fifo.display());
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, Permissions::from_mode(0o700)).unwrap();
        program
    }
}

impl Server {
    /// Ends the waiters that outlive their pane: the FIFO gets a writer, so that
    /// they can open it, and find nothing in it.
    fn let_waiters_go(&self) {
        let fifo = self.directory().join("fifo");
        if fifo.exists() {
            let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
            rustix::fs::open(&fifo, flags, Mode::empty()).ok();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.is_stopped {
            signal(self.pid, Signal::CONT);
        }
        let mut tmux = tmux(self.directory.path()).unwrap();
        tmux.arg("-S").arg(&self.socket).arg("kill-server");
        tmux.output().ok();
        if let Some(mut child) = self.foreground.take() {
            child.wait().ok();
        }
        self.let_waiters_go();
    }
}

/// A tmux command with nothing of the environment of whoever runs the tests.
fn tmux(home: &Path) -> Option<Command> {
    if Command::new("tmux").arg("-V").output().is_err() {
        eprintln!("skipped: tmux is not installed");
        return None;
    }
    let mut tmux = Command::new("tmux");
    let path = std::env::var_os("PATH").unwrap_or_default();
    tmux.env_clear().env("PATH", path).env("HOME", home);
    tmux.env("SHELL", "/bin/sh").current_dir(home);
    Some(tmux)
}

/// Runs a tmux command and gives what it prints, if it succeeds.
fn run(home: &Path, socket: &Path, args: &[&str]) -> Option<String> {
    let output = tmux(home)?
        .arg("-S")
        .arg(socket)
        .args(args)
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    output.status.success().then(|| printed.trim().to_owned())
}

/// Signals one process that a test has started.
pub(crate) fn signal(pid: Pid, signal: Signal) {
    let pid = rustix::process::Pid::from_raw(pid.get()).unwrap();
    rustix::process::kill_process(pid, signal).ok();
}

/// The machine as it is, of which only these servers and what runs below them
/// can be seen.
pub(crate) fn machine(servers: &[&Server]) -> Machine {
    machine_with(servers, Patient(WAIT_MAX), &[])
}

/// Such a machine with other commands and variables.
pub(crate) fn machine_with(
    servers: &[&Server],
    commands: impl Commands + 'static,
    variables: &[(&str, OsString)],
) -> Machine {
    let roots = servers.iter().map(|server| server.pid).collect();
    machine_below(roots, commands, variables)
}

/// The machine as it is, of which only these processes and what runs below them can be seen.
pub(crate) fn machine_below(
    roots: Vec<Pid>,
    commands: impl Commands + 'static,
    variables: &[(&str, OsString)],
) -> Machine {
    let variables = variables.iter();
    let variables = variables.map(|(name, value)| ((*name).to_owned(), value.clone()));
    let all = system_backend();
    Machine::new(
        Environment::new(None, None, variables),
        0,
        ProcessTable::look(Arc::new(Below { all, roots })),
        Mounts::default(),
        Arc::new(commands),
    )
}

/// The real commands with another deadline.
#[derive(Debug)]
pub(crate) struct Patient(pub(crate) Duration);

impl Commands for Patient {
    fn run(
        &self,
        program: &str,
        args: &[OsString],
        deadline: Instant,
    ) -> Result<CommandOutput, CommandError> {
        SystemCommands.run(program, args, deadline)
    }

    fn deadline(&self) -> Instant {
        Instant::now() + self.0
    }
}

/// Runs real commands on the sockets in one directory and says of all others
/// that nobody listens there, so that no server of somebody else is asked.
#[derive(Debug)]
pub(crate) struct OnlyIn(pub(crate) PathBuf);

impl Commands for OnlyIn {
    fn run(
        &self,
        program: &str,
        args: &[OsString],
        deadline: Instant,
    ) -> Result<CommandOutput, CommandError> {
        if args.iter().any(|arg| Path::new(arg).starts_with(&self.0)) {
            return SystemCommands.run(program, args, deadline);
        }
        Ok(CommandOutput {
            is_success: false,
            stdout: Vec::new(),
            stderr: b"no server running on elsewhere\n".to_vec(),
        })
    }

    fn deadline(&self) -> Instant {
        Instant::now() + WAIT_MAX
    }
}

/// The process table, of which only some processes and their descendants are shown.
#[derive(Debug)]
struct Below {
    all: Arc<dyn Backend>,
    roots: Vec<Pid>,
}

impl Backend for Below {
    fn scope(&self) -> PidScope {
        self.all.scope()
    }

    fn view(&self) -> View {
        self.all.view()
    }

    fn processes(&self) -> Result<Listing, ProbeError> {
        let (processes, _) = self.all.processes()?;
        let parent_of = |pid: Pid| {
            let mut all = processes.iter();
            all.find(|process| process.pid == pid)?.ppid
        };
        let is_below = |process: &&Process| {
            std::iter::successors(Some(process.pid), |pid| parent_of(*pid))
                .take(ANCESTORS_MAX)
                .any(|pid| self.roots.contains(&pid))
        };
        Ok((
            processes.iter().filter(is_below).cloned().collect(),
            Vec::new(),
        ))
    }

    fn probe(&self, pid: Pid) -> Result<Option<Process>, ProbeError> {
        self.all.probe(pid)
    }

    fn is_thread(&self, pid: Pid) -> Result<bool, ProbeError> {
        self.all.is_thread(pid)
    }

    fn details(&self, process: &Process) -> Details {
        self.all.details(process)
    }

    fn environment(&self, process: &Process, names: &[&str]) -> Field<Vec<(String, OsString)>> {
        self.all.environment(process, names)
    }

    fn open_files(&self, process: &Process) -> Field<Vec<OpenFile>> {
        self.all.open_files(process)
    }

    fn holders(&self, files: &[FileId], among: Among<'_>) -> Result<Holders, ProbeError> {
        self.all.holders(files, among)
    }

    fn is_still(&self, pid: Pid, stamp: &StartStamp) -> Result<Still, ProbeError> {
        self.all.is_still(pid, stamp)
    }

    fn watch_exit(&self, pid: Pid, stamp: &StartStamp) -> Result<Option<ExitWatch>, ProbeError> {
        self.all.watch_exit(pid, stamp)
    }
}
