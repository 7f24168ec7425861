//! Real processes, each the only one to have the variable set that moves the
//! home of its agent: the program that looks has not.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command as StdCommand, Stdio};

use rusqlite::Connection;
use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};

use super::world::{Posing, World, copy_program, now_ms, said};

/// Where the variable of a test leads, below home.
const ELSEWHERE: &str = "elsewhere";

/// A world in which one process knows of a directory.
struct Moved {
    world: World,
    /// The directory.
    root: PathBuf,
}

impl Moved {
    fn new() -> Self {
        let world = World::new();
        let root = world.home().join(ELSEWHERE);
        std::fs::create_dir_all(&root).unwrap();
        Self { world, root }
    }

    fn write(&self, below: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        self.world.write(&format!("{ELSEWHERE}/{below}"), bytes)
    }

    fn work_dir(&self) -> String {
        self.world.work_dir().to_str().unwrap().to_owned()
    }

    /// Its directory with everything but letters and digits as a hyphen.
    fn work_dir_in_hyphens(&self) -> String {
        let encode = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        self.work_dir().chars().map(encode).collect()
    }

    /// A lock that only the process to be started will hold.
    fn lock(&self, below: &str) -> Stdio {
        let path = self.write(below, "");
        let lock = File::options().append(true).open(path).unwrap();
        flock(&lock, FlockOperation::LockExclusive).unwrap();
        lock.into()
    }

    /// Starts a shell, called `program`, on a script: it waits for the end of the
    /// test, whatever its arguments are.
    fn pose_on_script(
        &self,
        program: &str,
        script: &str,
        arguments: &[&str],
        change: impl FnOnce(&mut StdCommand),
    ) -> Posing {
        let script = self.world.root().join("opt").join(script);
        std::fs::create_dir_all(script.parent().unwrap()).unwrap();
        std::fs::write(&script, "read line\n").unwrap();
        let path = self.world.root().join("opt").join(program);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        copy_program("/bin/sh", &path);
        self.world.pose(program, |command| {
            command.arg(&script).args(arguments);
            change(command);
        })
    }

    /// Starts a shell that is called `program` and reads commands; `-s` says that
    /// all other arguments are none of its business.
    fn pose_as_shell(
        &self,
        program: &str,
        session: &str,
        change: impl FnOnce(&mut StdCommand),
    ) -> Posing {
        let path = self.world.root().join("opt").join(program);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        copy_program("/bin/sh", &path);
        self.world.pose(program, |command| {
            command.args(["-s", session]);
            change(command);
        })
    }

    /// Checks that the one session of the directory is that one, live in `posing`,
    /// in this home.
    #[track_caller]
    fn check(&self, agent: &str, session: &str, posing: &Posing, home: Option<&Path>) {
        let answer = self.world.run(["list", "--json", "--cwd", "."]).json();
        let rows = answer["sessions"].as_array().unwrap();
        let live: Vec<&Value> = rows
            .iter()
            .filter(|row| row["liveness"] == "live")
            .collect();
        let [row] = live.as_slice() else {
            panic!("{answer:#}");
        };
        assert_eq!(row["agent"], agent, "{row:#}");
        assert_eq!(row["session_id"], session, "{row:#}");
        assert_eq!(row["owner"]["pid"], posing.pid(), "{row:#}");
        assert_eq!(row["work_dir"], self.work_dir(), "{row:#}");
        assert_eq!(row["home"], json!(home), "{row:#}");
        // Processes of other tests lead to their worlds.
        let root = self.world.root().to_str().unwrap();
        let is_here = |problem: &Value| {
            problem["path"]
                .as_str()
                .is_some_and(|path| path.starts_with(root))
        };
        let problems = answer["problems"].as_array().unwrap();
        assert!(!problems.iter().any(is_here), "{answer:#}");
    }

    /// Ends the process, and checks that whoever has the variable set is told how
    /// the session is brought back in its directory: by these arguments, with
    /// these variables.
    #[track_caller]
    fn check_resume(
        &self,
        mut posing: Posing,
        session: &str,
        (variable, value): (&str, &Path),
        argv: &[&str],
        environment: &[(&str, &Path)],
    ) {
        posing.kill();
        posing.reap();
        let mut command = self.world.whosup();
        command.env(variable, value);
        let answer = said(command.args(["list", "--all", "--json", "--cwd", "."])).json();
        let rows = answer["sessions"].as_array().unwrap();
        let row = rows.iter().find(|row| row["session_id"] == session);
        let row = row.unwrap_or_else(|| panic!("{answer:#}"));
        assert_eq!(row["liveness"], "exited", "{row:#}");
        let environment: serde_json::Map<String, Value> = environment
            .iter()
            .map(|(name, path)| ((*name).to_owned(), json!(path)))
            .collect();
        let resume = json!({ "argv": argv, "cwd": self.work_dir(), "env": environment });
        assert_eq!(row["resume"], resume, "{row:#}");
    }
}

/// What a program says of a text on its standard input, up to the first blank.
fn digest(program: &str, text: &str) -> String {
    let mut child = StdCommand::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(text.as_bytes()).unwrap();
    drop(input);
    let output = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    output.split_whitespace().next().unwrap().to_owned()
}

fn time(ms: u64) -> String {
    let at = jiff::Timestamp::from_millisecond(i64::try_from(ms).unwrap()).unwrap();
    format!("{at:.3}")
}

#[test]
fn codex_home_of_the_process_alone_is_found() {
    let moved = Moved::new();
    let thread = format!("01a21ec8-c5bb-78f0-959b-{:012x}", std::process::id());
    let meta = json!({
        "timestamp": time(now_ms()),
        "type": "session_meta",
        "payload": { "id": thread, "cwd": moved.work_dir(), "cli_version": "0.171.0" },
    });
    let name = format!("rollout-2026-11-27T20-00-00-{thread}.jsonl");
    moved.write(&format!("sessions/2026/11/27/{name}"), format!("{meta}\n"));
    let lock = moved.lock(&format!("thread-writer-locks/{thread}.lock"));
    let posing = moved.world.pose("codex/bin/codex", |command| {
        command.env("CODEX_HOME", &moved.root).stdout(lock);
    });
    moved.check("codex", &thread, &posing, Some(&moved.root));
    moved.check_resume(
        posing,
        &thread,
        ("CODEX_HOME", &moved.root),
        &["codex", "resume", &thread],
        &[("CODEX_HOME", &moved.root)],
    );
}

const QWEN: &str = "lib/node_modules/@qwen-code/qwen-code/cli.js";

#[test]
fn qwen_home_of_the_process_alone_is_found() {
    let moved = Moved::new();
    let posing = moved.pose_on_script("bin/node", QWEN, &[], |command| {
        command.env("QWEN_HOME", &moved.root);
    });
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let record = json!({
        "schemaVersion": 1,
        "pid": posing.pid(),
        "procStart": format!("{}:{}", boot.trim(), posing.start()),
        "sessionId": moved.world.s1,
        "cwd": moved.work_dir(),
        "startedAt": now_ms(),
        "qwenVersion": "0.24.4",
        "kind": "tui",
    });
    moved.write(
        &format!("sessions/{}.json", posing.pid()),
        record.to_string(),
    );
    moved.check("qwen-code", &moved.world.s1, &posing, Some(&moved.root));
    moved.check_resume(
        posing,
        &moved.world.s1,
        ("QWEN_HOME", &moved.root),
        &["qwen", "--resume", &moved.world.s1],
        &[("QWEN_HOME", &moved.root)],
    );
}

#[test]
fn qwen_runtime_dir_of_the_process_alone_is_found() {
    let moved = Moved::new();
    let posing = moved.pose_on_script("bin/node", QWEN, &[], |command| {
        command.env("QWEN_RUNTIME_DIR", &moved.root);
    });
    let session = &moved.world.s1;
    let sidecar = json!({
        "schema_version": 1,
        "pid": posing.pid(),
        "session_id": session,
        "work_dir": moved.work_dir(),
        "hostname": rustix::system::uname().nodename().to_str().unwrap(),
        "started_at": now_ms() / 1000 + 1,
        "qwen_version": "0.24.4",
    });
    let folder = moved.work_dir_in_hyphens();
    let below = format!("projects/{folder}/chats/{session}.runtime.json");
    moved.write(&below, sidecar.to_string());
    let line = json!({
        "uuid": "u-1", "sessionId": session, "timestamp": time(now_ms()), "type": "user",
        "cwd": moved.work_dir(), "message": { "role": "user", "parts": [{ "text": "hello" }] },
    });
    let below = format!("projects/{folder}/chats/{session}.jsonl");
    moved.write(&below, format!("{line}\n"));
    moved.check("qwen-code", session, &posing, None);
    moved.check_resume(
        posing,
        session,
        ("QWEN_RUNTIME_DIR", &moved.root),
        &["qwen", "--resume", session],
        &[("QWEN_RUNTIME_DIR", &moved.root)],
    );
}

/// Writes a session of kimi-cli that was said something in.
fn write_kimi(moved: &Moved) {
    let session = &moved.world.s1;
    let folder = digest("md5sum", &moved.work_dir());
    moved.write(
        "kimi.json",
        json!({ "work_dirs": [{ "path": moved.work_dir(), "kaos": "local" }] }).to_string(),
    );
    let line = json!({ "role": "user", "content": "hello" });
    let below = format!("sessions/{folder}/{session}/context.jsonl");
    moved.write(&below, format!("{line}\n"));
}

#[test]
fn kimi_share_dir_of_the_process_alone_is_found() {
    let moved = Moved::new();
    let session = moved.world.s1.as_str();
    let arguments = ["--session", session];
    let posing = moved.pose_on_script("bin/python3.13", "bin/kimi", &arguments, |command| {
        command.env("KIMI_SHARE_DIR", &moved.root);
    });
    write_kimi(&moved);
    moved.check("kimi-cli", session, &posing, Some(&moved.root));
    moved.check_resume(
        posing,
        session,
        ("KIMI_SHARE_DIR", &moved.root),
        &["kimi", "--session", session],
        &[("KIMI_SHARE_DIR", &moved.root)],
    );
}

/// kimi-cli blanks its environment when it sets its title.
#[test]
fn kimi_share_dir_of_a_process_without_an_environment_is_where_its_log_is() {
    let moved = Moved::new();
    let log = File::create(moved.write("logs/kimi.log", "")).unwrap();
    let session = moved.world.s1.as_str();
    let arguments = ["--session", session];
    let posing = moved.pose_on_script("bin/python3.13", "bin/kimi", &arguments, |command| {
        command.env_clear().stdout(log);
    });
    write_kimi(&moved);
    moved.check("kimi-cli", session, &posing, Some(&moved.root));
    moved.check_resume(
        posing,
        session,
        ("KIMI_SHARE_DIR", &moved.root),
        &["kimi", "--session", session],
        &[("KIMI_SHARE_DIR", &moved.root)],
    );
}

#[test]
fn kimi_code_home_of_the_process_alone_is_found() {
    let moved = Moved::new();
    let session = format!("session_{}", moved.world.s1);
    let arguments = ["--session", session.as_str()];
    let script = "lib/node_modules/@moonshot-ai/kimi-code/dist/main.mjs";
    let posing = moved.pose_on_script("bin/node", script, &arguments, |command| {
        command.env("KIMI_CODE_HOME", &moved.root);
    });
    let digest = digest("sha256sum", &moved.work_dir());
    let folder = format!("sessions/wd_shop_{}/{session}", &digest[..12]);
    let now = now_ms();
    let state = json!({
        "id": session, "version": 2, "cwd": moved.work_dir(),
        "createdAt": now, "updatedAt": now, "title": "hello",
    });
    moved.write(&format!("{folder}/state.json"), state.to_string());
    moved.write(&format!("{folder}/agents/main/wire.jsonl"), "");
    moved.check("kimi-code", &session, &posing, Some(&moved.root));
    moved.check_resume(
        posing,
        &session,
        ("KIMI_CODE_HOME", &moved.root),
        &["kimi", "--session", &session],
        &[("KIMI_CODE_HOME", &moved.root)],
    );
}

/// Writes a session of pi below `folder`, and starts a process that names it.
fn pose_as_pi(moved: &Moved, variable: &str, folder: &str) -> (String, Posing) {
    let session = moved.world.s1.clone();
    let arguments = ["--session", session.as_str()];
    let script = "lib/node_modules/@mariozechner/pi-coding-agent/dist/cli.js";
    let posing = moved.pose_on_script("bin/node", script, &arguments, |command| {
        command.env(variable, &moved.root);
    });
    let header = json!({
        "type": "session", "version": 3, "id": session,
        "timestamp": time(now_ms()), "cwd": moved.work_dir(),
    });
    let name = format!("2026-11-27T21-02-29-749Z_{session}.jsonl");
    moved.write(&format!("{folder}{name}"), format!("{header}\n"));
    (session, posing)
}

#[test]
fn pi_coding_agent_dir_of_the_process_alone_is_found() {
    let moved = Moved::new();
    let folder = moved.work_dir().replace('/', "-");
    let folder = format!("sessions/-{folder}--/");
    let (session, posing) = pose_as_pi(&moved, "PI_CODING_AGENT_DIR", &folder);
    moved.check("pi", &session, &posing, Some(&moved.root));
    moved.check_resume(
        posing,
        &session,
        ("PI_CODING_AGENT_DIR", &moved.root),
        &["pi", "--session", &session],
        &[("PI_CODING_AGENT_DIR", &moved.root)],
    );
}

#[test]
fn pi_coding_agent_session_dir_of_the_process_alone_is_found() {
    let moved = Moved::new();
    let (session, posing) = pose_as_pi(&moved, "PI_CODING_AGENT_SESSION_DIR", "");
    moved.check("pi", &session, &posing, None);
    moved.check_resume(
        posing,
        &session,
        ("PI_CODING_AGENT_SESSION_DIR", &moved.root),
        &["pi", "--session", &session],
        &[("PI_CODING_AGENT_SESSION_DIR", &moved.root)],
    );
}

const OPENCODE_TABLES: &str = "
CREATE TABLE session(id text PRIMARY KEY, project_id text NOT NULL, parent_id text,
  directory text NOT NULL, title text NOT NULL, version text NOT NULL, model text,
  time_created integer NOT NULL, time_updated integer NOT NULL, time_archived integer);
CREATE TABLE message(id text PRIMARY KEY, session_id text NOT NULL,
  time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE part(id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
  time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
";

/// Starts a process of opencode, and makes it a session in the database `below`.
fn pose_as_opencode(moved: &Moved, variable: &str, below: &str) -> (String, Posing) {
    let session = format!("ses_de12dc7e6ffe0MJ{:08}", std::process::id());
    let program = "lib/node_modules/opencode-ai/bin/opencode.exe";
    let value = match variable {
        "OPENCODE_DB" => moved.root.join(below),
        _ => moved.root.clone(),
    };
    let posing = moved.pose_as_shell(program, &session, |command| {
        command.arg0("opencode").env(variable, value);
    });
    let path = moved.write(below, "");
    let database = Connection::open(path).unwrap();
    database.execute_batch(OPENCODE_TABLES).unwrap();
    let now = i64::try_from(now_ms()).unwrap();
    database
        .execute(
            "INSERT INTO session VALUES (?1, 'global', NULL, ?2, 'Look', '1.18.33', NULL, ?3, ?3, NULL)",
            (&session, moved.work_dir(), now),
        )
        .unwrap();
    (session, posing)
}

#[test]
fn opencodes_xdg_data_home_of_the_process_alone_is_found() {
    let moved = Moved::new();
    let (session, posing) = pose_as_opencode(&moved, "XDG_DATA_HOME", "opencode/opencode.db");
    let home = moved.root.join("opencode");
    moved.check("opencode", &session, &posing, Some(&home));
    moved.check_resume(
        posing,
        &session,
        ("XDG_DATA_HOME", &moved.root),
        &["opencode", "--session", &session],
        &[("XDG_DATA_HOME", &moved.root)],
    );
}

#[test]
fn opencode_db_of_the_process_alone_is_found() {
    let moved = Moved::new();
    let (session, posing) = pose_as_opencode(&moved, "OPENCODE_DB", "alone.db");
    let home = moved.root.join("alone.db");
    moved.check("opencode", &session, &posing, Some(&home));
    moved.check_resume(
        posing,
        &session,
        ("OPENCODE_DB", &home),
        &["opencode", "--session", &session],
        &[("OPENCODE_DB", &home)],
    );
}

const CLINE_TABLES: &str = "
CREATE TABLE sessions(session_id TEXT PRIMARY KEY, source TEXT NOT NULL, pid INTEGER NOT NULL,
  started_at TEXT NOT NULL, ended_at TEXT, exit_code INTEGER, status TEXT NOT NULL,
  interactive INTEGER NOT NULL, provider TEXT NOT NULL, model TEXT NOT NULL, cwd TEXT NOT NULL,
  workspace_root TEXT NOT NULL, parent_session_id TEXT, is_subagent INTEGER NOT NULL DEFAULT 0,
  prompt TEXT, metadata_json TEXT, messages_path TEXT, updated_at TEXT NOT NULL);
";

/// Starts a process of Cline, and has it say in its log which session it began.
fn pose_as_cline(moved: &Moved, variable: &str, below: &str) -> (String, Posing) {
    let session = format!("{}_5ypul", now_ms());
    let program = "lib/node_modules/cline/node_modules/@cline/cli-linux-x64/bin/cline";
    let posing = moved.world.pose(program, |command| {
        command.env(variable, &moved.root);
    });
    let line = json!({
        "level": 30, "time": time(now_ms()), "pid": posing.pid(), "name": "cline.cli",
        "hostname": rustix::system::uname().nodename().to_str().unwrap(),
        "component": "main", "telemetrySink": "TelemetryLoggerSink", "event": "session.started",
        "properties": { "extension_version": "3.0.65", "cline_type": "cli", "sessionId": session, "source": "cli" },
        "msg": "session.started",
    });
    moved.write(&format!("{below}logs/cline.log"), format!("{line}\n"));
    let path = moved.write(&format!("{below}db/sessions.db"), "");
    let database = Connection::open(path).unwrap();
    database.execute_batch(CLINE_TABLES).unwrap();
    database
        .execute(
            "INSERT INTO sessions VALUES (?1, 'cli', ?2, ?3, NULL, NULL, 'idle', 1, 'mock', 'mock', ?4, ?4, \
             NULL, 0, 'hello', NULL, NULL, ?3)",
            (&session, posing.pid(), time(now_ms()), moved.work_dir()),
        )
        .unwrap();
    (session, posing)
}

#[test]
fn cline_data_dir_of_the_process_alone_is_found() {
    let moved = Moved::new();
    let (session, posing) = pose_as_cline(&moved, "CLINE_DATA_DIR", "");
    moved.check("cline", &session, &posing, Some(&moved.root));
    moved.check_resume(
        posing,
        &session,
        ("CLINE_DATA_DIR", &moved.root),
        &["cline", "--id", &session],
        &[("CLINE_DATA_DIR", &moved.root)],
    );
}

#[test]
fn cline_dir_of_the_process_alone_is_found() {
    let moved = Moved::new();
    let (session, posing) = pose_as_cline(&moved, "CLINE_DIR", "data/");
    let home = moved.root.join("data");
    moved.check("cline", &session, &posing, Some(&home));
    moved.check_resume(
        posing,
        &session,
        ("CLINE_DIR", &moved.root),
        &["cline", "--id", &session],
        &[("CLINE_DATA_DIR", &home)],
    );
}

#[test]
fn copilot_home_of_the_process_alone_is_found() {
    let moved = Moved::new();
    let session = &moved.world.s1;
    let folder = format!("session-state/{session}");
    let lock = moved.lock(&format!("{folder}/hold"));
    let program = "lib/node_modules/@github/copilot-linux-x64/copilot";
    let posing = moved.world.pose(program, |command| {
        command.env("COPILOT_HOME", &moved.root).stdout(lock);
    });
    let pid = posing.pid();
    let folder_path = moved.root.join(&folder);
    let hold = folder_path.join(format!("inuse.{pid}.hold"));
    std::fs::rename(folder_path.join("hold"), hold).unwrap();
    moved.write(&format!("{folder}/inuse.{pid}.lock"), format!("{pid}\n"));
    let now = time(now_ms());
    let work_dir = moved.work_dir();
    moved.write(
        &format!("{folder}/workspace.yaml"),
        format!("id: {session}\ncwd: {work_dir}\ncreated_at: {now}\nupdated_at: {now}\n"),
    );
    let start = json!({
        "type": "session.start", "timestamp": now, "data": { "sessionId": session, "startTime": now },
    });
    let prompt =
        json!({ "type": "user.message", "timestamp": now, "data": { "content": "hello" } });
    moved.write(
        &format!("{folder}/events.jsonl"),
        format!("{start}\n{prompt}\n"),
    );
    moved.check("copilot", session, &posing, Some(&moved.root));
    let argv = ["copilot", &format!("--resume={session}")];
    moved.check_resume(
        posing,
        session,
        ("COPILOT_HOME", &moved.root),
        &argv,
        &[("COPILOT_HOME", &moved.root)],
    );
}

#[test]
fn gemini_cli_home_of_the_process_alone_is_found() {
    let moved = Moved::new();
    let session = moved.world.s1.as_str();
    let arguments = ["--session-id", session];
    let script = "lib/node_modules/@google/gemini-cli/bundle/gemini.js";
    let posing = moved.pose_on_script("bin/node", script, &arguments, |command| {
        command
            .env("GEMINI_CLI_HOME", &moved.root)
            .env("GEMINI_CLI_NO_RELAUNCH", "true");
    });
    let projects = json!({ "projects": { moved.work_dir(): "shop" } });
    moved.write(".gemini/projects.json", projects.to_string());
    moved.write(".gemini/tmp/shop/.project_root", moved.work_dir());
    let now = time(now_ms());
    let header = json!({
        "sessionId": session, "projectHash": digest("sha256sum", &moved.work_dir()),
        "startTime": now, "lastUpdated": now, "kind": "main",
    });
    let name = format!("session-2026-11-27T20-53-{}.jsonl", &session[..8]);
    let below = format!(".gemini/tmp/shop/chats/{name}");
    moved.write(&below, format!("{header}\n"));
    let home = moved.root.join(".gemini");
    moved.check("gemini", session, &posing, Some(&home));
    moved.check_resume(
        posing,
        session,
        ("GEMINI_CLI_HOME", &moved.root),
        &["gemini", "--resume", session],
        &[("GEMINI_CLI_HOME", &moved.root)],
    );
}

#[test]
fn vibe_home_of_the_process_alone_is_found() {
    let moved = Moved::new();
    let session = &moved.world.s1;
    let active = "logs/session/active";
    let lock = moved.lock(&format!("{active}/{session}.lock"));
    let script = "bin/vibe-app-server";
    let posing = moved.pose_on_script("bin/python3.13", script, &[], |command| {
        command.env("VIBE_HOME", &moved.root).stdout(lock);
    });
    let lease = json!({
        "acquired_at": time(now_ms()), "lease_version": 1,
        "process_id": posing.pid(), "session_id": session,
    });
    moved.write(&format!("{active}/{session}.lock.json"), lease.to_string());
    let meta = json!({
        "session_id": session, "start_time": time(now_ms()),
        "environment": { "working_directory": moved.work_dir() },
    });
    let below = format!("logs/session/unified/{session}/meta.json");
    moved.write(&below, meta.to_string());
    moved.check("vibe", session, &posing, Some(&moved.root));
    moved.check_resume(
        posing,
        session,
        ("VIBE_HOME", &moved.root),
        &["vibe", "--resume", session],
        &[("VIBE_HOME", &moved.root)],
    );
}

const CRUSH_TABLES: &str = "
CREATE TABLE sessions(id text PRIMARY KEY, parent_session_id text, title text NOT NULL,
  message_count integer NOT NULL, prompt_tokens integer NOT NULL, completion_tokens integer NOT NULL,
  cost real NOT NULL, updated_at integer NOT NULL, created_at integer NOT NULL);
CREATE TABLE messages(id text PRIMARY KEY, session_id text NOT NULL, role text NOT NULL,
  parts text NOT NULL, model text, provider text, created_at integer NOT NULL,
  updated_at integer NOT NULL, finished_at integer);
";

/// Starts a process of Crush whose project's data lie where the list of its home
/// says, and checks that its session is found in `home`.
#[track_caller]
fn check_crush(variable: &str, below: &str) {
    let moved = Moved::new();
    let home: PathBuf = moved.root.join(below).components().collect();
    let session = moved.world.s1.as_str();
    let lock = moved.lock("shop-data/crush.lock");
    let posing = moved.pose_as_shell("bin/crush", session, |command| {
        command.env(variable, &moved.root).stdout(lock);
    });
    let record = json!({ "pid": posing.pid(), "version": "0.96.1", "started_at": time(now_ms()) });
    let path = moved.root.join("shop-data/crush.lock");
    // Not replaced: the lock is on this file.
    std::fs::write(path, record.to_string()).unwrap();
    let project = json!({
        "path": moved.work_dir(), "data_dir": moved.root.join("shop-data"),
        "last_accessed": time(now_ms()),
    });
    let list = format!("{below}projects.json");
    moved.write(&list, json!({ "projects": [project] }).to_string());
    let database = Connection::open(moved.write("shop-data/crush.db", "")).unwrap();
    database.execute_batch(CRUSH_TABLES).unwrap();
    let now = i64::try_from(now_ms() / 1000).unwrap();
    database
        .execute(
            "INSERT INTO sessions VALUES (?1, NULL, 'Look', 0, 0, 0, 0, ?2, ?2)",
            (session, now),
        )
        .unwrap();
    moved.check("crush", session, &posing, Some(&home));
    let data = moved.root.join("shop-data");
    let argv = [
        "crush",
        "--data-dir",
        data.to_str().unwrap(),
        "--session",
        session,
    ];
    moved.check_resume(
        posing,
        session,
        (variable, &moved.root),
        &argv,
        &[("CRUSH_GLOBAL_DATA", &home)],
    );
}

#[test]
fn crush_global_data_of_the_process_alone_is_found() {
    check_crush("CRUSH_GLOBAL_DATA", "");
}

#[test]
fn crushs_xdg_data_home_of_the_process_alone_is_found() {
    check_crush("XDG_DATA_HOME", "crush/");
}

#[test]
fn factory_home_override_of_the_process_alone_is_found() {
    let moved = Moved::new();
    let session = &moved.world.s1;
    let posing = moved.world.pose("bin/droid", |command| {
        command.env("FACTORY_HOME_OVERRIDE", &moved.root);
    });
    let start = json!({
        "type": "session_start", "id": session, "title": "Look", "version": 2, "cwd": moved.work_dir(),
    });
    let said = json!({
        "type": "message", "id": "m-1", "timestamp": time(now_ms()),
        "message": { "role": "user", "content": [{ "type": "text", "text": "look around" }] },
    });
    let folder = moved.work_dir_in_hyphens();
    let below = format!(".factory/sessions/{folder}/{session}.jsonl");
    moved.write(&below, format!("{start}\n{said}\n"));
    let home = moved.root.join(".factory");
    moved.check("droid", session, &posing, Some(&home));
    moved.check_resume(
        posing,
        session,
        ("FACTORY_HOME_OVERRIDE", &moved.root),
        &["droid", "--resume", session],
        &[("FACTORY_HOME_OVERRIDE", &moved.root)],
    );
}
