//! A made-up world, and the output of commands in it.

use std::cell::{OnceCell, RefCell};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::tz::TimeZone;
use serde_json::{Value, json};
use tempfile::TempDir;
use whosup_core::machine::command::NoCommands;
use whosup_core::machine::mounts::Mounts;
use whosup_core::machine::{Environment, Machine};
use whosup_core::process::{ProcessTable, Recorded, RecordedProcess};

use crate::app::{App, Face, World as Looked};
use crate::commands::{self, Command};
use crate::{cli, exit};

/// When every look is taken.
pub(super) const NOW: &str = "2026-11-27T21:00:00Z";

/// How often a command looks at the machine: itself, and a sweep before it.
const LOOKS_MAX: usize = 3;

/// One minute, in milliseconds.
pub(super) const MINUTE_MS: i64 = 60_000;

/// Replaces the temporary home in the output of a command.
pub(super) const HOME_MARK: &str = "@HOME@";

/// IDs of sessions in these worlds, by purpose.
pub(super) const S1: &str = "0a022b20-e8f2-410e-9552-8385582a8e8b";
pub(super) const S2: &str = "1995922c-0f49-4f58-9191-41edd8aab1a1";
pub(super) const S3: &str = "63502901-2d2e-4b8f-9603-d1a72fc34e00";
pub(super) const S4: &str = "65a50973-1e89-4e46-9796-e531b87743d1";
pub(super) const S5: &str = "7e7b0e87-5325-41c1-972e-1f95c828a908";
pub(super) const S6: &str = "83c0808e-7786-405f-8d13-398bfdbe8348";

/// A made-up world. Its files go when it is dropped.
pub(super) struct World {
    home: PathBuf,
    table: Recorded,
    _directory: TempDir,
}

/// The output of a command, and its exit status.
pub(super) struct Said {
    pub(super) status: u8,
    pub(super) out: String,
    pub(super) err: String,
}

impl Said {
    /// Output and exit status, for a snapshot.
    pub(super) fn text(&self) -> String {
        let Self { status, out, err } = self;
        format!("status {status}\n--- out\n{out}--- err\n{err}")
    }

    /// The output as JSON.
    #[track_caller]
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }
}

/// The instant of every look, in milliseconds since 1970.
pub(super) fn now_ms() -> i64 {
    NOW.parse::<jiff::Timestamp>().unwrap().as_millisecond()
}

fn date(minutes_ago: i64) -> String {
    let at = jiff::Timestamp::from_millisecond(now_ms() - minutes_ago * MINUTE_MS).unwrap();
    format!("{at:.3}")
}

impl World {
    pub(super) fn new() -> Self {
        let directory = tempfile::Builder::new()
            .prefix("whosup-test-")
            .tempdir()
            .unwrap();
        let home = directory.path().canonicalize().unwrap().join("dev");
        std::fs::create_dir(&home).unwrap();
        Self {
            home,
            table: Recorded::initial(),
            _directory: directory,
        }
    }

    /// A path below home.
    pub(super) fn path(&self, below: &str) -> PathBuf {
        self.home.join(below)
    }

    /// Writes a file below home, with its directories.
    pub(super) fn write(&self, below: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(below);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    /// Makes a directory below home to work in.
    pub(super) fn work_dir(&self, below: &str) -> PathBuf {
        let path = self.path(below);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    pub(super) fn add_process(&mut self, process: RecordedProcess) {
        let process = process.env(&[("HOME", self.home.to_str().unwrap())]);
        self.table = self.table.clone().with(process);
    }

    pub(super) fn change_table(&mut self, change: impl FnOnce(Recorded) -> Recorded) {
        self.table = change(self.table.clone());
    }

    /// Adds a process of Claude Code that began an hour ago.
    pub(super) fn add_claude_process(&mut self, pid: i32, work_dir: &str, arguments: &[&str]) {
        let cwd = self.work_dir(work_dir);
        let argv: Vec<&str> = std::iter::once("claude")
            .chain(arguments.iter().copied())
            .collect();
        let exe = "/opt/lib/node_modules/@anthropic-ai/claude-code/bin/claude.exe";
        let process = RecordedProcess::new(pid, ticks(pid), now_ms() - 60 * MINUTE_MS)
            .comm("claude")
            .argv(&argv)
            .exe(exe)
            .cwd(cwd)
            .tty(136, u32::try_from(pid).unwrap());
        self.add_process(process);
    }

    /// Writes a record of Claude Code's registry that was written so many minutes ago, with
    /// `more` merged into it.
    pub(super) fn write_claude_record(
        &self,
        pid: i32,
        session: &str,
        work_dir: &str,
        minutes_ago: i64,
        more: &Value,
    ) {
        let at = now_ms() - minutes_ago * MINUTE_MS;
        let mut record = json!({
            "pid": pid,
            "sessionId": session,
            "cwd": self.work_dir(work_dir),
            "startedAt": now_ms() - 59 * MINUTE_MS,
            "procStart": ticks(pid).to_string(),
            "version": "2.1.197",
            "kind": "interactive",
            "entrypoint": "cli",
            "status": "idle",
            "updatedAt": at,
            "statusUpdatedAt": at,
        });
        for (key, value) in more.as_object().unwrap() {
            record[key] = value.clone();
        }
        self.write(&format!(".claude/sessions/{pid}.json"), record.to_string());
    }

    /// Writes a transcript of Claude Code: a prompt and a reply.
    pub(super) fn write_claude_transcript(
        &self,
        session: &str,
        work_dir: &str,
        prompt: &str,
        minutes_ago: i64,
    ) {
        let cwd = self.work_dir(work_dir);
        let line = |kind: &str, message: Value, ago: i64| {
            json!({
                "type": kind,
                "isSidechain": false,
                "message": message,
                "timestamp": date(ago),
                "cwd": cwd,
                "sessionId": session,
                "version": "2.1.197",
                "gitBranch": "main",
            })
            .to_string()
        };
        let prompt = json!({ "role": "user", "content": prompt });
        let reply = json!({
            "role": "assistant",
            "model": "claude-opus-4-8",
            "content": [{ "type": "text", "text": "Done.\n\tAll tests pass." }],
            "stop_reason": "end_turn",
        });
        let lines = [
            line("user", prompt, minutes_ago + 1),
            line("assistant", reply, minutes_ago),
        ];
        let folder = project_folder(&cwd);
        self.write(
            &format!(".claude/projects/{folder}/{session}.jsonl"),
            lines.join("\n") + "\n",
        );
    }

    /// Writes the transcript of a sub-agent of a session of Claude Code.
    pub(super) fn write_claude_sub_agent(&self, parent: &str, work_dir: &str, agent: &str) {
        let cwd = self.work_dir(work_dir);
        let line = json!({
            "type": "user",
            "isSidechain": true,
            "agentId": agent,
            "message": { "role": "user", "content": "Look for the test" },
            "timestamp": date(4),
            "cwd": cwd,
            "sessionId": parent,
            "version": "2.1.197",
        });
        let folder = project_folder(&cwd);
        self.write(
            &format!(".claude/projects/{folder}/{parent}/subagents/agent-{agent}.jsonl"),
            format!("{line}\n"),
        );
    }

    /// Adds a live session of Claude Code.
    pub(super) fn add_claude(
        &mut self,
        pid: i32,
        session: &str,
        work_dir: &str,
        minutes_ago: i64,
        more: &Value,
    ) {
        self.add_claude_process(pid, work_dir, &[]);
        self.write_claude_record(pid, session, work_dir, minutes_ago, more);
    }

    fn machine(&self) -> Machine {
        Machine::new(
            Environment::new(Some(self.home.clone()), Some(self.home.clone()), []),
            now_ms(),
            ProcessTable::look(Arc::new(self.table.clone())),
            Mounts::parse(b"27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"),
            Arc::new(NoCommands),
        )
    }

    /// Runs a command with its output in a pipe. [`HOME_MARK`] in the arguments stands for home;
    /// spaces separate them.
    #[track_caller]
    pub(super) fn run(&self, line: &str) -> Said {
        let face = Face {
            is_coloured: false,
            width: None,
        };
        self.run_with(line, face)
    }

    /// Runs a command on a terminal of so many columns.
    #[track_caller]
    pub(super) fn run_on_terminal(&self, line: &str, width: usize, is_coloured: bool) -> Said {
        let face = Face {
            is_coloured,
            width: Some(width),
        };
        self.run_with(line, face)
    }

    #[track_caller]
    fn run_with(&self, line: &str, face: Face) -> Said {
        let home = self.home.to_str().unwrap();
        let words = std::iter::once("whosup").chain(line.split_whitespace());
        let words = words.map(|word| word.replace(HOME_MARK, home).into());
        let cli = cli::parse(words).unwrap_or_else(|error| panic!("{line}: {error}"));
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let machines = (0..LOOKS_MAX).map(|_| self.machine());
        let machines = RefCell::new(machines.collect::<Vec<_>>());
        let mut app = App {
            world: Looked::of(
                move || machines.borrow_mut().pop().expect("few looks"),
                OnceCell::from(TimeZone::UTC),
            ),
            out: &mut out,
            err: &mut err,
            face,
            is_verbose: false,
        };
        let command = cli.command.unwrap_or_else(Command::list);
        let status = match commands::run_command(&mut app, command) {
            Ok(status) => status,
            Err(error) => exit::report(&error, app.err),
        };
        // Claude Code makes names of folders out of it.
        let encoded = project_folder(&self.home);
        let text = |bytes| {
            let text = String::from_utf8(bytes).unwrap();
            text.replace(home, HOME_MARK).replace(&encoded, "-HOME")
        };
        Said {
            status: status.code(),
            out: text(out),
            err: text(err),
        }
    }
}

/// The start stamp of a process of these worlds.
pub(super) fn ticks(pid: i32) -> u64 {
    u64::try_from(pid).unwrap() * 100
}

/// The name of Claude Code's and Qwen Code's folder for a directory.
pub(super) fn project_folder(work_dir: &Path) -> String {
    let encode = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    work_dir.to_str().unwrap().chars().map(encode).collect()
}
