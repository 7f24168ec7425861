//! What hooks reported earlier, from the event logs, oldest first.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use whosup_core::sidecar::file::{Links, read_regular};
use whosup_core::sources::record::{
    LOG_BYTES_MAX, LogLine, LoggedEvent, ended_root_of, parse_line, records_root_of,
};
use whosup_core::views::wire::timestamp;
use whosup_live::Filter;

use crate::app::App;
use crate::json::escaped;
use crate::text::{age, one_line, visible};

/// How many logs are read.
const LOGS_MAX: usize = 100_000;
/// How many events are printed at most: the last.
const EVENTS_MAX: usize = 100_000;

/// An event of a session.
struct Past {
    agent: String,
    session: String,
    event: Box<LoggedEvent>,
}

/// Prints what hooks reported since, oldest first.
pub(super) fn write(
    app: &mut App<'_>,
    filter: &Filter,
    since_ms: i64,
    is_for_people: bool,
) -> io::Result<()> {
    let machine = app.world.machine();
    let now_ms = machine.now_ms();
    let Some(root) = records_root_of(machine.environment()) else {
        return Ok(());
    };
    let logs = [root.clone(), ended_root_of(&root)];
    let logs = logs.iter().flat_map(|root| logs_in(root)).take(LOGS_MAX);
    let mut events: Vec<Past> = logs.flat_map(|log| events_of(&log, since_ms)).collect();
    let mut real = HashMap::new();
    let mut real_path = |directory: &Path| {
        let known = real.get(directory).cloned();
        known.unwrap_or_else(|| {
            let path = machine.mounts().real_path(directory);
            real.insert(directory.to_owned(), path.clone());
            path
        })
    };
    events.retain(|past| fits(filter, past, &mut real_path));
    events.sort_by(|one, other| {
        let place = |past: &Past| (past.event.at_ms, past.session.clone());
        place(one).cmp(&place(other))
    });
    let skipped = events.len().saturating_sub(EVENTS_MAX);
    for past in events.iter().skip(skipped) {
        if is_for_people {
            let ago = age(now_ms, past.event.at_ms);
            let Past { agent, session, .. } = past;
            let what = past.event.kind.name();
            writeln!(
                app.out,
                "{ago:>4} ago  {agent} {}  {what}",
                one_line(&visible(session))
            )?;
        } else {
            escaped::write(&mut *app.out, &line(past))?;
            writeln!(app.out)?;
        }
    }
    Ok(())
}

fn line(past: &Past) -> Value {
    let path = |path: &PathBuf| path.to_string_lossy().into_owned();
    json!({
        "kind": "event",
        "at": timestamp(past.event.at_ms),
        "agent": past.agent,
        "session_id": past.session,
        "home": path(&past.event.home),
        "event": past.event.kind.name(),
        "work_dir": past.event.work_dir.as_ref().map(path),
        "reason": past.event.reason,
    })
}

fn fits(filter: &Filter, past: &Past, mut real_path: impl FnMut(&Path) -> PathBuf) -> bool {
    let is_of_agent = filter.agents.is_empty() || filter.agents.contains(&past.agent);
    is_of_agent
        && filter.directory.as_ref().is_none_or(|wanted| {
            let work_dir = past.event.work_dir.as_deref();
            work_dir.is_some_and(|its| real_path(its).starts_with(wanted))
        })
}

/// The logs below a root: `AGENT/ID.jsonl`.
fn logs_in(root: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let below = |path: PathBuf| {
        // A missing directory has no logs.
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        entries.map(|entry| entry.path())
    };
    let logs = below(root.to_owned()).flat_map(below);
    logs.filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
}

fn events_of(log: &Path, since_ms: i64) -> Vec<Past> {
    let name =
        |path: Option<&Path>| -> Option<String> { Some(path?.file_stem()?.to_str()?.to_owned()) };
    let (Some(session), Some(agent)) = (name(Some(log)), name(log.parent())) else {
        return Vec::new();
    };
    let modified = fs::metadata(log).and_then(|facts| facts.modified());
    let modified = modified
        .ok()
        .and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    let modified_ms = modified.and_then(|at| i64::try_from(at.as_millis()).ok());
    if modified_ms.is_some_and(|at| at < since_ms) {
        return Vec::new();
    }
    let Ok(file) = read_regular(log, LOG_BYTES_MAX, Links::Refuse) else {
        return Vec::new();
    };
    let lines = file.bytes.split(|byte| *byte == b'\n');
    let lines = lines.filter(|line| !line.is_empty());
    let events = lines.filter_map(|line| match parse_line(line) {
        Ok(LogLine::Event(event)) if event.at_ms >= since_ms => Some(event),
        _ => None,
    });
    events
        .map(|event| Past {
            agent: agent.clone(),
            session: session.clone(),
            event,
        })
        .collect()
}
