//! What is wrong, and what puts it right.

use std::path::PathBuf;

use whosup_core::adapter::Adapter;

/// What was checked, and what is wrong there.
pub(super) struct Check {
    /// A name for programs.
    pub(super) name: &'static str,
    /// What is true if nothing is wrong.
    pub(super) fine: String,
    /// What is wrong.
    pub(super) findings: Vec<Finding>,
}

impl Check {
    /// A check, and what it found.
    pub(super) fn new(
        name: &'static str,
        fine: impl Into<String>,
        findings: impl IntoIterator<Item = Finding>,
    ) -> Self {
        Self {
            name,
            fine: fine.into(),
            findings: findings.into_iter().collect(),
        }
    }
}

/// What `--fix` made of a finding.
pub(super) enum Outcome {
    /// It was left to a person.
    Left,
    /// It is fixed.
    Fixed,
    /// It could not be fixed.
    Failed(String),
}

/// Something that is wrong.
pub(super) struct Finding {
    /// What.
    pub(super) what: String,
    /// What to do: a command, or words where there is none.
    pub(super) fix: String,
    /// What `--fix` does; `None` if it is left to a person.
    pub(super) remedy: Option<Remedy>,
    /// What became of it.
    pub(super) outcome: Outcome,
}

/// What `--fix` does.
pub(super) enum Remedy {
    /// Sets the hooks of an agent in one of its homes.
    SetHooks {
        /// The agent.
        adapter: &'static dyn Adapter,
        /// The home.
        home: PathBuf,
    },
}

impl Finding {
    /// One that a person has to put right.
    pub(super) fn new(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            fix: fix.into(),
            remedy: None,
            outcome: Outcome::Left,
        }
    }

    /// The same, which `--fix` puts right.
    pub(super) fn with(self, remedy: Remedy) -> Self {
        Self {
            remedy: Some(remedy),
            ..self
        }
    }
}
