//! Copilot CLI: a lock for each open session, from its launch or first prompt on.

use std::path::Path;

use serde_json::{Value, json};

use super::{Agent, Habits, Leave, Task, program, words};
use crate::actor::Program;
use crate::world::{Kind, Scene, World, date, text};

pub(super) struct Copilot;

impl Agent for Copilot {
    fn id(&self) -> &'static str {
        "copilot"
    }

    fn habits(&self) -> Habits {
        Habits {
            files_decide: true,
            has_hooks: true,
            nests: true,
            ..Habits::default()
        }
    }

    fn programs(&self, tools: &Path, task: &Task, world: &World) -> Vec<Program> {
        let executable = tools.join("lib/node_modules/@github/copilot-linux-x64/copilot");
        let path = text(&executable);
        let named = task.id(world).map(|id| format!("--resume={id}"));
        let mut argv = vec![path.as_str()];
        argv.extend(named.as_deref());
        if task.is_headless() {
            argv.extend(["-p", "go on"]);
        }
        vec![program(&executable, "MainThread", &argv)]
    }

    fn launch(&self, world: &mut World, process: usize, task: &Task) -> anyhow::Result<()> {
        if task.named().is_none() {
            let id = world.chance.uuid();
            world.bear(process, id)?;
            begin(world, process)?;
        } else {
            note(world, process)?;
        }
        let scene = world.scene(process)?;
        let path = world.home.join(log(&scene));
        world
            .process(process)?
            .order(&json!({ "do": "open", "path": path }))?;
        Ok(())
    }

    fn prompt(&self, world: &mut World, process: usize) -> anyhow::Result<()> {
        let scene = world.scene(process)?;
        lock(world, process)?;
        if world.process(process)?.heard != Some(scene.session) {
            let source = if scene.is_first_prompt {
                "new"
            } else {
                "resume"
            };
            world.tell(
                process,
                scene.session,
                Kind::Start,
                "sessionStart",
                &json!({ "source": source }),
            )?;
        }
        let prompt = words(scene.prompts);
        world.tell(
            process,
            scene.session,
            Kind::Other,
            "userPromptSubmitted",
            &json!({ "prompt": prompt }),
        )?;
        let at = date(scene.now_ms);
        let line = |kind: &str, data: Value| json!({ "type": kind, "data": data, "id": format!("e-{kind}-{}", scene.prompts), "timestamp": at, "parentId": null });
        let mut records = Vec::new();
        if scene.is_first_prompt {
            records.push(line("session.start", json!({
                "sessionId": scene.id, "version": 1, "producer": "copilot-agent", "copilotVersion": "1.0.102",
                "startTime": date(scene.born_ms), "selectedModel": "gpt-5", "alreadyInUse": false,
                "context": { "cwd": scene.work_dir, "gitRoot": scene.work_dir, "branch": "main" },
            })));
        }
        records.extend([
            line("user.message", json!({ "content": prompt, "messageId": "m" })),
            line("assistant.turn_start", json!({ "turnId": "0" })),
            line("assistant.message", json!({ "messageId": "r", "model": "gpt-5", "content": "Done.", "toolRequests": [] })),
            line("assistant.turn_end", json!({ "turnId": "0" })),
        ]);
        world.append(&format!("{}/events.jsonl", folder(&scene)), &records)?;
        world.prompted(process)?;
        world.tell(
            process,
            scene.session,
            Kind::Trailing,
            "agentStop",
            &json!({ "stopReason": "end_turn" }),
        )
    }

    fn switch(&self, world: &mut World, process: usize, _to: Option<usize>) -> anyhow::Result<()> {
        let left = world.scene(process)?;
        world.tell(
            process,
            left.session,
            Kind::End,
            "sessionEnd",
            &json!({ "reason": "user_exit" }),
        )?;
        unlock(world, process, &left)?;
        close(world, &left)?;
        unregister(world, &left)?;
        let id = world.chance.uuid();
        world.bear(process, id)?;
        begin(world, process)
    }

    fn leave(&self, world: &mut World, process: usize, how: Leave) -> anyhow::Result<()> {
        let scene = world.scene(process)?;
        world.tell(
            process,
            scene.session,
            Kind::End,
            "sessionEnd",
            &json!({ "reason": "user_exit" }),
        )?;
        unlock(world, process, &scene)?;
        unregister(world, &scene)?;
        if how == Leave::Exit {
            close(world, &scene)?;
        }
        Ok(())
    }

    fn hook(&self, _home: &Path, id: &str, event: &str, cwd: &str) -> (String, Value) {
        let payload = json!({ "sessionId": id, "timestamp": crate::world::now_ms(), "cwd": cwd });
        (event.to_owned(), payload)
    }
}

fn begin(world: &mut World, process: usize) -> anyhow::Result<()> {
    let scene = world.scene(process)?;
    let at = date(scene.born_ms);
    let workspace = format!(
        "id: {}\ncwd: {1}\ngit_root: {1}\nbranch: main\nclient_name: github/cli\nuser_named: false\n\
         summary_count: 0\nfork_count: 0\ncreated_at: {at}\nupdated_at: {at}\n",
        scene.id, scene.work_dir
    );
    world.write(&format!("{}/workspace.yaml", folder(&scene)), &workspace)?;
    world.session(scene.session)?.is_on_disk = true;
    lock(world, process)?;
    note(world, process)
}

fn lock(world: &mut World, process: usize) -> anyhow::Result<()> {
    let scene = world.scene(process)?;
    let base = inuse(&scene);
    if world.process(process)?.notes.get("lock") == Some(&base) {
        return Ok(());
    }
    world.write(&format!("{base}.lock"), &format!("{}\n", scene.pid))?;
    let hold = world.home.join(format!("{base}.hold"));
    let owner = world.process(process)?;
    owner.order(&json!({ "do": "lock", "path": hold }))?;
    owner.notes.insert("lock", base);
    Ok(())
}

fn unlock(world: &mut World, process: usize, scene: &Scene) -> anyhow::Result<()> {
    let base = inuse(scene);
    let hold = world.home.join(format!("{base}.hold"));
    world
        .process(process)?
        .order(&json!({ "do": "close", "path": hold }))?;
    world.remove(&format!("{base}.lock"));
    world.remove(&format!("{base}.hold"));
    Ok(())
}

/// The log and the list of what is open.
fn note(world: &mut World, process: usize) -> anyhow::Result<()> {
    let scene = world.scene(process)?;
    let at = date(scene.now_ms);
    let mut list = open(world);
    list[&scene.id] =
        json!({ "schemaVersion": 1, "openedAt": at, "refreshedAt": at, "working": false });
    world.write(".copilot/open-sessions-state.json", &list.to_string())?;
    let path = world.home.join(log(&scene));
    let mut text = std::fs::read_to_string(&path).unwrap_or_default();
    if text.is_empty() {
        text = format!("{at} [INFO] Starting Copilot CLI: 1.0.102\n");
    }
    text += &format!(
        "{at} [INFO] Workspace initialized: {} (checkpoints: 0)\n",
        scene.id
    );
    text += &format!("{at} [INFO] Registering foreground session: {}\n", scene.id);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    Ok(std::fs::write(path, text)?)
}

/// The terminal shows another session, or none.
fn unregister(world: &World, scene: &Scene) -> anyhow::Result<()> {
    use std::io::Write as _;

    let path = world.home.join(log(scene));
    let mut file = std::fs::OpenOptions::new().append(true).open(path)?;
    let at = date(scene.now_ms);
    let line = format!(
        "{at} [INFO] Unregistering foreground session: {}\n",
        scene.id
    );
    Ok(file.write_all(line.as_bytes())?)
}

fn close(world: &World, scene: &Scene) -> anyhow::Result<()> {
    let mut list = open(world);
    if let Some(list) = list.as_object_mut() {
        list.remove(&scene.id);
    }
    world.write(".copilot/open-sessions-state.json", &list.to_string())
}

fn open(world: &World) -> Value {
    let path = world.home.join(".copilot/open-sessions-state.json");
    let bytes = std::fs::read(path).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_else(|_| json!({}))
}

fn log(scene: &Scene) -> String {
    format!(".copilot/logs/process-{}-{}.log", scene.began_ms, scene.pid)
}

fn folder(scene: &Scene) -> String {
    format!(".copilot/session-state/{}", scene.id)
}

fn inuse(scene: &Scene) -> String {
    format!("{}/inuse.{}", folder(scene), scene.pid)
}
