//! A process that poses as Claude Code and runs commands, like a hook.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::world::{WHOSUP, World, wait_for};

/// A shell that looks like Claude Code and runs the lines that it gets. It ends with the
/// test, for it reads from a pipe that the test holds.
pub(crate) struct ShellAgent<'w> {
    world: &'w World,
    child: Child,
    commands: u32,
}

impl<'w> ShellAgent<'w> {
    /// Starts one that poses as Claude Code.
    pub(crate) fn start(world: &'w World) -> Self {
        Self::start_as(world, "@anthropic-ai/claude-code/bin/claude", &[])
    }

    /// Starts one that poses as the daemon of Codex, which runs many sessions.
    pub(crate) fn start_codex_daemon(world: &'w World) -> Self {
        // To a shell, the first argument is the script that it runs.
        let script = "while read -r line; do eval \"$line\"; done\n";
        world.write("src/shop/app-server", script);
        let arguments = ["app-server", "--listen", "unix://", "--managed-daemon"];
        Self::start_as(world, "codex/bin/codex", &arguments)
    }

    /// Starts an agent with a name of its own, which nothing recognizes.
    pub(crate) fn start_unrecognized(world: &'w World) -> Self {
        Self::start_as(world, "bin/cc", &[])
    }

    /// Starts a process that starts other programs and is no agent.
    pub(crate) fn start_cron(world: &'w World) -> Self {
        Self::start_as(world, "bin/cron", &[])
    }

    fn start_as(world: &'w World, program: &str, arguments: &[&str]) -> Self {
        let program = world.root().join("opt").join(program);
        if !program.exists() {
            std::fs::create_dir_all(program.parent().unwrap()).unwrap();
            crate::world::copy_program("/bin/sh", &program);
        }
        let mut command = Command::new(&program);
        command
            .arg0(program.file_name().unwrap())
            .args(arguments)
            .env_clear()
            .env("HOME", world.home())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .current_dir(world.work_dir())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = wait_for("the agent to start", || match command.spawn() {
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => None,
            result => Some(result.unwrap()),
        });
        Self {
            world,
            child,
            commands: 0,
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its start stamp.
    pub(crate) fn start_stamp(&self) -> String {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap();
        let after_name = stat.rsplit_once(')').unwrap().1;
        after_name.split_whitespace().nth(19).unwrap().to_owned()
    }

    /// Runs a line of shell in the agent and waits for its end. Returns the exit status and all
    /// output.
    #[track_caller]
    pub(crate) fn run(&mut self, line: &str) -> (String, String) {
        self.commands += 1;
        let at = |name: &str| {
            self.world
                .root()
                .join(format!("{name}-{}-{}", self.pid(), self.commands))
        };
        let (said, status) = (at("said"), at("status"));
        let script = at("script");
        let text = format!(
            "{{ {line}\n}} > '{}' 2>&1; echo $? > '{}.new'; mv '{}.new' '{}'\n",
            said.display(),
            status.display(),
            status.display(),
            status.display()
        );
        std::fs::write(&script, text).unwrap();
        let stdin = self.child.stdin.as_mut().unwrap();
        writeln!(stdin, ". '{}'", script.display()).unwrap();
        stdin.flush().unwrap();
        let status = wait_for("the agent's command to end", || {
            std::fs::read_to_string(&status).ok()
        });
        (
            status.trim().to_owned(),
            std::fs::read_to_string(&said).unwrap(),
        )
    }

    /// Writes a payload for a hook to read.
    pub(crate) fn payload(&mut self, event: &Value) -> PathBuf {
        self.commands += 1;
        let name = format!("payload-{}-{}", self.pid(), self.commands);
        let path = self.world.root().join(name);
        std::fs::write(&path, event.to_string()).unwrap();
        path
    }

    /// Runs the agent's hook with an event.
    #[track_caller]
    pub(crate) fn hook(&mut self, event: &Value) {
        let payload = self.payload(event);
        let line = format!("'{WHOSUP}' hook claude-code < '{}'", payload.display());
        let (status, said) = self.run(&line);
        assert_eq!((status.as_str(), said.as_str()), ("0", ""), "{event}");
    }

    /// Runs a hook with an event, with these variables of a shell set.
    #[track_caller]
    pub(crate) fn hook_with(&mut self, variables: &str, event: &Value) {
        let payload = self.payload(event);
        let line = format!(
            "{variables} '{WHOSUP}' hook claude-code < '{}'",
            payload.display()
        );
        let (status, said) = self.run(&line);
        assert_eq!((status.as_str(), said.as_str()), ("0", ""), "{event}");
    }

    /// Runs the agent's hook with an event of a session.
    #[track_caller]
    pub(crate) fn report(&mut self, session: &str, name: &str, more: Value) {
        self.hook(&event(self.world, session, name, more));
    }

    /// Reports the start of a turn.
    #[track_caller]
    pub(crate) fn prompt(&mut self, session: &str) {
        self.report(session, "UserPromptSubmit", json!({"prompt": "p"}));
    }

    /// Ends it as a crash does, and reaps it.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for ShellAgent<'_> {
    fn drop(&mut self) {
        // By its handle, so never another process; it may have exited already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// An event of a session, as Claude Code passes it to hooks.
pub(crate) fn event(world: &World, session: &str, name: &str, more: Value) -> Value {
    let mut event = json!({
        "session_id": session,
        "transcript_path": world.home().join(format!(".claude/projects/-x/{session}.jsonl")),
        "cwd": world.work_dir(),
        "hook_event_name": name,
    });
    let fields = event.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    event
}

/// Writes a record of a session of Claude Code, with these fields.
pub(crate) fn write_record(world: &World, session: &str, fields: &Value) -> PathBuf {
    let mut record = json!({
        "schema_version": 1,
        "agent": "claude-code",
        "session_id": session,
        "home": world.home().join(".claude"),
        "phase": "working",
        "last_event_at": "2026-01-01T00:00:00.000Z",
    });
    let fields = fields.as_object().unwrap().clone();
    record.as_object_mut().unwrap().extend(fields);
    let name = format!(".local/state/whosup/sessions/claude-code/{session}.json");
    world.write(&name, record.to_string())
}

/// The owner in a record that ran on another host.
pub(crate) fn owner_elsewhere() -> Value {
    json!({
        "pid": 4711, "start_stamp": "1", "start_stamp_kind": "linux-ticks",
        "hostname": "elsewhere", "boot_id": null, "pid_namespace": 4_026_531_836_u64,
    })
}

/// A file of a session's records.
pub(crate) fn file_of(world: &World, session: &str, extension: &str) -> PathBuf {
    let name = format!(".local/state/whosup/sessions/claude-code/{session}.{extension}");
    world.home().join(name)
}

/// A session's record.
#[track_caller]
pub(crate) fn record_of(world: &World, session: &str) -> Value {
    let text = std::fs::read(file_of(world, session, "json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

/// The lines of a session's log, each of which must be whole.
#[track_caller]
pub(crate) fn log_of(world: &World, session: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(file_of(world, session, "jsonl")).unwrap();
    let lines = text.lines().filter(|line| !line.is_empty());
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}
