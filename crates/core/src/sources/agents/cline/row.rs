//! A session, as recorded in its row or in the file beside its messages.

use std::path::PathBuf;

use serde_json::Value;
use whosup_process::Pid;
use whosup_sidecar::SessionId;

use crate::adapter::Description;
use crate::adapter::phase::{FactSource, Phase, PhaseFact, WaitingFor};
use crate::sources::agents::kit::dialect::text_at;
use crate::sources::agents::kit::prompt::{FirstWords, Wrapping};
use crate::sources::agents::kit::title::one_line;

/// The facts about one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) id: SessionId,
    pub(super) started_at_ms: Option<i64>,
    pub(super) ended_at_ms: Option<i64>,
    /// When the row was last changed; rows from files have no such date.
    pub(super) updated_at_ms: Option<i64>,
    /// The first process that the row names.
    pub(super) pid: Option<Pid>,
    pub(super) status: String,
    /// `metadata`, an object.
    pub(super) metadata: Value,
    /// A person is at a terminal.
    pub(super) is_interactive: Option<bool>,
    pub(super) model: Option<String>,
    pub(super) work_dir: Option<PathBuf>,
    /// The session whose sub-agent this session is.
    pub(super) parent: Option<SessionId>,
    /// The first prompt, with the marks that it was sent with.
    pub(super) prompt: Option<String>,
    pub(super) messages: Option<PathBuf>,
}

/// Statuses of a session that the process which ran it has ended.
const FINISHED: &[&str] = &["cancelled", "completed"];
/// Statuses of a session that has ended, as far as its writer knew.
const ENDED: &[&str] = &["cancelled", "completed", "error", "failed"];

impl Row {
    /// The row marks the session as ended.
    pub(super) fn is_ended(&self) -> bool {
        ENDED.contains(&self.status.as_str())
    }

    /// The process that ran it has ended it. Another process may call a session failed
    /// that still runs: it goes by the PID in the row.
    pub(super) fn is_finished(&self) -> bool {
        FINISHED.contains(&self.status.as_str())
    }

    /// The row marks the session as working.
    pub(super) fn is_in_a_turn(&self) -> bool {
        let phase = self.phase().map(|(phase, _)| phase);
        matches!(
            phase,
            Some(Phase::Working | Phase::Waiting | Phase::Starting)
        )
    }

    fn phase(&self) -> Option<(Phase, Option<WaitingFor>)> {
        Some(match self.status.as_str() {
            "idle" => (Phase::Idle, None),
            "starting" => (Phase::Starting, None),
            "running" | "stopping" => (Phase::Working, None),
            // Set around the question whether a tool may run, and only there.
            "pending" => (Phase::Waiting, Some(WaitingFor::Permission)),
            status if ENDED.contains(&status) => (Phase::Ended, None),
            _ => return None,
        })
    }

    /// The phase in the row.
    pub(super) fn fact(&self) -> PhaseFact {
        let phase = self.phase();
        PhaseFact::new(FactSource::Registry, phase.map(|(phase, _)| phase))
            .waiting_for(phase.and_then(|(_, what)| what))
            .in_word(&self.status)
            .dated(self.last_use_at_ms())
    }

    /// When the session was last used. The end is often detected later by another process,
    /// and then has the date of that detection.
    pub(super) fn last_use_at_ms(&self) -> Option<i64> {
        self.updated_at_ms.filter(|_| !self.is_ended())
    }

    /// The description that a person reads.
    pub(super) fn description(&self) -> Description {
        let text = |place: &str| text_at(&self.metadata, place);
        let title = text("/title").and_then(one_line);
        let mut words = FirstWords::default();
        words.add(self.prompt.as_deref().map(plain_prompt), &Wrapping::NONE);
        let prompt = words.title();
        // Cline makes the title from the prompt until a person sets another.
        let is_title_a_prompt = title.is_none() || title == prompt;
        Description {
            title: title.or(prompt),
            is_title_a_prompt,
            model: self.model.clone(),
            agent_version: text("/sessionHistoryOrigin/version").map(str::to_owned),
            git_branch: text("/git/branch").map(str::to_owned),
            work_dir: self.work_dir.clone(),
            started_at_ms: self.started_at_ms,
            last_activity_at_ms: self.last_use_at_ms().or(self.started_at_ms),
            is_headless: self.is_interactive.map(|is| !is),
            ..Description::default()
        }
    }
}

/// A prompt without `<user_input mode="act">…</user_input>` around it.
pub(super) fn plain_prompt(prompt: &str) -> &str {
    let inner = prompt.trim().strip_prefix("<user_input").and_then(|rest| {
        let (_, rest) = rest.split_once('>')?;
        rest.strip_suffix("</user_input>")
    });
    inner.unwrap_or(prompt)
}

/// A session's birth, by its id: `MILLISECONDS_XXXXX`.
pub(super) fn born_at_ms(id: &SessionId) -> Option<i64> {
    let (digits, _) = id.as_str().split_once('_')?;
    let is_date = digits.len() == 13 && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_date)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(status: &str) -> Row {
        Row {
            id: SessionId::parse("1795813652966_5ypul").expect("an id"),
            pid: None,
            started_at_ms: Some(10),
            ended_at_ms: None,
            status: status.to_owned(),
            is_interactive: Some(true),
            model: None,
            work_dir: None,
            parent: None,
            prompt: Some("<user_input mode=\"act\">fix\nit</user_input>".to_owned()),
            metadata: Value::Null,
            messages: None,
            updated_at_ms: Some(20),
        }
    }

    #[track_caller]
    fn check(status: &str, phase: Option<Phase>, waiting_for: Option<WaitingFor>) {
        let published = row(status).fact();
        assert_eq!(
            (published.phase, published.waiting_for),
            (phase, waiting_for)
        );
        assert_eq!(published.word.as_deref(), Some(status));
    }

    #[test]
    fn a_status_means_a_phase_if_it_is_known() {
        check("idle", Some(Phase::Idle), None);
        check("running", Some(Phase::Working), None);
        check(
            "pending",
            Some(Phase::Waiting),
            Some(WaitingFor::Permission),
        );
        check("completed", Some(Phase::Ended), None);
        check("failed", Some(Phase::Ended), None);
        check("dreaming", None, None);
        assert!(row("pending").is_in_a_turn() && !row("idle").is_in_a_turn());
        assert!(!row("dreaming").is_in_a_turn() && !row("failed").is_in_a_turn());
    }

    #[test]
    fn the_date_of_an_end_is_no_date_of_use() {
        assert_eq!(row("idle").last_use_at_ms(), Some(20));
        assert_eq!(row("failed").last_use_at_ms(), None);
        assert_eq!(row("failed").description().last_activity_at_ms, Some(10));
    }

    #[test]
    fn a_title_that_is_the_prompt_is_called_that() {
        let untitled = row("idle").description();
        assert_eq!(untitled.title.as_deref(), Some("fix it"));
        assert!(untitled.is_title_a_prompt);
        let mut row = row("idle");
        row.metadata = serde_json::json!({"title": "fix it", "git": {"branch": "main"},
            "sessionHistoryOrigin": {"version": "3.0.65"}});
        let described = row.description();
        assert!(described.is_title_a_prompt);
        assert_eq!(described.git_branch.as_deref(), Some("main"));
        assert_eq!(described.agent_version.as_deref(), Some("3.0.65"));
        row.metadata = serde_json::json!({"title": "A name", "git": 7});
        let described = row.description();
        assert_eq!(described.title.as_deref(), Some("A name"));
        assert!(!described.is_title_a_prompt && described.git_branch.is_none());
    }

    #[test]
    fn an_id_tells_its_birth() {
        let born = |id: &str| born_at_ms(&SessionId::parse(id).expect("an id"));
        assert_eq!(born("1795813652966_5ypul"), Some(1_795_813_652_966));
        assert_eq!(born("17_5ypul"), None);
        assert_eq!(born("179581365296x_5ypul"), None);
        assert_eq!(born("5ypul"), None);
    }

    #[test]
    fn a_prompt_loses_the_marks_around_it() {
        assert_eq!(
            plain_prompt("<user_input mode=\"act\">hi</user_input>"),
            "hi"
        );
        assert_eq!(plain_prompt("<user_input> hi"), "<user_input> hi");
        assert_eq!(plain_prompt("hi"), "hi");
    }
}
