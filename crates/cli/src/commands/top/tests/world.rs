//! Sessions in their wire form, as the engine hands them out.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use whosup_core::adapter::claim::SessionKey;
use whosup_core::sessions::resources::{ProcessUse, Resources, TreeUse};
use whosup_core::sidecar::{AgentId, SessionId};
use whosup_core::views::wire::timestamp;
use whosup_live::{Row, Rows};

use crate::commands::top::item::RowId;
use crate::commands::top::model::Model;

pub(super) const NOW_MS: i64 = 1_795_800_000_000;

pub(super) fn key_of(agent: &str, id: &str) -> SessionKey {
    SessionKey {
        agent: AgentId::parse(agent).unwrap(),
        session: SessionId::parse(id).unwrap(),
        home: Arc::from(Path::new("/home/dev/.agent")),
    }
}

/// A live session in a phase since so many seconds.
pub(super) fn session(id: &str, phase: &str, work_dir: &str, seconds: i64) -> Value {
    json!({
        "agent": "claude-code", "session_id": id, "liveness": "live", "confidence": "proven",
        "phase": phase, "phase_since": timestamp(NOW_MS - seconds * 1_000),
        "work_dir": work_dir, "title": format!("Title of {id}"),
        "owner": { "pid": 4711, "start_stamp": "8", "start_stamp_kind": "linux-ticks", "tty": "/dev/pts/3" },
        "pane": { "host": "tmux", "session": "main", "window": "api" },
        "context": { "tokens": 50_000, "percent": 25.0 },
        "turn": { "output_tokens": 1_200 },
    })
}

/// One that waits, one that works, one that died.
pub(super) fn few() -> Vec<Value> {
    let mut waits = session("waits", "waiting", "/home/dev/shop", 240);
    waits["waiting_for"] = json!("permission");
    waits["waiting_on"] = json!({ "tool": "Bash", "text": "rm -rf build\n" });
    let mut works = session("works", "working", "/home/dev/shop", 5);
    works["title"] = json!("修复 🦀 the flaky login test that fails on Mondays, and its sister");
    works["context"] = json!({ "tokens": 190_000, "percent": 95.0 });
    works["turn"] = json!({ "output_tokens": 51_234 });
    let mut died = session("died", "idle", "/home/dev/shop", 7_200);
    died["agent"] = json!("codex");
    died["liveness"] = json!("exited");
    died["confidence"] = Value::Null;
    died["orphan"] = json!(true);
    died["phase_at_exit"] = json!("working");
    died["last_activity_at"] = died["phase_since"].clone();
    died["owner"] = Value::Null;
    died["pane"] = Value::Null;
    died["context"] = Value::Null;
    died["turn"] = Value::Null;
    died["resume"] = json!({
        "argv": ["codex", "resume", "a b"], "cwd": "/home/dev/shop", "env": {}, "trusted": true
    });
    vec![waits, works, died]
}

/// Sessions in seven projects and four phases.
pub(super) fn many(count: usize) -> Vec<Value> {
    let phases = ["working", "idle", "waiting", "starting"];
    let sessions = (0..count).map(|at| {
        let phase = phases[at % phases.len()];
        let seconds = i64::try_from(at * 61).unwrap();
        session(
            &format!("s{at:02}"),
            phase,
            &format!("/w/project-{}", at % 7),
            seconds,
        )
    });
    sessions.collect()
}

pub(super) fn rows(sessions: Vec<Value>) -> Rows {
    let has_sessions = !sessions.is_empty();
    let sessions = sessions.into_iter().map(|session| {
        let text = |field: &str| session[field].as_str().unwrap();
        let key = key_of(text("agent"), text("session_id"));
        let session = session.as_object().unwrap().clone();
        let directory = None;
        (key, Arc::new(Row { session, directory }))
    });
    let unattributed = json!({
        "agent": "pi", "pid": 4712, "start_stamp": "9", "work_dir": "/w/pi", "pane": null,
        "started_at": timestamp(NOW_MS - 60_000), "reason": "two sessions fit",
    });
    let problem = json!({
        "agent": "qwen-code", "path": "/home/dev/x/runtime.json", "message": "`pid` is not an integer"
    });
    let some = |value| if has_sessions { vec![value] } else { vec![] };
    Rows {
        as_of_ms: NOW_MS,
        sessions: sessions.collect(),
        unattributed: Arc::new(some(unattributed)),
        problems: Arc::new(some(problem)),
        ..Rows::default()
    }
}

/// Numbers for each session.
pub(super) fn used(model: &Model) -> BTreeMap<SessionKey, Resources> {
    let mut used = BTreeMap::new();
    for (at, item) in model.items.iter().enumerate() {
        let at = u32::try_from(at).unwrap();
        let RowId::Session(key) = &item.id else {
            continue;
        };
        if item.pid.is_none() {
            continue;
        }
        let is_busy = item.condition.name() == "working";
        let tree = TreeUse {
            processes: 3,
            cpu_percent: Some(if is_busy { 120.4 } else { 0.0 }),
            cpu: Some(Duration::from_secs(20)),
            rss_bytes: Some(if is_busy { 300 << 20 } else { 1_300 << 20 } + u64::from(at)),
        };
        let resources = Resources {
            is_shared: false,
            owner: ProcessUse::default(),
            tree: Some(tree),
        };
        used.insert(key.clone(), resources);
    }
    used
}
