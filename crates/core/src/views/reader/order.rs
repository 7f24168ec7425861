//! The order of a list.

use std::cmp::Ordering;
use std::path::Path;

use crate::judging::verdict::Liveness;
use crate::sessions::resources::Resources;
use crate::sessions::session::Session;

use super::condition::Condition;

/// The key of the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// Waiting first (longest wait first), then working, idle, the rest.
    #[default]
    State,
    /// Latest activity first.
    Activity,
    /// Latest start first.
    Started,
    /// By agent, then by id.
    Agent,
    /// By id.
    Id,
    /// By title.
    Title,
    /// By directory.
    Directory,
    /// By PID, without a PID last.
    Pid,
    /// By the PID of the client.
    Client,
    /// By the pane host, then by the place there.
    Pane,
    /// By terminal.
    Tty,
    /// By the reason of the verdict.
    Reason,
    /// By the confidence of the verdict.
    Confidence,
    /// By model.
    Model,
    /// By branch.
    Branch,
    /// By the agent's version.
    Version,
    /// By the agent's home.
    Home,
    /// Most tokens in the context first.
    Context,
    /// Most tokens used first.
    Tokens,
    /// Highest cost first.
    Cost,
    /// Most processor time first.
    Cpu,
    /// Most memory first.
    Memory,
    /// Most threads of the owner first.
    Threads,
    /// Most storage read and written by the owner first.
    Io,
}

/// The direction of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// First to last.
    #[default]
    Forward,
    /// Last to first. Sessions without a value are last all the same.
    Reversed,
}

impl Order {
    /// Whether reading a session's own files may change the session's place.
    pub fn needs_files(self, session: &Session) -> bool {
        let is_dated = session.sketch.last_record_at_ms.is_some();
        match self {
            Self::State => !is_dated || session.liveness() == Liveness::Live,
            Self::Activity => !is_dated,
            Self::Started => session.sketch.born_at_ms.is_none(),
            Self::Directory => session.sketch.work_dir.is_none(),
            Self::Title
            | Self::Model
            | Self::Branch
            | Self::Version
            | Self::Context
            | Self::Tokens
            | Self::Cost => true,
            Self::Agent
            | Self::Id
            | Self::Pid
            | Self::Client
            | Self::Pane
            | Self::Tty
            | Self::Reason
            | Self::Confidence
            | Self::Home
            | Self::Cpu
            | Self::Memory
            | Self::Threads
            | Self::Io => false,
        }
    }

    /// The form has to add values to a session before its place is known.
    pub(super) const fn needs_form(self) -> bool {
        matches!(
            self,
            Self::Tokens | Self::Cost | Self::Cpu | Self::Memory | Self::Threads | Self::Io
        )
    }

    /// Where a session stands in this order. Equal sessions are ordered by agent, ID and home.
    pub(super) fn place(self, session: &Session) -> Place {
        let described = &session.description;
        let is_live = session.liveness() == Liveness::Live;
        match self {
            Self::State => {
                let condition = Condition::of(session);
                let since = session.last_activity_at_ms();
                let place = if matches!(condition, Condition::Waiting(_)) {
                    // The longest wait comes first.
                    Place::at(since)
                } else {
                    Place::largest_first(since)
                };
                Place {
                    rank: condition.rank(),
                    ..place
                }
            }
            Self::Activity => Place::largest_first(session.last_activity_at_ms()),
            Self::Started => Place::largest_first(session.started_at_ms()),
            Self::Agent => Place::default(),
            Self::Id => Place::by(Some(session.key.session.as_str())),
            Self::Title => Place::by(session.title()),
            Self::Directory => Place::by(session.work_dir()),
            Self::Pid => Place::at(shown_pid(session).map(i64::from)),
            Self::Client => {
                let client = session.client.as_ref();
                Place::at(client.map(|client| client.pid.get().into()))
            }
            Self::Pane => {
                let pane = session.pane.as_ref().filter(|_| is_live);
                let place = pane.map(|pane| format!("{} {}", pane.host, pane.place));
                Place::by(place.as_deref())
            }
            Self::Tty => {
                let process = session.terminal_process().filter(|_| is_live);
                let tty = process.and_then(|process| process.tty?.name());
                Place::by(tty.as_deref())
            }
            Self::Reason => Place::by(Some(session.verdict.reason())),
            Self::Confidence => {
                let known = session.verdict.confidence();
                Place::by(known.map(|known| known.name()))
            }
            Self::Model => Place::by(described.model.as_deref()),
            Self::Branch => Place::by(described.git_branch.as_deref()),
            Self::Version => Place::by(session.agent_version()),
            Self::Home => Place::by(Some(&*session.key.home)),
            Self::Context => {
                let tokens = described.context.map(|context| context.tokens);
                Place::largest_first(tokens.map(saturating))
            }
            Self::Tokens => {
                let usage = session.usage.as_ref();
                Place::largest_first(usage.map(|usage| saturating(usage.sums.tokens())))
            }
            Self::Cost => {
                let cost = session.usage.as_ref().map(|usage| usage.cost);
                let cost = cost.filter(|cost| cost.tokens > 0);
                Place::largest_first(cost.map(|cost| saturating(cost.nano)))
            }
            Self::Cpu | Self::Memory | Self::Threads | Self::Io => {
                // A shared value belongs to none of the sessions.
                let used = session.resources.as_ref().filter(|used| !used.is_shared);
                Place::largest_first(used.and_then(|used| self.used(used)))
            }
        }
    }
}

impl Order {
    fn used(self, used: &Resources) -> Option<i64> {
        let tree = used.tree.as_ref();
        match self {
            #[expect(clippy::cast_possible_truncation, reason = "a percentage is small")]
            Self::Cpu => Some((tree?.cpu_percent? * 1_000.0) as i64),
            Self::Memory => tree?.rss_bytes.map(saturating),
            Self::Threads => Some(used.owner.threads.into()),
            Self::Io => {
                let storage = used.owner.storage?;
                Some(saturating(storage.read.saturating_add(storage.written)))
            }
            _ => None,
        }
    }
}

fn saturating(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The place of a session in an order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Place {
    rank: usize,
    /// Without a known place: last.
    is_nowhere: bool,
    at: i64,
    /// A name; paths are compared by component.
    name: Option<Box<Path>>,
}

impl Place {
    fn at(at: Option<i64>) -> Self {
        Self {
            is_nowhere: at.is_none(),
            at: at.unwrap_or_default(),
            ..Self::default()
        }
    }

    fn largest_first(at: Option<i64>) -> Self {
        Self::at(at.map(|at| !at))
    }

    fn by<T: AsRef<Path> + ?Sized>(name: Option<&T>) -> Self {
        Self {
            is_nowhere: name.is_none(),
            name: name.map(|name| name.as_ref().into()),
            ..Self::default()
        }
    }

    /// Which of two comes first.
    pub(super) fn cmp(&self, other: &Self, direction: Direction) -> Ordering {
        let order = |order: Ordering| match direction {
            Direction::Forward => order,
            Direction::Reversed => order.reverse(),
        };
        order(self.rank.cmp(&other.rank))
            .then(self.is_nowhere.cmp(&other.is_nowhere))
            .then_with(|| {
                let this = (self.at, &self.name);
                order(this.cmp(&(other.at, &other.name)))
            })
    }
}

/// The PID of a session's owner, as long as that owner may still serve it.
pub fn shown_pid(session: &Session) -> Option<i32> {
    let owner = session.owner.as_ref()?;
    (session.liveness() != Liveness::Exited).then(|| owner.pid.get())
}
