//! `doctor`: contradicting claims, hidden properties of the host, and unreadable files.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use serde_json::{Value, json};

use super::sandboxes::{is_root, run_in};
use super::shell_agent::{ShellAgent, owner_elsewhere, write_record};
use super::terminal::Tmux;
use super::world::{WHOSUP, World, copy_program, said, wait_for};

/// The owner in a record, for a live process.
fn owner(world: &World, pid: u32, start: &str) -> Value {
    let host = world.run(["list", "--json"]).json()["host"].clone();
    json!({
        "pid": pid, "start_stamp": start, "start_stamp_kind": "linux-ticks",
        "hostname": host["hostname"], "boot_id": host["boot_id"],
        "pid_namespace": host["pid_namespace"],
    })
}

/// The finding with both words, and the line with its fix: other tests' agents may have
/// findings too.
#[track_caller]
fn finding(answer: &str, words: &str, more: &str) -> (String, String) {
    let mut lines = answer.lines();
    let what = lines.find(|line| line.contains(words) && line.contains(more));
    let what = what.unwrap_or_else(|| panic!("no `{words}` in: {answer}"));
    let fix = lines.next().unwrap_or_default();
    let fix = fix.strip_prefix("  fix: ");
    let fix = fix.unwrap_or_else(|| panic!("no fix of `{words}` in: {answer}"));
    (what.to_owned(), fix.to_owned())
}

#[test]
fn two_sessions_of_one_process_are_reported_if_neither_is_known_as_newer() {
    let world = World::new();
    let agent = ShellAgent::start(&world);
    let owner = owner(&world, agent.pid(), &agent.start_stamp());
    write_record(&world, &world.s1, &json!({ "owner": owner }));
    write_record(&world, &world.s2, &json!({ "owner": owner }));
    let answer = world.run(["doctor"]);
    assert_eq!(answer.status, 1, "{}", answer.err);
    let (what, fix) = finding(
        &answer.out,
        &format!("process {} is claimed for", agent.pid()),
        &world.s1,
    );
    for session in [&world.s1, &world.s2] {
        assert!(what.contains(session.as_str()), "{what}");
        assert!(
            fix.contains(&format!("whosup why claude-code:{session}")),
            "{fix}"
        );
    }

    // The second is later: `/clear`.
    let later = json!({ "owner": owner, "last_event_at": "2026-01-01T00:00:01.000Z" });
    write_record(&world, &world.s2, &later);
    let answer = world.run(["doctor"]);
    let words = format!("process {} is claimed for", agent.pid());
    assert!(!answer.out.contains(&words), "{}", answer.out);
}

#[test]
fn two_live_owners_in_one_pane_are_reported() {
    let world = World::new();
    let program = world
        .root()
        .join("opt/@anthropic-ai/claude-code/bin/claude");
    std::fs::create_dir_all(program.parent().unwrap()).unwrap();
    copy_program("/bin/sleep", &program);
    let pids = world.root().join("pids");
    let line = format!(
        "cd '{}'; HOME='{}'; export HOME; '{program}' 600 & '{program}' 601 & \
         jobs -p > '{pids}.new'; mv '{pids}.new' '{pids}'; wait",
        world.work_dir().display(),
        world.home().display(),
        program = program.display(),
        pids = pids.display(),
    );
    let Some(tmux) = Tmux::start(&world, 80, &line) else {
        return;
    };
    let text = wait_for("both to be started", || std::fs::read_to_string(&pids).ok());
    let pids: Vec<u32> = text.lines().map(|pid| pid.parse().unwrap()).collect();
    let start = |pid: u32| {
        wait_for("the agent to run", || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
            let (name, fields) = stat.rsplit_once(") ").unwrap();
            let start = fields.split_whitespace().nth(19).unwrap().to_owned();
            name.ends_with("(claude").then_some(start)
        })
    };
    for (pid, session) in pids.iter().zip([&world.s1, &world.s2]) {
        world.write_claude_record(*pid, &start(*pid), session);
    }
    let socket = tmux.run(&[
        "display-message",
        "-p",
        "#{socket_path},#{pid},0 #{session_name}:#{window_name}.#{pane_index}",
    ]);
    let socket = String::from_utf8(socket.stdout).unwrap();
    let (variable, place) = socket.trim().split_once(' ').unwrap();
    let answer = said(world.whosup().env("TMUX", variable).arg("doctor"));
    assert_eq!(answer.status, 1, "{}", answer.err);
    let (what, fix) = finding(&answer.out, "are both in the pane", &world.s1);
    assert!(what.ends_with(&format!("tmux {place}")), "{what}");
    for session in [&world.s1, &world.s2] {
        assert!(what.contains(session.as_str()), "{what}");
        assert!(
            fix.contains(&format!("whosup why claude-code:{session}")),
            "{fix}"
        );
    }
    tmux.run(&["kill-server"]);
    for pid in pids {
        wait_for("the agents to end", || {
            (!std::path::Path::new(&format!("/proc/{pid}/exe")).exists()).then_some(())
        });
    }
}

/// Runs `doctor` after `line` has changed what the kernel reports; `None` where that can't
/// be done.
fn doctor_after(world: &World, line: &str) -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: it takes root to mount");
        return None;
    }
    let script = format!("{{ {line}; }} >&2 || exit 77; exec '{WHOSUP}' doctor");
    let output = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", &script])
        .env_clear()
        .env("HOME", world.home())
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .current_dir(world.work_dir())
        .output();
    match output {
        Ok(output) if output.status.code() == Some(1) => {
            Some(String::from_utf8(output.stdout).unwrap())
        }
        Ok(output) if output.status.code() == Some(77) => {
            eprintln!("skipped: cannot mount here: {output:?}");
            None
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_unknown_boot_is_reported_and_ends_nothing() {
    let world = World::new();
    let mut agent = ShellAgent::start(&world);
    agent.prompt(&world.s1);
    agent.kill();
    let empty = world.write("empty", "");
    let line = format!(
        "mount --bind '{}' /proc/sys/kernel/random/boot_id",
        empty.display()
    );
    let Some(answer) = doctor_after(&world, &line) else {
        return;
    };
    let (what, fix) = finding(&answer, "cannot determine the boot: ", "");
    assert!(what.ends_with("; no session is ended by a sweep"), "{what}");
    assert!(fix.ends_with("mount -t proc proc /proc"), "{fix}");
    assert!(!answer.contains("ended 1 session"), "{answer}");
    let record = super::shell_agent::record_of(&world, &world.s1);
    assert_eq!(record["phase"], "working");
}

#[test]
fn limits_of_watching_are_reported_with_the_command_that_raises_them() {
    let world = World::new();
    let few = world.write("few", "12\n");
    let bind = |name: &str| {
        let few = few.display();
        format!("mount --bind '{few}' /proc/sys/fs/inotify/{name}")
    };
    let line = [bind("max_user_watches"), bind("max_user_instances")].join(" && ");
    let Some(answer) = doctor_after(&world, &line) else {
        return;
    };
    for (name, least) in [("max_user_watches", 8192), ("max_user_instances", 128)] {
        let words = format!("few files can be watched: fs.inotify.{name} is 12");
        let (_, fix) = finding(&answer, &words, "");
        assert_eq!(fix, format!("sysctl -w fs.inotify.{name}={least}"));
    }
}

#[test]
fn an_exited_session_that_its_record_cannot_end_is_reported() {
    let world = World::new();
    let mut agent = ShellAgent::start(&world);
    let mut owner = owner(&world, agent.pid(), &agent.start_stamp());
    owner["pid_namespace"] = Value::Null;
    agent.kill();
    write_record(&world, &world.s1, &json!({ "owner": owner }));
    let answer = world.run(["doctor"]);
    let (what, fix) = finding(
        &answer.out,
        "its record says too little to end it",
        &world.s1,
    );
    assert!(what.contains(&world.s1), "{what}");
    assert!(
        fix.ends_with(&format!("whosup end claude-code:{}", world.s1)),
        "{fix}"
    );
}

#[test]
fn a_live_session_whose_recorded_process_is_gone_is_reported() {
    let world = World::new();
    let mut agent = ShellAgent::start(&world);
    agent.prompt(&world.s1);
    agent.kill();
    // The registry says that another process resumed it on another host: it is unknown.
    let record = world.write_claude_record(4711, "Sat Nov 28 10:00:00 2026", &world.s1);
    let answer = world.run(["doctor"]);
    let (what, fix) = finding(&answer.out, "has exited and is not ended: ", &world.s1);
    assert!(what.contains(&world.s1), "{what}");
    assert!(fix.starts_with("whosup why claude-code:"), "{fix}");
    assert!(
        fix.ends_with(&format!("whosup end claude-code:{}", world.s1)),
        "{fix}"
    );
    std::fs::remove_file(record).unwrap();
    let answer = world.run(["doctor"]);
    assert!(
        answer
            .out
            .starts_with("ended 1 session whose agent had exited\n"),
        "{}",
        answer.out
    );
}

#[test]
fn unreadable_files_are_reported_with_where_to_look() {
    let world = World::new();
    let settings = world.write(".claude/settings.json", "{ \"hooks\": ");
    world.write(".claude/sessions/4711.json", "{");
    let answer = world.run(["doctor"]);
    assert_eq!(answer.status, 1, "{}", answer.err);
    let (_, fix) = finding(&answer.out, settings.to_str().unwrap(), "");
    assert_eq!(
        fix,
        "correct that file, then whosup hooks status claude-code"
    );
    // At most ten problems are shown, over all homes: those of this home alone.
    if !is_root() {
        return;
    }
    let wrapper = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];
    let Some(answer) = run_in(&world, &wrapper, "\"$WHOSUP\" doctor; true") else {
        return;
    };
    let (what, fix) = finding(&answer, "ignored: ", "4711.json");
    assert!(what.contains("4711.json"), "{what}");
    assert!(fix.contains("whosup list --problems"), "{fix}");
}

#[test]
fn hooks_that_run_another_program_are_reported() {
    let world = World::new();
    world.write(".claude/settings.json", "{}\n");
    let elsewhere = world.root().join("opt/bin/whosup");
    std::fs::create_dir_all(elsewhere.parent().unwrap()).unwrap();
    copy_program(WHOSUP, &elsewhere);
    let mut install = assert_cmd::Command::new(&elsewhere);
    install
        .args(["hooks", "install", "--yes"])
        .env_clear()
        .env("HOME", world.home())
        .current_dir(world.work_dir());
    assert_eq!(said(&mut install).status, 0);
    std::fs::remove_file(&elsewhere).unwrap();
    std::fs::write(&elsewhere, "#!/bin/sh\necho something else\n").unwrap();
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&elsewhere, mode).unwrap();
    let answer = world.run(["doctor"]);
    let (what, fix) = finding(
        &answer.out,
        "which is no whosup",
        elsewhere.to_str().unwrap(),
    );
    assert!(what.starts_with("* hooks of claude-code run `"), "{what}");
    assert_eq!(fix, "whosup hooks install claude-code");

    std::fs::set_permissions(&elsewhere, std::fs::Permissions::from_mode(0o644)).unwrap();
    let answer = world.run(["doctor"]);
    let (_, fix) = finding(
        &answer.out,
        "which does not answer: ",
        elsewhere.to_str().unwrap(),
    );
    assert_eq!(fix, "whosup hooks install claude-code");
}

#[test]
fn every_finding_of_a_damaged_home_says_what_to_do() {
    let world = World::new();
    write_record(&world, &world.s1, &json!({ "owner": owner_elsewhere() }));
    let later = json!({ "phase": "idle", "last_event_at": "2100-01-01T00:00:00.000Z" });
    write_record(&world, &world.s2, &later);
    world.write(".local/state/whosup/sessions/claude-code/x.json", "{");
    world.write(".claude/sessions/4711.json", "{");
    world.write(".claude/settings.json", "{ \"hooks\": ");
    let answer = world.run(["doctor"]);
    let lines = answer.out.lines().filter(|line| !line.starts_with("ok: "));
    let lines: Vec<&str> = lines.collect();
    assert!(lines.len() >= 10, "{}", answer.out);
    for pair in lines.chunks(2) {
        assert!(!pair[0].starts_with("  "), "{}", answer.out);
        assert!(pair[1].starts_with("  fix: "), "{}", answer.out);
    }
}

/// The findings of one check in the JSON.
#[track_caller]
fn findings_of(document: &Value, check: &str) -> Vec<String> {
    let mut checks = document["checks"].as_array().unwrap().iter();
    let found = checks.find(|one| one["check"] == check).unwrap();
    let findings = found["findings"].as_array().unwrap();
    assert_eq!(found["ok"], findings.is_empty(), "{found}");
    let whats = findings.iter().map(|finding| finding["what"].as_str());
    whats.map(|what| what.unwrap().to_owned()).collect()
}

#[test]
fn orphans_and_sessions_that_are_open_twice_are_found() {
    let world = World::new();
    let mut dead = world.pose_as_claude();
    world.write_claude_record(dead.pid(), &dead.start(), &world.s1);
    world.write_claude_transcript(".claude", &world.s1);
    dead.kill();
    dead.reap();
    let (one, two) = (world.pose_as_claude(), world.pose_as_claude());
    for agent in [&one, &two] {
        world.write_claude_record(agent.pid(), &agent.start(), &world.s2);
    }
    let answer = world.run(["doctor", "--json"]);
    assert_eq!(answer.status, 1, "{}", answer.err);
    let document = answer.json();
    let orphans = findings_of(&document, "orphans").concat();
    assert!(orphans.contains(&world.s1), "{document:#}");
    let twice = findings_of(&document, "open-twice").concat();
    assert!(twice.contains(&world.s2), "{document:#}");
    let pid = format!(" {}", one.pid());
    assert!(twice.contains(&pid), "{document:#}");
    // A hidden session is no finding.
    let dismissed = world.run(["dismiss", world.s1.as_str()]);
    assert_eq!(dismissed.status, 0, "{}", dismissed.err);
    let document = world.run(["doctor", "--json"]).json();
    let orphans = findings_of(&document, "orphans").concat();
    assert!(!orphans.contains(&world.s1), "{document:#}");
}

#[test]
fn each_check_has_a_line_if_nothing_is_wrong() {
    let world = World::new();
    let names = world.run(["doctor", "--json"]).json();
    let names = names["checks"].as_array().unwrap();
    let is_fine = |check: &&Value| check["ok"] == true;
    let fine = names.iter().filter(is_fine).count();
    let lines = world.run(["doctor"]).out;
    let lines = lines.lines().filter(|line| line.starts_with("ok: "));
    // Agents that start and exit on this machine may change the count by one.
    assert!(fine.abs_diff(lines.count()) <= 1 && fine >= 4, "{names:#?}");
}

#[test]
fn redaction_leaves_no_home_user_or_host() {
    let world = World::new();
    let host = world.run(["list", "--json"]).json()["host"]["hostname"].clone();
    let host = host.as_str().unwrap().to_owned();
    let mut owner = owner_elsewhere();
    owner["hostname"] = json!("box-of-mallory");
    write_record(&world, &world.s1, &json!({ "owner": owner }));
    world.write(".claude/sessions/4711.json", "{");
    world.write_claude_transcript(".claude", &world.s2);
    let personal = [
        world.home().display().to_string(),
        host,
        "mallory".to_owned(),
    ];
    let doctor = |more: &[&str]| {
        let mut command = world.whosup();
        command.env("USER", "mallory").arg("doctor").args(more);
        said(&mut command).out
    };
    // It would be there.
    let plain = doctor(&["--json"]);
    assert!(
        plain.contains(&personal[0]) && plain.contains("mallory"),
        "{plain}"
    );
    for more in [&["--redact"][..], &["--redact", "--json"]] {
        let answer = doctor(more);
        assert!(answer.contains("~/.claude/sessions/4711.json"), "{answer}");
        for name in &personal {
            let mut words = answer.split(|one: char| !(one.is_alphanumeric() || one == '_'));
            let is_there = match name.contains('/') {
                true => answer.contains(name),
                false => words.any(|word| word == name),
            };
            assert!(!is_there, "{name}: {answer}");
        }
        assert!(!answer.contains("Fix the flaky login test"), "{answer}");
    }
}
