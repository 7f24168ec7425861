//! One pass along the line: processes, homes, claims, verdicts, sessions, panes.

mod again;
mod batches;
mod finish;
mod settling;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::thread::Builder;

use whosup_sidecar::AgentId;

use crate::adapter::{
    Adapter, AgentProcess, AgentScan, Depth, Description, Home, Look, Role, Sketch,
};

use crate::adapter::claim::{Claim, Trust};
use crate::machine::observer::About;
use crate::machine::problem::{Found, Problem};
use crate::machine::{Machine, parallel};
use crate::sessions::merge::merge;
use crate::sessions::session::{Session, Snapshot};
use crate::sources::agents::{self, AGENTS};
use crate::sources::common_place::scan_common_place;
use crate::sources::dismissal::Dismissals;
use crate::sources::future_dates;
use crate::sources::panes::Panes;
use crate::sources::recognize::{
    AgentProcesses, Users, find_agent_processes, homes, leave_out_others,
};
use crate::sources::record::{name_homes_alike, scan_records};

pub use again::Judged;
use finish::{finish, looked_at, seen};
use settling::{Settling, surroundings};

/// The scope of a scan.
#[derive(Debug, Clone)]
pub struct Scope {
    /// How far to look.
    pub depth: Depth,
    /// These agents only; all of them if `None`.
    pub agents: Option<BTreeSet<AgentId>>,
    /// Whose processes.
    pub users: Users,
    /// Homes beyond those that environments lead to.
    pub extra_homes: Vec<(AgentId, PathBuf)>,
    /// Whether [`Scanned::judged`] is wanted.
    pub is_judged_again: bool,
}

impl Default for Scope {
    fn default() -> Self {
        Self {
            depth: Depth::Live,
            agents: None,
            users: Users::Own,
            extra_homes: Vec::new(),
            is_judged_again: false,
        }
    }
}

/// A scan, and what is needed to describe its sessions.
#[derive(Debug)]
pub struct Scanned<'a> {
    machine: &'a Machine,
    depth: Depth,
    processes: Vec<AgentProcess>,
    /// What the verdicts were made from, if that is wanted and not too much.
    pub judged: Option<Judged>,
    /// What was found.
    pub snapshot: Snapshot,
}

/// Takes a finished session, and a describer of its files.
pub type Take<'a> = dyn FnMut(Session, Describer<'_>) + 'a;

/// Describes sessions from their own files.
#[derive(Debug, Clone, Copy)]
pub struct Describer<'a>(Look<'a>);

impl Describer<'_> {
    /// Describes one session from its own files; returns what could not be read.
    pub fn describe(&self, session: &mut Session) -> Vec<Problem> {
        let mut problems = Vec::new();
        if let Some(problem) = untouched_transcript(self.0.machine, &session.sketch) {
            return vec![problem];
        }
        if let Some(adapter) = session.adapter {
            let description = adapter.describe(&session.sketch);
            session.description = description.take(&mut problems);
            future_dates::take_out_of_description(
                &mut session.description,
                &session.key.agent,
                session.sketch.transcript.as_deref(),
                self.0.machine.now_ms(),
                &mut problems,
            );
        }
        problems
    }
}

/// Why the transcript that a record, sidecar or database names is not read.
#[must_use]
pub fn untouched_transcript(machine: &Machine, sketch: &Sketch) -> Option<Problem> {
    let transcript = sketch.transcript.as_deref()?;
    let why = machine.mounts().touchable(transcript).err()?;
    Some(Problem {
        agent: Some(sketch.key.agent.clone()),
        path: Some(transcript.to_owned()),
        message: format!("this transcript is not read: {why}"),
    })
}

/// Looks at one machine once.
#[must_use]
pub fn scan<'a>(machine: &'a Machine, scope: &Scope) -> Scanned<'a> {
    let mut settled = Vec::new();
    let mut scanned = scan_each(machine, scope, &mut |session, _| settled.push(session));
    if !settled.is_empty() {
        let sessions = &mut scanned.snapshot.sessions;
        sessions.extend(settled);
        sessions.sort_by(|one, other| one.key.cmp(&other.key));
    }
    scanned
}

/// Like [`scan`], but judges only after everything was looked at. The answer is the same:
/// tests compare both, to show that no session is settled too early.
#[must_use]
pub fn scan_at_once<'a>(machine: &'a Machine, scope: &Scope) -> Scanned<'a> {
    look(machine, scope, None)
}

/// Looks at one machine once, and passes on each session as soon as nothing that is found
/// later can change it. The rest is in the return value.
///
/// So the many dead sessions of a large disk are never all in memory.
pub fn scan_each<'a>(machine: &'a Machine, scope: &Scope, settled: &mut Take<'_>) -> Scanned<'a> {
    look(machine, scope, Some(settled))
}

fn look<'a>(
    machine: &'a Machine,
    scope: &Scope,
    mut settled: Option<&mut Take<'_>>,
) -> Scanned<'a> {
    let mut problems = Vec::new();
    problems.extend(unknown_home(machine));
    let adapters = AGENTS.iter().copied();
    let adapters = adapters.filter(|adapter| is_wanted(scope, *adapter));
    let adapters: Vec<&'static dyn Adapter> = adapters.collect();
    let agents = find_agents(machine, scope, &adapters, &mut problems);
    let (mut processes, possible) = (agents.recognized, agents.possible);
    let published = scan_common_place(machine, |agent| is_asked_for(scope, agent));
    let mut published = published.take(&mut problems);
    question(&mut published.scan, machine, &mut problems);
    let asked = find_homes(machine, scope, &adapters, &mut processes, &mut problems);
    let mut found = find_records(machine, scope, &asked, &mut problems);
    let needs_panes = processes.iter().any(may_be_in_a_pane)
        || names_a_terminal(machine, &published.scan)
        || names_a_terminal(machine, &found);
    let dismissals = Dismissals::read(machine.environment(), |agent| is_asked_for(scope, agent));
    let dismissals = dismissals.take(&mut problems);
    let around = surroundings(
        machine,
        &asked,
        (&processes, &possible),
        [&found, &published.scan],
        agents.named_by_others,
    );
    let mut settling = Settling::new(machine, &around, (&processes, &possible));
    let look = look_with(machine, &scope.depth, &processes);
    let panes = ask_panes_beside(machine, needs_panes, || {
        let scan = |(adapter, home): &(&dyn Adapter, Home)| scan_home(&look, *adapter, home);
        // Of everything on disk only one home at a time is in memory.
        let mut at_once = match scope.depth {
            Depth::All => Vec::new().into_iter(),
            _ => parallel::map(asked.iter().collect(), scan).into_iter(),
        };
        for one @ (adapter, _) in &asked {
            let scanned = at_once.next().unwrap_or_else(|| scan(one));
            let scanned = scanned.take(&mut problems);
            let agent = agents::id_of(*adapter);
            let rest = match &mut settled {
                Some(settled) => settling.settle(&agent, scanned, &mut |mut session| {
                    hide_dismissed(&mut session, &dismissals, Describer(look));
                    settled(session, Describer(look));
                }),
                None => scanned,
            };
            found.claims.extend(rest.claims);
            found.sketches.extend(rest.sketches);
        }
    });
    let panes = panes.take(&mut problems);
    published.move_to_homes_of(found.keys().chain(settling.judged_keys()));
    found.claims.extend(published.scan.claims);
    found.sketches.extend(published.scan.sketches);
    let step = machine.step(About::machine("verdicts"));
    let parts = settling.judge(found, &published.homes, (&processes, &possible), &panes);
    let judged = scope.is_judged_again.then(|| Judged::of(&parts)).flatten();
    let mut merged = merge(parts);
    step.end(|| format!("{} sessions judged together", merged.sessions.len()));
    drop(around);
    for session in &mut merged.sessions {
        hide_dismissed(session, &dismissals, Describer(look));
    }
    let mut snapshot = finish(machine, merged, &panes, &processes, problems);
    snapshot.looked_at = looked_at(asked, published.homes);
    snapshot.processes = seen(&processes, &possible, &panes);
    Scanned {
        machine,
        depth: scope.depth.clone(),
        processes,
        judged,
        snapshot,
    }
}

/// How much was read, for the observer.
fn read_of(found: &AgentScan) -> String {
    let (sessions, claims) = (found.sketches.len(), found.claims.len());
    format!("{sessions} sessions, {claims} claims")
}

/// The processes that an adapter recognizes, or that may be an agent.
fn find_agents(
    machine: &Machine,
    scope: &Scope,
    adapters: &[&'static dyn Adapter],
    problems: &mut Vec<Problem>,
) -> AgentProcesses {
    let step = machine.step(About::machine("agent processes"));
    let mut found = find_agent_processes(machine, adapters, problems);
    if scope.users == Users::Own {
        leave_out_others(machine, &scope.extra_homes, &mut found);
    }
    step.end(|| {
        let (recognized, possible) = (found.recognized.len(), found.possible.len());
        format!("{recognized} recognized, {possible} possible")
    });
    found
}

/// What our records say, with homes by the names that are looked at.
fn find_records(
    machine: &Machine,
    scope: &Scope,
    asked: &[(&'static dyn Adapter, Home)],
    problems: &mut Vec<Problem>,
) -> AgentScan {
    let step = machine.step(About::machine("session records"));
    let records = scan_records(machine, &scope.depth, |agent| is_asked_for(scope, agent));
    let mut found = records.take(problems);
    name_homes_alike(&mut found, asked, machine);
    question(&mut found, machine, problems);
    step.end(|| read_of(&found));
    found
}

/// The homes to look at, agent by agent.
fn find_homes(
    machine: &Machine,
    scope: &Scope,
    adapters: &[&'static dyn Adapter],
    processes: &mut [AgentProcess],
    problems: &mut Vec<Problem>,
) -> Vec<(&'static dyn Adapter, Home)> {
    let step = machine.step(About::machine("homes"));
    let mut found = Vec::new();
    for adapter in adapters {
        let homes = homes(machine, *adapter, &scope.extra_homes, processes, problems);
        found.extend(homes.into_iter().map(|home| (*adapter, home)));
    }
    step.end(|| found.len().to_string());
    found
}

/// Whether one of the processes that a source names has a terminal.
fn names_a_terminal(machine: &Machine, found: &AgentScan) -> bool {
    let owners = found.claims.iter().filter_map(|claim| claim.subject.pid());
    let mut owners = owners.filter_map(|pid| machine.table().seen(pid));
    let sketches = found.sketches.iter();
    let mut clients = sketches.filter_map(|sketch| sketch.client.as_ref());
    owners.any(|process| process.tty.is_some())
        || clients.any(|client| client.process.tty.is_some())
}

/// Asks the pane hosts, if wanted, while `work` runs.
fn ask_panes_beside(machine: &Machine, is_wanted: bool, work: impl FnOnce()) -> Found<Panes> {
    let ask = || Panes::ask(machine);
    std::thread::scope(|threads| {
        let panes = is_wanted.then(|| {
            let started = Builder::new().name("whosup-panes".to_owned());
            started.spawn_scoped(threads, ask)
        });
        work();
        match panes {
            Some(Ok(asked)) => asked.join().unwrap_or_default(),
            // No thread can be started: ask them here.
            Some(Err(_)) => ask(),
            None => Found::default(),
        }
    })
}

/// A session that a process is seen to serve, or may, is never hidden.
fn hide_dismissed(session: &mut Session, dismissals: &Dismissals, describer: Describer<'_>) {
    let hides = |session: &Session| dismissals.hide(&session.key, session.last_heard_of_ms());
    session.is_dismissed = session.may_be_dismissed() && hides(session);
    if session.is_dismissed {
        // Activity may stand only in its own files. What else they say is for who asks for it.
        describer.describe(session);
        session.is_dismissed = hides(session);
        session.description = Description::default();
    }
}

/// Agents that no variable moves have their files below the user's home.
fn unknown_home(machine: &Machine) -> Option<Problem> {
    let message = "the home directory is unknown (`HOME` is no absolute path): the usual homes of \
                   agents are not looked at";
    let is_unknown = machine.environment().home().is_none();
    is_unknown.then(|| Problem::of_machine(message))
}

/// Reports what in a source can't be trusted, and removes dates in the future.
fn question(scan: &mut AgentScan, machine: &Machine, problems: &mut Vec<Problem>) {
    future_dates::take_out(scan, machine.now_ms(), problems);
    problems.extend(scan.claims.iter().filter_map(distrust));
}

/// What is wrong with a claim that another user could have written.
fn distrust(claim: impl AsRef<Claim>) -> Option<Problem> {
    let claim = claim.as_ref();
    let Trust::Untrusted { because } = &claim.trust else {
        return None;
    };
    Some(Problem {
        agent: Some(claim.key.agent.clone()),
        path: claim.evidence.path.clone(),
        message: because.clone(),
    })
}

fn is_wanted(scope: &Scope, adapter: &dyn Adapter) -> bool {
    is_asked_for(scope, &agents::id_of(adapter))
}

fn is_asked_for(scope: &Scope, agent: &AgentId) -> bool {
    let mut asked = scope.agents.iter();
    asked.all(|agents| agents.contains(agent))
}

fn may_be_in_a_pane(process: &AgentProcess) -> bool {
    matches!(process.role, Role::Session | Role::Client) && process.process.tty.is_some()
}

const fn look_with<'a>(
    machine: &'a Machine,
    depth: &'a Depth,
    processes: &'a [AgentProcess],
) -> Look<'a> {
    Look {
        machine,
        depth,
        processes,
    }
}

fn scan_home(look: &Look<'_>, adapter: &dyn Adapter, home: &Home) -> Found<AgentScan> {
    let agent = agents::id_of(adapter);
    let step = look.machine.step(About::home(&agent, &home.root));
    let its: Vec<AgentProcess> = look
        .processes
        .iter()
        .filter(|process| process.agent == agent)
        .cloned()
        .collect();
    let look = Look {
        processes: &its,
        ..*look
    };
    let mut scanned = adapter.scan(&look, home);
    question(&mut scanned.found, look.machine, &mut scanned.problems);
    step.end(|| read_of(&scanned.found));
    scanned
}

impl Scanned<'_> {
    /// Every process that an adapter recognized, in any role.
    #[must_use]
    pub fn processes(&self) -> &[AgentProcess] {
        &self.processes
    }

    /// Describes sessions of this look from their own files.
    #[must_use]
    pub const fn describer(&self) -> Describer<'_> {
        Describer(look_with(
            self.machine,
            &self.depth,
            self.processes.as_slice(),
        ))
    }

    /// Describes the sessions that pass `wanted` from their own files.
    pub fn describe(&mut self, wanted: impl Fn(&Session) -> bool) {
        let step = self.machine.step(About::machine("transcripts"));
        let describer = Describer(look_with(self.machine, &self.depth, &self.processes));
        let sessions = self.snapshot.sessions.iter_mut();
        let sessions = sessions.filter(|session| wanted(session)).collect();
        let problems = parallel::map(sessions, |session| describer.describe(session));
        step.end(|| format!("{} sessions", problems.len()));
        let all = &mut self.snapshot.problems;
        all.extend(problems.into_iter().flatten());
        all.sort();
        all.dedup();
    }
}
