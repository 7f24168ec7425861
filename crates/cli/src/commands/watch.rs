//! `whosup watch`

mod past;
mod screen;
pub(super) mod wakes;

use std::time::Duration;

use anyhow::bail;
use clap::Args;
use whosup_live::{Engine, Message, Received, Subscription};

use self::screen::Screen;
use self::wakes::{Wake, Wakes};
use super::list::{self, ListArgs};
use crate::app::{App, Face};
use crate::exit::ExitStatus;
use crate::json::escaped;
use crate::since::Since;
use crate::watched::{WatchedArgs, machine_of};

/// How often the ages in the table are updated.
const AGES_EVERY: Duration = Duration::from_secs(60);
/// The shortest time between two tables.
const TABLES_APART: Duration = Duration::from_millis(100);

const EXAMPLES: &str = "\
Examples:
  whosup watch                            A live table, until Ctrl-C
  whosup watch --ndjson | jq -c .kind     One JSON object per change
  whosup watch --since 2h                 First what hooks reported in the last two hours
  whosup watch --cwd . --phase waiting    Sessions in this directory that wait for you

In a pipe, or with --ndjson, the first line is a `snapshot`, and each further one a change:
`added`, `changed`, `removed`, `unattributed` or `problems` (schema/watch.v1.schema.json).
With --since, lines of the kind `event` come first.";

#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WatchArgs {
    /// Not possible: `list --all` lists every session on disk
    #[arg(long, short, hide = true)]
    all: bool,
    #[command(flatten)]
    watched: WatchedArgs,
    /// First print what hooks reported since: `2h`, `yesterday`, `2026-11-28T10:00`
    #[arg(long, value_name = "WHEN")]
    since: Option<Since>,
    /// Print one JSON object per change, also on a terminal
    #[arg(long)]
    ndjson: bool,
}

/// Shows changes until it is ended.
///
/// # Errors
///
/// If it can't watch sessions or write its output.
pub(crate) fn run(app: &mut App<'_>, arguments: &WatchArgs) -> anyhow::Result<ExitStatus> {
    if arguments.all {
        bail!(
            "cannot watch every session on disk: without `--all`, those are watched that are \
             live or unknown, or died in the last day"
        );
    }
    let filter = arguments.watched.filter()?;
    let machine = machine_of(&app.world)?;
    let is_table = app.face.width.is_some() && !arguments.ndjson;
    let wakes = if is_table {
        Wakes::begin_on_terminal(&[])?
    } else {
        Wakes::begin()?
    };
    if let Some(since) = arguments.since {
        let since_ms = since.at_ms(app.world.machine().now_ms(), app.world.zone());
        past::write(app, &filter, since_ms, is_table)?;
        app.out.flush()?;
    }
    let engine = Engine::start(machine)?;
    engine.on_change(wakes.call());
    let changes = engine.subscribe(filter, None);
    if is_table {
        watch_table(app, arguments, changes, &wakes)
    } else {
        watch_lines(app, changes, &wakes)
    }
}

/// Prints the changes.
fn watch_lines(
    app: &mut App<'_>,
    mut changes: Subscription,
    wakes: &Wakes,
) -> anyhow::Result<ExitStatus> {
    loop {
        while let Some(message) = next(&mut changes)? {
            escaped::write(&mut *app.out, &message.to_json()).map_err(std::io::Error::from)?;
            app.out.write_all(b"\n")?;
        }
        app.out.flush()?;
        match wakes.next(None) {
            Wake::Change | Wake::Resized | Wake::Continued | Wake::Input | Wake::TimedOut => {}
            Wake::OutputClosed => return Ok(ExitStatus::Done),
            Wake::Signal(signal) => return end_by(signal),
        }
    }
}

/// The next message, if there is one.
///
/// # Errors
///
/// If the watch has ended.
pub(super) fn next(changes: &mut Subscription) -> anyhow::Result<Option<Message>> {
    match changes.next(Duration::ZERO) {
        Received::Message(message) => Ok(Some(message)),
        Received::Nothing => Ok(None),
        Received::Over(why) => bail!("cannot watch any longer: {why}"),
    }
}

/// Keeps a table up to date.
fn watch_table(
    app: &mut App<'_>,
    arguments: &WatchArgs,
    mut changes: Subscription,
    wakes: &Wakes,
) -> anyhow::Result<ExitStatus> {
    let list = ListArgs::watched(&arguments.watched);
    let mut screen = Screen::begin(&mut *app.out)?;
    let signal = loop {
        while next(&mut changes)?.is_some() {}
        let (width, height) = screen::size();
        let face = Face {
            width: Some(width),
            ..app.face
        };
        let text = table(app, face, &list)?;
        screen.show(&mut *app.out, &text, height)?;
        // A burst of changes gives one table.
        std::thread::sleep(TABLES_APART);
        match wakes.next(Some(AGES_EVERY)) {
            Wake::Change | Wake::Resized | Wake::Continued | Wake::Input | Wake::TimedOut => {}
            Wake::OutputClosed => break None,
            Wake::Signal(signal) => break Some(signal),
        }
    };
    screen.end(&mut *app.out)?;
    signal.map_or(Ok(ExitStatus::Done), end_by)
}

/// The output of `list` now.
fn table(app: &App<'_>, face: Face, list: &ListArgs) -> anyhow::Result<String> {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut inner = App {
        world: app.world.again(),
        out: &mut out,
        err: &mut err,
        face,
        is_verbose: false,
    };
    list::run(&mut inner, list)?;
    out.extend(err);
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// Ends this process as the signal ends a program.
pub(super) fn end_by(signal: i32) -> anyhow::Result<ExitStatus> {
    signal_hook::low_level::emulate_default_handler(signal)?;
    Ok(ExitStatus::Done)
}
