//! `whosup status`

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use whosup_core::adapter::AccountLimit;
use whosup_core::adapter::phase::Phase;
use whosup_core::machine::problem::Problem;
use whosup_core::sessions::session::{Session, Snapshot};
use whosup_core::views::limits::{Limits, account_limits};
use whosup_core::views::wire;

use super::sweep::{options, sweep_here};
use crate::app::{App, say};
use crate::condition::{Condition, Wording, is_stale, words_of};
use crate::exit::ExitStatus;
use crate::json::{Answer, StatusMore, write_document};
use crate::short_id::ShortIds;
use crate::text;
use whosup_core::reader::Reach;
use whosup_core::reader::{Filter, Wish};

const EXAMPLES: &str = "\
Examples:
  whosup status                    Activity per directory, newest first
  whosup status --format tmux      One line for a status bar
  whosup status --json             The sessions, in the form of `whosup list --json`

Ends exited sessions first, as `whosup sweep` does.";

/// The end of the system's message for EACCES.
const PERMISSION_DENIED: &str = "ermission denied";
/// The name of a directory that could not be listed.
const UNREAD: &str = "unreadable";
/// The name of sessions whose state is unknown and that have been silent for long.
const STALE: &str = "stale";

#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StatusArgs {
    /// Print one line, for a prompt or a status bar
    #[arg(long, value_name = "FORM", conflicts_with = "json")]
    format: Option<Form>,
    /// Maximum width in columns [default for tmux: 40, its `status-right-length`]
    #[arg(long, value_name = "COLUMNS", requires = "format")]
    width: Option<u16>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Who reads the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// `status-right` of tmux
    Tmux,
    /// A custom module of Waybar
    Waybar,
    /// A custom command of Starship
    Starship,
    /// Plain text
    Plain,
}

impl Form {
    /// The default width.
    const fn width(self) -> Option<usize> {
        match self {
            Self::Tmux => Some(40),
            Self::Waybar | Self::Starship | Self::Plain => None,
        }
    }
}

/// Sweeps, then summarizes activity.
///
/// # Errors
///
/// If the configuration can't be understood, or the output can't be written.
pub(crate) fn run(app: &mut App<'_>, arguments: &StatusArgs) -> anyhow::Result<ExitStatus> {
    let ended = sweep_first(app)?;
    let wish = Wish::default();
    let reach = Reach {
        depth: wish.depth(),
        ..Reach::default()
    };
    let filter = Filter::new(wish, app.world.machine())?;
    let mut scanned = app.world.scan(&reach)?;
    let ids = ShortIds::of(&scanned.snapshot.sessions);
    let is_shown = |session: &Session| session.sketch.parent.is_none() && filter.is_shown(session);
    scanned.snapshot.sessions.retain(is_shown);
    // The phase may be in the transcript only.
    app.world.describe(&mut scanned, |_| true)?;
    let snapshot = scanned.snapshot;
    let now_ms = snapshot.taken_at_ms;
    let machine = app.world.machine();
    let used = snapshot.sessions.iter();
    let used = used.map(|session| (&*session.sketch, session.last_activity_at_ms()));
    let limits = account_limits(machine, used);
    let sessions = text::count(ended, "session", "sessions");
    let ended = (ended > 0).then(|| format!("ended {sessions} whose agent had exited"));
    if arguments.json {
        if let Some(ended) = ended {
            say(app.err, &ended);
        }
        let document = Answer {
            snapshot: &wire::snapshot(app.world.machine(), &snapshot),
            more: StatusMore {
                limits: wire::limits(&limits, now_ms),
            },
        };
        write_document(app.out, &document)?;
    } else if let Some(form) = arguments.format {
        let counts = counts(&snapshot, now_ms);
        let width = arguments.width.map(usize::from).or_else(|| form.width());
        writeln!(app.out, "{}", line(form, &counts, width))?;
    } else {
        if let Some(ended) = ended {
            writeln!(app.out, "{ended}")?;
        }
        write_directories(app, &snapshot.sessions, &ids)?;
        let counts = counts(&snapshot, now_ms);
        let plain = line(Form::Plain, &counts, app.face.width);
        let nothing = "no session is live";
        writeln!(
            app.out,
            "{}",
            if plain.is_empty() { nothing } else { &plain }
        )?;
        for line in limit_lines(&limits, now_ms) {
            writeln!(app.out, "{line}")?;
        }
    }
    Ok(ExitStatus::Done)
}

/// A line for each current limit of an account.
pub(crate) fn limit_lines(limits: &[Limits], now_ms: i64) -> Vec<String> {
    let line = |of: &Limits, limit: &AccountLimit| {
        let agent = of.agent.as_str();
        let name = of.record.name.as_deref().filter(|name| *name != agent);
        let name = name.map(|name| format!(" ({})", text::one_line(name)));
        let window = limit.window_minutes.map(|minutes| match minutes {
            minutes if minutes % 1_440 == 0 => format!("{}d ", minutes / 1_440),
            minutes if minutes % 60 == 0 => format!("{}h ", minutes / 60),
            minutes => format!("{minutes}m "),
        });
        let resets = limit.resets_at_ms;
        let resets = resets.map(|at| format!(", resets in {}", text::age(at, now_ms)));
        let recorded = match text::age(now_ms, of.record.recorded_at_ms).as_str() {
            "now" => "now".to_owned(),
            age => format!("{age} ago"),
        };
        format!(
            "{agent}{}: {:.0}% of the {}limit used{} (recorded {recorded})",
            name.unwrap_or_default(),
            limit.used_percent,
            window.unwrap_or_default(),
            resets.unwrap_or_default(),
        )
    };
    let each = limits.iter();
    each.flat_map(|of| of.record.current(now_ms).map(move |limit| line(of, limit)))
        .collect()
}

/// Ends what has exited. A failed sweep does not stop the command.
fn sweep_first(app: &mut App<'_>) -> anyhow::Result<usize> {
    let options = options(app)?;
    Ok(match sweep_here(app, &options) {
        Ok(report) => report.ended.len(),
        Err(error) => {
            say(app.err, &format!("warning: {error}"));
            0
        }
    })
}

/// The conditions that are shown, in the order of the table, each with the number of
/// sessions in it.
fn counts(snapshot: &Snapshot, now_ms: i64) -> Vec<(&'static str, usize)> {
    let sessions = &snapshot.sessions;
    let names = Condition::ALL.iter().map(|condition| condition.name());
    names
        .chain([STALE])
        .map(|name| {
            let are_so = sessions.iter().filter(|one| name_of(one, now_ms) == name);
            (name, are_so.count())
        })
        .chain([(UNREAD, unread(snapshot))])
        .filter(|(_, count)| *count > 0)
        .collect()
}

/// How many places can't be read: each may contain sessions. (An odd file is no reason to
/// alarm a status bar.)
fn unread(snapshot: &Snapshot) -> usize {
    let is_refused = |problem: &&Problem| problem.message.contains(PERMISSION_DENIED);
    snapshot.problems.iter().filter(is_refused).count()
}

/// The condition's name, or `stale`.
fn name_of(session: &Session, now_ms: i64) -> &'static str {
    if is_stale(session, now_ms) {
        STALE
    } else {
        Condition::of(session).name()
    }
}

/// One line of numbers without any text from agents. Waiting sessions come first, so that
/// they are shown when there is no room for all.
fn line(form: Form, counts: &[(&'static str, usize)], width: Option<usize>) -> String {
    let fitting = fitting(counts, width);
    let rest = if fitting < counts.len() { " …" } else { "" };
    let words = |colour: fn(&str) -> Option<&'static str>| {
        let coloured = |name: &str, text: String| match colour(name) {
            Some(colour) => format!("#[fg={colour}]{text}#[default]"),
            None => text,
        };
        if let (0, Some((name, count)), Some(width)) = (fitting, counts.first(), width) {
            return coloured(name, text::cut(&format!("{count} {name}{rest}"), width));
        }
        let part = |(name, count): &(&str, usize)| coloured(name, format!("{count} {name}"));
        let shown = counts.iter().take(fitting).map(part);
        shown.collect::<Vec<_>>().join(", ") + rest
    };
    match form {
        Form::Plain | Form::Starship => words(|_| None),
        Form::Tmux => words(|name| match name {
            "waiting" => Some("yellow"),
            "working" => Some("green"),
            "orphaned" => Some("red"),
            _ => None,
        }),
        Form::Waybar => {
            let text = words(|_| None);
            let class = counts.first().map_or("none", |(name, _)| name);
            serde_json::json!({ "text": text, "tooltip": text, "class": class }).to_string()
        }
    }
}

/// How many counts fit; 0 if there is no room for the first.
fn fitting(counts: &[(&str, usize)], width: Option<usize>) -> usize {
    let width = width.unwrap_or(usize::MAX);
    let mut used = 0_usize;
    let ends = counts.iter().map(|(name, count)| {
        let separator = if used > 0 { 2 } else { 0 };
        used += separator + text::width(&format!("{count} {name}"));
        used
    });
    let ends: Vec<usize> = ends.collect();
    let all = ends.last().is_none_or(|end| *end <= width);
    let room = if all { width } else { width.saturating_sub(2) };
    ends.iter().take_while(|end| **end <= room).count()
}

/// The sessions by directory: directories with waiting sessions first, then by the last
/// activity.
fn write_directories(
    app: &mut App<'_>,
    sessions: &[Session],
    ids: &ShortIds,
) -> anyhow::Result<()> {
    let mut directories: BTreeMap<Option<PathBuf>, Vec<&Session>> = BTreeMap::new();
    for session in sessions {
        let directory = session.work_dir().map(ToOwned::to_owned);
        directories.entry(directory).or_default().push(session);
    }
    // Waiting sessions first, then by the last activity.
    let place = |session: &&Session| {
        let waits = session.phase() == Some(Phase::Waiting);
        let last = session.last_activity_at_ms().unwrap_or(0);
        std::cmp::Reverse((waits, last))
    };
    let mut directories: Vec<_> = directories.into_iter().collect();
    for (_, sessions) in &mut directories {
        sessions.sort_by_key(place);
    }
    directories.sort_by_key(|(_, sessions)| sessions.first().map(place));
    let now_ms = app.world.machine().now_ms();
    for (directory, sessions) in directories {
        let name = directory.map_or_else(
            || "(no directory known)".to_owned(),
            |directory| text::path(&directory, app.world.home()),
        );
        writeln!(app.out, "{name}")?;
        for session in sessions {
            let age = session
                .last_activity_at_ms()
                .map(|at_ms| text::age(now_ms, at_ms));
            let title = session.title().map(text::one_line).unwrap_or_default();
            let row = format!(
                "  {}  {} {}  {}  {title}",
                if is_stale(session, now_ms) {
                    STALE.to_owned()
                } else {
                    words_of(session, Wording::Full)
                },
                session.key.agent,
                text::visible(ids.get(&session.key.session)),
                age.as_deref().unwrap_or("-"),
            );
            let row = row.trim_end();
            match app.face.width {
                Some(width) => writeln!(app.out, "{}", text::cut(row, width))?,
                None => writeln!(app.out, "{row}")?,
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Form, line};

    #[test]
    fn a_line_is_never_wider_than_it_may_be() {
        let counts = [("waiting", 2), ("idle", 10)];
        for (width, counts, right) in [
            (20, &counts[..], "2 waiting, 10 idle"),
            (17, &counts, "2 waiting …"),
            (10, &counts, "2 waiting…"),
            (9, &counts, "2 waitin…"),
            (3, &counts, "2…"),
            (1, &counts, "…"),
            (0, &counts, ""),
            (6, &[("idle", 1)], "1 idle"),
            (5, &[("idle", 1)], "1 id…"),
            (1, &[], ""),
        ] {
            assert_eq!(line(Form::Plain, counts, Some(width)), right, "{width}");
        }
        let coloured = line(Form::Tmux, &counts, Some(4));
        assert_eq!(coloured, "#[fg=yellow]2 w…#[default]");
    }
}
