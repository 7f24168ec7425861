//! `doctor` and `end`: what no other command repairs.

use serde_json::{Value, json};

use super::shell_agent::{ShellAgent, file_of, owner_elsewhere, record_of, write_record};
use super::world::{World, copy_program, said};

#[test]
fn a_session_of_another_host_is_stale_until_a_person_ends_it() {
    let world = World::new();
    for (session, boot) in [
        (&world.s1, Value::Null),
        (&world.s2, json!("19c1d8ff-a55f-47c0-82a1-b0f1bc43623a")),
    ] {
        let mut owner = owner_elsewhere();
        owner["boot_id"] = boot;
        write_record(&world, session, &json!({ "owner": owner }));
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
    agent.prompt(&world.s1);
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
        "hooks of claude-code are installed in part: Stop are missing",
    ] {
        assert!(said.out.contains(words), "{words}: {}", said.out);
    }
    let is_what = |line: &&str| !line.starts_with("  fix: ") && !line.starts_with("ok: ");
    let whats = said.out.lines().filter(is_what).count();
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

#[test]
fn fix_installs_missing_hooks_and_changes_nothing_else() {
    let world = World::new();
    world.write(".local/state/whosup/sessions/claude-code/x.json", "{");
    world.write(".claude/settings.json", "{}");
    assert_eq!(world.run(["hooks", "install", "--yes"]).status, 0);
    let settings = world.home().join(".claude/settings.json");
    let whole = std::fs::read_to_string(&settings).unwrap();
    let damaged = whole.replacen("\"Stop\"", "\"Stopped\"", 1);
    std::fs::write(&settings, &damaged).unwrap();

    let said = world.run(["doctor"]);
    let marked: Vec<&str> = said
        .out
        .lines()
        .filter(|line| line.starts_with("* "))
        .collect();
    let expected = ["* hooks of claude-code are installed in part: Stop are missing"];
    assert_eq!(marked, expected, "{}", said.out);
    assert_eq!(std::fs::read_to_string(&settings).unwrap(), damaged);

    let said = world.run(["doctor", "--fix"]);
    assert_eq!(said.out.matches("  fixed\n").count(), 1, "{}", said.out);
    // An invalid record is left to a person.
    assert_eq!(said.status, 1, "{}", said.out);
    let record = world
        .home()
        .join(".local/state/whosup/sessions/claude-code/x.json");
    assert_eq!(std::fs::read_to_string(&record).unwrap(), "{");
    assert!(
        std::fs::read_to_string(&settings)
            .unwrap()
            .contains("\"Stop\"")
    );
    let said = world.run(["doctor"]);
    assert!(!said.out.contains("installed in part"), "{}", said.out);
}

#[test]
fn hooks_that_run_a_missing_or_older_program_are_reported_and_replaced() {
    let world = World::new();
    world.write(".claude/settings.json", "{}\n");
    let elsewhere = world.root().join("opt/bin/whosup");
    std::fs::create_dir_all(elsewhere.parent().unwrap()).unwrap();
    copy_program(crate::world::WHOSUP, &elsewhere);
    let mut install = assert_cmd::Command::new(&elsewhere);
    install
        .args(["hooks", "install", "--yes"])
        .env_clear()
        .env("HOME", world.home())
        .current_dir(world.work_dir());
    assert_eq!(said(&mut install).status, 0);
    let path = elsewhere.display();
    let answer = world.run(["hooks", "status"]);
    let installed = format!("claude-code: installed for {path}, never heard");
    assert!(answer.out.starts_with(&installed), "{}", answer.out);
    // It is equal to this program.
    let answer = world.run(["doctor"]);
    assert!(!answer.out.contains("hooks of"), "{}", answer.out);

    std::fs::remove_file(&elsewhere).unwrap();
    let answer = world.run(["doctor"]);
    let gone = format!("* hooks of claude-code run `{path}`, which is not there\n");
    assert!(answer.out.contains(&gone), "{}", answer.out);

    let older = "#!/bin/sh\necho whosup 0.0.1\n";
    std::fs::write(&elsewhere, older).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&elsewhere, mode).unwrap();
    let answer = world.run(["doctor"]);
    let expected = format!("* hooks of claude-code run `{path}`, which is older: 0.0.1 and not");
    assert!(answer.out.contains(&expected), "{}", answer.out);

    let answer = world.run(["doctor", "--fix"]);
    assert!(answer.out.contains("  fixed\n"), "{}", answer.out);
    let settings = world.home().join(".claude/settings.json");
    let text = std::fs::read_to_string(&settings).unwrap();
    assert!(!text.contains(&path.to_string()), "{text}");
    assert!(world.run(["hooks", "status"]).out.contains(": installed, "));
    assert_eq!(world.run(["hooks", "uninstall", "--yes"]).status, 0);
    assert_eq!(std::fs::read_to_string(&settings).unwrap(), "{}\n");
}

#[test]
fn untrusted_and_silent_hooks_are_reported() {
    let world = World::new();
    world.write(".codex/config.toml", "model = \"gpt-5\"\n");
    world.write(".claude/settings.json", "{}");
    assert_eq!(world.run(["hooks", "install", "--yes"]).status, 0);
    let answer = world.run(["doctor"]);
    let untrusted = "hooks of codex are installed, but have reported nothing since: \
                     they are not trusted in Codex\n";
    assert!(answer.out.contains(untrusted), "{}", answer.out);
    assert!(
        !answer.out.contains("hooks of claude-code"),
        "{}",
        answer.out
    );
    assert!(
        world
            .run(["hooks", "status"])
            .out
            .contains("codex: installed, not trusted")
    );

    // Claude Code is used long after its hooks were installed.
    let note = world.home().join(".local/state/whosup/hooks");
    let note = std::fs::read_dir(note)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    for note in note {
        let file = std::fs::File::options().write(true).open(note).unwrap();
        let day = std::time::Duration::from_secs(24 * 60 * 60);
        file.set_modified(std::time::SystemTime::now() - day)
            .unwrap();
    }
    let agent = world.pose_as_claude();
    world.write_claude_record(agent.pid(), &agent.start(), &world.s1);
    let answer = world.run(["doctor"]);
    let silent = "hooks of claude-code are installed, but have reported nothing since\n";
    assert!(answer.out.contains(silent), "{}", answer.out);
}

#[test]
fn a_session_that_works_and_makes_no_progress_is_stalled() {
    let world = World::new();
    let agent = ShellAgent::start(&world);
    let host = world.run(["list", "--json"]).json()["host"].clone();
    let owner = json!({
        "pid": agent.pid(), "start_stamp": agent.start_stamp(), "start_stamp_kind": "linux-ticks",
        "hostname": host["hostname"], "boot_id": host["boot_id"],
        "pid_namespace": host["pid_namespace"],
    });
    write_record(&world, &world.s1, &json!({ "owner": owner }));
    let answer = world.run(["doctor"]);
    let expected = format!("claude-code session {} is stalled", world.s1);
    assert!(
        answer.out.contains(&expected),
        "{}{}",
        answer.out,
        answer.err
    );
    assert_eq!(answer.status, 1);
}

#[test]
fn two_live_owners_are_reported() {
    let world = World::new();
    let (one, two) = (world.pose_as_claude(), world.pose_as_claude());
    for agent in [&one, &two] {
        world.write_claude_record(agent.pid(), &agent.start(), &world.s1);
    }
    let answer = world.run(["doctor"]);
    let expected = format!(
        "claude-code session {} is claimed by several live processes",
        world.s1
    );
    assert!(answer.out.contains(&expected), "{}", answer.out);
}

#[test]
fn records_of_tomorrow_are_reported() {
    let world = World::new();
    let later = json!({ "phase": "idle", "last_event_at": "2100-01-01T00:00:00.000Z" });
    write_record(&world, &world.s1, &later);
    let answer = world.run(["doctor"]);
    let expected = "1 session record is dated later than now";
    assert!(answer.out.contains(expected), "{}", answer.out);
}
