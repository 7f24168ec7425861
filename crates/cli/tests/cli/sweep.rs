//! The sweep: what it ends, and what it never ends.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::shell_agent::{ShellAgent, event, file_of, log_of, record_of, write_record};
use super::world::{WHOSUP, World, ignoring_pid_reuse, is_of_the_dead};

#[test]
fn a_killed_agents_session_is_ended_once_with_the_last_sign_of_life() {
    let world = World::new();
    let mut agent = ShellAgent::start(&world);
    agent.report(&world.s1, "SessionStart", json!({"source": "startup"}));
    agent.prompt(&world.s1);
    let mut idle = ShellAgent::start(&world);
    idle.report(&world.s2, "SessionStart", json!({"source": "startup"}));
    idle.report(&world.s2, "Stop", json!({}));

    let said = world.run(["sweep"]);
    assert_eq!(
        (said.status, said.out.as_str()),
        (0, "nothing to end\n"),
        "{}",
        said.err
    );
    let heard = record_of(&world, &world.s1)["last_event_at"].clone();
    let before = std::fs::read(file_of(&world, &world.s1, "jsonl")).unwrap();
    agent.kill();
    idle.kill();

    let said = world.run(["sweep", "--dry-run"]);
    let pid = agent.pid();
    let expected = format!(
        "would end claude-code session {} (process-gone): process {pid}",
        world.s1
    );
    let out = ignoring_pid_reuse(&said.out);
    let why = world.run(["why", &world.s1]).out;
    assert!(out.contains(&expected), "{}{}{why}", said.out, said.err);
    assert_eq!(
        std::fs::read(file_of(&world, &world.s1, "jsonl")).unwrap(),
        before
    );

    // The idle session as well as the working session.
    let said = world.run(["sweep"]);
    for session in [&world.s1, &world.s2] {
        let expected = format!("ended claude-code session {session} (process-gone)");
        assert!(
            ignoring_pid_reuse(&said.out).contains(&expected),
            "{}",
            said.out
        );
    }
    let record = record_of(&world, &world.s1);
    assert_eq!(record["phase"], "ended");
    assert!(is_of_the_dead(record["end_cause"].as_str().unwrap()));
    assert_eq!(record["ended_at"], heard);
    assert_eq!(record["last_event_at"], heard);
    assert_eq!(record["turns"], 1);

    let files = ["json", "jsonl"].map(|extension| file_of(&world, &world.s1, extension));
    let after = files.clone().map(|file| std::fs::read(file).unwrap());
    assert_eq!(world.run(["sweep"]).out, "nothing to end\n");
    assert_eq!(files.map(|file| std::fs::read(file).unwrap()), after);
}

#[test]
fn two_sweeps_at_once_end_a_session_once() {
    let world = World::new();
    let mut agent = ShellAgent::start(&world);
    agent.prompt(&world.s1);
    agent.kill();
    let sweeps: Vec<_> = (0..6)
        .map(|_| {
            Command::new(WHOSUP)
                .arg("sweep")
                .env_clear()
                .env("HOME", world.home())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    let said: Vec<String> = sweeps
        .into_iter()
        .map(|sweep| String::from_utf8(sweep.wait_with_output().unwrap().stdout).unwrap())
        .collect();
    let ended = said
        .iter()
        .filter(|said| said.starts_with("ended "))
        .count();
    assert_eq!(ended, 1, "{said:?}");
    let ends = log_of(&world, &world.s1);
    let ends = ends.iter().filter(|line| line["event"] == "session-ended");
    assert_eq!(ends.count(), 1);
}

#[test]
fn a_session_resumed_in_a_process_that_no_hook_reported_stays_live() {
    let world = World::new();
    let mut agent = ShellAgent::start(&world);
    agent.prompt(&world.s1);
    agent.kill();
    let later = world.pose_as_claude();
    world.write_claude_record(later.pid(), &later.start(), &world.s1);
    let said = world.run(["sweep"]);
    let expected = format!("left claude-code session {} as it is: it is live", world.s1);
    assert!(said.out.contains(&expected), "{}{}", said.out, said.err);
    assert_eq!(record_of(&world, &world.s1)["phase"], "working");
}

#[test]
fn only_a_process_that_is_provably_gone_ends_a_session() {
    let world = World::new();
    let agent = ShellAgent::start(&world);
    let gone = gone_pid();
    let host = world.run(["list", "--json"]).json()["host"].clone();
    let owner = |change: Value| {
        let mut owner = json!({
            "pid": gone,
            "start_stamp": "4711",
            "start_stamp_kind": "linux-ticks",
            "hostname": host["hostname"],
            "boot_id": host["boot_id"],
            "pid_namespace": host["pid_namespace"],
            "executable": "/opt/claude",
            "shared": false,
        });
        owner
            .as_object_mut()
            .unwrap()
            .extend(change.as_object().unwrap().clone());
        owner
    };
    let other_boot = "19c1d8ff-a55f-47c0-82a1-b0f1bc43623a";
    let cases = [
        ("gone", owner(json!({})), Some("process-gone")),
        (
            "reused",
            owner(json!({"pid": agent.pid()})),
            Some("pid-reused"),
        ),
        (
            "rebooted",
            owner(json!({"boot_id": other_boot})),
            Some("rebooted"),
        ),
        // It may have released the session before it exited.
        ("shared", owner(json!({"shared": true})), Some("left")),
        (
            "live",
            owner(json!({"pid": agent.pid(), "start_stamp": agent.start_stamp()})),
            None,
        ),
        (
            "other-host",
            owner(json!({"hostname": "elsewhere", "boot_id": other_boot})),
            None,
        ),
        (
            "other-namespace",
            owner(json!({"pid_namespace": 4_026_531_999_u64})),
            None,
        ),
        ("no-host", owner(json!({"hostname": null})), None),
        ("no-boot", owner(json!({"boot_id": null})), None),
        ("no-namespace", owner(json!({"pid_namespace": null})), None),
        ("no-stamp", owner(json!({"start_stamp": null})), None),
        ("no-kind", owner(json!({"start_stamp_kind": null})), None),
        (
            "foreign-kind",
            owner(json!({"start_stamp_kind": "filetime"})),
            None,
        ),
        ("unowned", Value::Null, None),
    ];
    for (session, owner, _) in &cases {
        let fields = json!({
            "owner": owner,
            "started_at": "2026-11-20T10:00:00.000Z",
            "last_event_at": "2026-11-20T11:00:00.000Z",
            "work_dir": "/nowhere",
            "turns": 7,
        });
        write_record(&world, session, &fields);
    }
    let said = world.run(["sweep"]);
    for (session, _, cause) in &cases {
        let record = record_of(&world, session);
        let (phase, ended_at) = match cause {
            Some(_) => ("ended", json!("2026-11-20T11:00:00.000Z")),
            None => ("working", Value::Null),
        };
        let shown = format!("{session}: {record}\n{}{}", said.out, said.err);
        let reported = record["end_cause"].as_str();
        // The free PID may be in use by now.
        let reported = match (reported, *cause) {
            (Some("pid-reused"), Some("process-gone")) => Some("process-gone"),
            (reported, _) => reported,
        };
        assert_eq!(
            (&record["phase"], reported),
            (&json!(phase), *cause),
            "{shown}"
        );
        assert_eq!(record["ended_at"], ended_at, "{shown}");
        // What only the record knew is still known.
        assert_eq!(record["turns"], 7, "{shown}");
    }
}

#[test]
fn records_of_sessions_that_ended_long_ago_are_removed_and_nothing_else_is() {
    let world = World::new();
    let write = |session: &str, phase: &str, ended_at: Value| {
        let fields = json!({
            "phase": phase,
            "last_event_at": "2025-01-01T00:00:00.000Z",
            "ended_at": ended_at,
        });
        write_record(&world, session, &fields)
    };
    let old = write("old", "ended", json!("2025-01-01T00:00:00.000Z"));
    let open = write("open", "working", Value::Null);
    let undated = write("undated", "ended", Value::Null);
    let foreign = world.write(".local/state/whosup/sessions/claude-code/notes.txt", "mine");
    let broken = world.write(".local/state/whosup/sessions/claude-code/x.json", "{");
    let said = world.run(["sweep", "--dry-run"]);
    assert!(said.out.contains("would remove 1 record"), "{}", said.out);
    assert!(old.exists());
    let said = world.run(["sweep"]);
    assert!(said.out.contains("removed 1 record"), "{}", said.out);
    assert!(said.err.contains("x.json"), "{}", said.err);
    assert!(!old.exists() && !old.with_extension("lock").exists());
    // It has ended, at an unknown time, and its record was put away.
    let put_away = world
        .home()
        .join(".local/state/whosup/ended/claude-code/undated.json");
    assert!(put_away.exists() && !undated.exists());
    for kept in [open, foreign, broken] {
        assert!(kept.exists(), "{}", kept.display());
    }
}

/// The PID of a process that has exited and was reaped.
fn gone_pid() -> u32 {
    let mut child = Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    child.id()
}

/// Runs a line of shell as root in namespaces of its own; `None`, with a message, if that is not
/// possible.
fn unshared(world: &World, options: &[&str], line: &str) -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: needs root to unshare");
        return None;
    }
    let output = Command::new("unshare")
        .args(options)
        .args(["sh", "-c", line])
        .env_clear()
        .env("HOME", world.home())
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .output();
    match output {
        Ok(output) if output.status.success() => Some(String::from_utf8(output.stdout).unwrap()),
        Ok(output) => {
            eprintln!("skipped: namespaces can't be made here: {output:?}");
            None
        }
        Err(error) => {
            eprintln!("skipped: there is no unshare: {error}");
            None
        }
    }
}

#[test]
fn a_container_ends_nothing_of_the_host_dead_or_alive() {
    let world = World::new();
    let mut live = ShellAgent::start(&world);
    live.prompt(&world.s1);
    let mut dead = ShellAgent::start(&world);
    dead.prompt(&world.s2);
    dead.kill();
    let line = format!("'{WHOSUP}' sweep");
    let options = ["--pid", "--fork", "--mount-proc"];
    let Some(said) = unshared(&world, &options, &line) else {
        return;
    };
    assert_eq!(said, "nothing to end\n");
    for session in [&world.s1, &world.s2] {
        assert_eq!(record_of(&world, session)["phase"], "working");
    }
    // The old `/proc` in a new namespace shows nothing useful.
    let Some(said) = unshared(&world, &["--pid", "--fork"], &line) else {
        return;
    };
    assert_eq!(said, "nothing to end\n");
    assert_eq!(record_of(&world, &world.s2)["phase"], "working");
    // The host knows the process.
    let said = world.run(["sweep"]).out;
    assert!(
        said.contains(&world.s2) && !said.contains(&world.s1),
        "{said}"
    );
}

#[test]
fn the_host_ends_nothing_of_a_container_whose_processes_it_can_see() {
    let world = World::new();
    let program = world
        .root()
        .join("opt/@anthropic-ai/claude-code/bin/claude");
    std::fs::create_dir_all(program.parent().unwrap()).unwrap();
    crate::world::copy_program("/bin/sh", &program);
    let payload = world.root().join("payload");
    let hook_event = event(
        &world,
        &world.s1,
        "UserPromptSubmit",
        json!({"prompt": "p"}),
    );
    std::fs::write(&payload, hook_event.to_string()).unwrap();
    // The agent in the container runs a sweep too, while it lives.
    let inner = format!(
        "'{WHOSUP}' hook claude-code < '{}'; '{WHOSUP}' sweep; cat '{}'",
        payload.display(),
        file_of(&world, &world.s1, "json").display(),
    );
    let line = format!("'{}' -c \"{inner}; true\"; true", program.display());
    let options = ["--pid", "--fork", "--mount-proc"];
    let Some(said) = unshared(&world, &options, &line) else {
        return;
    };
    assert!(said.starts_with("nothing to end\n"), "{said}");
    let record: Value = serde_json::from_str(said.lines().nth(1).unwrap()).unwrap();
    assert!(record["owner"]["pid"].as_u64().unwrap() < 10, "{record}");
    // The container is gone with all its processes; its PIDs have no meaning here.
    let said = world.run(["sweep"]);
    let record = record_of(&world, &world.s1);
    assert_eq!(record["phase"], "working", "{}", said.out);
}

#[test]
fn a_user_who_sees_only_own_processes_ends_nothing() {
    let world = World::new();
    let mut agent = ShellAgent::start(&world);
    agent.prompt(&world.s1);
    let mut dead = ShellAgent::start(&world);
    dead.prompt(&world.s2);
    dead.kill();
    let before = std::fs::read(file_of(&world, &world.s1, "jsonl")).unwrap();
    // They own the records and may write them.
    let line = format!(
        "mount -t proc -o hidepid=2 none /proc && chmod -R a+rX '{root}' && \
         cp '{WHOSUP}' '{root}/whosup' && \
         chown -R 65534:65534 '{home}' && \
         setpriv --reuid=65534 --regid=65534 --clear-groups '{root}/whosup' sweep",
        root = world.root().display(),
        home = world.home().display(),
    );
    let Some(said) = unshared(&world, &["--mount"], &line) else {
        return;
    };
    assert_eq!(said, "nothing to end\n");
    assert_eq!(
        std::fs::read(file_of(&world, &world.s1, "jsonl")).unwrap(),
        before
    );
    assert_eq!(record_of(&world, &world.s2)["phase"], "working");
}

#[test]
fn status_ends_what_has_exited_and_shows_what_goes_on() {
    let world = World::new();
    let mut agent = ShellAgent::start(&world);
    agent.prompt(&world.s1);
    agent.report(&world.s1, "PermissionRequest", json!({}));
    let mut dead = ShellAgent::start(&world);
    dead.prompt(&world.s2);
    dead.kill();

    let said = world.run(["status"]);
    assert_eq!(said.status, 0, "{}", said.err);
    let lines: Vec<&str> = said.out.lines().collect();
    assert_eq!(
        lines[0], "ended 1 session whose agent had exited",
        "{}",
        said.out
    );
    assert!(lines.contains(&"~/src/shop"), "{}", said.out);
    let row = format!(
        "  waiting for you (permission)  claude-code {}",
        &world.s1[..8]
    );
    assert!(
        lines.iter().any(|line| line.starts_with(&row)),
        "{}",
        said.out
    );
    let cause = record_of(&world, &world.s2)["end_cause"].clone();
    assert!(is_of_the_dead(cause.as_str().unwrap()), "{cause}");

    let said = world.run(["status"]);
    assert!(!said.out.contains("ended 1"), "{}", said.out);
    // Agents of other tests may run: only the lines about ours are known.
    let json = world.run(["status", "--json"]).sessions();
    assert!(
        json.iter()
            .any(|session| session["session_id"] == world.s1.as_str())
    );
    assert!(
        json.iter()
            .any(|session| session["session_id"] == world.s2.as_str() && session["orphan"] == true)
    );
    let line = world.run(["status", "--format", "tmux"]).out;
    assert!(
        line.contains("#[fg=yellow]") && line.lines().count() == 1,
        "{line}"
    );
    let line: Value =
        serde_json::from_str(&world.run(["status", "--format", "waybar"]).out).unwrap();
    assert_eq!(line["class"], "waiting", "{line}");
}

/// Copilot CLI writes `session.shutdown` even if its hooks fail.
#[test]
fn an_end_in_the_agents_own_files_is_recorded_instead_of_a_crash() {
    let world = World::new();
    let mut agent = ShellAgent::start(&world);
    let host = world.run(["list", "--json"]).json()["host"].clone();
    let owner = json!({
        "pid": agent.pid(), "start_stamp": agent.start_stamp(), "start_stamp_kind": "linux-ticks",
        "hostname": host["hostname"], "boot_id": host["boot_id"],
        "pid_namespace": host["pid_namespace"],
    });
    agent.kill();
    let third = format!("0c{}", &world.s1[2..]);
    for (session, last, at) in [
        (&world.s1, "session.shutdown", "2026-01-01T00:00:05.000Z"),
        (&world.s2, "assistant.turn_end", "2026-01-01T00:00:05.000Z"),
        // A hook reported it after that.
        (&third, "session.shutdown", "2025-12-31T23:59:00.000Z"),
    ] {
        let line = |kind: &str, data: Value, at: &str| json!({"type": kind, "data": data, "id": format!("{kind}-{at}"), "timestamp": at});
        let start = json!({"sessionId": session, "copilotVersion": "1.0.102"});
        let lines = [
            line("session.start", start, "2025-12-31T23:00:00.000Z"),
            line(last, json!({"shutdownType": "routine"}), at),
        ];
        let text = lines.map(|line| format!("{line}\n")).concat();
        world.write(
            &format!(".copilot/session-state/{session}/events.jsonl"),
            text,
        );
        let record = json!({
            "schema_version": 1, "agent": "copilot", "session_id": session,
            "home": world.home().join(".copilot"), "phase": "idle", "owner": owner,
            "last_event_at": "2026-01-01T00:00:00.000Z",
        });
        let path = format!(".local/state/whosup/sessions/copilot/{session}.json");
        world.write(&path, record.to_string());
    }
    let said = world.run(["sweep"]);
    for (session, cause) in [
        (&world.s1, "exit-record"),
        (&world.s2, "process-gone"),
        (&third, "process-gone"),
    ] {
        let expected = format!("ended copilot session {session} ({cause})");
        let out = ignoring_pid_reuse(&said.out);
        assert!(out.contains(&expected), "{}{}", said.out, said.err);
    }
    let orphans = world.run(["orphans", "--all"]).out;
    assert!(!orphans.contains(&world.s1[..8]), "{orphans}");
    assert!(orphans.contains(&world.s2[..8]), "{orphans}");
}
