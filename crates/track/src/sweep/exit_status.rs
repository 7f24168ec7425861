//! Exit statuses, from the kernel and from tmux.

use std::ffi::OsString;

use whosup_core::machine::Machine;
use whosup_core::process::{ExitStatus, Pid};
use whosup_core::sources::record::{EndCause, PaneHint, SessionRecord};

/// What tmux is asked of a pane.
const FORMAT: &str = "#{pid} #{pane_id} #{pane_pid} #{pane_dead} \
                      #{pane_dead_signal}:#{pane_dead_status}";

/// Reads how an agent's process exited, where its parent or the kernel still knows.
#[derive(Debug)]
pub(super) struct ExitStatuses<'a> {
    machine: &'a Machine,
}

impl<'a> ExitStatuses<'a> {
    pub(super) const fn new(machine: &'a Machine) -> Self {
        Self { machine }
    }

    /// How the owner of a session exited; `None` if that is not known.
    pub(super) fn of(&self, record: &SessionRecord) -> Option<EndCause> {
        self.in_process_table(record)
            .or_else(|| self.in_pane(record))
    }

    /// What the kernel keeps of a zombie.
    fn in_process_table(&self, record: &SessionRecord) -> Option<EndCause> {
        let owner = record.owner.as_ref()?;
        let table = self.machine.table();
        let process = table.seen(owner.pid)?;
        if owner.stamp.as_ref() != Some(&process.stamp) {
            return None;
        }
        match table.backend().exit_status(process).ok()?? {
            ExitStatus::Code(code) => Some(EndCause::ExitCode(code)),
            ExitStatus::Signal(signal) => Some(EndCause::Signal(signal)),
        }
    }

    /// What tmux reports for the pane.
    ///
    /// tmux keeps a dead pane where it is configured to (`remain-on-exit`), and reports
    /// the status of the pane's own process alone. If an agent ran below a shell, the
    /// pane's status is the shell's, which proves nothing about the agent.
    fn in_pane(&self, record: &SessionRecord) -> Option<EndCause> {
        let owner = record.owner.as_ref()?;
        let hint = record.heard.pane.as_ref()?;
        let (socket, server) = socket_and_server(hint)?;
        let args = ["-u", "-S", socket, "list-panes", "-a", "-F", FORMAT].map(OsString::from);
        let commands = self.machine.commands();
        let answer = commands.run("tmux", &args, commands.deadline()).ok()?;
        let output = String::from_utf8_lossy(&answer.stdout).into_owned();
        output
            .lines()
            .find_map(|line| exit_in(line, server, &hint.pane, owner.pid))
    }
}

/// `TMUX` is the socket, the server's PID and a number, with commas between.
fn socket_and_server(hint: &PaneHint) -> Option<(&str, Pid)> {
    let (rest, _) = hint.tmux.rsplit_once(',')?;
    let (socket, server) = rest.rsplit_once(',')?;
    let server = Pid::new(server.parse().ok()?).ok()?;
    socket.starts_with('/').then_some((socket, server))
}

/// How process `pid` ended according to a line, if it is the process that `server`
/// started in `pane`.
fn exit_in(line: &str, server: Pid, pane: &str, pid: Pid) -> Option<EndCause> {
    let (fields, statuses) = line.rsplit_once(' ')?;
    let of_pane = format!("{server} {pane} {pid} 1");
    if fields != of_pane {
        return None;
    }
    // One of them is empty; both are before tmux 3.3, which knows no signals.
    let (signal, status) = statuses.split_once(':')?;
    match (signal.parse::<u8>(), status.parse()) {
        (Ok(signal), _) if signal > 0 => Some(EndCause::Signal(signal)),
        (_, Ok(status)) => Some(EndCause::ExitCode(status)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_dead_pane_of_that_very_process_shows_how_it_ended() {
        let pid = |raw| Pid::new(raw).unwrap();
        let exit = |line| exit_in(line, pid(900), "%3", pid(4711));
        assert_eq!(exit("900 %3 4711 1 9:"), Some(EndCause::Signal(9)));
        assert_eq!(exit("900 %3 4711 1 :143"), Some(EndCause::ExitCode(143)));
        assert_eq!(exit("900 %3 4711 1 :0"), Some(EndCause::ExitCode(0)));
        for other in [
            "900 %3 4711 1 :",
            "900 %3 4711 0 9:",
            "901 %3 4711 1 9:",
            "900 %33 4711 1 9:",
            "900 %3 4712 1 9:",
            "900 %3 4711 1 300:",
            "",
        ] {
            assert_eq!(exit(other), None, "{other}");
        }
    }

    #[test]
    fn the_variable_of_tmux_names_socket_and_server() {
        let hint = |tmux: &str| PaneHint {
            tmux: tmux.to_owned(),
            pane: "%1".to_owned(),
        };
        let one = hint("/tmp/a,b/default,900,0");
        let server = Pid::new(900).unwrap();
        assert_eq!(socket_and_server(&one), Some(("/tmp/a,b/default", server)));
        for odd in [
            "",
            "x,900,0",
            "/tmp/default",
            "/tmp/default,0,0",
            "/tmp/d,x,0",
        ] {
            assert_eq!(socket_and_server(&hint(odd)), None, "{odd}");
        }
    }
}
