//! `whosup status`

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use whosup_core::session::Session;

use super::sweep::{options, sweep_here};
use crate::app::{App, say};
use crate::condition::{Condition, Wording, is_stale, words_of};
use crate::exit::ExitStatus;
use crate::json::write_document;
use crate::short_id::ShortIds;
use crate::text;
use whosup_core::reader::Reach;
use whosup_core::reader::{Filter, Wish};

const EXAMPLES: &str = "\
Examples:
  whosup status                    What goes on where, newest first
  whosup status --format tmux      One line for a status bar
  whosup status --json             The sessions, as `whosup list --json` has them

Ends first what has exited without saying so, as `whosup sweep` does.";

/// What a session is called that nobody can tell of, and that has been silent long.
const STALE: &str = "stale";

// What `status` is asked for.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StatusArgs {
    /// One line, for a prompt or a status bar
    #[arg(long, value_name = "FORM", conflicts_with = "json")]
    format: Option<Form>,
    /// Prints one JSON document
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
    /// Anybody
    Plain,
}

/// Sweeps, and tells what goes on.
///
/// # Errors
///
/// If the configuration can't be understood, or nobody takes the output.
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
    if arguments.format.is_none() {
        app.world.describe(&mut scanned, |_| true)?;
    }
    let snapshot = scanned.snapshot;
    let now_ms = snapshot.taken_at_ms;
    let sessions = text::count(ended, "session", "sessions");
    let ended = (ended > 0).then(|| format!("ended {sessions} whose agent had exited"));
    if arguments.json {
        if let Some(ended) = ended {
            say(app.err, &ended);
        }
        let wire = whosup_core::wire::snapshot(app.world.machine(), &snapshot);
        write_document(app.out, &wire)?;
    } else if let Some(form) = arguments.format {
        writeln!(app.out, "{}", line(form, &snapshot.sessions, now_ms))?;
    } else {
        if let Some(ended) = ended {
            writeln!(app.out, "{ended}")?;
        }
        write_directories(app, &snapshot.sessions, &ids)?;
        let plain = line(Form::Plain, &snapshot.sessions, now_ms);
        let nothing = "no session is live";
        writeln!(
            app.out,
            "{}",
            if plain.is_empty() { nothing } else { &plain }
        )?;
    }
    Ok(ExitStatus::Done)
}

/// Ends what has exited. A sweep that can't be made stops nobody from looking.
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

/// The conditions that are told, in the order of the table, and how many
/// sessions are in each.
fn counts(sessions: &[Session], now_ms: i64) -> Vec<(&'static str, usize)> {
    let names = Condition::ALL.iter().map(|condition| condition.name());
    names
        .chain([STALE])
        .map(|name| {
            let are_so = sessions.iter().filter(|one| name_of(one, now_ms) == name);
            (name, are_so.count())
        })
        .filter(|(_, count)| *count > 0)
        .collect()
}

/// The condition's name, or that it is stale.
fn name_of(session: &Session, now_ms: i64) -> &'static str {
    if is_stale(session, now_ms) {
        STALE
    } else {
        Condition::of(session).name()
    }
}

/// One line of numbers: nothing in it was written by an agent.
fn line(form: Form, sessions: &[Session], now_ms: i64) -> String {
    let counts = counts(sessions, now_ms);
    let words = |colour: fn(&str) -> Option<&'static str>| {
        let part = |(name, count): &(&str, usize)| match colour(name) {
            Some(colour) => format!("#[fg={colour}]{count} {name}#[default]"),
            None => format!("{count} {name}"),
        };
        counts.iter().map(part).collect::<Vec<_>>().join(", ")
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

/// The sessions of each directory, the directory in which something happened
/// last first.
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
    let last = |session: &&Session| session.last_activity_at_ms().unwrap_or(0);
    let mut directories: Vec<_> = directories.into_iter().collect();
    for (_, sessions) in &mut directories {
        sessions.sort_by_key(|session| std::cmp::Reverse(last(session)));
    }
    directories.sort_by_key(|(_, sessions)| std::cmp::Reverse(sessions.first().map(last)));
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
            writeln!(app.out, "{}", row.trim_end())?;
        }
    }
    Ok(())
}
