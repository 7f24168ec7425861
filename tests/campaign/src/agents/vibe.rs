//! Vibe: a server below the terminal's program, which locks a lease.

use std::path::Path;

use serde_json::json;

use super::{Agent, Habits, Leave, Task, program, titled, words};
use crate::actor::Program;
use crate::world::{Kind, Scene, World, date, text};

/// Where the leases are, below the home.
const LEASES: &str = ".vibe/logs/session/active";

pub(super) struct Vibe;

impl Agent for Vibe {
    fn id(&self) -> &'static str {
        "vibe"
    }

    fn habits(&self) -> Habits {
        Habits {
            files_decide: true,
            has_hooks: true,
            ..Habits::default()
        }
    }

    fn programs(&self, tools: &Path, task: &Task, world: &World) -> Vec<Program> {
        let interface = tools.join("python/lib/python3.13/site-packages/vibe/_bin/vibe-rs");
        let path = text(&interface);
        let mut argv = vec![path.as_str()];
        if let Some(id) = task.id(world) {
            argv.extend(["--resume", &id[..8]]);
        }
        if task.is_headless() {
            argv.extend(["-p", "go on"]);
        }
        let server = titled(
            &tools.join("python/bin/python3.13"),
            "vibe-app-server",
            "vibe-app-server",
        );
        let server = Program {
            is_environment_wiped: true,
            ..server
        };
        vec![program(&interface, "vibe-rs", &argv), server]
    }

    fn launch(&self, world: &mut World, process: usize, task: &Task) -> anyhow::Result<()> {
        if task.named().is_none() {
            let id = world.chance.uuid();
            world.bear(process, id)?;
        }
        lease(world, process)
    }

    fn prompt(&self, world: &mut World, process: usize) -> anyhow::Result<()> {
        let scene = world.scene(process)?;
        let folder = format!(".vibe/logs/session/unified/{}", scene.id);
        let generation = format!("{:016}", 38);
        let (born, now) = (date(scene.born_ms), date(scene.now_ms));
        let meta = json!({
            "session_id": scene.id, "parent_session_id": null, "start_time": born, "end_time": now,
            "git_commit": null, "git_branch": "main", "environment": { "working_directory": scene.work_dir },
            "origin_directory": scene.work_dir, "username": "dev", "child_sessions": [], "title": words(0),
            "title_source": "auto", "config": { "active_model": "devstral", "model_name": "devstral-medium" },
        });
        let state = json!({ "projection_state_version": 1, "session_id": scene.id, "snapshot_sequence": 38, "snapshot": {
            "activeCallbacks": [], "format": "harness.public-session-state/v1",
            "history": { "entries": [], "range": "latest" },
            "latestTurn": { "id": "turn-1", "sessionId": scene.id, "startedAt": scene.now_ms, "status": "completed" },
            "session": { "createdAt": scene.born_ms, "id": scene.id, "parentSessionId": null, "preview": words(0),
                "rootSessionId": scene.id, "status": { "type": "idle" }, "title": words(0), "titleSource": "auto", "updatedAt": scene.now_ms },
            "turnQueue": { "items": [], "maxItems": 32, "paused": false } } });
        let current = json!({ "generation": generation, "session_id": scene.id, "snapshot_sequence": 38,
            "store_format": "mistral.vibe.unified-session-store/v1", "store_format_minor": 9 });
        let manifest = json!({ "created_at": now, "generation": generation, "manifest_version": 1,
            "projection_state": { "chunks": [], "path": "projection-state.json" },
            "recovery_journal_segment": { "first_sequence": 39, "path": "journal/0000000000000039.jsonl" },
            "session_id": scene.id, "snapshot_sequence": 38 });
        let runtime = json!({ "identity": { "depth": 0, "kind": "root", "parent_session_id": null, "root_session_id": scene.id,
            "session_id": scene.id }, "runtime_state_version": 3, "session_id": scene.id });
        for (name, content) in [
            ("meta.json".to_owned(), meta.to_string()),
            ("CURRENT".to_owned(), current.to_string()),
            ("journal/0000000000000039.jsonl".to_owned(), String::new()),
            (
                format!("generations/{generation}/manifest.json"),
                manifest.to_string(),
            ),
            (
                format!("generations/{generation}/projection-state.json"),
                state.to_string(),
            ),
            (
                format!("generations/{generation}/runtime-state.json"),
                runtime.to_string(),
            ),
        ] {
            world.write(&format!("{folder}/{name}"), &content)?;
        }
        world.prompted(process)?;
        world.tell(
            process,
            scene.session,
            Kind::Other,
            "pre_tool",
            &json!({ "tool_name": "bash" }),
        )?;
        world.tell(
            process,
            scene.session,
            Kind::Trailing,
            "post_agent",
            &json!({}),
        )
    }

    fn switch(&self, world: &mut World, process: usize, _to: Option<usize>) -> anyhow::Result<()> {
        let left = world.scene(process)?;
        release(world, process, &left)?;
        let id = world.chance.uuid();
        world.bear(process, id)?;
        // An interface that resumes takes such a lease for a moment, too, and
        // leaves it for that of the session that it resumes.
        let owner = world.process(process)?;
        owner.is_silent = owner.argument.is_some();
        lease(world, process)
    }

    fn leave(&self, world: &mut World, process: usize, _how: Leave) -> anyhow::Result<()> {
        let scene = world.scene(process)?;
        release(world, process, &scene)
    }
}

fn lease(world: &mut World, process: usize) -> anyhow::Result<()> {
    let scene = world.scene(process)?;
    let content = json!({
        "acquired_at": date(scene.now_ms), "lease_version": 1, "process_id": scene.pid, "session_id": scene.id,
    });
    world.write(
        &format!("{LEASES}/{}.lock.json", scene.id),
        &content.to_string(),
    )?;
    let path = world.home.join(format!("{LEASES}/{}.lock", scene.id));
    world
        .process(process)?
        .order(&json!({ "do": "lock", "path": path }))?;
    world.session(scene.session)?.is_on_disk = true;
    Ok(())
}

/// A session in which nothing was said leaves nothing behind but what hooks reported.
fn release(world: &mut World, process: usize, scene: &Scene) -> anyhow::Result<()> {
    let path = format!("{LEASES}/{}.lock", scene.id);
    let held = world.home.join(&path);
    world
        .process(process)?
        .order(&json!({ "do": "close", "path": held }))?;
    world.remove(&path);
    world.remove(&format!("{path}.json"));
    if scene.is_first_prompt {
        world.session(scene.session)?.is_on_disk = false;
    }
    Ok(())
}
