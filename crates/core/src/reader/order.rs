//! The order of a list.

use std::cmp::{Ordering, Reverse};

use crate::session::Session;
use crate::verdict::Liveness;

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

    /// Puts sessions in order. What is equal is told apart by agent, id and home.
    pub fn sort(self, sessions: &mut [Session]) {
        sessions.sort_by(|one, other| {
            self.compare(one, other)
                .then_with(|| one.key.cmp(&other.key))
        });
    }

    fn compare(self, one: &Session, other: &Session) -> Ordering {
        let by = |key: fn(&Session) -> Option<i64>| {
            // Newest first, and those without a date last.
            Reverse(key(one)).cmp(&Reverse(key(other)))
        };
        match self {
            Self::State => by_state(one, other),
            Self::Activity => by(Session::last_activity_at_ms),
            Self::Started => by(Session::started_at_ms),
            Self::Agent => Ordering::Equal,
            Self::Directory => {
                let key = |session: &Session| {
                    (
                        session.work_dir().is_none(),
                        session.work_dir().map(ToOwned::to_owned),
                    )
                };
                key(one).cmp(&key(other))
            }
            Self::Pid => {
                let key = |session: &Session| {
                    let pid = shown_pid(session);
                    (pid.is_none(), pid)
                };
                key(one).cmp(&key(other))
            }
        }
    }
}

fn by_state(one: &Session, other: &Session) -> Ordering {
    let (condition, its) = (Condition::of(one), Condition::of(other));
    let (since, since_other) = (one.last_activity_at_ms(), other.last_activity_at_ms());
    condition.rank().cmp(&its.rank()).then_with(|| {
        if matches!(condition, Condition::Waiting(_)) {
            // Whoever waits longest comes first; without a date, last.
            (since.is_none(), since).cmp(&(since_other.is_none(), since_other))
        } else {
            Reverse(since).cmp(&Reverse(since_other))
        }
    })
}

/// The PID of a session's owner, as long as that owner may still serve it.
pub fn shown_pid(session: &Session) -> Option<i32> {
    let owner = session.owner.as_ref()?;
    (session.liveness() != Liveness::Exited).then(|| owner.pid.get())
}
