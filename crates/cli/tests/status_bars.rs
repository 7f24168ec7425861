//! The claims of `docs/status-bars.md`, checked with the real programs.
//!
//! A test program of its own: its demo has orphans, and other tests expect none on the
//! machine.

#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that can't go on fails, and one that is skipped says so"
)]

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use terminal::Tmux;
use world::{WHOSUP, World, copy_program, wait_for};

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "cli/terminal.rs"]
mod terminal;
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "cli/world.rs"]
mod world;

const PAGE: &str = include_str!("../../../docs/status-bars.md");
/// What each bar shows of the demo.
const LINE: &str = "2 waiting, 2 working, 6 idle, 1 starting, 4 unknown, 1 orphaned, 1 stale";

/// The blocks of one language.
fn blocks(language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    let parts = PAGE.split(&fence).skip(1);
    let blocks: Vec<String> = parts
        .map(|part| part.split("```").next().unwrap().to_owned())
        .collect();
    assert!(!blocks.is_empty(), "{language}");
    blocks
}

/// A search path with a `whosup` in front that shows the demo, so that other agents on this
/// machine change no line.
fn search_path(world: &World) -> String {
    let script = format!("#!/bin/sh\nexec '{WHOSUP}' demo -- \"$@\" 2>/dev/null\n");
    let program = world.write("bin/whosup", "");
    // A program that is open for writing can't be run, and other tests fork.
    copy_program(world.write("whosup.sh", script), &program);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).unwrap();
    let search = std::env::var("PATH").unwrap();
    format!("{}:{search}", program.parent().unwrap().display())
}

/// A program of this world; `None`, with a message, if it is not installed.
fn command_of(world: &World, program: &str) -> Option<Command> {
    let search = std::env::split_paths(&std::env::var_os("PATH").unwrap()).collect::<Vec<_>>();
    let found: Option<PathBuf> = match std::env::var_os("WHOSUP_ZELLIJ") {
        Some(path) if program == "zellij" => Some(path.into()),
        _ => search
            .iter()
            .map(|place| place.join(program))
            .find(|path| path.is_file()),
    };
    let Some(path) = found else {
        eprintln!("skipped: there is no {program} here");
        return None;
    };
    let mut command = Command::new(path);
    command
        .env_clear()
        .env("HOME", world.home())
        .env("PATH", search_path(world))
        .env("TERM", "xterm")
        .current_dir(world.work_dir());
    Some(command)
}

#[track_caller]
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let (out, err) = (&output.stdout, &output.stderr);
    let [out, err] = [out, err].map(|text| String::from_utf8_lossy(text).into_owned());
    assert!(output.status.success(), "{out}{err}");
    out
}

/// The output of a command line from a settings file.
fn printed(world: &World, line: &str) -> String {
    let mut shell = command_of(world, "sh").unwrap();
    output(shell.args(["-c", line])).trim_end().to_owned()
}

/// The server of a terminal inside another.
struct Inner(PathBuf);

impl Drop for Inner {
    fn drop(&mut self) {
        let mut tmux = Command::new("tmux");
        tmux.arg("-S").arg(&self.0).arg("kill-server").output().ok();
    }
}

#[test]
fn tmux_shows_the_line_in_its_status() {
    let world = World::new();
    let configuration = world.write(".tmux.conf", blocks("tmux").concat());
    let inner = Inner(world.root().join("inner"));
    // Only a server with a client has a status line.
    let line = format!(
        "env -u TMUX HOME='{}' PATH='{}' tmux -S '{}' -f '{}' new-session cat",
        world.home().display(),
        search_path(&world),
        inner.0.display(),
        configuration.display(),
    );
    let Some(outer) = Tmux::start(&world, 120, &line) else {
        return;
    };
    wait_for("tmux to show the line", || {
        let screen = outer.run(&["capture-pane", "-p", "-t", "main"]);
        let screen = String::from_utf8(screen.stdout).unwrap();
        let status = screen.lines().last().unwrap_or_default();
        status
            .contains("2 waiting, 2 working, 6 idle")
            .then_some(())
    });
}

#[test]
fn shells_show_the_line_in_their_prompts() {
    let world = World::new();
    let bash = format!("[{LINE}] ");
    for (shell, options, show, expected) in [
        (
            "bash",
            &["--norc", "-c"][..],
            "eval \"$PROMPT_COMMAND\"; printf '%s' \"${PS1@P}\"",
            bash.as_str(),
        ),
        (
            "zsh",
            &["-f", "-c"],
            "whosup_prompt; print -Pn -- $RPROMPT",
            LINE,
        ),
        ("fish", &["--no-config", "-c"], "fish_right_prompt", LINE),
    ] {
        let Some(mut command) = command_of(&world, shell) else {
            continue;
        };
        let line = format!("{}\n{show}", blocks(shell).concat());
        let prompt = output(command.args(options).arg(line));
        assert_eq!(prompt.trim_end_matches('\n'), expected, "{shell}");
    }
}

#[test]
fn starship_shows_the_line() {
    let world = World::new();
    let settings = world.write(".config/starship.toml", blocks("toml").concat());
    let Some(mut command) = command_of(&world, "starship") else {
        return;
    };
    command
        .env("STARSHIP_CONFIG", settings)
        .env("STARSHIP_SHELL", "sh");
    let module = output(command.args(["module", "custom.whosup"]));
    assert!(module.contains(LINE), "{module}");
}

#[test]
fn zellij_understands_the_layout_and_its_command_prints_the_line() {
    let world = World::new();
    let layout = blocks("kdl").concat();
    // The text that zellij passes to the shell: KDL has the same escapes as Rust.
    let line = layout.split("args \"-c\" \"").nth(1).unwrap();
    let line = line.lines().next().unwrap().trim_end_matches('"');
    let line = line.replace("\\\"", "\"").replace("\\\\", "\\");
    let once = line
        .replace("while :; do ", "")
        .replace("; sleep 5; done", "");
    assert_ne!(once, line);
    assert_eq!(printed(&world, &once), format!("\r\u{1b}[K{LINE}"));
    let file = world.write(".config/zellij/layouts/whosup.kdl", &layout);
    let Some(mut command) = command_of(&world, "zellij") else {
        return;
    };
    let file = file.to_str().unwrap();
    // Prints an error for an unknown or invalid layout.
    output(command.args(["--layout", file, "setup", "--check"]));
}

#[test]
fn commands_print_what_waybar_and_claude_code_ask_for() {
    let world = World::new();
    let settings: Vec<Value> = blocks("json")
        .iter()
        .map(|block| serde_json::from_str(block).unwrap())
        .collect();
    let waybar = &settings[0]["custom/whosup"];
    assert_eq!(waybar["return-type"], "json");
    let text = printed(&world, waybar["exec"].as_str().unwrap());
    let answer: Value = serde_json::from_str(&text).unwrap();
    let expected = json!({ "text": LINE, "tooltip": LINE, "class": "waiting" });
    assert_eq!(answer, expected);
    let line = settings[1]["statusLine"]["command"].as_str().unwrap();
    assert_eq!(settings[1]["statusLine"]["type"], "command");
    assert_eq!(printed(&world, line), LINE);
}
