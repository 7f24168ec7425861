//! opencode, and Kilo CLI, which was made from it: a database for all sessions, and a log
//! that names runs.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, params};
use serde_json::json;

use super::{Agent, Habits, Leave, Task, program, words};
use crate::actor::Program;
use crate::world::{Kind, Scene, World, date, now_ms, text};

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS session(id text PRIMARY KEY, project_id text NOT NULL, parent_id text, directory text NOT NULL, title text NOT NULL,
  version text NOT NULL, model text, time_created integer NOT NULL, time_updated integer NOT NULL, time_archived integer);
CREATE TABLE IF NOT EXISTS message(id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE INDEX IF NOT EXISTS message_session_time_created_id_idx ON message(session_id, time_created, id);
CREATE TABLE IF NOT EXISTS part(id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL, time_created integer NOT NULL,
  time_updated integer NOT NULL, data text NOT NULL);";

/// opencode, or what was made from it: the name of its command, data and database.
pub(super) struct Opencode(&'static str);

pub(super) const OPENCODE: Opencode = Opencode("opencode");
pub(super) const KILO: Opencode = Opencode("kilo");

impl Opencode {
    fn is_original(&self) -> bool {
        self.0 == OPENCODE.0
    }

    /// Where its data are, below the home.
    fn data(&self, world: &World) -> PathBuf {
        world.home.join(".local/share").join(self.0)
    }

    fn database(&self, world: &World) -> anyhow::Result<Connection> {
        let folder = self.data(world);
        std::fs::create_dir_all(&folder)?;
        let database = Connection::open(folder.join(format!("{}.db", self.0)))?;
        database.pragma_update(None, "journal_mode", "WAL")?;
        database.pragma_update(None, "synchronous", "OFF")?;
        database.execute_batch(SCHEMA)?;
        Ok(database)
    }

    fn note(&self, world: &mut World, process: usize, what: &str) -> anyhow::Result<()> {
        let folder = self.data(world).join("log");
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

    /// Kilo CLI loads its configuration first: a terminal in a run of its own.
    fn load(&self, world: &mut World, process: usize, task: &Task) -> anyhow::Result<()> {
        let what = "message=loading path=/home/dev/.config/kilo/config.json";
        self.note(world, process, what)?;
        if !task.is_headless() {
            let run = world.chance.hex(8);
            world.process(process)?.notes.insert("run", run);
        }
        Ok(())
    }
}

impl Agent for Opencode {
    fn id(&self) -> &'static str {
        self.0
    }

    fn habits(&self) -> Habits {
        Habits {
            has_hooks: self.is_original(),
            resumes_inside: true,
            nests: self.is_original(),
            ..Habits::default()
        }
    }

    fn programs(&self, tools: &Path, task: &Task, world: &World) -> Vec<Program> {
        let mut options = Vec::new();
        if task.is_headless() {
            options.push("run");
        }
        if let Some(id) = task.id(world) {
            options.extend(["--session", id]);
        }
        if task.is_headless() {
            options.push("go on");
        }
        let with = |first: &[&str]| -> Vec<String> {
            let all = first.iter().chain(&options);
            all.map(|&argument| argument.to_owned()).collect()
        };
        let start = |executable: &Path, comm, first: &[&str]| {
            let argv = with(first);
            let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
            program(executable, comm, &argv)
        };
        if self.is_original() {
            let executable = tools.join("lib/node_modules/opencode-ai/bin/opencode.exe");
            return vec![start(&executable, "opencode", &["opencode"])];
        }
        let script = text(&tools.join("bin/kilo"));
        let executable = tools.join("lib/node_modules/@kilocode/cli/bin/.kilo");
        vec![
            start(&tools.join("bin/node"), "MainThread", &["node", &script]),
            start(&executable, ".kilo", &[&text(&executable)]),
        ]
    }

    fn launch(&self, world: &mut World, process: usize, task: &Task) -> anyhow::Result<()> {
        let run = world.chance.hex(8);
        self.database(world)?;
        let owner = world.process(process)?;
        owner.notes.insert("run", run);
        let directory = text(&owner.work_dir);
        if !self.is_original() {
            self.load(world, process, task)?;
        }
        for message in ["\"creating instance\"", "fromDirectory"] {
            self.note(
                world,
                process,
                &format!("message={message} directory={directory}"),
            )?;
        }
        self.note(world, process, "message=init count=1")?;
        for name in [&*format!("{}.db", self.0), "log/opencode.log"] {
            let path = self.data(world).join(name);
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
            self.note(world, process, &what)?;
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
            self.note(
                world,
                process,
                &format!("message={what} session.id={} step=0", scene.id),
            )?;
        }
        rows(&self.database(world)?, &scene, &prompt)?;
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

fn rows(database: &Connection, scene: &Scene, prompt: &str) -> anyhow::Result<()> {
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
