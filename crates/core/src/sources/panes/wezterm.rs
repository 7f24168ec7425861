//! WezTerm.
//!
//! `wezterm cli list --format json` lists each pane with the path of its terminal. Panes
//! have the socket of their server in `WEZTERM_UNIX_SOCKET`. A pane counts only if a child
//! of that server has its terminal: a window shows panes of other servers too, on other
//! computers among them. (Seen with `wezterm-mux-server` of 2025-02-23.)

use std::time::Instant;

use serde::Deserialize;
use whosup_process::{Process, Tty};
use whosup_sidecar::parse_json;

use super::servers::{Listening, children, find_ours, list_each, run};
use super::{Going, Input, Pane, PaneHost, Typing};
use crate::adapter::Invocation;
use crate::machine::Machine;
use crate::machine::problem::Found;

/// The program.
const WEZTERM: &str = "wezterm";
/// The programs that have panes, by their names in the process table: a window, and a
/// server without one, whose name is cut off.
const SERVERS: &[&[u8]] = &[b"wezterm-gui", b"wezterm-mux-ser"];
/// The variable that names a server's socket.
const SOCKET: &str = "WEZTERM_UNIX_SOCKET";
/// How many panes of one server are kept.
const PANES_MAX: usize = 10_000;

/// The pane host WezTerm.
#[derive(Debug)]
pub struct WezTerm;

#[derive(Debug, Deserialize)]
struct Row {
    pane_id: u64,
    #[serde(default)]
    workspace: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    tab_title: String,
    tab_id: Option<u64>,
    tty_name: Option<String>,
}

impl PaneHost for WezTerm {
    fn name(&self) -> &'static str {
        WEZTERM
    }

    fn is_server(&self, process: &Process) -> bool {
        SERVERS.contains(&process.comm.as_slice())
    }

    fn list(&self, machine: &Machine) -> Found<Vec<Pane>> {
        let servers = find_ours(machine, |process| self.is_server(process));
        let listening = servers.into_iter().filter_map(|server| {
            let socket = children(machine, &server.process).find_map(|child| {
                let environment = machine.environment_of(child, &[SOCKET])?;
                Some(environment.variable(SOCKET)?.to_str()?.to_owned())
            })?;
            Some(Listening { server, socket })
        });
        let listening: Vec<Listening<String>> = listening.collect();
        list_each(
            WEZTERM,
            machine,
            &listening,
            |wezterm, deadline| ask(machine, &wezterm.socket, deadline),
            |wezterm, rows| panes_of(machine, wezterm, rows),
        )
    }

    fn attach(&self, pane: &Pane) -> Option<Invocation> {
        command(pane, &["activate-pane"], &[])
    }

    fn go(&self, pane: &Pane, _: Option<&Pane>) -> Option<Going> {
        Some(Going::Run(vec![self.attach(pane)?]))
    }

    fn paste(&self, pane: &Pane, text: &str) -> Option<Typing> {
        // Without an option it is a paste, bracketed if the program asked for that.
        typed(pane, &[], text)
    }

    fn enter(&self, pane: &Pane) -> Option<Typing> {
        typed(pane, &["--no-paste"], "\r")
    }
}

fn ask(machine: &Machine, socket: &str, deadline: Instant) -> Result<Vec<Row>, String> {
    let argv = [
        WEZTERM,
        "cli",
        "--no-auto-start",
        "list",
        "--format",
        "json",
    ];
    let listing = run(machine, &[(SOCKET, Some(socket))], &argv, deadline)?;
    parse_json(&listing).map_err(|error| format!("cannot understand its list of panes: {error}"))
}

fn panes_of(machine: &Machine, wezterm: &Listening<String>, rows: Vec<Row>) -> Vec<Pane> {
    let rows = rows.into_iter().take(PANES_MAX);
    let panes = rows.map(|row| {
        let tty = row.tty_name.as_deref().and_then(Tty::of_name);
        let child = children(machine, &wezterm.server.process)
            .find(|child| tty.is_some() && child.tty == tty);
        let tab = match (row.tab_title.is_empty(), row.tab_id) {
            (true, Some(id)) => id.to_string(),
            _ => row.tab_title,
        };
        Pane {
            host: WEZTERM,
            server: Some(wezterm.server.listening_at(&wezterm.socket)),
            place: format!("{}/{tab}.{}", row.workspace, row.pane_id),
            session: Some(row.workspace),
            window: Some(tab),
            pane: Some(row.pane_id.to_string()),
            tty: child.and_then(|child| child.tty),
            pid: child.map(|child| child.pid),
            title: row.title,
            ..Pane::default()
        }
    });
    panes.collect()
}

fn command(pane: &Pane, command: &[&str], more: &[&str]) -> Option<Invocation> {
    let socket = &pane.server.as_ref()?.socket;
    let words = [WEZTERM, "cli", "--no-auto-start"].into_iter();
    let words = words.chain(command.iter().copied());
    let words = words.chain(["--pane-id", pane.pane.as_deref()?]);
    let words = words.chain(more.iter().copied());
    Some(Invocation::new(words).with(SOCKET, socket))
}

/// Without an argument the text is read from standard input.
fn typed(pane: &Pane, options: &[&str], text: &str) -> Option<Typing> {
    Some(Typing::at_once(vec![Input {
        invocation: command(pane, &["send-text"], options)?,
        stdin: text.to_owned(),
    }]))
}
