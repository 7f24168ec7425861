//! A session, as recorded in its row.

use std::path::PathBuf;

use serde_json::Value;
use whosup_sidecar::{SessionId, parse_json};

use super::Relative;
use crate::adapter::Description;
use crate::adapter::phase::{Phase, WaitingFor};
use crate::sources::agents::kit::dialect::text_at;
use crate::sources::agents::kit::title::one_line;

/// What opencode calls a session until it has found a title for it.
const UNTITLED: &[&str] = &["New session - ", "Child session - "];

/// How much of a session's title it shows, in the units of JavaScript.
const TERMINAL_UNITS_MAX: usize = 40;

/// A row of the table `session`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) id: SessionId,
    /// The session whose sub-agent this session is. (A fork has none.)
    pub(super) parent: Option<SessionId>,
    pub(super) directory: Option<PathBuf>,
    /// Its title, once it has one.
    pub(super) title: Option<String>,
    /// The release that made it.
    pub(super) version: Option<String>,
    pub(super) model: Option<String>,
    pub(super) created_at_ms: Option<i64>,
    /// When the row was last changed, for any reason.
    pub(super) updated_at_ms: Option<i64>,
    /// When its last message was begun.
    pub(super) last_message_at_ms: Option<i64>,
    /// A person put it away.
    pub(super) is_archived: bool,
    /// The index of its database among the databases of the home.
    pub(super) database: usize,
}

impl Row {
    /// When it was last used; its making counts.
    pub(super) fn used_at_ms(&self) -> Option<i64> {
        self.created_at_ms.max(self.last_message_at_ms)
    }

    /// The terminal title of this session, where the title differs from other sessions'
    /// titles.
    pub(super) fn terminal_title(&self, agent: &Relative) -> Option<String> {
        let (prefix, end) = agent.terminal_title;
        let title = self.title.as_deref()?;
        let units: Vec<u16> = title.encode_utf16().collect();
        if units.len() <= TERMINAL_UNITS_MAX {
            return Some(format!("{prefix}{title}"));
        }
        let start = String::from_utf16_lossy(units.get(..TERMINAL_UNITS_MAX - 3)?);
        Some(format!("{prefix}{start}{end}"))
    }

    /// The description that a person reads.
    pub(super) fn description(&self) -> Description {
        Description {
            title: self.title.clone(),
            model: self.model.clone(),
            agent_version: self.version.clone(),
            work_dir: self.directory.clone(),
            started_at_ms: self.created_at_ms,
            last_activity_at_ms: self.used_at_ms(),
            ..Description::default()
        }
    }
}

/// A title, unless it is what stands there before there is one.
pub(super) fn given_title(title: &str) -> Option<String> {
    let is_untitled = UNTITLED.iter().any(|start| title.starts_with(start));
    one_line(title).filter(|_| !is_untitled)
}

/// The model in the column `model`: `{"id": …, "providerID": …}`.
pub(super) fn model_of(json: &str) -> Option<String> {
    let value: Value = parse_json(json.as_bytes()).ok()?;
    text_at(&value, "/id").map(str::to_owned)
}

/// Where the conversation is, by its last message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Turn {
    /// The turn has ended.
    Ended,
    /// A turn is running, if the process that wrote this still exists.
    GoesOn {
        /// When its last message was begun.
        since_ms: i64,
        /// The tool that runs.
        tool: Option<RunningTool>,
    },
}

/// A tool that was called and has not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunningTool {
    pub(super) name: String,
    pub(super) called_at_ms: i64,
    /// The tool has shown output: it was allowed to run.
    pub(super) has_begun: bool,
}

/// The tool by which a person is asked something.
const QUESTION_TOOL: &str = "question";
/// Tools that show output or finish as soon as they may run. Other tools may be waiting for
/// permission or may be running.
const PROMPT_TOOLS: &[&str] = &["apply_patch", "bash", "edit", "multiedit", "patch", "write"];

impl Turn {
    /// The phase of the session. `began_at_ms` is when a process began that may serve it,
    /// and `asked_at_ms` when the run last asked for permission. Turns that began before any
    /// such process are over.
    pub(super) fn phase(
        &self,
        began_at_ms: Option<i64>,
        asked_at_ms: Option<i64>,
    ) -> (Phase, Option<WaitingFor>) {
        let tool = match self {
            Self::GoesOn { since_ms, tool } if began_at_ms.is_some_and(|at| at <= *since_ms) => {
                tool
            }
            _ => return (Phase::Idle, None),
        };
        let may_be_asked_for = |tool: &RunningTool| {
            let is_asked = asked_at_ms >= Some(tool.called_at_ms);
            !tool.has_begun && PROMPT_TOOLS.contains(&tool.name.as_str()) && is_asked
        };
        let waiting = |what| (Phase::Waiting, Some(what));
        match tool {
            Some(tool) if tool.name == QUESTION_TOOL => waiting(WaitingFor::Question),
            Some(tool) if may_be_asked_for(tool) => waiting(WaitingFor::Permission),
            _ => (Phase::Working, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::agents::kilo::KILO;
    use crate::sources::agents::opencode::OPENCODE;

    #[test]
    fn a_title_that_stands_in_for_one_is_none() {
        assert_eq!(given_title("New session - 2026-11-27T21:03:43.130Z"), None);
        assert_eq!(
            given_title("Child session - 2026-11-27T21:03:43.130Z"),
            None
        );
        assert_eq!(given_title(" "), None);
        assert_eq!(
            given_title("Fix the\nbuild").as_deref(),
            Some("Fix the build")
        );
    }

    #[test]
    fn a_model_is_named_by_its_id() {
        assert_eq!(
            model_of(r#"{"id":"m-1","providerID":"p"}"#).as_deref(),
            Some("m-1")
        );
        assert_eq!(model_of(r#"{"id":""}"#), None);
        assert_eq!(model_of("m-1"), None);
    }

    #[test]
    fn a_terminal_shows_the_beginning_of_a_title() {
        let mut row = Row {
            id: SessionId::parse("ses_1").expect("an id"),
            parent: None,
            directory: None,
            title: Some("Fix the build".to_owned()),
            version: None,
            model: None,
            created_at_ms: None,
            updated_at_ms: None,
            last_message_at_ms: None,
            is_archived: false,
            database: 0,
        };
        let shown = |row: &Row| row.terminal_title(OPENCODE.0);
        assert_eq!(shown(&row).as_deref(), Some("OC | Fix the build"));
        row.title = Some("Write many more tests for the parser than there are".to_owned());
        let cut = "OC | Write many more tests for the parser \u{2026}";
        assert_eq!(shown(&row).as_deref(), Some(cut));
        let of_kilo = row.terminal_title(KILO.0);
        let cut = "Kilo CLI | Write many more tests for the parser ...";
        assert_eq!(of_kilo.as_deref(), Some(cut));
        row.title = None;
        assert_eq!(shown(&row), None);
    }

    fn going_on(tool: Option<(&str, bool)>) -> Turn {
        Turn::GoesOn {
            since_ms: 1_000,
            tool: tool.map(|(name, has_begun)| RunningTool {
                name: name.to_owned(),
                called_at_ms: 1_100,
                has_begun,
            }),
        }
    }

    #[track_caller]
    fn check(turn: &Turn, began: i64, asked: Option<i64>, right: (Phase, Option<WaitingFor>)) {
        assert_eq!(
            turn.phase(Some(began), asked),
            right,
            "{turn:?} {began} {asked:?}"
        );
    }

    #[test]
    fn a_turn_goes_on_only_while_somebody_is_there_who_began_it() {
        check(&going_on(None), 900, None, (Phase::Working, None));
        check(&going_on(None), 1_001, None, (Phase::Idle, None));
        assert_eq!(going_on(None).phase(None, None), (Phase::Idle, None));
        check(&Turn::Ended, 900, None, (Phase::Idle, None));
    }

    #[test]
    fn a_tool_that_was_asked_for_and_has_said_nothing_waits_for_permission() {
        let waiting = (Phase::Waiting, Some(WaitingFor::Permission));
        check(&going_on(Some(("bash", false))), 900, Some(1_200), waiting);
        let working = (Phase::Working, None);
        check(&going_on(Some(("bash", false))), 900, Some(1_099), working);
        check(&going_on(Some(("bash", false))), 900, None, working);
        check(&going_on(Some(("bash", true))), 900, Some(1_200), working);
        check(
            &going_on(Some(("webfetch", false))),
            900,
            Some(1_200),
            working,
        );
        let question = (Phase::Waiting, Some(WaitingFor::Question));
        check(&going_on(Some(("question", true))), 900, None, question);
    }
}
