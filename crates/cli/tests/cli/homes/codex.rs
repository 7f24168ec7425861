//! Codex whose `CODEX_HOME` is set in one process alone.

use serde_json::json;

use super::{Moved, Served, time};
use crate::world::now_ms;

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
    moved.check(Served {
        agent: "codex",
        session: &thread,
        posing,
        home: Some(&moved.root),
        variable: ("CODEX_HOME", &moved.root),
        argv: &["codex", "resume", &thread],
        env: ("CODEX_HOME", &moved.root),
    });
}
