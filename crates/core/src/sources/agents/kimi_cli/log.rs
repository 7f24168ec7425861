//! Sessions in a log that kimi-cli processes share.
//!
//! The log has a line for every session that a process makes at its start (`Created new
//! session: ID`), and for every session that a process resumes: at its start by `--session`,
//! or later, also after `/clear` (`Resuming session: ID`). It names no process and uses
//! local time without a zone. Seen in kimi-cli 1.50.0, 2026-11.

use std::iter::Peekable;
use std::path::Path;
use std::vec::IntoIter;

use jiff::civil::DateTime;
use jiff::tz::Offset;
use whosup_sidecar::file::ReadFileError;

use crate::sources::agents::kit::unlogged::after_hole;
use crate::sources::transcript::{TailBounds, TranscriptError, TranscriptFile};

/// How far back from its end the log is read: some hundred starts.
const LOG_BOUNDS: TailBounds = TailBounds {
    bytes_max: 1024 * 1024,
};
/// How every line begins, with a zero for each digit.
const LINE_BEGIN: &[u8] = b"0000-00-00 00:00:00.000 | ";
/// The function that writes these lines, with its module.
const PLACE: &str = "kimi_cli.cli:_run:";

/// What happened to a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) kind: EventKind,
    /// The session's id.
    pub(super) session: String,
    /// When, in milliseconds since 1970, as if the local clock showed UTC.
    pub(super) local_ms: i64,
}

/// The kinds of things that happen to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventKind {
    /// A process made it when it started.
    Created,
    /// A process took it up.
    TakenUp,
}

/// The end of the log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Log {
    /// Oldest first.
    pub(super) events: Vec<Event>,
    /// The last line has no end, or another line begins in the middle of a line: lines are
    /// missing there.
    pub(super) has_hole: bool,
}

impl Log {
    /// Merges several logs: each keeps its own order, and together they are ordered by time.
    pub(super) fn of_all(logs: Vec<Self>) -> Self {
        let mut all = Self::default();
        let mut left: Vec<_> = Vec::with_capacity(logs.len());
        for log in logs {
            all.has_hole |= log.has_hole;
            left.push(log.events.into_iter().peekable());
        }
        let next = |left: &mut Vec<Peekable<IntoIter<Event>>>| {
            let heads = left.iter_mut();
            let earliest = heads
                .filter_map(|events| Some((events.peek()?.local_ms, events)))
                .min_by_key(|(at, _)| *at);
            earliest.and_then(|(_, events)| events.next())
        };
        while let Some(event) = next(&mut left) {
            all.events.push(event);
        }
        all
    }
}

/// Reads the end of the log; `None` if there is no log.
///
/// # Errors
///
/// Why it can't be read.
pub(super) fn read(path: &Path) -> Result<Option<Log>, TranscriptError> {
    let file = match TranscriptFile::open(path) {
        Err(TranscriptError::File(ReadFileError::NotFound { .. })) => return Ok(None),
        opened => opened?,
    };
    let mut log = Log::default();
    for line in file.backwards(LOG_BOUNDS)? {
        let line = line?;
        // An id that has no end may be the prefix of another id.
        if line.is_torn {
            log.has_hole = true;
            continue;
        }
        log.has_hole |= after_hole(line.bytes(), LINE_BEGIN).is_some();
        let Ok(text) = std::str::from_utf8(line.bytes()) else {
            continue;
        };
        log.events.extend(parse(text));
    }
    log.events.reverse();
    Ok(Some(log))
}

/// Parses `TIME | LEVEL | PLACE | SESSION - TEXT`.
fn parse(line: &str) -> Option<Event> {
    let mut fields = line.splitn(4, " | ");
    let time: DateTime = fields.next()?.trim().parse().ok()?;
    let place = fields.nth(1)?;
    let text = fields.next()?.split_once("- ")?.1.trim();
    if !place.starts_with(PLACE) {
        return None;
    }
    let (kind, session) = [
        ("Created new session: ", EventKind::Created),
        ("Resuming session: ", EventKind::TakenUp),
        ("Continuing previous session: ", EventKind::TakenUp),
    ]
    .into_iter()
    .find_map(|(start, kind)| Some((kind, text.strip_prefix(start)?)))?;
    Some(Event {
        kind,
        session: session.to_owned(),
        local_ms: Offset::UTC.to_timestamp(time).ok()?.as_millisecond(),
    })
}

/// Converts the local times of a log to UTC.
///
/// A session's directory is made at the moment of its log line. The difference of the two is
/// the offset of the local clock. The nearest such line counts.
pub(super) fn time_of(
    events: &[Event],
    at: usize,
    born_at_ms: impl Fn(&str) -> Option<i64>,
) -> Option<i64> {
    let (nearest, born) = events
        .iter()
        .enumerate()
        .filter(|(_, event)| event.kind == EventKind::Created)
        .filter_map(|(place, event)| Some((place, born_at_ms(&event.session)?)))
        .min_by_key(|(place, _)| place.abs_diff(at))?;
    let ahead_ms = events.get(nearest)?.local_ms.checked_sub(born)?;
    events.get(at)?.local_ms.checked_sub(ahead_ms)
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests {
    use super::*;

    const LOG: &str = "\
2026-11-27 22:59:58.924 | INFO     | kimi_cli.cli:_run:583 |  - Created new session: s-1
2026-11-27 22:59:58.927 | INFO     | kimi_cli.app:create:204 |  - Loaded config: x=1
Traceback (most recent call last):
2026-11-27 23:00:06.872 | INFO     | kimi_cli.ui.shell:run:827 |  - Running with: | kimi_cli.cli:_run:1 |  - Created new session: s-9
2026-11-27 23:00:11.693 | INFO     | kimi_cli.cli:_run:571 |  - Resuming session: s-2
2026-11-27 23:00:12.000 | INFO     | kimi_cli.cli:_run:580 | s-2 - Continuing previous session: s-3
";

    fn read_text(text: &str) -> Log {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("kimi.log");
        std::fs::write(&path, text).expect("a file");
        read(&path).expect("a log").expect("events")
    }

    fn events() -> Vec<Event> {
        read_text(LOG).events
    }

    #[test]
    fn a_last_line_without_an_end_is_no_event() {
        let whole = read_text(LOG);
        assert!(!whole.has_hole);
        assert!(read_text(&format!("2026-11-27 22:5{LOG}")).has_hole);
        let torn = read_text(LOG.trim_end());
        assert!(torn.has_hole);
        assert_eq!(torn.events, whole.events[..2]);
    }

    #[test]
    fn only_what_its_own_code_says_of_sessions_counts() {
        let events = events();
        let found: Vec<_> = events
            .iter()
            .map(|event| (event.kind, event.session.as_str()))
            .collect();
        let right = [
            (EventKind::Created, "s-1"),
            (EventKind::TakenUp, "s-2"),
            (EventKind::TakenUp, "s-3"),
        ];
        assert_eq!(found, right);
        let missing = read(Path::new("/nonexistent/kimi.log")).expect("no log");
        assert_eq!(missing, None);
    }

    #[test]
    fn times_follow_from_when_a_directory_was_made() {
        let events = events();
        // Two hours ahead of UTC.
        let born = |id: &str| (id == "s-1").then_some(1_795_813_198_924);
        assert_eq!(time_of(&events, 1, born), Some(1_795_813_211_693));
        assert_eq!(time_of(&events, 1, |_| None), None);
        assert_eq!(time_of(&events, 9, born), None);
    }
}
