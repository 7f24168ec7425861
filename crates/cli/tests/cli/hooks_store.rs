//! Hooks and their files: many at once, long logs, full or read-only disks.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use serde_json::json;

use super::shell_agent::{ShellAgent, event, file_of, log_of, record_of};
use super::world::{WHOSUP, World};

/// A user that owns no files.
const NOBODY_UID: u32 = 65_534;

#[test]
fn sixty_hooks_at_once_lose_nothing() {
    check_hooks_at_once(60, "");
}

#[test]
fn hooks_that_wait_for_a_processor_lose_nothing() {
    const PINNED: &str = "taskset -c $(taskset -c -p $$ | sed 's/.*[ ,-]//')";
    let try_it = format!("{PINNED} true");
    let tried = Command::new("sh").args(["-c", &try_it]).status();
    if !tried.is_ok_and(|status| status.success()) {
        eprintln!("skipped: taskset (Debian: util-linux) is not here");
        return;
    }
    // Together they need one processor for some seconds.
    check_hooks_at_once(250, PINNED);
}

/// Runs `count` hooks, each by the command `before`.
#[track_caller]
fn check_hooks_at_once(count: usize, before: &str) {
    let world = World::new();
    let mut agent = ShellAgent::start(&world);
    let mut line = String::new();
    for number in 0..count {
        let prompt = json!({"prompt": format!("prompt {number}")});
        let payload = agent.payload(&event(&world, &world.s1, "UserPromptSubmit", prompt));
        line += &format!(
            "{before} '{WHOSUP}' hook claude-code < '{}' & ",
            payload.display()
        );
    }
    let (status, said) = agent.run(&(line + "wait"));
    assert_eq!((status.as_str(), said.as_str()), ("0", ""));
    let lines = log_of(&world, &world.s1);
    assert_eq!(lines.len(), count, "{}", super::after_end::hook_log(&world));
    for number in 0..count {
        let prompt = format!("prompt {number}");
        assert!(
            lines.iter().any(|line| line["prompt"] == prompt.as_str()),
            "{prompt}"
        );
    }
    assert!(lines.iter().all(|line| line["owner"]["pid"] == agent.pid()));
    // A reader sees the log, also where the record was not written since.
    agent.report(&world.s1, "Stop", json!({}));
    assert_eq!(record_of(&world, &world.s1)["turns"], count);
}

#[test]
fn a_record_that_is_missing_broken_or_behind_gives_way_to_the_log() {
    let world = World::new();
    let mut agent = ShellAgent::start(&world);
    agent.report(&world.s1, "SessionStart", json!({"source": "startup"}));
    let behind = std::fs::read(file_of(&world, &world.s1, "json")).unwrap();
    agent.prompt(&world.s1);
    for record in [
        None,
        Some(Vec::new()),
        Some(b"{\"schema".to_vec()),
        Some(behind),
    ] {
        let path = file_of(&world, &world.s1, "json");
        match &record {
            None => std::fs::remove_file(&path).unwrap(),
            Some(bytes) => std::fs::write(&path, bytes).unwrap(),
        }
        let sessions = world.run(["list", "--json", "--cwd", "."]).sessions();
        assert_eq!(sessions[0]["phase"], "working", "{record:?}: {sessions:?}");
    }
    agent.report(&world.s1, "Stop", json!({}));
    assert_eq!(record_of(&world, &world.s1)["turns"], 1);
}

#[test]
fn a_log_that_grows_long_is_shortened_and_forgets_nothing_that_counts() {
    let world = World::new();
    let mut agent = ShellAgent::start(&world);
    agent.report(&world.s1, "SessionStart", json!({"source": "startup"}));
    agent.prompt(&world.s1);
    let path = file_of(&world, &world.s1, "jsonl");
    let line = std::fs::read_to_string(&path)
        .unwrap()
        .lines()
        .last()
        .unwrap()
        .to_owned();
    let mut log = std::fs::File::options().append(true).open(&path).unwrap();
    let mut turns = 1;
    while std::fs::metadata(&path).unwrap().len() <= 1 << 20 {
        let id = format!("\"id\":\"copy-{turns}\"");
        let (_, rest) = line.split_once(",\"at\"").unwrap();
        writeln!(log, "\n{{{id},\"at\"{rest}").unwrap();
        turns += 1;
    }
    agent.report(&world.s1, "Stop", json!({}));
    assert!(std::fs::metadata(&path).unwrap().len() < 64 * 1024);
    let record = record_of(&world, &world.s1);
    assert_eq!(
        (&record["turns"], &record["phase"]),
        (&json!(turns), &json!("idle"))
    );
    agent.report(&world.s1, "UserPromptSubmit", json!({"prompt": "q"}));
    let record = record_of(&world, &world.s1);
    assert_eq!(
        (&record["turns"], &record["last_prompt"]),
        (&json!(turns + 1), &json!("q"))
    );
}

#[test]
fn a_directory_that_may_not_be_written_stays_as_it_is_and_stops_no_agent() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: needs root to give a directory to another user");
        return;
    }
    let world = World::new();
    let program = world.root().join("whosup");
    crate::world::copy_program(WHOSUP, &program);
    for path in [world.root(), program.as_path()] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut agent = ShellAgent::start(&world);
    agent.report(&world.s1, "SessionStart", json!({"source": "startup"}));
    let paths = ["json", "jsonl", "lock"].map(|extension| file_of(&world, &world.s1, extension));
    let before = paths.clone().map(|path| std::fs::read(path).unwrap());
    // The files and directories are root's: another user can't write there.
    let hook = Command::new("setpriv")
        .args([
            format!("--reuid={NOBODY_UID}"),
            format!("--regid={NOBODY_UID}"),
            "--clear-groups".to_owned(),
        ])
        .arg(&program)
        .args(["hook", "claude-code"])
        .env_clear()
        .env("HOME", world.home())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut hook) = hook else {
        eprintln!("skipped: there is no setpriv");
        return;
    };
    let hook_event = event(&world, &world.s1, "Stop", json!({}));
    hook.stdin
        .take()
        .unwrap()
        .write_all(hook_event.to_string().as_bytes())
        .unwrap();
    let output = hook.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(
        output.stdout.is_empty() && output.stderr.is_empty(),
        "{output:?}"
    );
    assert_eq!(paths.map(|path| std::fs::read(path).unwrap()), before);
}

#[test]
fn a_full_disk_loses_nothing_that_was_there() {
    let world = World::new();
    let state = world.home().join(".local/state");
    std::fs::create_dir_all(&state).unwrap();
    let report = |name: &str| {
        let path = world.root().join(format!("full-{name}"));
        std::fs::write(&path, event(&world, &world.s1, name, json!({})).to_string()).unwrap();
        format!(
            "'{WHOSUP}' hook claude-code < '{}' || exit 9\n",
            path.display()
        )
    };
    let records = state.join("whosup/sessions/claude-code");
    let script = format!(
        "mount -t tmpfs -o size=128k none '{state}' || exit 77\n\
         {start}{turn}\
         cat '{records}/{id}.json' > '{root}/before.json'\n\
         dd if=/dev/zero of='{state}/filler' bs=1k 2> '{root}/full.txt'\n\
         dd if=/dev/zero of='{state}/filler2' bs=1 count=4096 2>> '{root}/full.txt'\n\
         i=0; while [ $i -lt 20 ]; do i=$((i+1)); {turn} done\n\
         cat '{records}/{id}.json' > '{root}/full.json'\n\
         rm '{state}/filler' '{state}/filler2'\n\
         {stop}\
         cp '{records}/{id}.json' '{records}/{id}.jsonl' '{root}/'\n\
         ls '{records}' > '{root}/left.txt'\n",
        start = report("SessionStart"),
        turn = report("UserPromptSubmit"),
        stop = report("Stop"),
        state = state.display(),
        records = records.display(),
        root = world.root().display(),
        id = world.s1,
    );
    let done = Command::new("unshare")
        .args(["--mount", "sh", "-c", &script])
        .env_clear()
        .env("HOME", world.home())
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .output();
    match done {
        Ok(done) if done.status.success() => {}
        Ok(done) if matches!(done.status.code(), Some(1 | 77)) => {
            eprintln!("skipped: no file system may be mounted here");
            return;
        }
        Ok(done) => panic!("{done:?}"),
        Err(error) => {
            eprintln!("skipped: there is no unshare: {error}");
            return;
        }
    }
    let read = |name: &str| std::fs::read_to_string(world.root().join(name)).unwrap();
    assert!(
        read("full.txt").contains("No space left"),
        "{}",
        read("full.txt")
    );
    let parse = |name: &str| -> serde_json::Value { serde_json::from_str(&read(name)).unwrap() };
    assert_eq!(parse("before.json")["phase"], "working");
    assert_eq!(parse("full.json")["phase"], "working");
    let record = parse(&format!("{}.json", world.s1));
    assert_eq!(record["phase"], "idle");
    let log = read(&format!("{}.jsonl", world.s1));
    let whole: Vec<serde_json::Value> = log
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    assert!(whole.len() >= 3, "{log}");
    assert_eq!(whole[0]["event"], "session-started:other");
    assert_eq!(whole[whole.len() - 1]["event"], "turn-ended");
    assert!(!read("left.txt").contains(".tmp"), "{}", read("left.txt"));
}

/// A hook that is killed between creating the log and writing to it leaves an empty one.
#[test]
fn an_empty_log_is_no_session_and_no_problem() {
    let world = World::new();
    let log = file_of(&world, &world.s1, "jsonl");
    std::fs::create_dir_all(log.parent().unwrap()).unwrap();
    std::fs::write(&log, "").unwrap();
    let answer = world.run(["list", "--json", "--all", "--cwd", "."]).json();
    let problems = answer["problems"].as_array().unwrap().iter();
    let is_ours = |problem: &serde_json::Value| problem.to_string().contains(&world.s1);
    assert!(!problems.clone().any(is_ours), "{answer}");
    assert_eq!(answer["sessions"], json!([]));
    let mut agent = ShellAgent::start(&world);
    agent.prompt(&world.s1);
    assert_eq!(record_of(&world, &world.s1)["turns"], 1);
    // A record that can't be read beside it is one.
    std::fs::write(&log, "").unwrap();
    std::fs::write(file_of(&world, &world.s1, "json"), "{").unwrap();
    let answer = world.run(["list", "--json", "--all", "--cwd", "."]).json();
    let mut problems = answer["problems"].as_array().unwrap().iter();
    assert!(problems.any(is_ours), "{answer}");
}
