//! Vibe whose `VIBE_HOME` is set in one process alone.

use serde_json::json;

use super::{Moved, Served, time};
use crate::world::now_ms;

#[test]
fn vibe_home_of_the_process_alone_is_found() {
    let moved = Moved::new();
    let session = &moved.world.s1;
    let active = "logs/session/active";
    let lock = moved.lock(&format!("{active}/{session}.lock"));
    let script = "bin/vibe-app-server";
    let posing = moved.pose_on_script("bin/python3.13", script, &[], |command| {
        command.env("VIBE_HOME", &moved.root).stdout(lock);
    });
    let lease = json!({
        "acquired_at": time(now_ms()), "lease_version": 1,
        "process_id": posing.pid(), "session_id": session,
    });
    moved.write(&format!("{active}/{session}.lock.json"), lease.to_string());
    let meta = json!({
        "session_id": session, "start_time": time(now_ms()),
        "environment": { "working_directory": moved.work_dir() },
    });
    let below = format!("logs/session/unified/{session}/meta.json");
    moved.write(&below, meta.to_string());
    moved.check(Served {
        agent: "vibe",
        session,
        posing,
        home: Some(&moved.root),
        variable: ("VIBE_HOME", &moved.root),
        argv: &["vibe", "--resume", session],
        env: ("VIBE_HOME", &moved.root),
    });
}
