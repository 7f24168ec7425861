//! Problems with sessions.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use whosup_core::adapter::claim::{EvidenceKind, SessionKey};
use whosup_core::adapter::phase::Phase;
use whosup_core::judging::verdict::{ExitedBecause, Liveness, UnknownBecause, Verdict};
use whosup_core::process::Pid;
use whosup_core::sessions::session::{JudgedEvidence, Session};
use whosup_core::sources::record::StoredRecord;

use super::finding::{Check, Finding};
use crate::cell::pane_words;
use crate::condition::{SILENT_MS, is_silent, is_stale};
use crate::text;

/// How many orphans are named.
const ORPHANS_NAMED_MAX: usize = 5;

/// Problems of each session, and between sessions.
pub(super) fn checks(
    sessions: &[Session],
    orphans: &[&Session],
    records: &[StoredRecord],
    now_ms: i64,
) -> Vec<Check> {
    let hosts = hosts(records);
    let alone = sessions
        .iter()
        .filter_map(|one| of_session(one, &hosts, now_ms));
    let number = text::count(sessions.len(), "session", "sessions");
    let twice = sessions.iter().filter_map(open_twice);
    vec![
        Check::new(
            "sessions",
            format!("{number}, none of them stale, stalled or exited without an end"),
            alone,
        ),
        Check::new(
            "open-twice",
            "no session is open twice, and no pane or process has two",
            twice.chain(conflicts(sessions)),
        ),
        Check::new(
            "orphans",
            "no session died in the last 24 hours",
            of_orphans(orphans),
        ),
    ]
}

/// Sessions that crashed in the last day and are not hidden.
fn of_orphans(orphans: &[&Session]) -> Option<Finding> {
    let named = orphans.iter().take(ORPHANS_NAMED_MAX);
    let mut names: Vec<String> = named.map(|one| id_of(one)).collect();
    if orphans.len() > names.len() {
        names.push(format!("{} more", orphans.len() - names.len()));
    }
    let number = text::count(orphans.len(), "session", "sessions");
    (!orphans.is_empty()).then(|| {
        Finding::new(
            format!("{number} died without an end: {}", names.join(", ")),
            "whosup orphans shows how to resume each; whosup dismiss ID hides it",
        )
    })
}

/// Two processes that write one session corrupt it.
fn open_twice(session: &Session) -> Option<Finding> {
    let owner = session.owner.iter().map(|owner| owner.pid);
    let pids = owner.chain(session.other_live_pids());
    let pids: Vec<String> = pids.map(|pid| pid.to_string()).collect();
    (!session.other_live.is_empty()).then(|| {
        Finding::new(
            format!(
                "{} is claimed by several live processes: {}",
                name_of(session),
                pids.join(", ")
            ),
            format!(
                "whosup why {}, then quit all but one of them",
                id_of(session)
            ),
        )
    })
}

/// The host that each session's record names.
fn hosts(records: &[StoredRecord]) -> HashMap<SessionKey, String> {
    let host = |stored: &StoredRecord| {
        let key = SessionKey {
            agent: stored.record.agent.clone(),
            session: stored.record.session.clone(),
            home: stored.record.home.clone().into(),
        };
        Some((key, stored.record.owner.as_ref()?.host.clone()?))
    };
    records.iter().filter_map(host).collect()
}

fn of_session(
    session: &Session,
    hosts: &HashMap<SessionKey, String>,
    now_ms: i64,
) -> Option<Finding> {
    let id = id_of(session);
    let name = name_of(session);
    let why = format!("whosup why {id}");
    let last_ms = session.last_activity_at_ms();
    let makes_no_progress = last_ms.is_some_and(|at_ms| now_ms.saturating_sub(at_ms) > SILENT_MS);
    match (session.liveness(), session.phase()) {
        (Liveness::Live, Some(Phase::Working)) if makes_no_progress => {
            let age = text::age(now_ms, last_ms.unwrap_or(now_ms));
            Some(Finding::new(
                format!("{name} is stalled: it works, and nothing has happened for {age}"),
                format!("whosup show {id} --tail 5, then look at its terminal"),
            ))
        }
        // The sweep ends no session whose host may be another.
        (Liveness::Exited, phase)
            if has_record(session) && phase != Some(Phase::Ended) && is_silent(session, now_ms) =>
        {
            Some(Finding::new(
                format!(
                    "{name} has exited ({}) and is not ended: its record says too little to end it",
                    session.verdict.reason()
                ),
                format!("{why}, then whosup end {id}"),
            ))
        }
        (Liveness::Unknown, _) if is_stale(session, now_ms) => {
            Some(stale(session, hosts.get(&session.key), now_ms))
        }
        _ => None,
    }
}

/// A session whose state is unknown and that has been silent for long.
fn stale(session: &Session, host: Option<&String>, now_ms: i64) -> Finding {
    let id = id_of(session);
    let age = text::age(now_ms, session.last_heard_of_ms().unwrap_or(now_ms));
    let what = format!(
        "{} is stale: unknown ({}), and silent for {age}",
        name_of(session),
        session.verdict.reason()
    );
    let is_elsewhere = matches!(
        session.verdict,
        Verdict::Unknown(UnknownBecause::OtherHost | UnknownBecause::OtherPidNamespace)
    );
    let is_recorded = has_unknown_record(session);
    let fix = match host.filter(|_| is_elsewhere && is_recorded) {
        Some(host) => format!(
            "if that host is gone, whosup sweep --forget-host {}; for this session alone, whosup end {id}",
            crate::shell::quoted(host)
        ),
        None if is_recorded => {
            format!("whosup why {id}, and if you know that it is gone, whosup end {id}")
        }
        None if session.may_be_dismissed() => {
            format!("whosup why {id}, and if you know that it is gone, whosup dismiss {id}")
        }
        None => format!("whosup why {id}"),
    };
    Finding::new(what, fix)
}

/// Pairs of sessions that can't both be what they seem.
fn conflicts(sessions: &[Session]) -> Vec<Finding> {
    let mut of_pane: BTreeMap<(&Path, Option<Pid>, &str), Vec<&Session>> = BTreeMap::new();
    let is_of_its_own = |one: &&Session| {
        one.liveness() == Liveness::Live && one.sketch.parent.is_none() && !one.is_owner_shared
    };
    for session in sessions.iter().filter(is_of_its_own) {
        if let Some(pane) = &session.pane
            && let (Some(server), Some(id)) = (&pane.server, &pane.pane)
        {
            let key = (server.socket.as_path(), server.pid, id.as_str());
            of_pane.entry(key).or_default().push(session);
        }
    }
    let fix = |sessions: &[&Session]| {
        let commands = sessions
            .iter()
            .map(|one| format!("whosup why {}", id_of(one)));
        commands.collect::<Vec<_>>().join(" and ")
    };
    let names = |sessions: &[&Session]| {
        let names = sessions.iter().map(|one| name_of(one));
        names.collect::<Vec<_>>().join(" and ")
    };
    let mut findings = Vec::new();
    for left in sessions {
        if let Some((pid, current)) = undecided(left, sessions) {
            let both = [current, left];
            let what = format!(
                "process {pid} is claimed for {} at the same time: the first is taken as the current session",
                names(&both)
            );
            findings.push(Finding::new(what, fix(&both)));
        }
    }
    for sessions in of_pane.values().filter(|sessions| {
        let owners = sessions
            .iter()
            .map(|one| one.owner.as_ref().map(|owner| owner.pid));
        owners.collect::<std::collections::BTreeSet<_>>().len() > 1
    }) {
        let pane = sessions.iter().find_map(|one| one.pane.as_ref());
        let pane = pane.map(pane_words).unwrap_or_default();
        let what = format!("{} are both in the pane {pane}", names(sessions));
        findings.push(Finding::new(what, fix(sessions)));
    }
    findings
}

/// The process of a session that seems to have moved to another session, though it is not
/// known which of the two claims is newer; and that other session.
fn undecided<'a>(left: &Session, sessions: &'a [Session]) -> Option<(Pid, &'a Session)> {
    let dated = |session: &Session, pid: Pid, is_wanted: fn(Verdict) -> bool| {
        let claims = session.evidence.iter();
        let its = claims.filter(|one| one.pid == Some(pid) && is_wanted(one.verdict));
        its.map(|one| one.at_ms).max()
    };
    let is_left: fn(Verdict) -> bool =
        |verdict| verdict == Verdict::Exited(ExitedBecause::Superseded);
    let is_live: fn(Verdict) -> bool = |verdict| verdict.liveness() == Liveness::Live;
    let superseded_by = left.superseded_by.as_ref()?;
    let current = sessions.iter().find(|one| {
        one.key.session == *superseded_by && one.owner.is_some() && !one.is_owner_shared
    })?;
    let pid = current.owner.as_ref()?.pid;
    let left_at_ms = dated(left, pid, is_left)?;
    (dated(current, pid, is_live)? == left_at_ms).then_some((pid, current))
}

/// A hook reported it, and its process has not moved to another session.
fn has_record(session: &Session) -> bool {
    let is_record = |judged: &JudgedEvidence| judged.evidence.kind == EvidenceKind::Record;
    session.superseded_by.is_none() && session.evidence.iter().any(is_record)
}

/// A record leaves it unknown. Only a record can be ended.
fn has_unknown_record(session: &Session) -> bool {
    session.evidence.iter().any(|judged| {
        judged.evidence.kind == EvidenceKind::Record
            && judged.verdict.liveness() == Liveness::Unknown
    })
}

fn id_of(session: &Session) -> String {
    format!("{}:{}", session.key.agent, session.key.session)
}

fn name_of(session: &Session) -> String {
    format!("{} session {}", session.key.agent, session.key.session)
}
