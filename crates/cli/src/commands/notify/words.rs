//! The contents of a notification: words for a person, and a document for a program.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value, json};
use whosup_core::views::wire::timestamp;
use whosup_live::Row;

use super::budget::{DayCost, Dollars};
use super::kind::Kind;
use super::pace::{Happening, Notice};
use crate::text;

/// How wide one line of a notification may be, in columns.
const LINE_WIDTH_MAX: usize = 120;
/// How many sessions a summary names.
const NAMED_MAX: usize = 4;

/// A notification, ready to be sent.
#[derive(Debug, Clone)]
pub(super) struct Words {
    /// What happened: fixed words, and the names of agents.
    pub(super) summary: String,
    /// The sessions: lines that models wrote, without characters that steer a terminal.
    pub(super) body: Vec<String>,
    /// The input of a command: `kind`, `at`, and the sessions as in `whosup list --json`.
    pub(super) document: Value,
}

impl Words {
    /// The words of a notice; `frame` is the document around the sessions.
    pub(super) fn of(
        notice: &Notice,
        at_ms: i64,
        frame: &Map<String, Value>,
        home: Option<&Path>,
    ) -> Self {
        let (happenings, kind) = match notice {
            Notice::One(one) => (std::slice::from_ref(one), one.kind.name()),
            Notice::Several(several, _) => (several.as_slice(), "summary"),
        };
        let (summary, body) = match notice {
            Notice::One(one) => (headline(one), body(&one.row, home)),
            Notice::Several(several, count) => (sum(several, *count), names(several, home)),
        };
        let mut document = frame.clone();
        let sessions = happenings.iter().map(|one| one.row.session.clone());
        let kinds = happenings.iter().map(|one| one.kind.name());
        document.extend([
            ("kind".to_owned(), kind.into()),
            ("at".to_owned(), timestamp(at_ms).into()),
            ("summary".to_owned(), summary.clone().into()),
            ("kinds".to_owned(), kinds.collect()),
            ("sessions".to_owned(), sessions.collect()),
        ]);
        Self {
            summary,
            body,
            document: document.into(),
        }
    }

    /// The notification of a day that has cost more than its budget.
    pub(super) fn of_budget(
        cost: &DayCost,
        limit: Dollars,
        at_ms: i64,
        frame: &Map<String, Value>,
    ) -> Self {
        let none = Notice::Several(Vec::new(), 0);
        let mut words = Self::of(&none, at_ms, frame, None);
        let (dollars, limit) = (cost.dollars, limit.amount());
        words.summary = format!("today's sessions have cost ${dollars:.2}");
        words.body = vec![format!("The budget of a day is ${limit:.2}.")];
        words.document["kind"] = json!("budget");
        words.document["summary"] = json!(words.summary);
        words.document["day"] = json!(cost.day);
        words.document["cost_usd"] = json!(dollars);
        words.document["budget_usd"] = json!(limit);
        words
    }

    /// The notification of `--test`.
    pub(super) fn of_test(at_ms: i64, frame: &Map<String, Value>) -> Self {
        let no_session = Notice::Several(Vec::new(), 0);
        let mut words = Self::of(&no_session, at_ms, frame, None);
        words.summary = "whosup can notify you".to_owned();
        words.body = vec!["This is a test. No session is meant.".to_owned()];
        words.document["kind"] = json!("test");
        words.document["summary"] = json!(words.summary);
        words
    }
}

fn headline(one: &Happening) -> String {
    let agent = &one.key.agent;
    match (one.kind, one.row.text("waiting_for")) {
        (Kind::Waiting, Some("permission")) => format!("{agent} asks for permission"),
        (Kind::Waiting, _) => format!("{agent} waits for you"),
        (Kind::TurnEnded, _) => format!("{agent} has finished a turn"),
        (Kind::Ended, _) => format!("{agent} has ended"),
        (Kind::Died, _) => format!("{agent} died"),
    }
}

fn sum(several: &[Happening], count: usize) -> String {
    let mut counts: BTreeMap<Kind, usize> = BTreeMap::new();
    for one in several {
        *counts.entry(one.kind).or_default() += 1;
    }
    let parts = counts.iter().map(|(kind, number)| match kind {
        Kind::Waiting => format!("{number} waiting"),
        Kind::TurnEnded => format!("{number} with a finished turn"),
        Kind::Ended => format!("{number} ended"),
        Kind::Died => format!("{number} died"),
    });
    let parts: Vec<String> = parts.collect();
    let more = text::count(count, "more session", "more sessions");
    format!("{more}: {}", parts.join(", "))
}

/// Title or ID, the question, and the directory.
fn body(row: &Row, home: Option<&Path>) -> Vec<String> {
    let waiting_on = row.session.get("waiting_on").unwrap_or(&Value::Null);
    let part = |name: &str| waiting_on[name].as_str().unwrap_or_default();
    let asks = format!("{} {}", part("tool"), part("text"));
    let lines = [line(name(row)), line(&asks), directory(row, home)];
    lines.into_iter().filter(|line| !line.is_empty()).collect()
}

fn names(several: &[Happening], home: Option<&Path>) -> Vec<String> {
    let named = several.iter().take(NAMED_MAX).map(|one| {
        let (kind, name) = (one.kind.name(), name(&one.row));
        line(&format!("{kind}: {name} {}", directory(&one.row, home)))
    });
    named.collect()
}

fn name(row: &Row) -> &str {
    let title = row.text("title").filter(|title| !title.trim().is_empty());
    title.or(row.text("session_id")).unwrap_or_default()
}

fn directory(row: &Row, home: Option<&Path>) -> String {
    let directory = row.text("work_dir").map(Path::new);
    line(&directory.map_or_else(String::new, |directory| text::path(directory, home)))
}

fn line(text: &str) -> String {
    text::cut(&text::one_line(text), LINE_WIDTH_MAX)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use serde_json::{Map, json};
    use whosup_core::adapter::claim::SessionKey;
    use whosup_core::sidecar::{AgentId, SessionId};
    use whosup_live::Row;

    use super::{Happening, Kind, Notice, Words};

    fn happening(kind: Kind, title: &str) -> Happening {
        let session = json!({
            "session_id": "s1", "title": title, "work_dir": "/home/dev/shop",
            "waiting_for": "permission", "waiting_on": { "tool": "Bash", "text": "rm -rf x\u{1b}[2J" },
        });
        Happening {
            kind,
            key: SessionKey {
                agent: AgentId::parse("codex").unwrap(),
                session: SessionId::parse("s1").unwrap(),
                home: Path::new("/home/dev/.codex").into(),
            },
            row: Arc::new(Row {
                session: session.as_object().unwrap().clone(),
                directory: None,
            }),
        }
    }

    fn words(notice: &Notice) -> Words {
        let mut frame = Map::new();
        frame.insert("schema_version".to_owned(), json!(1));
        Words::of(notice, 0, &frame, Some(Path::new("/home/dev")))
    }

    #[test]
    fn one_session_is_named_with_what_it_asks() {
        let words = words(&Notice::One(happening(Kind::Waiting, "Fix\nit")));
        assert_eq!(words.summary, "codex asks for permission");
        assert_eq!(words.body, ["Fix it", "Bash rm -rf x[2J", "~/shop"]);
        assert_eq!(words.document["kind"], "waiting");
        assert_eq!(words.document["schema_version"], 1);
        assert_eq!(words.document["at"], "1970-01-01T00:00:00.000Z");
        assert_eq!(words.document["sessions"][0]["session_id"], "s1");
    }

    #[test]
    fn a_summary_counts_and_a_long_text_is_cut() {
        let long = "x".repeat(1_000);
        let mut several = vec![happening(Kind::Ended, &long); 6];
        several.push(happening(Kind::TurnEnded, ""));
        let words = words(&Notice::Several(several, 9));
        let expected = "9 more sessions: 1 with a finished turn, 6 ended";
        assert_eq!(words.summary, expected);
        assert_eq!(words.body.len(), 4);
        assert!(words.body[0].chars().count() <= 120, "{:?}", words.body);
        assert_eq!(words.document["kind"], "summary");
        assert_eq!(words.document["kinds"].as_array().unwrap().len(), 7);
    }
}
