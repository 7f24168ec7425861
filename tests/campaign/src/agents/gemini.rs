//! Gemini CLI: a chat from the launch on, and nothing that names a process.

use std::path::Path;

use serde_json::{Value, json};

use super::{Agent, Habits, Leave, Task, ended, program, started, words};
use crate::actor::Program;
use crate::world::{Kind, Scene, World, date, text};

pub(super) struct Gemini;

impl Agent for Gemini {
    fn id(&self) -> &'static str {
        "gemini"
    }

    fn habits(&self) -> Habits {
        Habits {
            has_hooks: true,
            resumes_inside: true,
            ..Habits::default()
        }
    }

    fn programs(&self, tools: &Path, task: &Task, world: &World) -> Vec<Program> {
        let (node, script) = (tools.join("bin/node"), text(&tools.join("bin/gemini")));
        let path = text(&node);
        let mut options = Vec::new();
        if let Some(id) = task.id(world) {
            options.extend(["--resume", id]);
        }
        if task.is_headless() {
            options.extend(["-p", "go on"]);
        }
        let launcher = [&["node", &script][..], &options].concat();
        let agent = [
            &[&path, "--max-old-space-size=12052", &script][..],
            &options,
        ]
        .concat();
        let agent = Program {
            variable: Some("GEMINI_CLI_NO_RELAUNCH"),
            ..program(&node, "node", &agent)
        };
        vec![program(&node, "node", &launcher), agent]
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
            begin(world, process)?;
        } else {
            let scene = world.scene(process)?;
            world.append(&chat(&scene), &[header(&scene, &date(scene.now_ms))])?;
        }
        let scene = world.scene(process)?;
        world.process(process)?.notes.insert("first", scene.id);
        world.tell(
            process,
            scene.session,
            Kind::Start,
            "SessionStart",
            &json!({ "source": source }),
        )
    }

    fn prompt(&self, world: &mut World, process: usize) -> anyhow::Result<()> {
        let scene = world.scene(process)?;
        let prompt = words(scene.prompts);
        world.tell(
            process,
            scene.session,
            Kind::Other,
            "BeforeAgent",
            &json!({ "prompt": prompt }),
        )?;
        let (at, number) = (date(scene.now_ms), scene.prompts);
        typed(world, process, &prompt)?;
        world.append(&chat(&scene), &[
            json!({ "id": format!("u{number}"), "timestamp": at, "type": "user", "content": [{ "text": prompt }] }),
            json!({ "$set": { "lastUpdated": at } }),
            json!({ "id": format!("g{number}"), "timestamp": at, "type": "gemini", "content": "Done.", "thoughts": [],
                "tokens": { "input": 1234, "output": 56, "total": 1290 }, "model": "gemini-2.5-pro" }),
            json!({ "$set": { "lastUpdated": at } }),
        ])?;
        world.prompted(process)?;
        world.tell(
            process,
            scene.session,
            Kind::Trailing,
            "AfterAgent",
            &json!({}),
        )
    }

    fn switch(&self, world: &mut World, process: usize, to: Option<usize>) -> anyhow::Result<()> {
        let left = world.scene(process)?;
        let command = if to.is_some() { "/resume" } else { "/clear" };
        typed(world, process, command)?;
        ended(world, process, left.session, "clear")?;
        let source = if let Some(session) = to {
            world.process(process)?.current = Some(session);
            world.process(process)?.named = None;
            world.process(process)?.is_silent = true;
            "resume"
        } else {
            let id = world.chance.uuid();
            world.bear(process, id)?;
            begin(world, process)?;
            "clear"
        };
        started(world, process, source)
    }

    fn leave(&self, world: &mut World, process: usize, how: Leave) -> anyhow::Result<()> {
        let scene = world.scene(process)?;
        let times = if how == Leave::Exit { 2 } else { 3 };
        for _ in 0..times {
            ended(world, process, scene.session, "exit")?;
        }
        if how == Leave::Exit && scene.is_first_prompt {
            // A chat in which nothing was said is removed; what hooks reported
            // stays.
            world.remove(&chat(&scene));
            if !world.hooked.contains(&self.id()) {
                world.session(scene.session)?.is_on_disk = false;
            }
        }
        Ok(())
    }
}

/// Logs what is typed, under the session that the process was launched with.
fn typed(world: &mut World, process: usize, message: &str) -> anyhow::Result<()> {
    let scene = world.scene(process)?;
    let first = world.process(process)?.notes.get("first").cloned();
    let mut logged: Vec<Value> = std::fs::read(world.home.join(logs(&scene)))
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default();
    logged.push(json!({
        "sessionId": first.as_ref().unwrap_or(&scene.id), "messageId": logged.len(), "type": "user",
        "message": message, "timestamp": date(scene.now_ms),
    }));
    world.write(&logs(&scene), &json!(logged).to_string())
}

fn begin(world: &mut World, process: usize) -> anyhow::Result<()> {
    let scene = world.scene(process)?;
    let list = world.home.join(".gemini/projects.json");
    let mut projects: Value = std::fs::read(&list)
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_else(|| json!({ "projects": {} }));
    projects["projects"][&scene.work_dir] = json!(slug(&scene));
    world.write(".gemini/projects.json", &projects.to_string())?;
    world.write(
        &format!(".gemini/tmp/{}/.project_root", slug(&scene)),
        &scene.work_dir,
    )?;
    let at = date(scene.born_ms);
    let context = json!([{ "id": "c0", "timestamp": at, "type": "user",
        "content": [{ "text": "<session_context>\nThis is the Gemini CLI." }] }]);
    world.append(
        &chat(&scene),
        &[
            header(&scene, &at),
            json!({ "$set": { "messages": context, "lastUpdated": at } }),
        ],
    )?;
    world.session(scene.session)?.is_on_disk = true;
    Ok(())
}

fn header(scene: &Scene, at: &str) -> Value {
    json!({ "sessionId": scene.id, "projectHash": sha256(&scene.work_dir), "startTime": at,
        "lastUpdated": at, "kind": "main" })
}

pub(super) fn sha256(text: &str) -> String {
    use sha2::Digest as _;
    let digest = sha2::Sha256::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn slug(scene: &Scene) -> String {
    let name = scene.work_dir.rsplit('/').next().unwrap_or_default();
    name.replace(['_', '.'], "-")
}

fn logs(scene: &Scene) -> String {
    format!(".gemini/tmp/{}/logs.json", slug(scene))
}

fn chat(scene: &Scene) -> String {
    let minute = date(scene.born_ms)[..16].replace(':', "-");
    format!(
        ".gemini/tmp/{}/chats/session-{minute}-{}.jsonl",
        slug(scene),
        &scene.id[..8]
    )
}
