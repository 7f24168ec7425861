//! Which sessions are live, as a Rust program would find it with walkdir and
//! `serde_json`: the same as `sessions.py --all`, for sidecars.

use std::collections::{HashMap, HashSet};
use std::io::Write as _;
use std::time::Duration;

use serde_json::{Value, json};
use walkdir::WalkDir;

const CLOCK_SLACK_S: f64 = 2.0;
const TICKS_PER_SECOND: f64 = 100.0;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let home = std::env::args_os().nth(1).ok_or("no home")?;
    let boot_s = boot_time().ok_or("no boot time")?;
    let mut began: HashMap<i64, Option<f64>> = HashMap::new();
    let mut live = serde_json::Map::new();
    let mut dead = HashSet::new();
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
        if began.is_some_and(|began| began <= said_at + CLOCK_SLACK_S) {
            live.insert(session.to_owned(), pid.into());
        } else {
            dead.insert(session.to_owned());
        }
    }
    dead.retain(|session| !live.contains_key(session));
    let found = json!({ "live": live, "dead": dead.len() });
    writeln!(std::io::stdout(), "{found}")?;
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
