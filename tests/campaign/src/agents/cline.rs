//! Cline without a hub: a database whose rows have a PID, and a log that has the
//! PID of whoever opened a session.

use std::path::Path;

use rusqlite::{Connection, params};
use serde_json::json;

use super::{Agent, Habits, Leave, Task, program, words};
use crate::actor::Program;
use crate::world::{Scene, World, date, text};

/// Where its data are, below the home.
const DATA: &str = ".cline/data";
const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS sessions(session_id TEXT PRIMARY KEY, source TEXT NOT NULL, pid INTEGER NOT NULL, started_at TEXT NOT NULL, ended_at TEXT,
  exit_code INTEGER, status TEXT NOT NULL, interactive INTEGER NOT NULL, provider TEXT NOT NULL, model TEXT NOT NULL, cwd TEXT NOT NULL,
  workspace_root TEXT NOT NULL, parent_session_id TEXT, is_subagent INTEGER NOT NULL DEFAULT 0, prompt TEXT, metadata_json TEXT,
  messages_path TEXT, updated_at TEXT NOT NULL)";

pub(super) struct Cline;

impl Agent for Cline {
    fn id(&self) -> &'static str {
        "cline"
    }

    fn habits(&self) -> Habits {
        Habits {
            files_decide: true,
            ..Habits::default()
        }
    }

    fn programs(&self, tools: &Path, task: &Task, world: &World) -> Vec<Program> {
        let executable =
            tools.join("lib/node_modules/cline/node_modules/@cline/cli-linux-x64/bin/cline");
        let path = text(&executable);
        let mut argv = vec![path.as_str()];
        if let Some(id) = task.id(world) {
            argv.extend(["--id", id]);
        }
        if task.is_headless() {
            argv.push("go on");
        }
        vec![program(&executable, "cline", &argv)]
    }

    fn launch(&self, world: &mut World, process: usize, _task: &Task) -> anyhow::Result<()> {
        note(
            world,
            process,
            &json!({ "interactive": true, "hasPrompt": false, "msg": "CLI run started" }),
        )
    }

    fn prompt(&self, world: &mut World, process: usize) -> anyhow::Result<()> {
        if world.process(process)?.current.is_none() {
            let suffix = world.chance.hex(5);
            let id = format!("{}_{suffix}", crate::world::now_ms());
            world.bear(process, id)?;
        }
        let scene = world.scene(process)?;
        let opened = world
            .process(process)?
            .notes
            .insert("open", scene.id.clone());
        if opened.as_ref() != Some(&scene.id) {
            event(world, process, "session.started", &scene)?;
        }
        event(world, process, "session.input_sent", &scene)?;
        let messages = format!("{DATA}/sessions/{0}/{0}.messages.json", scene.id);
        let content = json!({ "version": 1, "messages": [
            { "role": "user", "ts": scene.now_ms, "content": [{ "type": "text", "text": words(scene.prompts) }] },
            { "role": "assistant", "ts": scene.now_ms, "content": [{ "type": "text", "text": "Done." }] },
        ] });
        world.write(&messages, &content.to_string())?;
        save(world, &scene, &text(&world.home.join(messages)), "idle")?;
        world.prompted(process)
    }

    fn switch(&self, world: &mut World, process: usize, _to: Option<usize>) -> anyhow::Result<()> {
        // Nothing is on record of a session that this process never worked on.
        let is_silent = !world.process(process)?.notes.contains_key("open");
        complete(world, process)?;
        let owner = world.process(process)?;
        owner.current = None;
        owner.named = None;
        owner.is_silent |= is_silent;
        Ok(())
    }

    fn leave(&self, world: &mut World, process: usize, how: Leave) -> anyhow::Result<()> {
        if how == Leave::Exit {
            complete(world, process)?;
        }
        Ok(())
    }
}

fn save(world: &World, scene: &Scene, messages: &str, status: &str) -> anyhow::Result<()> {
    let database = database(world)?;
    let prompt = format!("<user_input mode=\"act\">{}</user_input>", words(0));
    let metadata = json!({ "sessionHistoryOrigin": { "mode": "user", "version": "3.0.65" },
        "git": { "branch": "main" }, "title": words(0) });
    database.execute(
        "INSERT INTO sessions VALUES (?1, 'cli', ?2, ?3, NULL, NULL, ?4, 1, 'openai-compatible', 'mock-model', ?5, ?5, NULL, 0, ?6, ?7, ?8, ?9)
         ON CONFLICT(session_id) DO UPDATE SET status = ?4, updated_at = ?9",
        params![scene.id, scene.pid, date(scene.born_ms), status, scene.work_dir, prompt, metadata.to_string(), messages, date(scene.now_ms)],
    )?;
    Ok(())
}

/// The session is over, for the agent.
fn complete(world: &mut World, process: usize) -> anyhow::Result<()> {
    let opened = world.process(process)?.notes.remove("open");
    if let Some(id) = opened {
        database(world)?.execute(
            "UPDATE sessions SET status = 'completed', exit_code = 0, ended_at = ?2 WHERE session_id = ?1",
            params![id, date(crate::world::now_ms())],
        )?;
    }
    Ok(())
}

fn database(world: &World) -> anyhow::Result<Connection> {
    let folder = world.home.join(DATA).join("db");
    std::fs::create_dir_all(&folder)?;
    let database = Connection::open(folder.join("sessions.db"))?;
    database.pragma_update(None, "journal_mode", "WAL")?;
    database.pragma_update(None, "synchronous", "OFF")?;
    database.execute_batch(SCHEMA)?;
    Ok(database)
}

fn event(world: &mut World, process: usize, name: &str, scene: &Scene) -> anyhow::Result<()> {
    let properties = json!({ "extension_version": "3.0.65", "cline_type": "cli", "sessionId": scene.id, "source": "cli" });
    note(
        world,
        process,
        &json!({ "telemetrySink": "TelemetryLoggerSink", "event": name, "properties": properties, "msg": name }),
    )
}

fn note(world: &mut World, process: usize, extra: &serde_json::Value) -> anyhow::Result<()> {
    let owner = world.process(process)?;
    let cwd = text(&owner.work_dir);
    let pid = owner.main()?.own_pid;
    let mut line = json!({
        "level": 30, "time": date(crate::world::now_ms()), "pid": pid, "hostname": world.host,
        "name": "cline.cli", "component": "main", "cwd": cwd,
    });
    for (key, value) in extra.as_object().into_iter().flatten() {
        line[key] = value.clone();
    }
    world.append(&format!("{DATA}/logs/cline.log"), &[line])
}
