//! What is wrong, and what puts it right.

use std::path::PathBuf;

use whosup_core::adapter::Adapter;

/// Something that is wrong.
pub(super) struct Finding {
    /// What.
    pub(super) what: String,
    /// What to do: a command, or words where there is none.
    pub(super) fix: String,
    /// What `--fix` does; `None` if it is left to a person.
    pub(super) remedy: Option<Remedy>,
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
