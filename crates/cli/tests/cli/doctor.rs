//! `doctor` and `end`: what nobody else puts right.

use serde_json::{Value, json};

use super::shell_agent::{ShellAgent, event, file_of, record_of};
use super::world::World;

#[test]
fn a_session_of_another_host_is_stale_until_a_person_ends_it() {
    let world = World::new();
    let record = |session: &str, boot: Value| {
        json!({
        "schema_version": 1,
        "agent": "claude-code",
        "session_id": session,
        "home": world.home().join(".claude"),
        "owner": {
            "pid": 4711, "start_stamp": "1", "start_stamp_kind": "linux-ticks",
            "hostname": "elsewhere", "boot_id": boot, "pid_namespace": 4_026_531_836_u64,
        },
        "phase": "working",
        "last_event_at": "2026-01-01T00:00:00.000Z",
        })
    };
    for (session, boot) in [
        (&world.s1, Value::Null),
        (&world.s2, json!("19c1d8ff-a55f-47c0-82a1-b0f1bc43623a")),
    ] {
        let name = format!(".local/state/whosup/sessions/claude-code/{session}.json");
        world.write(&name, record(session, boot).to_string());
    }
    let said = world.run(["doctor"]);
    let line = format!(
        "claude-code session {} is stale: unknown (other-host)",
        world.s1
    );
    assert!(said.out.contains(&line), "{}{}", said.out, said.err);
    assert!(
        said.out
            .contains(&format!("whosup end claude-code:{}", world.s1)),
        "{}",
        said.out
    );
    assert_eq!(said.status, 1);

    let said = world.run(["end", world.s1.as_str()]);
    assert_eq!(said.status, 0, "{}", said.err);
    let record = record_of(&world, &world.s1);
    assert_eq!(
        (&record["phase"], &record["end_cause"]),
        (&json!("ended"), &json!("by-hand"))
    );
    assert_eq!(record["ended_at"], "2026-01-01T00:00:00.000Z");
    let said = world.run(["doctor"]);
    assert!(!said.out.contains(&world.s1), "{}", said.out);
}

#[test]
fn a_live_session_is_not_ended_by_hand() {
    let world = World::new();
    let mut agent = ShellAgent::start(&world);
    agent.hook(&event(
        &world,
        &world.s1,
        "UserPromptSubmit",
        json!({"prompt": "p"}),
    ));
    let said = world.run(["end", world.s1.as_str()]);
    assert_eq!(said.status, 2, "{}", said.out);
    assert!(said.err.contains("it is live"), "{}", said.err);
    assert_eq!(record_of(&world, &world.s1)["phase"], "working");
}

#[test]
fn a_session_without_a_record_can_not_be_ended() {
    let world = World::new();
    world.write_claude_transcript(".claude", &world.s1);
    let said = world.run(["end", world.s1.as_str()]);
    assert_eq!(said.status, 2, "{}", said.out);
    assert!(said.err.contains("there is no record"), "{}", said.err);
    assert!(!file_of(&world, &world.s1, "json").exists());
}

#[test]
fn doctor_names_what_is_broken_with_what_to_do() {
    let world = World::new();
    world.write(".local/state/whosup/sessions/claude-code/x.json", "{");
    world.write(".claude/settings.json", "{}");
    assert_eq!(world.run(["hooks", "install", "--yes"]).status, 0);
    let settings = world.home().join(".claude/settings.json");
    let text = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(&settings, text.replacen("\"Stop\"", "\"Stopped\"", 1)).unwrap();
    let said = world.run(["doctor"]);
    assert_eq!(said.status, 1, "{}", said.err);
    for words in [
        "x.json",
        "hooks of claude-code are set in part: Stop are missing",
    ] {
        assert!(said.out.contains(words), "{words}: {}", said.out);
    }
    let whats = said
        .out
        .lines()
        .filter(|line| !line.starts_with("  fix: "))
        .count();
    let fixes = said
        .out
        .lines()
        .filter(|line| line.starts_with("  fix: "))
        .count();
    assert_eq!(whats, fixes, "{}", said.out);
    assert!(
        said.out.contains("  fix: whosup hooks install claude-code"),
        "{}",
        said.out
    );
}
