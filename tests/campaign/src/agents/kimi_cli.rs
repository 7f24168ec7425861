//! kimi-cli: a title over its arguments, no environment, and a log that names
//! sessions and no process.

use std::io::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use super::{Agent, Habits, Leave, Task, ended, started, titled, words};
use crate::actor::Program;
use crate::world::{Kind, Scene, World, date};

pub(super) struct KimiCli;

impl Agent for KimiCli {
    fn id(&self) -> &'static str {
        "kimi-cli"
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
        let python = tools.join("python/bin/python3.13");
        let program = titled(&python, "Kimi Code", "Kimi Code");
        vec![Program {
            is_environment_wiped: true,
            ..program
        }]
    }

    fn launch(&self, world: &mut World, process: usize, task: &Task) -> anyhow::Result<()> {
        let log = world.home.join(".kimi/logs/kimi.log");
        std::fs::create_dir_all(world.home.join(".kimi/logs"))?;
        world
            .process(process)?
            .order(&json!({ "do": "open", "path": log }))?;
        let source = if task.named().is_some() {
            note(world, process, "Resuming session")?;
            "resume"
        } else {
            let id = world.chance.uuid();
            world.bear(process, id)?;
            begin(world, process)?;
            note(world, process, "Created new session")?;
            "startup"
        };
        started(world, process, source)
    }

    fn prompt(&self, world: &mut World, process: usize) -> anyhow::Result<()> {
        let scene = world.scene(process)?;
        world.tell(
            process,
            scene.session,
            Kind::Other,
            "UserPromptSubmit",
            &json!({ "prompt": "" }),
        )?;
        let at = std::time::Duration::from_millis(scene.now_ms.unsigned_abs()).as_secs_f64();
        let line = |kind: &str, payload: Value| json!({ "timestamp": at, "message": { "type": kind, "payload": payload } });
        let mut records = Vec::new();
        if scene.is_first_prompt {
            records.push(json!({ "type": "metadata", "protocol_version": "1.10" }));
        }
        let input = json!([{ "type": "text", "text": words(scene.prompts) }]);
        records.extend([
            line("TurnBegin", json!({ "user_input": input })),
            line("StepBegin", json!({ "n": 1 })),
            line("ContentPart", json!({ "type": "text", "text": "Done." })),
            line("TurnEnd", json!({})),
        ]);
        world.append(&format!("{}/wire.jsonl", folder(&scene)), &records)?;
        let state = json!({ "version": 1, "custom_title": words(0), "title_generated": false, "archived": false, "todos": [] });
        world.write(
            &format!("{}/state.json", folder(&scene)),
            &state.to_string(),
        )?;
        world.prompted(process)?;
        world.tell(process, scene.session, Kind::Trailing, "Stop", &json!({}))
    }

    fn switch(&self, world: &mut World, process: usize, to: Option<usize>) -> anyhow::Result<()> {
        let left = world.scene(process)?;
        ended(world, process, left.session, "exit")?;
        let source = if let Some(session) = to {
            world.process(process)?.current = Some(session);
            "resume"
        } else {
            let id = world.chance.uuid();
            world.bear(process, id)?;
            begin(world, process)?;
            "startup"
        };
        note(world, process, "Resuming session")?;
        if left.is_first_prompt {
            std::fs::remove_dir_all(world.home.join(folder(&left))).ok();
            if !world.hooked.contains(&self.id()) {
                world.session(left.session)?.is_on_disk = false;
            }
        }
        started(world, process, source)
    }

    fn leave(&self, world: &mut World, process: usize, how: Leave) -> anyhow::Result<()> {
        let scene = world.scene(process)?;
        if how == Leave::Exit {
            ended(world, process, scene.session, "exit")?;
        }
        Ok(())
    }
}

fn begin(world: &mut World, process: usize) -> anyhow::Result<()> {
    let scene = world.scene(process)?;
    let list: Vec<Value> = (0..world.directories.len())
        .filter_map(|at| world.directories.get(at))
        .map(
            |directory| json!({ "path": directory.path, "kaos": "local", "last_session_id": null }),
        )
        .collect();
    world.write(".kimi/kimi.json", &json!({ "work_dirs": list }).to_string())?;
    let context = json!({ "role": "_system_prompt", "content": "" });
    world.append(&format!("{}/context.jsonl", folder(&scene)), &[context])?;
    world.session(scene.session)?.is_on_disk = true;
    Ok(())
}

fn note(world: &mut World, process: usize, what: &str) -> anyhow::Result<()> {
    let scene = world.scene(process)?;
    // By the local clock, which is that of UTC here.
    let local = date(scene.now_ms).replace('T', " ").replace('Z', "");
    let line = format!(
        "{local} | INFO     | kimi_cli.cli:_run:583 |  - {what}: {}\n",
        scene.id
    );
    let path = world.home.join(".kimi/logs/kimi.log");
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)?;
    Ok(file.write_all(line.as_bytes())?)
}

fn folder(scene: &Scene) -> String {
    use md5::Digest as _;
    let digest = md5::Md5::digest(scene.work_dir.as_bytes());
    let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!(".kimi/sessions/{digits}/{}", scene.id)
}
