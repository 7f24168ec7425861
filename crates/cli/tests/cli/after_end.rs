//! The commands for sessions that have ended.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::shell_agent::{ShellAgent, event, log_of, record_of};
use super::world::{WHOSUP, World, is_of_the_dead, wait_for};

/// How many hooks, and how many sweeps, find the same end at once.
const AT_ONCE: usize = 8;

/// A program that stores its input in a new file in `given` of the world.
fn keeper(world: &World) -> PathBuf {
    let given = world.home().join("given");
    std::fs::create_dir_all(&given).unwrap();
    let script = format!(
        "#!/bin/sh\ncat > '{0}/'$$.new && mv '{0}/'$$.new '{0}/'$$.json\n",
        given.display()
    );
    program(world, "bin/keep", &script)
}

fn program(world: &World, name: &str, script: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    let path = world.write(name, script);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// The stored inputs.
fn given(world: &World) -> Vec<Value> {
    let files = std::fs::read_dir(world.home().join("given")).unwrap();
    let paths = files.map(|file| file.unwrap().path());
    let whole = paths.filter(|path| {
        path.extension()
            .is_some_and(|extension| extension == "json")
    });
    whole
        .map(|path| serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap())
        .collect()
}

/// Whether commands for ended sessions are still running in this world.
fn is_anything_running(world: &World) -> bool {
    let home = format!("HOME={}", world.home().display());
    let is_ours = |process: &Path| {
        let read = |name: &str| std::fs::read(process.join(name)).unwrap_or_default();
        let line = String::from_utf8_lossy(&read("cmdline")).into_owned();
        let is_named = line.split('\0').any(|word| word == "after-end");
        let environment = read("environ");
        let mut variables = environment.split(|byte| *byte == 0);
        is_named && variables.any(|variable| variable == home.as_bytes())
    };
    let processes = std::fs::read_dir("/proc").unwrap();
    processes.flatten().any(|process| is_ours(&process.path()))
}

/// Waits until `count` inputs are stored and no command runs any more.
#[track_caller]
fn wait_for_given(world: &World, count: usize) -> Vec<Value> {
    wait_for("what is run at the end", || {
        (given(world).len() >= count && !is_anything_running(world)).then_some(())
    });
    let all = given(world);
    assert_eq!(all.len(), count, "{all:?}");
    all
}

pub(crate) fn hook_log(world: &World) -> String {
    std::fs::read_to_string(world.home().join(".local/state/whosup/hook.log")).unwrap_or_default()
}

#[test]
fn an_end_that_a_hook_reports_is_passed_on_once_with_the_session() {
    let world = World::new();
    keeper(&world);
    world.write(
        ".config/whosup/config.toml",
        "on_end = [[\"~/bin/keep\"]]\n",
    );
    let mut agent = ShellAgent::start(&world);
    let report = |agent: &mut ShellAgent<'_>, name: &str, more: Value| {
        agent.report(&world.s1, name, more);
    };
    report(&mut agent, "UserPromptSubmit", json!({"prompt": "p"}));
    report(&mut agent, "SessionEnd", json!({"reason": "exit"}));
    report(&mut agent, "SessionEnd", json!({"reason": "exit"}));
    assert_eq!(world.run(["sweep"]).out, "nothing to end\n");
    let all = wait_for_given(&world, 1);
    let session = &all[0]["sessions"][0];
    assert_eq!(session["session_id"], world.s1.as_str(), "{session}");
    assert_eq!(
        (&session["phase"], &session["end_cause"]),
        (&json!("ended"), &json!("exit-hook"))
    );
    assert_eq!(all[0]["schema_version"], 1);
    // A resumed session that ends again has ended again.
    report(&mut agent, "UserPromptSubmit", json!({"prompt": "q"}));
    report(&mut agent, "SessionEnd", json!({"reason": "exit"}));
    wait_for_given(&world, 2);
    assert_eq!(hook_log(&world), "");
}

#[test]
fn an_end_that_many_find_at_once_is_passed_on_once() {
    let world = World::new();
    keeper(&world);
    world.write(
        ".config/whosup/config.toml",
        "on_end = [[\"~/bin/keep\"]]\n",
    );
    let mut agent = ShellAgent::start(&world);
    let prompt = json!({"prompt": "p"});
    for session in [&world.s1, &world.s2] {
        agent.report(session, "UserPromptSubmit", prompt.clone());
    }
    // The first by hooks,
    let payload = agent.payload(&event(&world, &world.s1, "SessionEnd", json!({})));
    let line = format!("'{WHOSUP}' hook claude-code < '{}' & ", payload.display());
    agent.run(&(line.repeat(AT_ONCE) + "wait"));
    agent.kill();
    // the second by sweeps.
    let sweeps: Vec<_> = (0..AT_ONCE)
        .map(|_| {
            Command::new(WHOSUP)
                .arg("sweep")
                .env_clear()
                .env("HOME", world.home())
                .env("PATH", std::env::var_os("PATH").unwrap_or_default())
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut sweep in sweeps {
        assert!(sweep.wait().unwrap().success());
    }
    // A hook that could not pass it on has at least noted the end.
    world.run(["sweep"]);
    let all = wait_for_given(&world, 2);
    let mut ids: Vec<&Value> = all
        .iter()
        .map(|one| &one["sessions"][0]["session_id"])
        .collect();
    ids.sort_by_key(|id| id.to_string());
    assert_eq!(ids, [&json!(world.s1), &json!(world.s2)]);
    for session in [&world.s1, &world.s2] {
        assert_eq!(record_of(&world, session)["end_passed_on"], true);
        let lines = log_of(&world, session);
        let passed_on = lines.iter().filter(|line| !line["passed_on"].is_null());
        assert_eq!(passed_on.count(), 1, "{lines:?}");
    }
}

#[test]
fn a_command_that_fails_or_never_reads_keeps_no_other_from_running() {
    let world = World::new();
    keeper(&world);
    program(&world, "bin/fail", "#!/bin/sh\nexec 0<&-\nexit 7\n");
    let config = "on_end = [[\"~/bin/fail\"], [\"~/bin/none\", \"x\"], [\"~/bin/keep\"]]\n";
    world.write(".config/whosup/config.toml", config);
    let mut agent = ShellAgent::start(&world);
    agent.report(&world.s1, "Stop", json!({}));
    agent.kill();
    let said = world.run(["status"]);
    assert_eq!((said.status, said.err.as_str()), (0, ""));
    let all = wait_for_given(&world, 1);
    let session = &all[0]["sessions"][0];
    let cause = session["end_cause"].as_str().unwrap();
    assert!(is_of_the_dead(cause), "{session}");
    let log = hook_log(&world);
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines.len(), 2, "{log}");
    assert!(lines[0].contains("bin/fail`: exit status: 7"), "{log}");
    assert!(lines[1].contains("bin/none x`: No such file"), "{log}");
}

#[test]
fn an_agent_run_at_the_end_of_a_session_triggers_no_commands() {
    let world = World::new();
    let keep = keeper(&world);
    // It poses as an agent of its own, with a session that begins and ends.
    let inner = |name: &str| {
        let hook_event = event(&world, &world.s2, name, json!({}));
        let payload = world.write(&format!("payload-{name}"), hook_event.to_string());
        format!("'{WHOSUP}' hook claude-code < '{}'\n", payload.display())
    };
    let script = format!(
        "#!/bin/sh\n{}{}exec '{}'\n",
        inner("SessionStart"),
        inner("SessionEnd"),
        keep.display()
    );
    program(&world, "bin/condense", &script);
    let config = "on_end = [[\"~/bin/condense\"]]\n";
    world.write(".config/whosup/config.toml", config);
    let mut agent = ShellAgent::start(&world);
    agent.report(&world.s1, "SessionEnd", json!({}));
    wait_for_given(&world, 1);
    let record = record_of(&world, &world.s2);
    assert_eq!(
        (&record["phase"], &record["aftermath"]),
        (&json!("ended"), &json!(true))
    );
    world.run(["sweep"]);
    wait_for_given(&world, 1);
}

#[test]
fn ends_without_configured_commands_are_not_passed_on_later() {
    let world = World::new();
    keeper(&world);
    let mut agent = ShellAgent::start(&world);
    agent.report(&world.s1, "SessionEnd", json!({}));
    world.write(
        ".config/whosup/config.toml",
        "on_end = [[\"~/bin/keep\"]]\n",
    );
    world.run(["sweep"]);
    agent.report(&world.s2, "SessionEnd", json!({}));
    let all = wait_for_given(&world, 1);
    assert_eq!(all[0]["sessions"][0]["session_id"], world.s2.as_str());
}
