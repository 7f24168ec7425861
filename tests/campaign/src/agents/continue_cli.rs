//! Continue CLI: a document for each session, from the first prompt on; no hooks, and
//! nothing that names a process.

use std::path::Path;

use serde_json::{Value, json};

use super::{Agent, Habits, Leave, Task, program, words};
use crate::actor::Program;
use crate::world::{Scene, World, now_ms, text};

const SESSIONS: &str = ".continue/sessions";

pub(super) struct Continue;

impl Agent for Continue {
    fn id(&self) -> &'static str {
        "continue"
    }

    fn habits(&self) -> Habits {
        Habits {
            // `--resume` names no session.
            hides_arguments: true,
            shares_sessions: true,
            nests: true,
            ..Habits::default()
        }
    }

    fn programs(&self, tools: &Path, task: &Task, _world: &World) -> Vec<Program> {
        let script = text(&tools.join("bin/cn"));
        let mut argv = vec!["node", &script];
        if task.named().is_some() {
            argv.push("--resume");
        }
        if task.is_headless() {
            argv.extend(["-p", "go on"]);
        }
        vec![program(&tools.join("bin/node"), "MainThread", &argv)]
    }

    fn launch(&self, _world: &mut World, _process: usize, _task: &Task) -> anyhow::Result<()> {
        Ok(())
    }

    fn prompt(&self, world: &mut World, process: usize) -> anyhow::Result<()> {
        if world.process(process)?.current.is_none() {
            let id = world.chance.uuid_of(now_ms());
            world.bear(process, id)?;
        }
        let scene = world.scene(process)?;
        let path = format!("{SESSIONS}/{}.json", scene.id);
        world.write(&path, &document(&scene).to_string())?;
        list(world, &scene)?;
        world.prompted(process)
    }

    fn switch(&self, world: &mut World, process: usize, to: Option<usize>) -> anyhow::Result<()> {
        let owner = world.process(process)?;
        owner.current = to;
        owner.is_silent = true;
        Ok(())
    }

    fn leave(&self, _world: &mut World, _process: usize, _how: Leave) -> anyhow::Result<()> {
        Ok(())
    }
}

/// The whole session, as it is written at each step.
fn document(scene: &Scene) -> Value {
    let said = (0..=scene.prompts).flat_map(|prompt| {
        let user = json!({ "role": "user", "content": words(prompt) });
        let reply = json!({ "role": "assistant", "content": "Done." });
        [user, reply].map(|message| json!({ "message": message, "contextItems": [] }))
    });
    json!({
        "sessionId": scene.id, "title": words(0), "workspaceDirectory": scene.work_dir,
        "history": said.collect::<Vec<_>>(),
    })
}

/// Adds the session to the list of all.
fn list(world: &World, scene: &Scene) -> anyhow::Result<()> {
    let path = format!("{SESSIONS}/sessions.json");
    let listed = std::fs::read_to_string(world.home.join(&path)).unwrap_or_default();
    let mut listed: Vec<Value> = serde_json::from_str(&listed).unwrap_or_default();
    listed.retain(|one| one["sessionId"] != *scene.id);
    listed.push(json!({
        "sessionId": scene.id, "title": words(0), "dateCreated": scene.born_ms.to_string(),
        "workspaceDirectory": scene.work_dir, "messageCount": scene.prompts + 1,
    }));
    world.write(&path, &Value::from(listed).to_string())
}
