//! The phases of sessions in the last hours, from event logs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use whosup_sidecar::file::{Links, ReadFileError, facts_of_any, read_regular};
use whosup_sidecar::{AgentId, SessionId};

use super::stored::{LOG_BYTES_MAX, ended_root_of, records_root};
use super::{LINE_BYTES_MAX, LogLine, SessionRecord, apply, parse_line};
use crate::adapter::claim::SessionKey;
use crate::adapter::phase::Phase;
use crate::machine::Machine;
use crate::machine::problem::{Found, Problem};
use crate::sources::agents::kit::folder::list_outside_homes;

/// How many agents' logs are read.
const AGENTS_MAX: usize = 256;
/// How many files of one agent are listed.
const FILES_MAX: usize = 300_000;
/// How many logs are read.
const LOGS_MAX: usize = 1_000;
/// How many spans one session has; earlier ones are left out.
const SPANS_MAX: usize = 2_000;

/// The phases of one session, oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionTimeline {
    /// The session.
    pub key: SessionKey,
    /// Its last directory.
    pub work_dir: Option<PathBuf>,
    /// Its phases.
    pub spans: Vec<PhaseSpan>,
}

/// How long a session was in a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PhaseSpan {
    /// The phase.
    pub phase: Phase,
    /// When it began, in milliseconds since 1970.
    pub from_ms: i64,
    /// When the next phase began; `None` if there is none.
    pub until_ms: Option<i64>,
}

/// Reads the event logs that were written since a time, in milliseconds since 1970.
#[must_use]
pub fn read_timeline(machine: &Machine, since_ms: i64) -> Found<Vec<SessionTimeline>> {
    let mut found: Found<Vec<SessionTimeline>> = Found::default();
    let Some(root) = records_root(machine) else {
        return found;
    };
    for root in [ended_root_of(&root), root] {
        for name in list_outside_homes(None, &root, AGENTS_MAX, &mut found.problems) {
            // A scan reports other problems of these directories.
            let Ok(agent) = AgentId::parse(&name) else {
                continue;
            };
            read_agent(&root.join(&name), &agent, since_ms, &mut found);
        }
    }
    found
}

fn read_agent(
    directory: &Path,
    agent: &AgentId,
    since_ms: i64,
    found: &mut Found<Vec<SessionTimeline>>,
) {
    for name in list_outside_homes(None, directory, FILES_MAX, &mut found.problems) {
        let id = name.strip_suffix(".jsonl");
        let Some(session) = id.and_then(|id| SessionId::parse(id).ok()) else {
            continue;
        };
        let path = directory.join(&name);
        if is_older(&path, since_ms) {
            continue;
        }
        if found.found.len() >= LOGS_MAX {
            let message = format!("more than {LOGS_MAX} event logs: the rest is left out");
            found.problems.push(Problem::at(agent, directory, message));
            return;
        }
        match read_regular(&path, LOG_BYTES_MAX, Links::Refuse) {
            Ok(file) => found
                .found
                .extend(timeline(agent, &session, &file.bytes, since_ms)),
            Err(ReadFileError::NotFound { .. }) => {}
            Err(error) => found
                .problems
                .push(Problem::at(agent, &path, error.reason())),
        }
    }
}

/// The file was not written since. An unreadable file is read, to report the reason.
fn is_older(path: &Path, since_ms: i64) -> bool {
    let facts = facts_of_any(path, Links::Refuse).ok();
    let modified_ms = facts.and_then(|facts| facts.modified_ms);
    modified_ms.is_some_and(|modified_ms| modified_ms < since_ms)
}

/// The phases in a log since `since_ms`; `None` if there are none.
fn timeline(
    agent: &AgentId,
    session: &SessionId,
    log: &[u8],
    since_ms: i64,
) -> Option<SessionTimeline> {
    let mut record: Option<SessionRecord> = None;
    let mut spans: Vec<PhaseSpan> = Vec::new();
    for line in log.split(|byte| *byte == b'\n') {
        if line.is_empty() || line.len() > LINE_BYTES_MAX {
            continue;
        }
        let at_ms = match parse_line(line) {
            Ok(LogLine::Event(event)) => {
                let at_ms = event.end.map_or(event.at_ms, |end| end.ended_at_ms);
                record = Some(apply(agent, session, record, *event));
                at_ms
            }
            // The line of a shortened log has the phase, and its start.
            Ok(LogLine::Record(kept, _)) if record.is_none() => {
                let since = kept.heard.phase_since_ms.or(kept.ended_at_ms);
                let at_ms = since.unwrap_or(kept.last_event_at_ms);
                record = Some(*kept);
                at_ms
            }
            Ok(LogLine::Record(..) | LogLine::PassedOn(_)) | Err(_) => continue,
        };
        let phase = record.as_ref().map(|record| record.phase)?;
        add(&mut spans, phase, at_ms);
    }
    let record = record?;
    spans.retain(|span| span.until_ms.is_none_or(|until| until > since_ms));
    let spare = spans.len().saturating_sub(SPANS_MAX);
    spans.drain(..spare);
    let is_over = spans
        .iter()
        .all(|span| span.phase == Phase::Ended && span.from_ms < since_ms);
    (!is_over).then(|| SessionTimeline {
        key: SessionKey {
            agent: agent.clone(),
            session: session.clone(),
            home: Arc::from(record.home.as_path()),
        },
        work_dir: record.work_dir,
        spans,
    })
}

/// Adds a report. A late report begins no earlier than the report before it.
fn add(spans: &mut Vec<PhaseSpan>, phase: Phase, at_ms: i64) {
    let Some(last) = spans.last_mut() else {
        spans.push(PhaseSpan {
            phase,
            from_ms: at_ms,
            until_ms: None,
        });
        return;
    };
    if last.phase == phase {
        return;
    }
    let from_ms = at_ms.max(last.from_ms);
    last.until_ms = Some(from_ms);
    spans.push(PhaseSpan {
        phase,
        from_ms,
        until_ms: None,
    });
}

#[cfg(test)]
mod tests {
    use whosup_sidecar::{AgentId, SessionId};

    use super::timeline;

    const S1: &str = "0a022b20-e8f2-410e-9552-8385582a8e8b";

    fn line(id: u32, minute: u32, event: &str) -> String {
        format!(
            "{{\"id\":\"{id}\",\"at\":\"2026-11-27T21:{minute:02}:00Z\",\"event\":\"{event}\",\
             \"home\":\"/home/dev/.claude\"}}\n"
        )
    }

    #[track_caller]
    fn check(log: &str, since_minute: u32, expected: &[(&str, u32, Option<u32>)]) {
        let agent = AgentId::from_static("claude-code");
        let session = SessionId::parse(S1).unwrap();
        let began: jiff::Timestamp = "2026-11-27T21:00:00Z".parse().unwrap();
        let minute = |ms: i64| u32::try_from((ms - began.as_millisecond()) / 60_000).unwrap();
        let since_ms = began.as_millisecond() + i64::from(since_minute) * 60_000;
        let found = timeline(&agent, &session, log.as_bytes(), since_ms);
        let spans = found.map(|found| found.spans).unwrap_or_default();
        let spans: Vec<_> = spans
            .iter()
            .map(|span| {
                (
                    span.phase.name(),
                    minute(span.from_ms),
                    span.until_ms.map(minute),
                )
            })
            .collect();
        assert_eq!(spans, expected);
    }

    #[test]
    fn a_log_shows_how_long_a_session_was_in_which_phase() {
        let log = [
            line(1, 1, "session-started:startup"),
            line(2, 2, "turn-started"),
            line(3, 3, "tool-started"),
            "{ torn".to_owned(),
            "\n".to_owned(),
            line(4, 5, "turn-ended"),
        ]
        .concat();
        let all = [
            ("starting", 1, Some(2)),
            ("working", 2, Some(5)),
            ("idle", 5, None),
        ];
        check(&log, 0, &all);
        check(&log, 4, &all[1..]);
        check(&log, 30, &all[2..]);
        check("", 0, &[]);
    }
}
