//! A home, agents' processes that are made up, and their hooks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use whosup_core::machine::command::NoCommands;
use whosup_core::machine::mounts::Mounts;
use whosup_core::machine::{Environment, Machine};
use whosup_core::process::{Pid, PidScope, ProcessTable, Recorded, RecordedProcess, View};
use whosup_core::sessions::scan::{Scope, scan};
use whosup_core::sessions::session::Session;
use whosup_core::sidecar::AgentId;
use whosup_core::sources::agents;
use whosup_core::sources::record::{EndCause, SessionRecord, read_records};
use whosup_track::{HookWorld, Prompts, SweepOptions, SweepReport, receive, sweep};

/// When the story begins, in milliseconds since 1970.
pub(crate) const BEGIN_MS: i64 = 1_795_812_000_000;
/// How much later each event is than the one before.
const STEP_MS: i64 = 1_000;
/// The PIDs of hooks begin here.
const FIRST_HOOK: i32 = 100_000;

/// A home, agents' processes that are made up, and their hooks.
pub(crate) struct Scene {
    directory: tempfile::TempDir,
    processes: BTreeMap<i32, RecordedProcess>,
    /// How many processes with this PID were killed.
    killed: BTreeMap<i32, u32>,
    scope: Option<PidScope>,
    view: Option<View>,
    hooks: i32,
    /// The process that the hooks' environment names.
    pub(crate) named: Option<i32>,
    pub(crate) now_ms: i64,
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            processes: BTreeMap::new(),
            killed: BTreeMap::new(),
            scope: None,
            view: None,
            hooks: FIRST_HOOK,
            named: None,
            now_ms: BEGIN_MS,
        }
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.directory.path().canonicalize().unwrap()
    }

    /// Where the process that has this PID now works: each in a directory of its own.
    pub(crate) fn work_dir(&self, pid: i32) -> PathBuf {
        let killed = self.killed.get(&pid).copied().unwrap_or(0);
        self.home().join(format!("work-{pid}-{killed}"))
    }

    /// Starts Claude Code as the process `pid`, `ticks` after boot.
    pub(crate) fn start(&mut self, pid: i32, ticks: u64) {
        let process = self.claude(pid, ticks, 1);
        self.add(process);
    }

    /// A process of Claude Code that is not there yet.
    pub(crate) fn claude(&self, pid: i32, ticks: u64, parent: i32) -> RecordedProcess {
        RecordedProcess::new(pid, ticks, self.now_ms - STEP_MS)
            .comm("claude")
            .argv(&["claude"])
            .exe("/opt/@anthropic-ai/claude-code/bin/claude")
            .cwd(self.work_dir(pid))
            .ppid(parent)
            .cpu_ms(ticks)
    }

    pub(crate) fn add(&mut self, process: RecordedProcess) {
        self.processes.insert(process.process.pid.get(), process);
    }

    /// Ends a process, however that is done.
    pub(crate) fn kill(&mut self, pid: i32) {
        self.processes.remove(&pid).unwrap();
        *self.killed.entry(pid).or_default() += 1;
    }

    /// Looks from elsewhere from now on.
    pub(crate) fn look_from(&mut self, scope: PidScope, view: View) {
        (self.scope, self.view) = (Some(scope), Some(view));
    }

    fn table(&self) -> Recorded {
        let table = Recorded::initial();
        let table = match (&self.scope, &self.view) {
            (Some(scope), Some(view)) => table.with_scope(scope.clone()).with_view(view.clone()),
            _ => table,
        };
        self.processes.values().cloned().fold(table, Recorded::with)
    }

    fn environment(&self) -> Environment {
        Environment::new(Some(self.home()), None, [])
    }

    /// This machine as it is now.
    pub(crate) fn machine(&self) -> Machine {
        Machine::new(
            self.environment(),
            self.now_ms,
            ProcessTable::look(Arc::new(self.table())),
            Mounts::parse(b""),
            Arc::new(NoCommands),
        )
    }

    /// Lets a hook of the process `pid` report an event. `true` if the session
    /// has ended and this hook is to pass that on.
    pub(crate) fn report(&mut self, pid: i32, session: &str, name: &str, more: Value) -> bool {
        let mut event = json!({
            "session_id": session,
            "cwd": self.work_dir(pid),
            "hook_event_name": name,
        });
        let fields = event.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        self.tell_payload(pid, &event)
    }

    pub(crate) fn tell_payload(&mut self, pid: i32, payload: &Value) -> bool {
        self.now_ms += STEP_MS;
        self.hooks += 1;
        let hook = RecordedProcess::new(self.hooks, 1_000_000, self.now_ms)
            .comm("whosup")
            .ppid(pid);
        let variable = |pid: i32| ("CLAUDE_PID".to_owned(), pid.to_string().into());
        let named = self.named.map(variable);
        let world = HookWorld {
            environment: Environment::new(Some(self.home()), None, named),
            backend: Arc::new(self.table().with(hook)),
            hook: Pid::new(self.hooks.into()).unwrap(),
            event: None,
            now_ms: self.now_ms,
            prompts: Prompts::Keep,
            is_aftermath: false,
        };
        let adapter = agents::adapter(&claude_code()).unwrap();
        let ended = receive(adapter, payload.to_string().as_bytes(), &world).unwrap();
        ended.is_some()
    }

    /// Sweeps.
    pub(crate) fn sweep(&mut self) -> SweepReport {
        self.now_ms += STEP_MS;
        let report = sweep(|| self.machine(), &SweepOptions::default()).unwrap();
        assert!(report.problems.is_empty(), "{:?}", report.problems);
        report
    }

    /// The record of a session, as any reader has it.
    pub(crate) fn record(&self, session: &str) -> Option<SessionRecord> {
        let root = self.home().join(".local/state/whosup/sessions");
        let read = read_records(&root, |_| true);
        assert!(read.problems.is_empty(), "{:?}", read.problems);
        let mut records = read.found.into_iter().map(|stored| stored.record);
        records.find(|record| record.session.as_str() == session)
    }

    /// The end of a session: `None` while it continues.
    pub(crate) fn end(&self, session: &str) -> Option<(EndCause, i64)> {
        let record = self.record(session).unwrap();
        record.heard.end_cause.zip(record.ended_at_ms)
    }

    /// The session as a scan shows it.
    pub(crate) fn listed(&self, session: &str) -> Option<Session> {
        let machine = self.machine();
        let scanned = scan(&machine, &Scope::default());
        let mut sessions = scanned.snapshot.sessions.into_iter();
        sessions.find(|listed| listed.key.session.as_str() == session)
    }

    /// Writes what Claude Code publishes of a process: the session that it serves.
    pub(crate) fn publish(&self, pid: i32, ticks: u64, session: &str) {
        let record = json!({
            "pid": pid,
            "sessionId": session,
            "cwd": self.work_dir(pid),
            "startedAt": self.now_ms,
            "procStart": ticks.to_string(),
            "version": "2.1.197",
            "kind": "interactive",
            "entrypoint": "cli",
            "status": "busy",
            "updatedAt": self.now_ms,
            "statusUpdatedAt": self.now_ms,
        });
        let path = self.home().join(format!(".claude/sessions/{pid}.json"));
        write(&path, &record.to_string());
    }

    /// Writes a transcript whose last record is a tool call without an answer.
    pub(crate) fn write_transcript(&self, pid: i32, session: &str, at_ms: i64) -> PathBuf {
        let at = whosup_core::views::wire::timestamp(at_ms).unwrap();
        let common = |kind: &str, message: Value| {
            json!({
                "type": kind,
                "isSidechain": false,
                "message": message,
                "timestamp": at,
                "cwd": self.work_dir(pid),
                "sessionId": session,
                "version": "2.1.197",
            })
        };
        let call = json!({"type": "tool_use", "id": "t1", "name": "Bash", "input": {}});
        let lines = [
            common("user", json!({"role": "user", "content": "Fix it"})),
            common("assistant", json!({"role": "assistant", "content": [call]})),
        ];
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let work_dir = self.work_dir(pid).to_string_lossy().into_owned();
        let encode = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let folder: String = work_dir.chars().map(encode).collect();
        let path = format!(".claude/projects/{folder}/{session}.jsonl");
        let path = self.home().join(path);
        write(&path, &text);
        path
    }
}

pub(crate) fn claude_code() -> AgentId {
    AgentId::parse("claude-code").unwrap()
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}
