//! kitty.
//!
//! `kitty @ ls` lists each window with the PID of its program, if kitty listens at a socket
//! (`--listen-on`, or `listen_on` in kitty.conf) and allows remote control. Windows have the
//! socket in `KITTY_LISTEN_ON` and kitty's PID in `KITTY_PID`. A kitty without a socket can
//! only be recognized. (Seen in kitty 0.26.5, 2026-11.)

use std::time::Instant;

use serde::Deserialize;
use whosup_process::{Pid, Process};
use whosup_sidecar::parse_json;

use super::servers::{Listening, ServerProcess, children, find_ours, list_each, run};
use super::typing::bracketed;
use super::{Going, Input, Pane, PaneHost, Typing};
use crate::adapter::Invocation;
use crate::machine::Machine;
use crate::machine::problem::Found;

/// The program.
const KITTY: &str = "kitty";
/// How many windows of one kitty are kept.
const WINDOWS_MAX: usize = 10_000;

/// The pane host kitty.
#[derive(Debug)]
pub struct Kitty;

#[derive(Debug, Deserialize)]
struct OsWindow {
    #[serde(default)]
    tabs: Vec<Tab>,
}

#[derive(Debug, Deserialize)]
struct Tab {
    #[serde(default)]
    title: String,
    #[serde(default)]
    windows: Vec<Window>,
}

#[derive(Debug, Deserialize)]
struct Window {
    id: u64,
    pid: Option<i64>,
    #[serde(default)]
    title: String,
}

impl PaneHost for Kitty {
    fn name(&self) -> &'static str {
        KITTY
    }

    fn is_server(&self, process: &Process) -> bool {
        process.comm == KITTY.as_bytes()
    }

    fn list(&self, machine: &Machine) -> Found<Vec<Pane>> {
        let servers = find_ours(machine, |process| {
            self.is_server(process) && !is_helper(machine, process)
        });
        let listening = servers.into_iter().filter_map(|server| {
            let socket = socket_of(machine, &server)?;
            Some(Listening { server, socket })
        });
        let listening: Vec<Listening<String>> = listening.collect();
        list_each(
            KITTY,
            machine,
            &listening,
            |kitty, deadline| ask(machine, &kitty.socket, deadline),
            |kitty, windows| panes_of(machine, kitty, &windows),
        )
    }

    fn attach(&self, pane: &Pane) -> Option<Invocation> {
        remote(pane, &["focus-window"], &[])
    }

    fn go(&self, pane: &Pane, _: Option<&Pane>) -> Option<Going> {
        Some(Going::Run(vec![self.attach(pane)?]))
    }

    fn paste(&self, pane: &Pane, text: &str) -> Option<Typing> {
        typed(pane, bracketed(text))
    }

    fn enter(&self, pane: &Pane) -> Option<Typing> {
        typed(pane, "\r".to_owned())
    }
}

/// A kitty has a child by the same name, which starts its programs.
fn is_helper(machine: &Machine, process: &Process) -> bool {
    let parent = process.ppid.and_then(|pid| machine.table().seen(pid));
    let is_kitty = |parent: &Process| parent.comm == process.comm && parent.tty == process.tty;
    parent.is_some_and(is_kitty)
}

/// The address of a kitty, as `--to` takes it: from its windows' environment, else from its arguments.
fn socket_of(machine: &Machine, server: &ServerProcess) -> Option<String> {
    let own = server.process.pid.to_string();
    let of_window = children(machine, &server.process).find_map(|child| {
        let names = ["KITTY_LISTEN_ON", "KITTY_PID"];
        let environment = machine.environment_of(child, &names)?;
        let is_its = environment.variable("KITTY_PID")?.to_str() == Some(&own);
        let socket = environment.variable("KITTY_LISTEN_ON")?.to_str()?;
        is_its.then(|| socket.to_owned())
    });
    of_window.or_else(|| server.option("--listen-on"))
}

fn ask(machine: &Machine, socket: &str, deadline: Instant) -> Result<Vec<OsWindow>, String> {
    let listing = run(machine, &[], &[KITTY, "@", "--to", socket, "ls"], deadline)?;
    parse_json(&listing).map_err(|error| format!("cannot understand its list of windows: {error}"))
}

fn panes_of(machine: &Machine, kitty: &Listening<String>, os_windows: &[OsWindow]) -> Vec<Pane> {
    let tabs = os_windows.iter().flat_map(|window| &window.tabs);
    let windows = tabs.flat_map(|tab| tab.windows.iter().map(move |window| (tab, window)));
    let server = &kitty.server.process;
    let panes = windows.take(WINDOWS_MAX).map(|(tab, window)| {
        // A kitty on another computer has other PIDs.
        let pid = window.pid.and_then(|pid| Pid::new(pid).ok());
        let process = pid.and_then(|pid| machine.table().seen(pid));
        let process = process.filter(|process| {
            let mut ancestors = machine.table().ancestors(process);
            ancestors.any(|ancestor| ancestor.pid == server.pid)
        });
        Pane {
            host: KITTY,
            server: Some(kitty.server.listening_at(&kitty.socket)),
            window: Some(tab.title.clone()),
            pane: Some(window.id.to_string()),
            place: format!("{}.{}", tab.title, window.id),
            tty: process.and_then(|process| process.tty),
            pid: process.map(|process| process.pid),
            title: window.title.clone(),
            ..Pane::default()
        }
    });
    panes.collect()
}

/// A remote command to the window of a pane.
fn remote(pane: &Pane, command: &[&str], more: &[&str]) -> Option<Invocation> {
    let socket = pane.server.as_ref()?.socket.to_str()?;
    let window = format!("id:{}", pane.pane.as_deref()?);
    let words = [KITTY, "@", "--to", socket].into_iter();
    let words = words.chain(command.iter().copied());
    let words = words
        .chain(["--match", &window])
        .chain(more.iter().copied());
    Some(Invocation::new(words))
}

/// Text from standard input is sent as it is; among arguments it would have escapes.
fn typed(pane: &Pane, text: String) -> Option<Typing> {
    Some(Typing::at_once(vec![Input {
        invocation: remote(pane, &["send-text"], &["--stdin"])?,
        stdin: text,
    }]))
}
