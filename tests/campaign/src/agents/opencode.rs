//! opencode: a database for all sessions, and a log that names runs.

use std::io::Write as _;
use std::path::Path;

use rusqlite::{Connection, params};
use serde_json::json;

use super::{Agent, Habits, Leave, Task, program, words};
use crate::actor::Program;
use crate::world::{Kind, Scene, World, date, now_ms, text};

/// Where its data are, below the home.
const DATA: &str = ".local/share/opencode";
const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS session(id text PRIMARY KEY, project_id text NOT NULL, parent_id text, directory text NOT NULL, title text NOT NULL,
  version text NOT NULL, model text, time_created integer NOT NULL, time_updated integer NOT NULL, time_archived integer);
CREATE TABLE IF NOT EXISTS message(id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE INDEX IF NOT EXISTS message_session_time_created_id_idx ON message(session_id, time_created, id);
CREATE TABLE IF NOT EXISTS part(id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL, time_created integer NOT NULL,
  time_updated integer NOT NULL, data text NOT NULL);";

pub(super) struct Opencode;

impl Agent for Opencode {
    fn id(&self) -> &'static str {
        "opencode"
    }

    fn habits(&self) -> Habits {
        Habits {
            has_hooks: true,
            resumes_inside: true,
            nests: true,
            ..Habits::default()
        }
    }

    fn programs(&self, tools: &Path, task: &Task, world: &World) -> Vec<Program> {
        let executable = tools.join("lib/node_modules/opencode-ai/bin/opencode.exe");
        let mut argv = vec!["opencode"];
        if task.is_headless() {
            argv.push("run");
        }
        if let Some(id) = task.id(world) {
            argv.extend(["--session", id]);
        }
        if task.is_headless() {
            argv.push("go on");
        }
        vec![program(&executable, "opencode", &argv)]
    }

    fn launch(&self, world: &mut World, process: usize, _task: &Task) -> anyhow::Result<()> {
        let run = world.chance.hex(8);
        database(world)?;
        let owner = world.process(process)?;
        owner.notes.insert("run", run);
        let directory = text(&owner.work_dir);
        for message in ["\"creating instance\"", "fromDirectory"] {
            note(
                world,
                process,
                &format!("message={message} directory={directory}"),
            )?;
        }
        note(world, process, "message=init count=1")?;
        for name in ["opencode.db", "log/opencode.log"] {
            let path = world.home.join(DATA).join(name);
            world
                .process(process)?
                .order(&json!({ "do": "open", "path": path }))?;
        }
        Ok(())
    }

    fn prompt(&self, world: &mut World, process: usize) -> anyhow::Result<()> {
        let is_new = world.process(process)?.current.is_none();
        if is_new {
            let id = format!("ses_{}", world.chance.hex(26));
            world.bear(process, id)?;
        }
        let scene = world.scene(process)?;
        if is_new {
            let what = format!(
                "message=created id={} slug=kind-otter version=1.18.33 projectID=b7f7904027ae directory={} \
                 path=\"\" workspaceID=undefined parentID=undefined title=\"New session - x\"",
                scene.id, scene.work_dir
            );
            note(world, process, &what)?;
            world.tell(
                process,
                scene.session,
                Kind::Start,
                "SessionStart",
                &json!({ "source": "startup" }),
            )?;
        }
        let prompt = words(scene.prompts);
        world.tell(
            process,
            scene.session,
            Kind::Other,
            "UserPromptSubmit",
            &json!({ "prompt": prompt }),
        )?;
        for what in ["loop", "stream", "\"exiting loop\""] {
            note(
                world,
                process,
                &format!("message={what} session.id={} step=0", scene.id),
            )?;
        }
        rows(world, &scene, &prompt)?;
        world.prompted(process)?;
        world.tell(process, scene.session, Kind::Trailing, "Stop", &json!({}))
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

fn database(world: &World) -> anyhow::Result<Connection> {
    let folder = world.home.join(DATA);
    std::fs::create_dir_all(&folder)?;
    let database = Connection::open(folder.join("opencode.db"))?;
    database.pragma_update(None, "journal_mode", "WAL")?;
    database.pragma_update(None, "synchronous", "OFF")?;
    database.execute_batch(SCHEMA)?;
    Ok(database)
}

fn rows(world: &World, scene: &Scene, prompt: &str) -> anyhow::Result<()> {
    let database = database(world)?;
    let (at, n) = (scene.now_ms, scene.prompts);
    let model = json!({ "id": "mock-model", "providerID": "mock" }).to_string();
    database.execute(
        "INSERT INTO session VALUES (?1, 'b7f7904027ae', NULL, ?2, ?3, '1.18.33', ?4, ?5, ?6, NULL)
         ON CONFLICT(id) DO UPDATE SET time_updated = ?6",
        params![scene.id, scene.work_dir, words(0), model, scene.born_ms, at],
    )?;
    let said = [
        (json!({ "role": "user", "time": { "created": at } }), prompt),
        (
            json!({ "role": "assistant", "time": { "created": at, "completed": at }, "modelID": "mock-model",
            "providerID": "mock", "finish": "stop" }),
            "Done.",
        ),
    ];
    for (role, (message, words)) in said.into_iter().enumerate() {
        let id = format!("msg_{}_{n}_{role}", scene.id);
        database.execute(
            "INSERT INTO message VALUES (?1, ?2, ?3, ?3, ?4)",
            params![id, scene.id, at, message.to_string()],
        )?;
        let part = json!({ "type": "text", "text": words }).to_string();
        database.execute(
            "INSERT INTO part VALUES (?1, ?2, ?3, ?4, ?4, ?5)",
            params![format!("prt{id}"), id, scene.id, at, part],
        )?;
    }
    Ok(())
}

fn note(world: &mut World, process: usize, what: &str) -> anyhow::Result<()> {
    let folder = world.home.join(DATA).join("log");
    std::fs::create_dir_all(&folder)?;
    let run = world
        .process(process)?
        .notes
        .get("run")
        .cloned()
        .unwrap_or_default();
    let line = format!("timestamp={} level=INFO run={run} {what}\n", date(now_ms()));
    let path = folder.join("opencode.log");
    let mut log = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)?;
    Ok(log.write_all(line.as_bytes())?)
}
