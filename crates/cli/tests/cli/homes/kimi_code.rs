//! Kimi Code whose `KIMI_CODE_HOME` is set in one process alone.

use serde_json::json;

use super::{Moved, Served, digest};
use crate::world::now_ms;

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
    moved.check(Served {
        agent: "kimi-code",
        session: &session,
        posing,
        home: Some(&moved.root),
        variable: ("KIMI_CODE_HOME", &moved.root),
        argv: &["kimi", "--session", &session],
        env: ("KIMI_CODE_HOME", &moved.root),
    });
}
