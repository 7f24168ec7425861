//! The table in a real terminal, and the pane that a real agent lives in.

use std::path::{Path, PathBuf};
use std::process::{Command as StdCommand, Output};

use unicode_width::UnicodeWidthStr as _;

use super::world::{WHOSUP, World, wait_for};

/// Printed when a command in a pane has ended.
const ENDED: &str = "-- ended --";

/// A tmux server of this test. It ends with the value.
pub(crate) struct Tmux {
    pub(crate) socket: PathBuf,
}

impl Tmux {
    /// Starts one whose first pane runs `command`, or says why there is none.
    pub(crate) fn start(world: &World, width: usize, command: &str) -> Option<Self> {
        Self::start_named(world, &width.to_string(), width, command)
    }

    /// The same, one of several.
    pub(crate) fn start_named(
        world: &World,
        name: &str,
        width: usize,
        command: &str,
    ) -> Option<Self> {
        // An ending server still has its socket.
        let tmux = Self {
            socket: world.root().join(format!("tmux-{name}.sock")),
        };
        let size = width.to_string();
        let arguments = [
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-s",
            "main",
            "-x",
            &size,
        ];
        let output = tmux
            .command(&arguments)
            .args(["-y", "24", command])
            .output();
        match output {
            Ok(output) if output.status.success() => Some(tmux),
            Ok(output) => panic!("{}", String::from_utf8_lossy(&output.stderr)),
            Err(error) => {
                eprintln!("skipped: cannot run tmux: {error}");
                None
            }
        }
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> StdCommand {
        let mut command = StdCommand::new("tmux");
        command.arg("-S").arg(&self.socket).args(arguments);
        command.env_remove("TMUX").env("LC_ALL", "C.UTF-8");
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// The text of a pane once its command has ended.
    fn ended_text(&self, pane: &str, options: &[&str]) -> String {
        wait_for("the command in the pane to end", || {
            let mut arguments = vec!["capture-pane", "-p", "-t", pane];
            arguments.extend(options);
            let text = String::from_utf8(self.run(&arguments).stdout).unwrap();
            text.contains(ENDED).then_some(text)
        })
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.run(&["kill-server"]);
    }
}

/// A command line for a pane that lists sessions.
fn list_command(world: &World, options: &str) -> String {
    command_line(world, &format!("list --cwd . {options}"))
}

/// A command line for a pane: the program in this world, and a mark at its end.
fn command_line(world: &World, words: &str) -> String {
    let (home, work_dir) = (world.home(), world.work_dir());
    format!(
        "cd '{}' && env -i HOME='{}' PATH=\"$PATH\" TERM=\"$TERM\" TMUX=\"$TMUX\" \
         '{WHOSUP}' {words} 2>/dev/null; echo '{ENDED}'; exec cat",
        work_dir.display(),
        home.display()
    )
}

fn write_sessions(world: &World, pid: u32, start: &str) {
    let record = world.write_claude_record(pid, start, &world.s1);
    let text = std::fs::read_to_string(&record).unwrap();
    let waiting = "\"status\":\"waiting\",\"waitingFor\":\"permission prompt\"";
    let text = text.replace("\"status\":\"idle\"", waiting);
    std::fs::write(&record, text).unwrap();
    let transcript = world.write_claude_transcript(".claude", &world.s1);
    let text = std::fs::read_to_string(&transcript).unwrap();
    let title = "修复 🦀 the flaky login test that fails on Mondays, and its sister in the shop";
    std::fs::write(&transcript, text.replace("Fix the flaky login test", title)).unwrap();
    world.write_claude_transcript(".claude", &world.s2);
}

#[test]
fn the_table_is_as_wide_as_the_terminal_and_no_wider() {
    let world = World::new();
    let posing = world.pose_as_claude();
    write_sessions(&world, posing.pid(), &posing.start());
    for width in [60, 100, 160] {
        let command = list_command(&world, "--all");
        let Some(tmux) = Tmux::start(&world, width, &command) else {
            return;
        };
        let text = tmux.ended_text("main", &[]);
        let lines: Vec<&str> = text.lines().take_while(|line| *line != ENDED).collect();
        // Headings and two sessions: a line that is too wide would take two lines.
        assert_eq!(lines.len(), 3, "{width}: {text}");
        assert!(lines[0].starts_with("AGENT"), "{text}");
        assert!(lines[1].contains("waiting"), "{text}");
        assert!(lines[1].contains("(permission)"), "{text}");
        assert!(lines[1].contains(&world.s1[..8]), "{text}");
        assert!(lines[1].contains("修复 🦀 the"), "{text}");
        assert_eq!(lines[1].contains('…'), width < 160, "{text}");
        let widest = lines.iter().map(|line| line.width()).max().unwrap();
        assert!(widest <= width, "{widest} of {width}: {text}");
        let coloured = tmux.ended_text("main", &["-e"]);
        assert!(coloured.contains("\u{1b}["), "{coloured:?}");
    }
}

#[test]
fn the_pane_that_an_agent_lives_in_is_shown() {
    let world = World::new();
    // Copied by starting it once.
    drop(world.pose_as_claude());
    let program = world
        .root()
        .join("opt/@anthropic-ai/claude-code/bin/claude");
    let command = agent_command(&world, &program);
    let Some(tmux) = Tmux::start(&world, 160, &command) else {
        return;
    };
    let pane = "#{pane_id} #{pane_pid}";
    let printed = tmux
        .run(&["display-message", "-p", "-t", "main", pane])
        .stdout;
    let printed = String::from_utf8(printed).unwrap();
    let (id, pid) = printed.trim().split_once(' ').unwrap();
    let start = wait_for("the agent to run", || {
        let comm = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let start = stat
            .rsplit_once(')')?
            .1
            .split_whitespace()
            .nth(19)?
            .to_owned();
        (comm.trim() == "claude").then_some(start)
    });
    write_sessions(&world, pid.parse().unwrap(), &start);
    tmux.run(&[
        "new-window",
        "-d",
        "-t",
        "main:9",
        &list_command(&world, ""),
    ]);
    let text = tmux.ended_text("main:9", &[]);
    let place = "#{session_name}:#{window_name}.#{pane_index}";
    let printed = tmux.run(&["display-message", "-p", "-t", id, place]);
    let place = String::from_utf8(printed.stdout).unwrap();
    assert!(text.contains(&format!("tmux {}", place.trim())), "{text}");
}

pub(crate) fn agent_command(world: &World, program: &Path) -> String {
    format!(
        "cd '{}' && exec env -i HOME='{}' '{}'",
        world.work_dir().display(),
        world.home().display(),
        program.display()
    )
}

/// A program in a terminal of its own belongs to the pane of its parent, and Ctrl-Z gives that pane
/// back to the shell until the program is continued.
#[test]
fn a_program_in_a_terminal_of_its_own_has_its_pane_and_stops_by_ctrl_z() {
    let world = World::new();
    let shell = format!(
        "env HOME='{}' bash --norc --noprofile",
        world.home().display()
    );
    let Some(tmux) = Tmux::start(&world, 90, &shell) else {
        return;
    };
    let session = |what: &str, is_it: &dyn Fn(&serde_json::Value) -> bool| {
        wait_for(what, || {
            let list = world.run(["list", "--json"]).sessions();
            let mut its = list.iter().filter(|one| one["session_id"] == "p1");
            its.any(is_it).then_some(())
        });
    };
    let line = format!("'{WHOSUP}' run --pty --id p1 -- cat");
    tmux.run(&["send-keys", "-t", "main", &line, "Enter"]);
    session("its pane", &|one| {
        one["pane"]["host"] == "tmux" && one["owner"]["stopped"] == false
    });
    tmux.run(&["send-keys", "-t", "main", "C-z"]);
    session("its stop", &|one| one["owner"]["stopped"] == true);
    let table = world.run(["list"]).out;
    assert!(table.contains("live (suspended)"), "{table}");
    tmux.run(&["send-keys", "-t", "main", "fg", "Enter"]);
    session("its going on", &|one| one["owner"]["stopped"] == false);
    tmux.run(&["send-keys", "-t", "main", "C-d"]);
    let is_live = |one: &serde_json::Value| one["session_id"] == "p1" && one["liveness"] == "live";
    wait_for("its end", || {
        let list = world.run(["list", "--json"]).sessions();
        (!list.iter().any(is_live)).then_some(())
    });
}

#[test]
fn a_command_that_is_printed_cannot_steer_the_terminal() {
    let world = World::new();
    let mut gone = StdCommand::new("true").spawn().unwrap();
    gone.wait().unwrap();
    let fields = serde_json::json!({
        "pid": gone.id(), "hostname": rustix::system::uname().nodename().to_str().unwrap(),
        "started_at": 1_730_000_000.0, "process_start": "1", "process_start_kind": "linux-ticks",
        "resume": ["touch", "x", "\u{1b}[2K\recho", "\u{202e}"],
    });
    world.announce("aider", "s-1", fields);
    // A pipe gets the words as they are.
    let print = ["resume", "--print", "--force", "s-1"];
    let piped = world.run(print);
    assert!(
        piped.out.contains("\u{1b}[2K\recho"),
        "{} {}",
        piped.out,
        piped.err
    );
    let command = command_line(&world, &print.join(" "));
    let Some(tmux) = Tmux::start(&world, 400, &command) else {
        return;
    };
    let text = tmux.ended_text("main", &[]);
    for shown in ["touch x", r"\u{1b}[2K\u{d}echo", r"\u{202e}"] {
        assert!(text.contains(shown), "{shown}: {text}");
    }
}
