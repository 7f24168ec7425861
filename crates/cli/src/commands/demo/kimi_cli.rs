//! The sessions of kimi-cli in a demo. None of its files names a process.

use std::fmt::Write as _;

use md5::{Digest as _, Md5};
use serde_json::{Value, json};

use super::part::Part;
use super::props::Props;

const PROGRAM: &str = ".local/share/uv/tools/kimi-cli/bin/python3.13";
/// Its process title, which overwrites the arguments and leaves the rest empty.
const TITLED: &[&str] = &["Kimi Code", "", "", ""];

const PAIRED: &str = "6e4b1d97-58c0-4f3a-bd26-a7c90e8f1ddd";
const EITHER: &str = "2c7f9ae3-b164-4d08-95e7-e3d2c1b0a4ee";
const OTHER: &str = "a95d0b6c-7e32-4c81-8fa4-4b5c6d7e8fff";

/// The processes.
pub(super) fn parts() -> Vec<Part> {
    let kimi = |name, work_dir| Part::new(name, PROGRAM, TITLED, work_dir);
    vec![
        kimi("kimi-paired", "src/docs"),
        kimi("kimi-left", "notes"),
        kimi("kimi-right", "notes"),
    ]
}

/// Writes the files of these sessions.
pub(super) fn write(props: &Props<'_>) -> anyhow::Result<()> {
    let began = props.actor("kimi-paired")?.began_at_ms;
    let prompt = "Draft the announcement";
    write_session(props, PAIRED, "src/docs", began, prompt)?;
    // Two processes and two sessions in one directory: which process serves which session
    // can't be known.
    let left = props.actor("kimi-left")?.began_at_ms;
    let right = props.actor("kimi-right")?.began_at_ms;
    let began = left.max(right);
    write_session(props, EITHER, "notes", began, "Sort the reading list")?;
    write_session(props, OTHER, "notes", began, "Plan the team day")
}

fn write_session(
    props: &Props<'_>,
    id: &str,
    work_dir: &str,
    at_ms: i64,
    prompt: &str,
) -> anyhow::Result<()> {
    let mut folder = String::from(".kimi/sessions/");
    for byte in Md5::digest(props.text(work_dir)?.as_bytes()) {
        write!(folder, "{byte:02x}")?;
    }
    let seconds = std::time::Duration::from_millis(at_ms.unsigned_abs()).as_secs_f64();
    let metadata = json!({ "type": "metadata", "protocol_version": "1.10" });
    let input = json!([{ "type": "text", "text": prompt }]);
    let turn = json!({ "type": "TurnBegin", "payload": { "user_input": input } });
    let step = json!({ "type": "StepBegin", "payload": { "n": 1 } });
    let record = |message: Value| json!({ "timestamp": seconds, "message": message });
    let lines = [metadata, record(turn), record(step)];
    props.lines(&format!("{folder}/{id}/wire.jsonl"), &lines)?;
    props.file(&format!("{folder}/{id}/context.jsonl"), "")
}
