//! Posing processes, as the harness starts, orders and ends them.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::pose::command;

/// How long a posing process may take to answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(30);
/// How many processes are looked at for a child.
const PROCESSES_MAX: usize = 100_000;

/// A program as it is started.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) executable: PathBuf,
    pub(crate) argv: Vec<String>,
    /// The name that it takes; that of its executable if empty.
    pub(crate) comm: &'static str,
    /// Nothing shows of its environment.
    pub(crate) is_environment_wiped: bool,
    /// A variable that its agent sets.
    pub(crate) variable: Option<&'static str>,
}

/// Where and how programs are started.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) home: PathBuf,
    pub(crate) work_dir: PathBuf,
    pub(crate) has_terminal: bool,
    /// Starts them in a PID namespace of their own; on another host if this
    /// names one.
    pub(crate) nested: Option<Option<String>>,
}

/// One posing process.
pub(crate) struct Actor {
    /// Its PID as the harness sees it.
    pub(crate) pid: i32,
    /// Its PID as it sees it itself.
    pub(crate) own_pid: i32,
    pub(crate) stamp: u64,
    pub(crate) pid_namespace: u64,
    pub(crate) tty: Option<OwnedFd>,
    control: BufReader<UnixStream>,
    child: Option<Child>,
}

impl Actor {
    /// Gives an order and waits until it is obeyed.
    pub(crate) fn order(&mut self, order: &Value) -> anyhow::Result<Value> {
        let stream = self.control.get_mut();
        stream.write_all(format!("{order}\n").as_bytes())?;
        let mut line = String::new();
        self.control
            .read_line(&mut line)
            .with_context(|| format!("process {} does not answer to {order}", self.pid))?;
        let answer: Value = serde_json::from_str(&line)
            .with_context(|| format!("process {} answers `{line}` to {order}", self.pid))?;
        if let Some(error) = answer["error"].as_str() {
            bail!("process {}: {order}: {error}", self.pid);
        }
        Ok(answer)
    }

    /// Lets it execute another program, and waits until it does.
    pub(crate) fn execute(&mut self, path: &Path) -> anyhow::Result<()> {
        let order = json!({ "do": "exec", "path": path });
        let target = path.canonicalize()?;
        self.control
            .get_mut()
            .write_all(format!("{order}\n").as_bytes())?;
        let deadline = Instant::now() + ANSWER_TIME_MAX;
        while Instant::now() < deadline {
            let executable = std::fs::read_link(format!("/proc/{}/exe", self.pid))?;
            if executable == target {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        bail!("process {} does not execute {}", self.pid, path.display())
    }

    pub(crate) fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let pid = Pid::from_raw(self.pid).context("a PID is positive")?;
        Ok(kill_process(pid, signal)?)
    }

    /// Collects it once it has ended. A child of another posing process is
    /// collected by that one.
    pub(crate) fn reap(&mut self) -> anyhow::Result<()> {
        if let Some(mut child) = self.child.take() {
            child.wait()?;
        }
        Ok(())
    }

    /// It was typed into its terminal.
    pub(crate) fn type_key(&self) -> anyhow::Result<()> {
        if let Some(tty) = &self.tty {
            rustix::io::write(tty, b"\n")?;
        }
        Ok(())
    }
}

/// Starts a chain of programs, each a child of the one before; all of them are
/// in place when this returns.
pub(crate) fn start(
    programs: &[Program],
    setting: &Setting,
    scratch: &Path,
) -> anyhow::Result<Vec<Actor>> {
    let mut actors: Vec<Actor> = Vec::new();
    if let Some(host) = &setting.nested {
        actors.push(start_box(host.as_deref(), scratch)?);
    }
    let (tty, tty_path) = if setting.has_terminal {
        let (tty, path) = open_terminal()?;
        (Some(tty), Some(path))
    } else {
        (None, None)
    };
    for program in programs {
        let order = json!({
            "do": "spawn", "program": program.executable, "argv": program.argv,
            "cwd": setting.work_dir, "env": environment(program, setting),
        });
        let mut actor = match actors.last_mut() {
            Some(parent) => start_below(parent, order, scratch)?,
            None => start_here(command(&order))?,
        };
        let takes = if actors.iter().any(|actor| actor.tty.is_some()) {
            None
        } else {
            tty_path.as_ref()
        };
        actor.order(&json!({ "do": "settle", "comm": program.comm, "tty": takes }))?;
        if takes.is_some() {
            actor.tty = tty.as_ref().map(OwnedFd::try_clone).transpose()?;
        }
        actors.push(actor);
    }
    Ok(actors)
}

fn environment(program: &Program, setting: &Setting) -> Value {
    if program.is_environment_wiped {
        return json!({});
    }
    let mut variables = json!({ "HOME": setting.home, "PATH": "/usr/bin:/bin", "TERM": "xterm" });
    if setting.has_terminal {
        // As a shell sets it.
        variables["PWD"] = json!(setting.work_dir);
    }
    if let Some(variable) = program.variable {
        variables[variable] = json!("true");
    }
    variables
}

fn start_here(mut command: Command) -> anyhow::Result<Actor> {
    let (ours, theirs) = UnixStream::pair()?;
    let child = command
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .spawn()
        .with_context(|| format!("cannot run {command:?}"))?;
    let pid = i32::try_from(child.id())?;
    let mut actor = actor(pid, ours)?;
    actor.child = Some(child);
    Ok(actor)
}

fn start_below(parent: &mut Actor, mut order: Value, scratch: &Path) -> anyhow::Result<Actor> {
    let path = scratch.join("control");
    std::fs::remove_file(&path).ok();
    let listener = UnixListener::bind(&path)?;
    order["socket"] = json!(path);
    let own = parent.order(&order)?["pid"].as_i64().unwrap_or_default();
    let time_max = Timespec::try_from(ANSWER_TIME_MAX)?;
    if poll(
        &mut [PollFd::new(&listener, PollFlags::IN)],
        Some(&time_max),
    )? == 0
    {
        bail!("a process below {} does not connect", parent.pid);
    }
    let (control, _) = listener.accept()?;
    let pid = children(parent.pid)?
        .into_iter()
        .find(|child| own_pid(*child).is_some_and(|inner| i64::from(inner) == own))
        .with_context(|| format!("process {} has no child {own}", parent.pid))?;
    actor(pid, control)
}

/// Starts the first process of a PID namespace, which starts the others there.
fn start_box(host: Option<&str>, scratch: &Path) -> anyhow::Result<Actor> {
    let mut command = Command::new("unshare");
    command.args([
        "--pid",
        "--fork",
        "--kill-child=KILL",
        "--mount-proc",
        "--uts",
    ]);
    let first = scratch.join("init");
    match host {
        Some(host) => {
            let script = format!("hostname {host}; exec {}", first.display());
            command.args(["--", "/bin/sh", "-c", &script]);
        }
        None => {
            command.arg("--").arg(&first);
        }
    }
    command
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .stderr(Stdio::null());
    let mut outer = start_here(command)?;
    // Whoever answers is the first process inside; the child that was started
    // only waits for it.
    outer.order(&json!({ "do": "pid" }))?;
    let inside = children(outer.pid)?;
    outer.pid = *inside.first().context("an empty PID namespace")?;
    outer.fill_in()?;
    Ok(outer)
}

fn actor(pid: i32, control: UnixStream) -> anyhow::Result<Actor> {
    control.set_read_timeout(Some(ANSWER_TIME_MAX))?;
    control.set_write_timeout(Some(ANSWER_TIME_MAX))?;
    let mut actor = Actor {
        pid,
        own_pid: pid,
        stamp: 0,
        pid_namespace: 0,
        tty: None,
        control: BufReader::new(control),
        child: None,
    };
    actor.fill_in()?;
    Ok(actor)
}

impl Actor {
    fn fill_in(&mut self) -> anyhow::Result<()> {
        self.stamp = stat_field(self.pid, 22).context("a process has a start")?;
        self.own_pid = own_pid(self.pid).context("a process has a PID")?;
        self.pid_namespace = pid_namespace(self.pid)?;
        Ok(())
    }
}

/// The inode of a process's PID namespace.
pub(crate) fn pid_namespace(pid: i32) -> anyhow::Result<u64> {
    let link = std::fs::read_link(format!("/proc/{pid}/ns/pid"))?;
    let text = link.to_string_lossy();
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    Ok(digits.parse()?)
}

/// A field of `/proc/PID/stat` behind the name, counted as in proc_pid_stat(5).
pub(crate) fn stat_field(pid: i32, number: usize) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, behind) = stat.rsplit_once(')')?;
    behind
        .split_whitespace()
        .nth(number.checked_sub(3)?)?
        .parse()
        .ok()
}

fn own_pid(pid: i32) -> Option<i32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_whitespace().last()?.parse().ok()
}

fn children(parent: i32) -> anyhow::Result<Vec<i32>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")?.take(PROCESSES_MAX) {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if stat_field(pid, 4) == u64::try_from(parent).ok() {
            found.push(pid);
        }
    }
    Ok(found)
}

/// A terminal: the side on which a person would sit, and the path of the other.
fn open_terminal() -> anyhow::Result<(OwnedFd, String)> {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let tty = openpt(flags)?;
    grantpt(&tty)?;
    unlockpt(&tty)?;
    let path = ptsname(&tty, Vec::new())?.into_string()?;
    Ok((tty, path))
}
