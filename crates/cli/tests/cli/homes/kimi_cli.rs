//! kimi-cli whose `KIMI_SHARE_DIR` is set in one process alone.

use std::fs::File;

use serde_json::json;

use super::{Moved, Served, digest};
use crate::world::Posing;

/// Writes a session of kimi-cli with messages.
fn write_kimi(moved: &Moved) {
    let session = &moved.world.s1;
    let folder = digest("md5sum", &moved.work_dir());
    moved.write(
        "kimi.json",
        json!({ "work_dirs": [{ "path": moved.work_dir(), "kaos": "local" }] }).to_string(),
    );
    let line = json!({ "role": "user", "content": "hello" });
    let below = format!("sessions/{folder}/{session}/context.jsonl");
    moved.write(&below, format!("{line}\n"));
}

/// Its session is found in the moved home, and resumed from there.
#[track_caller]
fn check(moved: &Moved, posing: Posing) {
    write_kimi(moved);
    let session = moved.world.s1.as_str();
    moved.check(Served {
        agent: "kimi-cli",
        session,
        posing,
        home: Some(&moved.root),
        variable: ("KIMI_SHARE_DIR", &moved.root),
        argv: &["kimi", "--session", session],
        env: ("KIMI_SHARE_DIR", &moved.root),
    });
}

#[test]
fn kimi_share_dir_of_the_process_alone_is_found() {
    let moved = Moved::new();
    let session = moved.world.s1.as_str();
    let arguments = ["--session", session];
    let posing = moved.pose_on_script("bin/python3.13", "bin/kimi", &arguments, |command| {
        command.env("KIMI_SHARE_DIR", &moved.root);
    });
    check(&moved, posing);
}

/// kimi-cli blanks its environment when it sets its title.
#[test]
fn kimi_share_dir_of_a_process_without_an_environment_is_where_its_log_is() {
    let moved = Moved::new();
    let log = File::create(moved.write("logs/kimi.log", "")).unwrap();
    let session = moved.world.s1.as_str();
    let arguments = ["--session", session];
    let posing = moved.pose_on_script("bin/python3.13", "bin/kimi", &arguments, |command| {
        command.env_clear().stdout(log);
    });
    check(&moved, posing);
}
