//! The cells of the list.

use anstyle::Style;
use whosup_core::adapter::Context;
use whosup_core::judging::verdict::Liveness;
use whosup_core::process::Tty;
use whosup_core::reader::shown_pid;
use whosup_core::sessions::resources::Resources;
use whosup_core::sessions::session::{Session, Unattributed};
use whosup_core::sidecar::SessionId;
use whosup_core::sources::panes::Pane;
use whosup_core::sources::usage::Sums;

use crate::app::World;
use crate::column::Column;
use crate::condition::{Condition, State, Wording};
use crate::config::Config;
use crate::short_id::ShortIds;
use crate::table::Cell;
use crate::text;

/// Shown for an unknown value.
pub(crate) const NOTHING: &str = "-";

/// How many candidate sessions of a process are named.
const CANDIDATES_SHOWN_MAX: usize = 3;

/// Makes cells.
pub(crate) struct Cells<'a> {
    /// Colours and exclusions.
    pub(crate) config: &'a Config,
    /// The home directory and the time zone.
    pub(crate) world: &'a World,
    /// When the scan was taken.
    pub(crate) now_ms: i64,
}

impl Cells<'_> {
    /// The state and the cells of a session. The short ID is added when the list is complete.
    pub(crate) fn of_session(&self, columns: &[Column], session: &Session) -> (State, Vec<Cell>) {
        let state = State::of(session);
        let style = if matches!(state.condition, Condition::Exited) {
            Style::new().dimmed()
        } else {
            Style::new()
        };
        let cells = columns.iter().map(|column| match column {
            Column::State => self.of_state(state),
            _ => Cell {
                text: self.text_of(*column, session),
                style,
            },
        });
        (state, cells.collect())
    }

    fn of_state(&self, state: State) -> Cell {
        Cell {
            text: state.words(Wording::Full),
            style: self.config.style(state.condition),
        }
    }

    /// The text of a session in a column, other than [`Column::State`] and [`Column::Id`].
    pub(crate) fn text_of(&self, column: Column, session: &Session) -> String {
        match column {
            Column::State | Column::Id => String::new(),
            Column::Agent => session.key.agent.to_string(),
            Column::FullId => text::visible(session.key.session.as_str()),
            Column::Title => {
                let title = session.title().map(text::one_line);
                or_nothing(title)
            }
            Column::Directory => self.directory(session.work_dir()),
            Column::Age => {
                let at = session.last_activity_at_ms();
                or_nothing(at.map(|at| text::age(self.now_ms, at)))
            }
            Column::Pid => or_nothing(pids(session)),
            Column::Client => {
                let client = session.client.as_ref();
                or_nothing(client.map(|client| client.pid.to_string()))
            }
            Column::Pane => or_nothing(place(session)),
            Column::Tty => or_nothing(tty_of(session).and_then(short_name)),
            Column::Reason => session.verdict.reason().to_owned(),
            Column::Confidence => {
                let known = session.verdict.confidence();
                or_nothing(known.map(|known| known.name().to_owned()))
            }
            Column::Model => foreign(session.description.model.as_deref()),
            Column::Branch => foreign(session.description.git_branch.as_deref()),
            Column::Version => foreign(session.agent_version()),
            Column::Started => or_nothing(session.started_at_ms().and_then(|at| self.time(at))),
            Column::Home => text::path(&session.key.home, self.world.home()),
            Column::Context => or_nothing(session.description.context.map(context)),
            Column::Tokens => {
                let usage = session.usage.as_ref();
                or_nothing(usage.and_then(|usage| text::known_tokens(&usage.sums, Sums::tokens)))
            }
            Column::Cost => or_nothing(session.usage.as_ref().and_then(text::cost)),
            Column::Cpu | Column::Memory | Column::Threads | Column::Io => {
                let used = session.resources.as_ref();
                or_nothing(used.and_then(|used| resources(column, used)))
            }
        }
    }

    /// The cell of a process without a session.
    pub(crate) fn of_process(&self, column: Column, one: &Unattributed, ids: &ShortIds) -> Cell {
        let process = &one.process.process;
        Cell::plain(match column {
            Column::State => return self.of_state(State::NO_SESSION),
            Column::Agent => one.process.agent.to_string(),
            Column::Title => self.candidates(one, ids),
            Column::Directory => self.directory(one.process.work_dir()),
            Column::Pid => process.pid.to_string(),
            Column::Pane => {
                let pane = one.pane.as_ref().map(pane_words);
                or_nothing(pane.or_else(|| process.tty.and_then(short_name)))
            }
            Column::Tty => or_nothing(process.tty.and_then(short_name)),
            Column::Started => {
                let began_at_ms = process.began_at_ms.as_ref().ok();
                or_nothing(began_at_ms.and_then(|at| self.time(*at)))
            }
            Column::Id
            | Column::FullId
            | Column::Age
            | Column::Client
            | Column::Reason
            | Column::Confidence
            | Column::Model
            | Column::Branch
            | Column::Version
            | Column::Home
            | Column::Context
            | Column::Tokens
            | Column::Cost
            | Column::Cpu
            | Column::Memory
            | Column::Threads
            | Column::Io => NOTHING.to_owned(),
        })
    }

    /// Shown for a missing title if no column shows the directory: the directory, else the
    /// PID.
    pub(crate) fn stand_in(&self, session: &Session) -> String {
        self.directory_or_pid(session.work_dir(), shown_pid(session))
    }

    /// The same for a process without a session.
    pub(crate) fn stand_in_of_process(&self, one: &Unattributed) -> String {
        let pid = one.process.process.pid.get();
        self.directory_or_pid(one.process.work_dir(), Some(pid))
    }

    fn directory_or_pid(&self, path: Option<&std::path::Path>, pid: Option<i32>) -> String {
        let pid = || pid.map(|pid| format!("PID {pid}"));
        let path = path.map(|path| text::path(path, self.world.home()));
        or_nothing(path.or_else(pid))
    }

    fn time(&self, at_ms: i64) -> Option<String> {
        self.world.local_time(at_ms)
    }

    /// The candidate sessions of a process, in place of a title.
    fn candidates(&self, one: &Unattributed, ids: &ShortIds) -> String {
        let shown = one.candidates.iter().take(CANDIDATES_SHOWN_MAX);
        let name = |id: &SessionId| match one.titles.get(id) {
            Some(title) => format!("“{}”", text::one_line(title)),
            None => text::visible(ids.get(id)),
        };
        let mut named: Vec<String> = shown.map(name).collect();
        let more = one.candidates.len().saturating_sub(CANDIDATES_SHOWN_MAX);
        if more > 0 {
            named.push(format!("{more} more"));
        }
        match named.is_empty() {
            false => format!("may serve {}", named.join(" or ")),
            true => NOTHING.to_owned(),
        }
    }

    fn directory(&self, path: Option<&std::path::Path>) -> String {
        or_nothing(path.map(|path| text::path(path, self.world.home())))
    }
}

/// A pane in words: the pane host, and the place there as its users name it. For a terminal
/// that lists no panes, the device.
pub(crate) fn pane_words(pane: &Pane) -> String {
    let device = pane.tty.and_then(short_name).unwrap_or_default();
    let place = if pane.place.is_empty() {
        &device
    } else {
        &pane.place
    };
    text::one_line(&format!("{} {place}", pane.host))
}

/// The terminal that a person would look at.
pub(crate) fn tty_of(session: &Session) -> Option<Tty> {
    let is_live = session.liveness() == Liveness::Live;
    session.terminal_process().filter(|_| is_live)?.tty
}

/// A terminal as ps(1) names it: `pts/3`.
fn short_name(tty: Tty) -> Option<String> {
    let name = tty.name()?;
    let short = name.strip_prefix("/dev/").map(str::to_owned);
    Some(short.unwrap_or(name))
}

/// Where a person finds a session: pane, else terminal, or why there is neither.
pub(crate) fn place(session: &Session) -> Option<String> {
    if session.liveness() != Liveness::Live {
        return None;
    }
    if let Some(pane) = &session.pane {
        return Some(pane_words(pane));
    }
    if session.is_headless() {
        return Some("headless".to_owned());
    }
    if session.is_client_ambiguous {
        return Some("one of several".to_owned());
    }
    if session.is_detached() {
        return Some("detached".to_owned());
    }
    tty_of(session).and_then(short_name)
}

/// `51.2k 26%`; the percentage is marked if the context window is assumed.
fn context(context: Context) -> String {
    let tokens = text::tokens(context.tokens);
    let mark = if context.is_window_assumed { "?" } else { "" };
    match context.percent() {
        Some(percent) => format!("{tokens} {percent:.0}%{mark}"),
        None => tokens,
    }
}

/// Shown instead of numbers that several sessions share and that are not counted for
/// each.
const SHARED: &str = "shared";

/// A column about the processes of a session.
fn resources(column: Column, used: &Resources) -> Option<String> {
    if used.is_shared {
        return Some(SHARED.to_owned());
    }
    let tree = used.tree.as_ref();
    match column {
        Column::Cpu => Some(format!("{:.0}%", tree?.cpu_percent?)),
        Column::Memory => Some(text::bytes(tree?.rss_bytes?)),
        Column::Threads => Some(used.owner.threads.to_string()),
        Column::Io => {
            let storage = used.owner.storage?;
            let (read, written) = (text::bytes(storage.read), text::bytes(storage.written));
            Some(format!("{read}/{written}"))
        }
        _ => None,
    }
}

fn pids(session: &Session) -> Option<String> {
    let pid = shown_pid(session)?;
    let others = session.other_live.len();
    Some(if others == 0 {
        pid.to_string()
    } else {
        format!("{pid} +{others}")
    })
}

fn foreign(text: Option<&str>) -> String {
    or_nothing(text.map(text::one_line))
}

fn or_nothing(text: Option<String>) -> String {
    text.filter(|text| !text.is_empty())
        .unwrap_or_else(|| NOTHING.to_owned())
}

#[cfg(test)]
mod tests {
    use whosup_core::process::StorageBytes;
    use whosup_core::sessions::resources::{ProcessUse, Resources, TreeUse};

    use super::{Column, resources};

    #[test]
    fn what_several_sessions_share_is_counted_for_none() {
        let mut used = Resources {
            is_shared: false,
            owner: ProcessUse {
                threads: 12,
                storage: Some(StorageBytes {
                    read: 1_290,
                    written: 0,
                }),
                ..ProcessUse::default()
            },
            tree: Some(TreeUse {
                processes: 2,
                cpu_percent: Some(104.6),
                rss_bytes: Some(223_456_789),
                ..TreeUse::default()
            }),
        };
        let columns = Column::ALL.into_iter();
        let columns: Vec<Column> = columns.filter(|column| column.needs_resources()).collect();
        let shown = |used: &Resources| {
            let columns = columns.iter().map(|column| resources(*column, used));
            columns.map(Option::unwrap).collect::<Vec<_>>()
        };
        assert_eq!(shown(&used), ["105%", "223M", "12", "1.29k/0"]);
        used.is_shared = true;
        assert_eq!(shown(&used), ["shared"; 4]);
    }
}
