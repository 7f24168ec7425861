//! Hooks: what they record, and what must never happen to them.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use super::shell_agent::{ShellAgent, event, file_of, log_of, record_of};
use super::world::{WHOSUP, World, said, wait_for};

/// How many hooks speak of one session at once.
const AT_ONCE: usize = 60;
/// How many hooks are killed at some point of their work.
const KILLED: u64 = 1_000;
/// The user that owns nothing.
const NOBODY: u32 = 65_534;

#[test]
fn a_hook_names_its_agent_as_the_owner_through_shells_and_wrappers() {
    let world = World::new();
    let mut agent = ShellAgent::start(&world);
    let payload = agent.payload(&event(
        &world,
        &world.s1,
        "SessionStart",
        json!({"source": "startup"}),
    ));
    let line = format!(
        "sh -c \"sh -c 'timeout 30 env A=b {WHOSUP} hook claude-code < {}; true'; true\"",
        payload.display()
    );
    assert_eq!(agent.run(&line), ("0".to_owned(), String::new()));
    let record = record_of(&world, &world.s1);
    assert_eq!(record["owner"]["pid"], agent.pid());
    assert_eq!(record["owner"]["start_stamp"], agent.start_stamp());
    for told in [
        "hostname",
        "boot_id",
        "pid_namespace",
        "start_stamp_kind",
        "executable",
    ] {
        assert!(!record["owner"][told].is_null(), "{told}: {record}");
    }
    assert_eq!(record["phase"], "starting");
    assert_eq!(
        record["home"],
        world.home().join(".claude").to_str().unwrap()
    );
    for (extension, mode) in [("json", 0o600), ("jsonl", 0o600), ("lock", 0o600)] {
        let file = std::fs::metadata(file_of(&world, &world.s1, extension)).unwrap();
        assert_eq!(file.permissions().mode() & 0o777, mode, "{extension}");
    }
    let directory = file_of(&world, &world.s1, "json");
    let directory = std::fs::metadata(directory.parent().unwrap()).unwrap();
    assert_eq!(directory.permissions().mode() & 0o777, 0o700);
}

#[test]
fn a_session_is_followed_through_its_turns_to_its_end() {
    let world = World::new();
    let mut agent = ShellAgent::start(&world);
    world.write("src/shop/.git/HEAD", "ref: refs/heads/topic/login\n");
    let steps = [
        ("SessionStart", json!({"source": "startup"}), "starting"),
        (
            "UserPromptSubmit",
            json!({"prompt": "Fix the flaky login test"}),
            "working",
        ),
        ("PreToolUse", json!({"tool_name": "Bash"}), "working"),
        ("PermissionRequest", json!({"tool_name": "Bash"}), "waiting"),
        (
            "Notification",
            json!({"notification_type": "permission_prompt"}),
            "waiting",
        ),
        ("PostToolUse", json!({"tool_name": "Bash"}), "working"),
        ("Stop", json!({}), "idle"),
        (
            "Notification",
            json!({"notification_type": "idle_prompt"}),
            "idle",
        ),
    ];
    for (name, more, phase) in steps {
        agent.tell(&world.s1, name, more);
        let record = record_of(&world, &world.s1);
        assert_eq!(record["phase"], phase, "after {name}");
        let is_waiting = phase == "waiting";
        assert_eq!(
            record["waiting_for"] == "permission",
            is_waiting,
            "after {name}"
        );
    }
    let record = record_of(&world, &world.s1);
    assert_eq!(
        (&record["turns"], &record["git_branch"]),
        (&json!(1), &json!("topic/login"))
    );
    assert_eq!(record["last_prompt"], "Fix the flaky login test");
    let sessions = world.run(["list", "--json", "--cwd", "."]).sessions();
    let [session] = sessions.as_slice() else {
        panic!("{sessions:?}");
    };
    assert_eq!(
        (&session["liveness"], &session["confidence"]),
        (&json!("live"), &json!("proven"))
    );
    assert_eq!(
        (&session["phase"], &session["owner"]["pid"]),
        (&json!("idle"), &json!(agent.pid()))
    );

    // `/clear`: one ends, another starts in the same process.
    agent.tell(&world.s1, "SessionEnd", json!({"reason": "clear"}));
    agent.tell(&world.s2, "SessionStart", json!({"source": "clear"}));
    // It is told twice, and something comes late.
    agent.tell(&world.s1, "SessionEnd", json!({"reason": "other"}));
    agent.tell(&world.s1, "Stop", json!({}));
    let record = record_of(&world, &world.s1);
    assert_eq!(
        (&record["phase"], &record["end_reason"]),
        (&json!("ended"), &json!("clear"))
    );
    assert_eq!(record["end_cause"], "exit-hook");
    assert_eq!(record_of(&world, &world.s2)["phase"], "starting");
    let sessions = world.run(["list", "--json", "--cwd", "."]).sessions();
    assert_eq!(sessions[0]["session_id"], world.s2, "{sessions:?}");
}

#[test]
fn the_end_of_an_earlier_process_does_not_end_the_session_of_a_later_one() {
    let world = World::new();
    let mut first = ShellAgent::start(&world);
    first.tell(&world.s1, "SessionStart", json!({"source": "startup"}));
    let mut second = ShellAgent::start(&world);
    second.tell(&world.s1, "SessionStart", json!({"source": "resume"}));
    first.tell(&world.s1, "SessionEnd", json!({"reason": "other"}));
    let record = record_of(&world, &world.s1);
    assert_eq!(record["phase"], "idle");
    assert_eq!(record["owner"]["pid"], second.pid());
}

#[test]
fn a_hook_of_another_agent_has_no_owner_and_clears_the_one_there_was() {
    let world = World::new();
    let mut agent = ShellAgent::start(&world);
    let start = event(
        &world,
        &world.s1,
        "SessionStart",
        json!({"source": "startup"}),
    );
    let payload = agent.payload(&start);
    let line = format!("'{WHOSUP}' hook qwen-code < '{}'", payload.display());
    assert_eq!(agent.run(&line), ("0".to_owned(), String::new()));
    let record = file_of(&world, &world.s1, "json");
    let record = record
        .to_str()
        .unwrap()
        .replace("/claude-code/", "/qwen-code/");
    let record: serde_json::Value =
        serde_json::from_slice(&std::fs::read(record).unwrap()).unwrap();
    assert!(record["owner"].is_null(), "{record}");
}

#[test]
fn a_daemon_that_runs_many_sessions_is_marked_shared_and_proves_no_life() {
    let world = World::new();
    let mut daemon = ShellAgent::start_codex_daemon(&world);
    let told = event(
        &world,
        &world.s1,
        "UserPromptSubmit",
        json!({"prompt": "p"}),
    );
    let payload = daemon.payload(&told);
    // It has the variables of the pane that once started it.
    let line = format!(
        "TMUX=/run/tmux,1,0 TMUX_PANE=%3 '{WHOSUP}' hook codex < '{}'",
        payload.display()
    );
    assert_eq!(daemon.run(&line), ("0".to_owned(), String::new()));
    let path = format!(".local/state/whosup/sessions/codex/{}.json", world.s1);
    let path = world.home().join(path);
    let record =
        || -> serde_json::Value { serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap() };
    assert_eq!(record()["owner"]["pid"], daemon.pid());
    assert_eq!(record()["owner"]["shared"], true);
    assert!(record()["pane"].is_null(), "{}", record());
    // It may have let go of the session long ago: the session's lock would tell.
    let id = format!("codex:{}", world.s1);
    let said = world.run(["check", id.as_str()]);
    assert_ne!(said.status, 0, "{}{}", said.out, said.err);
    assert_eq!(world.run(["sweep"]).out, "nothing to end\n");
    daemon.kill();
    let said = world.run(["sweep"]);
    assert!(said.out.starts_with("ended codex session"), "{}", said.out);
    assert_eq!(record()["end_cause"], "process-gone");
}

#[test]
fn the_id_of_the_transcript_that_is_written_wins() {
    let world = World::new();
    let mut agent = ShellAgent::start(&world);
    let transcript = world.write_claude_transcript(".claude", &world.s1);
    let told = json!({"source": "startup", "transcript_path": transcript});
    agent.tell(&world.s2, "SessionStart", told);
    assert_eq!(record_of(&world, &world.s1)["owner"]["pid"], agent.pid());
    assert!(!file_of(&world, &world.s2, "json").exists());
}

#[test]
fn prompts_are_kept_out_when_the_configuration_says_so() {
    let world = World::new();
    world.write(".config/whosup/config.toml", "prompts = \"hide\"\n");
    let mut agent = ShellAgent::start(&world);
    let prompt = json!({"prompt": "a secret of mine"});
    agent.tell(&world.s1, "UserPromptSubmit", prompt.clone());
    // One that can't be understood may have said so too.
    world.write(".config/whosup/config.toml", "prompts = hide\n");
    agent.tell(&world.s1, "UserPromptSubmit", prompt);
    for extension in ["json", "jsonl"] {
        let text = std::fs::read_to_string(file_of(&world, &world.s1, extension)).unwrap();
        assert!(!text.contains("secret"), "{text}");
    }
    assert_eq!(record_of(&world, &world.s1)["phase"], "working");
}

#[test]
fn a_hook_says_nothing_and_exits_with_0_whatever_it_is_given() {
    let world = World::new();
    let huge = format!("{{\"session_id\":\"s\",\"x\":\"{}\"}}", "x".repeat(2 << 20));
    let cases: &[(&[&str], &str, &str)] = &[
        (&["hook", "claude-code"], "", "empty"),
        (&["hook", "claude-code"], "nonsense", "JSON"),
        (
            &["hook", "claude-code"],
            "{\"hook_event_name\":\"Stop\",\"session_id\":\"../x\"}",
            "session_id",
        ),
        (&["hook", "claude-code"], &huge, "longer than"),
        (&["hook", "no-such-agent"], "{}", "no-such-agent"),
        (&["hook", "../../etc"], "{}", "../../etc"),
        (&["hook"], "{}", "hook"),
        (&["hook", "--no-such-option"], "{}", "hook"),
    ];
    for (arguments, input, noted) in cases {
        let answer = said(world.whosup().args(*arguments).write_stdin(*input));
        assert_eq!(
            (answer.status, answer.out.as_str(), answer.err.as_str()),
            (0, "", ""),
            "{arguments:?}"
        );
        let log = std::fs::read_to_string(world.home().join(".local/state/whosup/hook.log"));
        let log = log.unwrap_or_default();
        let last = log.lines().last().unwrap_or_default();
        assert!(last.contains(noted), "{arguments:?}: {last}");
    }
}

#[test]
fn input_that_never_ends_is_given_up_after_a_second() {
    let world = World::new();
    for (input, is_event) in [("{\"hook_event_name\":", false), ("", false)] {
        let mut hook = hook_of(&world);
        let began = Instant::now();
        let mut stdin = hook.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).unwrap();
        let status = wait_for("the hook to give up", || hook.try_wait().unwrap());
        assert!(status.success());
        assert!(began.elapsed() >= Duration::from_millis(900), "{is_event}");
        drop(stdin);
    }
    // A whole event is taken though nobody closes the input.
    let mut hook = hook_of(&world);
    let mut stdin = hook.stdin.take().unwrap();
    let told = event(&world, &world.s1, "Stop", json!({}));
    stdin.write_all(told.to_string().as_bytes()).unwrap();
    let status = wait_for("the hook to end", || hook.try_wait().unwrap());
    assert!(status.success());
    assert_eq!(record_of(&world, &world.s1)["phase"], "idle");
    drop(stdin);
}

#[test]
fn the_log_of_problems_stays_small() {
    let world = World::new();
    let log = world.write(".local/state/whosup/hook.log", "x".repeat(300 * 1024));
    let answer = said(world.whosup().args(["hook", "nobody"]).write_stdin("{}"));
    assert_eq!(answer.status, 0);
    assert!(std::fs::metadata(&log).unwrap().len() < 1024);
    assert!(log.with_extension("log.old").exists());
}

#[test]
fn sixty_hooks_at_once_lose_nothing() {
    let world = World::new();
    let mut agent = ShellAgent::start(&world);
    let mut line = String::new();
    for number in 0..AT_ONCE {
        let told = json!({"prompt": format!("prompt {number}")});
        let payload = agent.payload(&event(&world, &world.s1, "UserPromptSubmit", told));
        line += &format!("'{WHOSUP}' hook claude-code < '{}' & ", payload.display());
    }
    let (status, said) = agent.run(&(line + "wait"));
    assert_eq!((status.as_str(), said.as_str()), ("0", ""));
    let lines = log_of(&world, &world.s1);
    assert_eq!(lines.len(), AT_ONCE);
    for number in 0..AT_ONCE {
        let prompt = format!("prompt {number}");
        assert!(
            lines.iter().any(|line| line["prompt"] == prompt.as_str()),
            "{prompt}"
        );
    }
    assert!(lines.iter().all(|line| line["owner"]["pid"] == agent.pid()));
    // A reader sees the log, also where nobody has written the record since.
    agent.tell(&world.s1, "Stop", json!({}));
    assert_eq!(record_of(&world, &world.s1)["turns"], AT_ONCE);
}

#[test]
fn hooks_that_are_killed_leave_whole_lines_a_right_record_and_no_stuck_lock() {
    let world = World::new();
    for number in 0..KILLED {
        let mut hook = hook_of(&world);
        let told = event(
            &world,
            &world.s1,
            "UserPromptSubmit",
            json!({"prompt": "p"}),
        );
        // It may be gone before it has read all of it.
        let mut stdin = hook.stdin.take().unwrap();
        stdin.write_all(told.to_string().as_bytes()).ok();
        drop(stdin);
        // At another point of its work each time.
        let until = Instant::now() + Duration::from_micros(number * 97 % 12_000);
        while Instant::now() < until {
            std::thread::yield_now();
        }
        hook.kill().unwrap();
        hook.wait().unwrap();
    }
    let began = Instant::now();
    let answer = said(
        world
            .whosup()
            .args(["hook", "claude-code"])
            .write_stdin(event(&world, &world.s1, "Stop", json!({})).to_string()),
    );
    assert_eq!(answer.status, 0);
    let lines = log_of(&world, &world.s1);
    let record = record_of(&world, &world.s1);
    assert_eq!(
        record["turns"],
        lines.len() - 1,
        "after {:?}",
        began.elapsed()
    );
    assert_eq!(record["phase"], "idle");
    let size = std::fs::metadata(file_of(&world, &world.s1, "jsonl"))
        .unwrap()
        .len();
    assert_eq!(record["log_bytes"], size);
}

#[test]
fn a_record_that_is_missing_broken_or_behind_gives_way_to_the_log() {
    let world = World::new();
    let mut agent = ShellAgent::start(&world);
    agent.tell(&world.s1, "SessionStart", json!({"source": "startup"}));
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
    agent.tell(&world.s1, "Stop", json!({}));
    assert_eq!(record_of(&world, &world.s1)["turns"], 1);
}

#[test]
fn a_log_that_grows_long_is_shortened_and_forgets_nothing_that_counts() {
    let world = World::new();
    let mut agent = ShellAgent::start(&world);
    agent.tell(&world.s1, "SessionStart", json!({"source": "startup"}));
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
    agent.tell(&world.s1, "Stop", json!({}));
    assert!(std::fs::metadata(&path).unwrap().len() < 64 * 1024);
    let record = record_of(&world, &world.s1);
    assert_eq!(
        (&record["turns"], &record["phase"]),
        (&json!(turns), &json!("idle"))
    );
    agent.tell(&world.s1, "UserPromptSubmit", json!({"prompt": "q"}));
    let record = record_of(&world, &world.s1);
    assert_eq!(
        (&record["turns"], &record["last_prompt"]),
        (&json!(turns + 1), &json!("q"))
    );
}

#[test]
fn a_directory_that_may_not_be_written_stays_as_it_is_and_stops_no_agent() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: needs root to hand a directory to somebody else");
        return;
    }
    let world = World::new();
    let program = world.root().join("whosup");
    crate::world::copy_program(WHOSUP, &program);
    for path in [world.root(), program.as_path()] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut agent = ShellAgent::start(&world);
    agent.tell(&world.s1, "SessionStart", json!({"source": "startup"}));
    let paths = ["json", "jsonl", "lock"].map(|extension| file_of(&world, &world.s1, extension));
    let before = paths.clone().map(|path| std::fs::read(path).unwrap());
    // Root's files, and root's directories: somebody else may write nothing there.
    let hook = Command::new("setpriv")
        .args([
            format!("--reuid={NOBODY}"),
            format!("--regid={NOBODY}"),
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
    let told = event(&world, &world.s1, "Stop", json!({}));
    hook.stdin
        .take()
        .unwrap()
        .write_all(told.to_string().as_bytes())
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
    let tell = |name: &str| {
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
        start = tell("SessionStart"),
        turn = tell("UserPromptSubmit"),
        stop = tell("Stop"),
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
    assert!(!read("left.txt").contains(".new"), "{}", read("left.txt"));
}

/// A hook that waits for its input; no agent runs it.
fn hook_of(world: &World) -> std::process::Child {
    Command::new(WHOSUP)
        .args(["hook", "claude-code"])
        .env_clear()
        .env("HOME", world.home())
        .current_dir(world.work_dir())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}
