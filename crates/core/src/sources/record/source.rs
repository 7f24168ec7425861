//! Session records as a source of claims.

use std::path::{Path, PathBuf};

use whosup_sidecar::{AgentId, SessionId};

use super::claims::{home_of_records, key_of};
use super::history::{Histories, HistoryEvent, HistoryLine};
use super::stored::{read_ended, read_open};
use super::{
    EndCause, KnownOwner, RecordedOwner, SessionRecord, Shown, StoredRecord, claim_of_history,
    records_root,
};
use crate::adapter::claim::{Claim, Evidence, EvidenceKind, Leaving, SessionKey, Subject, TakenUp};
use crate::adapter::phase::{BACKGROUND, FactSource, Phase, PhaseFact};
use crate::adapter::{AgentScan, Clue, Depth, Home, LiveTime, Sketch};
use crate::machine::Machine;
use crate::machine::problem::Found;
use crate::sessions::session::ORPHAN_SHOWN_MS;
use crate::sources::agents;
use crate::sources::trust::trust_of;

/// Reads every session record as a source of claims; those of ended sessions only on request.
#[must_use]
pub fn scan_records(
    machine: &Machine,
    depth: &Depth,
    is_wanted: impl Fn(&AgentId) -> bool,
) -> Found<AgentScan> {
    let mut found: Found<AgentScan> = Found::default();
    let Some(root) = records_root(machine) else {
        return found;
    };
    let home = home_of_records(&root);
    let mut stored = read_open(&root, &is_wanted).take(&mut found.problems);
    let unread = found.problems.iter();
    let unread =
        unread.filter_map(|problem| claim_of_unread(&root, problem.path.as_ref()?, machine));
    found.found.claim_all(unread);
    if !matches!(depth, Depth::Live) {
        let ended = read_ended(&root, &is_wanted, &stored);
        stored.extend(ended.take(&mut found.problems));
    }
    let mut histories = Histories::of(machine);
    for stored in stored {
        let record = &stored.record;
        let is_open = record.phase != Phase::Ended;
        let matters = || {
            has_died_lately(record, machine)
                || depth.reaches(&record.session)
                || was_left_by_running(record, machine)
        };
        if is_open || matters() {
            add(&mut found.found, &stored, &home, (machine, &mut histories));
        }
    }
    for (path, history) in histories.known() {
        let Some(current) = history.current() else {
            continue;
        };
        let left = history.lines.iter().filter(|line| is_wanted(&line.agent));
        for line in left.filter(|line| has_left(line, current)) {
            found.found.claim(Claim {
                taken_up: TakenUp::Left(Leaving {
                    at_ms: current.at_ms,
                    ended_at_ms: history.ended_at_ms(),
                }),
                ..claim_of_history(line, &path, machine)
            });
        }
    }
    found
}

/// What a record claims that can't be read: it may name any process. The home in it is not
/// known either; most agents have one.
fn claim_of_unread(root: &Path, path: &Path, machine: &Machine) -> Option<Claim> {
    let directory = path.parent().filter(|it| it.parent() == Some(root))?;
    let agent = AgentId::parse(directory.file_name()?.to_str()?).ok()?;
    let session = SessionId::parse(path.file_stem()?.to_str()?).ok()?;
    let homes = agents::adapter(&agent)?.homes(machine.environment());
    let key = SessionKey {
        agent,
        session,
        home: homes.first()?.as_path().into(),
    };
    let evidence = Evidence::new(
        EvidenceKind::Record,
        Some(path.to_owned()),
        "it can't be read",
    );
    Some(Claim {
        placement: machine.mounts().placement_of(path),
        ..Claim::new(key, Subject::Unreadable, evidence)
    })
}

/// A process found gone in the last day: shown like a fresh exit, whether or not a sweep
/// ran meanwhile.
fn has_died_lately(record: &SessionRecord, machine: &Machine) -> bool {
    let has_died = record.heard.end_cause.is_some_and(EndCause::is_death);
    let ago_ms = machine.now_ms().saturating_sub(record.last_event_at_ms);
    has_died && ago_ms <= ORPHAN_SHOWN_MS
}

/// A running process had it, whose arguments may still name it.
fn was_left_by_running(record: &SessionRecord, machine: &Machine) -> bool {
    let mut owners = record.owners.iter();
    owners.any(|owner| is_running(owner, machine))
}

/// The process of an owner runs, and is seen from here.
fn is_running(owner: &KnownOwner, machine: &Machine) -> bool {
    let Some(owner) = &owner.identity else {
        return false;
    };
    let process = machine.table().seen(owner.pid);
    let stamp = owner.stamp.as_ref();
    process.zip(stamp).is_some_and(|(process, stamp)| {
        !process.is_exited && stamp.is_same_as(&process.stamp) == Some(true)
    })
}

/// Whether the process moved from this line's session to `current`.
fn has_left(line: &HistoryLine, current: &HistoryLine) -> bool {
    let name = |line: &HistoryLine| (line.agent.clone(), line.session.clone());
    line.what == HistoryEvent::TakenUp && name(line) != name(current)
}

fn add(
    found: &mut AgentScan,
    stored: &StoredRecord,
    home: &Home,
    (machine, histories): (&Machine, &mut Histories<'_>),
) {
    let record = &stored.record;
    if record.phase == Phase::Ended {
        let how = record
            .heard
            .end_cause
            .map(|cause| format!(" ({})", cause.name()));
        let says = format!("the session has ended{}", how.unwrap_or_default());
        let trust = trust_of(&stored.facts, home, machine);
        let subject = match record.heard.end_cause {
            Some(cause) if cause.is_death() => Subject::Gone,
            _ => Subject::Released,
        };
        found.claim(Claim {
            subject,
            ..stored.claim(trust, says, machine)
        });
    } else {
        found.claim_all(stored.claims_of_open(machine, histories));
    }
    let mut sketch = Sketch::new(key_of(record));
    sketch.parent.clone_from(&record.parent);
    sketch.work_dir.clone_from(&record.work_dir);
    // Hooks may run before there is a transcript. Where the check could block for ever, the
    // reader of the transcript reports that instead.
    let is_there = |path: &&PathBuf| {
        let checked = machine.mounts().touchable(path);
        checked.map_or(true, |path| path.exists())
    };
    sketch.transcript = record.transcript.as_ref().filter(is_there).cloned();
    sketch.started_at_ms = record.started_at_ms;
    sketch.ended_at_ms = record.ended_at_ms;
    let cause = record.heard.end_cause;
    sketch.end_cause = cause.map(|cause| cause.name().into_owned());
    sketch.cpu_at_least_ms = record.heard.cpu.at_least_ms;
    sketch.live = live_time(record);
    sketch.is_orphan_when_stale = !record.owners.was_released_last();
    sketch.has_died = cause.is_some_and(EndCause::is_death);
    sketch.phase_at_end = record.heard.phase_at_end;
    sketch.heard_at_ms = Some(record.last_event_at_ms);
    sketch.facts.extend(fact_of(record, machine));
    sketch.clues.extend(clues_of_hosts(record, machine));
    found.sketch(sketch);
}

/// How long processes had the session, as far as hooks reported.
fn live_time(record: &SessionRecord) -> Option<LiveTime> {
    let known = record.owners.iter();
    let known = known.filter(|owner| owner.identity.is_some() && owner.is_settled());
    let spans = known.map(|owner| {
        let until_ms = owner.let_go_at_ms.unwrap_or(owner.last_event_at_ms);
        (owner.first_event_at_ms, until_ms)
    });
    let open = record.owners.open().map(|owner| owner.last_event_at_ms);
    let heard_at_ms = open.max().filter(|_| record.ended_at_ms.is_none());
    LiveTime::of(spans.collect(), heard_at_ms)
}

/// Shared processes that run, took up the session by their hooks and reported no end of it.
/// Each may have left it without a report.
fn clues_of_hosts(record: &SessionRecord, machine: &Machine) -> Vec<Clue> {
    let hosts = record.owners.open().filter(|owner| {
        let identity = owner.identity.as_ref();
        identity.is_some_and(|identity| identity.is_shared) && is_running(owner, machine)
    });
    let identities = hosts.filter_map(|host| host.identity.as_ref());
    let says = "its hooks reported the session, and no end of it";
    identities.map(|host| Clue::gap(host.pid, says)).collect()
}

/// What hooks report of the phase: of the owner with the latest event, but not of an owner
/// that is gone while another one runs.
fn shown(record: &SessionRecord, machine: &Machine) -> Option<(Option<RecordedOwner>, Shown)> {
    let mut running = record
        .owners
        .open()
        .filter(|owner| is_running(owner, machine));
    let latest = record.owners.open().next_back();
    match running.next_back() {
        Some(owner) if latest.is_some_and(|latest| !is_running(latest, machine)) => {
            Some((owner.identity.clone(), owner.shown?))
        }
        _ => Some((record.owner.clone(), Shown::in_record(record))),
    }
}

/// The phase that hooks reported; `None` if none reported a phase, as for a program that only
/// `whosup run` knows.
fn fact_of(record: &SessionRecord, machine: &Machine) -> Option<PhaseFact> {
    let (owner, shown) = shown(record, machine)?;
    // Records of earlier releases date only the change, or nothing.
    let last_ms = (shown.phase != Phase::Starting).then_some(record.last_event_at_ms);
    let at_ms = shown.at_ms.or(shown.since_ms).or(last_ms)?;
    let word = match shown.is_in_background {
        true => BACKGROUND,
        false => shown.phase.name(),
    };
    let fact = PhaseFact::new(FactSource::Hook, Some(shown.phase));
    Some(PhaseFact {
        since_ms: shown.since_ms,
        process: owner.and_then(|owner| Some((owner.pid, owner.stamp?))),
        ..fact
            .waiting_for(shown.waiting_for)
            .in_word(word)
            .dated(Some(at_ms))
    })
}
