//! Gemini CLI whose `GEMINI_CLI_HOME` is set in one process alone.

use serde_json::json;

use super::{Moved, Served, digest, time};
use crate::world::now_ms;

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
    moved.check(Served {
        agent: "gemini",
        session,
        posing,
        home: Some(&home),
        variable: ("GEMINI_CLI_HOME", &moved.root),
        argv: &["gemini", "--resume", session],
        env: ("GEMINI_CLI_HOME", &moved.root),
    });
}
