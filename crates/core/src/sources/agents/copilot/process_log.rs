//! A process's own log: `logs/process-MS-PID.log`.
//!
//! The process has it open for writing. Among much else it records which session the
//! process's terminal shows:
//!
//! ```text
//! 2026-11-27T23:21:52.772Z [INFO] Workspace initialized: ID (checkpoints: 0)
//! 2026-11-27T23:21:52.821Z [INFO] Starting Copilot CLI: 1.0.102
//! 2026-11-27T23:21:52.837Z [INFO] Registering foreground session: ID
//! 2026-11-27T23:23:43.944Z [INFO] Unregistering foreground session: ID
//! ```
//!
//! Before the first prompt, only these lines show which session a process has resumed.
//! Several sessions may be open in one process, one of them in the foreground. Seen in
//! Copilot CLI 1.0.102, 2026-11. Other levels of detail may leave these lines out: then
//! nothing is known.
//!
//! The end of a log may be missing (a full disk, a copy). Then the last line has no end, or
//! another line begins in the middle of it, and the foreground may have changed since. A log
//! that is cut between two lines looks complete, and is treated as complete.

use std::collections::BTreeMap;

use whosup_process::Pid;
use whosup_sidecar::SessionId;

use crate::sources::agents::kit::dialect::date_of;
use crate::sources::agents::kit::unlogged::after_hole;
use crate::sources::transcript::{HeadBounds, Line, TailBounds, TranscriptError, TranscriptFile};

/// How much of a log's beginning is read.
const HEAD_BOUNDS: HeadBounds = HeadBounds {
    bytes_max: 512 * 1024,
    lines_max: 4_000,
};
/// How far back from its end it is read.
const TAIL_BOUNDS: TailBounds = TailBounds {
    bytes_max: 1024 * 1024,
};
/// How many sessions of one process are remembered.
const OPENED_MAX: usize = 1_000;

/// How every line begins, with a zero for each digit.
const LINE_BEGIN: &[u8] = b"0000-00-00T00:00:00.000Z [";

/// Facts in the log of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ProcessLog {
    /// The session that its terminal shows, and since when, as far as it was written.
    pub(super) foreground: Option<(SessionId, Option<i64>)>,
    /// Sessions that it has opened, as far as the log was read.
    pub(super) opened: Vec<SessionId>,
    /// When a session was in front last that is not any more, in milliseconds since 1970.
    pub(super) left_at_ms: BTreeMap<SessionId, i64>,
    /// The version of Copilot.
    pub(super) version: Option<String>,
    /// A part of it is missing: other sessions may have been opened, and another session may
    /// be in front.
    pub(super) is_torn: bool,
}

/// The event in a line of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Event {
    Opened(SessionId),
    Started(String),
    Registered(SessionId, Option<i64>),
    Unregistered(SessionId, Option<i64>),
}

impl ProcessLog {
    /// The log records opened sessions, if there were any: every log begins with the
    /// version.
    pub(super) fn is_telling(&self) -> bool {
        let has_facts =
            self.version.is_some() || self.foreground.is_some() || !self.opened.is_empty();
        has_facts && !self.is_torn
    }

    /// Reads head and tail. If the two do not meet and the tail shows no change, or if the log
    /// is torn, the foreground is unknown: it may have changed in between.
    pub(super) fn read(file: &TranscriptFile) -> Result<Self, TranscriptError> {
        let mut log = Self::default();
        let head = file.head(HEAD_BOUNDS)?;
        let mut in_foreground = None;
        log.is_torn = head.lines.iter().any(is_torn);
        for event in head.lines.iter().filter_map(event_on) {
            log.add(&event);
            in_foreground = after(&event, in_foreground);
        }
        let head_end = head.lines.last().map_or(0, |line| line.end);
        let is_whole = head_end >= file.facts().len;
        if is_whole {
            log.foreground = in_foreground.filter(|_| !log.is_torn);
            return Ok(log);
        }
        let mut lines = file.backwards(TAIL_BOUNDS)?;
        let mut last_change = None;
        let mut meets_head = false;
        for line in lines.by_ref() {
            let line = line?;
            if line.offset < head_end {
                meets_head = true;
                break;
            }
            log.is_torn |= is_torn(&line);
            let Some(event) = event_on(&line) else {
                continue;
            };
            log.add(&event);
            if last_change.is_none() && is_change(&event) {
                last_change = Some(event);
            }
        }
        log.foreground = match last_change {
            _ if log.is_torn => None,
            Some(event) => after(&event, None),
            None if meets_head => in_foreground,
            None => None,
        };
        Ok(log)
    }

    fn add(&mut self, event: &Event) {
        match event {
            Event::Opened(id) | Event::Registered(id, _) => {
                if self.opened.len() < OPENED_MAX && !self.opened.contains(id) {
                    self.opened.push(id.clone());
                }
            }
            Event::Started(version) => self.version = Some(version.clone()),
            Event::Unregistered(id, Some(at_ms)) => {
                let known = self.left_at_ms.len();
                if known < OPENED_MAX || self.left_at_ms.contains_key(id) {
                    let left_at_ms = self.left_at_ms.entry(id.clone()).or_insert(*at_ms);
                    *left_at_ms = (*at_ms).max(*left_at_ms);
                }
            }
            Event::Unregistered(_, None) => {}
        }
    }
}

const fn is_change(event: &Event) -> bool {
    matches!(event, Event::Registered(..) | Event::Unregistered(..))
}

fn after(
    event: &Event,
    before: Option<(SessionId, Option<i64>)>,
) -> Option<(SessionId, Option<i64>)> {
    match event {
        Event::Registered(id, at_ms) => Some((id.clone(), *at_ms)),
        Event::Unregistered(id, _) => before.filter(|(shown, _)| shown != id),
        Event::Opened(_) | Event::Started(_) => before,
    }
}

/// It has no end, or another line begins in the middle of it.
fn is_torn(line: &Line) -> bool {
    line.is_torn || after_hole(line.bytes(), LINE_BEGIN).is_some()
}

fn event_on(line: &Line) -> Option<Event> {
    if line.is_torn {
        return None;
    }
    let text = std::str::from_utf8(line.bytes()).ok()?;
    let (date, rest) = text.split_once(' ')?;
    let said = rest.strip_prefix("[INFO] ")?;
    let at_ms = || date_of(date);
    let id_after = |prefix: &str| {
        let word = said.strip_prefix(prefix)?.split_whitespace().next()?;
        SessionId::parse(word).ok()
    };
    if let Some(id) = id_after("Registering foreground session: ") {
        return Some(Event::Registered(id, at_ms()));
    }
    if let Some(id) = id_after("Unregistering foreground session: ") {
        return Some(Event::Unregistered(id, at_ms()));
    }
    if let Some(id) = id_after("Workspace initialized: ") {
        return Some(Event::Opened(id));
    }
    let version = said.strip_prefix("Starting Copilot CLI: ")?.trim();
    Some(Event::Started(version.to_owned()))
}

/// The process that a log's file name names, after the milliseconds since 1970
/// at which the log began.
pub(super) fn process_in(name: &str) -> Option<Pid> {
    let stem = name.strip_prefix("process-")?.strip_suffix(".log")?;
    let (began, pid) = stem.split_once('-')?;
    began.parse::<i64>().ok()?;
    let pid: i64 = pid.parse().ok()?;
    Pid::new(pid).ok()
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests {
    use super::*;

    const A: &str = "aad07f38-3e3e-4ead-962e-2a290c169afe";
    const B: &str = "88b57f2f-c588-4cb0-b946-a3092a113b07";

    fn line(what: &str) -> String {
        format!("2026-11-27T21:00:00.000Z [INFO] {what}\n")
    }

    fn registering(id: &str) -> String {
        line(&format!("Registering foreground session: {id}"))
    }

    fn unregistering(id: &str) -> String {
        line(&format!("Unregistering foreground session: {id}"))
    }

    fn read(lines: &[String]) -> ProcessLog {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("process-1-2.log");
        std::fs::write(&path, lines.concat()).expect("a file");
        let file = TranscriptFile::open(&path).expect("a log");
        ProcessLog::read(&file).expect("a log")
    }

    fn shown(log: &ProcessLog) -> Option<&str> {
        log.foreground.as_ref().map(|(id, _)| id.as_str())
    }

    #[test]
    fn a_session_that_is_not_in_front_any_more_was_left_then() {
        let log = read(&[registering(A), unregistering(A), registering(B)]);
        let left: Vec<_> = log.left_at_ms.into_iter().collect();
        let a: SessionId = A.parse().expect("an id");
        assert_eq!(left, [(a, 1_795_813_200_000)]);
    }

    #[test]
    fn the_session_registered_last_is_shown() {
        let start = [
            line(&format!("Workspace initialized: {A} (checkpoints: 0)")),
            line("Starting Copilot CLI: 1.0.102"),
            registering(A),
        ];
        let log = read(&start);
        assert_eq!(log.foreground.as_ref().unwrap().1, Some(1_795_813_200_000));
        assert_eq!(shown(&log), Some(A));
        assert_eq!(log.version.as_deref(), Some("1.0.102"));
        let changed = [start.concat(), unregistering(A), registering(B)];
        let log = read(&changed);
        assert_eq!(shown(&log), Some(B));
        let opened: Vec<&str> = log.opened.iter().map(SessionId::as_str).collect();
        assert_eq!(opened, [A, B]);
        assert_eq!(shown(&read(&[start.concat(), unregistering(A)])), None);
    }

    #[test]
    fn a_change_is_found_at_the_end_of_a_long_log() {
        let noise = line(&"x".repeat(200)).repeat(20_000);
        let log = read(&[
            registering(A),
            noise.clone(),
            unregistering(A),
            registering(B),
        ]);
        assert_eq!(shown(&log), Some(B));
        // Between what was read of both ends it may have changed.
        assert_eq!(shown(&read(&[registering(A), noise])), None);
        let less = line(&"x".repeat(200)).repeat(5_000);
        assert_eq!(shown(&read(&[registering(A), less])), Some(A));
    }

    #[test]
    fn of_a_log_that_lacks_its_end_it_is_not_known_what_is_in_front() {
        let lines = [line("Starting Copilot CLI: 1.0.102"), registering(A)].concat();
        let whole = read(std::slice::from_ref(&lines));
        assert!(whole.is_telling() && whole.foreground.is_some());
        let half = "2026-11-27T21:00:00.000Z [INFO] Regist";
        let long = line(&"x".repeat(200)).repeat(20_000);
        for torn in [
            [&lines, half].concat(),
            [&lines, half, "\0\0\0\0", "x\n"].concat(),
            [&lines, half, &line("x"), &line("y")].concat(),
            [&lines, &long, half].concat(),
        ] {
            let log = read(&[torn]);
            assert!(!log.is_telling() && log.foreground.is_none());
            assert_eq!(log.opened.len(), 1);
        }
    }

    #[test]
    fn what_a_prompt_says_is_no_event() {
        for text in [
            format!("2026-11-27T21:00:00.000Z [DEBUG] Registering foreground session: {A}\n"),
            format!("Registering foreground session: {A}\n"),
            line(&format!("prompt: Registering foreground session: {A}")),
            line("Registering foreground session: ../../x"),
        ] {
            assert_eq!(read(&[text]), ProcessLog::default());
        }
    }

    #[test]
    fn a_logs_name_names_its_process() {
        let pid = Pid::new(12_756).unwrap();
        let name = "process-1795821712691-12756.log";
        assert_eq!(process_in(name), Some(pid));
        for other in [
            ".copilot-log.lock",
            "process-1-0.log",
            "process-x-7.log",
            "process-7.log",
        ] {
            assert_eq!(process_in(other), None);
        }
    }
}
