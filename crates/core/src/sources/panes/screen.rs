//! GNU screen.
//!
//! `screen -Q windows` lists the numbers and titles of a session's windows. Screen starts each
//! window's program as its own child, which the terminal of the window leads to. Screen 5 lists
//! that terminal (`%T`, winmsg.h of 5.0), and screen 4 nothing of the kind: there the process is
//! known of a session's only window. `WINDOW` in the environment of the child proves nothing: it
//! keeps the number that the window had at its start, and a person may swap the numbers of two.
//! A session that was renamed has its old name in `STY`, so that a session is asked by the PID in
//! its name. (Seen in screen 4.09.00, 2026-11.)

use std::path::{Path, PathBuf};
use std::time::Instant;

use whosup_process::{Pid, Process, Tty};

use super::servers::{Listening, ServerProcess, children, find_ours, list_each, run};
use super::typing::bracketed;
use super::{Going, Input, Pane, PaneHost, Typing, Viewer};
use crate::adapter::Invocation;
use crate::machine::Machine;
use crate::machine::problem::Found;

/// The program.
const SCREEN: &str = "screen";
/// A window: its number, its terminal and its title. Screen 4 knows no terminal, and writes no
/// name of one there.
const FORMAT: &str = "%n %T %t<|>";
/// The end of each window. A line break would be left out while a terminal shows the session
/// (seen in 4.09.00).
const SEPARATOR: &str = "<|>";
/// How many windows of one session are kept (`MAXWIN`, screen's default is 100).
const WINDOWS_MAX: usize = 10_000;
/// The directories of sessions without `SCREENDIR`, for all users, by distribution.
const PARENTS: &[&str] = &[
    "/run/screen",
    "/var/run/screen",
    "/tmp/screens",
    "/tmp/uscreens",
];
/// How many entries of a directory are looked at.
const ENTRIES_MAX: usize = 1_000;
/// How many bytes are typed by one command: a message to the server is 4 KiB at most, and
/// each byte may become two.
const STUFF_BYTES_MAX: usize = 512;

/// The pane host GNU screen.
#[derive(Debug)]
pub struct Screen;

impl PaneHost for Screen {
    fn name(&self) -> &'static str {
        SCREEN
    }

    fn is_server(&self, process: &Process) -> bool {
        // A client has the same name and leads no windows; it has a terminal.
        process.comm == SCREEN.as_bytes() && process.tty.is_none()
    }

    fn list(&self, machine: &Machine) -> Found<Vec<Pane>> {
        let servers = find_ours(machine, |process| self.is_server(process));
        let servers = servers.into_iter().filter(is_called_server);
        let listening = servers.map(|server| Listening {
            socket: socket_of(machine, &server.process),
            server,
        });
        let listening: Vec<Listening<PathBuf>> = listening.collect();
        list_each(
            SCREEN,
            machine,
            &listening,
            |screen, deadline| ask(machine, screen, deadline),
            |screen, listing| panes_of(machine, screen, &listing),
        )
    }

    fn attach(&self, pane: &Pane) -> Option<Invocation> {
        command(pane, &["-x", "-p", pane.pane.as_deref()?])
    }

    fn go(&self, pane: &Pane, here: Option<&Pane>) -> Option<Going> {
        let attach = self.attach(pane)?;
        Some(match here.filter(|here| here.host == SCREEN) {
            None => Going::Become(attach),
            Some(here) if here.server == pane.server => {
                let select = ["-X", "select", pane.pane.as_deref()?];
                Going::Run(vec![command(pane, &select)?])
            }
            Some(_) => Going::ByHand {
                why: "this terminal is in another screen session: detach from it first".to_owned(),
                then: attach,
            },
        })
    }

    fn paste(&self, pane: &Pane, text: &str) -> Option<Typing> {
        stuff(pane, &bracketed(text))
    }

    fn enter(&self, pane: &Pane) -> Option<Typing> {
        stuff(pane, "\r")
    }
}

/// The server calls itself `SCREEN`. A client that asks it has no terminal either, for a
/// moment.
fn is_called_server(server: &ServerProcess) -> bool {
    let argv = server.details.argv.as_deref().unwrap_or_default();
    argv.first().is_some_and(|name| name == "SCREEN")
}

/// The variables of a server that name the directory of sessions.
fn directory_of(machine: &Machine, server: &Process) -> Option<PathBuf> {
    let environment = machine.environment_of(server, &["SCREENDIR"])?;
    environment.directory("SCREENDIR")
}

fn ask(
    machine: &Machine,
    screen: &Listening<PathBuf>,
    deadline: Instant,
) -> Result<Vec<u8>, String> {
    let directory = directory_of(machine, &screen.server.process);
    let directory = directory.as_deref().and_then(Path::to_str);
    let session = name_of(&screen.socket);
    let argv = [SCREEN, "-S", &session, "-Q", "windows", FORMAT];
    run(machine, &[("SCREENDIR", directory)], &argv, deadline)
}

fn panes_of(machine: &Machine, screen: &Listening<PathBuf>, listing: &[u8]) -> Vec<Pane> {
    let Listening { server, socket } = screen;
    let children = children(machine, &server.process).filter(|child| child.tty.is_some());
    let children: Vec<&Process> = children.collect();
    let session = name_of(socket);
    let at = server.listening_at(socket);
    let viewers = viewers(machine, &server.process, &children);
    let listing = String::from_utf8_lossy(listing);
    let rows = listing.split(SEPARATOR).take(WINDOWS_MAX);
    let rows: Vec<Row<'_>> = rows.filter_map(parse_row).collect();
    let in_window = |row: &Row<'_>, child: Option<&Process>| Pane {
        host: SCREEN,
        server: Some(at.clone()),
        session: Some(session.clone()),
        window: Some(row.title.to_owned()),
        pane: Some(row.number.to_owned()),
        place: format!("{session}:{} {}", row.number, row.title),
        tty: child.and_then(|child| child.tty),
        pid: child.map(|child| child.pid),
        // The program's own title is not listed: a person names windows too.
        viewers: viewers.clone(),
        ..Pane::default()
    };
    let mut panes: Vec<Pane> = rows
        .iter()
        .map(|row| in_window(row, child_in(row, &rows, &children)))
        .collect();
    let joined: Vec<Option<Pid>> = panes.iter().map(|pane| pane.pid).collect();
    let elsewhere = children
        .iter()
        .filter(|child| !joined.contains(&Some(child.pid)));
    panes.extend(elsewhere.map(|child| Pane {
        server: None,
        window: None,
        pane: None,
        place: String::new(),
        ..in_window(&Row::default(), Some(*child))
    }));
    panes
}

/// A window as screen lists it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Row<'a> {
    number: &'a str,
    /// `None` if screen does not report it.
    tty: Option<Tty>,
    title: &'a str,
}

/// Parses a window: its number, its terminal and its title.
fn parse_row(line: &str) -> Option<Row<'_>> {
    let (number, rest) = line.split_once(' ')?;
    let (tty, title) = rest.split_once(' ')?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| Row {
        number,
        tty: Tty::of_name(tty),
        title,
    })
}

/// The child of the server that a window was opened for: the one with its terminal, which no
/// other window has, or the only child if there is only one window.
fn child_in<'a>(row: &Row<'_>, rows: &[Row<'_>], children: &[&'a Process]) -> Option<&'a Process> {
    match (row.tty, rows, children) {
        (None, [_], [child]) => Some(child),
        (None, ..) => None,
        (tty, ..) => {
            let is_alone = rows.iter().filter(|other| other.tty == tty).count() == 1;
            let mut children = children.iter().filter(|_| is_alone);
            children.find(|child| child.tty == tty).copied()
        }
    }
}

/// The name of the socket is the name of the session.
fn name_of(socket: &Path) -> String {
    let name = socket.file_name().map(|name| name.to_string_lossy());
    name.unwrap_or_default().into_owned()
}

/// The socket of a session, `PID.NAME`: its current path, else the first one.
#[expect(clippy::disallowed_methods, reason = "checked before")]
fn socket_of(machine: &Machine, server: &Process) -> PathBuf {
    let prefix = format!("{}.", server.pid);
    let mounts = machine.mounts();
    let list = |directory: &Path| {
        let is_touchable = mounts.touchable(directory).is_ok();
        let entries = is_touchable.then(|| directory.read_dir().ok()).flatten();
        let entries = entries.into_iter().flatten().take(ENTRIES_MAX).flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let own = directory_of(machine, server);
    let home = machine.environment_of(server, &[]);
    let home = home.and_then(|owner| Some(owner.touchable_home()?.join(".screen")));
    let parents = PARENTS.iter().flat_map(|parent| list(Path::new(parent)));
    let directories = match own {
        Some(own) => vec![own],
        None => parents.chain(home).collect(),
    };
    let is_its = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy());
        name.is_some_and(|name| name.starts_with(&prefix))
    };
    // A client that asks has a socket beside it for a moment, with a longer name
    // (`-queryA`).
    let sockets = directories.iter().flat_map(|directory| list(directory));
    let directory = sockets
        .filter(is_its)
        .min_by_key(|path| path.as_os_str().len());
    directory.unwrap_or_else(|| PathBuf::from(prefix))
}

/// The terminals that show a session: screen holds them open, whereas of its own windows it
/// holds only the other ends.
fn viewers(machine: &Machine, server: &Process, children: &[&Process]) -> Vec<Viewer> {
    let Ok(files) = machine.table().open_files(server) else {
        return Vec::new();
    };
    let paths = files.iter().filter_map(|file| file.path.to_str());
    let mut shown: Vec<Tty> = paths.filter_map(Tty::of_name).collect();
    shown.retain(|tty| children.iter().all(|child| child.tty != Some(*tty)));
    shown.sort();
    shown.dedup();
    shown.into_iter().map(Viewer::Terminal).collect()
}

/// A screen command to the session of a pane.
fn command(pane: &Pane, words: &[&str]) -> Option<Invocation> {
    let socket = &pane.server.as_ref()?.socket;
    let session = name_of(socket);
    let argv = [SCREEN, "-S", &session]
        .into_iter()
        .chain(words.iter().copied());
    let directory = socket.parent().filter(|parent| parent.is_absolute());
    let directory = directory.map(|parent| ("SCREENDIR".to_owned(), parent.to_owned()));
    Some(Invocation {
        environment: directory.into_iter().collect(),
        ..Invocation::new(argv)
    })
}

/// Types as `stuff` does, in which a backslash and `^` begin escapes, and `$` a variable.
fn stuff(pane: &Pane, text: &str) -> Option<Typing> {
    let number = pane.pane.as_deref()?;
    let mut pieces = vec![String::new()];
    for c in text.chars() {
        let last = pieces.last_mut()?;
        if last.len() + c.len_utf8() > STUFF_BYTES_MAX {
            pieces.push(String::new());
        }
        let last = pieces.last_mut()?;
        match c {
            '\\' | '^' | '$' => last.extend(['\\', c]),
            // A control character by its number: it would be one of the message.
            c if c.is_ascii_control() => last.push_str(&format!("\\{:03o}", u32::from(c))),
            c => last.push(c),
        }
    }
    let inputs = pieces.iter().filter(|piece| !piece.is_empty());
    let inputs: Option<Vec<Input>> = inputs
        .map(|piece| {
            Some(Input::of(command(
                pane,
                &["-p", number, "-X", "stuff", piece],
            )?))
        })
        .collect();
    Some(Typing::at_once(inputs?))
}

#[cfg(test)]
mod tests {
    use whosup_process::Tty;

    use super::{Row, parse_row};

    #[test]
    fn a_window_is_its_number_its_terminal_and_the_rest_of_the_line() {
        let row = |number, tty, title| Some(Row { number, tty, title });
        let tty = Tty {
            major: 136,
            minor: 3,
        };
        let listed = "7 /dev/pts/3 my win: a b";
        assert_eq!(parse_row(listed), row("7", Some(tty), "my win: a b"));
        assert_eq!(parse_row("7 7T my win"), row("7", None, "my win"));
        assert_eq!(parse_row("0  "), row("0", None, ""));
        assert_eq!(parse_row("No screen session found."), None);
        assert_eq!(parse_row(""), None);
    }
}
