//! `whosup show`, `why`, `check` and `pid`

use jiff::Timestamp;
use serde_json::{Value, json};
use whosup_core::process::{Access, FileId, LockKind, RecordedProcess};
use whosup_core::sidecar::file::{Links, facts};

use super::world::{S1, S2, S3, S4, S5, World, now_ms};

/// A live session, a crashed session, a session of another machine, and an abandoned session.
fn world() -> World {
    let mut world = World::new();
    let status = json!({ "status": "waiting", "waitingFor": "permission prompt" });
    world.add_claude(4711, S1, "src/shop", 3, &status);
    world.write_claude_transcript(S1, "src/shop", "Fix the flaky login test", 3);
    world.write_claude_sub_agent(S1, "src/shop", "a4a0da5550e2d1dd1");
    world.write_claude_record(4712, S2, "src/shop", 90, &json!({}));
    world.write_claude_transcript(S2, "src/shop", "Write the changelog", 90);
    let other = json!({ "procStart": "Fri Nov 27 20:52:50 2026" });
    world.write_claude_record(4713, S3, "src/api", 30, &other);
    world.write_claude_transcript(S4, "src/api", "Long gone", 20_000);
    world
}

#[test]
fn show_lists_all_that_is_known_of_a_session() {
    let world = world();
    for (name, id) in [
        ("live", S1),
        ("orphan", S2),
        ("unknown", S3),
        ("exited", S4),
    ] {
        let said = world.run(&format!("show {id} --tail 2"));
        insta::assert_snapshot!(format!("show_{name}"), said.text());
    }
}

#[test]
fn show_json_is_a_snapshot_of_this_session_with_its_messages() {
    let world = world();
    let answer = world.run(&format!("show {S1} --json")).json();
    assert_eq!(answer["schema_version"], 1);
    assert_eq!(answer["sessions"].as_array().unwrap().len(), 1);
    assert_eq!(answer["sessions"][0]["session_id"], S1);
    assert_eq!(answer.get("messages"), None);
    let answer = world.run(&format!("show {S1} --json --tail 1")).json();
    assert_eq!(answer["messages"].as_array().unwrap().len(), 1);
    assert_eq!(answer["messages"][0]["role"], "assistant");
    assert_eq!(answer["messages"][0]["text"], "Done.\n\tAll tests pass.");
}

#[test]
fn why_gives_the_evidence_in_sentences() {
    let world = world();
    for (name, id) in [
        ("live", S1),
        ("orphan", S2),
        ("unknown", S3),
        ("exited", S4),
    ] {
        let said = world.run(&format!("why {id}"));
        insta::assert_snapshot!(format!("why_{name}"), said.text());
    }
    let answer = world.run(&format!("why {S2} --json")).json();
    assert_eq!(answer["sessions"][0]["session_id"], S2);
    assert!(answer["explanation"].as_array().unwrap().len() > 1);
}

#[test]
fn check_and_pid_answer_by_their_exit_status() {
    let world = world();
    for (id, check, pid, printed) in [
        (S1, 0, 0, "4711\n"),
        (S2, 1, 1, ""),
        (S3, 3, 3, ""),
        (S4, 1, 1, ""),
        ("ffff", 4, 4, ""),
        ("a/b", 2, 2, ""),
        ("kimi-cli:0a02", 4, 4, ""),
        ("claude-code:0a02", 0, 0, "4711\n"),
    ] {
        let said = world.run(&format!("check {id}"));
        assert_eq!(said.status, check, "check {id}: {}", said.text());
        let said = world.run(&format!("check --quiet {id}"));
        assert_eq!((said.status, said.out.as_str()), (check, ""), "{id}");
        if check != 2 {
            assert_eq!(said.err, "", "{id}");
        }
        let said = world.run(&format!("pid {id}"));
        assert_eq!(
            (said.status, said.out.as_str()),
            (pid, printed),
            "pid {id}: {}",
            said.text()
        );
    }
}

#[test]
fn a_live_session_whose_process_is_not_known_is_live_and_has_no_pid() {
    // A sub-agent lives in its parent's process or in an unknown one: no process of its
    // own is reported.
    let world = world();
    let id = "a4a0da5550e2d1dd1";
    let shown = world.run(&format!("show {id} --json")).json();
    assert_eq!(shown["sessions"][0]["liveness"], "live");
    let is_known = !shown["sessions"][0]["owner"].is_null();
    assert_eq!(world.run(&format!("check {id}")).status, 0);
    let said = world.run(&format!("pid {id}"));
    assert_eq!(said.status, if is_known { 0 } else { 3 }, "{}", said.text());
}

#[test]
fn two_live_processes_of_one_session_are_reported() {
    let mut world = world();
    world.add_claude(4714, S1, "src/shop", 1, &json!({}));
    let said = world.run(&format!("pid {S1}"));
    assert_eq!(said.status, 0);
    assert!(
        said.err.contains("other live processes claim it"),
        "{}",
        said.text()
    );
    let table = world.run("list --columns full-id,pid");
    assert!(table.out.contains(" +1"), "{}", table.text());
}

#[test]
fn an_ambiguous_id_lists_the_candidates() {
    let mut world = world();
    world.add_claude(4714, S4, "src/api", 1, &json!({ "status": "busy" }));
    for command in ["why", "show", "check", "check --quiet", "pid"] {
        assert_eq!(world.run(&format!("{command} 6")).status, 2, "{command}");
    }
    insta::assert_snapshot!(world.run("why 6").text());
    assert_eq!(world.run("check 63").status, 3);
}

#[test]
fn a_missing_id_differs_from_an_id_that_could_not_be_looked_for() {
    let world = world();
    let said = world.run("show ffff");
    insta::assert_snapshot!(said.text());
    // An unreadable file hides no session...
    world.write(".claude/sessions/9.json", "");
    assert_eq!(world.run("show ffff").status, 4);
}

#[test]
fn one_id_in_two_homes_is_distinguished_by_home() {
    let world = world();
    let (from, to) = (world.path(".claude/projects"), world.path("other/projects"));
    copy(&from, &to);
    world.write(
        ".config/whosup/config.toml",
        "[homes]\nclaude-code = [\"~/other\"]\n",
    );
    let said = world.run(&format!("check {S4}"));
    assert_eq!(said.status, 2, "{}", said.text());
    assert!(said.err.contains("in ~/other"), "{}", said.text());
    let said = world.run(&format!("show {S4} --home @HOME@/other --json"));
    assert_eq!(said.json()["sessions"][0]["home"], "@HOME@/other");
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn a_missing_directory_is_reported_wherever_it_is_needed() {
    let world = world();
    let gone = |said: &str| said.contains("no longer there");
    for command in ["show", "resume --print"] {
        let said = world.run(&format!("{command} {S2}"));
        assert!(!gone(&said.text()), "{}", said.text());
    }
    assert!(!gone(&world.run("orphans").out));
    std::fs::remove_dir_all(world.path("src/shop")).unwrap();
    let shown = world.run(&format!("show {S2}"));
    assert!(
        shown.out.contains("src/shop (no longer there)"),
        "{}",
        shown.out
    );
    let printed = world.run(&format!("resume --print {S2}"));
    assert_eq!(printed.status, 0);
    assert!(
        gone(&printed.err) && !gone(&printed.out),
        "{}",
        printed.text()
    );
    assert!(gone(&world.run("orphans").out));
    // A file in the directory's place is no directory.
    world.write("src/shop", "");
    assert!(gone(&world.run(&format!("show {S2}")).out));
}

/// Vibe takes the lease of a new session before it releases that of the old session.
#[test]
fn a_session_that_its_process_has_left_and_still_holds_is_not_resumed() {
    let ids = [
        "3f9ec43d-9381-cd61-ec0d-176b7c0df906",
        "5f8b70ac-b969-8a2b-33bb-add1b4cdc68e",
    ];
    let mut world = World::new();
    let program = "/opt/vibe/lib/python3.13/site-packages/vibe/_bin/vibe-rs";
    let began_at_ms = now_ms() - 60_000;
    let interface = RecordedProcess::new(700, 7_000, began_at_ms)
        .comm("vibe-rs")
        .argv(&[program])
        .exe(program)
        .cwd(world.work_dir("src/shop"))
        .tty(136, 1);
    let mut server = RecordedProcess::new(701, 7_001, began_at_ms)
        .ppid(700)
        .comm("vibe-app-server")
        .title("vibe-app-server")
        .exe("/usr/bin/python3.13")
        .cwd(world.work_dir("src/shop"))
        .tty(136, 1);
    for (acquired_at_ms, id) in (began_at_ms + 5_000..).zip(ids) {
        let lock = format!(".vibe/logs/session/active/{id}.lock");
        world.write(&lock, "");
        let at = Timestamp::from_millisecond(acquired_at_ms).unwrap();
        let lease = format!(
            r#"{{"acquired_at":"{at:.3}","lease_version":1,"process_id":701,"session_id":"{id}"}}"#
        );
        world.write(&format!("{lock}.json"), lease);
        let meta = format!(
            r#"{{"session_id":"{id}","environment":{{"working_directory":"/w"}},"title":"one"}}"#
        );
        world.write(&format!(".vibe/logs/session/unified/{id}/meta.json"), meta);
        let path = world.path(&lock);
        let facts = facts(&path, Links::Refuse).unwrap();
        let file = FileId {
            device: facts.device,
            inode: facts.inode,
        };
        server = server.holds_at(
            &path,
            file,
            Access::ReadWrite,
            vec![LockKind::Flock { is_exclusive: true }],
        );
    }
    world.add_process(interface);
    world.add_process(server);
    let said = world.run(&format!("resume --print {}", ids[0]));
    assert_eq!(said.status, 3, "{}", said.text());
    assert!(
        said.err
            .contains("process 701 has left it and still holds it"),
        "{}",
        said.err
    );
    let shown = world.run(&format!("show --json {}", ids[0])).json();
    assert_eq!(shown["sessions"][0]["reason"], "superseded", "{shown}");
    assert!(shown["sessions"][0]["resume"].is_null(), "{shown}");
    let forced = world.run(&format!("resume --print --force {}", ids[0]));
    assert_eq!(forced.status, 0, "{}", forced.text());
}

#[test]
fn a_home_may_be_relative_and_is_named_if_nothing_is_there() {
    let world = world();
    // From here to the root, and down again.
    let here = std::env::current_dir().unwrap();
    let up = "../".repeat(here.components().count() - 1);
    for command in ["check", "why", "show", "pid"] {
        let line = format!("{command} {S1} --home {up}.@HOME@/.claude");
        assert_eq!(world.run(&line).status, 0, "{command}");
    }
    let said = world.run(&format!("check {S1} --home @HOME@/nowhere"));
    assert_eq!(said.status, 4, "{}", said.text());
    for named in ["the home `@HOME@/nowhere`", "`whosup agents`"] {
        assert!(said.err.contains(named), "{}", said.err);
    }
}

#[test]
fn a_session_whose_file_names_no_command_is_not_called_empty() {
    let world = World::new();
    world.write("t.jsonl", "{\"role\":\"user\",\"text\":\"hello\"}\n");
    for resume in [json!(null), json!([])] {
        let sidecar = json!({
            "schema_version": 1, "pid": 4999, "session_id": "s-1", "hostname": "devbox",
            "work_dir": world.work_dir("src/ops"), "started_at": now_ms() / 1_000 - 60,
            "transcript": world.path("t.jsonl"), "resume": resume,
        });
        let place = ".local/state/agent-sessions/my-agent/s-1.runtime.json";
        world.write(place, sidecar.to_string());
        let said = world.run("resume --print --force s-1");
        assert_eq!(said.status, 2, "{}", said.text());
        let why = "no command is known that does it";
        assert!(said.err.contains(why), "{}", said.err);
    }
}

#[test]
fn what_is_offered_to_continue_a_session_does_that() {
    let world = World::new();
    let write = |resume: &Value, host: &str| {
        let sidecar = json!({
            "schema_version": 1, "pid": 4999, "session_id": "s-1", "hostname": host,
            "work_dir": world.work_dir("src/ops"), "started_at": now_ms() / 1_000 - 60,
            "resume": resume,
        });
        let place = ".local/state/agent-sessions/my-agent/s-1.runtime.json";
        world.write(place, sidecar.to_string());
    };
    let hint = |command: &str| {
        let said = world.run(command);
        let hints = said.err.lines().filter(|line| line.starts_with("hint:"));
        (said.status, hints.collect::<Vec<_>>().join("\n"))
    };
    // No command is known.
    write(&json!(null), "devbox");
    assert_eq!(hint("attach s-1"), (1, String::new()));
    write(&json!(null), "elsewhere");
    assert_eq!(hint("resume s-1"), (3, String::new()));
    // One is known that whosup does not run.
    let command = json!(["my-agent", "-r", "s-1"]);
    write(&command, "devbox");
    let shown = "hint: whosup resume s-1 shows a command, and why it is not run";
    assert_eq!(hint("attach s-1"), (1, shown.to_owned()));
    assert!(world.run("resume s-1").err.contains("my-agent -r s-1"));
    write(&command, "elsewhere");
    let (status, offered) = hint("resume s-1");
    assert_eq!(status, 3);
    assert!(
        offered.starts_with("hint: `--print --force` prints"),
        "{offered}"
    );
    let printed = world.run("resume --print --force s-1");
    assert!(
        printed.out.contains("my-agent -r s-1"),
        "{}",
        printed.text()
    );
    // One is known that whosup runs.
    let world = self::world();
    let said = world.run(&format!("attach {S4}"));
    let continues = format!("hint: whosup resume {S4} continues it");
    assert!(said.err.contains(&continues), "{}", said.text());
}

#[test]
fn force_is_not_offered_where_it_does_not_help() {
    let mut world = world();
    let said = world.run(&format!("send {S3} hi --force"));
    assert_eq!(said.status, 3, "{}", said.text());
    assert!(!said.err.contains("--force"), "{}", said.err);
    // It has no pane, and a process that is only inferred.
    world.add_claude_process(4720, "src/web", &["--resume", S5]);
    world.write_claude_transcript(S5, "src/web", "Add a page", 3);
    for more in ["", " --force"] {
        let said = world.run(&format!("send {S5} hi{more}"));
        assert_ne!(said.status, 0, "{}", said.text());
        assert!(!said.err.contains("--force"), "{}", said.err);
    }
}

#[test]
fn an_agent_without_a_transcript_is_not_idle_according_to_it() {
    let mut world = World::new();
    let thread = "019a4f2e-7d3c-7b10-9a55-0c1d2e3f4a5b";
    let lock = format!(".codex/thread-writer-locks/{thread}.lock");
    world.write(&lock, "");
    world.write(".codex/sessions/none", "");
    let facts = facts(&world.path(&lock), Links::Refuse).unwrap();
    let file = FileId {
        device: facts.device,
        inode: facts.inode,
    };
    let codex = RecordedProcess::new(800, 80_000, now_ms() - 60_000)
        .comm("codex")
        .argv(&["codex"])
        .exe("/opt/codex/bin/codex")
        .cwd(world.work_dir("src/shop"))
        .tty(136, 1)
        .holds_at(
            &world.path(&lock),
            file,
            Access::ReadWrite,
            vec![LockKind::Flock { is_exclusive: true }],
        );
    world.add_process(codex);
    let said = world.run(&format!("why {thread}"));
    assert!(
        said.out.contains("It is idle: it has no transcript yet."),
        "{}",
        said.text()
    );
    // A file of another program's making says nothing of its phase.
    let sidecar = json!({
        "schema_version": 1, "pid": 800, "session_id": "c-1", "hostname": "devbox",
        "work_dir": world.work_dir("src/shop"), "started_at": now_ms() / 1_000 - 30,
        "process_start": "80000", "process_start_kind": "linux-ticks",
    });
    let place = ".local/state/agent-sessions/codex/c-1.runtime.json";
    world.write(place, sidecar.to_string());
    let said = world.run("why c-1");
    assert!(said.out.contains("codex session c-1"), "{}", said.text());
    assert!(!said.out.contains("It is idle"), "{}", said.text());
}
