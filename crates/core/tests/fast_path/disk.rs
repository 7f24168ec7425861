//! Writes what agents leave on disk, as small as it can be read.
//!
//! The benchmark fills its homes with this as well.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use md5::{Digest as _, Md5};
use serde_json::{Value, json};

/// One session, as far as its files tell of it.
#[derive(Debug, Clone)]
pub struct Session<'a> {
    /// The agent's home.
    pub home: &'a Path,
    /// Its id.
    pub id: &'a str,
    /// The directory that it works in.
    pub work_dir: &'a Path,
    /// When it was born, in milliseconds since 1970.
    pub born_at_ms: i64,
    /// When something was last said, in milliseconds since 1970.
    pub last_at_ms: i64,
}

/// Who serves a session, as a file says it.
#[derive(Debug, Clone)]
pub struct Claim<'a> {
    /// The process.
    pub pid: i32,
    /// When it began, in clock ticks, where the file has that.
    pub ticks: Option<u64>,
    /// The boot that this counts from.
    pub boot: &'a str,
    /// The PID namespace.
    pub pid_namespace: u64,
    /// The host.
    pub host: &'a str,
    /// When this was said, in milliseconds since 1970.
    pub at_ms: i64,
}

/// A date as agents write it.
pub fn date(at_ms: i64) -> String {
    let at = jiff::Timestamp::from_millisecond(at_ms).unwrap();
    format!("{at:.3}")
}

/// Writes a file and the folders above it.
pub fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Files keep the time at which they were written, folders that of the last
/// change of what is in them.
pub fn set_modified(path: &Path, at_ms: i64) {
    let since_1970 = std::time::Duration::from_millis(at_ms.unsigned_abs());
    let file = fs::File::open(path).unwrap();
    file.set_modified(std::time::UNIX_EPOCH + since_1970)
        .unwrap();
}

fn lines(path: &Path, records: &[Value]) {
    let text: String = records.iter().map(|record| format!("{record}\n")).collect();
    write(path, &text);
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A directory's name as Claude Code and qwen-code name their folders.
fn encoded(work_dir: &Path) -> String {
    let chars = text(work_dir).chars();
    chars
        .map(|char| {
            if char.is_ascii_alphanumeric() {
                char
            } else {
                '-'
            }
        })
        .collect()
}

fn seconds(at_ms: i64) -> f64 {
    std::time::Duration::from_millis(at_ms.unsigned_abs()).as_secs_f64()
}

impl Session<'_> {
    /// Claude Code's transcript.
    pub fn write_claude_code(&self) {
        let record = |kind: &str, at_ms: i64, message: Value| {
            json!({
                "type": kind, "sessionId": self.id, "cwd": text(self.work_dir),
                "isSidechain": false, "version": "2.1.197", "gitBranch": "main",
                "timestamp": date(at_ms), "message": message,
            })
        };
        let prompt = json!({ "role": "user", "content": "hello" });
        let reply = json!({
            "role": "assistant", "model": "m", "stop_reason": "end_turn",
            "content": [{ "type": "text", "text": "done" }],
        });
        let records = [
            record("user", self.born_at_ms, prompt),
            record("assistant", self.last_at_ms, reply),
        ];
        let folder = self.home.join("projects").join(encoded(self.work_dir));
        lines(&folder.join(format!("{}.jsonl", self.id)), &records);
    }

    /// Claude Code's record of a process.
    pub fn claim_claude_code(&self, claim: &Claim<'_>, extra: &Value) {
        let mut record = json!({
            "pid": claim.pid, "sessionId": self.id, "cwd": text(self.work_dir),
            "startedAt": claim.at_ms, "version": "2.1.197", "kind": "interactive",
            "entrypoint": "cli", "status": "idle", "statusUpdatedAt": claim.at_ms,
        });
        let fields = record.as_object_mut().unwrap();
        if let Some(ticks) = claim.ticks {
            fields.insert("procStart".to_owned(), json!(ticks.to_string()));
        }
        fields.extend(extra.as_object().unwrap().clone());
        let path = self.home.join(format!("sessions/{}.json", claim.pid));
        write(&path, &record.to_string());
    }

    /// Where qwen-code keeps the sessions of the directory.
    fn qwen_code_chats(&self) -> PathBuf {
        let projects = self.home.join("projects");
        projects.join(encoded(self.work_dir)).join("chats")
    }

    /// qwen-code's transcript.
    pub fn write_qwen_code(&self) {
        let record = |kind: &str, at_ms: i64, role: &str| {
            json!({
                "sessionId": self.id, "type": kind, "timestamp": date(at_ms),
                "cwd": text(self.work_dir), "version": "0.24.4", "model": "m",
                "message": { "role": role, "parts": [{ "text": "hello" }] },
            })
        };
        let records = [
            record("user", self.born_at_ms, "user"),
            record("assistant", self.last_at_ms, "model"),
        ];
        let path = self.qwen_code_chats().join(format!("{}.jsonl", self.id));
        lines(&path, &records);
    }

    /// qwen-code's record of a process.
    pub fn claim_qwen_code(&self, claim: &Claim<'_>, kind: &str) {
        let start = claim.ticks.map(|ticks| format!("{}:{ticks}", claim.boot));
        let record = json!({
            "schemaVersion": 1, "pid": claim.pid, "procStart": start,
            "pidNs": claim.pid_namespace, "sessionId": self.id,
            "cwd": text(self.work_dir), "startedAt": claim.at_ms,
            "qwenVersion": "0.24.4", "kind": kind,
        });
        let path = self.home.join(format!("sessions/{}.json", claim.pid));
        write(&path, &record.to_string());
    }

    /// qwen-code's session-writer lock.
    pub fn lock_qwen_code(&self, claim: &Claim<'_>) {
        let start = claim
            .ticks
            .map(|ticks| format!("linux:{}:{ticks}", claim.boot));
        let lock = json!({
            "schema_version": 2, "state": "active", "session_id": self.id, "owner_id": "o",
            "pid": claim.pid, "pid_namespace_id": claim.pid_namespace,
            "process_start_identity": start, "hostname": claim.host, "process_kind": "acp",
            "acquired_at": date(claim.at_ms), "qwen_version": "0.24.4",
        });
        let locks = self.home.join("tmp/session-writer-locks");
        write(&locks.join(format!("{}.lock", self.id)), &lock.to_string());
    }

    fn sidecar(&self, claim: &Claim<'_>, version_key: &str) -> String {
        let mut sidecar = json!({
            "schema_version": 1, "pid": claim.pid, "session_id": self.id,
            "work_dir": text(self.work_dir), "hostname": claim.host,
            "started_at": seconds(claim.at_ms),
        });
        let fields = sidecar.as_object_mut().unwrap();
        fields.insert(version_key.to_owned(), json!("1.0.0"));
        sidecar.to_string()
    }

    /// qwen-code's sidecar.
    pub fn sidecar_qwen_code(&self, claim: &Claim<'_>) {
        let name = format!("{}.runtime.json", self.id);
        let path = self.qwen_code_chats().join(name);
        write(&path, &self.sidecar(claim, "qwen_version"));
        set_modified(&path, claim.at_ms);
    }

    /// Where kimi-cli keeps the session.
    fn kimi_cli_folder(&self) -> PathBuf {
        let mut folder = String::new();
        for byte in Md5::digest(text(self.work_dir).as_bytes()) {
            write!(folder, "{byte:02x}").unwrap();
        }
        self.home.join("sessions").join(folder).join(self.id)
    }

    /// kimi-cli's transcript.
    pub fn write_kimi_cli(&self) {
        let turn = json!({ "type": "TurnBegin", "payload": { "user_input": "hello" } });
        let end = json!({ "type": "TurnEnd", "payload": {} });
        let records = [
            json!({ "type": "metadata", "protocol_version": "1.10" }),
            json!({ "timestamp": seconds(self.born_at_ms), "message": turn }),
            json!({ "timestamp": seconds(self.last_at_ms), "message": end }),
        ];
        let path = self.kimi_cli_folder().join("wire.jsonl");
        lines(&path, &records);
        set_modified(&path, self.last_at_ms);
    }

    /// kimi-cli's directory of a session in which nothing has been said.
    pub fn write_kimi_cli_silent(&self) {
        write(&self.kimi_cli_folder().join("context.jsonl"), "");
    }

    /// kimi-cli's sidecar.
    pub fn sidecar_kimi_cli(&self, claim: &Claim<'_>) {
        let path = self.kimi_cli_folder().join("runtime.json");
        write(&path, &self.sidecar(claim, "kimi_version"));
        set_modified(&path, claim.at_ms);
    }

    /// Codex's lock of the thread, and its path.
    pub fn lock_codex(&self) -> PathBuf {
        let locks = self.home.join("thread-writer-locks");
        let path = locks.join(format!("{}.lock", self.id));
        write(&path, "");
        path
    }

    /// Codex's transcript of the thread, and its path.
    pub fn write_codex(&self) -> PathBuf {
        let began = date(self.born_at_ms);
        let record = |at: &str, kind: &str, payload: Value| json!({ "timestamp": at, "type": kind, "payload": payload });
        let meta = json!({
            "id": self.id, "session_id": self.id, "timestamp": began,
            "cwd": text(self.work_dir), "cli_version": "0.171.0", "source": "cli",
        });
        let turn = json!({ "type": "task_started", "turn_id": "t", "root_turn_id": "t" });
        let end = json!({ "type": "task_complete", "turn_id": "t" });
        let records = [
            record(&began, "session_meta", meta),
            record(&began, "event_msg", turn),
            record(&date(self.last_at_ms), "event_msg", end),
        ];
        let day = began[..10].replace('-', "/");
        let time = began[..19].replace(':', "-");
        let name = format!("rollout-{time}-{}.jsonl", self.id);
        let path = self.home.join("sessions").join(day).join(name);
        lines(&path, &records);
        path
    }
}

/// A line of kimi-cli's log, of a machine two hours ahead of UTC: that a session was
/// made or taken up.
pub fn kimi_cli_logged(at_ms: i64, what: &str, id: &str) -> String {
    let at = jiff::Timestamp::from_millisecond(at_ms + 7_200_000).unwrap();
    let at = at.strftime("%Y-%m-%d %H:%M:%S%.3f");
    format!("{at} | INFO     | kimi_cli.cli:_run:571 |  - {what} session: {id}\n")
}

/// A thread's id as Codex makes them: a UUID of version 7.
pub fn codex_id(born_at_ms: i64, number: usize) -> String {
    let digits = format!("{born_at_ms:012x}");
    let (first, second) = digits.split_at(8);
    format!("{first}-{second}-7001-8001-{number:012x}")
}

/// A UUID of no meaning.
pub fn uuid(number: usize) -> String {
    format!("{number:08x}-e8f2-410e-9552-8385582a8e8b")
}
