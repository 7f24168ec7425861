//! `whosup list`, of real processes.

use std::process::{Command, Stdio};

use super::world::{WHOSUP, World, said, wait_for};

/// The cells of the only row in a list of the working directory.
#[track_caller]
fn cells(world: &World, arguments: &[&str]) -> Vec<String> {
    let own = ["list", "--cwd", ".", "--no-header"];
    let said = world.run(own.iter().chain(arguments));
    let lines: Vec<&str> = said.out.lines().collect();
    let [line] = lines.as_slice() else {
        panic!("{arguments:?}: {} {}", said.out, said.err);
    };
    line.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn resources_of_live_sessions_are_measured_on_request() {
    let world = World::new();
    let program = world.shell_as_claude();
    // A child is busy. It ends with its parent, which ends with a pipe of the test.
    let mut agent = Command::new(&program)
        .args([
            "-c",
            "/bin/sh -c 'while :; do :; done' & cat >/dev/null; kill $!; wait $!",
        ])
        .env_clear()
        .env("HOME", world.home())
        .current_dir(world.work_dir())
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let start = start_of(agent.id());
    world.write_claude_record(agent.id(), &start, &world.s1);

    let columns = ["--columns", "cpu,mem,threads,io,full-id"];
    let shown = wait_for("the child to be busy", || {
        let cells = cells(&world, &columns);
        let percent: f64 = cells[0].strip_suffix('%')?.parse().ok()?;
        (percent > 0.0).then_some(cells)
    });
    assert!(shown[1].ends_with(['k', 'M']), "{shown:?}");
    assert_eq!(shown[2], "1", "{shown:?}");
    assert!(shown[3].contains('/'), "{shown:?}");
    assert_eq!(shown[4], world.s1);
    let sorted = ["list", "-q", "--cwd", ".", "--sort", "mem"];
    assert_eq!(world.run(sorted).out.trim(), world.s1);

    let json = |more: &[&str]| {
        let line = ["list", "--json", "--cwd", "."];
        let sessions = world.run(line.iter().chain(more)).sessions();
        sessions[0]["resources"].clone()
    };
    assert!(json(&[]).is_null());
    let used = json(&["--resources"]);
    assert!(used["tree"]["cpu_percent"].is_number(), "{used}");
    assert!(used["tree"]["processes"].as_u64() >= Some(2), "{used}");
    assert!(used["owner"]["rss_bytes"].is_number(), "{used}");
    assert_eq!(used["shared"], false);
    let template = ["--format", "{resources.owner.threads}"];
    let said = world.run(["list", "--cwd", "."].iter().chain(&template));
    assert_eq!(said.out, "1\n", "{}", said.err);

    drop(agent.stdin.take());
    agent.wait().unwrap();
}

fn start_of(pid: u32) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let after_name = stat.rsplit_once(')').unwrap().1;
    after_name.split_whitespace().nth(19).unwrap().to_owned()
}

#[test]
fn the_ids_are_those_that_another_command_takes() {
    let world = World::new();
    let posing = world.pose_as_claude();
    world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    for name in ["list", "ls", "ps"] {
        let said = world.run([name, "-q", "--cwd", "."]);
        assert_eq!(said.out, format!("{}\n", world.s1), "{name}: {}", said.err);
    }
    let mut shell = Command::new("sh");
    shell
        .args([
            "-c",
            "\"$0\" list -q --cwd . | xargs -n1 \"$0\" pid",
            WHOSUP,
        ])
        .env("HOME", world.home())
        .current_dir(world.work_dir());
    let output = shell.output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(printed, format!("{}\n", posing.pid()));
}

#[test]
fn times_and_dates_are_local() {
    let world = World::new();
    // Its first record is of 2026-11-27T20:57:20Z.
    world.write_claude_transcript(".claude", &world.s1);
    let run = |zone: &str, arguments: &[&str]| {
        let list = ["list", "--cwd", ".", "--liveness", "exited", "--no-header"];
        let mut command = world.whosup();
        let arguments = list.iter().chain(arguments);
        said(command.env("TZ", zone).args(arguments)).out
    };
    let started = ["--columns", "started"];
    assert_eq!(run("UTC0", &started), "2026-11-27 20:57:20\n");
    assert_eq!(run("JST-9", &started), "2026-11-28 05:57:20\n");
    let ids = |zone, since| run(zone, &["-q", "--since", since]).lines().count();
    assert_eq!(ids("UTC0", "2026-11-27T20:57"), 1);
    assert_eq!(ids("UTC0", "2026-11-28"), 0);
    assert_eq!(ids("JST-9", "2026-11-28"), 1);
    assert_eq!(ids("JST-9", "2026-11-28T06:00"), 0);
    assert_eq!(ids("UTC0", "100 years"), 1);
    let shown = said(world.whosup().env("TZ", "JST-9").args(["show", &world.s1]));
    assert!(shown.out.contains("2026-11-28 05:57:20"), "{}", shown.out);
    // Programs read UTC.
    let json = ["list", "--cwd", ".", "--all", "--json"];
    let said = said(world.whosup().env("TZ", "JST-9").args(json));
    let session = &said.sessions()[0];
    assert_eq!(session["started_at"], "2026-11-27T20:57:20.486Z");
}
