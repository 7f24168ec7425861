//! Folds an event log into a record.

use std::collections::HashSet;

use whosup_sidecar::{AgentId, SessionId};

use super::format::SessionRecord;
use super::heard::{EndCause, Heard, HeardCpu};
use super::log::{LINE_BYTES_MAX, LogLine, LoggedEvent, parse_line};
use super::owners::Owners;
use super::shown::Shown;
use crate::adapter::hook_event::{EventKind, StartSource};
use crate::adapter::phase::{Phase, WaitingFor, next_phase};

/// How many event IDs are kept when a log is shortened.
const LAST_IDS_MAX: usize = 256;

/// The result of a fold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folded {
    /// The record; `None` if no line contains an event.
    pub record: Option<SessionRecord>,
    /// Lines that could not be understood, and were skipped.
    pub bad_lines: usize,
    /// The ids of the last events, oldest first.
    pub last_ids: Vec<String>,
}

/// Folds the event log of one session.
///
/// Text after the last line feed is an incomplete line, and is left
/// for later. [`Heard::log_bytes`] of the record is the size of the log.
#[must_use]
pub fn fold(agent: &AgentId, session: &SessionId, log: &[u8]) -> Folded {
    let mut folding = Folding::of(agent, session);
    let whole = log.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
    folding.add(&log[..whole]);
    if let Some(record) = &mut folding.record {
        record.heard.log_bytes = Some(log.len() as u64);
    }
    folding.finish()
}

/// Continues a fold: `record` is the fold of the log so far, `more` the rest of the log.
///
/// An earlier event that is repeated in `more` counts twice, unless it is the last: so use
/// this only where that can't be.
#[must_use]
pub fn fold_on(record: SessionRecord, more: &[u8]) -> SessionRecord {
    let before = record.heard.log_bytes.unwrap_or(0);
    let mut folding = Folding::of(&record.agent, &record.session);
    folding.seen.extend(record.heard.last_event.clone());
    folding.record = Some(record.clone());
    let whole = more.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
    folding.add(&more[..whole]);
    let mut folded = folding.finish().record.unwrap_or(record);
    folded.heard.log_bytes = Some(before + more.len() as u64);
    folded
}

/// A log that is being folded.
struct Folding {
    agent: AgentId,
    session: SessionId,
    record: Option<SessionRecord>,
    seen: HashSet<String>,
    ids: Vec<String>,
    bad_lines: usize,
}

impl Folding {
    fn of(agent: &AgentId, session: &SessionId) -> Self {
        Self {
            agent: agent.clone(),
            session: session.clone(),
            record: None,
            seen: HashSet::new(),
            ids: Vec::new(),
            bad_lines: 0,
        }
    }

    fn add(&mut self, lines: &[u8]) {
        let lines = lines.split(|byte| *byte == b'\n');
        for line in lines.filter(|line| !line.is_empty()) {
            if line.len() > LINE_BYTES_MAX {
                self.bad_lines += 1;
                continue;
            }
            match parse_line(line) {
                // This line counts only at the start: later, the lines before it know more.
                Ok(LogLine::Record(kept, last)) if self.is_beginning_with(&kept) => {
                    self.record = Some(*kept);
                    self.seen.extend(last.iter().cloned());
                    self.ids.extend(last);
                }
                Ok(LogLine::Event(event)) => self.apply(*event),
                Ok(LogLine::PassedOn(end)) => {
                    if let Some(record) = &mut self.record
                        && record.heard.end_event.as_deref() == Some(&*end)
                    {
                        record.heard.is_end_passed_on = true;
                    }
                }
                Ok(LogLine::Record(..)) | Err(_) => self.bad_lines += 1,
            }
        }
    }

    fn is_beginning_with(&self, kept: &SessionRecord) -> bool {
        self.record.is_none() && kept.agent == self.agent && kept.session == self.session
    }

    fn apply(&mut self, event: LoggedEvent) {
        if self.seen.insert(event.id.clone()) {
            let id = event.id.clone();
            let before = self.record.take();
            let mut record = apply(&self.agent, &self.session, before, event);
            record.heard.last_event = Some(id.clone());
            self.record = Some(record);
            self.ids.push(id);
        }
    }

    fn finish(mut self) -> Folded {
        let last_ids = self
            .ids
            .split_off(self.ids.len().saturating_sub(LAST_IDS_MAX));
        Folded {
            record: self.record,
            bad_lines: self.bad_lines,
            last_ids,
        }
    }
}

/// The record after another event.
#[must_use]
pub fn apply(
    agent: &AgentId,
    session: &SessionId,
    before: Option<SessionRecord>,
    event: LoggedEvent,
) -> SessionRecord {
    let mut record = before.unwrap_or_else(|| begun(agent, session, &event));
    let is_other_process = match (&record.owner, &event.owner) {
        (Some(known), Some(reported)) => !known.is_same_process(reported),
        _ => false,
    };
    if !record.owners.hear(&event) {
        return record;
    }
    let is_end = event.kind == EventKind::SessionEnded;
    if is_other_process
        && !is_end
        && record.phase != Phase::Ended
        && let Some(shown) = record.owners.shown_last()
    {
        shown.show_in(&mut record);
    }
    let is_start = event.kind.is_claim();
    let phase_before = record.phase;
    // Without a report nothing is known.
    let known_before = record.heard.phase_at_ms.and(Some(phase_before));
    record.phase = phase_after(&record, &event, is_other_process);
    let is_new_turn = event.kind == EventKind::TurnStarted
        && record.phase != Phase::Ended
        && (event.prompt.is_some() || !matches!(phase_before, Phase::Working | Phase::Waiting));
    date_phase(&mut record, phase_before, &event);
    record.waiting_for = match (record.phase, event.kind) {
        // Claude Code repeats every question as a request for permission.
        (Phase::Waiting, EventKind::InputRequested(WaitingFor::Permission))
            if record.waiting_for == Some(WaitingFor::Question) =>
        {
            record.waiting_for
        }
        (Phase::Waiting, EventKind::InputRequested(what)) => Some(what),
        (Phase::Waiting, _) => record.waiting_for,
        _ => None,
    };
    set_end(&mut record, phase_before, &event);
    if record.phase == Phase::Ended && phase_before != Phase::Ended {
        record.heard.phase_at_end = known_before;
    }
    match record.owners.shown() {
        // Another process continues it, and does what it was doing.
        Some(shown) if is_end && record.phase != Phase::Ended => shown.show_in(&mut record),
        _ if is_end => {}
        _ => record.owners.show(Shown::in_record(&record)),
    }
    record.heard.turns += u64::from(is_new_turn);
    take_over(&mut record, event, is_start || is_new_turn);
    record
}

/// Dates the phase by the event that began it, and by the last event that shows it.
fn date_phase(record: &mut SessionRecord, phase_before: Phase, event: &LoggedEvent) {
    let is_change = record.phase != phase_before;
    let is_late = record.phase == Phase::Ended && event.kind != EventKind::SessionEnded;
    let shows_phase = match event.kind {
        EventKind::TurnStarted
        | EventKind::ToolStarted
        | EventKind::InputRequested(_)
        | EventKind::TurnEnded
        | EventKind::TurnEndedInBackground
        | EventKind::SessionEnded => !is_late,
        // A supervisor does not know what its program does: no phase is known.
        EventKind::SessionStarted(StartSource::Run) if is_change => {
            record.heard.phase_at_ms = None;
            record.heard.phase_since_ms = None;
            false
        }
        EventKind::SessionStarted(StartSource::Run) => false,
        EventKind::SessionStarted(_) => is_change || record.heard.phase_at_ms.is_none(),
        // An interrupted tool ends after its turn.
        EventKind::ToolEnded => is_change,
        EventKind::Compacted
        | EventKind::SubAgentStarted
        | EventKind::SubAgentEnded
        | EventKind::Heartbeat => false,
    };
    // What comes late from a session that was left shows nothing.
    if !shows_phase || event.has_left {
        return;
    }
    let heard = &mut record.heard;
    heard.is_in_background = event.kind == EventKind::TurnEndedInBackground;
    heard.phase_at_ms = heard.phase_at_ms.max(Some(event.at_ms));
    if is_change || heard.phase_since_ms.is_none() {
        heard.phase_since_ms = Some(event.at_ms);
    }
}

/// The phase after an event that the owners have accepted.
fn phase_after(record: &SessionRecord, event: &LoggedEvent, is_other_process: bool) -> Phase {
    let before = record.phase;
    let has_ended = record.owners.have_let_go();
    match event.kind {
        EventKind::SessionEnded if has_ended => Phase::Ended,
        // Another process continues it; the phase of the exited process is over.
        EventKind::SessionEnded if is_other_process => before,
        EventKind::SessionEnded => match before {
            Phase::Working | Phase::Waiting => Phase::Idle,
            other => other,
        },
        // Every owner had released it, and this event comes late.
        _ if before == Phase::Ended && has_ended => Phase::Ended,
        // A session that was left for another session does not continue.
        _ if event.has_left => before,
        // The phase of an earlier process ended with that process.
        kind if kind.is_claim() && is_other_process => next_phase(Phase::Ended, kind),
        kind => match next_phase(before, kind) {
            // The reporting process has never released it.
            Phase::Ended => next_phase(Phase::Idle, kind),
            phase => phase,
        },
    }
}

fn set_end(record: &mut SessionRecord, phase_before: Phase, event: &LoggedEvent) {
    if record.phase != Phase::Ended {
        record.ended_at_ms = None;
        record.heard.phase_at_end = None;
        record.heard.end_cause = None;
        record.heard.end_reason = None;
        record.heard.end_event = None;
        record.heard.is_end_passed_on = false;
    } else if phase_before != Phase::Ended || record.ended_at_ms.is_none() {
        record.ended_at_ms = Some(event.end.map_or(event.at_ms, |end| end.ended_at_ms));
        record.heard.end_cause = Some(event.end.map_or(EndCause::ExitHook, |end| end.cause));
        record.heard.end_reason.clone_from(&event.reason);
        record.heard.end_event = Some(event.id.clone());
        record.heard.is_end_passed_on = false;
    }
}

/// Copies the details of the event.
fn take_over(record: &mut SessionRecord, event: LoggedEvent, is_beginning: bool) {
    if event.end.is_none_or(|end| end.cause.is_announced()) {
        record.heard.cpu = cpu_after(record, &event);
    }
    record.home = event.home;
    record.last_event_at_ms = record.last_event_at_ms.max(event.at_ms);
    // The process that swept it got no report from it.
    let is_over = record.phase == Phase::Ended;
    if let Some(end) = event.end.filter(|end| is_over && !end.cause.is_announced()) {
        record.last_event_at_ms = end.ended_at_ms;
    }
    record.owner = record.owners.current().cloned();
    let is_wanted = is_beginning || record.work_dir.is_none();
    if is_wanted && event.work_dir.is_some() {
        record.work_dir = event.work_dir;
        record.git_branch = event.git_branch;
    }
    if event.transcript.is_some() {
        record.transcript = event.transcript;
    }
    if event.prompt.is_some() {
        record.heard.last_prompt = event.prompt;
    }
    if event.pane.is_some() {
        record.heard.pane = event.pane;
    }
    record.heard.is_aftermath |= event.is_aftermath;
}

/// The processor time after an event. The time of a process that runs many sessions
/// can't be assigned to one session.
fn cpu_after(record: &SessionRecord, event: &LoggedEvent) -> HeardCpu {
    let before = record.heard.cpu;
    let sole_owner = event.owner.as_ref().filter(|owner| !owner.is_shared);
    let Some((owner, now_ms)) = sole_owner.zip(event.cpu_ms) else {
        return HeardCpu {
            last_ms: None,
            ..before
        };
    };
    let known = record.owner.as_ref();
    let is_same = known.is_some_and(|known| known.is_same_process(owner));
    let is_first_session = matches!(
        event.kind,
        EventKind::SessionStarted(StartSource::Startup | StartSource::Run)
    );
    let since_ms = match before.last_ms.filter(|_| is_same) {
        Some(last_ms) => last_ms,
        None if is_first_session => 0,
        None => now_ms,
    };
    HeardCpu {
        at_least_ms: Some(before.at_least_ms.unwrap_or(0) + now_ms.saturating_sub(since_ms)),
        // A late event has an older, smaller value.
        last_ms: Some(now_ms.max(since_ms)),
    }
}

fn begun(agent: &AgentId, session: &SessionId, event: &LoggedEvent) -> SessionRecord {
    SessionRecord {
        agent: agent.clone(),
        session: session.clone(),
        home: event.home.clone(),
        owner: None,
        owners: Owners::default(),
        phase: Phase::Starting,
        waiting_for: None,
        last_event_at_ms: event.at_ms,
        started_at_ms: Some(event.at_ms),
        ended_at_ms: None,
        work_dir: None,
        git_branch: None,
        transcript: None,
        parent: None,
        heard: Heard::default(),
    }
}
