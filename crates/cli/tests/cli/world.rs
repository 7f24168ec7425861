//! A temporary home, and real processes that pose as agents.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command as StdCommand, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use assert_cmd::Command;
use serde_json::{Value, json};
use tempfile::TempDir;

/// How long one command may take on a loaded machine.
const COMMAND_TIME_MAX: Duration = Duration::from_secs(60);

/// How long to wait for a condition.
const WAIT_MAX: Duration = Duration::from_secs(120);

/// How long to sleep between two looks at a condition.
const WAIT_STEP: Duration = Duration::from_millis(10);

/// How many worlds this program has made.
static WORLDS: AtomicU32 = AtomicU32::new(0);

/// The program under test.
pub(crate) const WHOSUP: &str = env!("CARGO_BIN_EXE_whosup");

/// A temporary home and a directory to work in. Both are removed on drop.
///
/// Other agents may run on this machine, also those of other tests: ask only for sessions of
/// [`World::work_dir`], and by IDs that no other world has.
pub(crate) struct World {
    /// The id of a session.
    pub(crate) s1: String,
    /// The ID of another session.
    pub(crate) s2: String,
    root: PathBuf,
    _directory: TempDir,
}

/// A process that poses as an agent. It ends with the test, however the test ends: it reads from a
/// pipe that the test holds.
pub(crate) struct Posing {
    child: Child,
}

/// The output of a command.
pub(crate) struct Said {
    pub(crate) status: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    /// The output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let Self { status, out, err } = self;
        serde_json::from_str(out).unwrap_or_else(|error| panic!("{error}: {status} {out} {err}"))
    }

    /// The sessions of the output.
    #[track_caller]
    pub(crate) fn sessions(&self) -> Vec<Value> {
        self.json()["sessions"].as_array().unwrap().clone()
    }
}

impl World {
    pub(crate) fn new() -> Self {
        let directory = tempfile::Builder::new()
            .prefix("whosup-cli-")
            .tempdir()
            .unwrap();
        let root = directory.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("dev/src/shop")).unwrap();
        let number = WORLDS.fetch_add(1, Ordering::Relaxed);
        let id = |first: u8| {
            let pid = std::process::id();
            format!(
                "{first:02x}{number:03x}{:03x}-0000-4000-8000-{pid:012x}",
                pid & 0xfff
            )
        };
        Self {
            s1: id(0x0a),
            s2: id(0x19),
            root,
            _directory: directory,
        }
    }

    /// A shell that looks like Claude Code, which runs what an agent would do.
    pub(crate) fn shell_as_claude(&self) -> PathBuf {
        let program = self.root().join("opt/@anthropic-ai/claude-code/bin/claude");
        std::fs::create_dir_all(program.parent().unwrap()).unwrap();
        copy_program("/bin/sh", &program);
        program
    }

    /// The directory around home, for programs and sockets.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.join("dev")
    }

    pub(crate) fn work_dir(&self) -> PathBuf {
        self.home().join("src/shop")
    }

    /// Writes a file below home, with its directories.
    pub(crate) fn write(&self, below: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.home().join(below);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// The program, in this home and without a terminal.
    pub(crate) fn whosup(&self) -> Command {
        let mut command = Command::new(WHOSUP);
        command
            .env_clear()
            .env("HOME", self.home())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .current_dir(self.work_dir())
            .timeout(COMMAND_TIME_MAX);
        command
    }

    /// Runs the program.
    #[track_caller]
    pub(crate) fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Said {
        said(self.whosup().args(arguments))
    }

    /// Starts a process that looks like `program`, a path below an installation directory, and reads
    /// standard input until the test ends.
    pub(crate) fn pose(&self, program: &str, change: impl FnOnce(&mut StdCommand)) -> Posing {
        let path = self.root.join("opt").join(program);
        if !path.exists() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            copy_program("/bin/cat", &path);
        }
        let name = path.file_name().unwrap().to_owned();
        let mut command = StdCommand::new(&path);
        command
            .arg0(name)
            .env_clear()
            .env("HOME", self.home())
            .current_dir(self.work_dir())
            .stdin(Stdio::piped())
            .stdout(Stdio::null());
        change(&mut command);
        // A program that was just written may still be open for writing in a child that another test is
        // about to start: ETXTBSY.
        let child = wait_for("the program to start", || match command.spawn() {
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => None,
            result => Some(result.unwrap()),
        });
        Posing { child }
    }

    /// Starts a process that poses as Claude Code.
    pub(crate) fn pose_as_claude(&self) -> Posing {
        self.pose("@anthropic-ai/claude-code/bin/claude", |_| {})
    }

    /// Announces a session of an agent without an adapter: writes its sidecar, with these
    /// fields beside those that every sidecar has.
    pub(crate) fn announce(&self, agent: &str, session: &str, fields: Value) -> PathBuf {
        let mut sidecar = json!({
            "schema_version": 1,
            "session_id": session,
            "work_dir": self.work_dir(),
            "hostname": "",
            "started_at": now_ms() / 1_000,
        });
        let Value::Object(fields) = fields else {
            panic!("not fields: {fields}")
        };
        sidecar.as_object_mut().unwrap().extend(fields);
        let place = format!(".local/state/agent-sessions/{agent}/{session}.runtime.json");
        self.write(&place, sidecar.to_string())
    }

    /// Writes the record that Claude Code keeps of a process.
    pub(crate) fn write_claude_record(&self, pid: u32, start: &str, session: &str) -> PathBuf {
        let now = now_ms();
        let record = json!({
            "pid": pid,
            "sessionId": session,
            "cwd": self.work_dir(),
            "startedAt": now,
            "procStart": start,
            "version": "2.1.197",
            "kind": "interactive",
            "entrypoint": "cli",
            "status": "idle",
            "updatedAt": now,
            "statusUpdatedAt": now,
        });
        self.write(&format!(".claude/sessions/{pid}.json"), record.to_string())
    }

    /// Writes a transcript of Claude Code below a home of it, and returns its path.
    pub(crate) fn write_claude_transcript(&self, home: &str, session: &str) -> PathBuf {
        let line = json!({
            "type": "user",
            "isSidechain": false,
            "message": { "role": "user", "content": "Fix the flaky login test" },
            "timestamp": "2026-11-27T20:57:20.486Z",
            "cwd": self.work_dir(),
            "sessionId": session,
            "version": "2.1.197",
        });
        let encode = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let work_dir = self.work_dir();
        let folder: String = work_dir.to_str().unwrap().chars().map(encode).collect();
        self.write(
            &format!("{home}/projects/{folder}/{session}.jsonl"),
            format!("{line}\n"),
        )
    }
}

impl Posing {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its start stamp.
    pub(crate) fn start(&self) -> String {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap();
        let after_name = stat.rsplit_once(')').unwrap().1;
        after_name.split_whitespace().nth(19).unwrap().to_owned()
    }

    /// Kills it without reaping it, and waits until it is a zombie.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        let path = format!("/proc/{}/stat", self.pid());
        wait_for("the killed process to be a zombie", || {
            let stat = std::fs::read_to_string(&path).unwrap();
            stat.rsplit_once(") ")
                .unwrap()
                .1
                .starts_with('Z')
                .then_some(())
        });
    }

    /// Reaps it.
    pub(crate) fn reap(mut self) {
        self.child.wait().unwrap();
    }
}

impl Drop for Posing {
    fn drop(&mut self) {
        // By its handle, so never another process; it may have exited already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Runs a command to its end.
#[track_caller]
pub(crate) fn said(command: &mut Command) -> Said {
    let output = command.output().unwrap();
    Said {
        status: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Waits until `look` returns something.
#[track_caller]
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + WAIT_MAX;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "waited too long for {what}");
        std::thread::sleep(WAIT_STEP);
    }
}

/// Whether this is the reason for a process that was killed and reaped: on a busy machine
/// another process may have its PID by then, and that answer is right too.
pub(crate) fn is_of_the_dead(reason: &str) -> bool {
    ["process-gone", "no-such-process", "pid-reused"].contains(&reason)
}

/// A text in which it makes no difference whether the PID of a dead process is in use again.
pub(crate) fn ignoring_pid_reuse(text: &str) -> String {
    text.replace("pid-reused", "process-gone")
}

/// Sends a signal to a child of this process, so that its PID is no other's.
pub(crate) fn signal(pid: u32, name: &str) {
    let sent = StdCommand::new("kill")
        .args(["-s", name, &pid.to_string()])
        .status();
    assert!(sent.unwrap().success());
}

pub(crate) fn now_ms() -> u64 {
    let now = std::time::SystemTime::now();
    let now = now.duration_since(std::time::UNIX_EPOCH).unwrap();
    u64::try_from(now.as_millis()).unwrap()
}

/// Copies a program with another process: a file that this process wrote may still be open for
/// writing in a child that another test is about to start, and can't be executed then (`ETXTBSY`).
pub(crate) fn copy_program(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    let status = StdCommand::new("cp")
        .arg(from.as_ref())
        .arg(to.as_ref())
        .status();
    assert!(status.unwrap().success());
}
