//! The terminal of a process.
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
#![cfg(target_os = "linux")]

mod world;

use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use whosup_process::linux::Proc;
use whosup_process::{Absent, Backend, Pid, TerminalUse, Tty};
use world::{LeftBehind, Running, can_or_skip, pid, process, wait_until};

/// The kernel notes times in steps as long as this.
const STEP: Duration = Duration::from_secs(8);

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

fn terminal_use(of: Pid) -> Result<TerminalUse, Absent> {
    Proc::system().details(&process(of)).terminal_use
}

#[test]
fn what_was_typed_and_shown_last_was_so_before_the_terminal_fell_silent() {
    if !can_or_skip(&["script", "--version"]) {
        return;
    }
    let mut terminal =
        Running::spawn(Command::new("script").args(["-qfc", "echo $$; exec cat", "/dev/null"]));
    let cat = LeftBehind::new(pid(terminal.line().trim().parse().unwrap()));
    let mut typed_at_ms = 0;
    // The times that the terminal was made with stand until the next step.
    wait_until("what is typed in a terminal is noted", || {
        typed_at_ms = now_ms();
        terminal.send_line("x");
        while !terminal.line().contains('x') {}
        terminal_use(cat.pid()).is_ok_and(|last| {
            last.is_noted
                && last.no_input_since_ms >= typed_at_ms
                && last.no_output_since_ms >= typed_at_ms
        })
    });
    let step_ms = i64::try_from(STEP.as_millis()).unwrap();
    let last = terminal_use(cat.pid()).unwrap();
    let latest = last.no_input_since_ms.max(last.no_output_since_ms);
    assert!(latest <= now_ms() + step_ms, "{last:?} after {typed_at_ms}");
}

#[test]
fn a_terminal_has_the_name_that_the_program_in_it_reads() {
    if !can_or_skip(&["script", "--version"]) {
        return;
    }
    let terminal = Running::spawn(Command::new("script").args([
        "-qfc",
        "tty; echo $$; exec cat",
        "/dev/null",
    ]));
    let name = terminal.line();
    let cat = LeftBehind::new(pid(terminal.line().trim().parse().unwrap()));
    let tty = process(cat.pid()).tty.unwrap();
    assert_eq!(tty.name().as_deref(), Some(name.trim()));
    let of = |major, minor| Tty { major, minor }.name();
    assert_eq!(of(4, 1).as_deref(), Some("/dev/tty1"));
    assert_eq!(of(4, 64).as_deref(), Some("/dev/ttyS0"));
    assert_eq!(of(204, 64), None);
}

#[test]
fn a_process_without_a_terminal_has_no_terminal_use() {
    let detached =
        Running::ready(Command::new("setsid").args(["-w", "sh", "-c", "echo ready; read x"]));
    assert_eq!(process(detached.pid()).tty, None);
    assert_eq!(terminal_use(detached.pid()), Err(Absent::Unsupported));
}
