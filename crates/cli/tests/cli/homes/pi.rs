//! pi whose `PI_CODING_AGENT_DIR` or `PI_CODING_AGENT_SESSION_DIR` is set in one
//! process alone.

use serde_json::json;

use super::{Moved, Served, time};
use crate::world::{Posing, now_ms};

/// Writes a session of pi below `folder`, and starts a process that names it.
fn pose_as_pi(moved: &Moved, variable: &str, folder: &str) -> (String, Posing) {
    let session = moved.world.s1.clone();
    let arguments = ["--session", session.as_str()];
    let script = "lib/node_modules/@mariozechner/pi-coding-agent/dist/cli.js";
    let posing = moved.pose_on_script("bin/node", script, &arguments, |command| {
        command.env(variable, &moved.root);
    });
    let header = json!({
        "type": "session", "version": 3, "id": session,
        "timestamp": time(now_ms()), "cwd": moved.work_dir(),
    });
    let name = format!("2026-11-27T21-02-29-749Z_{session}.jsonl");
    moved.write(&format!("{folder}{name}"), format!("{header}\n"));
    (session, posing)
}

#[test]
fn pi_coding_agent_dir_of_the_process_alone_is_found() {
    let moved = Moved::new();
    let folder = moved.work_dir().replace('/', "-");
    let folder = format!("sessions/-{folder}--/");
    let (session, posing) = pose_as_pi(&moved, "PI_CODING_AGENT_DIR", &folder);
    moved.check(Served {
        agent: "pi",
        session: &session,
        posing,
        home: Some(&moved.root),
        variable: ("PI_CODING_AGENT_DIR", &moved.root),
        argv: &["pi", "--session", &session],
        env: ("PI_CODING_AGENT_DIR", &moved.root),
    });
}

#[test]
fn pi_coding_agent_session_dir_of_the_process_alone_is_found() {
    let moved = Moved::new();
    let (session, posing) = pose_as_pi(&moved, "PI_CODING_AGENT_SESSION_DIR", "");
    moved.check(Served {
        agent: "pi",
        session: &session,
        posing,
        home: None,
        variable: ("PI_CODING_AGENT_SESSION_DIR", &moved.root),
        argv: &["pi", "--session", &session],
        env: ("PI_CODING_AGENT_SESSION_DIR", &moved.root),
    });
}
