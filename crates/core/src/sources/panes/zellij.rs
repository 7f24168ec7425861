//! zellij.
//!
//! Each session has a server of its own, `zellij --server SOCKET`, and the session's name is
//! the socket's. `zellij action list-panes --json` lists panes, tabs and titles, and neither
//! PIDs nor terminals: the server starts each pane's program as its own child with
//! `ZELLIJ_PANE_ID` in its environment, which leads from a pane to a process. A session that
//! was renamed has another socket than its server was started with. Sessions that have
//! exited have no server, and are not asked.
//!
//! `zellij action` connects to all sockets before it answers, as every command of zellij does,
//! and removes those without a listener. A server that is starting, and has no first client
//! yet, does not survive that (zellij-org/zellij#5632), so that none is asked meanwhile.
//! (Read in the sources of zellij 0.45.1, and seen there, 2026-11.)

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Deserialize;
use whosup_process::{Pid, Process};
use whosup_sidecar::parse_json;

use super::servers::{
    Listening, ServerProcess, child_of, children, children_by_id, find_ours, list_each, run, silent,
};
use super::{Going, Input, Pane, PaneHost, Typing, Viewer};
use crate::adapter::Invocation;
use crate::machine::Machine;
use crate::machine::problem::Found;

/// The program.
const ZELLIJ: &str = "zellij";
/// What a directory of sockets is named, by the version of the protocol.
const CONTRACT: &str = "contract_version_";
/// How many panes of one session are kept.
const PANES_MAX: usize = 10_000;
/// How long a server without a child may be starting, in milliseconds. A later one has
/// programs that have ended.
const START_MS_MAX: i64 = 10_000;
/// How many entries of a directory are looked at.
const ENTRIES_MAX: usize = 1_000;

/// The pane host zellij.
#[derive(Debug)]
pub struct Zellij;

/// A server, and where it listens now, as far as that is known.
type Session = Listening<Option<PathBuf>>;

/// One pane as `list-panes --json` has it.
#[derive(Debug, Deserialize)]
struct Row {
    id: u32,
    #[serde(default)]
    is_plugin: bool,
    #[serde(default)]
    exited: bool,
    #[serde(default)]
    is_held: bool,
    #[serde(default)]
    title: String,
    #[serde(default)]
    tab_name: String,
}

impl PaneHost for Zellij {
    fn name(&self) -> &'static str {
        ZELLIJ
    }

    fn is_server(&self, process: &Process) -> bool {
        process.comm == ZELLIJ.as_bytes() && process.tty.is_none()
    }

    fn list(&self, machine: &Machine) -> Found<Vec<Pane>> {
        let servers = find_ours(machine, |process| self.is_server(process));
        let servers = servers
            .into_iter()
            .filter(|server| server.option("--server").is_some());
        let servers: Vec<ServerProcess> = servers.collect();
        let starting = servers.iter().find(|server| is_starting(machine, server));
        if let Some(server) = starting {
            let reason = "it is starting, and a question would end it (zellij-org/zellij#5632)";
            return Found {
                found: Vec::new(),
                problems: vec![silent(ZELLIJ, server.process.pid, reason)],
            };
        }
        let sessions = locate(machine, servers);
        let is_alone = sessions.len() == 1;
        list_each(
            ZELLIJ,
            machine,
            &sessions,
            |session, deadline| ask(machine, session, deadline),
            |session, rows| panes_of(machine, session, rows, is_alone),
        )
    }

    fn attach(&self, pane: &Pane) -> Option<Invocation> {
        command(pane, &["attach", pane.session.as_deref()?])
    }

    fn go(&self, pane: &Pane, here: Option<&Pane>) -> Option<Going> {
        let (session, id) = (pane.session.as_deref()?, pane.pane.as_deref()?);
        let focus = action(pane, &["focus-pane-id", id])?;
        Some(match here.filter(|here| here.host == ZELLIJ) {
            None => Going::RunThenBecome(vec![focus], self.attach(pane)?),
            Some(here) if here.server == pane.server => Going::Run(vec![focus]),
            Some(here) => {
                let switch = ["switch-session", session, "--pane-id", id];
                Going::Run(vec![action(here, &switch)?])
            }
        })
    }

    fn paste(&self, pane: &Pane, text: &str) -> Option<Typing> {
        let id = pane.pane.as_deref()?;
        let paste = action(pane, &["paste", "--pane-id", id, "--", text])?;
        Some(Typing::at_once(vec![Input::of(paste)]))
    }

    fn enter(&self, pane: &Pane) -> Option<Typing> {
        let id = pane.pane.as_deref()?;
        let write = action(pane, &["write", "--pane-id", id, "13"])?;
        Some(Typing::at_once(vec![Input::of(write)]))
    }
}

/// A server may have no client yet: with the first one it starts the program of its first pane.
fn is_starting(machine: &Machine, server: &ServerProcess) -> bool {
    let began = server.process.began_ms();
    let is_young = began.is_some_and(|began| began + START_MS_MAX > machine.now_ms());
    // On its way to become a daemon it is its own child.
    let mut programs =
        children(machine, &server.process).filter(|child| child.comm != ZELLIJ.as_bytes());
    is_young && programs.next().is_none()
}

/// Finds the current socket of each server: the socket that it was started with, or, if only
/// one server has lost its socket, the only socket there without another server.
fn locate(machine: &Machine, mut servers: Vec<ServerProcess>) -> Vec<Session> {
    // Of two servers that were started with one socket, the older was renamed since.
    servers.sort_by_key(|process| std::cmp::Reverse(process.process.began_ms()));
    let mut taken: Vec<PathBuf> = Vec::new();
    let mut sessions: Vec<Session> = Vec::new();
    let mut lost = Vec::new();
    for server in servers {
        let first = server.option("--server").map(PathBuf::from);
        let there = first.clone().filter(|path| {
            let is_there = sockets_beside(machine, path).contains(path);
            is_there && !taken.contains(path)
        });
        taken.extend(there.clone());
        if there.is_none() {
            lost.push((sessions.len(), first));
        }
        sessions.push(Session {
            server,
            socket: there,
        });
    }
    if let [(at, Some(first))] = lost.as_slice() {
        let mut others = sockets_beside(machine, first);
        others.retain(|path| !taken.contains(path));
        let is_one = others.len() == 1;
        if let Some(session) = sessions.get_mut(*at).filter(|_| is_one) {
            session.socket = others.pop();
        }
    }
    sessions
}

/// The entries of the directory of a socket.
#[expect(clippy::disallowed_methods, reason = "checked before")]
fn sockets_beside(machine: &Machine, socket: &Path) -> Vec<PathBuf> {
    let Some(directory) = socket.parent() else {
        return Vec::new();
    };
    if machine.mounts().touchable(directory).is_err() {
        return Vec::new();
    }
    let entries = directory.read_dir().into_iter().flatten().flatten();
    let paths = entries.take(ENTRIES_MAX).map(|entry| entry.path());
    // The bus of the web server lies beside the sessions.
    paths
        .filter(|path| !path.ends_with("web_server_bus"))
        .collect()
}

fn ask(machine: &Machine, session: &Session, deadline: Instant) -> Result<Vec<Row>, String> {
    let socket = session.socket.as_deref().ok_or("no socket leads to it")?;
    let name = name_of(socket).ok_or("its socket has no name")?;
    let directory = socket_directory(socket);
    let directory = directory.and_then(Path::to_str);
    let argv = [ZELLIJ, "--session", &name, "action", "list-panes", "--json"];
    let listing = run(
        machine,
        &[("ZELLIJ_SOCKET_DIR", directory)],
        &argv,
        deadline,
    )?;
    let rows: Vec<Row> = parse_json(&listing)
        .map_err(|error| format!("cannot understand its list of panes: {error}"))?;
    Ok(rows.into_iter().take(PANES_MAX).collect())
}

fn name_of(socket: &Path) -> Option<String> {
    Some(socket.file_name()?.to_str()?.to_owned())
}

/// `ZELLIJ_SOCKET_DIR` for a socket.
fn socket_directory(socket: &Path) -> Option<&Path> {
    let contract = socket.parent()?;
    let name = contract.file_name()?.to_str()?;
    name.starts_with(CONTRACT)
        .then(|| contract.parent())
        .flatten()
}

fn panes_of(machine: &Machine, session: &Session, rows: Vec<Row>, is_alone: bool) -> Vec<Pane> {
    let Listening { server, socket } = session;
    let Some(socket) = socket.as_deref() else {
        return Vec::new();
    };
    let children = children_by_id(machine, &server.process, "ZELLIJ_PANE_ID");
    let session = name_of(socket).unwrap_or_default();
    let viewers = viewers(machine, &session, is_alone);
    let terminals = rows.into_iter().filter(|row| !row.is_plugin);
    let panes = terminals.map(|row| {
        let is_dead = row.exited || row.is_held;
        let child = child_of(&children, &row.id.to_string()).filter(|_| !is_dead);
        Pane {
            host: ZELLIJ,
            server: Some(server.listening_at(socket)),
            session: Some(session.clone()),
            window: Some(row.tab_name.clone()),
            pane: Some(format!("terminal_{}", row.id)),
            place: format!("{session}/{} pane {}", row.tab_name, row.id),
            tty: child.and_then(|child| child.tty),
            pid: child.map(|child| child.pid),
            title: row.title,
            is_dead,
            viewers: viewers.clone(),
            ..Pane::default()
        }
    });
    panes.collect()
}

/// The clients that show a session: those that name it in their arguments, or, beside one
/// server alone, all.
fn viewers(machine: &Machine, session: &str, is_alone: bool) -> Vec<Viewer> {
    let clients = find_ours(machine, |process| {
        process.comm == ZELLIJ.as_bytes() && process.tty.is_some()
    });
    let names_it = |client: &ServerProcess| {
        let argv = client.details.argv.as_deref().unwrap_or_default();
        is_alone || argv.iter().skip(1).any(|word| word == session)
    };
    let matching = clients.iter().filter(|client| names_it(client));
    matching
        .map(|client| Viewer::Process(client.process.pid))
        .collect()
}

/// An action in the session of a pane.
fn action(pane: &Pane, words_of: &[&str]) -> Option<Invocation> {
    let session = pane.session.as_deref()?;
    let words = ["--session", session, "action"].into_iter();
    let words: Vec<&str> = words.chain(words_of.iter().copied()).collect();
    command(pane, &words)
}

fn command(pane: &Pane, words: &[&str]) -> Option<Invocation> {
    let _: Pid = pane.server.as_ref()?.pid?;
    let directory = socket_directory(&pane.server.as_ref()?.socket);
    let directory = directory.map(|path| ("ZELLIJ_SOCKET_DIR".to_owned(), path.to_owned()));
    let argv = [ZELLIJ].into_iter().chain(words.iter().copied());
    Some(Invocation {
        environment: directory.into_iter().collect(),
        ..Invocation::new(argv)
    })
}
