//! Copilot CLI whose `COPILOT_HOME` is set in one process alone.

use serde_json::json;

use super::{Moved, Served, time};
use crate::world::now_ms;

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
    let argv = ["copilot", &format!("--resume={session}")];
    moved.check(Served {
        agent: "copilot",
        session,
        posing,
        home: Some(&moved.root),
        variable: ("COPILOT_HOME", &moved.root),
        argv: &argv,
        env: ("COPILOT_HOME", &moved.root),
    });
}
