//! Crashed sessions: finding, resuming and hiding them.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::shell_agent::{ShellAgent, file_of, owner_elsewhere, write_record};
use super::world::{Said, World, now_ms, said};

/// A program named `claude` that prints how it was run.
const PROGRAM: &str = "#!/bin/sh\necho \"pid $$\"; pwd; printf '%s\\n' \"$0\" \"$@\"; exit 7\n";

/// A directory to put on `PATH`, with the agent's program in it.
fn write_program(world: &World) -> PathBuf {
    let program = world.write("bin/claude", PROGRAM);
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    program.parent().unwrap().to_owned()
}

/// A session with a transcript whose agent was killed.
fn kill_in_session(world: &World, session: &str) {
    world.write_claude_transcript(".claude", session);
    let mut agent = ShellAgent::start(world);
    agent.prompt(session);
    agent.kill();
}

/// Those of this world: others may run beside it.
fn orphans(world: &World) -> Said {
    world.run(["orphans", "--json", "--cwd", "."])
}

#[track_caller]
fn ids_of(said: &Said) -> Vec<String> {
    let id = |session: &Value| session["session_id"].as_str().unwrap().to_owned();
    said.sessions().iter().map(id).collect()
}

#[test]
fn a_killed_session_is_an_orphan_before_and_after_the_sweep() {
    let world = World::new();
    let said = world.run(["orphans", "--cwd", "."]);
    let nothing = (0, "no session died without an end\n");
    assert_eq!((said.status, said.out.as_str()), nothing, "{}", said.err);
    assert_eq!(orphans(&world).sessions().len(), 0);

    kill_in_session(&world, &world.s1);
    let mut other = ShellAgent::start(&world);
    other.prompt(&world.s2);
    for sweeps in [false, true] {
        if sweeps {
            assert!(world.run(["sweep"]).out.starts_with("ended"));
        }
        let said = world.run(["orphans", "--cwd", "."]);
        let command = format!("  cd ~/src/shop && claude --resume {}", world.s1);
        let why = world.run(["why", &world.s1]).out;
        let is_shown = said.out.lines().any(|line| line == command);
        assert!(is_shown, "{}{why}", said.out);
        assert!(!said.out.contains(&world.s2), "{}", said.out);
        let json = orphans(&world);
        assert_eq!(ids_of(&json).join(" "), world.s1, "{}", json.out);
        let resume = &json.sessions()[0]["resume"];
        assert_eq!(resume["argv"], json!(["claude", "--resume", world.s1]));
    }
    let other = ["orphans", "--json", "--cwd", "/tmp", "--agent", "codex"];
    assert!(!world.run(other).out.contains(&world.s1));
    let future = ["orphans", "--json", "--since", "2100-01-01T00:00:00Z"];
    assert_eq!(world.run(future).sessions().len(), 0);
}

#[test]
fn a_session_that_its_agent_ended_is_no_orphan() {
    let world = World::new();
    world.write_claude_transcript(".claude", &world.s1);
    let mut agent = ShellAgent::start(&world);
    agent.prompt(&world.s1);
    agent.report(&world.s1, "SessionEnd", json!({"reason": "other"}));
    agent.kill();
    assert_eq!(orphans(&world).sessions().len(), 0);
}

#[test]
fn resume_becomes_the_agents_own_command_in_the_sessions_directory() {
    let world = World::new();
    kill_in_session(&world, &world.s1);
    let bin = write_program(&world);
    let mut path = bin.into_os_string();
    path.push(":/usr/bin:/bin");
    let mut command = world.whosup();
    let command = command
        .args(["resume", &world.s1])
        .env("PATH", path)
        .current_dir(world.root());
    let said = said(command);
    let lines: Vec<&str> = said.out.lines().collect();
    let work_dir = world.work_dir();
    let program = world.home().join("bin/claude");
    let expected = [
        work_dir.to_str().unwrap(),
        program.to_str().unwrap(),
        "--resume",
        &world.s1,
    ];
    assert_eq!(lines[1..], expected, "{}", said.err);
    // Its exit status is the program's, since it becomes the program.
    assert_eq!((said.status, said.err.as_str()), (7, ""));
}

#[test]
fn a_session_is_resumed_in_the_directory_where_its_agent_finds_it() {
    let world = World::new();
    kill_in_session(&world, &world.s1);
    let work_dir = world.work_dir();
    let transcript = world.write_claude_transcript(".claude", &world.s1);
    let first = std::fs::read_to_string(&transcript).unwrap();
    let mut moved: Value = serde_json::from_str(&first).unwrap();
    moved["cwd"] = json!(work_dir.join("sub"));
    moved["timestamp"] = json!(jiff::Timestamp::now().to_string());
    std::fs::write(&transcript, format!("{first}{moved}\n")).unwrap();
    let shown = world
        .run(["list", "--all", "--json", "--cwd", "."])
        .sessions();
    assert_eq!(shown[0]["work_dir"], json!(work_dir.join("sub")));
    assert_eq!(shown[0]["resume"]["cwd"], json!(work_dir), "{shown:?}");
    let said = world.run(["resume", "--print", world.s1.as_str()]);
    let expected = format!(
        "cd {} && claude --resume {}\n",
        work_dir.display(),
        world.s1
    );
    assert_eq!((said.status, said.out), (0, expected), "{}", said.err);
}

#[test]
fn resume_only_prints_what_a_shell_can_run() {
    let world = World::new();
    kill_in_session(&world, &world.s1);
    let said = world.run(["resume", "--print", world.s1.as_str()]);
    let work_dir = world.work_dir();
    let expected = format!(
        "cd {} && claude --resume {}\n",
        work_dir.display(),
        world.s1
    );
    assert_eq!((said.status, said.out), (0, expected), "{}", said.err);
}

#[test]
fn a_live_session_is_resumed_only_by_force() {
    let world = World::new();
    world.write_claude_transcript(".claude", &world.s1);
    let mut agent = ShellAgent::start(&world);
    agent.prompt(&world.s1);
    for more in [&[][..], &["--print"]] {
        let said = world.run(["resume", &world.s1].iter().chain(more));
        assert_eq!((said.status, said.out.as_str()), (2, ""));
        let because = format!("it is live: process {}", agent.pid());
        assert!(said.err.contains(&because), "{}", said.err);
        assert!(said.err.contains("--force"), "{}", said.err);
    }
    let said = world.run(["resume", "--print", "--force", &world.s1]);
    assert_eq!(said.status, 0, "{}", said.err);
    assert!(said.out.contains("claude --resume"), "{}", said.out);
}

#[test]
fn an_unknown_session_is_not_resumed() {
    let world = World::new();
    world.write_claude_transcript(".claude", &world.s1);
    write_record(&world, &world.s1, &json!({ "owner": owner_elsewhere() }));
    let said = world.run(["resume", &world.s1]);
    assert_eq!((said.status, said.out.as_str()), (3, ""), "{}", said.err);
    assert!(said.err.contains("it may be live"), "{}", said.err);
    // A dismissal claims nothing.
    assert_eq!(world.run(["dismiss", &world.s1]).status, 0);
    assert_eq!(world.run(["resume", &world.s1]).status, 3);
}

#[test]
fn what_can_not_be_resumed_says_why() {
    let world = World::new();
    kill_in_session(&world, &world.s1);
    let empty = world.root().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let said_with_path = |path: &std::path::Path| {
        said(
            world
                .whosup()
                .args(["resume", &world.s1])
                .env("PATH", path)
                .current_dir("/"),
        )
    };
    let answer = said_with_path(&empty);
    assert_eq!(answer.status, 2, "{}", answer.out);
    assert!(
        answer.err.contains("there is no `claude` on PATH"),
        "{}",
        answer.err
    );

    let bin = write_program(&world);
    std::fs::rename(world.work_dir(), world.home().join("src/gone")).unwrap();
    let answer = said_with_path(&bin);
    assert_eq!((answer.status, answer.out.as_str()), (2, ""));
    assert!(answer.err.contains("is no longer there"), "{}", answer.err);

    let answer = said(world.whosup().args(["resume", "ffffffff"]).current_dir("/"));
    assert_eq!(answer.status, 4, "{}", answer.err);
}

#[test]
fn a_command_that_a_file_names_is_shown_and_never_run() {
    let world = World::new();
    let mut gone = std::process::Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    let fields = json!({
        "pid": gone.id(),
        "hostname": rustix::system::uname().nodename().to_str().unwrap(),
        "started_at": 1_730_000_000.0,
        "aider_version": null,
        "resume": ["touch", world.root().join("was-run")],
    });
    world.announce("aider", &world.s1, fields);
    for refused in [
        &["resume", "--print"][..],
        &["resume"],
        &["resume", "--force"],
    ] {
        let answer = world.run(refused.iter().copied().chain([world.s1.as_str()]));
        assert_eq!((answer.status, answer.out.as_str()), (2, ""), "{refused:?}");
        assert!(answer.err.contains("touch"), "{}", answer.err);
        assert!(answer.err.contains("--print --force"), "{}", answer.err);
    }
    let answer = world.run(["resume", "--print", "--force", &world.s1]);
    assert_eq!(answer.status, 0, "{}", answer.err);
    assert!(answer.out.contains(" && touch "), "{}", answer.out);
    let rows = world.run(["show", "--json", &world.s1]).sessions();
    assert_eq!(rows[0]["resume"]["trusted"], false, "{rows:#?}");
    let shown = world.run(["show", &world.s1]);
    assert!(shown.out.contains("not trusted"), "{}", shown.out);
    assert!(!world.root().join("was-run").exists());
}

#[test]
fn a_dismissed_session_stays_hidden_until_its_next_event() {
    let world = World::new();
    kill_in_session(&world, &world.s1);
    let here = ["list", "--json", "--cwd", "."];
    assert_eq!(ids_of(&world.run(here)).join(" "), world.s1);
    let record = std::fs::read(file_of(&world, &world.s1, "json")).unwrap();

    let said = world.run(["dismiss", &world.s1]);
    assert_eq!(said.status, 0, "{}", said.err);
    assert_eq!(world.run(here).sessions().len(), 0);
    assert_eq!(orphans(&world).sessions().len(), 0);
    let all = world
        .run(["list", "--all", "--json", "--cwd", "."])
        .sessions();
    assert_eq!((all.len(), &all[0]["dismissed"]), (1, &json!(true)));
    let orphans = world.run(["orphans", "--all"]);
    assert!(orphans.out.contains("dismissed"), "{}", orphans.out);
    assert!(world.run(["show", &world.s1]).out.contains("dismissed"));
    // The record keeps what hooks reported.
    assert_eq!(
        std::fs::read(file_of(&world, &world.s1, "json")).unwrap(),
        record
    );

    let said = world.run(["dismiss", "--undo", &world.s1]);
    assert!(said.out.ends_with(" is back\n"), "{}", said.out);
    assert_eq!(ids_of(&world.run(here)).join(" "), world.s1);
    let said = world.run(["dismiss", "--undo", &world.s1]);
    assert!(said.out.ends_with(" was not dismissed\n"), "{}", said.out);
    let dismissed = world
        .home()
        .join(".local/state/whosup/dismissed/claude-code");
    assert_eq!(std::fs::read_dir(dismissed).unwrap().count(), 0);

    // It is resumed, and crashes again.
    assert_eq!(world.run(["dismiss", &world.s1]).status, 0);
    kill_in_session(&world, &world.s1);
    assert_eq!(ids_of(&world.run(here)).join(" "), world.s1);
}

#[test]
fn activity_that_stands_only_in_the_transcript_brings_a_dismissed_session_back() {
    let world = World::new();
    kill_in_session(&world, &world.s1);
    let transcript = world.write_claude_transcript(".claude", &world.s1);
    let here = ["list", "--json", "--cwd", "."];
    assert_eq!(world.run(["dismiss", &world.s1]).status, 0);
    assert_eq!(world.run(here).sessions().len(), 0);
    let first = std::fs::read_to_string(&transcript).unwrap();
    let mut later: Value = serde_json::from_str(&first).unwrap();
    later["timestamp"] = json!(jiff::Timestamp::now().to_string());
    std::fs::write(&transcript, format!("{first}{later}\n")).unwrap();
    assert_eq!(ids_of(&world.run(here)).join(" "), world.s1);
    assert_eq!(ids_of(&orphans(&world)).join(" "), world.s1);
}

#[test]
fn what_stays_unknown_and_has_no_record_is_dismissed_until_it_is_heard_of_again() {
    let world = World::new();
    let write = |started_at: u64| {
        let fields = json!({
            "pid": 77,
            "hostname": "a-container-that-is-gone",
            "started_at": started_at,
            "aider_version": null,
        });
        world.announce("aider", &world.s1, fields);
    };
    write(1_730_000_000);
    let here = ["list", "--json", "--cwd", "."];
    let advice = format!("whosup dismiss aider:{}", world.s1);
    let is_advised = || world.run(["doctor"]).out.contains(&advice);
    assert_eq!(world.run(here).sessions()[0]["reason"], "other-host");
    assert!(is_advised());
    let refused = world.run(["end", &world.s1]);
    assert_eq!(refused.status, 2, "{}", refused.out);
    assert!(refused.err.contains("whosup dismiss"), "{}", refused.err);

    let said = world.run(["dismiss", &world.s1]);
    assert_eq!(said.status, 0, "{}", said.err);
    assert_eq!(world.run(here).sessions().len(), 0);
    assert!(!is_advised());
    let all = world
        .run(["list", "--all", "--json", "--cwd", "."])
        .sessions();
    assert_eq!(all[0]["liveness"], "unknown");
    assert_eq!(all[0]["dismissed"], true);
    assert_eq!(world.run(["check", &world.s1]).status, 3);
    write(now_ms() / 1_000 + 1);
    assert_eq!(ids_of(&world.run(here)).join(" "), world.s1);
}

#[test]
fn a_live_session_is_not_dismissed() {
    let world = World::new();
    let mut agent = ShellAgent::start(&world);
    agent.prompt(&world.s1);
    let answer = world.run(["dismiss", &world.s1]);
    assert_eq!((answer.status, answer.out.as_str()), (2, ""));
    assert!(answer.err.contains("it is live"), "{}", answer.err);
    assert!(!world.home().join(".local/state/whosup/dismissed").exists());
}

#[test]
fn status_says_beside_its_document_what_it_ended() {
    let world = World::new();
    kill_in_session(&world, &world.s1);
    let answer = world.run(["status", "--json"]);
    assert_eq!(answer.err, "ended 1 session whose agent had exited\n");
    // A fresh exit stays in the default view, whichever command noticed it first.
    let document = answer.json();
    let sessions = document["sessions"].as_array().unwrap();
    // Agents of other tests may run beside it.
    let mut its = sessions
        .iter()
        .filter(|one| one["session_id"] == world.s1.as_str());
    let session = its.next().unwrap();
    assert_eq!(
        (&session["reason"], &session["orphan"]),
        (&json!("process-gone"), &json!(true))
    );
}

#[test]
fn a_silent_unknown_session_is_stale_in_status() {
    let world = World::new();
    write_record(&world, &world.s1, &json!({ "owner": owner_elsewhere() }));
    let answer = world.run(["status"]);
    let row = format!("  stale  claude-code {}", &world.s1[..8]);
    assert!(
        answer.out.lines().any(|line| line.starts_with(&row)),
        "{}",
        answer.out
    );
    let line = world.run(["status", "--format", "plain"]).out;
    assert!(line.contains("1 stale"), "{line}");
}
