//! Hooks, sweeps and readers at once, and directories that vanish meanwhile.

use std::io::Write as _;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::shell_agent::{ShellAgent, event, file_of, log_of, record_of};
use super::world::{WHOSUP, World, is_of_the_dead, said};

/// How many hooks the living agent runs meanwhile.
const HOOKS: usize = 40;
/// How often each of the others works.
const ROUNDS: usize = 6;

fn start(world: &World, arguments: &[&str]) -> Child {
    Command::new(WHOSUP)
        .args(arguments)
        .env_clear()
        .env("HOME", world.home())
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .current_dir(world.work_dir())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[track_caller]
fn out_of(child: Child) -> String {
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn sweeps_hooks_and_a_reader_at_once_end_the_dead_once_and_the_living_never() {
    let world = World::new();
    let mut dead = ShellAgent::start(&world);
    let prompt = |number: usize| json!({"prompt": format!("prompt {number}")});
    dead.hook(&event(&world, &world.s2, "UserPromptSubmit", prompt(0)));
    dead.kill();
    let mut live = ShellAgent::start(&world);
    let mut line = String::new();
    for number in 0..HOOKS {
        let hook_event = event(&world, &world.s1, "UserPromptSubmit", prompt(number));
        let payload = live.payload(&hook_event);
        line += &format!("'{WHOSUP}' hook claude-code < '{}' & ", payload.display());
    }
    let others = |arguments: &'static [&'static str]| {
        let world = &world;
        move || -> Vec<String> {
            (0..ROUNDS)
                .map(|_| out_of(start(world, arguments)))
                .collect()
        }
    };
    let (swept, read) = std::thread::scope(|threads| {
        let sweeps = [(); 2].map(|()| threads.spawn(others(&["sweep"])));
        let reader = threads.spawn(others(&["list", "--json", "--cwd", "."]));
        assert_eq!(live.run(&(line + "wait")), ("0".to_owned(), String::new()));
        let swept: Vec<String> = sweeps
            .into_iter()
            .flat_map(|sweep| sweep.join().unwrap())
            .collect();
        (swept, reader.join().unwrap())
    });
    let ended: Vec<&str> = swept
        .iter()
        .flat_map(|said| said.lines())
        .filter(|line| line.starts_with("ended "))
        .collect();
    assert!(ended.len() <= 1, "{ended:?}");
    assert!(
        ended.iter().all(|line| line.contains(&world.s2)),
        "{ended:?}"
    );
    for said in &read {
        let answer: Value = serde_json::from_str(said).unwrap();
        // Other tests have terminals, and problems, of their own.
        let mut problems = answer["problems"].as_array().unwrap().iter();
        let is_ours = |problem: &Value| problem["path"].is_string();
        assert!(!problems.any(is_ours), "{answer}");
        for session in answer["sessions"].as_array().unwrap() {
            let is_live = session["session_id"] == world.s1.as_str();
            assert!(!is_live || session["liveness"] == "live", "{session}");
        }
    }
    // Both agents worked in one directory, so it may have been the living agent's until
    // that agent reported a session of its own.
    world.run(["sweep"]);
    let cause = record_of(&world, &world.s2)["end_cause"].clone();
    assert!(is_of_the_dead(cause.as_str().unwrap()), "{cause}");
    let ends = log_of(&world, &world.s2);
    let ends = ends.iter().filter(|line| line["event"] == "session-ended");
    assert_eq!(ends.count(), 1);
    live.hook(&event(&world, &world.s1, "Stop", json!({})));
    let record = record_of(&world, &world.s1);
    assert_eq!(
        (&record["phase"], &record["turns"]),
        (&json!("idle"), &json!(HOOKS))
    );
}

#[test]
fn a_directory_that_vanishes_is_made_again_and_stops_no_agent() {
    let world = World::new();
    let mut agent = ShellAgent::start(&world);
    let report = |agent: &mut ShellAgent<'_>, name: &str| {
        agent.hook(&event(&world, &world.s1, name, json!({})));
    };
    report(&mut agent, "UserPromptSubmit");
    std::fs::remove_dir_all(world.home().join(".local")).unwrap();
    report(&mut agent, "Stop");
    let record = record_of(&world, &world.s1);
    assert_eq!(
        (&record["phase"], &record["owner"]["pid"]),
        (&json!("idle"), &json!(agent.pid()))
    );
    // While they run, again and again.
    let payload = agent.payload(&event(&world, &world.s1, "PreToolUse", json!({})));
    let hooks = format!("'{WHOSUP}' hook claude-code < '{}' & ", payload.display());
    let remove = format!(
        "rm -rf '{}' & ",
        world.home().join(".local/state").display()
    );
    let line = (hooks.repeat(4) + &remove).repeat(5) + "wait";
    let (status, _said_by_rm) = agent.run(&line);
    assert_eq!(status, "0");
    report(&mut agent, "Stop");
    assert_eq!(record_of(&world, &world.s1)["phase"], "idle");
}

#[test]
fn a_place_that_can_be_no_directory_stops_no_agent() {
    let world = World::new();
    let file = world.write("file", "mine");
    let event = event(&world, &world.s1, "Stop", json!({})).to_string();
    for place in [file.to_str().unwrap(), "/proc/nowhere", "/dev/null"] {
        let mut hook = world.whosup();
        hook.env("XDG_STATE_HOME", place)
            .args(["hook", "claude-code"]);
        let answer = said(hook.write_stdin(event.as_str()));
        assert_eq!(
            (answer.status, answer.out.as_str(), answer.err.as_str()),
            (0, "", ""),
            "{place}"
        );
        let said = said(
            world
                .whosup()
                .env("XDG_STATE_HOME", place)
                .args(["list", "--json", "--cwd", "."]),
        );
        assert_eq!(said.status, 0, "{place}: {}", said.err);
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"mine");
}

/// write-file-atomic#28: the new file must replace the old file, also there.
#[test]
fn records_on_another_file_system_are_replaced_there() {
    let world = World::new();
    let Ok(elsewhere) = tempfile::Builder::new()
        .prefix("whosup-cli-")
        .tempdir_in("/dev/shm")
    else {
        eprintln!("skipped: there is no /dev/shm");
        return;
    };
    let state = world.home().join(".local/state");
    std::fs::create_dir_all(&state).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), state.join("whosup")).unwrap();
    let mut agent = ShellAgent::start(&world);
    agent.hook(&event(
        &world,
        &world.s1,
        "UserPromptSubmit",
        json!({"prompt": "p"}),
    ));
    agent.hook(&event(&world, &world.s1, "Stop", json!({})));
    assert_eq!(record_of(&world, &world.s1)["phase"], "idle");
    let file = elsewhere
        .path()
        .join(format!("sessions/claude-code/{}.json", world.s1));
    assert!(file.is_file());
    let link = std::fs::symlink_metadata(state.join("whosup")).unwrap();
    assert!(link.is_symlink() && !file_of(&world, &world.s1, "new").exists());
}

/// Disk full: torn and fused lines, runs of NULs, an empty record (oh-my-pi#8596).
#[test]
fn the_intact_lines_of_a_log_that_a_full_disk_has_torn_count() {
    let world = World::new();
    let mut agent = ShellAgent::start(&world);
    agent.hook(&event(
        &world,
        &world.s1,
        "UserPromptSubmit",
        json!({"prompt": "p"}),
    ));
    let whole = std::fs::read_to_string(file_of(&world, &world.s1, "jsonl")).unwrap();
    let line = whole.trim();
    let mut log = std::fs::File::options()
        .append(true)
        .open(file_of(&world, &world.s1, "jsonl"))
        .unwrap();
    let half = &line[..line.len() / 2];
    write!(log, "\n{half}\n{line}{line}\n\0\0\0\0\0\0\n{half}").unwrap();
    std::fs::write(file_of(&world, &world.s1, "json"), "").unwrap();
    let sessions = world.run(["list", "--json", "--cwd", "."]).sessions();
    assert_eq!(sessions[0]["phase"], "working", "{sessions:?}");
    agent.hook(&event(&world, &world.s1, "Stop", json!({})));
    let record = record_of(&world, &world.s1);
    assert_eq!(
        (&record["phase"], &record["turns"]),
        (&json!("idle"), &json!(1))
    );
}
