//! A demo's temporary directory and processes.

use std::collections::HashMap;
use std::io::{ErrorKind, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use tempfile::TempDir;
use whosup_core::process::{Pid, system_backend};

use super::part::{Actor, Fate, Part, Terminal};
use crate::pose::{Pose, READY};

/// How long the processes may take to start.
const READY_TIME_MAX: Duration = Duration::from_secs(30);
/// How long the error message of a process may be, in bytes.
const COMPLAINT_BYTES_MAX: usize = 4096;

/// A temporary directory and the processes that pose there.
///
/// Both are removed when it is dropped, and when a signal ends the program.
#[derive(Debug)]
pub(super) struct Stage {
    home: PathBuf,
    up: Arc<Mutex<Up>>,
}

/// What was set up, taken down once by the first who asks.
#[derive(Debug)]
struct Up {
    directory: Option<TempDir>,
    running: Vec<Running>,
}

#[derive(Debug)]
struct Running {
    child: Child,
    fate: Fate,
    /// The side of the terminal on which a person would sit.
    _terminal: Option<OwnedFd>,
}

impl Stage {
    /// Makes the temporary directory, and lets signals remove it.
    pub(super) fn build() -> anyhow::Result<Self> {
        let signals = Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM])
            .context("cannot prepare for the end of the demo")?;
        let up = Arc::new(Mutex::new(Up {
            directory: None,
            running: Vec::new(),
        }));
        end_on_signal(signals, Arc::clone(&up))?;
        let mut stage = Self {
            home: PathBuf::new(),
            up,
        };
        let failed = || "cannot make a temporary directory for the demo";
        let home = {
            let mut up = stage.up();
            let directory = tempfile::Builder::new()
                .prefix("whosup-demo-")
                .tempdir()
                .with_context(failed)?;
            let root = directory.path().to_owned();
            up.directory = Some(directory);
            let home = root.canonicalize().with_context(failed)?.join("dev");
            std::fs::create_dir(&home).with_context(failed)?;
            home
        };
        stage.home = home;
        Ok(stage)
    }

    /// The home of the demo.
    pub(super) fn home(&self) -> &Path {
        &self.home
    }

    /// Runs `act` in the temporary directory, which is not taken down meanwhile.
    pub(super) fn with<T>(&self, act: impl FnOnce(&Path) -> T) -> T {
        let _up = self.up();
        act(&self.home)
    }

    /// Starts the processes and waits until all are ready.
    pub(super) fn start(&self, parts: &[Part]) -> anyhow::Result<HashMap<&'static str, Actor>> {
        let original = self.home.with_file_name("whosup");
        self.with(|_| copy_of_this_program(&original))?;
        let mut starting = Vec::new();
        for part in parts {
            let program = self.home.join(part.program);
            self.with(|_| install(&original, &program))
                .with_context(|| format!("cannot make `{}`", program.display()))?;
            let mut up = self.up();
            let mut running = start(part, &program, &self.home)?;
            starting.push((part, running.child.id(), running.child.stdout.take()));
            up.running.push(running);
        }
        let deadline = Instant::now() + READY_TIME_MAX;
        let mut actors = HashMap::new();
        for (part, pid, stdout) in starting {
            let stdout = stdout.context("cannot listen to a process of the demo")?;
            wait_until_ready(stdout, deadline)
                .with_context(|| format!("cannot start a process that poses as `{}`", part.name))?;
            actors.insert(part.name, actor(part, pid)?);
        }
        Ok(actors)
    }

    /// Ends the processes that play a crash.
    pub(super) fn end_crashed(&self) -> anyhow::Result<()> {
        let mut up = self.up();
        let is_crashing = |running: &Running| running.fate == Fate::Crashes;
        let crashing = up.running.iter_mut().filter(|running| is_crashing(running));
        for running in crashing {
            running.end().context("cannot end a process of the demo")?;
        }
        up.running.retain(|running| !is_crashing(running));
        Ok(())
    }

    /// Removes everything.
    pub(super) fn end(self) -> anyhow::Result<()> {
        self.up().end()
    }

    fn up(&self) -> MutexGuard<'_, Up> {
        lock(&self.up)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // A caller that wants the error calls `end`.
        self.up().end().ok();
    }
}

fn lock(up: &Mutex<Up>) -> MutexGuard<'_, Up> {
    up.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes everything when a signal comes, then ends as that signal ends a program.
///
/// The lock is never released: nothing may be set up any more.
fn end_on_signal(mut signals: Signals, up: Arc<Mutex<Up>>) -> anyhow::Result<()> {
    let wait = move || {
        if let Some(signal) = signals.forever().next() {
            let mut up = lock(&up);
            // A failure changes nothing about the end.
            up.end().ok();
            signal_hook::low_level::emulate_default_handler(signal).ok();
        }
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(wait)
        .context("cannot prepare for the end of the demo")?;
    Ok(())
}

impl Up {
    fn end(&mut self) -> anyhow::Result<()> {
        for mut running in self.running.drain(..) {
            // It may have exited already.
            running.end().ok();
        }
        let Some(directory) = self.directory.take() else {
            return Ok(());
        };
        let path = directory.path().to_owned();
        directory
            .close()
            .with_context(|| format!("cannot remove `{}`", path.display()))
    }
}

impl Running {
    fn end(&mut self) -> std::io::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

fn wait_until_ready(mut stdout: ChildStdout, deadline: Instant) -> anyhow::Result<()> {
    let left = deadline.saturating_duration_since(Instant::now());
    let left = Timespec::try_from(left).context("no time is left")?;
    let mut waited = [PollFd::new(&stdout, PollFlags::IN)];
    if poll(&mut waited, Some(&left))? == 0 {
        bail!("it was not ready in {} s", READY_TIME_MAX.as_secs());
    }
    // One message: that it is ready, or why it fails.
    let mut said = vec![0; COMPLAINT_BYTES_MAX];
    let count = stdout.read(&mut said)?;
    said.truncate(count);
    if said == READY {
        return Ok(());
    }
    bail!("{}", String::from_utf8_lossy(&said).trim_end())
}

fn actor(part: &Part, pid: u32) -> anyhow::Result<Actor> {
    let pid = Pid::new(i64::from(pid))?;
    let process = system_backend()
        .probe(pid)
        .context("cannot show a demo on this machine")?
        .with_context(|| format!("process {pid} has ended"))?;
    Ok(Actor {
        pid,
        began_at_ms: process
            .began_at_ms
            .map_err(|reason| anyhow!("cannot read when process {pid} started: {reason}"))?,
        stamp: process.stamp,
        fate: part.fate,
    })
}

/// Copies the running program, so that the original is left alone; the other programs are
/// links to the copy.
fn copy_of_this_program(to: &Path) -> anyhow::Result<()> {
    let this = if cfg!(target_os = "linux") {
        // Works also if the file was replaced meanwhile.
        PathBuf::from("/proc/self/exe")
    } else {
        std::env::current_exe().context("cannot find this program")?
    };
    std::fs::copy(&this, to)
        .map(|_| ())
        .with_context(|| format!("cannot copy this program to `{}`", to.display()))
}

fn install(original: &Path, program: &Path) -> std::io::Result<()> {
    if let Some(folder) = program.parent() {
        std::fs::create_dir_all(folder)?;
    }
    match std::fs::hard_link(original, program) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        // Not every file system supports links.
        Err(_) => std::fs::copy(original, program).map(|_| ()),
    }
}

fn start(part: &Part, program: &Path, home: &Path) -> anyhow::Result<Running> {
    let terminal = match part.terminal {
        Terminal::Own => open_terminal(),
        Terminal::None => None,
    };
    let (terminal, path) = terminal.unzip();
    let pose = Pose {
        terminal: path,
        locks: part.locks.clone(),
        open: part.open.clone(),
    };
    let mut argv = part.argv.iter();
    let mut command = Command::new(program);
    if let Some(started_as) = argv.next() {
        command.arg0(started_as);
    }
    command
        .args(argv)
        .current_dir(home.join(part.work_dir))
        .env_clear()
        .env("HOME", home)
        .envs(
            pose.variables()
                .context("cannot pass a process its files")?,
        )
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let child = command.spawn().map_err(|error| {
        let place = std::env::temp_dir();
        match error.kind() {
            ErrorKind::PermissionDenied => anyhow!(
                "cannot run a program in `{0}`: the file system of `{0}` may forbid that \
                 (`noexec`); set `TMPDIR` to a directory where programs can run",
                place.display()
            ),
            _ => anyhow!(error).context(format!("cannot run `{}`", program.display())),
        }
    })?;
    Ok(Running {
        child,
        fate: part.fate,
        _terminal: terminal,
    })
}

/// A terminal and its path. If there is none to be had, the demo works without.
fn open_terminal() -> Option<(OwnedFd, PathBuf)> {
    use std::os::unix::ffi::OsStringExt as _;

    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
    #[cfg(target_os = "linux")]
    let flags = flags | OpenptFlags::CLOEXEC;
    let terminal = openpt(flags).ok()?;
    grantpt(&terminal).ok()?;
    unlockpt(&terminal).ok()?;
    let path = ptsname(&terminal, Vec::new()).ok()?.into_bytes();
    Some((terminal, std::ffi::OsString::from_vec(path).into()))
}
