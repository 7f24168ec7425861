//! tmux.

mod listing;
mod socket;

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::Path;

use whosup_process::{Pid, Process, Tty};

use self::listing::{CLIENT_FORMAT, FORMAT, Listing, Row, parse_listing};
use self::socket::{Server, Socket, Sockets, find_servers, may_be_server};
use super::servers::{COMPLAINT_CHARS_MAX, ask_all, is_ours, reason_of};
use super::{Going, Input, Pane, PaneHost, PaneServer, Typing, Viewer};
use crate::adapter::Invocation;
use crate::machine::Machine;
use crate::machine::command::{CommandError, CommandOutput};
use crate::machine::problem::{Found, Problem};

/// The program.
const TMUX: &str = "tmux";

/// The pane host tmux.
///
/// Only servers of our own user are asked, and only while the process table
/// shows one: `list-panes` starts no server, changes nothing in one, and makes
/// no file when the socket is named by `-S`.
#[derive(Debug)]
pub struct Tmux;

impl PaneHost for Tmux {
    fn name(&self) -> &'static str {
        TMUX
    }

    fn is_server(&self, process: &Process) -> bool {
        may_be_server(&process.comm)
    }

    fn list(&self, machine: &Machine) -> Found<Vec<Pane>> {
        let uid = match &machine.table().view().uid {
            Ok(uid) => *uid,
            Err(reason) => return without_user(self, machine, reason),
        };
        let servers = find_servers(machine, uid);
        if servers.is_empty() {
            return Found::default();
        }
        let Sockets {
            sockets,
            refused,
            problems,
            ..
        } = Sockets::find(machine, uid, &servers);
        let answers = ask(machine, &sockets);
        let mut heard = Heard {
            uid,
            servers: &servers,
            answered: refused.into_iter().collect(),
            is_one_nameless: false,
            panes: Vec::new(),
            problems,
        };
        for (socket, answer) in sockets.iter().zip(answers) {
            heard.add(machine, socket, answer);
        }
        heard.name_the_silent(machine);
        Found {
            found: heard.panes,
            problems: heard.problems,
        }
    }

    fn attach(&self, pane: &Pane) -> Option<Invocation> {
        // From a pane id, `attach-session` finds session, window and pane, and
        // shows that pane (seen in tmux 3.3a, 2026-11).
        let id = pane.pane.as_deref()?;
        command(pane, &["attach-session", "-t", id])
    }

    fn go(&self, pane: &Pane, here: Option<&Pane>) -> Option<Going> {
        let id = pane.pane.as_deref()?;
        let Some(here) = here.filter(|here| here.host == TMUX) else {
            return Some(Going::Become(self.attach(pane)?));
        };
        let attach = self.attach(pane)?;
        if here.server != pane.server {
            return Some(Going::ByHand {
                why: "this terminal is in another tmux server: detach from it first".to_owned(),
                then: attach,
            });
        }
        // The requested client is that of the asking pane, which tmux finds by these variables.
        let server = pane.server.as_ref()?;
        let pid = server.pid?;
        let mut words = vec!["select-window", "-t", id, ";", "select-pane", "-t", id, ";"];
        words.extend(["switch-client", "-t", id]);
        let mut switch = command(pane, &words)?;
        let socket = server.socket.to_string_lossy();
        switch.environment = vec![
            ("TMUX".to_owned(), format!("{socket},{pid},0").into()),
            ("TMUX_PANE".to_owned(), here.pane.clone()?.into()),
        ];
        Some(Going::Run(vec![switch]))
    }

    fn paste(&self, pane: &Pane, text: &str) -> Option<Typing> {
        // `-p` brackets the text if the program in the pane asked for that, `-r` leaves line
        // breaks as they are. Unlike `send-keys`, this reaches the program also while a
        // person looks at what has scrolled out of the pane.
        through_buffer(pane, text, &["-p", "-r"])
    }

    fn enter(&self, pane: &Pane) -> Option<Typing> {
        through_buffer(pane, "\r", &["-r"])
    }
}

/// A tmux command to the server of a pane.
fn command(pane: &Pane, words: &[&str]) -> Option<Invocation> {
    let socket = &pane.server.as_ref()?.socket;
    let socket = socket.to_string_lossy().into_owned();
    let argv = [TMUX, "-S", &socket]
        .into_iter()
        .chain(words.iter().copied());
    Some(Invocation::new(argv))
}

/// Types through a buffer of this process, which is removed on use. The text is not passed as
/// an argument, which other users could read.
fn through_buffer(pane: &Pane, text: &str, options: &[&str]) -> Option<Typing> {
    let id = pane.pane.as_deref()?;
    let buffer = format!("whosup-{}", Pid::own());
    let mut paste = vec!["paste-buffer", "-d", "-b", &buffer, "-t", id];
    paste.extend(options);
    Some(Typing {
        prepare: vec![Input {
            invocation: command(pane, &["load-buffer", "-b", &buffer, "-"])?,
            stdin: text.to_owned(),
        }],
        type_it: vec![Input::of(command(pane, &paste)?)],
    })
}

/// The answer if our own user is unknown.
fn without_user(
    host: &Tmux,
    machine: &Machine,
    reason: &whosup_process::Absent,
) -> Found<Vec<Pane>> {
    let mut processes = machine.table().processes().unwrap_or_default().iter();
    let problems = if processes.any(|process| host.is_server(process)) {
        let message = format!("cannot determine which tmux servers are ours: {reason}");
        vec![Problem::of_machine(message)]
    } else {
        Vec::new()
    };
    Found {
        found: Vec::new(),
        problems,
    }
}

/// The result of asking one socket.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    /// Panes, and unreadable lines.
    Listing(Listing),
    /// A server without panes.
    NoPanes,
    /// No server listens there.
    NoServer,
}

/// Asks every socket at once, under one deadline. Returns each answer, or why it is not usable.
fn ask(machine: &Machine, sockets: &[Socket]) -> Vec<Result<Answer, String>> {
    let commands = machine.commands();
    let deadline = commands.deadline();
    let run = move |socket: &Socket| {
        let args = ["-u", "-S"].map(OsString::from);
        let path = OsString::from(&socket.path);
        let panes = ["list-panes", "-a", "-F", FORMAT, ";"];
        let clients = ["list-clients", "-F", CLIENT_FORMAT];
        let command = panes.into_iter().chain(clients).map(OsString::from);
        let args: Vec<OsString> = args.into_iter().chain([path]).chain(command).collect();
        understand(commands.run(TMUX, &args, deadline))
    };
    ask_all(TMUX, sockets, run)
}

/// Interprets the result of a run of tmux.
fn understand(ran: Result<CommandOutput, CommandError>) -> Result<Answer, String> {
    let output = ran.map_err(reason_of)?;
    if !output.is_success {
        return understand_complaint(&String::from_utf8_lossy(&output.stderr));
    }
    Ok(match parse_listing(&output.stdout) {
        listing if listing == Listing::default() => Answer::NoPanes,
        listing => Answer::Listing(listing),
    })
}

/// Interprets the error message of tmux, which is English in every locale. (Seen in tmux 3.3a,
/// 2026-11; read in the sources of 2.1 to 3.8.)
fn understand_complaint(complaint: &str) -> Result<Answer, String> {
    let line = complaint.lines().next().unwrap_or_default().trim();
    let is_gone = line.starts_with("no server running on ")
        || line.starts_with("error connecting to ")
            && (line.ends_with("(No such file or directory)")
                || line.ends_with("(Connection refused)"));
    if is_gone {
        Ok(Answer::NoServer)
    } else if matches!(line, "no current target" | "no sessions") {
        Ok(Answer::NoPanes)
    } else if line.is_empty() {
        Err("tmux failed and said nothing".to_owned())
    } else {
        let complaint: String = line.chars().take(COMPLAINT_CHARS_MAX).collect();
        Err(format!("tmux says: {complaint}"))
    }
}

/// The panes and problems of all sockets together.
#[derive(Debug)]
struct Heard<'a> {
    uid: u32,
    servers: &'a [Server],
    /// Servers with an answer or a problem.
    answered: HashSet<Pid>,
    /// A server answered without panes, and so without its PID.
    is_one_nameless: bool,
    panes: Vec<Pane>,
    problems: Vec<Problem>,
}

impl Heard<'_> {
    fn add(&mut self, machine: &Machine, socket: &Socket, answer: Result<Answer, String>) {
        match answer {
            Ok(Answer::NoServer) => {}
            Ok(Answer::NoPanes) => {
                self.is_one_nameless = true;
                self.answered.extend(&socket.of);
            }
            Err(reason) => {
                self.answered.extend(&socket.of);
                self.fail(&socket.path, &reason);
            }
            Ok(Answer::Listing(listing)) => self.add_listing(machine, socket, listing),
        }
    }

    fn fail(&mut self, socket: &Path, reason: &str) {
        self.problems.push(Problem::of_machine(format!(
            "cannot list the panes of the tmux server on `{}`: {reason}",
            socket.display()
        )));
    }

    fn add_listing(&mut self, machine: &Machine, socket: &Socket, listing: Listing) {
        if let Some(first) = listing.bad.first() {
            let reason = format!(
                "{} of {} lines are no panes; line {}: {}",
                listing.bad.len(),
                listing.bad.len().saturating_add(listing.panes.len()),
                first.number,
                first.reason,
            );
            self.fail(&socket.path, &reason);
        }
        let Some(first) = listing.panes.first() else {
            self.answered.extend(&socket.of);
            return;
        };
        let process = match self.verify(machine, first.server) {
            Ok(process) => process,
            Err(reason) => {
                self.answered.extend(&socket.of);
                return self.fail(&socket.path, &reason);
            }
        };
        if !self.answered.insert(first.server) {
            return;
        }
        let server = PaneServer {
            socket: socket.path.clone(),
            pid: Some(process.pid),
            stamp: Some(process.stamp),
        };
        let Listing { panes, clients, .. } = listing;
        let rows = panes.into_iter();
        self.panes
            .extend(rows.map(|row| pane_of(machine, &server, &clients, row)));
    }

    /// Checks that a server can be the process that it reports. A server in a container has
    /// other PIDs, and other terminals with the same numbers.
    fn verify(&self, machine: &Machine, pid: Pid) -> Result<Process, String> {
        let table = machine.table();
        let process = table.probe(pid).map_err(|error| error.to_string())?;
        let is_known = |process: &Process| {
            let known = self.servers.iter().map(|server| &server.process);
            known
                .clone()
                .any(|known| known.pid == process.pid && known.stamp == process.stamp)
                || may_be_server(&process.comm) && is_ours(&table.details(process), self.uid)
        };
        process
            .filter(|process| !process.is_exited && is_known(process))
            .ok_or_else(|| format!("its process `{pid}` is no tmux server of ours here"))
    }

    /// Reports every server here that no socket led to.
    fn name_the_silent(&mut self, machine: &Machine) {
        if self.is_one_nameless {
            return;
        }
        for server in self.servers.iter().filter(|server| server.is_certain) {
            let pid = server.process.pid;
            let is_here = |process: Process| process.stamp == server.process.stamp;
            if !self.answered.contains(&pid)
                && let Ok(Some(process)) = machine.table().probe(pid)
                && is_here(process)
            {
                self.problems.push(Problem::of_machine(format!(
                    "cannot list the panes of tmux server `{pid}`: no socket leads to it"
                )));
            }
        }
    }
}

/// A pane as all pane hosts report theirs.
fn pane_of(machine: &Machine, server: &PaneServer, clients: &[(Pid, String)], row: Row) -> Pane {
    let tty = if row.is_dead {
        None
    } else {
        tty_of(machine, &row)
    };
    let shows = |session: &String| *session == row.session || row.also_in.contains(session);
    let viewers = clients.iter().filter(|(_, session)| shows(session));
    let viewers = viewers.map(|(pid, _)| Viewer::Process(*pid)).collect();
    Pane {
        host: TMUX,
        server: Some(server.clone()),
        place: format!("{}:{}.{}", row.session, row.window, row.index),
        session: Some(row.session),
        window: Some(row.window),
        pane: Some(row.pane),
        tty,
        pid: row.pid,
        title: row.title,
        is_dead: row.is_dead,
        viewers,
        ..Pane::default()
    }
}

/// The terminal of a living pane: of the process which was started in it, by the process
/// table, else the device at the path that the server names.
fn tty_of(machine: &Machine, row: &Row) -> Option<Tty> {
    let seen = row.pid.and_then(|pid| machine.table().seen(pid));
    if let Some(tty) = seen.and_then(|process| process.tty) {
        return Some(tty);
    }
    // The kernel's own type of a device's number differs by platform.
    let path = machine.mounts().touchable(row.tty_path.as_ref()?).ok()?;
    let facts = rustix::fs::stat(path.as_path()).ok()?;
    let kind = rustix::fs::FileType::from_raw_mode(facts.st_mode);
    kind.is_char_device().then(|| Tty {
        major: rustix::fs::major(facts.st_rdev),
        minor: rustix::fs::minor(facts.st_rdev),
    })
}
