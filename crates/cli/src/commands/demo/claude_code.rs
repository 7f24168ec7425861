//! The sessions of Claude Code in a demo.

use serde_json::{Value, json};
use whosup_core::adapter::phase::Phase;
use whosup_core::sidecar::{AgentId, SessionId};
use whosup_core::sources::record::{Heard, Owners, RecordedOwner, SessionRecord};

use super::part::Part;
use super::props::{Props, date};

const PROGRAM: &str = ".local/lib/node_modules/@anthropic-ai/claude-code/bin/claude.exe";
const VERSION: &str = "2.1.197";
const MODEL: &str = "claude-sonnet-4-5";

const WORKING: &str = "4f1c0a52-6b0e-4c59-8a1d-2f6f0c9b7d11";
const SUB_AGENT: &str = "a17f3c92";
const WAITING: &str = "9d27b6e0-1c44-4f0b-b5a7-60d2f8e1c322";
const IDLE: &str = "c3a85f14-77d9-4e1e-9c02-5b8a4d0f6e33";
const STARTING: &str = "1b6e9d73-02fa-4d67-8e35-c1a97b4f2d44";
const CRASHED: &str = "e80d4c36-5e9b-43a8-a6f1-7d3c0b2e9f55";
const TWICE: &str = "72f5ab18-d3c6-4b7a-8f90-1e6d5c4a3b66";
const HEADLESS: &str = "5d90e3c7-8a21-4c3f-97be-f04b6a1d8c77";
const UNTRUSTED: &str = "b24c7f69-3f58-4e92-a01c-8d7e6f5b4a88";
const DONE: &str = "08e6d1fa-94b3-4a5d-b8c7-3a2f1e0d9c99";

/// Sessions of several states.
pub(super) const SESSIONS: [&str; 5] = [WORKING, WAITING, IDLE, STARTING, CRASHED];

/// A session as its transcript describes it.
struct Script {
    id: &'static str,
    work_dir: &'static str,
    prompt: &'static str,
    /// The last reply, unless the turn continues.
    reply: Option<&'static str>,
    last_minutes_ago: i64,
    /// The input of the last reply, in tokens.
    tokens: u64,
}

const SCRIPTS: &[Script] = &[
    Script {
        id: WORKING,
        work_dir: "src/shop",
        prompt: "Fix the flaky login test",
        reply: None,
        last_minutes_ago: 0,
        tokens: 48_210,
    },
    Script {
        id: WAITING,
        work_dir: "src/api",
        prompt: "Add rate limits to the public API",
        reply: None,
        last_minutes_ago: 12,
        tokens: 91_540,
    },
    Script {
        id: IDLE,
        work_dir: "src/billing",
        prompt: "Explain how invoices are numbered",
        reply: Some("Each shop has its own counter, and gaps are allowed."),
        last_minutes_ago: 34,
        tokens: 17_380,
    },
    Script {
        id: CRASHED,
        work_dir: "src/search",
        prompt: "Rebuild the search index without downtime",
        reply: None,
        last_minutes_ago: 47,
        tokens: 133_900,
    },
    Script {
        id: TWICE,
        work_dir: "src/docs",
        prompt: "Tidy up the release notes",
        reply: Some("Done: three sections, newest first."),
        last_minutes_ago: 5,
        tokens: 22_760,
    },
    Script {
        id: HEADLESS,
        work_dir: "src/infra",
        prompt: "Summarize last night's errors",
        reply: None,
        last_minutes_ago: 1,
        tokens: 8_120,
    },
    Script {
        id: UNTRUSTED,
        work_dir: "src/billing",
        prompt: "Upgrade the payment library",
        reply: Some("It is at version 7 now; the tests pass."),
        last_minutes_ago: 80,
        tokens: 64_450,
    },
    Script {
        id: DONE,
        work_dir: "src/shop",
        prompt: "Rename the order type",
        reply: Some("Renamed everywhere."),
        last_minutes_ago: 300,
        tokens: 39_030,
    },
];

/// The processes.
pub(super) fn parts() -> Vec<Part> {
    let claude = |name, argv: &[&str], work_dir| Part::new(name, PROGRAM, argv, work_dir);
    vec![
        claude("claude-working", &["claude"], "src/shop"),
        claude("claude-waiting", &["claude"], "src/api"),
        claude("claude-idle", &["claude"], "src/billing"),
        claude("claude-starting", &["claude"], "src/docs"),
        claude("claude-crashed", &["claude"], "src/search").crashing(),
        claude("claude-first", &["claude"], "src/docs"),
        claude("claude-second", &["claude", "--resume", TWICE], "src/docs"),
        claude(
            "claude-headless",
            &["claude", "-p", "Summarize last night's errors"],
            "src/infra",
        )
        .without_terminal(),
        claude("claude-gone", &["claude"], "src/billing").crashing(),
    ]
}

/// Writes the files of these sessions.
pub(super) fn write(props: &Props<'_>) -> anyhow::Result<()> {
    for script in SCRIPTS {
        props.lines(&transcript(props, script)?, &conversation(props, script)?)?;
    }
    write_sub_agent(props)?;
    let at = |minutes| Some(props.minutes_ago(minutes));
    let status = |word: &str, minutes| json!({ "status": word, "statusUpdatedAt": at(minutes) });
    let record = |part, id, extra| write_record(props, part, id, &extra, 0o600);
    record("claude-working", WORKING, status("busy", 0))?;
    let mut waiting = status("waiting", 12);
    waiting["waitingFor"] = json!("permission prompt");
    record("claude-waiting", WAITING, waiting)?;
    record("claude-idle", IDLE, status("idle", 34))?;
    record("claude-starting", STARTING, json!({}))?;
    write_hook_record(props)?;
    record("claude-crashed", CRASHED, status("busy", 47))?;
    record("claude-first", TWICE, status("idle", 6))?;
    record("claude-second", TWICE, status("idle", 5))?;
    let headless = json!({ "entrypoint": "sdk-cli" });
    record("claude-headless", HEADLESS, headless)?;
    write_record(props, "claude-gone", UNTRUSTED, &status("idle", 80), 0o666)
}

fn transcript(props: &Props<'_>, script: &Script) -> anyhow::Result<String> {
    let folder = props.encoded(script.work_dir)?;
    Ok(format!(".claude/projects/{folder}/{}.jsonl", script.id))
}

fn conversation(props: &Props<'_>, script: &Script) -> anyhow::Result<Vec<Value>> {
    let line = |kind: &str, minutes: i64, message: Value| {
        Ok::<_, anyhow::Error>(json!({
            "type": kind, "sessionId": script.id, "cwd": props.text(script.work_dir)?,
            "version": VERSION, "gitBranch": "main", "isSidechain": false,
            "timestamp": date(props.minutes_ago(minutes)), "message": message,
        }))
    };
    let before = script.last_minutes_ago + 3;
    let prompt = json!({ "role": "user", "content": script.prompt });
    let call = json!({ "type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {} });
    let (part, stop) = match script.reply {
        Some(reply) => (json!({ "type": "text", "text": reply }), "end_turn"),
        None => (call, "tool_use"),
    };
    // Most of it was in the prompt before.
    let new = script.tokens / 12;
    let usage = json!({
        "input_tokens": 12, "cache_creation_input_tokens": new,
        "cache_read_input_tokens": script.tokens - new - 12, "output_tokens": script.tokens / 60,
    });
    let reply = json!({
        "id": format!("msg_{}", script.tokens), "role": "assistant", "model": MODEL,
        "content": [part], "stop_reason": stop, "usage": usage,
    });
    let mut lines = vec![
        line("user", before, prompt)?,
        line("assistant", script.last_minutes_ago, reply)?,
    ];
    // No permission is asked for there: the turn continues.
    if script.id == HEADLESS {
        let result = json!({ "type": "tool_result", "tool_use_id": "toolu_1", "content": "412" });
        let message = json!({ "role": "user", "content": [result] });
        lines.push(line("user", script.last_minutes_ago, message)?);
    }
    Ok(lines)
}

fn write_sub_agent(props: &Props<'_>) -> anyhow::Result<()> {
    let folder = props.encoded("src/shop")?;
    let file = format!(".claude/projects/{folder}/{WORKING}/subagents/agent-{SUB_AGENT}");
    let meta = json!({ "agentType": "Explore", "description": "Find every caller of login()" });
    props.file(&format!("{file}.meta.json"), &meta.to_string())?;
    let line = json!({
        "type": "user", "sessionId": WORKING, "agentId": SUB_AGENT, "isSidechain": true,
        "cwd": props.text("src/shop")?, "version": VERSION, "timestamp": date(props.minutes_ago(1)),
        "message": { "role": "user", "content": "List every caller of login()." },
    });
    props.lines(&format!("{file}.jsonl"), &[line])
}

/// Writes the record of a process in the registry.
fn write_record(
    props: &Props<'_>,
    part: &str,
    id: &str,
    extra: &Value,
    mode: u32,
) -> anyhow::Result<()> {
    let actor = props.actor(part)?;
    let work_dir = parts()
        .into_iter()
        .find(|one| one.name == part)
        .map_or("src", |one| one.work_dir);
    let mut record = json!({
        "pid": actor.pid.get(), "sessionId": id, "cwd": props.text(work_dir)?,
        "startedAt": actor.began_at_ms, "procStart": actor.stamp.to_string(),
        "version": VERSION, "kind": "interactive", "entrypoint": "cli",
    });
    if let (Some(record), Some(extra)) = (record.as_object_mut(), extra.as_object()) {
        record.extend(extra.clone());
    }
    let file = format!(".claude/sessions/{}.json", actor.pid);
    props.file_with_mode(&file, &record.to_string(), mode)
}

/// Writes the record that a hook left of the session that has just begun.
fn write_hook_record(props: &Props<'_>) -> anyhow::Result<()> {
    let actor = props.actor("claude-starting")?;
    let scope = props.scope();
    let owner = RecordedOwner {
        pid: actor.pid,
        stamp: Some(actor.stamp.clone()),
        host: scope.host.clone().ok().map(|host| host.0),
        boot: scope.boot.clone().ok(),
        pid_namespace: scope.pid_namespace.clone().ok(),
        executable: Some(props.path(PROGRAM)),
        is_shared: false,
        is_unrecognized: false,
    };
    let began_at_ms = actor.began_at_ms;
    let record = SessionRecord {
        owners: Owners::of_one(owner.clone(), (began_at_ms, began_at_ms), None),
        agent: AgentId::from_static("claude-code"),
        session: SessionId::parse(STARTING)?,
        home: props.path(".claude"),
        owner: Some(owner),
        phase: Phase::Starting,
        waiting_for: None,
        last_event_at_ms: actor.began_at_ms,
        started_at_ms: Some(actor.began_at_ms),
        ended_at_ms: None,
        work_dir: Some(props.path("src/docs")),
        git_branch: Some("main".to_owned()),
        transcript: None,
        parent: None,
        heard: Heard {
            phase_since_ms: Some(began_at_ms),
            phase_at_ms: Some(began_at_ms),
            ..Heard::default()
        },
    };
    let file = format!(".local/state/whosup/sessions/claude-code/{STARTING}.json");
    props.file(&file, &record.to_json().to_string())
}
