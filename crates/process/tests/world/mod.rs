//! Real processes for tests: started, waited for, and ended by their own PID.
#![allow(dead_code, reason = "each test file uses a part of this")]

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use whosup_process::linux::Proc;
use whosup_process::{Backend, Pid, Process};

/// How long anything may take on a loaded machine before a test gives up.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often a condition is looked at.
const STEP: Duration = Duration::from_millis(5);
/// Names the part that this process plays in a test which runs itself again.
const PART: &str = "WHOSUP_TEST_PART";
/// The user that tests drop to.
pub(crate) const UNPRIVILEGED: &str = "65534";

/// A process that a test has started. It is killed and reaped when dropped.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Running {
    /// Starts a process whose standard input stays open.
    #[track_caller]
    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().unwrap();
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).into_owned();
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            stdin,
            lines,
        }
    }

    /// Starts a process and waits until it prints a line that ends in `ready`.
    #[track_caller]
    pub(crate) fn ready(command: &mut Command) -> Self {
        let running = Self::spawn(command);
        while !running.line().ends_with("ready") {}
        running
    }

    /// Starts a shell script, which gets `arguments` as `$1` and so on.
    #[track_caller]
    pub(crate) fn shell(script: &str, arguments: &[&OsStr]) -> Self {
        Self::ready(
            Command::new("sh")
                .args(["-c", script, "sh"])
                .args(arguments),
        )
    }

    /// Starts a process that sleeps until it is ended.
    #[track_caller]
    pub(crate) fn sleeper() -> Self {
        Self::shell("echo ready; read line", &[])
    }

    /// The next line that it prints.
    #[track_caller]
    pub(crate) fn line(&self) -> String {
        let line = self.lines.recv_timeout(PATIENCE);
        line.expect("it prints another line")
    }

    pub(crate) fn pid(&self) -> Pid {
        pid(i64::from(self.child.id()))
    }

    /// The entry of the process table now.
    #[track_caller]
    pub(crate) fn process(&self) -> Process {
        process(self.pid())
    }

    pub(crate) fn send_line(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        writeln!(stdin, "{line}").unwrap();
        stdin.flush().unwrap();
    }

    /// Ends its standard input.
    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Kills it and does not reap it.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
    }

    /// Waits for its end and reaps it.
    pub(crate) fn reap(&mut self) {
        self.child.wait().unwrap();
    }

    /// Kills and reaps it.
    pub(crate) fn end(&mut self) {
        self.kill();
        self.reap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // An error means that it has been reaped already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A process that a script started and left behind; it is killed when dropped,
/// unless its PID is another process's by then.
#[derive(Debug)]
pub(crate) struct LeftBehind(Process);

impl LeftBehind {
    #[track_caller]
    pub(crate) fn new(left: Pid) -> Self {
        Self(process(left))
    }

    pub(crate) const fn pid(&self) -> Pid {
        self.0.pid
    }
}

impl Drop for LeftBehind {
    fn drop(&mut self) {
        let raw = rustix::process::Pid::from_raw(self.0.pid.get()).unwrap();
        let Ok(pidfd) = rustix::process::pidfd_open(raw, rustix::process::PidfdFlags::empty())
        else {
            return;
        };
        if let Ok(Some(now)) = Proc::system().probe(self.0.pid)
            && now.stamp == self.0.stamp
        {
            let _ = rustix::process::pidfd_send_signal(&pidfd, rustix::process::Signal::KILL);
        }
    }
}

#[track_caller]
pub(crate) fn pid(raw: i64) -> Pid {
    Pid::new(raw).unwrap()
}

/// The entry of the process table for a process that is there.
#[track_caller]
pub(crate) fn process(pid: Pid) -> Process {
    let found = Proc::system().probe(pid).expect("it can be looked at");
    found.expect("it exists")
}

/// Waits until a condition holds.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(STEP);
    }
}

/// Prints that a test, or a part of a test, could not run here.
pub(crate) fn skip(reason: &str) {
    let name = std::thread::current().name().map(str::to_owned);
    say(&format!("skipped {}: {reason}", name.unwrap_or_default()));
}

/// Prints a line that is seen also of a test that passes.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Returns whether this process may do what only root may.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns whether a command succeeds.
pub(crate) fn can(command: &[&str]) -> bool {
    let (program, arguments) = command.split_first().unwrap();
    let run = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    run.is_ok_and(|status| status.success())
}

/// Skips aloud unless `command` can run here, for which most need root.
pub(crate) fn can_or_skip(command: &[&str]) -> bool {
    let can = can(command);
    if !can {
        skip(&format!("`{}` does not work here", command.join(" ")));
    }
    can
}

/// The words that start a command in new namespaces, for which a user other
/// than root needs a user namespace around them.
pub(crate) fn in_new<'a>(namespaces: &[&'a str]) -> Vec<&'a str> {
    let mut words = vec!["unshare"];
    if !is_root() {
        words.extend(["-U", "-r"]);
    }
    words.extend_from_slice(namespaces);
    words
}

/// Skips aloud unless commands can be started by `wrapper`.
pub(crate) fn can_start_or_skip(wrapper: &[&str]) -> bool {
    can_or_skip(&[wrapper, &["true"]].concat())
}

/// The part that this process plays in a test which runs itself again.
pub(crate) fn part() -> Option<String> {
    std::env::var(PART).ok()
}

/// Copies a program. Another process does, for a program can't be executed
/// while anybody has it open for writing, and what we have open is had for a
/// moment by every process that another test is just starting.
#[track_caller]
pub(crate) fn copy_program(from: &Path, to: &Path, mode: u32) {
    let copied = Command::new("cp").arg(from).arg(to).status();
    assert!(copied.is_ok_and(|status| status.success()), "{from:?}");
    std::fs::set_permissions(to, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// A copy of this test program that every user may run.
#[derive(Debug)]
pub(crate) struct Program {
    folder: TempDir,
}

impl Program {
    pub(crate) fn public() -> Self {
        let folder = public_folder();
        let program = Self { folder };
        copy_program(&std::env::current_exe().unwrap(), &program.path(), 0o755);
        program
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("test-program")
    }

    /// A command that runs `test` again in the part `part`, started by the
    /// words of `wrapper`.
    pub(crate) fn again(&self, wrapper: &[&str], test: &str, part: &str) -> Command {
        again(self.path().as_os_str(), wrapper, test, part)
    }

    /// The same as another user.
    pub(crate) fn again_unprivileged(&self, test: &str, part: &str) -> Command {
        self.again(&AS_UNPRIVILEGED, test, part)
    }
}

/// The words that start a command as another user without any groups.
pub(crate) const AS_UNPRIVILEGED: [&str; 6] = [
    "setpriv",
    "--reuid",
    UNPRIVILEGED,
    "--regid",
    UNPRIVILEGED,
    "--clear-groups",
];

/// A command that runs `test` of this program again in the part `part`.
pub(crate) fn again_here(wrapper: &[&str], test: &str, part: &str) -> Command {
    again(
        std::env::current_exe().unwrap().as_os_str(),
        wrapper,
        test,
        part,
    )
}

fn again(program: &OsStr, wrapper: &[&str], test: &str, part: &str) -> Command {
    let mut words: Vec<OsString> = wrapper.iter().map(OsString::from).collect();
    words.push(program.to_owned());
    let (first, rest) = words.split_first().unwrap();
    let mut command = Command::new(first);
    command
        .args(rest)
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(PART, part)
        .current_dir("/");
    command
}

/// Runs a part of a test and requires that it passed.
#[track_caller]
pub(crate) fn require_pass(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let has_passed = output.status.success() && stdout.contains("1 passed");
    assert!(has_passed, "{command:?}\n{stdout}\n{stderr}");
    stderr
        .lines()
        .filter(|line| line.starts_with("skipped"))
        .for_each(say);
}

/// Prints that a part is ready and stays until its standard input ends.
pub(crate) fn stay() {
    // Past the test harness, which would keep it.
    let mut stdout = std::io::stdout();
    writeln!(stdout, "ready").unwrap();
    let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
}

/// A temporary folder that every user may enter and read.
pub(crate) fn public_folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open).unwrap();
    folder
}

/// Reads an environment variable that the other part of a test has set.
#[track_caller]
pub(crate) fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is set"))
}

/// Finds a program in the folders of `PATH`, past the wrappers of version managers.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let places = ["/usr/bin", "/bin", "/usr/local/bin"];
    let found = places.iter().map(|place| Path::new(place).join(name));
    found.into_iter().find(|path| path.exists())
}
