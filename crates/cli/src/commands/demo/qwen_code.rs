//! The sessions of qwen-code in a demo.

use serde_json::{Value, json};

use super::part::{Actor, Part};
use super::props::{Props, date};

const PROGRAM: &str = ".local/node/bin/node";
const SCRIPT: &str = "/usr/lib/node_modules/@qwen-code/qwen-code/cli.js";
const VERSION: &str = "0.24.4";
const MODEL: &str = "qwen3-coder";

const IDLE: &str = "d7a3e5b1-4c28-4f96-8b0d-92e1f6c5a3aa";
const YOUNGER: &str = "36c9f0d8-e1b7-4a42-9d53-0b8f7e6a5cbb";
const ELSEWHERE: &str = "fb81d2c4-6a05-4e7b-a3c9-5d4f3e2b1acc";

/// The name of a machine that shares this home.
const OTHER_HOST: &str = "build-7.example";

/// The processes.
pub(super) fn parts() -> Vec<Part> {
    let qwen = |name, work_dir| Part::new(name, PROGRAM, &["node", SCRIPT], work_dir);
    vec![
        qwen("qwen-idle", "src/web"),
        // An earlier process with this PID left a sidecar behind.
        qwen("qwen-new", "src/search"),
    ]
}

/// Writes the files of these sessions.
pub(super) fn write(props: &Props<'_>) -> anyhow::Result<()> {
    let idle = props.actor("qwen-idle")?;
    let prompt = "Translate the settings page";
    write_transcript(props, IDLE, "src/web", prompt, 17)?;
    write_record(props, idle)?;
    let host = props.scope().host.clone().ok().map(|host| host.0);
    let host = host.unwrap_or_default();
    write_sidecar(props, IDLE, "src/web", idle.began_at_ms, idle, &host)?;

    let new = props.actor("qwen-new")?;
    let prompt = "Speed up fuzzy matching";
    write_transcript(props, YOUNGER, "src/search", prompt, 95)?;
    let dated = props.minutes_ago(100);
    write_sidecar(props, YOUNGER, "src/search", dated, new, &host)?;

    let prompt = "Benchmark the tokenizer";
    write_transcript(props, ELSEWHERE, "src/search", prompt, 42)?;
    let dated = props.minutes_ago(60);
    write_sidecar(props, ELSEWHERE, "src/search", dated, new, OTHER_HOST)?;

    // Torn in the middle.
    props.file(
        ".qwen/sessions/31337.json",
        "{\"schemaVersion\":1,\"pid\":313",
    )
}

fn folder(props: &Props<'_>, work_dir: &str) -> anyhow::Result<String> {
    Ok(format!(".qwen/projects/{}/chats", props.encoded(work_dir)?))
}

fn write_transcript(
    props: &Props<'_>,
    id: &str,
    work_dir: &str,
    prompt: &str,
    last_minutes_ago: i64,
) -> anyhow::Result<()> {
    let cwd = props.text(work_dir)?;
    let line = |kind: &str, minutes: i64, role: &str, text: &str| {
        json!({
            "sessionId": id, "type": kind, "timestamp": date(props.minutes_ago(minutes)),
            "cwd": cwd, "version": VERSION, "gitBranch": "main", "model": MODEL,
            "message": { "role": role, "parts": [{ "text": text }] },
        })
    };
    let mut reply = line("assistant", last_minutes_ago, "model", "Done.");
    reply["uuid"] = json!(format!("{id}-1"));
    reply["usageMetadata"] = json!({
        "promptTokenCount": 21_400, "cachedContentTokenCount": 16_900,
        "candidatesTokenCount": 380, "totalTokenCount": 21_780,
    });
    let lines: [Value; 2] = [line("user", last_minutes_ago + 1, "user", prompt), reply];
    props.lines(&format!("{}/{id}.jsonl", folder(props, work_dir)?), &lines)
}

fn write_record(props: &Props<'_>, actor: &Actor) -> anyhow::Result<()> {
    let scope = props.scope();
    let start = match &scope.boot {
        Ok(boot) => format!("{}:{}", boot.as_str(), actor.stamp),
        Err(_) => actor.stamp.to_string(),
    };
    let record = json!({
        "schemaVersion": 1, "pid": actor.pid.get(), "procStart": start,
        "pidNs": scope.pid_namespace.as_ref().ok().map(|namespace| namespace.0),
        "sessionId": IDLE, "cwd": props.text("src/web")?, "startedAt": actor.began_at_ms,
        "qwenVersion": VERSION, "kind": "tui",
    });
    let file = format!(".qwen/sessions/{}.json", actor.pid);
    props.file(&file, &record.to_string())
}

fn write_sidecar(
    props: &Props<'_>,
    id: &str,
    work_dir: &str,
    dated_ms: i64,
    actor: &Actor,
    host: &str,
) -> anyhow::Result<()> {
    let seconds = std::time::Duration::from_millis(dated_ms.unsigned_abs()).as_secs_f64();
    let sidecar = json!({
        "schema_version": 1, "pid": actor.pid.get(), "session_id": id,
        "work_dir": props.text(work_dir)?, "hostname": host, "started_at": seconds,
        "qwen_version": VERSION,
    });
    let file = format!("{}/{id}.runtime.json", folder(props, work_dir)?);
    props.file(&file, &sidecar.to_string())
}
