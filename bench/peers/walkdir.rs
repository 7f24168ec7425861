//! Which sessions are live, as a Rust program would find it with walkdir and
//! `serde_json`: the same as `sessions.py --all`, for sidecars.

use std::collections::HashMap;
use std::io::{BufWriter, Write as _};
use std::time::Duration;

use serde_json::{Value, json};
use walkdir::WalkDir;

const CLOCK_SLACK_S: f64 = 2.0;
const TICKS_PER_SECOND: f64 = 100.0;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let home = std::env::args_os().nth(1).ok_or("no home")?;
    let boot_s = boot_time().ok_or("no boot time")?;
    let mut began: HashMap<i64, Option<f64>> = HashMap::new();
    let mut found: HashMap<(&'static str, String), Value> = HashMap::new();
    for entry in WalkDir::new(home) {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy();
        if !entry.file_type().is_file() || !name.ends_with("runtime.json") {
            continue;
        }
        let Ok(bytes) = std::fs::read(entry.path()) else {
            continue;
        };
        let Ok(sidecar) = serde_json::from_slice::<Value>(&bytes) else {
            continue;
        };
        let (Some(session), Some(pid), Some(said_at)) = (
            sidecar["session_id"].as_str(),
            sidecar["pid"].as_i64(),
            sidecar["started_at"].as_f64(),
        ) else {
            continue;
        };
        let began = began.entry(pid).or_insert_with(|| began_at(pid, boot_s));
        let is_live = began.is_some_and(|began| began <= said_at + CLOCK_SLACK_S);
        let agent = if sidecar["qwen_version"].is_string() {
            "qwen-code"
        } else {
            "kimi-cli"
        };
        let key = (agent, session.to_owned());
        if is_live || !found.contains_key(&key) {
            let row = json!({
                "agent": agent,
                "session_id": session,
                "liveness": if is_live { "live" } else { "exited" },
                "pid": pid,
                "work_dir": sidecar["work_dir"],
                "path": entry.path(),
            });
            found.insert(key, row);
        }
    }
    let sessions: Vec<Value> = found.into_values().collect();
    let mut out = BufWriter::new(std::io::stdout().lock());
    writeln!(out, "{}", json!({ "sessions": sessions }))?;
    out.flush()?;
    Ok(())
}

fn boot_time() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/stat").ok()?;
    let line = stat.lines().find_map(|line| line.strip_prefix("btime "))?;
    let seconds: u64 = line.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).as_secs_f64())
}

/// When a process began, in seconds since 1970; `None` if there is none, or it
/// is a zombie.
fn began_at(pid: i64, boot_s: f64) -> Option<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    if fields.next()? == "Z" {
        return None;
    }
    let ticks: u32 = fields.nth(18)?.parse().ok()?;
    Some(boot_s + f64::from(ticks) / TICKS_PER_SECOND)
}
