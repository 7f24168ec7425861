//! One row of the view: what is shown of a session, or of a process without one.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use whosup_core::adapter::claim::SessionKey;
use whosup_core::adapter::phase::WaitingFor;
use whosup_live::Row;

use crate::condition::{Condition, Wording};
use crate::shell;
use crate::text;

/// Names a row, wherever it moves.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RowId {
    Session(SessionKey),
    /// A process without a session, by PID and start stamp.
    Process(i64, String),
}

/// A command that resumes a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Resume {
    /// For a shell.
    pub(super) line: String,
    /// The same, fit for the screen.
    pub(super) shown: String,
    /// False if the command stands in a file that others may have written.
    pub(super) is_trusted: bool,
}

/// One row. Every text is fit for a terminal.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) id: RowId,
    pub(super) agent: String,
    /// The session's id.
    pub(super) session: String,
    pub(super) title: String,
    /// The directory that it works in.
    pub(super) project: String,
    pub(super) condition: Condition,
    pub(super) state: String,
    /// When the state began, in milliseconds since 1970.
    pub(super) since_ms: Option<i64>,
    pub(super) turn_tokens: Option<u64>,
    pub(super) context_tokens: Option<u64>,
    pub(super) context_percent: Option<f64>,
    pub(super) place: String,
    /// What a person is asked.
    pub(super) asks: String,
    pub(super) pid: Option<i64>,
    pub(super) resume: Option<Resume>,
}

impl Item {
    /// The row of a session.
    pub(super) fn of_session(key: &SessionKey, row: &Row, home: Option<&Path>) -> Self {
        let session = &row.session;
        let condition = condition(row);
        let owner = session.get("owner").unwrap_or(&Value::Null);
        let since = match condition {
            Condition::Orphaned | Condition::Exited => ["ended_at", "last_activity_at"],
            Condition::Unknown => ["last_activity_at", "started_at"],
            _ => ["phase_since", "started_at"],
        };
        Self {
            id: RowId::Session(key.clone()),
            agent: one_line(session, "agent"),
            session: one_line(session, "session_id"),
            title: one_line(session, "title"),
            project: project(session, home),
            condition,
            state: state(condition, row),
            since_ms: since.iter().find_map(|field| date_ms(session.get(*field)?)),
            turn_tokens: session
                .get("turn")
                .and_then(|turn| turn["output_tokens"].as_u64()),
            context_tokens: session
                .get("context")
                .and_then(|context| context["tokens"].as_u64()),
            context_percent: session
                .get("context")
                .and_then(|context| context["percent"].as_f64()),
            place: place(session, owner),
            asks: asks(session.get("waiting_on").unwrap_or(&Value::Null)),
            pid: owner["pid"].as_i64(),
            resume: session
                .get("resume")
                .and_then(|resume| resumed(resume, home)),
        }
    }

    /// The row of a process without a session; `None` if it has no PID.
    pub(super) fn of_process(process: &Value, home: Option<&Path>) -> Option<Self> {
        let fields = process.as_object()?;
        let pid = process["pid"].as_i64()?;
        let stamp = process["start_stamp"].as_str().unwrap_or_default();
        Some(Self {
            id: RowId::Process(pid, stamp.to_owned()),
            agent: one_line(fields, "agent"),
            session: String::new(),
            title: one_line(fields, "reason"),
            project: project(fields, home),
            condition: Condition::NoSession,
            state: Condition::NoSession.words(Wording::Short),
            since_ms: date_ms(&process["started_at"]),
            turn_tokens: None,
            context_tokens: None,
            context_percent: None,
            place: pane_words(&process["pane"]),
            asks: String::new(),
            pid: Some(pid),
            resume: None,
        })
    }

    /// Whether it has each word of a filter, which is in lower case.
    pub(super) fn matches(&self, words: &[&str]) -> bool {
        let fields = [
            &self.agent,
            &self.session,
            &self.title,
            &self.project,
            &self.state,
            &self.place,
        ];
        let text = fields.map(|field| field.to_lowercase()).join("\n");
        words.iter().all(|word| text.contains(word))
    }

    /// The session as commands name it.
    pub(super) fn named(&self) -> Option<(String, PathBuf)> {
        match &self.id {
            RowId::Session(key) => {
                let name = format!("{}:{}", key.agent, key.session.as_str());
                Some((name, key.home.to_path_buf()))
            }
            RowId::Process(..) => None,
        }
    }
}

fn one_line(fields: &Map<String, Value>, name: &str) -> String {
    text::one_line(fields.get(name).and_then(Value::as_str).unwrap_or_default())
}

fn project(fields: &Map<String, Value>, home: Option<&Path>) -> String {
    match fields.get("work_dir").and_then(Value::as_str) {
        Some(path) => text::path(Path::new(path), home),
        None => "(directory not known)".to_owned(),
    }
}

/// As [`Condition::of`], of a session in its wire form.
fn condition(row: &Row) -> Condition {
    let is = |field: &str| row.session.get(field) == Some(&Value::Bool(true));
    match (row.text("liveness"), row.text("phase")) {
        (Some("live"), Some("waiting")) => {
            Condition::Waiting(row.text("waiting_for").and_then(WaitingFor::from_name))
        }
        (Some("live"), Some("working")) => Condition::Working,
        (Some("live"), Some("idle")) => Condition::Idle,
        (Some("live"), Some("starting")) => Condition::Starting,
        (Some("live"), _) => Condition::Live,
        (Some("exited"), _) if is("orphan") => Condition::Orphaned,
        (Some("exited"), _) => Condition::Exited,
        _ => Condition::Unknown,
    }
}

/// The condition in words, with what a person should know beside it.
fn state(condition: Condition, row: &Row) -> String {
    let owner = row.session.get("owner");
    let beside = if owner.is_some_and(|owner| owner["stopped"] == true) {
        " (suspended)"
    } else {
        match row.text("phase_at_exit") {
            Some("working" | "waiting") => " (in a turn)",
            _ => "",
        }
    };
    let mark = match row.text("confidence") {
        Some("inferred") => " ?",
        _ => "",
    };
    format!("{}{beside}{mark}", condition.words(Wording::Short))
}

fn date_ms(date: &Value) -> Option<i64> {
    let date: jiff::Timestamp = date.as_str()?.parse().ok()?;
    Some(date.as_millisecond())
}

fn place(session: &Map<String, Value>, owner: &Value) -> String {
    let pane = pane_words(session.get("pane").unwrap_or(&Value::Null));
    let tty = owner["tty"].as_str().unwrap_or_default();
    if pane.is_empty() {
        text::one_line(tty.strip_prefix("/dev/").unwrap_or(tty))
    } else {
        pane
    }
}

/// `tmux main:api`
fn pane_words(pane: &Value) -> String {
    let part = |name: &str| pane[name].as_str().unwrap_or_default();
    let names = [part("session"), part("window")];
    let names: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
    text::one_line(&format!("{} {}", part("host"), names.join(":")))
}

fn asks(waiting_on: &Value) -> String {
    let part = |name: &str| waiting_on[name].as_str().unwrap_or_default();
    text::one_line(&format!("{} {}", part("tool"), part("text")))
}

fn resumed(resume: &Value, home: Option<&Path>) -> Option<Resume> {
    let argv = resume["argv"].as_array()?.iter().map(Value::as_str);
    let argv: Vec<&str> = argv.collect::<Option<_>>()?;
    let variables = resume["env"].as_object().into_iter().flatten();
    let variables: Vec<(&str, &str)> = variables
        .map(|(name, value)| Some((name.as_str(), value.as_str()?)))
        .collect::<Option<_>>()?;
    let line = |quote: &dyn Fn(&str) -> String| {
        let words = argv.iter().copied();
        let variables = variables.iter().copied();
        shell::line(words, resume["cwd"].as_str(), variables, quote)
    };
    Some(Resume {
        line: line(&shell::quoted),
        shown: line(&|word| shell::readable(word, home)),
        is_trusted: resume["trusted"] == true,
    })
}
