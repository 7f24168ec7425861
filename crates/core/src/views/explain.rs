//! Explains an answer in sentences.

use std::path::Path;

use crate::adapter::phase::{FactSource, Phase, WaitingFor};
use crate::judging::verdict::{ExitedBecause, LiveBecause, Liveness, UnknownBecause, Verdict};
use crate::sessions::session::{JudgedEvidence, Session, Unattributed};
use crate::views::wire::timestamp;

/// An answer with its evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// Sentences: the verdict with its reason, then the circumstances.
    pub answer: Vec<String>,
    /// One line for each piece of evidence, best first: what, where, when, what it shows.
    pub evidence: Vec<String>,
}

impl Explanation {
    /// All lines.
    #[must_use]
    pub fn into_lines(self) -> Vec<String> {
        [self.answer, self.evidence].concat()
    }
}

/// Explains a session. Paths below `home`, the user's, begin with `~`.
#[must_use]
pub fn explain(session: &Session, home: Option<&Path>) -> Explanation {
    let mut answer = vec![verdict_on(session)];
    answer.extend(circumstances(session));
    if session.evidence.is_empty() {
        answer.push("No registry, lock, record or log names a process for it.".to_owned());
    }
    let evidence = session.evidence.iter();
    Explanation {
        answer,
        evidence: evidence.map(|judged| piece(judged, home)).collect(),
    }
}

/// Explains a process without a known session.
#[must_use]
pub fn explain_unattributed(one: &Unattributed) -> Vec<String> {
    let process = &one.process.process;
    let mut lines = vec![format!(
        "Process {} is {}, but its session is unknown: {}.",
        process.pid, one.process.agent, one.reason
    )];
    let candidates = one.candidates.iter();
    lines.extend(candidates.map(|id| match one.titles.get(id) {
        Some(title) => format!("It may serve {id}: {title}."),
        None => format!("It may serve {id}."),
    }));
    lines
}

fn verdict_on(session: &Session) -> String {
    let name = format!("{} session {}", session.key.agent, session.key.session);
    let because = reason(session);
    match session.verdict {
        Verdict::Live(_, confidence) => {
            let owner = session.owner.as_ref();
            let owner = owner.map(|owner| format!(" in process {}", owner.pid));
            let owner = owner.unwrap_or_default();
            let confidence = confidence.name();
            format!("{name} is live{owner} ({confidence}): {because}.")
        }
        Verdict::Exited(_) => format!("{name} has exited: {because}."),
        Verdict::Unknown(_) => format!("{name} may be live or exited: {because}."),
    }
}

/// The reason of the verdict as a clause, with the names that only the session has.
fn reason(session: &Session) -> String {
    let mut hosts = session.evidence.iter().filter_map(|one| one.host.as_ref());
    match (session.verdict, &session.superseded_by) {
        (Verdict::Exited(ExitedBecause::Superseded), Some(current)) => {
            format!("its process switched to session {current}")
        }
        (Verdict::Unknown(UnknownBecause::OtherHost), _) => match hosts.next() {
            Some(host) => format!("its process ran on host {host}"),
            None => sentence(session.verdict),
        },
        (verdict, _) => sentence(verdict),
    }
}

fn circumstances(session: &Session) -> Vec<String> {
    let mut lines: Vec<String> = phase(session).into_iter().collect();
    if session.is_suspended() {
        let suspended = "Its process is stopped (Ctrl-Z, a signal or a debugger).";
        lines.push(suspended.to_owned());
    }
    if session.is_owner_shared {
        lines.push("Its process serves several sessions.".to_owned());
    }
    if let Some(client) = &session.client {
        let shows = match client.tty {
            Some(_) => "shows it in a terminal",
            None => "is its client, without a terminal",
        };
        lines.push(format!("Process {} {shows}.", client.pid));
    }
    if session.is_client_ambiguous {
        lines.push("Several processes may show it.".to_owned());
    }
    if session.is_detached() {
        lines.push("No terminal shows it.".to_owned());
    }
    if !session.other_live.is_empty() {
        let pids: Vec<String> = session
            .other_live_pids()
            .map(|pid| pid.to_string())
            .collect();
        lines.push(format!(
            "Other live processes claim it too: {}.",
            pids.join(", ")
        ));
    }
    if session.is_orphan() {
        let when = match session.phase_at_exit() {
            Some(Phase::Working) => " in the middle of a turn",
            Some(Phase::Waiting) => " while it waited for an answer",
            Some(Phase::Idle | Phase::Starting) => " between two turns",
            Some(Phase::Ended) | None => "",
        };
        let resumed = match session.invocation() {
            Some(_) => ", and can be resumed",
            None => "",
        };
        lines.push(format!(
            "No exit was recorded: it was orphaned{when}{resumed}."
        ));
    }
    lines
}

/// The phase, and the newest report of it.
fn phase(session: &Session) -> Option<String> {
    let doing = session.doing();
    let (phase, source) = (doing.phase?, doing.source?);
    if session.liveness() != Liveness::Live {
        return None;
    }
    let source = match source {
        FactSource::Hook => ", according to a hook",
        FactSource::Registry => ", according to the agent's own record",
        FactSource::Title => ", according to the title of its terminal",
        FactSource::Transcript if session.sketch.is_unprompted() => ": it has no transcript yet",
        FactSource::Transcript => ", according to its transcript",
    };
    let what = doing
        .waiting_for
        .map(|what| format!(" for {}", article(what)))
        .unwrap_or_default();
    let since = doing
        .since_ms
        .and_then(timestamp)
        .map(|since| format!(" since {since}"))
        .unwrap_or_default();
    let phase = phase.name();
    Some(format!("It is {phase}{what}{since}{source}."))
}

const fn article(what: WaitingFor) -> &'static str {
    match what {
        WaitingFor::Permission => "permission",
        WaitingFor::Question => "the answer to a question",
        WaitingFor::Auth => "a login",
        WaitingFor::Prompt => "a prompt",
    }
}

fn piece(judged: &JudgedEvidence, home: Option<&Path>) -> String {
    let what = judged.evidence.kind.name();
    let path = judged.evidence.path.as_deref();
    let place = path.map(|path| format!(" {}", shortened(path, home)));
    let place = place.unwrap_or_default();
    let at = judged.at_ms.and_then(timestamp);
    let at = at.map(|at| format!(", {at}")).unwrap_or_default();
    let says = &judged.evidence.says;
    let answer = judged.verdict.liveness().name();
    let reason = judged.verdict.reason();
    format!("{what}{place}{at}: {says} ({answer}, {reason})")
}

/// A path with `~` for the user's home.
fn shortened(path: &Path, home: Option<&Path>) -> String {
    match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(below) => format!("~/{}", below.display()),
        None => path.display().to_string(),
    }
}

/// The reason of a verdict as a clause.
#[must_use]
pub fn sentence(verdict: Verdict) -> String {
    match verdict {
        Verdict::Live(because, _) => live(because).to_owned(),
        Verdict::Exited(because) => exited(because).to_owned(),
        Verdict::Unknown(UnknownBecause::MayBeServedBy(pid)) => {
            format!("process {pid} may serve it")
        }
        Verdict::Unknown(because) => unknown(because).to_owned(),
    }
}

const fn live(because: LiveBecause) -> &'static str {
    match because {
        LiveBecause::StartStamp => "the process with the recorded PID has the recorded start time",
        LiveBecause::StartedBeforeClaim => {
            "the process with the recorded PID is the agent, and started before the record was written"
        }
        LiveBecause::LockHeld => "the agent's process holds its lock",
        LiveBecause::Arguments => {
            "the arguments of the process name it, and nothing newer contradicts them"
        }
        LiveBecause::Launch => "the process was launched with it, and with no other session",
        LiveBecause::Run => "the agent's log shows that the process switched to it",
        LiveBecause::Terminal => {
            "the title or the last use of the terminal fits it and no other session"
        }
        LiveBecause::Parent => "its parent session is live",
    }
}

const fn exited(because: ExitedBecause) -> &'static str {
    match because {
        ExitedBecause::Released => "the session ended itself",
        ExitedBecause::RecordedGone => "its process was found gone, without a recorded exit",
        ExitedBecause::Rebooted => "this host has rebooted since",
        ExitedBecause::NamespaceGone => "no process is left in the recorded PID namespace",
        ExitedBecause::NoSuchProcess => "no process has the recorded PID",
        ExitedBecause::Zombie => "its process has exited and is a zombie",
        ExitedBecause::PidIsAThread => "the recorded PID is now a thread of another process",
        ExitedBecause::PidReused => "another process has the recorded PID now",
        ExitedBecause::LockNotHeld => "no process holds its lock",
        ExitedBecause::Superseded => "its process switched to another session",
        ExitedBecause::NoProcess => "no process is left that could serve it",
        ExitedBecause::Parent => "its parent session has exited",
    }
}

const fn unknown(because: UnknownBecause) -> &'static str {
    match because {
        UnknownBecause::ProcNotOurs => "/proc here belongs to another PID namespace",
        UnknownBecause::Unreadable => "the files that would name its process cannot be read",
        UnknownBecause::UntrustedClaim => {
            "another user could have written the file that names its process"
        }
        UnknownBecause::OtherHost => "its process ran on another host",
        UnknownBecause::OtherPidNamespace => {
            "its process ran in a PID namespace that cannot be seen from here"
        }
        UnknownBecause::Ambiguous => "several processes match",
        UnknownBecause::ProbeFailed => "its process could not be inspected",
        UnknownBecause::Hidden => "its process exists, but is hidden from this user",
        UnknownBecause::IncompleteView => {
            "not every process that could serve it can be seen from here"
        }
        UnknownBecause::OtherTimeNamespace => {
            "the start times differ, but may come from different time namespaces"
        }
        UnknownBecause::ProgramChanged => "its process now runs another program",
        UnknownBecause::BootNotKnown => "the start times match, but may come from different boots",
        UnknownBecause::YoungerThanClaim => {
            "the process started after the record was written: the PID was reused or the clock was set"
        }
        UnknownBecause::UnrecognizedProgram => {
            "the process with the recorded PID is old enough, but not recognized as the agent"
        }
        UnknownBecause::BarePid => {
            "the record has a PID without a start time or date, which identifies no process"
        }
        UnknownBecause::MayBeServedBy(_) => "another process may serve it",
        UnknownBecause::OwnerNotFound => "hooks reported it, but its process was not identified",
        UnknownBecause::HeldByOther => "a process that is not the agent holds its lock",
        UnknownBecause::Parent => "the state of its parent session is unknown",
    }
}
