//! Real processes that pose as agents: started, killed, reaped, replaced.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;

use rustix::fs::{FlockOperation, flock};
use serde_json::json;

use super::world::{World, is_of_the_dead};

#[test]
fn a_session_is_live_until_its_process_exits() {
    let world = World::new();
    let mut posing = world.pose_as_claude();
    let pid = posing.pid();
    world.write_claude_record(pid, &posing.start(), &world.s1);
    world.write_claude_transcript(".claude", &world.s1);

    let sessions = world.run(["list", "--json", "--cwd", "."]).sessions();
    let [session] = sessions.as_slice() else {
        panic!("{sessions:?}");
    };
    assert_eq!(session["session_id"], world.s1);
    assert_eq!(session["liveness"], "live");
    assert_eq!(session["reason"], "start-stamp");
    assert_eq!(session["confidence"], "proven");
    assert_eq!(session["phase"], "idle");
    assert_eq!(session["owner"]["pid"], pid);
    assert_eq!(session["owner"]["start_stamp"], posing.start());
    assert_eq!(world.run(["check", "--quiet", world.s1.as_str()]).status, 0);
    let said = world.run(["pid", &world.s1[..10]]);
    assert_eq!((said.status, said.out), (0, format!("{pid}\n")));
    let said = world.run(["why", "--pid", &pid.to_string()]);
    assert_eq!(said.status, 0);
    assert!(said.out.contains(&world.s1), "{}", said.out);

    posing.kill();
    let said = world.run(["check", world.s1.as_str()]);
    assert_eq!(said.status, 1, "{}", said.out);
    assert!(said.out.starts_with("exited (zombie): "), "{}", said.out);

    posing.reap();
    let said = world.run(["check", world.s1.as_str()]);
    assert_eq!(said.status, 1, "{}", said.out);
    let reason = said.out.strip_prefix("exited (").unwrap_or(&said.out);
    let reason = reason.split_once(')').unwrap_or_default().0;
    assert!(is_of_the_dead(reason), "{}", said.out);
    let sessions = world.run(["list", "--json", "--cwd", "."]).sessions();
    assert_eq!(sessions[0]["orphan"], true, "{sessions:?}");
    let said = world.run(["pid", world.s1.as_str()]);
    assert_eq!((said.status, said.out.as_str()), (1, ""));
}

#[test]
fn a_pid_that_another_process_has_now_is_no_life() {
    let world = World::new();
    let posing = world.pose_as_claude();
    let earlier: u64 = posing.start().parse().unwrap();
    world.write_claude_record(posing.pid(), &(earlier - 1).to_string(), &world.s1);
    let said = world.run(["check", world.s1.as_str()]);
    assert_eq!(said.status, 1, "{}", said.out);
    assert!(
        said.out.starts_with("exited (pid-reused): "),
        "{}",
        said.out
    );
}

#[test]
fn a_held_lock_is_a_life_and_a_free_one_is_none() {
    let world = World::new();
    let thread = format!("01a21ec8-c5bb-78f0-959a-{:012x}", std::process::id());
    let path = world.write(&format!(".codex/thread-writer-locks/{thread}.lock"), "");
    let lock = File::options().append(true).open(path).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    // The lock belongs to the open file, which only the child still has.
    let mut posing = world.pose("codex/bin/codex", |command| {
        command.stdout(Stdio::from(lock));
    });
    let said = world.run(["pid", thread.as_str()]);
    assert_eq!(
        (said.status, said.out),
        (0, format!("{}\n", posing.pid())),
        "{}",
        said.err
    );
    let said = world.run(["why", &format!("codex:{thread}")]);
    assert!(said.out.contains("lock-held"), "{}", said.out);

    posing.kill();
    posing.reap();
    let said = world.run(["check", thread.as_str()]);
    assert_eq!(said.status, 1, "{}{}", said.out, said.err);
}

#[test]
fn a_home_that_only_the_agents_own_process_knows_is_found() {
    let world = World::new();
    let elsewhere = world.home().join("elsewhere");
    let posing = world.pose("@anthropic-ai/claude-code/bin/claude", |command| {
        command.env("CLAUDE_CONFIG_DIR", &elsewhere);
    });
    let record = world.write_claude_record(posing.pid(), &posing.start(), &world.s2);
    let moved = elsewhere.join("sessions").join(record.file_name().unwrap());
    std::fs::create_dir_all(moved.parent().unwrap()).unwrap();
    std::fs::rename(&record, &moved).unwrap();
    let sessions = world.run(["list", "--json", "--cwd", "."]).sessions();
    let [session] = sessions.as_slice() else {
        panic!("{sessions:?}");
    };
    assert_eq!(session["session_id"], world.s2);
    assert_eq!(session["liveness"], "live");
    assert_eq!(session["home"], elsewhere.to_str().unwrap());
}

#[test]
fn a_process_without_a_session_is_shown_as_that() {
    let world = World::new();
    let posing = world.pose("codex/bin/codex", |_| {});
    let answer = world.run(["list", "--json", "--cwd", "."]).json();
    assert_eq!(answer["unattributed"][0]["pid"], posing.pid(), "{answer}");
    let table = world.run(["list", "--cwd", "."]).out;
    assert!(table.contains("no session known"), "{table}");
    let said = world.run(["why", "--pid", &posing.pid().to_string()]);
    assert_eq!(said.status, 3, "{}", said.out);
}

#[test]
fn this_test_is_no_agent() {
    let world = World::new();
    let said = world.run(["why", "--pid", &std::process::id().to_string()]);
    assert_eq!(said.status, 4, "{}", said.out);
    assert!(
        said.out.contains("which is not a known agent"),
        "{}",
        said.out
    );
}

/// The transcript of a session of pi that just began in a directory.
fn write_pi_session(world: &World, directory: &Path, session: &str) {
    let now = jiff::Timestamp::now();
    let header = json!({
        "type": "session", "version": 3, "id": session, "timestamp": now.to_string(),
        "cwd": directory,
    });
    let folder = directory.to_str().unwrap().trim_start_matches('/');
    let folder = format!(".pi/agent/sessions/--{}--", folder.replace('/', "-"));
    world.write(
        &format!("{folder}/{now}_{session}.jsonl"),
        format!("{header}\n"),
    );
}

#[test]
fn a_process_in_a_renamed_directory_may_serve_sessions_of_either_name() {
    let world = World::new();
    let (old, new) = (world.home().join("old"), world.home().join("new"));
    let script = world.root().join("bin/pi");
    std::fs::create_dir(script.parent().unwrap()).unwrap();
    // A process that opens it blocks until the test ends.
    let fifo = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &script,
        rustix::fs::FileType::Fifo,
        fifo,
        0,
    )
    .unwrap();
    let pose_in = |directory: &Path| {
        world.pose("bin/node", |command| {
            command
                .arg(&script)
                .env("PWD", directory)
                .current_dir(directory);
        })
    };
    std::fs::create_dir(&old).unwrap();
    let first = pose_in(&old);
    write_pi_session(&world, &old, &world.s1);
    std::fs::rename(&old, &new).unwrap();
    let mut second = pose_in(&new);
    write_pi_session(&world, &new, &world.s2);
    second.kill();
    second.reap();

    let answers = [&["list", "--json"][..], &["list", "--json", "--all"]].map(|listing| {
        let rows = world.run(listing).sessions();
        [&world.s1, &world.s2].map(|session| {
            let row = rows.iter().find(|row| row["session_id"] == **session);
            row.map_or(json!("exited"), |row| row["liveness"].clone())
        })
    });
    // The first process may have moved to the second session, and serves one of them.
    assert_eq!(
        answers,
        [["unknown", "unknown"]; 2].map(|of| of.map(|of| json!(of)))
    );
    let candidates = world.run(["why", &world.s1]).out;
    assert!(candidates.contains(&format!("process {} may serve it", first.pid())));
}
