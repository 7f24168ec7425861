//! Checks that a process would get what is typed into its pane.

use anyhow::{anyhow, bail};
use rustix::fs::{Mode, OFlags, major, minor};
use rustix::termios::{LocalModes, tcgetattr};
use whosup_core::machine::Machine;
use whosup_core::process::{Pid, Process, Tty};
use whosup_core::sources::panes::Pane;

/// How many nested terminals are followed.
const TERMINALS_MAX: usize = 8;

/// Checks that a process is now in the foreground of its pane's terminal. A process in a
/// terminal of its own must be in the foreground there, and the program that shows this
/// terminal in the foreground of the pane.
///
/// # Errors
///
/// Why another process would get the text.
pub(super) fn check(machine: &Machine, process: &Process, pane: &Pane) -> anyhow::Result<()> {
    let table = machine.table();
    let shown = pane
        .tty
        .ok_or_else(|| anyhow!("the terminal of its pane is not known"))?;
    let mut current = now(machine, process)?;
    for _ in 0..TERMINALS_MAX {
        let pid = current.pid;
        let Some(tty) = current.tty else {
            bail!("process {pid} has no terminal");
        };
        let place = tty.name().unwrap_or_else(|| "its terminal".to_owned());
        if current.process_group != current.foreground_group {
            let other = foreground(machine, current.foreground_group);
            bail!("process {pid} is not in the foreground of {place}{other}");
        }
        if tty == shown {
            return Ok(());
        }
        let mut above = table.ancestors(&current);
        let shows = above.find(|one| one.tty.is_some_and(|other| other != tty));
        let shows = shows.ok_or_else(|| anyhow!("nothing shows {place} in the pane"))?;
        current = now(machine, shows)?;
    }
    bail!("too many terminals are within each other")
}

/// The same process, as it is now.
fn now(machine: &Machine, process: &Process) -> anyhow::Result<Process> {
    let seen = machine.table().probe(process.pid)?;
    let same = seen.filter(|seen| seen.stamp == process.stamp && !seen.is_exited);
    same.ok_or_else(|| anyhow!("process {} has exited", process.pid))
}

fn foreground(machine: &Machine, group: i32) -> String {
    let leader = Pid::new(i64::from(group)).ok();
    let process = leader.and_then(|pid| machine.table().probe(pid).ok()?);
    let name = process.map(|process| String::from_utf8_lossy(&process.comm).into_owned());
    name.map(|name| format!(": `{}` is", crate::text::visible(&name)))
        .unwrap_or_default()
}

/// The terminal of a process delivers whole lines, as for `cat`; `false` if that is unknown.
/// Agents' own interfaces read each key.
pub(super) fn reads_lines(process: &Process) -> bool {
    let Some((tty, name)) = process.tty.and_then(|tty| Some((tty, tty.name()?))) else {
        return false;
    };
    let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(terminal) = rustix::fs::open(name, flags, Mode::empty()) else {
        return false;
    };
    let is_its = rustix::fs::fstat(&terminal).is_ok_and(|facts| {
        let (major, minor) = (major(facts.st_rdev), minor(facts.st_rdev));
        Tty { major, minor } == tty
    });
    is_its && tcgetattr(&terminal).is_ok_and(|modes| modes.local_modes.contains(LocalModes::ICANON))
}
