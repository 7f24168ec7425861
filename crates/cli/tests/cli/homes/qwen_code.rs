//! qwen-code whose `QWEN_HOME` or `QWEN_RUNTIME_DIR` is set in one process alone.

use serde_json::json;

use super::{Moved, Served, time};
use crate::world::now_ms;

const SCRIPT: &str = "lib/node_modules/@qwen-code/qwen-code/cli.js";

#[test]
fn qwen_home_of_the_process_alone_is_found() {
    let moved = Moved::new();
    let posing = moved.pose_on_script("bin/node", SCRIPT, &[], |command| {
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
    moved.check(Served {
        agent: "qwen-code",
        session: &moved.world.s1,
        posing,
        home: Some(&moved.root),
        variable: ("QWEN_HOME", &moved.root),
        argv: &["qwen", "--resume", &moved.world.s1],
        env: ("QWEN_HOME", &moved.root),
    });
}

#[test]
fn qwen_runtime_dir_of_the_process_alone_is_found() {
    let moved = Moved::new();
    let posing = moved.pose_on_script("bin/node", SCRIPT, &[], |command| {
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
    moved.check(Served {
        agent: "qwen-code",
        session,
        posing,
        home: None,
        variable: ("QWEN_RUNTIME_DIR", &moved.root),
        argv: &["qwen", "--resume", session],
        env: ("QWEN_RUNTIME_DIR", &moved.root),
    });
}
