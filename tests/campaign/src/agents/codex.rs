//! Codex without its daemon: the process locks a file for its thread.

use std::path::Path;

use serde_json::{Value, json};

use super::{Agent, Habits, Leave, Task, ended, program, words};
use crate::actor::Program;
use crate::world::{Kind, Scene, World, date, now_ms, text};

pub(super) struct Codex;

impl Agent for Codex {
    fn id(&self) -> &'static str {
        "codex"
    }

    fn habits(&self) -> Habits {
        Habits {
            files_decide: true,
            has_hooks: true,
            resumes_inside: true,
            forks: true,
            nests: true,
            ..Habits::default()
        }
    }

    fn programs(&self, tools: &Path, task: &Task, world: &World) -> Vec<Program> {
        let package =
            "lib/node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex";
        let executable = tools.join(package);
        let path = text(&executable);
        let mut argv = vec![path.as_str(), "--disable", "daemon_auto_start"];
        match (task, task.id(world)) {
            (Task::Resume(_), Some(id)) => argv.extend(["resume", id]),
            (Task::Fork(_), Some(id)) => argv.extend(["fork", id]),
            (Task::Headless(_), Some(id)) => argv.extend(["exec", "resume", id, "go on"]),
            (Task::Headless(_), None) => argv.extend(["exec", "go on"]),
            _ => {}
        }
        vec![program(&executable, "codex", &argv)]
    }

    fn launch(&self, world: &mut World, process: usize, task: &Task) -> anyhow::Result<()> {
        if task.named().is_none() {
            let id = world.chance.uuid_of(now_ms());
            world.bear(process, id)?;
        }
        take_up(world, process)?;
        if matches!(task, Task::Fork(_)) {
            let scene = world.scene(process)?;
            world.append(&rollout(&scene), &[header(&scene)])?;
        }
        Ok(())
    }

    fn prompt(&self, world: &mut World, process: usize) -> anyhow::Result<()> {
        let scene = world.scene(process)?;
        let tell = |world: &mut World, kind, event, extra| {
            world.tell(process, scene.session, kind, event, &extra)
        };
        if world.process(process)?.heard != Some(scene.session) {
            let source = if scene.is_first_prompt {
                "startup"
            } else {
                "resume"
            };
            tell(
                world,
                Kind::Start,
                "SessionStart",
                json!({ "source": source }),
            )?;
        }
        let prompt = words(scene.prompts);
        tell(
            world,
            Kind::Other,
            "UserPromptSubmit",
            json!({ "prompt": prompt }),
        )?;
        let turn = format!("turn-{}", scene.prompts);
        let mut records = Vec::new();
        if scene.is_first_prompt && !world.home.join(rollout(&scene)).exists() {
            records.push(header(&scene));
        }
        let line = |kind: &str, payload: Value| json!({ "timestamp": date(scene.now_ms), "type": kind, "payload": payload });
        let message = |role: &str, part: &str, text: &str| json!({ "type": "message", "role": role, "content": [{ "type": part, "text": text }] });
        records.extend([
            line(
                "event_msg",
                json!({ "type": "task_started", "turn_id": turn, "root_turn_id": turn }),
            ),
            line(
                "turn_context",
                json!({ "turn_id": turn, "cwd": scene.work_dir, "model": "gpt-5-codex" }),
            ),
            line("response_item", message("user", "input_text", &prompt)),
            line(
                "response_item",
                message("assistant", "output_text", "Done."),
            ),
            line(
                "event_msg",
                json!({ "type": "task_complete", "turn_id": turn }),
            ),
        ]);
        world.append(&rollout(&scene), &records)?;
        let path = world.home.join(rollout(&scene));
        world
            .process(process)?
            .order(&json!({ "do": "open", "path": path }))?;
        if scene.is_first_prompt {
            let name =
                json!({ "id": scene.id, "thread_name": prompt, "updated_at": date(scene.now_ms) });
            world.append(".codex/session_index.jsonl", &[name])?;
        }
        world.prompted(process)?;
        tell(world, Kind::Trailing, "Stop", json!({}))
    }

    fn switch(&self, world: &mut World, process: usize, to: Option<usize>) -> anyhow::Result<()> {
        let left = world.scene(process)?;
        let (lock, rollout) = (
            world.home.join(lock(&left)),
            world.home.join(rollout(&left)),
        );
        match to {
            Some(session) => world.process(process)?.current = Some(session),
            None => {
                let id = world.chance.uuid_of(now_ms());
                world.bear(process, id)?;
            }
        }
        world.process(process)?.named = None;
        take_up(world, process)?;
        let owner = world.process(process)?;
        owner.order(&json!({ "do": "close", "path": lock }))?;
        owner.order(&json!({ "do": "close", "path": rollout }))?;
        std::fs::remove_file(lock).ok();
        Ok(())
    }

    fn leave(&self, world: &mut World, process: usize, how: Leave) -> anyhow::Result<()> {
        let scene = world.scene(process)?;
        if how == Leave::Exit {
            ended(world, process, scene.session, "other")?;
            world.remove(&lock(&scene));
        }
        Ok(())
    }
}

fn take_up(world: &mut World, process: usize) -> anyhow::Result<()> {
    let scene = world.scene(process)?;
    let path = world.home.join(lock(&scene));
    std::fs::create_dir_all(world.home.join(".codex/thread-writer-locks"))?;
    world.write(
        &format!(".codex/tui-thread-reference-capabilities/{}", scene.id),
        "",
    )?;
    world
        .process(process)?
        .order(&json!({ "do": "lock", "path": path }))?;
    let rollout = world.home.join(rollout(&scene));
    if rollout.exists() {
        world
            .process(process)?
            .order(&json!({ "do": "open", "path": rollout }))?;
    }
    world.session(scene.session)?.is_on_disk = true;
    Ok(())
}

fn header(scene: &Scene) -> Value {
    let meta = json!({
        "id": scene.id, "session_id": scene.id, "timestamp": date(scene.born_ms),
        "cwd": scene.work_dir, "originator": "codex-tui", "cli_version": "0.171.0",
        "source": if scene.is_headless { "exec" } else { "cli" }, "git": { "branch": "main" },
    });
    json!({ "timestamp": date(scene.now_ms), "type": "session_meta", "payload": meta })
}

fn lock(scene: &Scene) -> String {
    format!(".codex/thread-writer-locks/{}.lock", scene.id)
}

fn rollout(scene: &Scene) -> String {
    let born = date(scene.born_ms);
    let (day, time) = (born[..10].replace('-', "/"), born[..19].replace(':', "-"));
    format!(".codex/sessions/{day}/rollout-{time}-{}.jsonl", scene.id)
}
