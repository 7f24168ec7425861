//! `watch`: each change as it happens, with real processes and files.

use std::io::{BufRead as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::sandboxes::is_root;
use super::schema::check;
use super::shell_agent::ShellAgent;
use super::watching::{Watching, is, session_in};
use super::world::{WHOSUP, World, now_ms, said, signal, wait_for};

/// An event is noticed far sooner than by the look that is taken every minute.
const EVENT_TIME_MAX: Duration = Duration::from_secs(20);

#[test]
fn the_death_of_a_process_is_a_change_of_its_session_and_no_look_is_waited_for() {
    let world = World::new();
    let mut posing = world.pose_as_claude();
    world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    world.write_claude_transcript(".claude", &world.s1);
    let mut watching = Watching::start(&world);
    assert!(is(&watching.state, &world.s1, "liveness", "live"));
    let killed = Instant::now();
    posing.kill();
    let seen = watching.until("the death", |state| {
        is(state, &world.s1, "liveness", "exited")
    });
    eprintln!("from the kill to the line: {:?}", seen - killed);
    assert!(seen - killed < EVENT_TIME_MAX);
    let (_, change) = watching.read.last().unwrap();
    assert_eq!(change["kind"], "changed");
    assert_eq!(change["session_id"], world.s1.as_str());
    let liveness = &change["changes"]["liveness"];
    assert_eq!(liveness, &json!({ "old": "live", "new": "exited" }));
    assert_eq!(
        session_in(&watching.state, &world.s1).unwrap()["orphan"],
        true
    );
}

#[test]
fn a_session_that_begins_is_added_and_one_that_leaves_nothing_is_removed() {
    let world = World::new();
    let mut watching = Watching::start(&world);
    assert_eq!(watching.state["sessions"], json!([]));
    let began = Instant::now();
    let mut posing = world.pose_as_claude();
    let record = world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    let seen = watching.until("the session", |state| {
        is(state, &world.s1, "liveness", "live")
    });
    assert!(seen - began < EVENT_TIME_MAX, "{:?}", seen - began);
    let added = |(_, line): &(Instant, Value)| line["kind"] == "added";
    assert!(watching.read.iter().any(added), "{:#?}", watching.read);
    // A clean exit removes the record.
    std::fs::remove_file(record).unwrap();
    posing.kill();
    posing.reap();
    watching.until("the end", |state| session_in(state, &world.s1).is_none());
    let removed = watching
        .read
        .iter()
        .find(|(_, line)| line["kind"] == "removed");
    let (_, removed) = removed.unwrap();
    assert_eq!(removed["session"]["session_id"], world.s1.as_str());
    assert!(["exited", "hidden"].contains(&removed["why"].as_str().unwrap()));
    assert_ne!(removed["session"]["liveness"], "live", "{removed:#}");
}

#[test]
fn a_configuration_that_is_misspelled_meanwhile_shows_no_prompt() {
    let world = World::new();
    let posing = world.pose_as_claude();
    world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    world.write_claude_transcript(".claude", &world.s1);
    // Renamed into place: it is never empty, which would show prompts.
    let config = |text| {
        let new = ".config/whosup/config.new";
        world.write(new, text);
        let new = world.home().join(new);
        std::fs::rename(&new, new.with_extension("toml")).unwrap();
    };
    config("prompts = \"hide\"");
    let mut watching = Watching::start(&world);
    config("promts = \"hide\"");
    // Something happens, so that it looks.
    let second = world.pose_as_claude();
    world.write_claude_record(second.pid(), &second.start(), &world.s2);
    let is_reported = |state: &Value| {
        state["problems"]
            .to_string()
            .contains("unknown field `promts`")
    };
    watching.until("the second session and the problem", |state| {
        session_in(state, &world.s2).is_some() && is_reported(state)
    });
    assert_eq!(
        session_in(&watching.state, &world.s1).unwrap()["title"],
        Value::Null
    );
}

#[test]
fn a_file_that_is_renamed_over_another_is_seen_each_time() {
    let world = World::new();
    let posing = world.pose_as_claude();
    let record = world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    let mut watching = Watching::start(&world);
    let text = std::fs::read_to_string(&record).unwrap();
    for (status, phase) in [("busy", "working"), ("idle", "idle"), ("busy", "working")] {
        let other = record.with_extension("new");
        let mut fields: Value = serde_json::from_str(&text).unwrap();
        fields["status"] = json!(status);
        fields["statusUpdatedAt"] = json!(now_ms());
        std::fs::write(&other, fields.to_string()).unwrap();
        let renamed = Instant::now();
        std::fs::rename(&other, &record).unwrap();
        let seen = watching.until(phase, |state| is(state, &world.s1, "phase", phase));
        assert!(seen - renamed < EVENT_TIME_MAX, "{:?}", seen - renamed);
    }
}

#[test]
fn the_first_hook_ever_is_noticed() {
    let world = World::new();
    let mut agent = ShellAgent::start(&world);
    let mut watching = Watching::start(&world);
    for (event, more, phase) in [
        ("SessionStart", json!({ "source": "startup" }), "starting"),
        ("UserPromptSubmit", json!({ "prompt": "Fix it" }), "working"),
        (
            "PermissionRequest",
            json!({ "tool_name": "Bash" }),
            "waiting",
        ),
        ("Stop", json!({}), "idle"),
    ] {
        let reported_at = Instant::now();
        agent.report(&world.s1, event, more);
        let seen = watching.until(phase, |state| is(state, &world.s1, "phase", phase));
        assert!(seen.saturating_duration_since(reported_at) < EVENT_TIME_MAX);
    }
}

#[test]
fn nothing_is_printed_while_nothing_happens() {
    let world = World::new();
    let posing = world.pose_as_claude();
    world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    world.write_claude_transcript(".claude", &world.s1);
    let mut watching = Watching::start(&world);
    std::thread::sleep(Duration::from_secs(3));
    while watching.take(Duration::ZERO) {}
    let lines: Vec<_> = watching.read.iter().skip(1).map(|(_, line)| line).collect();
    let is_noise = |line: &&Value| line["kind"] == "problems" || line["kind"] == "unattributed";
    assert!(lines.iter().all(is_noise), "{lines:#?}");
}

#[test]
fn it_ends_with_its_reader_and_refuses_what_would_read_every_session() {
    let world = World::new();
    let mut child = Command::new(WHOSUP)
        .arg("watch")
        .env_clear()
        .env("HOME", world.home())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let status = wait_for("the end of `watch`", || child.try_wait().unwrap());
    assert_eq!(status.code(), Some(0));
    for refused in [
        &["--all"][..],
        &["--liveness", "exited"],
        &["--phase", "ended"],
    ] {
        let said = said(world.whosup().arg("watch").args(refused));
        assert_eq!(said.status, 2, "{refused:?}");
        assert!(said.err.contains("every session"), "{}", said.err);
    }
}

#[test]
fn without_watches_it_polls_and_reports_that() {
    check_polling("echo 2 > /proc/sys/user/max_inotify_watches", "no watches");
}

#[test]
fn without_an_inotify_instance_it_polls_and_reports_that() {
    let limit = "echo 0 > /proc/sys/user/max_inotify_instances";
    check_polling(limit, "max_user_instances");
}

/// Under a limit of a user namespace (the machine's limit stays), changes come by polling, and a
/// problem names the limit.
#[track_caller]
fn check_polling(limit: &str, named: &str) {
    if !is_root() {
        return;
    }
    let world = World::new();
    let posing = world.pose_as_claude();
    let record = world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    let script = format!("{limit} && exec \"$0\" \"$@\"");
    let mut command = Command::new("unshare");
    command.args(["-U", "-r", "sh", "-c", &script, WHOSUP]);
    let mut probe = Command::new("unshare");
    let probe = probe
        .args(["-U", "-r", "sh", "-c", &script, "true"])
        .status();
    if !probe.is_ok_and(|status| status.success()) {
        eprintln!("skipped: no limit can be set in a user namespace here");
        return;
    }
    let mut watching = Watching::start_by(&world, command, &["--cwd", "."]);
    watching.until("the problem", |state| has_problem(state, named));
    let text = std::fs::read_to_string(&record).unwrap();
    let mut fields: Value = serde_json::from_str(&text).unwrap();
    fields["status"] = json!("busy");
    fields["statusUpdatedAt"] = json!(now_ms());
    std::fs::write(&record, fields.to_string()).unwrap();
    let written = Instant::now();
    let seen = watching.until("work", |state| is(state, &world.s1, "phase", "working"));
    assert!(seen - written < EVENT_TIME_MAX, "{:?}", seen - written);
}

/// Whether it is reported that something is polled, and why.
fn has_problem(state: &Value, why: &str) -> bool {
    let mut problems = state["problems"].as_array().unwrap().iter();
    problems.any(|problem| {
        let message = problem["message"].as_str().unwrap();
        message.contains(why) && message.contains("every 2 s")
    })
}

#[test]
fn few_descriptors_are_left_to_looks_and_exits_are_found_by_polling() {
    let world = World::new();
    let mut posing = world.pose_as_claude();
    world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 32 && exec \"$0\" \"$@\"", WHOSUP]);
    let mut watching = Watching::start_by(&world, command, &["--cwd", "."]);
    watching.until("the problem", |state| has_problem(state, "ulimit -n"));
    posing.kill();
    posing.reap();
    watching.until("the exit", |state| {
        session_in(state, &world.s1).is_none_or(|session| session["liveness"] == "exited")
    });
}

#[test]
fn a_session_whose_directory_cannot_be_listed_is_unknown_and_comes_back() {
    let world = World::new();
    let posing = world.pose_as_claude();
    let record = world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    let mut watching = Watching::start(&world);
    watching.until("life", |state| is(state, &world.s1, "liveness", "live"));
    // A link that leads to itself: also root can't list that.
    let directory = record.parent().unwrap();
    let aside = directory.with_extension("aside");
    std::fs::rename(directory, &aside).unwrap();
    std::os::unix::fs::symlink(directory, directory).unwrap();
    watching.until("doubt", |state| {
        is(state, &world.s1, "liveness", "unknown") && is(state, &world.s1, "reason", "unreadable")
    });
    std::fs::remove_file(directory).unwrap();
    std::fs::rename(&aside, directory).unwrap();
    watching.until("life", |state| is(state, &world.s1, "liveness", "live"));
}

/// Waits until a process has looked once, and watches.
fn until_it_watches(pid: u32) {
    wait_for("the thread that watches", || {
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
        let names = threads.flatten().map(|one| one.path().join("comm"));
        let mut names = names.filter_map(|name| std::fs::read_to_string(name).ok());
        names
            .any(|name| name.starts_with("whosup-live"))
            .then_some(())
    });
}

#[test]
fn a_session_that_could_not_be_read_ends_with_its_process() {
    let world = World::new();
    let mut posing = world.pose_as_claude();
    let record = world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    let mut watching = Watching::start(&world);
    watching.until("life", |state| is(state, &world.s1, "liveness", "live"));
    let mut wait = Command::new(WHOSUP);
    wait.args(["wait", &world.s1, "--until", "exited"])
        .env_clear()
        .env("HOME", world.home())
        .current_dir(world.work_dir());
    let mut wait = wait.stdout(Stdio::null()).spawn().unwrap();
    until_it_watches(wait.id());
    std::fs::write(&record, "{\"pid\":").unwrap();
    watching.until("doubt", |state| {
        is(state, &world.s1, "reason", "unreadable")
    });
    let owner = &session_in(&watching.state, &world.s1).unwrap()["owner"];
    assert_eq!(owner["pid"], posing.pid());
    posing.kill();
    watching.until("the end", |state| session_in(state, &world.s1).is_none());
    let mut lines = watching.read.iter().rev();
    let (_, removed) = lines.find(|(_, line)| line["kind"] == "removed").unwrap();
    assert_eq!(removed["why"], "exited");
    assert_eq!(wait.wait().unwrap().code(), Some(0));
}

#[test]
fn a_session_that_could_not_be_read_goes_when_its_process_has_another() {
    let world = World::new();
    let posing = world.pose("bin/my-agent", |_| {});
    let announce = |session: &str| {
        let fields = json!({
            "pid": posing.pid(),
            "my_agent_version": null,
            "process_start": posing.start(),
            "process_start_kind": "linux-ticks",
        });
        world.announce("my-agent", session, fields)
    };
    let file = announce(&world.s1);
    let mut watching = Watching::start(&world);
    watching.until("life", |state| is(state, &world.s1, "liveness", "live"));
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    watching.until("doubt", |state| {
        is(state, &world.s1, "reason", "unreadable")
    });
    announce(&world.s2);
    watching.until("the other session alone", |state| {
        is(state, &world.s2, "liveness", "live") && session_in(state, &world.s1).is_none()
    });
}

#[test]
fn it_ends_by_a_signal_also_while_nobody_reads() {
    let world = World::new();
    let (reader, writer) = std::io::pipe().unwrap();
    // A full pipe: the first line is waited for.
    let size = rustix::pipe::fcntl_getpipe_size(&writer).unwrap();
    (&writer).write_all(&vec![b'\n'; size]).unwrap();
    let mut child = Command::new(WHOSUP)
        .args(["watch", "--ndjson"])
        .env_clear()
        .env("HOME", world.home())
        .current_dir(world.work_dir())
        .stdin(Stdio::null())
        .stdout(writer)
        .spawn()
        .unwrap();
    until_it_watches(child.id());
    signal(child.id(), "TERM");
    let status = child.wait().unwrap();
    assert_eq!(status.signal(), Some(15));
    drop(reader);
}

#[test]
fn a_hang_up_that_is_ignored_at_the_start_stays_ignored() {
    let world = World::new();
    let ignoring = |arguments: &[&str]| {
        let mut command = Command::new("sh");
        command
            .args(["-c", "trap '' HUP; exec \"$0\" \"$@\"", WHOSUP])
            .args(arguments);
        command.env_clear().env("HOME", world.home());
        command.current_dir(world.work_dir()).stdin(Stdio::null());
        command
    };
    let commands = [
        &["watch", "--ndjson"][..],
        &["notify", "--exec", "true"],
        &["serve", "--listen", "127.0.0.1:0"],
    ];
    for arguments in commands {
        let mut child = ignoring(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The first line comes when all signals are heard.
        let line = |stream: &mut dyn std::io::Read| {
            let mut line = String::new();
            std::io::BufReader::new(stream)
                .read_line(&mut line)
                .unwrap();
            assert!(!line.is_empty(), "{arguments:?}");
        };
        match arguments[0] {
            "notify" => line(child.stderr.as_mut().unwrap()),
            _ => line(child.stdout.as_mut().unwrap()),
        }
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let mut lines = status.lines();
        let ignored = lines.find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
        let ignored = u64::from_str_radix(ignored.trim(), 16).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(ignored & 1, 1, "{arguments:?} {ignored:x}");
    }
}

#[test]
fn earlier_reports_come_first_with_since() {
    let world = World::new();
    let mut agent = ShellAgent::start(&world);
    agent.report(&world.s1, "SessionStart", json!({ "source": "startup" }));
    agent.report(&world.s1, "UserPromptSubmit", json!({ "prompt": "Fix it" }));
    let mut child = Command::new(WHOSUP)
        .args(["watch", "--since", "1h"])
        .env_clear()
        .env("HOME", world.home())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    let lines: Vec<Value> = lines
        .take(3)
        .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
        .collect();
    child.kill().unwrap();
    child.wait().unwrap();
    let kinds: Vec<_> = lines
        .iter()
        .map(|line| line["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["event", "event", "snapshot"]);
    assert_eq!(lines[0]["session_id"], world.s1.as_str());
    assert_eq!(lines[1]["event"], "turn-started");
    for line in &lines {
        check("watch", &[], line);
    }
}

#[test]
fn earlier_reports_of_a_directory_are_found_through_a_link() {
    let world = World::new();
    let link = world.root().join("link");
    std::os::unix::fs::symlink(world.work_dir(), &link).unwrap();
    let mut agent = ShellAgent::start(&world);
    let start = json!({ "source": "startup", "cwd": link });
    agent.report(&world.s1, "SessionStart", start);
    for directory in [world.work_dir(), link] {
        let options = ["--since", "1h", "--cwd", directory.to_str().unwrap()];
        let mut watching = Watching::start_by(&world, Command::new(WHOSUP), &options);
        watching.until("the snapshot", |state| state["kind"] == "snapshot");
        let kinds: Vec<_> = watching
            .read
            .iter()
            .map(|(_, line)| line["kind"].clone())
            .collect();
        assert_eq!(kinds, ["event", "snapshot"], "{directory:?}");
    }
}
