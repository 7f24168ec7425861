//! Crush: a database for each directory, which one process locks.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, params};
use serde_json::{Value, json};

use super::{Agent, Habits, Leave, Task, program, words};
use crate::actor::Program;
use crate::world::{Scene, World, append, date, text, write};

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, parent_session_id TEXT, title TEXT NOT NULL,
  message_count INTEGER NOT NULL DEFAULT 0, prompt_tokens INTEGER NOT NULL DEFAULT 0,
  completion_tokens INTEGER NOT NULL DEFAULT 0, cost REAL NOT NULL DEFAULT 0.0,
  updated_at INTEGER NOT NULL, created_at INTEGER NOT NULL, summary_message_id TEXT, todos TEXT);
CREATE TABLE IF NOT EXISTS messages (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, role TEXT NOT NULL,
  parts TEXT NOT NULL default '[]', model TEXT, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  finished_at INTEGER, provider TEXT, is_summary_message INTEGER DEFAULT 0 NOT NULL);";

pub(super) struct Crush;

impl Agent for Crush {
    fn id(&self) -> &'static str {
        "crush"
    }

    fn habits(&self) -> Habits {
        Habits {
            resumes_inside: true,
            is_alone_in_directory: true,
            ..Habits::default()
        }
    }

    fn programs(&self, tools: &Path, task: &Task, world: &World) -> Vec<Program> {
        let mut argv = vec!["crush"];
        if task.is_headless() {
            argv.push("run");
        }
        if let Some(id) = task.id(world) {
            argv.extend(["--session", id]);
        }
        if task.is_headless() {
            argv.push("go on");
        }
        vec![program(&tools.join("bin/crush"), "crush", &argv)]
    }

    fn launch(&self, world: &mut World, process: usize, _task: &Task) -> anyhow::Result<()> {
        let owner = world.process(process)?;
        let data = owner.work_dir.join(".crush");
        let at = date(owner.began_ms);
        let content =
            json!({ "pid": owner.main()?.own_pid, "version": "v0.96.1", "started_at": at });
        let path = data.join("crush.lock");
        std::fs::create_dir_all(&data)?;
        owner.order(&json!({ "do": "lock", "path": path }))?;
        std::fs::write(&path, content.to_string())?;
        database(&data)?;
        let list = world.home.join(".local/share/crush/projects.json");
        let old: Value = std::fs::read(&list)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_else(|| json!({ "projects": [] }));
        let mut projects = old["projects"].as_array().cloned().unwrap_or_default();
        projects.retain(|project| project["data_dir"] != json!(data));
        projects.push(json!({ "path": data.parent(), "data_dir": data, "last_accessed": at }));
        write(&list, &json!({ "projects": projects }).to_string())
    }

    fn prompt(&self, world: &mut World, process: usize) -> anyhow::Result<()> {
        if world.process(process)?.current.is_none() {
            let id = world.chance.uuid();
            world.bear(process, id)?;
        }
        let scene = world.scene(process)?;
        // Its directory may have another name now, under which it has the
        // database open.
        let data = data_dir(world, process)?;
        save(&data, &scene)?;
        append(&data.join("logs/crush.log"), &[json!({ "msg": "prompt" })])?;
        world.prompted(process)?;
        // No list has the new name of a directory that was renamed.
        let is_in_place = data.parent() == Some(&*world.process(process)?.work_dir);
        world.session(scene.session)?.is_on_disk = is_in_place;
        Ok(())
    }

    fn switch(&self, world: &mut World, process: usize, to: Option<usize>) -> anyhow::Result<()> {
        let owner = world.process(process)?;
        owner.current = to;
        owner.named = None;
        owner.is_silent = true;
        Ok(())
    }

    fn leave(&self, _world: &mut World, _process: usize, _how: Leave) -> anyhow::Result<()> {
        Ok(())
    }
}

fn data_dir(world: &mut World, process: usize) -> anyhow::Result<PathBuf> {
    let pid = world.process(process)?.pid();
    let cwd = std::fs::read_link(format!("/proc/{pid}/cwd"))?;
    anyhow::ensure!(!text(&cwd).ends_with(" (deleted)"), "its directory is gone");
    Ok(cwd.join(".crush"))
}

fn database(data: &Path) -> anyhow::Result<Connection> {
    std::fs::create_dir_all(data)?;
    let database = Connection::open(data.join("crush.db"))?;
    database.pragma_update(None, "journal_mode", "WAL")?;
    database.pragma_update(None, "synchronous", "OFF")?;
    database.execute_batch(SCHEMA)?;
    Ok(database)
}

fn save(data: &Path, scene: &Scene) -> anyhow::Result<()> {
    let database = database(data)?;
    let (born, at, n) = (scene.born_ms / 1000, scene.now_ms / 1000, scene.prompts);
    database.execute(
        "INSERT INTO sessions (id, title, message_count, updated_at, created_at) VALUES (?1, ?2, 2, ?3, ?4)
         ON CONFLICT(id) DO UPDATE SET updated_at = ?3",
        params![scene.id, words(0), at, born],
    )?;
    let user = json!([{ "type": "text", "data": { "text": words(n) } }]);
    let reply = json!([{ "type": "text", "data": { "text": "Done." } },
        { "type": "finish", "data": { "reason": "end_turn", "time": at } }]);
    for (role, parts) in [("user", user), ("assistant", reply)] {
        database.execute(
            "INSERT INTO messages (id, session_id, role, parts, model, created_at, updated_at) VALUES (?1, ?2, ?3, ?4, 'devstral-medium', ?5, ?5)",
            params![format!("{}-{n}-{role}", scene.id), scene.id, role, parts.to_string(), at],
        )?;
    }
    Ok(())
}
