//! A finding, and its fix.

use std::path::PathBuf;

use whosup_core::adapter::Adapter;

/// A check, with its findings.
pub(super) struct Check {
    /// A name for programs.
    pub(super) name: &'static str,
    /// The statement if all is well.
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

/// The result of `--fix`.
pub(super) enum Outcome {
    /// It needs a person.
    Left,
    /// It is fixed.
    Fixed,
    /// It could not be fixed.
    Failed(String),
}

/// A problem.
pub(super) struct Finding {
    /// What is wrong.
    pub(super) what: String,
    /// What to do: a command, or words if there is no command.
    pub(super) fix: String,
    /// The fix of `--fix`; `None` if it needs a person.
    pub(super) remedy: Option<Remedy>,
    /// The result of `--fix`.
    pub(super) outcome: Outcome,
}

/// A fix of `--fix`.
pub(super) enum Remedy {
    /// Installs the hooks of an agent in one of its homes.
    SetHooks {
        /// The agent.
        adapter: &'static dyn Adapter,
        /// The home.
        home: PathBuf,
    },
}

impl Finding {
    /// A finding that needs a person.
    pub(super) fn new(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            fix: fix.into(),
            remedy: None,
            outcome: Outcome::Left,
        }
    }

    /// The same, with a fix for `--fix`.
    pub(super) fn with(self, remedy: Remedy) -> Self {
        Self {
            remedy: Some(remedy),
            ..self
        }
    }
}
