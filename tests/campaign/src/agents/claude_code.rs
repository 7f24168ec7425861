//! Claude Code: a record for each process, which decides.

use std::path::Path;

use serde_json::{Value, json};

use super::{Agent, Habits, Leave, Task, encoded, ended, hook_with_transcript, program, words};
use crate::actor::Program;
use crate::world::{Kind, Scene, World, date};

/// The id that the record has, where that is not that of the session.
const STALE: &str = "stale";

pub(super) struct ClaudeCode;

impl Agent for ClaudeCode {
    fn id(&self) -> &'static str {
        "claude-code"
    }

    fn habits(&self) -> Habits {
        Habits {
            files_decide: true,
            has_hooks: true,
            resumes_inside: true,
            shares_sessions: true,
            forks: true,
            nests: true,
            ..Habits::default()
        }
    }

    fn programs(&self, tools: &Path, task: &Task, world: &World) -> Vec<Program> {
        let mut argv = vec!["claude"];
        if task.is_headless() {
            argv.push("-p");
        }
        if let Some(id) = task.id(world) {
            argv.extend(["--resume", id]);
        }
        match task {
            Task::Fork(_) => argv.push("--fork-session"),
            Task::Headless(_) => argv.push("go on"),
            _ => {}
        }
        let package = "lib/node_modules/@anthropic-ai/claude-code/bin/claude.exe";
        vec![program(&tools.join(package), "claude", &argv)]
    }

    fn launch(&self, world: &mut World, process: usize, task: &Task) -> anyhow::Result<()> {
        if task.named().is_none() {
            let id = world.chance.uuid();
            world.bear(process, id)?;
        }
        // Registering takes a moment, which somebody may look in.
        if matches!(task, Task::Resume(_)) && world.chance.percent(40) {
            world.process(process)?.is_settling = true;
            return Ok(());
        }
        settle(world, process, task)
    }

    fn prompt(&self, world: &mut World, process: usize) -> anyhow::Result<()> {
        if world.process(process)?.is_settling {
            settle(world, process, &Task::Resume(0))?;
        }
        let scene = world.scene(process)?;
        let tell = |world: &mut World, kind, event, extra| {
            world.tell(process, scene.session, kind, event, &extra)
        };
        let prompt = words(scene.prompts);
        tell(
            world,
            Kind::Other,
            "UserPromptSubmit",
            json!({ "prompt": prompt }),
        )?;
        register(world, process, "busy")?;
        let line = |kind: &str, message| {
            json!({
                "type": kind, "sessionId": scene.id, "cwd": scene.work_dir, "isSidechain": false,
                "version": "2.1.197", "gitBranch": "main", "timestamp": date(scene.now_ms),
                "message": message,
            })
        };
        let reply = json!({
            "role": "assistant", "model": "claude-opus-4-8", "stop_reason": "end_turn",
            "content": [{ "type": "text", "text": "Done." }],
        });
        let user = line("user", json!({ "role": "user", "content": prompt }));
        world.append(&transcript(&scene), &[user, line("assistant", reply)])?;
        world.prompted(process)?;
        tell(
            world,
            Kind::Other,
            "PreToolUse",
            json!({ "tool_name": "Bash" }),
        )?;
        tell(
            world,
            Kind::Trailing,
            "PostToolUse",
            json!({ "tool_name": "Bash" }),
        )?;
        register(world, process, "idle")?;
        tell(
            world,
            Kind::Trailing,
            "Stop",
            json!({ "stop_hook_active": false }),
        )
    }

    fn switch(&self, world: &mut World, process: usize, to: Option<usize>) -> anyhow::Result<()> {
        let left = world.scene(process)?;
        let reason = if to.is_some() { "resume" } else { "clear" };
        ended(world, process, left.session, reason)?;
        match to {
            Some(session) => world.process(process)?.current = Some(session),
            None => {
                let id = world.chance.uuid();
                world.bear(process, id)?;
            }
        }
        world.process(process)?.named = None;
        let scene = world.scene(process)?;
        if to.is_none() {
            let line = json!({
                "type": "user", "sessionId": scene.id, "cwd": scene.work_dir,
                "timestamp": date(scene.now_ms), "version": "2.1.197", "isSidechain": false,
                "message": { "role": "user", "content": "<command-name>/clear</command-name>" },
            });
            world.append(&transcript(&scene), &[line])?;
        }
        world.session(scene.session)?.is_on_disk = true;
        world.tell(
            process,
            scene.session,
            Kind::Start,
            "SessionStart",
            &json!({ "source": reason }),
        )?;
        // Some versions go on with the id of the session that was left; only hooks
        // tell that.
        let is_stale = world.chance.percent(20);
        let owner = world.process(process)?;
        owner.notes.remove(STALE);
        if is_stale && owner.heard == Some(scene.session) {
            owner.notes.insert(STALE, left.id);
        }
        register(world, process, "idle")
    }

    fn leave(&self, world: &mut World, process: usize, how: Leave) -> anyhow::Result<()> {
        let scene = world.scene(process)?;
        let reason = match how {
            Leave::Exit => "prompt_input_exit",
            Leave::Terminated => "other",
        };
        world.unclaim(process, &record(&scene))?;
        ended(world, process, scene.session, reason)
    }

    fn claim_file(&self, world: &mut World, process: usize) -> Option<String> {
        Some(record(&world.scene(process).ok()?))
    }

    fn hook(&self, home: &Path, id: &str, event: &str, cwd: &str) -> (String, Value) {
        let path = format!(".claude/projects/{}/{id}.jsonl", encoded(cwd));
        hook_with_transcript(&home.join(path), id, event, cwd)
    }
}

fn settle(world: &mut World, process: usize, task: &Task) -> anyhow::Result<()> {
    world.process(process)?.is_settling = false;
    register(world, process, "idle")?;
    let scene = world.scene(process)?;
    world.session(scene.session)?.is_on_disk = true;
    let source = match task {
        Task::Resume(_) => "resume",
        Task::Fork(_) => "fork",
        _ => "startup",
    };
    world.tell(
        process,
        scene.session,
        Kind::Start,
        "SessionStart",
        &json!({ "source": source }),
    )
}

fn register(world: &mut World, process: usize, status: &str) -> anyhow::Result<()> {
    let scene = world.scene(process)?;
    let stale = world.process(process)?.notes.get(STALE).cloned();
    let id = stale.unwrap_or_else(|| scene.id.clone());
    let mut content = json!({
        "pid": scene.pid, "sessionId": id, "cwd": scene.work_dir,
        "startedAt": scene.began_ms, "procStart": scene.stamp.to_string(), "version": "2.1.197",
        "peerProtocol": 1, "kind": "interactive", "entrypoint": "cli",
    });
    if scene.is_headless {
        content["entrypoint"] = json!("sdk-cli");
    } else {
        content["status"] = json!(status);
        content["updatedAt"] = json!(scene.now_ms);
        content["statusUpdatedAt"] = json!(scene.now_ms);
    }
    world.claim(process, &record(&scene), &content.to_string())
}

fn record(scene: &Scene) -> String {
    format!(".claude/sessions/{}.json", scene.pid)
}

fn transcript(scene: &Scene) -> String {
    format!(
        ".claude/projects/{}/{}.jsonl",
        encoded(&scene.work_dir),
        scene.id
    )
}
