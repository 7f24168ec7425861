//! Kimi Code: a title over its arguments; a session from the first prompt on.

use std::path::Path;

use serde_json::{Value, json};

use super::{Agent, Habits, Leave, Task, gemini::sha256, titled, words};
use crate::actor::Program;
use crate::world::{Kind, Scene, World};

pub(super) struct KimiCode;

impl Agent for KimiCode {
    fn id(&self) -> &'static str {
        "kimi-code"
    }

    fn habits(&self) -> Habits {
        Habits {
            hides_arguments: true,
            has_hooks: true,
            resumes_inside: true,
            nests: true,
            ..Habits::default()
        }
    }

    fn programs(&self, tools: &Path, _task: &Task, _world: &World) -> Vec<Program> {
        vec![titled(&tools.join("bin/node"), "kimi-code", "kimi-code")]
    }

    fn launch(&self, world: &mut World, process: usize, task: &Task) -> anyhow::Result<()> {
        if let Some(session) = task.named() {
            world.tell(
                process,
                session,
                Kind::Start,
                "SessionStart",
                &json!({ "source": "resume" }),
            )?;
        }
        Ok(())
    }

    fn prompt(&self, world: &mut World, process: usize) -> anyhow::Result<()> {
        if world.process(process)?.current.is_none() {
            begin(world, process)?;
        }
        let scene = world.scene(process)?;
        let prompt = json!([{ "type": "text", "text": words(scene.prompts) }]);
        world.tell(
            process,
            scene.session,
            Kind::Other,
            "UserPromptSubmit",
            &json!({ "prompt": prompt, "is_steer": false }),
        )?;
        let (at, turn) = (scene.now_ms, scene.prompts);
        let event = |event: Value| json!({ "type": "context.append_loop_event", "agentId": "main", "event": event, "time": at });
        world.append(&wire(&scene), &[
            json!({ "type": "turn.prompt", "agentId": "main", "input": prompt, "origin": { "kind": "user" }, "turnId": turn, "time": at }),
            json!({ "type": "context.append_message", "agentId": "main", "message": { "role": "user", "content": prompt }, "time": at }),
            event(json!({ "type": "step.begin", "turnId": turn.to_string(), "step": 1 })),
            event(json!({ "type": "content.part", "turnId": turn.to_string(), "step": 1, "part": { "type": "text", "text": "Done." } })),
            event(json!({ "type": "step.end", "turnId": turn.to_string(), "step": 1, "finishReason": "end_turn" })),
            json!({ "type": "turn.ended", "agentId": "main", "turnId": turn, "reason": "completed", "time": at }),
        ])?;
        state(world, &scene)?;
        world.prompted(process)?;
        world.tell(process, scene.session, Kind::Trailing, "Stop", &json!({}))
    }

    fn switch(&self, world: &mut World, process: usize, to: Option<usize>) -> anyhow::Result<()> {
        let left = world.process(process)?.current;
        if let Some(session) = to {
            let owner = world.process(process)?;
            owner.current = Some(session);
            owner.is_silent = true;
            world.tell(
                process,
                session,
                Kind::Start,
                "SessionStart",
                &json!({ "source": "resume" }),
            )?;
        } else {
            // The new one starts before the old one ends.
            begin(world, process)?;
        }
        if let Some(left) = left {
            world.tell(
                process,
                left,
                Kind::End,
                "SessionEnd",
                &json!({ "reason": "new" }),
            )?;
        }
        Ok(())
    }

    fn leave(&self, world: &mut World, process: usize, how: Leave) -> anyhow::Result<()> {
        let Some(session) = world.process(process)?.current else {
            return Ok(());
        };
        if how == Leave::Exit {
            world.tell(
                process,
                session,
                Kind::End,
                "SessionEnd",
                &json!({ "reason": "exit" }),
            )?;
        }
        Ok(())
    }
}

fn begin(world: &mut World, process: usize) -> anyhow::Result<()> {
    let id = format!("session_{}", world.chance.uuid());
    world.bear(process, id)?;
    let scene = world.scene(process)?;
    world.append(&wire(&scene), &[
        json!({ "type": "metadata", "protocol_version": "1.5", "created_at": scene.born_ms }),
        json!({ "type": "permission.set_mode", "agentId": "main", "mode": "manual", "time": scene.born_ms }),
    ])?;
    state(world, &scene)?;
    let entry = json!({ "sessionId": scene.id, "sessionDir": world.home.join(folder(&scene)), "workDir": scene.work_dir });
    world.append(".kimi-code/session_index.jsonl", &[entry])?;
    world.session(scene.session)?.is_on_disk = true;
    world.tell(
        process,
        scene.session,
        Kind::Start,
        "SessionStart",
        &json!({ "source": "startup" }),
    )
}

fn state(world: &World, scene: &Scene) -> anyhow::Result<()> {
    let main = world.home.join(format!("{}/agents/main", folder(scene)));
    let content = json!({
        "id": scene.id, "version": 2, "cwd": scene.work_dir, "createdAt": scene.born_ms, "updatedAt": scene.now_ms,
        "archived": false, "agents": { "main": { "homedir": main, "type": "main" } }, "custom": {},
        "lastPrompt": words(scene.prompts), "title": words(0), "titleKind": "replaceable", "isCustomTitle": false,
    });
    world.write(
        &format!("{}/state.json", folder(scene)),
        &content.to_string(),
    )
}

fn folder(scene: &Scene) -> String {
    let slug = scene
        .work_dir
        .rsplit('/')
        .next()
        .unwrap_or_default()
        .to_lowercase();
    format!(
        ".kimi-code/sessions/wd_{slug}_{}/{}",
        &sha256(&scene.work_dir)[..12],
        scene.id
    )
}

fn wire(scene: &Scene) -> String {
    format!("{}/agents/main/wire.jsonl", folder(scene))
}
