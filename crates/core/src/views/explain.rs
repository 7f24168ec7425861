//! What an answer rests on, in sentences.

use crate::adapter::phase::{FactSource, Phase, WaitingFor};
use crate::judging::verdict::{
    Confidence, ExitedBecause, LiveBecause, Liveness, UnknownBecause, Verdict,
};
use crate::sessions::session::{JudgedEvidence, Session, Unattributed};
use crate::views::wire::timestamp;

/// Explains a session: the answer first, then each piece of evidence.
#[must_use]
pub fn explain(session: &Session) -> Vec<String> {
    let mut lines = vec![answer(session)];
    lines.extend(circumstances(session));
    lines.extend(session.evidence.iter().map(piece));
    if session.evidence.is_empty() {
        lines.push(
            "Nothing says which process serves it: no registry, lock or record names it."
                .to_owned(),
        );
    }
    lines
}

/// Explains a process that no session is known of.
#[must_use]
pub fn explain_unattributed(one: &Unattributed) -> Vec<String> {
    let process = &one.process.process;
    let mut lines = vec![format!(
        "Process {} is {}, and which session it serves is not known: {}.",
        process.pid, one.process.agent, one.reason
    )];
    let candidates = one.candidates.iter();
    lines.extend(candidates.map(|id| match one.titles.get(id) {
        Some(title) => format!("It may serve {id}: {title}."),
        None => format!("It may serve {id}."),
    }));
    lines
}

fn answer(session: &Session) -> String {
    let name = format!("{} session {}", session.key.agent, session.key.session);
    let because = sentence(session.verdict);
    match session.verdict {
        Verdict::Live(_, confidence) => {
            let known = match confidence {
                Confidence::Proven => "proven",
                Confidence::Consistent => "consistent with everything seen",
                Confidence::Inferred => "inferred",
            };
            let owner = session
                .owner
                .as_ref()
                .map(|owner| format!(" in process {}", owner.pid))
                .unwrap_or_default();
            format!("{name} is live{owner} ({known}): {because}.")
        }
        Verdict::Exited(_) => format!("{name} has exited: {because}."),
        Verdict::Unknown(_) => format!("Whether {name} is live is unknown: {because}."),
    }
}

fn circumstances(session: &Session) -> Vec<String> {
    let mut lines = Vec::new();
    if session.is_owner_shared {
        lines.push("Its process serves many sessions, so that process's own terminal and parents say nothing about this one.".to_owned());
    }
    if let Some(client) = &session.client {
        lines.push(format!("Process {} shows it in a terminal.", client.pid));
    }
    if session.is_client_ambiguous {
        lines.push(
            "Several processes could be showing it; which one does can't be told.".to_owned(),
        );
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
            "Other live processes claim it as well: {}.",
            pids.join(", ")
        ));
    }
    if let Some(current) = &session.superseded_by {
        lines.push(format!("Its process went on to session {current}."));
    }
    lines.extend(phase(session));
    if session.is_suspended() {
        lines.push(
            "Its process is stopped (Ctrl-Z, a signal or a debugger): it does nothing until it is continued."
                .to_owned(),
        );
    }
    if session.is_orphan() {
        let when = match session.phase_at_exit() {
            Some(Phase::Working) => " in the middle of a turn",
            Some(Phase::Waiting) => " while it waited for an answer",
            Some(Phase::Idle | Phase::Starting) => " between two turns",
            Some(Phase::Ended) | None => "",
        };
        lines.push(format!(
            "Its process went{when} and announced no end: it is an orphan, and can be resumed."
        ));
    }
    lines
}

/// What it does, and who reports that last.
fn phase(session: &Session) -> Option<String> {
    let doing = session.doing();
    let (phase, source) = (doing.phase?, doing.source?);
    if session.liveness() != Liveness::Live {
        return None;
    }
    let reports = match source {
        FactSource::Hook => "a hook of the agent reported",
        FactSource::Registry => "the agent publishes",
        FactSource::Title => "the title of its terminal shows",
        FactSource::Transcript => "its transcript shows",
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
    Some(format!("It is {phase}{what}{since}: {reports} that last."))
}

const fn article(what: WaitingFor) -> &'static str {
    match what {
        WaitingFor::Permission => "permission",
        WaitingFor::Question => "the answer to a question",
        WaitingFor::Auth => "a login",
        WaitingFor::Prompt => "a prompt",
    }
}

fn piece(judged: &JudgedEvidence) -> String {
    let what = judged.evidence.kind.name();
    let place = judged
        .evidence
        .path
        .as_ref()
        .map(|path| format!(" {}", path.display()))
        .unwrap_or_default();
    let at = judged
        .at_ms
        .and_then(timestamp)
        .map(|at| format!(" on {at}"))
        .unwrap_or_default();
    let answer = judged.verdict.liveness().name();
    format!(
        "{what}{place} says{at}: {}. Judged {answer} ({}): {}.",
        judged.evidence.says,
        judged.verdict.reason(),
        sentence(judged.verdict)
    )
}

/// The reason of a verdict as a clause.
#[must_use]
pub fn sentence(verdict: Verdict) -> String {
    match verdict {
        Verdict::Live(because, _) => live(because).to_owned(),
        Verdict::Exited(because) => exited(because).to_owned(),
        Verdict::Unknown(UnknownBecause::MayBeServedBy(pid)) => format!(
            "nothing claims it now, but process {pid} may serve it: no session of it is known, and it works in its directory or could not be looked into"
        ),
        Verdict::Unknown(because) => unknown(because).to_owned(),
    }
}

const fn live(because: LiveBecause) -> &'static str {
    match because {
        LiveBecause::StartStamp => {
            "the process with that PID began at exactly the instant that the claim names"
        }
        LiveBecause::StartedBeforeClaim => {
            "the process with that PID is the agent and began before the claim was made; one that reuses a PID begins after"
        }
        LiveBecause::LockHeld => "the kernel shows that the agent's process holds its lock",
        LiveBecause::Arguments => "the process's arguments name it and nothing newer contradicts",
        LiveBecause::Launch => "the process was launched with it, and with no other session",
        LiveBecause::Run => "the agent's log shows that the process went on to it",
        LiveBecause::Terminal => {
            "the use or the title of the process's terminal chooses it among the possible sessions"
        }
        LiveBecause::Parent => "it is a sub-agent of a live session",
    }
}

const fn exited(because: ExitedBecause) -> &'static str {
    match because {
        ExitedBecause::Released => {
            "it is on record that its process let it go, or that it has ended"
        }
        ExitedBecause::RecordedGone => {
            "it is on record that its process was found gone without announcing an end"
        }
        ExitedBecause::Rebooted => "this host has booted since the claim was made",
        ExitedBecause::NamespaceGone => "the PID namespace that it names has no process any more",
        ExitedBecause::NoSuchProcess => "no process has that PID",
        ExitedBecause::Zombie => "the process has exited and only waits to be reaped",
        ExitedBecause::PidIsAThread => "that number is now the id of another process's thread",
        ExitedBecause::PidReused => "another process has that PID now",
        ExitedBecause::LockNotHeld => "its lock file is there and no process holds the lock",
        ExitedBecause::Superseded => "its process went on to another session",
        ExitedBecause::NoProcess => "no process of that agent is left that could serve it",
        ExitedBecause::Parent => "it is a sub-agent of a session that has exited",
    }
}

const fn unknown(because: UnknownBecause) -> &'static str {
    match because {
        UnknownBecause::ProcNotOurs => {
            "the process table here is not the one of this PID namespace"
        }
        UnknownBecause::Unreadable => "what would show who serves it cannot be read",
        UnknownBecause::UntrustedClaim => "somebody else could have written that file",
        UnknownBecause::OtherHost => "the claim is about a process of another host",
        UnknownBecause::OtherPidNamespace => {
            "the claim is about a process of a container that can't be seen into from here"
        }
        UnknownBecause::Ambiguous => "several processes fit the claim",
        UnknownBecause::ProbeFailed => "the process could not be looked at",
        UnknownBecause::Hidden => "the process exists and is hidden from this user",
        UnknownBecause::IncompleteView => {
            "not every process that it could be can be seen from here"
        }
        UnknownBecause::OtherTimeNamespace => {
            "the start stamps differ, but may count from different instants (time namespaces)"
        }
        UnknownBecause::ProgramChanged => "the same process now runs another program",
        UnknownBecause::BootNotKnown => {
            "the start stamps are equal, but nothing says that they are of the same boot"
        }
        UnknownBecause::YoungerThanClaim => {
            "the process looks younger than the claim: a reused PID, or a clock that was set"
        }
        UnknownBecause::UnrecognizedProgram => {
            "a process with that PID began before the claim, but is not recognized as the agent"
        }
        UnknownBecause::BarePid => {
            "the claim has neither a start stamp nor a date, and a PID alone names nothing"
        }
        UnknownBecause::MayBeServedBy(_) => "a process of that agent may serve it",
        UnknownBecause::OwnerNotFound => {
            "hooks told of it, and the process that serves it was not found above them"
        }
        UnknownBecause::HeldByOther => "its lock is held, but not by a process of that agent",
        UnknownBecause::Parent => "it is a sub-agent of a session of which that is unknown",
    }
}
