//! Which sessions one process has served, in the order of its claim events:
//! `$XDG_STATE_HOME/whosup/owners/BOOT-NAMESPACE-PID-STAMP.jsonl`.
//!
//! The record of a session covers only that session. The history shows which of several
//! sessions a process serves and which it has left, also after its exit.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::Serialize;
use whosup_process::{BootId, Pid};
use whosup_sidecar::file::{Links, read_regular};
use whosup_sidecar::{AgentId, SessionId, StrictObject};

use super::format::{RecordError, time, wrong};
use super::owner::{RecordedOwner, WrittenOwner, parse_owner};
use crate::adapter::Home;
use crate::adapter::claim::Trust;
use crate::machine::{Environment, Machine};
use crate::sources::agents::kit::folder::names_in;
use crate::sources::trust::trust_of;
use crate::views::wire::timestamp;

/// The maximum size of a history, in bytes. It is shortened before.
pub const HISTORY_BYTES_MAX: u64 = 256 * 1024;
/// How many histories a scan reads.
const HISTORIES_MAX: usize = 10_000;
/// By how much reports of one process may overtake each other, in milliseconds: a hook takes a
/// second, on a busy machine two.
const OVERTAKES_MS_MAX: i64 = 2_000;
/// The end of a history's file name.
const SUFFIX: &str = ".jsonl";

/// Whether an event was only reported after another one, and happened before it. An event
/// that seems to be much older was not: the clock was set back between the two.
pub(super) const fn is_overtaken(at_ms: i64, by_ms: i64) -> bool {
    at_ms < by_ms && by_ms.saturating_sub(at_ms) <= OVERTAKES_MS_MAX
}

/// A line of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryLine {
    /// When it was reported, in milliseconds since 1970.
    pub at_ms: i64,
    /// What happened.
    pub what: HistoryEvent,
    /// The agent.
    pub agent: AgentId,
    /// The session.
    pub session: SessionId,
    /// The agent's home.
    pub home: PathBuf,
    /// The process.
    pub owner: RecordedOwner,
}

/// What a line of a history records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryEvent {
    /// The process took up the session.
    TakenUp,
    /// The session ended in it.
    Ended,
}

/// The sessions that one process has served.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct History {
    /// In the order of their reports.
    pub lines: Vec<HistoryLine>,
}

impl History {
    /// The session that the process took up last, ended or not.
    #[must_use]
    pub fn current(&self) -> Option<&HistoryLine> {
        Some(self.current_with_place()?.1)
    }

    fn current_with_place(&self) -> Option<(usize, &HistoryLine)> {
        let taken = self.lines.iter().enumerate();
        let taken = taken.filter(|(_, line)| line.what == HistoryEvent::TakenUp);
        taken.reduce(
            |last, next| match is_overtaken(next.1.at_ms, last.1.at_ms) {
                true => last,
                false => next,
            },
        )
    }

    /// When the session that the process took up last ended in it, if it has.
    #[must_use]
    pub fn ended_at_ms(&self) -> Option<i64> {
        let (place, current) = self.current_with_place()?;
        let is_since = |at: usize, line: &HistoryLine| match at > place {
            true => !is_overtaken(line.at_ms, current.at_ms),
            false => is_overtaken(current.at_ms, line.at_ms),
        };
        let ends = self.lines.iter().enumerate().filter(|(at, line)| {
            line.what == HistoryEvent::Ended
                && (&line.agent, &line.session) == (&current.agent, &current.session)
                && is_since(*at, line)
        });
        ends.map(|(_, line)| line.at_ms).max()
    }

    /// Whether the process has taken up another session since it took up this session, or since it
    /// was first reported to work in it, at `heard_at_ms`.
    #[must_use]
    pub fn has_left(&self, agent: &AgentId, session: &SessionId, heard_at_ms: Option<i64>) -> bool {
        self.left_at_ms(agent, session, heard_at_ms).is_some()
    }

    /// When the process took up the session for which it left this one, if it has left it.
    #[must_use]
    pub fn left_at_ms(
        &self,
        agent: &AgentId,
        session: &SessionId,
        heard_at_ms: Option<i64>,
    ) -> Option<i64> {
        let is_it = |line: &HistoryLine| line.agent == *agent && line.session == *session;
        let current = self.current().filter(|current| {
            let taken = |line: &HistoryLine| line.what == HistoryEvent::TakenUp;
            let was_taken_up = self.lines.iter().any(|line| taken(line) && is_it(line));
            let is_older = heard_at_ms.is_none_or(|heard| heard <= current.at_ms);
            !is_it(current) && (was_taken_up || is_older)
        });
        current.map(|current| current.at_ms)
    }
}

/// Parses a history; lines that can't be understood are skipped.
#[must_use]
pub fn parse_history(bytes: &[u8]) -> History {
    let lines = bytes.split(|byte| *byte == b'\n');
    let lines = lines.filter(|line| !line.is_empty());
    History {
        lines: lines.filter_map(|line| parse_line(line).ok()).collect(),
    }
}

fn parse_line(line: &[u8]) -> Result<HistoryLine, RecordError> {
    let object = StrictObject::parse(line)?;
    let what = match object.string("event")? {
        "taken-up" => HistoryEvent::TakenUp,
        "ended" => HistoryEvent::Ended,
        other => return Err(wrong("event", "event of an owner", format!("`{other}`"))),
    };
    let agent = AgentId::parse(object.string("agent")?);
    let session = SessionId::parse(object.string("session_id")?);
    Ok(HistoryLine {
        at_ms: time(&object, "at")?.ok_or_else(|| wrong("at", "time", "it is missing"))?,
        what,
        agent: agent.map_err(|error| wrong("agent", "agent name", error))?,
        session: session.map_err(|error| wrong("session_id", "session id", error))?,
        home: PathBuf::from(object.string("home")?),
        owner: parse_owner(object.object("process")?)?,
    })
}

#[derive(Debug, Serialize)]
struct WrittenLine<'a> {
    at: Option<String>,
    event: &'static str,
    agent: &'a str,
    session_id: &'a str,
    home: String,
    process: WrittenOwner<'a>,
}

impl HistoryLine {
    /// The line with a line feed at both ends: a torn line then affects no other.
    #[must_use]
    pub fn to_line(&self) -> String {
        let written = WrittenLine {
            at: timestamp(self.at_ms),
            event: match self.what {
                HistoryEvent::TakenUp => "taken-up",
                HistoryEvent::Ended => "ended",
            },
            agent: self.agent.as_str(),
            session_id: self.session.as_str(),
            home: self.home.to_string_lossy().into_owned(),
            process: WrittenOwner::new(&self.owner),
        };
        // Only text and numbers: this can't fail, and a failure would leave a blank line, which readers
        // skip.
        let json = serde_json::to_string(&written).unwrap_or_default();
        format!("\n{json}\n")
    }
}

/// Where the histories of an environment are.
#[must_use]
pub fn histories_root_of(environment: &Environment) -> Option<PathBuf> {
    let state = environment.xdg_directory("XDG_STATE_HOME", ".local/state")?;
    Some(state.join("whosup/owners"))
}

/// The file name of a process's history; `None` if its identity is incomplete.
#[must_use]
pub fn history_name(owner: &RecordedOwner) -> Option<String> {
    let boot = owner.boot.as_ref().map(BootId::as_str)?;
    let namespace = owner.pid_namespace?.0;
    let stamp = plain(&owner.stamp.as_ref()?.to_string());
    Some(format!("{boot}-{namespace}-{}-{stamp}{SUFFIX}", owner.pid))
}

/// A start stamp for a file name.
fn plain(stamp: &str) -> String {
    let plain = |sign: char| {
        if sign.is_ascii_alphanumeric() {
            sign
        } else {
            '_'
        }
    };
    stamp.chars().map(plain).collect()
}

/// The histories of one user, each read once.
#[derive(Debug)]
pub struct Histories<'a> {
    machine: &'a Machine,
    root: Option<PathBuf>,
    read: HashMap<String, History>,
}

impl<'a> Histories<'a> {
    /// The histories of a machine's environment. Those of running processes are read now, the
    /// others on demand.
    #[must_use]
    pub fn of(machine: &'a Machine) -> Self {
        let mut histories = Self {
            machine,
            root: histories_root_of(machine.environment()),
            read: HashMap::new(),
        };
        for name in histories.names() {
            if names_process_of(&name, machine) {
                histories.read(&name);
            }
        }
        histories
    }

    /// The names of the files; none if there is no directory yet.
    fn names(&self) -> Vec<String> {
        let names = self
            .root
            .as_deref()
            .map(|root| names_in(root, HISTORIES_MAX));
        let Some(Ok(names)) = names else {
            return Vec::new();
        };
        names.texts().map(str::to_owned).collect()
    }

    fn read(&mut self, name: &str) -> &History {
        let (root, machine) = (self.root.as_deref(), self.machine);
        let read = || root.map_or_else(History::default, |root| read_history(root, name, machine));
        self.read.entry(name.to_owned()).or_insert_with(read)
    }

    /// The history of a process.
    pub fn of_process(&mut self, owner: &RecordedOwner) -> Option<&History> {
        let name = history_name(owner)?;
        Some(self.read(&name))
    }

    /// The histories that were read.
    pub fn known(&self) -> impl Iterator<Item = (PathBuf, &History)> {
        let root = self.root.as_deref();
        let known = self.read.iter();
        known.filter_map(move |(name, history)| Some((root?.join(name), history)))
    }
}

/// Reads one history. An unreadable history counts as empty; each session's own record
/// is still there.
fn read_history(root: &Path, name: &str, machine: &Machine) -> History {
    let home = Home {
        owner_uid: whosup_sidecar::file::owner_of(root),
        is_default: true,
        root: root.into(),
    };
    match read_regular(&root.join(name), HISTORY_BYTES_MAX, Links::Refuse) {
        Ok(file) if trust_of(&file.facts, &home, machine) == Trust::Trusted => {
            parse_history(&file.bytes)
        }
        _ => History::default(),
    }
}

/// Whether a file name ends with the PID and start stamp of a running process.
fn names_process_of(name: &str, machine: &Machine) -> bool {
    let mut parts = name.strip_suffix(SUFFIX).unwrap_or_default().rsplit('-');
    let stamp = parts.next();
    let pid = parts
        .next()
        .and_then(|pid| Pid::new(pid.parse().ok()?).ok());
    let process = pid.and_then(|pid| machine.table().seen(pid));
    let begun = process.map(|process| plain(&process.stamp.to_string()));
    begun.is_some() && begun.as_deref() == stamp
}

#[cfg(test)]
mod tests {
    use super::HistoryEvent::{Ended, TakenUp};
    use super::*;

    fn line(session: &str, what: HistoryEvent, at_ms: i64) -> HistoryLine {
        HistoryLine {
            at_ms,
            what,
            agent: AgentId::parse("claude-code").unwrap(),
            session: SessionId::parse(session).unwrap(),
            home: PathBuf::from("/home/dev/.claude"),
            owner: RecordedOwner {
                pid: Pid::new(4711).unwrap(),
                stamp: Some(whosup_process::StartStamp::LinuxTicks(8123)),
                host: Some("devbox".to_owned()),
                boot: BootId::parse("19c1d8ff-a55f-47c0-82a1-b0f1bc43623a"),
                pid_namespace: Some(whosup_process::PidNamespace::INITIAL),
                executable: None,
                is_shared: false,
                is_unrecognized: false,
            },
        }
    }

    #[test]
    fn a_history_reads_as_it_was_written_and_a_torn_line_spoils_no_other() {
        let lines = vec![line("a", TakenUp, 1_000), line("a", Ended, 2_000)];
        let text: String = lines.iter().map(HistoryLine::to_line).collect();
        assert_eq!(parse_history(text.as_bytes()).lines, lines);
        let torn = format!("{}{text}", &text[..40]);
        assert_eq!(parse_history(torn.as_bytes()).lines, lines);
        let name = history_name(&lines[0].owner).unwrap();
        assert_eq!(
            name,
            "19c1d8ff-a55f-47c0-82a1-b0f1bc43623a-4026531836-4711-8123.jsonl"
        );
    }

    #[test]
    fn a_clock_that_is_set_back_does_not_bring_back_what_was_left() {
        let history = History {
            lines: vec![
                line("a", TakenUp, 9_000),
                line("a", Ended, 5_000),
                line("b", TakenUp, 5_500),
            ],
        };
        let current = history
            .current()
            .map(|line| line.session.as_str().to_owned());
        assert_eq!(current.as_deref(), Some("b"));
        assert_eq!(history.ended_at_ms(), None);
        let history = History {
            lines: vec![line("a", TakenUp, 9_000), line("a", Ended, 5_000)],
        };
        assert_eq!(history.ended_at_ms(), Some(5_000));
    }

    #[test]
    fn a_session_was_left_if_another_one_was_taken_up_since() {
        let agent = AgentId::parse("claude-code").unwrap();
        let history = History {
            lines: vec![
                line("a", TakenUp, 1_000),
                line("b", TakenUp, 3_000),
                // Heard late.
                line("c", TakenUp, 2_000),
                line("a", Ended, 4_000),
                line("d", Ended, 5_000),
            ],
        };
        for (session, heard_at_ms, has_left) in [
            ("a", Some(9_000), true),
            ("b", Some(1), false),
            ("c", None, true),
            // These were never heard to be taken up.
            ("d", Some(9_000), false),
            ("d", Some(2_500), true),
            ("d", None, true),
        ] {
            let session = SessionId::parse(session).unwrap();
            let answer = history.has_left(&agent, &session, heard_at_ms);
            assert_eq!(answer, has_left, "{session} {heard_at_ms:?}");
        }
    }
}
