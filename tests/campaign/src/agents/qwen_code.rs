//! qwen-code: a record for each process and a sidecar for each session; one-shot
//! runs have neither.

use std::path::Path;

use serde_json::{Value, json};

use super::{
    Agent, Habits, Leave, Task, encoded, ended, hook_with_transcript, program, started, words,
};
use crate::actor::Program;
use crate::world::{Kind, Scene, World, date, text};

pub(super) struct QwenCode;

impl Agent for QwenCode {
    fn id(&self) -> &'static str {
        "qwen-code"
    }

    fn habits(&self) -> Habits {
        Habits {
            files_decide: true,
            has_hooks: true,
            resumes_inside: true,
            nests: true,
            ..Habits::default()
        }
    }

    fn programs(&self, tools: &Path, task: &Task, world: &World) -> Vec<Program> {
        let node = tools.join("bin/node");
        let script = text(&tools.join("lib/node_modules/@qwen-code/qwen-code/cli.js"));
        let path = text(&node);
        let mut argv = vec![path.as_str(), "--expose-gc", &script];
        if let Some(id) = task.id(world) {
            argv.extend(["--resume", id]);
        }
        if task.is_headless() {
            argv.extend(["-p", "go on"]);
        }
        let one = program(&node, "MainThread", &argv);
        vec![one.clone(), one]
    }

    fn launch(&self, world: &mut World, process: usize, task: &Task) -> anyhow::Result<()> {
        if task.named().is_none() {
            let id = world.chance.uuid();
            world.bear(process, id)?;
        }
        publish(world, process)?;
        let source = if task.named().is_some() {
            "resume"
        } else {
            "startup"
        };
        started(world, process, source)
    }

    fn prompt(&self, world: &mut World, process: usize) -> anyhow::Result<()> {
        let scene = world.scene(process)?;
        let prompt = words(scene.prompts);
        world.tell(
            process,
            scene.session,
            Kind::Other,
            "UserPromptSubmit",
            &json!({ "prompt": prompt }),
        )?;
        let line = |kind: &str, role: &str, text: &str| {
            json!({
                "uuid": format!("{kind}-{}", scene.prompts), "parentUuid": null, "sessionId": scene.id,
                "timestamp": date(scene.now_ms), "type": kind, "cwd": scene.work_dir, "version": "0.24.4",
                "model": "qwen3-coder-plus", "gitBranch": "main",
                "message": { "role": role, "parts": [{ "text": text }] },
            })
        };
        let path = format!("{}.jsonl", chat(&scene));
        world.append(
            &path,
            &[
                line("user", "user", &prompt),
                line("assistant", "model", "Done."),
            ],
        )?;
        world.prompted(process)?;
        world.tell(process, scene.session, Kind::Trailing, "Stop", &json!({}))
    }

    fn switch(&self, world: &mut World, process: usize, to: Option<usize>) -> anyhow::Result<()> {
        let left = world.scene(process)?;
        world.remove(&format!("{}.runtime.json", chat(&left)));
        let source = if let Some(session) = to {
            world.process(process)?.current = Some(session);
            world.process(process)?.named = None;
            "resume"
        } else {
            ended(world, process, left.session, "clear")?;
            if left.is_first_prompt && !world.hooked.contains(&self.id()) {
                world.session(left.session)?.is_on_disk = false;
            }
            let id = world.chance.uuid();
            world.bear(process, id)?;
            "clear"
        };
        publish(world, process)?;
        started(world, process, source)
    }

    fn leave(&self, world: &mut World, process: usize, _how: Leave) -> anyhow::Result<()> {
        let scene = world.scene(process)?;
        if scene.is_headless {
            return Ok(());
        }
        world.unclaim(process, &record(&scene))?;
        ended(world, process, scene.session, "prompt_input_exit")
    }

    fn claim_file(&self, world: &mut World, process: usize) -> Option<String> {
        Some(record(&world.scene(process).ok()?))
    }

    fn hook(&self, home: &Path, id: &str, event: &str, cwd: &str) -> (String, Value) {
        let path = format!(".qwen/projects/{}/chats/{id}.jsonl", encoded(cwd));
        hook_with_transcript(&home.join(path), id, event, cwd)
    }
}

fn publish(world: &mut World, process: usize) -> anyhow::Result<()> {
    let scene = world.scene(process)?;
    if scene.is_headless {
        return Ok(());
    }
    world.write(
        &format!("{}.runtime.json", chat(&scene)),
        &sidecar(&scene, &world.host, scene.now_ms).to_string(),
    )?;
    let content = registry(&scene, &world.boot);
    world.claim(process, &record(&scene), &content.to_string())?;
    world.session(scene.session)?.is_on_disk = true;
    Ok(())
}

/// The sidecar of a session, as of that moment.
pub(crate) fn sidecar(scene: &Scene, host: &str, at_ms: i64) -> Value {
    let started_at = std::time::Duration::from_millis(at_ms.unsigned_abs()).as_secs_f64();
    json!({
        "schema_version": 1, "pid": scene.pid, "session_id": scene.id, "work_dir": scene.work_dir,
        "hostname": host, "started_at": started_at, "qwen_version": "0.24.4",
    })
}

fn registry(scene: &Scene, boot: &str) -> Value {
    json!({
        "schemaVersion": 1, "pid": scene.pid, "procStart": format!("{boot}:{}", scene.stamp),
        "pidNs": scene.namespace, "sessionId": scene.id, "cwd": scene.work_dir, "name": "app",
        "startedAt": scene.began_ms, "qwenVersion": "0.24.4", "kind": "tui",
    })
}

fn record(scene: &Scene) -> String {
    format!(".qwen/sessions/{}.json", scene.pid)
}

fn chat(scene: &Scene) -> String {
    format!(
        ".qwen/projects/{}/chats/{}",
        encoded(&scene.work_dir),
        scene.id
    )
}
