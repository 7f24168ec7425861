//! Terminal panes: which cell of which pane host a process lives in.
//!
//! Comes in: the process table, and what each pane host lists. Goes out: [`Panes`], which
//! finds the pane of a process, and for each pane the commands that show it to a person
//! ([`Going`]) or type into it ([`Typing`]). Nothing here runs those.

mod going;
pub mod kitty;
pub mod recognized;
pub mod screen;
mod servers;
#[cfg(unix)]
pub mod tmux;
mod typing;
pub mod wezterm;
pub mod zellij;

pub use going::Going;
pub use typing::{Input, Typing};

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::thread::Builder;

use whosup_process::{Pid, Process, ProcessTable, StartStamp, Tty};

use crate::adapter::Invocation;
use crate::machine::Machine;
use crate::machine::observer::About;
use crate::machine::problem::{Found, Problem};

/// Every pane host of this platform, in the order in which they are asked.
pub const PANE_HOSTS: &[&dyn PaneHost] = &[
    #[cfg(unix)]
    &tmux::Tmux,
    &screen::Screen,
    &zellij::Zellij,
    &kitty::Kitty,
    &wezterm::WezTerm,
];

/// How many levels of hosts around a pane are searched.
const NESTED_MAX: usize = 4;

/// Knows one pane host.
pub trait PaneHost: Send + Sync {
    /// Its name in output.
    fn name(&self) -> &'static str;

    /// Every pane of every server of this host that we may ask: one listing command per server,
    /// all under the shared deadline of the machine's commands. A server without an answer is a
    /// problem.
    fn list(&self, machine: &Machine) -> Found<Vec<Pane>>;

    /// Whether a process may be a server of this host, by name and arguments. A process below a
    /// server but in none of its panes has no pane.
    fn is_server(&self, process: &Process) -> bool;

    /// How a person gets to see a pane, from a terminal outside of any multiplexer;
    /// `None` if the pane is not known.
    fn attach(&self, pane: &Pane) -> Option<Invocation>;

    /// How a person in the pane `here` gets to see `pane`.
    fn go(&self, pane: &Pane, here: Option<&Pane>) -> Option<Going>;

    /// Commands that type a text into a pane as a paste, so that a line break is no Enter.
    fn paste(&self, pane: &Pane, text: &str) -> Option<Typing>;

    /// Commands that press Enter in a pane.
    fn enter(&self, pane: &Pane) -> Option<Typing>;
}

/// The terminal cell that processes are attached to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pane {
    /// The pane host's name.
    pub host: &'static str,
    /// The server, if the pane ID is known. A pane ID is valid only within one run of the server.
    pub server: Option<PaneServer>,
    /// The host's own name of the session or workspace around it.
    pub session: Option<String>,
    /// The name of the window or tab around it.
    pub window: Option<String>,
    /// The host's own ID of it; `None` if the host is recognized but lists no panes.
    pub pane: Option<String>,
    /// The place in words that the host's users know: `main:api.0` of tmux. Empty if the pane ID
    /// is not known.
    pub place: String,
    /// Its terminal.
    pub tty: Option<Tty>,
    /// The process that the host started in it.
    pub pid: Option<Pid>,
    /// The title that programs in it have set.
    pub title: String,
    /// Its process has exited, and the host keeps the pane.
    pub is_dead: bool,
    /// The programs that show it to a person.
    pub viewers: Vec<Viewer>,
    /// The pane of another host that shows this pane, once it was searched.
    pub outer: Option<Box<Pane>>,
}

/// A program that shows panes of a host in its own terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Viewer {
    /// The host's client with this PID.
    Process(Pid),
    /// The program with this terminal.
    Terminal(Tty),
}

/// One run of a pane host's server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaneServer {
    /// Where it listens.
    pub socket: PathBuf,
    /// Its process.
    pub pid: Option<Pid>,
    /// When the process began, raw.
    pub stamp: Option<StartStamp>,
}

/// All panes, indexed for finding the pane of a process.
#[derive(Debug, Clone, Default)]
pub struct Panes {
    panes: Vec<Pane>,
    /// Living panes by the process that was started in them.
    by_pid: HashMap<Pid, usize>,
    /// Living panes of which only the terminal is known.
    by_tty: HashMap<Tty, usize>,
}

impl Panes {
    /// Asks every pane host.
    #[must_use]
    pub fn ask(machine: &Machine) -> Found<Self> {
        let mut problems = Vec::new();
        let mut panes = Vec::new();
        std::thread::scope(|scope| {
            let asked: Vec<_> = PANE_HOSTS
                .iter()
                .map(|host| {
                    let started = Builder::new().name(format!("whosup-{}", host.name()));
                    (host, started.spawn_scoped(scope, || list(*host, machine)))
                })
                .collect();
            for (host, asked) in asked {
                let found = match asked {
                    Ok(asked) => asked.join(),
                    // No thread can be started: ask it here.
                    Err(_) => Ok(list(*host, machine)),
                };
                match found {
                    Ok(found) => panes.extend(found.take(&mut problems)),
                    Err(_) => problems.push(Problem::of_machine(format!(
                        "cannot list the panes of {}: the answer was lost",
                        host.name()
                    ))),
                }
            }
        });
        Found {
            found: Self::new(panes),
            problems,
        }
    }

    /// Panes that were listed before.
    #[must_use]
    pub fn new(panes: Vec<Pane>) -> Self {
        let mut by_pid = HashMap::new();
        let mut by_tty = HashMap::new();
        for (at, pane) in panes.iter().enumerate() {
            match (pane.pid, pane.tty) {
                _ if pane.is_dead => {}
                (Some(pid), _) => {
                    by_pid.entry(pid).or_insert(at);
                }
                (None, Some(tty)) => {
                    by_tty.entry(tty).or_insert(at);
                }
                (None, None) => {}
            }
        }
        Self {
            panes,
            by_pid,
            by_tty,
        }
    }

    /// Every server that has panes, once.
    pub fn servers(&self) -> impl Iterator<Item = &PaneServer> {
        let mut known = HashSet::new();
        let servers = self.panes.iter().filter_map(|pane| pane.server.as_ref());
        servers.filter(move |server| known.insert(&server.socket))
    }

    /// All panes, as they were listed.
    pub fn all(&self) -> impl Iterator<Item = &Pane> {
        self.panes.iter()
    }

    /// The pane whose terminal a process has, else the pane of its nearest ancestor with a
    /// terminal.
    ///
    /// A process that has lost its terminal and its parent lives in no pane. A process that
    /// gave up its terminal (`setsid`) lives in its parent's pane as long as the parent does:
    /// true of tools and nested agents, and no evidence for a daemon that serves others. A
    /// process with another terminal does only if a program that shows this terminal in the
    /// pane's is in between.
    #[must_use]
    pub fn of(&self, process: &Process, table: &ProcessTable) -> Option<&Pane> {
        if let Some(pane) = self.holding(process) {
            return Some(pane);
        }
        // Start dates of two scans differ by the movement of the clock, so that parents come from
        // the process table of one scan, if it has them.
        let is_same = |seen: &&Process| (&seen.stamp, seen.ppid) == (&process.stamp, process.ppid);
        let seen = table.seen(process.pid).filter(is_same);
        let mut tty = process.tty;
        for ancestor in table.ancestors(seen.unwrap_or(process)) {
            if PANE_HOSTS.iter().any(|host| host.is_server(ancestor)) {
                return None;
            }
            let has_other_tty = tty.is_some() && ancestor.tty.is_some() && tty != ancestor.tty;
            if has_other_tty && !relays_a_terminal(ancestor) {
                return None;
            }
            if let Some(pane) = self.holding(ancestor) {
                return Some(pane);
            }
            tty = ancestor.tty.or(tty);
        }
        None
    }

    /// The pane to show for a process: as [`Panes::of`], with the panes around it; else the
    /// terminal that is recognized above it.
    #[must_use]
    pub fn shown(&self, process: &Process, table: &ProcessTable) -> Option<Pane> {
        self.shown_within(process, table, NESTED_MAX)
    }

    fn shown_within(&self, process: &Process, table: &ProcessTable, depth: usize) -> Option<Pane> {
        let depth = depth.checked_sub(1)?;
        match self.of(process, table) {
            Some(pane) => {
                let mut pane = pane.clone();
                let outer = self.around(&pane, table, depth);
                pane.outer = outer.map(Box::new);
                Some(pane)
            }
            None => recognized::above(process, table),
        }
    }

    /// The pane that shows the host of a pane, if there is exactly one.
    fn around(&self, pane: &Pane, table: &ProcessTable, depth: usize) -> Option<Pane> {
        let processes = pane.viewers.iter().filter_map(|viewer| match viewer {
            Viewer::Process(pid) => table.seen(*pid),
            Viewer::Terminal(tty) => {
                let mut all = table.processes().ok()?.iter();
                all.find(|process| process.tty == Some(*tty))
            }
        });
        let mut outer: Vec<Pane> = Vec::new();
        for process in processes {
            let found = self.shown_within(process, table, depth)?;
            if !outer.contains(&found) {
                outer.push(found);
            }
        }
        let is_one = outer.len() == 1;
        outer.pop().filter(|_| is_one)
    }

    /// The pane that a process itself is in: it was started there, or has its
    /// terminal.
    ///
    /// A terminal's number alone is ambiguous: every container counts its own from 0. But a
    /// terminal belongs to one Unix session at a time, and the first process of a pane leads the
    /// pane's Unix session.
    fn holding(&self, process: &Process) -> Option<&Pane> {
        let of_pid = |pid: Pid| self.panes.get(*self.by_pid.get(&pid)?);
        if let Some(pane) = of_pid(process.pid) {
            return Some(pane);
        }
        let tty = process.tty?;
        let leader = Pid::new(i64::from(process.unix_session)).ok();
        leader
            .and_then(of_pid)
            .filter(|pane| pane.tty.is_none_or(|its| its == tty))
            .or_else(|| self.panes.get(*self.by_tty.get(&tty)?))
    }
}

/// Asks one pane host.
fn list(host: &dyn PaneHost, machine: &Machine) -> Found<Vec<Pane>> {
    let step = machine.step(About::panes(host.name()));
    let found = host.list(machine);
    step.end(|| {
        let servers = found.found.iter().filter_map(|pane| pane.server.as_ref());
        let sockets: BTreeSet<&Path> = servers.map(|server| &*server.socket).collect();
        let silent = found.problems.len();
        format!(
            "{} panes of {sockets:?}, {silent} problems",
            found.found.len()
        )
    });
    found
}

/// Programs that give a program a terminal of its own and show it in theirs, by process name.
///
/// Other programs do that too, for example terminals with a window of their own: what runs in
/// these is not in the pane that they were started from.
const RELAYS: &[&[u8]] = &[
    b"asciinema",
    b"expect",
    b"rlwrap",
    b"runuser",
    b"script",
    b"su",
    b"sudo",
    b"unbuffer",
    // `whosup run --pty`
    b"whosup",
];

fn relays_a_terminal(process: &Process) -> bool {
    RELAYS.contains(&process.comm.as_slice())
}

/// Finds the host that a pane belongs to.
#[must_use]
pub fn host_of(pane: &Pane) -> Option<&'static dyn PaneHost> {
    PANE_HOSTS
        .iter()
        .copied()
        .find(|host| host.name() == pane.host)
}
