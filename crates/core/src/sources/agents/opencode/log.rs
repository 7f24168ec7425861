//! Runs and sessions in the log that all opencode processes share.
//!
//! `log/opencode.log`: one line for each event, `timestamp=… level=INFO
//! run=d2b054c0 message=… KEY=VALUE …`, values with blanks as JSON strings. The log is never
//! rotated. A run is one process; its PID is not logged. Seen in opencode 1.18.33, 2026-11.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use whosup_sidecar::file::FileFacts;

use super::Relative;
use crate::adapter::RunStart;
use crate::sources::agents::kit::reading::open_if_there;
use crate::sources::agents::kit::unlogged::after_hole;
use crate::sources::transcript::{Stopped, TailBounds, TranscriptError};

/// How far back from its end the log is read: some ten thousand prompts.
const LOG_BOUNDS: TailBounds = TailBounds {
    bytes_max: 16 * 1024 * 1024,
};
/// How many fields of a line are looked at; those that matter come early.
const FIELDS_MAX: usize = 32;

/// How every line begins, with a zero for each digit.
const LINE_BEGIN: &[u8] = b"timestamp=0000-00-00T00:00:00.000Z level=";

/// The message of a run that opens a directory; the first message of all runs except
/// servers.
const DIRECTORY_MESSAGE: &str = "creating instance";
/// The first message of a server, and of all programs of some relatives.
const SERVER_MESSAGE: &str = "loading";
/// The message of a run that makes a session.
const MADE_MESSAGE: &str = "created";
/// The messages of a run that works on a session.
const SESSION_MESSAGES: &[&str] = &["exiting loop", "loop", "process", "stream"];

/// What one process wrote.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Run {
    /// When its first line was written, of those that were read.
    pub(super) first_at_ms: i64,
    /// What that line shows; `None` if it is not its first line.
    pub(super) first: Option<RunStart>,
    /// The directory that it opened first, of those that were read.
    pub(super) directory: Option<PathBuf>,
    /// When it last worked on each session.
    pub(super) worked_on: BTreeMap<String, i64>,
    /// When it last asked whether it may do something.
    pub(super) asked_at_ms: Option<i64>,
}

/// The end of the log.
#[derive(Debug, Clone)]
pub(super) struct Log {
    pub(super) path: PathBuf,
    pub(super) facts: FileFacts,
    /// By the names of the runs.
    pub(super) runs: BTreeMap<String, Run>,
    /// Sessions that were made as sub-agents of others.
    pub(super) sub_agents: BTreeSet<String>,
    /// Not all of what was asked for was read.
    pub(super) is_cut: bool,
    /// The last line has no end, or another line begins in the middle of a line: lines are
    /// missing there.
    pub(super) has_hole: bool,
}

/// Reads what was logged from `since_ms` on; `None` if there is no log.
///
/// # Errors
///
/// Why it can't be read.
pub(super) fn read(
    path: &Path,
    since_ms: i64,
    agent: &Relative,
) -> Result<Option<Log>, TranscriptError> {
    let Some(file) = open_if_there(path)? else {
        return Ok(None);
    };
    let mut log = Log {
        path: path.to_owned(),
        facts: *file.facts(),
        runs: BTreeMap::new(),
        sub_agents: BTreeSet::new(),
        is_cut: false,
        has_hole: false,
    };
    let mut lines = file.backwards(LOG_BOUNDS)?;
    for line in lines.by_ref() {
        let line = line?;
        // A line that is still being written may not even name its run.
        if line.is_torn {
            log.has_hole = true;
            continue;
        }
        let after_hole = after_hole(line.bytes(), LINE_BEGIN);
        log.has_hole |= after_hole.is_some();
        let whole = line.bytes().get(after_hole.unwrap_or(0)..);
        let text = whole.and_then(|bytes| std::str::from_utf8(bytes).ok());
        let Some(line) = text.and_then(Entry::parse) else {
            continue;
        };
        if line.at_ms < since_ms {
            return Ok(Some(log));
        }
        log.add(&line, agent);
    }
    log.is_cut = lines.stopped() != Some(Stopped::NothingLeft);
    Ok(Some(log))
}

impl Log {
    /// What is known of the start of a run. `None` if the run began before all processes
    /// from which the log was read.
    pub(super) fn start_of(&self, run: &Run) -> Option<RunStart> {
        let unread = self.is_cut.then_some(RunStart::Unread);
        let missing = self.has_hole.then_some(RunStart::Missing);
        run.first.or(unread).or(missing)
    }

    /// The session that a run worked on last; not those that sub-agents have.
    pub(super) fn last_session_of<'a>(&self, run: &'a Run) -> Option<&'a str> {
        let sessions = run.worked_on.iter();
        let own = sessions.filter(|(session, _)| !self.sub_agents.contains(*session));
        let (session, _) = own.max_by_key(|(session, at)| (**at, *session))?;
        Some(session)
    }

    /// Adds a line that is older than all before it.
    fn add(&mut self, entry: &Entry<'_>, agent: &Relative) {
        let run = self.runs.entry(entry.run.to_owned()).or_default();
        run.first_at_ms = entry.at_ms;
        run.first = match &*entry.message {
            DIRECTORY_MESSAGE => Some(RunStart::Directory),
            SERVER_MESSAGE if agent.loads_first && run.directory.is_some() => {
                Some(RunStart::Either)
            }
            SERVER_MESSAGE => Some(RunStart::Host),
            _ => None,
        };
        if run.first == Some(RunStart::Directory)
            && let Some(directory) = entry.field("directory")
        {
            run.directory = Some(PathBuf::from(directory));
        }
        if entry.message == "asking" {
            run.asked_at_ms = run.asked_at_ms.or(Some(entry.at_ms));
        }
        let is_made = entry.message == MADE_MESSAGE;
        let session = match &*entry.message {
            MADE_MESSAGE => entry.field("id"),
            message if SESSION_MESSAGES.contains(&message) => entry.field("session.id"),
            _ => None,
        };
        let Some(session) = session else { return };
        let worked_on = run.worked_on.entry(session.to_owned());
        worked_on.or_insert(entry.at_ms);
        let parent = entry.field("parentID");
        if is_made && parent.is_some_and(|parent| parent != "undefined") {
            self.sub_agents.insert(session.to_owned());
        }
    }
}

/// One line.
struct Entry<'a> {
    at_ms: i64,
    run: &'a str,
    message: Cow<'a, str>,
    fields: Vec<(&'a str, Cow<'a, str>)>,
}

impl<'a> Entry<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (mut at_ms, mut run) = (None, None);
        let mut message = Cow::Borrowed("");
        let mut fields = Vec::new();
        let mut rest = line;
        for _ in 0..FIELDS_MAX {
            let Some((name, value, after)) = next_field(rest) else {
                break;
            };
            rest = after;
            match (name, value) {
                ("timestamp", value) => at_ms = Some(value.parse::<Timestamp>().ok()?),
                ("run", Cow::Borrowed(value)) => run = Some(value),
                ("message", value) => {
                    message = value;
                    // The fields of most lines are not needed.
                    if !has_fields(&message) {
                        break;
                    }
                }
                (name, value) => fields.push((name, value)),
            }
        }
        Some(Self {
            at_ms: at_ms?.as_millisecond(),
            run: run.filter(|run| !run.is_empty())?,
            message,
            fields,
        })
    }

    fn field(&self, wanted: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(name, _)| *name == wanted);
        found.map(|(_, value)| &**value)
    }
}

/// A message whose fields are needed.
fn has_fields(message: &str) -> bool {
    matches!(message, DIRECTORY_MESSAGE | MADE_MESSAGE) || SESSION_MESSAGES.contains(&message)
}

/// Splits `NAME=VALUE` off, the value bare or a JSON string.
fn next_field(text: &str) -> Option<(&str, Cow<'_, str>, &str)> {
    let (name, rest) = text.trim_start().split_once('=')?;
    if rest.starts_with('"') {
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<String>();
        let value = values.next()?.ok()?;
        let after = rest.get(values.byte_offset()..)?;
        return Some((name, Cow::Owned(value), after));
    }
    let (value, after) = rest.split_once(' ').unwrap_or((rest, ""));
    Some((name, Cow::Borrowed(value), after))
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests {
    use super::*;
    use crate::sources::agents::opencode::OPENCODE;

    const LOG: &str = "\
timestamp=2026-11-27T23:19:38.000Z level=INFO run=aaaaaaaa message=loop session.id=ses_0 step=4
timestamp=2026-11-27T23:19:38.589Z level=INFO run=d2b054c0 message=\"creating instance\" directory=\"/home/dev/my app\"
timestamp=2026-11-27T23:19:38.601Z level=INFO run=d2b054c0 message=fromDirectory directory=/elsewhere
  at something (file.ts:1)
timestamp=2026-11-27T23:20:08.743Z level=INFO run=d2b054c0 message=created id=ses_1 slug=kind-otter directory=\"/home/dev/my app\" path=\"\" parentID=undefined title=\"message=loop session.id=ses_9\"
timestamp=2026-11-27T23:20:09.247Z level=INFO run=d2b054c0 message=loop session.id=ses_1 step=0
timestamp=2026-11-27T23:20:10.000Z level=INFO run=d2b054c0 message=asking id=per_1 permission=bash
timestamp=2026-11-27T23:20:11.000Z level=INFO run=d2b054c0 message=created id=ses_2 parentID=ses_1
timestamp=2026-11-27T23:20:12.000Z level=INFO run=e0c8e1a0 message=loading path=/x
timestamp=2026-11-27T23:20:13.000Z level=WARN run=d2b054c0 message=\"exiting loop\" session.id=ses_1
timestamp=2026-11-27T23:20:14.000Z level=INFO run=d2b05";

    fn ms(text: &str) -> i64 {
        text.parse::<Timestamp>().unwrap().as_millisecond()
    }

    fn read_since(since: &str) -> Log {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("opencode.log");
        std::fs::write(&path, LOG).unwrap();
        read(&path, ms(since), OPENCODE.0).unwrap().unwrap()
    }

    #[test]
    fn a_run_tells_its_start_and_its_sessions() {
        let log = read_since("2026-11-27T23:00:00Z");
        let run = &log.runs["d2b054c0"];
        assert_eq!(run.first_at_ms, ms("2026-11-27T23:19:38.589Z"));
        assert_eq!(run.first, Some(RunStart::Directory));
        assert_eq!(
            run.directory.as_deref(),
            Some(Path::new("/home/dev/my app"))
        );
        let worked_on = [
            ("ses_1".to_owned(), ms("2026-11-27T23:20:13Z")),
            ("ses_2".to_owned(), ms("2026-11-27T23:20:11Z")),
        ];
        assert_eq!(run.worked_on, BTreeMap::from(worked_on));
        assert_eq!(run.asked_at_ms, Some(ms("2026-11-27T23:20:10Z")));
        assert_eq!(log.sub_agents, BTreeSet::from(["ses_2".to_owned()]));
        assert_eq!(log.runs["e0c8e1a0"].first, Some(RunStart::Host));
        assert_eq!(log.runs["aaaaaaaa"].first, None);
        assert_eq!(log.runs.len(), 3);
        assert!(!log.is_cut);
        assert!(log.has_hole);
    }

    #[test]
    fn what_is_older_is_not_read() {
        let log = read_since("2026-11-27T23:20:00Z");
        let run = &log.runs["d2b054c0"];
        assert_eq!(run.first_at_ms, ms("2026-11-27T23:20:08.743Z"));
        assert_eq!((run.first, &run.directory), (None, &None));
        assert!(!log.is_cut && !log.runs.contains_key("aaaaaaaa"));
        let none = read(Path::new("/nonexistent/opencode.log"), 0, OPENCODE.0).unwrap();
        assert!(none.is_none());
    }
}
