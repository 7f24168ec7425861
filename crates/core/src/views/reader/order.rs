//! The order of a list.

use std::path::Path;

use crate::judging::verdict::Liveness;
use crate::sessions::session::Session;

use super::condition::Condition;

/// What a list is sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// Who waits first (the oldest one before), then working, idle, the rest.
    #[default]
    State,
    /// What happened last first.
    Activity,
    /// What began last first.
    Started,
    /// By agent, then by id.
    Agent,
    /// By directory.
    Directory,
    /// By PID, those without one last.
    Pid,
}

impl Order {
    /// Every order.
    pub const ALL: [Self; 6] = [
        Self::State,
        Self::Activity,
        Self::Started,
        Self::Agent,
        Self::Directory,
        Self::Pid,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::Activity => "activity",
            Self::Started => "started",
            Self::Agent => "agent",
            Self::Directory => "directory",
            Self::Pid => "pid",
        }
    }

    /// Finds an order by its name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|order| order.name() == name)
    }

    /// Tells whether the place of a session may change once its own files are
    /// read.
    pub fn needs_files(self, session: &Session) -> bool {
        let is_dated = session.sketch.last_record_at_ms.is_some();
        match self {
            Self::State => !is_dated || session.liveness() == Liveness::Live,
            Self::Activity => !is_dated,
            Self::Started => session.sketch.born_at_ms.is_none(),
            Self::Directory => session.sketch.work_dir.is_none(),
            Self::Agent | Self::Pid => false,
        }
    }

    /// Where a session stands in this order. What is equal is told apart by agent, id
    /// and home.
    pub(super) fn place(self, session: &Session) -> Place {
        let newest_first = |at_ms: Option<i64>| Place::at(at_ms.map(|at_ms| !at_ms));
        match self {
            Self::State => {
                let condition = Condition::of(session);
                let since = session.last_activity_at_ms();
                let place = if matches!(condition, Condition::Waiting(_)) {
                    // Whoever waits longest comes first.
                    Place::at(since)
                } else {
                    newest_first(since)
                };
                Place {
                    rank: condition.rank(),
                    ..place
                }
            }
            Self::Activity => newest_first(session.last_activity_at_ms()),
            Self::Started => newest_first(session.started_at_ms()),
            Self::Agent => Place::default(),
            Self::Directory => {
                let work_dir = session.work_dir();
                Place {
                    is_nowhere: work_dir.is_none(),
                    path: work_dir.map(Into::into),
                    ..Place::default()
                }
            }
            Self::Pid => Place::at(shown_pid(session).map(i64::from)),
        }
    }
}

/// Where a session stands in an order.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    rank: usize,
    /// Nothing tells where: last.
    is_nowhere: bool,
    at: i64,
    path: Option<Box<Path>>,
}

impl Place {
    fn at(at: Option<i64>) -> Self {
        Self {
            is_nowhere: at.is_none(),
            at: at.unwrap_or_default(),
            ..Self::default()
        }
    }
}

/// The PID of a session's owner, as long as that owner may still serve it.
pub fn shown_pid(session: &Session) -> Option<i32> {
    let owner = session.owner.as_ref()?;
    (session.liveness() != Liveness::Exited).then(|| owner.pid.get())
}
