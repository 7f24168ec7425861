//! pi: a title over its arguments; a transcript from the first reply on; no hooks.

use std::path::Path;

use serde_json::json;

use super::{Agent, Habits, Leave, Task, titled, words};
use crate::actor::Program;
use crate::world::{Scene, World, date, now_ms};

pub(super) struct Pi;

impl Agent for Pi {
    fn id(&self) -> &'static str {
        "pi"
    }

    fn habits(&self) -> Habits {
        Habits {
            hides_arguments: true,
            resumes_inside: true,
            shares_sessions: true,
            nests: true,
            ..Habits::default()
        }
    }

    fn programs(&self, tools: &Path, _task: &Task, _world: &World) -> Vec<Program> {
        vec![titled(&tools.join("bin/node"), "pi", "pi")]
    }

    fn launch(&self, world: &mut World, process: usize, task: &Task) -> anyhow::Result<()> {
        if task.named().is_none() {
            let id = world.chance.uuid_of(now_ms());
            world.bear(process, id)?;
        }
        Ok(())
    }

    fn prompt(&self, world: &mut World, process: usize) -> anyhow::Result<()> {
        let scene = world.scene(process)?;
        let (at, n) = (date(scene.now_ms), scene.prompts);
        let mut records = Vec::new();
        if scene.is_first_prompt {
            let born = date(scene.born_ms);
            records.push(json!({ "type": "session", "version": 3, "id": scene.id, "timestamp": born, "cwd": scene.work_dir }));
            records.push(json!({ "type": "model_change", "id": "88b9d9f8", "parentId": null, "timestamp": born, "provider": "mock", "modelId": "model-1" }));
        }
        let user = json!({ "role": "user", "content": [{ "type": "text", "text": words(n) }], "timestamp": scene.now_ms });
        let reply = json!({ "role": "assistant", "content": [{ "type": "text", "text": "Done." }], "model": "model-1", "stopReason": "stop", "timestamp": scene.now_ms });
        records.push(json!({ "type": "message", "id": format!("e{n:07}"), "parentId": "88b9d9f8", "timestamp": at, "message": user }));
        records.push(json!({ "type": "message", "id": format!("f{n:07}"), "parentId": format!("e{n:07}"), "timestamp": at, "message": reply }));
        world.append(&transcript(&scene), &records)?;
        world.prompted(process)
    }

    fn switch(&self, world: &mut World, process: usize, to: Option<usize>) -> anyhow::Result<()> {
        match to {
            Some(session) => world.process(process)?.current = Some(session),
            None => {
                let id = world.chance.uuid_of(now_ms());
                world.bear(process, id)?;
            }
        }
        world.process(process)?.is_silent = true;
        Ok(())
    }

    fn leave(&self, _world: &mut World, _process: usize, _how: Leave) -> anyhow::Result<()> {
        Ok(())
    }
}

fn transcript(scene: &Scene) -> String {
    let folder = scene
        .work_dir
        .trim_start_matches('/')
        .replace(['/', '\\', ':'], "-");
    let born = date(scene.born_ms).replace([':', '.'], "-");
    format!(".pi/agent/sessions/--{folder}--/{born}_{}.jsonl", scene.id)
}
