//! How long records are kept, and when unknown sessions are ended.

use serde_json::{Value, json};
use whosup_core::views::wire::timestamp;

use super::shell_agent::{ShellAgent, file_of, record_of, write_record};
use super::world::{World, now_ms};

const HOUR_MS: i64 = 3_600_000;

fn ago(hours: i64) -> Value {
    let now_ms = i64::try_from(now_ms()).unwrap();
    json!(timestamp(now_ms - hours * HOUR_MS).unwrap())
}

/// Writes a record of an idle session, with these fields.
fn write(world: &World, session: &str, fields: Value) {
    let mut record = json!({ "phase": "idle", "last_event_at": ago(1), "work_dir": "/nowhere" });
    let fields = fields.as_object().unwrap().clone();
    record.as_object_mut().unwrap().extend(fields);
    write_record(world, session, &record);
}

fn owner(host: &str, pid: u32) -> Value {
    json!({
        "pid": pid,
        "start_stamp": "4711",
        "start_stamp_kind": "linux-ticks",
        "hostname": host,
        "boot_id": "19c1d8ff-a55f-47c0-82a1-b0f1bc43623a",
        "pid_namespace": 4_026_531_999_u64,
        "executable": "/opt/claude",
        "shared": false,
    })
}

#[test]
fn ended_records_are_kept_for_as_long_as_the_configuration_says() {
    let world = World::new();
    let ended =
        |hours| json!({"phase": "ended", "last_event_at": ago(hours), "ended_at": ago(hours)});
    write(&world, "month", ended(31 * 24));
    write(&world, "days", ended(3 * 24));
    write(&world, "open", json!({"last_event_at": ago(90 * 24)}));
    let is_there = |session: &str| {
        let put_away = format!(".local/state/whosup/ended/claude-code/{session}.json");
        file_of(&world, session, "json").exists() || world.home().join(put_away).exists()
    };

    world.run(["sweep"]);
    assert!(!is_there("month") && is_there("days") && is_there("open"));

    world.write(".config/whosup/config.toml", "keep_ended = \"2d\"\n");
    let said = world.run(["status"]);
    assert_eq!(said.status, 0, "{}", said.err);
    assert!(!is_there("days") && is_there("open"));
    let left = std::fs::read_dir(file_of(&world, "open", "json").parent().unwrap()).unwrap();
    let left: Vec<_> = left.map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left, ["open.json"]);
}

#[test]
fn locks_of_which_no_session_is_left_go_with_the_records_of_their_time() {
    let world = World::new();
    let lock = |name: &str, text: &str, hours: u64| {
        let path = format!(".local/state/whosup/sessions/claude-code/{name}");
        let path = world.write(&path, text);
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        let age = std::time::Duration::from_secs(hours * 60 * 60);
        file.set_modified(std::time::SystemTime::now() - age)
            .unwrap();
        path
    };
    let old = lock("old.lock", "", 31 * 24);
    let young = lock("young.lock", "", 24);
    let not_ours = lock("text.lock", "a text", 31 * 24);
    let odd = lock("...lock", "", 31 * 24);
    let with_log = lock("open.lock", "", 90 * 24);
    write(&world, "open", json!({"last_event_at": ago(90 * 24)}));
    let elsewhere = world.write(".claude/ide/4711.lock", "");
    // Killed before anything was written, with or without the lock.
    let empty = lock("empty.jsonl", "", 31 * 24);
    let both = [
        lock("both.lock", "", 31 * 24),
        lock("both.jsonl", "", 31 * 24),
    ];
    // A process has just begun with it.
    let begun = [lock("begun.lock", "", 31 * 24), lock("begun.jsonl", "", 1)];

    assert_eq!(world.run(["sweep", "--dry-run"]).status, 0);
    assert!(old.exists());
    let said = world.run(["sweep"]);
    assert_eq!((said.status, said.err.as_str()), (0, ""), "{}", said.out);
    for gone in [&old, &empty, &both[0], &both[1]] {
        assert!(!gone.exists(), "{}", gone.display());
    }
    let others = [&young, &not_ours, &odd, &with_log, &elsewhere];
    for kept in others.into_iter().chain(&begun) {
        assert!(kept.exists(), "{}", kept.display());
    }
}

#[test]
fn an_interrupted_removal_is_finished_by_the_next_sweep() {
    let world = World::new();
    let mut agent = ShellAgent::start(&world);
    agent.prompt(&world.s1);
    // It was killed after it had moved the log away, and before it saw that this session is open
    // again.
    // session goes on.
    let log = file_of(&world, &world.s1, "jsonl");
    std::fs::rename(&log, file_of(&world, &world.s1, "old")).unwrap();
    std::fs::remove_file(file_of(&world, &world.s1, "json")).unwrap();
    agent.report(&world.s1, "Stop", json!({}));
    let record = record_of(&world, &world.s1);
    assert_eq!(
        (&record["phase"], &record["turns"]),
        (&json!("working"), &json!(1))
    );
    assert!(!file_of(&world, &world.s1, "old").exists());
}

#[test]
fn silence_ends_unknown_sessions_only_if_configured() {
    let world = World::new();
    let mut live = ShellAgent::start(&world);
    live.report(&world.s1, "Stop", json!({}));
    write(
        &world,
        "elsewhere",
        json!({"owner": owner("elsewhere", 7), "last_event_at": ago(30)}),
    );
    write(&world, "unowned", json!({"last_event_at": ago(30)}));
    write(&world, "younger", json!({"last_event_at": ago(3)}));
    let phase = |session: &str| record_of(&world, session)["phase"].clone();

    assert_eq!(world.run(["sweep"]).out, "nothing to end\n");
    world.write(".config/whosup/config.toml", "end_unknown_after = \"1d\"\n");
    // The live agent works in the directory of these two.
    let said = world.run(["sweep"]);
    for session in ["elsewhere", "unowned"] {
        let record = record_of(&world, session);
        assert_eq!(
            record["phase"], "ended",
            "{session}: {}{}",
            said.out, said.err
        );
        assert_eq!(record["end_cause"], "unknown");
        assert_eq!(record["ended_at"], record["last_event_at"]);
    }
    assert_eq!(
        (phase("younger"), phase(&world.s1)),
        (json!("idle"), json!("idle"))
    );
    assert_eq!(world.run(["sweep"]).out, "nothing to end\n");
}

#[test]
fn a_silent_session_that_an_unclaimed_process_may_serve_goes_on() {
    let world = World::new();
    let _posing = world.pose_as_claude();
    let silent = json!({
        "owner": owner("elsewhere", 7),
        "last_event_at": ago(30),
        "work_dir": world.work_dir(),
    });
    write(&world, &world.s1, silent);
    world.write(".config/whosup/config.toml", "end_unknown_after = \"1d\"\n");
    let said = world.run(["sweep"]);
    let expected = format!(
        "left claude-code session {} as it is: it is unknown (may-be-served-by)",
        world.s1
    );
    assert!(said.out.contains(&expected), "{}{}", said.out, said.err);
    assert_eq!(record_of(&world, &world.s1)["phase"], "idle");
    let said = world.run(["dismiss", &world.s1]);
    assert_eq!(said.status, 3, "{}{}", said.out, said.err);
    assert_eq!(
        world.run(["list", "--json", "--cwd", "."]).sessions().len(),
        1
    );
}

#[test]
fn a_host_that_is_forgotten_ends_with_what_ran_on_it_and_nothing_else() {
    let world = World::new();
    let mut live = ShellAgent::start(&world);
    live.report(&world.s1, "Stop", json!({}));
    write(&world, "there", json!({"owner": owner("3f2a9c0d1e4b", 7)}));
    write(&world, "beyond", json!({"owner": owner("other", 7)}));
    write(&world, "unowned", json!({}));
    // It ran there, and was resumed here.
    let mut moved = owner("3f2a9c0d1e4b", 8);
    write(&world, &world.s2, json!({"owner": moved.take()}));
    let posing = world.pose_as_claude();
    world.write_claude_record(posing.pid(), &posing.start(), &world.s2);

    let said = world.run(["sweep", "--forget-host", "3F2A9C0D1E4B.local", "--dry-run"]);
    assert!(
        said.out
            .starts_with("would end claude-code session there (by-hand)"),
        "{}",
        said.out
    );
    let said = world.run(["sweep", "--forget-host", "3f2a9c0d1e4b"]);
    let expected = format!("left claude-code session {} as it is: it is live", world.s2);
    assert!(said.out.contains(&expected), "{}{}", said.out, said.err);
    let record = record_of(&world, "there");
    assert_eq!(
        (&record["phase"], &record["end_cause"], &record["ended_at"]),
        (&json!("ended"), &json!("by-hand"), &record["last_event_at"])
    );
    for session in ["beyond", "unowned", &world.s1, &world.s2] {
        assert_eq!(record_of(&world, session)["phase"], "idle", "{session}");
    }
}

#[test]
fn this_host_is_not_forgotten() {
    let world = World::new();
    let host = world.run(["list", "--json"]).json()["host"]["hostname"].clone();
    let said = world.run(["sweep", "--forget-host", host.as_str().unwrap()]);
    assert_eq!(said.status, 2);
    assert!(said.err.contains("cannot forget"), "{}", said.err);
    assert!(said.err.contains("whosup end"), "{}", said.err);
}

#[test]
fn an_ended_session_is_put_away_and_comes_back_with_all_that_was_known() {
    let world = World::new();
    let mut agent = ShellAgent::start(&world);
    let host = world.run(["list", "--json"]).json()["host"].clone();
    let owner = json!({
        "pid": agent.pid(), "start_stamp": agent.start_stamp(), "start_stamp_kind": "linux-ticks",
        "hostname": host["hostname"], "boot_id": host["boot_id"],
        "pid_namespace": host["pid_namespace"],
    });
    let fields = json!({
        "phase": "ended", "last_event_at": ago(26), "ended_at": ago(26), "owner": owner,
        "end_cause": "exit-hook", "end_passed_on": true, "end_event": "e1", "turns": 7,
    });
    let open = write_record(&world, &world.s1, &fields);
    let said = world.run(["sweep"]);
    assert_eq!(said.out, "nothing to end\n", "{}", said.err);
    let name = format!(".local/state/whosup/ended/claude-code/{}.json", world.s1);
    let put_away = world.home().join(name);
    assert!(put_away.exists(), "{}", said.err);
    for extension in ["json", "jsonl", "lock"] {
        assert!(!open.with_extension(extension).exists(), "{extension}");
    }
    // It is found all the same, and a second sweep changes nothing.
    let before = std::fs::read(&put_away).unwrap();
    world.run(["sweep"]);
    assert_eq!(std::fs::read(&put_away).unwrap(), before);
    assert_ne!(world.run(["check", world.s1.as_str()]).status, 4);
    let all = world.run(["list", "--all", "--json"]).sessions();
    assert!(
        all.iter().any(|its| its["session_id"] == world.s1),
        "{all:?}"
    );
    // A late event does not reopen it; an event that starts work does.
    agent.report(&world.s1, "Stop", json!({}));
    assert_eq!(record_of(&world, &world.s1)["turns"], 7);
    agent.prompt(&world.s1);
    let record = record_of(&world, &world.s1);
    assert_eq!(
        (&record["phase"], &record["turns"]),
        (&json!("working"), &json!(8))
    );
    assert!(!put_away.exists());
    assert_eq!(world.run(["check", world.s1.as_str()]).status, 0);
}
