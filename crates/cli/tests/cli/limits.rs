//! What still works where no thread or process can be started, and where a command leaves
//! its output to another process.

use std::os::unix::net::UnixListener;
use std::process::Command;

use serde_json::{Value, json};

use super::sandboxes::{is_root, run_in};
use super::shell_agent::event;
use super::world::{World, copy_program};

/// Users without processes, so that the process limit counts only those of a test, and no other
/// test sees the fake server of panes.
const LONELY: [&str; 2] = ["54321", "54322"];
/// The paths of the programs that pose as Claude Code and as a tmux server, below a world.
const CLAUDE: &str = "opt/@anthropic-ai/claude-code/bin/claude";
const TMUX_SERVER: &str = "opt/tmux: server";

#[track_caller]
fn run_to_end(words: &[&str]) {
    let status = Command::new(words[0]).args(&words[1..]).status();
    assert!(status.unwrap().success(), "{words:?}");
}

/// Runs a line of shell as a user with an agent in a terminal and the socket of a fake tmux
/// server, so that panes are asked for. `None` if that is not possible here.
#[track_caller]
fn run_as_lonely(world: &World, user: &str, line: &str) -> Option<String> {
    if !is_root() {
        return None;
    }
    for program in [CLAUDE, TMUX_SERVER] {
        let path = world.root().join(program);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        copy_program("/bin/cat", &path);
    }
    let socket = world.root().join("socket");
    let _listener = UnixListener::bind(&socket).unwrap();
    let fifo = world.home().join("fifo");
    run_to_end(&["mkfifo", fifo.to_str().unwrap()]);
    run_to_end(&["chmod", "-R", "a+rX", world.root().to_str().unwrap()]);
    let owned = [world.home(), socket.clone()].map(|path| path.to_str().unwrap().to_owned());
    run_to_end(&["chown", "-R", user, &owned[0], &owned[1]]);
    let wrapper = [
        "setpriv",
        "--reuid",
        user,
        "--regid",
        user,
        "--clear-groups",
        "--",
    ];
    let line = format!(
        r#"
cd '{work_dir}' || exit 1
script -q -f -c "exec '{claude}'" /dev/null <>"$HOME/fifo" >/dev/null 2>&1 &
agent=$!
'{tmux}' <>"$HOME/fifo" >/dev/null 2>&1 &
server=$!
trap 'kill $agent $server' EXIT
tries=0
until "$WHOSUP" list --json 2>/dev/null | grep -q '"work_dir": *"{work_dir}"'; do
    tries=$((tries + 1)); [ $tries = 600 ] && exit 1
    sleep 0.1
done
export TMUX='{socket},1,0'
{line}
"#,
        work_dir = world.work_dir().display(),
        claude = world.root().join(CLAUDE).display(),
        tmux = world.root().join(TMUX_SERVER).display(),
        socket = socket.display(),
    );
    let answer = run_in(world, &wrapper, &line);
    Some(answer.unwrap_or_else(|| panic!("whosup or the agent failed")))
}

/// An agent's burst of processes, or a container's `pids.max`, left no thread: whosup
/// panicked, and the hook's event was lost.
#[test]
fn without_threads_an_event_is_kept_and_sessions_are_listed() {
    let world = World::new();
    let hook_event = event(
        &world,
        &world.s1,
        "SessionStart",
        json!({"source": "startup"}),
    );
    let payload = world.write("event", hook_event.to_string());
    world.write_claude_transcript(".claude", &world.s2);
    // The agent and the shell have reached the limit already.
    let line = format!(
        r#"
if prlimit --nproc=1 sh -c '(true); :' 2>/dev/null; then echo unlimited; exit 0; fi
prlimit --nproc=1 "$WHOSUP" hook claude-code <'{payload}' || exit 1
prlimit --nproc=1 "$WHOSUP" list --all --json
"#,
        payload = payload.display(),
    );
    let Some(answer) = run_as_lonely(&world, LONELY[0], &line) else {
        return;
    };
    if answer.trim() == "unlimited" {
        eprintln!("skipped: the limit of processes does not hold here");
        return;
    }
    let answer: Value = serde_json::from_str(&answer).unwrap();
    for id in [&world.s1, &world.s2] {
        let mut sessions = answer["sessions"].as_array().unwrap().iter();
        let is_there = sessions.any(|one| one["session_id"] == json!(id));
        assert!(is_there, "{id}: {answer}");
    }
    let problems = answer["problems"].to_string();
    assert!(problems.contains("cannot list the panes"), "{problems}");
}

/// A `tmux` on PATH that leaves behind a child which holds the output.
#[test]
fn a_child_that_a_pane_host_leaves_behind_is_not_waited_for() {
    let world = World::new();
    let bin = world.root().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let script = "#!/bin/sh\nsleep 600 &\necho $! >>\"$HOME/left\"\n";
    let tmux = world.write("tmux", script);
    copy_program(&tmux, bin.join("tmux"));
    run_to_end(&["chmod", "755", bin.join("tmux").to_str().unwrap()]);
    // Its children, one or more, are for the test to end.
    let line = format!(
        r#"
PATH='{}':"$PATH"
rm -f "$HOME/left"
began=$(date +%s)
"$WHOSUP" list --json >/dev/null || exit 1
echo $(($(date +%s) - began))
kill $(cat "$HOME/left") || exit 1
"#,
        bin.display()
    );
    let Some(took) = run_as_lonely(&world, LONELY[1], &line) else {
        return;
    };
    let seconds: u64 = took.trim().parse().unwrap();
    assert!(seconds < 60, "{seconds}");
}
