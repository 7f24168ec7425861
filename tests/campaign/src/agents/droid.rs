//! Droid: a transcript from the first prompt on, and hooks like Claude Code's.

use std::path::Path;

use serde_json::{Value, json};

use super::{
    Agent, Habits, Leave, Task, encoded, ended, hook_with_transcript, program, started, words,
};
use crate::actor::Program;
use crate::world::{Kind, Scene, World, date};

pub(super) struct Droid;

impl Agent for Droid {
    fn id(&self) -> &'static str {
        "droid"
    }

    fn habits(&self) -> Habits {
        Habits {
            has_hooks: true,
            resumes_inside: true,
            shares_sessions: true,
            forks: true,
            nests: true,
            ..Habits::default()
        }
    }

    fn programs(&self, tools: &Path, task: &Task, world: &World) -> Vec<Program> {
        let executable = tools.join("bin/droid");
        let mut argv = vec!["droid"];
        match (task, task.id(world)) {
            (Task::Resume(_), Some(id)) => argv.extend(["--resume", id]),
            (Task::Fork(_), Some(id)) => argv.extend(["--fork", id]),
            (Task::Headless(_), Some(id)) => argv.extend(["exec", "-s", id, "go on"]),
            (Task::Headless(_), None) => argv.extend(["exec", "go on"]),
            _ => {}
        }
        vec![program(&executable, "droid", &argv)]
    }

    fn launch(&self, world: &mut World, process: usize, task: &Task) -> anyhow::Result<()> {
        let source = if task.named().is_some() {
            "resume"
        } else {
            "startup"
        };
        if task.named().is_none() {
            let id = world.chance.uuid();
            world.bear(process, id)?;
        }
        started(world, process, source)
    }

    fn prompt(&self, world: &mut World, process: usize) -> anyhow::Result<()> {
        let scene = world.scene(process)?;
        let (at, n) = (date(scene.now_ms), scene.prompts);
        world.tell(
            process,
            scene.session,
            Kind::Other,
            "UserPromptSubmit",
            &json!({ "prompt": words(n) }),
        )?;
        let mut records = Vec::new();
        if scene.is_first_prompt {
            let start = json!({ "type": "session_start", "id": scene.id, "title": words(0), "owner": "dev", "version": 2, "cwd": scene.work_dir, "hostId": "h-1" });
            records.push(start);
            let settings = json!({ "model": "claude-opus-4-8", "interactionMode": "auto" });
            world.write(
                &format!("{}.settings.json", base(&scene)),
                &settings.to_string(),
            )?;
        }
        for (role, text) in [("user", words(n)), ("assistant", "Done.".to_owned())] {
            let message = json!({ "role": role, "content": [{ "type": "text", "text": text }] });
            records.push(json!({ "type": "message", "id": format!("m-{role}-{n}"), "timestamp": at, "message": message }));
        }
        world.append(&format!("{}.jsonl", base(&scene)), &records)?;
        world.prompted(process)?;
        world.tell(process, scene.session, Kind::Trailing, "Stop", &json!({}))
    }

    fn switch(&self, world: &mut World, process: usize, to: Option<usize>) -> anyhow::Result<()> {
        let left = world.scene(process)?;
        ended(world, process, left.session, "clear")?;
        let source = if let Some(session) = to {
            world.process(process)?.current = Some(session);
            "resume"
        } else {
            let id = world.chance.uuid();
            world.bear(process, id)?;
            "clear"
        };
        world.process(process)?.named = None;
        world.process(process)?.is_silent = true;
        started(world, process, source)
    }

    fn leave(&self, world: &mut World, process: usize, _how: Leave) -> anyhow::Result<()> {
        let scene = world.scene(process)?;
        ended(world, process, scene.session, "other")
    }

    fn hook(&self, home: &Path, id: &str, event: &str, cwd: &str) -> (String, Value) {
        let path = format!(".factory/sessions/{}/{id}.jsonl", encoded(cwd));
        hook_with_transcript(&home.join(path), id, event, cwd)
    }
}

fn base(scene: &Scene) -> String {
    format!(
        ".factory/sessions/{}/{}",
        encoded(&scene.work_dir),
        scene.id
    )
}
