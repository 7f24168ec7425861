//! Files of another boot or of another host.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::json;

use super::{Cast, pick};
use crate::agents::encoded;
use crate::world::{Elsewhere, Session, World, date, now_ms, text};

/// One hour.
const HOUR_MS: i64 = 3_600_000;

pub(super) fn other_boot(world: &mut World, cast: &Cast) -> anyhow::Result<Option<String>> {
    foreign(world, cast, Elsewhere::AnotherBoot)
}

pub(super) fn other_host(world: &mut World, cast: &Cast) -> anyhow::Result<Option<String>> {
    foreign(world, cast, Elsewhere::AnotherHost)
}

/// Files of qwen-code from before a reboot, or of another host that has the same
/// home; they name the PID of a process that lives here.
fn foreign(world: &mut World, cast: &Cast, from: Elsewhere) -> anyhow::Result<Option<String>> {
    let Some(agent) = cast.agents.iter().find(|agent| agent.id() == "qwen-code") else {
        return Ok(None);
    };
    let alive = |world: &World, at: usize| {
        let process = world.processes.get(at);
        process.is_some_and(|process| process.is_alive() && !process.is_nested)
    };
    let Some(at) = pick(world, alive) else {
        return Ok(None);
    };
    let at_ms = match from {
        Elsewhere::AnotherBoot => booted_ms()? - HOUR_MS,
        Elsewhere::AnotherHost => now_ms() - 1000,
    };
    let directory = world.chance.below(world.directories.len());
    let place = world.directories.get(directory).context("a directory")?;
    let work_dir = place.path.clone();
    let id = world.chance.uuid();
    write(world, at, from, &id, at_ms, &work_dir)?;
    let what = format!("files of {from:?}: session {id} names a process that lives");
    world.sessions.push(Session {
        agent: *agent,
        id,
        directory,
        work_dir,
        born_ms: at_ms,
        last_ms: at_ms,
        is_on_disk: true,
        prompts: 1,
        elsewhere: Some(from),
        was_nested: false,
    });
    Ok(Some(what))
}

/// Writes the sidecar, the transcript, and the record if there is none yet.
fn write(
    world: &mut World,
    process: usize,
    from: Elsewhere,
    id: &str,
    at_ms: i64,
    work_dir: &Path,
) -> anyhow::Result<()> {
    let named = world.process(process)?.main()?;
    let (pid, stamp, namespace) = (named.pid, named.stamp, named.pid_namespace);
    let host = match from {
        Elsewhere::AnotherBoot => world.host.as_str(),
        Elsewhere::AnotherHost => "elsewhere",
    };
    let base = format!(".qwen/projects/{}/chats/{id}", encoded(&text(work_dir)));
    let started_at = Duration::from_millis(at_ms.unsigned_abs()).as_secs_f64();
    let sidecar = json!({
        "schema_version": 1, "pid": pid, "session_id": id, "work_dir": work_dir,
        "hostname": host, "started_at": started_at, "qwen_version": "0.24.4",
    });
    world.write(&format!("{base}.runtime.json"), &sidecar.to_string())?;
    let line = json!({
        "uuid": "u", "sessionId": id, "timestamp": date(at_ms), "type": "user", "cwd": work_dir,
        "version": "0.24.4", "message": { "role": "user", "parts": [{ "text": "hello" }] },
    });
    world.append(&format!("{base}.jsonl"), &[line])?;
    let record = format!(".qwen/sessions/{pid}.json");
    if from == Elsewhere::AnotherHost || world.home.join(&record).exists() {
        return Ok(());
    }
    let boot = world.chance.uuid();
    let content = json!({
        "schemaVersion": 1, "pid": pid, "procStart": format!("{boot}:{stamp}"), "pidNs": namespace,
        "sessionId": id, "cwd": work_dir, "name": "app", "startedAt": at_ms, "qwenVersion": "0.24.4",
        "kind": "tui",
    });
    world.write(&record, &content.to_string())
}

/// When this machine was booted, in milliseconds since 1970.
fn booted_ms() -> anyhow::Result<i64> {
    let uptime = fs::read_to_string("/proc/uptime")?;
    let seconds = uptime.split('.').next().unwrap_or_default();
    Ok(now_ms() - seconds.parse::<i64>()? * 1000)
}
