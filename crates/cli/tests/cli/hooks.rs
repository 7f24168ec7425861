//! What hooks record.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use super::shell_agent::{ShellAgent, event, file_of, record_of};
use super::world::{WHOSUP, World};

#[test]
fn a_hook_names_its_agent_as_the_owner_through_shells_and_wrappers() {
    let world = World::new();
    let mut agent = ShellAgent::start(&world);
    let payload = agent.payload(&event(
        &world,
        &world.s1,
        "SessionStart",
        json!({"source": "startup"}),
    ));
    let line = format!(
        "sh -c \"sh -c 'timeout 30 env A=b {WHOSUP} hook claude-code < {}; true'; true\"",
        payload.display()
    );
    assert_eq!(agent.run(&line), ("0".to_owned(), String::new()));
    let record = record_of(&world, &world.s1);
    assert_eq!(record["owner"]["pid"], agent.pid());
    assert_eq!(record["owner"]["start_stamp"], agent.start_stamp());
    for field in [
        "hostname",
        "boot_id",
        "pid_namespace",
        "start_stamp_kind",
        "executable",
    ] {
        assert!(!record["owner"][field].is_null(), "{field}: {record}");
    }
    assert_eq!(record["phase"], "starting");
    assert_eq!(
        record["home"],
        world.home().join(".claude").to_str().unwrap()
    );
    for (extension, mode) in [("json", 0o600), ("jsonl", 0o600), ("lock", 0o600)] {
        let file = std::fs::metadata(file_of(&world, &world.s1, extension)).unwrap();
        assert_eq!(file.permissions().mode() & 0o777, mode, "{extension}");
    }
    let directory = file_of(&world, &world.s1, "json");
    let directory = std::fs::metadata(directory.parent().unwrap()).unwrap();
    assert_eq!(directory.permissions().mode() & 0o777, 0o700);
}

#[test]
fn a_session_is_followed_through_its_turns_to_its_end() {
    let world = World::new();
    let mut agent = ShellAgent::start(&world);
    world.write("src/shop/.git/HEAD", "ref: refs/heads/topic/login\n");
    let steps = [
        ("SessionStart", json!({"source": "startup"}), "starting"),
        (
            "UserPromptSubmit",
            json!({"prompt": "Fix the flaky login test"}),
            "working",
        ),
        ("PreToolUse", json!({"tool_name": "Bash"}), "working"),
        ("PermissionRequest", json!({"tool_name": "Bash"}), "waiting"),
        (
            "Notification",
            json!({"notification_type": "permission_prompt"}),
            "waiting",
        ),
        ("PostToolUse", json!({"tool_name": "Bash"}), "working"),
        ("Stop", json!({}), "idle"),
        (
            "Notification",
            json!({"notification_type": "idle_prompt"}),
            "idle",
        ),
    ];
    for (name, more, phase) in steps {
        agent.report(&world.s1, name, more);
        let record = record_of(&world, &world.s1);
        assert_eq!(record["phase"], phase, "after {name}");
        let is_waiting = phase == "waiting";
        assert_eq!(
            record["waiting_for"] == "permission",
            is_waiting,
            "after {name}"
        );
    }
    let record = record_of(&world, &world.s1);
    assert_eq!(
        (&record["turns"], &record["git_branch"]),
        (&json!(1), &json!("topic/login"))
    );
    assert_eq!(record["last_prompt"], "Fix the flaky login test");
    let sessions = world.run(["list", "--json", "--cwd", "."]).sessions();
    let [session] = sessions.as_slice() else {
        panic!("{sessions:?}");
    };
    assert_eq!(
        (&session["liveness"], &session["confidence"]),
        (&json!("live"), &json!("proven"))
    );
    assert_eq!(
        (&session["phase"], &session["owner"]["pid"]),
        (&json!("idle"), &json!(agent.pid()))
    );

    // `/clear`: one session ends, another starts in the same process.
    agent.report(&world.s1, "SessionEnd", json!({"reason": "clear"}));
    agent.report(&world.s2, "SessionStart", json!({"source": "clear"}));
    // The end is reported twice, and another event comes late.
    agent.report(&world.s1, "SessionEnd", json!({"reason": "other"}));
    agent.report(&world.s1, "Stop", json!({}));
    let record = record_of(&world, &world.s1);
    assert_eq!(
        (&record["phase"], &record["end_reason"]),
        (&json!("ended"), &json!("clear"))
    );
    assert_eq!(record["end_cause"], "exit-hook");
    assert_eq!(record_of(&world, &world.s2)["phase"], "starting");
    let sessions = world.run(["list", "--json", "--cwd", "."]).sessions();
    assert_eq!(sessions[0]["session_id"], world.s2, "{sessions:?}");
}

#[test]
fn the_end_of_an_earlier_process_does_not_end_the_session_of_a_later_one() {
    let world = World::new();
    let mut first = ShellAgent::start(&world);
    first.report(&world.s1, "SessionStart", json!({"source": "startup"}));
    let mut second = ShellAgent::start(&world);
    second.report(&world.s1, "SessionStart", json!({"source": "resume"}));
    first.report(&world.s1, "SessionEnd", json!({"reason": "other"}));
    let record = record_of(&world, &world.s1);
    assert_eq!(record["phase"], "idle");
    assert_eq!(record["owner"]["pid"], second.pid());
}

#[test]
fn a_hook_of_another_agent_has_no_owner_and_clears_the_old_owner() {
    let world = World::new();
    let mut agent = ShellAgent::start(&world);
    let start = event(
        &world,
        &world.s1,
        "SessionStart",
        json!({"source": "startup"}),
    );
    let payload = agent.payload(&start);
    let line = format!("'{WHOSUP}' hook qwen-code < '{}'", payload.display());
    assert_eq!(agent.run(&line), ("0".to_owned(), String::new()));
    let record = file_of(&world, &world.s1, "json");
    let record = record
        .to_str()
        .unwrap()
        .replace("/claude-code/", "/qwen-code/");
    let record: serde_json::Value =
        serde_json::from_slice(&std::fs::read(record).unwrap()).unwrap();
    assert!(record["owner"].is_null(), "{record}");
}

#[test]
fn a_daemon_that_runs_many_sessions_is_marked_shared_and_proves_no_life() {
    let world = World::new();
    let mut daemon = ShellAgent::start_codex_daemon(&world);
    let hook_event = event(
        &world,
        &world.s1,
        "UserPromptSubmit",
        json!({"prompt": "p"}),
    );
    let payload = daemon.payload(&hook_event);
    // It has the variables of the pane in which it was once started.
    let line = format!(
        "TMUX=/run/tmux,1,0 TMUX_PANE=%3 '{WHOSUP}' hook codex < '{}'",
        payload.display()
    );
    assert_eq!(daemon.run(&line), ("0".to_owned(), String::new()));
    let path = format!(".local/state/whosup/sessions/codex/{}.json", world.s1);
    let path = world.home().join(path);
    let record =
        || -> serde_json::Value { serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap() };
    assert_eq!(record()["owner"]["pid"], daemon.pid());
    assert_eq!(record()["owner"]["shared"], true);
    assert!(record()["pane"].is_null(), "{}", record());
    // It may have released the session long ago; only the session's lock would show that.
    let id = format!("codex:{}", world.s1);
    let said = world.run(["check", id.as_str()]);
    assert_ne!(said.status, 0, "{}{}", said.out, said.err);
    assert_eq!(world.run(["sweep"]).out, "nothing to end\n");
    daemon.kill();
    let said = world.run(["sweep"]);
    assert!(said.out.starts_with("ended codex session"), "{}", said.out);
    // By then it may have released it, too: nothing shows that it died in the session.
    assert_eq!(record()["end_cause"], "left");
    let orphans = world.run(["orphans", "--json"]).out;
    assert!(!orphans.contains(&world.s1), "{orphans}");
}

#[test]
fn the_id_of_the_transcript_that_is_written_wins() {
    let world = World::new();
    let mut agent = ShellAgent::start(&world);
    let transcript = world.write_claude_transcript(".claude", &world.s1);
    let start = json!({"source": "startup", "transcript_path": transcript});
    agent.report(&world.s2, "SessionStart", start);
    assert_eq!(record_of(&world, &world.s1)["owner"]["pid"], agent.pid());
    assert!(!file_of(&world, &world.s2, "json").exists());
}

#[test]
fn prompts_are_kept_out_when_the_configuration_says_so() {
    let world = World::new();
    world.write(".config/whosup/config.toml", "prompts = \"hide\"\n");
    let mut agent = ShellAgent::start(&world);
    let prompt = json!({"prompt": "a secret of mine"});
    agent.report(&world.s1, "UserPromptSubmit", prompt.clone());
    // A configuration that can't be understood may hide prompts too.
    world.write(".config/whosup/config.toml", "prompts = hide\n");
    agent.report(&world.s1, "UserPromptSubmit", prompt);
    for extension in ["json", "jsonl"] {
        let text = std::fs::read_to_string(file_of(&world, &world.s1, extension)).unwrap();
        assert!(!text.contains("secret"), "{text}");
    }
    assert_eq!(record_of(&world, &world.s1)["phase"], "working");
}
