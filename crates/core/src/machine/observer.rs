//! Lets a caller observe a look: each step, and what it found.
//!
//! The core reads no clock: an [`Observer`] measures how long a step takes.

use std::fmt;
use std::path::Path;

use whosup_sidecar::AgentId;

/// Observes a look. Steps run in several threads, also at the same time.
pub trait Observer: fmt::Debug + Send + Sync {
    /// A step begins.
    fn begin(&self, about: About<'_>) -> Box<dyn Running>;
}

/// What a step is about.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    /// The work, as a noun: `homes`, `session records`.
    pub step: &'static str,
    /// The agent or pane host.
    pub of: Option<&'a str>,
    /// The path that is looked at.
    pub path: Option<&'a Path>,
}

/// A running step.
pub trait Running {
    /// The step ends. `found` has numbers and paths, but no text of a session.
    fn end(self: Box<Self>, found: String);
}

/// A step of a look, which may have no observer.
#[must_use]
pub struct Step(Option<Box<dyn Running>>);

impl Step {
    /// Begins a step.
    pub(super) fn begin(observer: Option<&dyn Observer>, about: About<'_>) -> Self {
        Self(observer.map(|observer| observer.begin(about)))
    }

    /// Ends it. `found` is called only if there is an observer.
    pub fn end(self, found: impl FnOnce() -> String) {
        if let Some(running) = self.0 {
            running.end(found());
        }
    }
}

impl About<'_> {
    /// A step about this machine.
    #[must_use]
    pub const fn machine(step: &'static str) -> Self {
        Self {
            step,
            of: None,
            path: None,
        }
    }
}

impl<'a> About<'a> {
    /// A step about a home of an agent.
    pub(crate) fn home(agent: &'a AgentId, path: &'a Path) -> Self {
        Self {
            step: "home",
            of: Some(agent.as_str()),
            path: Some(path),
        }
    }

    /// A step about a pane host.
    pub(crate) const fn panes(host: &'a str) -> Self {
        Self {
            step: "panes",
            of: Some(host),
            path: None,
        }
    }
}
