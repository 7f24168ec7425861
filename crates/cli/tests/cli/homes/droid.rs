//! Droid whose `FACTORY_HOME_OVERRIDE` is set in one process alone.

use serde_json::json;

use super::{Moved, Served, time};
use crate::world::now_ms;

#[test]
fn factory_home_override_of_the_process_alone_is_found() {
    let moved = Moved::new();
    let session = &moved.world.s1;
    // To a shell, the first argument is the script that it runs.
    let arguments = ["--resume", session.as_str()];
    let posing = moved.pose_on_script("bin/droid", "prompt", &arguments, |command| {
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
    moved.check(Served {
        agent: "droid",
        session,
        posing,
        home: Some(&home),
        variable: ("FACTORY_HOME_OVERRIDE", &moved.root),
        argv: &["droid", "--resume", session],
        env: ("FACTORY_HOME_OVERRIDE", &moved.root),
    });
}
