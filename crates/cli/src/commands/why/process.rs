//! `whosup why --pid`: the session that a process serves, or why it is unknown.

use std::path::Path;

use whosup_core::adapter::{AgentProcess, Role};
use whosup_core::judging::verdict::{Liveness, UnknownBecause, Verdict};
use whosup_core::process::{Pid, Process};
use whosup_core::sessions::scan::Scanned;
use whosup_core::sessions::session::Session;
use whosup_core::sources::recognize::Users;
use whosup_core::views::explain::{Explanation, explain, explain_unattributed};
use whosup_core::views::wire;

use super::{write_explanation, write_sentences};
use crate::app::{App, World};
use crate::exit::ExitStatus;
use crate::json::{Answer, WhyMore, write_document};
use crate::text;
use whosup_core::reader::Reach;

/// How many sessions of one process are explained in full; the others are listed by ID.
const EXPLAINED_MAX: usize = 3;

/// How many dead claims to one PID are shown.
const CLAIMS_SHOWN_MAX: usize = 20;

/// The explanation of a process, and its sessions.
struct Said {
    /// Sentences about the process itself.
    sentences: Vec<String>,
    /// The sessions that it serves, or is claimed to have served.
    sessions: Vec<Session>,
    status: ExitStatus,
}

impl Said {
    fn only(status: ExitStatus, sentence: String) -> Self {
        Self {
            sentences: vec![sentence],
            sessions: Vec::new(),
            status,
        }
    }

    /// The first sessions are explained, the others named.
    fn explanations(&self, home: Option<&Path>) -> Vec<Explanation> {
        let named = |session: &Session| {
            let (id, answer) = (&session.key.session, session.liveness().name());
            Explanation {
                answer: vec![format!("Its session {id} is {answer}.")],
                evidence: Vec::new(),
            }
        };
        let (explained, rest) = self
            .sessions
            .split_at(EXPLAINED_MAX.min(self.sessions.len()));
        let explained = explained.iter().map(|session| explain(session, home));
        explained.chain(rest.iter().map(named)).collect()
    }
}

/// Explains a process.
///
/// # Errors
///
/// If the scan or the output failed.
pub(super) fn run(app: &mut App<'_>, pid: Pid, is_json: bool) -> anyhow::Result<ExitStatus> {
    let reach = Reach {
        users: Users::All,
        ..Reach::default()
    };
    let mut scanned = app.world.scan(&reach)?;
    keep_explained(&mut scanned, pid);
    app.world.describe(&mut scanned, |_| false)?;
    let said = explain_pid(&app.world, &scanned, pid);
    let explained = said.explanations(app.world.home());
    if is_json {
        let keys: Vec<_> = said
            .sessions
            .iter()
            .map(|session| session.key.clone())
            .collect();
        // The candidates were described before.
        let mut unattributed = std::mem::take(&mut scanned.snapshot.unattributed);
        unattributed.retain(|one| one.process.process.pid == pid);
        app.world
            .describe(&mut scanned, |session| keys.contains(&session.key))?;
        let mut snapshot = scanned.snapshot;
        snapshot
            .sessions
            .retain(|session| keys.contains(&session.key));
        snapshot.unattributed = unattributed;
        let document = Answer {
            snapshot: &wire::snapshot(app.world.machine(), &snapshot),
            more: WhyMore {
                pid: Some(pid.get()),
                explanation: said
                    .sentences
                    .into_iter()
                    .chain(explained.into_iter().flat_map(Explanation::into_lines))
                    .collect(),
            },
        };
        write_document(app.out, &document)?;
    } else {
        write_sentences(app, &said.sentences)?;
        for explanation in &explained {
            writeln!(app.out)?;
            write_explanation(app, explanation)?;
        }
    }
    Ok(said.status)
}

/// Removes the processes without a known session that are not explained: all except the one
/// with this PID and, if that is a launcher, the process below it.
fn keep_explained(scanned: &mut Scanned<'_>, pid: Pid) {
    let mut unattributed = std::mem::take(&mut scanned.snapshot.unattributed);
    unattributed
        .retain(|one| one.process.process.pid == pid || is_below(scanned, &one.process, pid));
    scanned.snapshot.unattributed = unattributed;
}

fn explain_pid(world: &World, scanned: &Scanned<'_>, pid: Pid) -> Said {
    let process = match world.machine().table().probe(pid) {
        Err(error) => {
            let sentence = format!("Process {pid} could not be inspected: {error}.");
            return Said::only(ExitStatus::Unknown, sentence);
        }
        Ok(None) => {
            let mut said = Said::only(
                ExitStatus::NoSuchSession,
                format!("No process has the PID {pid}."),
            );
            add_claims(&mut said, scanned, pid);
            return said;
        }
        Ok(Some(process)) => process,
    };
    let of_agent = scanned
        .processes()
        .iter()
        .find(|one| one.process.pid == pid && one.process.stamp == process.stamp);
    let mut said = match of_agent {
        Some(agent_process) => explain_agent_process(scanned, agent_process),
        None => explain_other(world, scanned, &process),
    };
    let claims = scanned
        .snapshot
        .sessions
        .iter()
        .flat_map(|one| &one.evidence);
    let mut claims = claims.filter(|judged| judged.pid == Some(pid));
    if said.status == ExitStatus::NoSuchSession && claims.any(|judged| may_be_here(judged.verdict))
    {
        said.status = ExitStatus::Unknown;
        add_claims(&mut said, scanned, pid);
    }
    said
}

/// Sessions that are claimed to be served by this PID, besides those that are shown already. It
/// may serve one whose answer is unknown.
fn add_claims(said: &mut Said, scanned: &Scanned<'_>, pid: Pid) {
    let shown: Vec<_> = said.sessions.iter().map(|one| one.key.clone()).collect();
    let claimed = scanned.snapshot.sessions.iter().filter(|session| {
        let mut evidence = session.evidence.iter();
        evidence.any(|judged| judged.pid == Some(pid)) && !shown.contains(&session.key)
    });
    for session in claimed.take(CLAIMS_SHOWN_MAX) {
        said.sessions.push(session.clone());
    }
}

fn explain_agent_process(scanned: &Scanned<'_>, one: &AgentProcess) -> Said {
    let pid = one.process.pid;
    let agent = &one.agent;
    let sessions = sessions_of(scanned, pid);
    match one.role {
        // Any process may have announced a session.
        _ if !sessions.is_empty() => {}
        Role::Launcher => return explain_launcher(scanned, one),
        Role::Auxiliary => {
            let sentence =
                format!("Process {pid} belongs to {agent} and never runs a session itself.");
            return Said::only(ExitStatus::NoSuchSession, sentence);
        }
        Role::Session | Role::Client | Role::Host => {}
    }
    let live = live_of(&sessions);
    let mut unattributed = scanned.snapshot.unattributed.iter();
    let unattributed = unattributed.find(|other| other.process.process.pid == pid);
    let mut said = match unattributed {
        Some(unattributed) if live == 0 => Said {
            sentences: explain_unattributed(unattributed),
            sessions: Vec::new(),
            status: ExitStatus::Unknown,
        },
        _ => {
            let what = format!("is {} of {}", role_words(one.role), one.agent);
            Said::only(status_by(&sessions), head(pid, &what, &sessions, live))
        }
    };
    // Live sessions come first.
    said.sessions = sessions.into_iter().cloned().collect();
    said
}

/// What a process is, and how many sessions it has.
fn head(pid: Pid, what: &str, sessions: &[&Session], live: usize) -> String {
    if live == 0 {
        return format!("Process {pid} {what}, and no live session of it is known.");
    }
    // A process that could run a session may instead show a session of a host.
    let shows = |session: &&Session| session.client.as_ref().is_some_and(|its| its.pid == pid);
    let verb = if sessions.iter().all(shows) {
        "shows"
    } else {
        "serves"
    };
    let count = text::count(live, "session", "sessions");
    format!("Process {pid} {what} and {verb} {count}.")
}

fn status_by(sessions: &[&Session]) -> ExitStatus {
    let has = |liveness| sessions.iter().any(|one| one.liveness() == liveness);
    if has(Liveness::Live) {
        ExitStatus::Done
    } else if has(Liveness::Unknown) {
        ExitStatus::Unknown
    } else {
        ExitStatus::NoSuchSession
    }
}

/// A launcher is explained through the process below it that does the work.
fn explain_launcher(scanned: &Scanned<'_>, launcher: &AgentProcess) -> Said {
    let pid = launcher.process.pid;
    let agent = &launcher.agent;
    let below = scanned.processes().iter().find(|one| {
        one.agent == *agent
            && one.role != Role::Launcher
            && one.role != Role::Auxiliary
            && is_below(scanned, one, pid)
    });
    let Some(below) = below else {
        let sentence = format!(
            "Process {pid} is a launcher of {agent}, and the process that it started is gone."
        );
        return Said::only(ExitStatus::NoSuchSession, sentence);
    };
    let its = below.process.pid;
    let mut said = explain_agent_process(scanned, below);
    let head = format!("Process {pid} is a launcher of {agent}; process {its} runs the agent.");
    said.sentences.insert(0, head);
    said
}

fn is_below(scanned: &Scanned<'_>, one: &AgentProcess, pid: Pid) -> bool {
    // Launchers form a chain above the process, each the parent of the next.
    let mut next = one.process.ppid;
    for _ in 0..scanned.processes().len() {
        let Some(parent) = next else { return false };
        if parent == pid {
            return true;
        }
        let mut launchers = scanned.processes().iter();
        next = launchers
            .find(|other| other.process.pid == parent)
            .and_then(|other| other.process.ppid);
    }
    false
}

/// A process that no adapter recognizes: it may have announced sessions itself, as `whosup run`
/// does for its child.
fn explain_other(world: &World, scanned: &Scanned<'_>, process: &Process) -> Said {
    let pid = process.pid;
    if process.is_kernel_thread {
        let sentence = format!("Process {pid} is a kernel thread.");
        return Said::only(ExitStatus::NoSuchSession, sentence);
    }
    if process.is_exited {
        let sentence = format!("Process {pid} has exited and is a zombie.");
        let mut said = Said::only(ExitStatus::NoSuchSession, sentence);
        add_claims(&mut said, scanned, pid);
        return said;
    }
    let sessions = sessions_of(scanned, pid);
    let mut said = match sessions.is_empty() {
        true => explain_stranger(world, process),
        false => explain_server(world, process, sessions),
    };
    let agent_above = world
        .machine()
        .table()
        .ancestors(process)
        .find_map(|ancestor| {
            let mut agents = scanned.processes().iter();
            agents.find(|one| one.process.pid == ancestor.pid)
        });
    if let Some(above) = agent_above {
        said.sentences.push(format!(
            "It runs below process {}, {} of {}.",
            above.process.pid,
            role_words(above.role),
            above.agent
        ));
        let served = sessions_of(scanned, above.process.pid);
        let mut live = served
            .iter()
            .filter(|session| session.liveness() == Liveness::Live);
        if let (Some(session), None, Role::Session) = (live.next(), live.next(), above.role) {
            let id = &session.key.session;
            said.sentences
                .push(format!("That process serves session {id}."));
        }
    }
    add_claims(&mut said, scanned, pid);
    said
}

fn explain_stranger(world: &World, process: &Process) -> Said {
    let pid = process.pid;
    match &world.machine().table().details(process).exe {
        Ok(exe) => {
            let exe = text::path(exe, world.home());
            let sentence = format!("Process {pid} runs {exe}, which is not a known agent.");
            Said::only(ExitStatus::NoSuchSession, sentence)
        }
        Err(reason) => {
            let sentence = format!(
                "Process {pid} may or may not be an agent: its executable cannot be read ({reason})."
            );
            Said::only(ExitStatus::Unknown, sentence)
        }
    }
}

/// A process of an agent without an adapter that serves sessions.
fn explain_server(world: &World, process: &Process, sessions: Vec<&Session>) -> Said {
    let exe = &world.machine().table().details(process).exe;
    let what = match exe {
        Ok(exe) => format!("runs {}", text::path(exe, world.home())),
        Err(reason) => format!("runs a program whose path cannot be read ({reason})"),
    };
    let live = live_of(&sessions);
    Said {
        sentences: vec![head(process.pid, &what, &sessions, live)],
        status: status_by(&sessions),
        sessions: sessions.into_iter().cloned().collect(),
    }
}

/// The claim may be about this process of its PID.
const fn may_be_here(verdict: Verdict) -> bool {
    match verdict {
        Verdict::Unknown(UnknownBecause::OtherHost | UnknownBecause::OtherPidNamespace) => false,
        Verdict::Unknown(_) => true,
        Verdict::Live(..) | Verdict::Exited(_) => false,
    }
}

fn live_of(sessions: &[&Session]) -> usize {
    let is_live = |session: &&&Session| session.liveness() == Liveness::Live;
    sessions.iter().filter(is_live).count()
}

fn sessions_of<'a>(scanned: &'a Scanned<'_>, pid: Pid) -> Vec<&'a Session> {
    let serves = |session: &&Session| {
        let is_one = |process: &Option<Box<Process>>| {
            process.as_ref().is_some_and(|process| process.pid == pid)
        };
        is_one(&session.owner)
            || is_one(&session.client)
            || session.other_live_pids().any(|other| other == pid)
    };
    let sessions = scanned.snapshot.sessions.iter();
    let mut sessions: Vec<&Session> = sessions.filter(serves).collect();
    sessions.sort_by_key(|session| session.liveness());
    sessions
}

const fn role_words(role: Role) -> &'static str {
    match role {
        Role::Session => "a process",
        Role::Client => "a client",
        Role::Host => "a shared host",
        Role::Launcher => "a launcher",
        Role::Auxiliary => "an auxiliary process",
    }
}
