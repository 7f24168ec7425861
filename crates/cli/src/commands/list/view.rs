//! Writes a list: as a table, as JSON, or why there is nothing to show.

use std::io::{self, Write};
use std::path::Path;

use whosup_core::agents::{AGENTS, Depth};
use whosup_core::machine::Machine;
use whosup_core::problem::Problem;
use whosup_core::reader::{Chosen, Order, Reach};
use whosup_core::session::{Session, Snapshot};
use whosup_core::wire;

use super::ListArgs;
use crate::app::{App, World, say};
use crate::column::{Cells, Column};
use crate::commands::agents::place;
use crate::condition::{Condition, Wording, is_inferred};
use crate::json::{Line, write_document, write_line};
use crate::short_id::ShortIds;
use crate::table::{Cell, Shape, natural_width, write_table};
use crate::text;

/// What a table shows.
pub(super) struct Shown {
    /// How far was looked.
    pub(super) reach: Reach,
    /// The short ids of everything that was found.
    pub(super) ids: ShortIds,
    /// What was chosen.
    pub(super) chosen: Chosen,
}

/// Prints what could not be read, one a line.
pub(super) fn write_problems(out: &mut dyn Write, problems: &[Problem]) -> io::Result<()> {
    for problem in problems {
        writeln!(out, "{}", text::visible(&problem.to_string()))?;
    }
    Ok(())
}

/// Prints one document.
pub(super) fn write_json(
    out: &mut dyn Write,
    machine: &Machine,
    snapshot: &Snapshot,
) -> io::Result<()> {
    write_document(out, &wire::snapshot(machine, snapshot))
}

/// Prints one object a line.
pub(super) fn write_ndjson(
    out: &mut dyn Write,
    machine: &Machine,
    snapshot: &Snapshot,
) -> io::Result<()> {
    let snapshot = wire::snapshot(machine, snapshot);
    let head = Line::Snapshot {
        schema_version: snapshot.schema_version,
        taken_at: &snapshot.taken_at,
        host: &snapshot.host,
    };
    let sessions = snapshot.sessions.iter().map(Line::Session);
    let unattributed = snapshot.unattributed.iter().map(Line::Unattributed);
    let problems = snapshot.problems.iter().map(Line::Problem);
    std::iter::once(head)
        .chain(sessions)
        .chain(unattributed)
        .chain(problems)
        .try_for_each(|line| write_line(out, &line))
}

/// Prints the table, or says that there is nothing, and sums up on standard
/// error what a person should know besides.
pub(super) fn write_list(
    app: &mut App<'_>,
    arguments: &ListArgs,
    shown: &Shown,
) -> anyhow::Result<()> {
    let chosen = &shown.chosen;
    let columns = arguments.columns();
    let shapes: Vec<Shape> = columns.iter().map(|column| column.shape()).collect();
    let mut rows = rows(&app.world, arguments, &columns, shown, Wording::Full)?;
    let room = app.face.width.unwrap_or(usize::MAX);
    if natural_width(&shapes, &rows) > room {
        rows = self::rows(&app.world, arguments, &columns, shown, Wording::Short)?;
    }
    if rows.is_empty() {
        say_nothing_is_there(app, arguments, &shown.reach)?;
    } else {
        write_table(
            app.out,
            &shapes,
            &rows,
            app.face.width,
            app.face.is_coloured,
        )?;
        // What is said about the table comes below it.
        app.out.flush()?;
    }
    if chosen.snapshot.sessions.iter().any(is_inferred) {
        say(
            app.err,
            "? = inferred, not proven; `whosup why ID` tells what it rests on",
        );
    }
    let problems = chosen.snapshot.problems.len();
    if problems > 0 {
        let what = text::count(problems, "thing", "things");
        say(
            app.err,
            &format!("warning: {what} could not be read; `whosup list --problems` shows them"),
        );
    }
    Ok(())
}

/// One row for each session, and, between those that are live and the rest,
/// one for each process without a session.
fn rows(
    world: &World,
    arguments: &ListArgs,
    columns: &[Column],
    shown: &Shown,
    wording: Wording,
) -> anyhow::Result<Vec<Vec<Cell>>> {
    let chosen = &shown.chosen;
    let snapshot = &chosen.snapshot;
    let cells = Cells {
        config: world.config()?,
        ids: &shown.ids,
        home: world.home(),
        now_ms: snapshot.taken_at_ms,
        has_directory: columns.contains(&Column::Directory),
        wording,
    };
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    let row_of = |session: &Session| {
        let depth = chosen.depths.get(&session.key).copied();
        let cells = columns
            .iter()
            .map(|column| cells.of_session(*column, session, depth.unwrap_or(0)));
        cells.collect()
    };
    rows.extend(snapshot.sessions.iter().map(row_of));
    if !arguments.is_about_conversations() {
        let at = snapshot
            .sessions
            .iter()
            .position(|session| Condition::of(session).rank() > Condition::NoSession.rank())
            .filter(|_| arguments.sort == Order::State)
            .unwrap_or(rows.len());
        let of_processes = snapshot.unattributed.iter().map(|one| {
            let cells = columns.iter().map(|column| cells.of_process(*column, one));
            cells.collect::<Vec<Cell>>()
        });
        rows.splice(at..at, of_processes);
    }
    Ok(rows)
}

fn say_nothing_is_there(
    app: &mut App<'_>,
    arguments: &ListArgs,
    reach: &Reach,
) -> anyhow::Result<()> {
    let what = match (arguments.is_narrowed(), &reach.depth) {
        (true, _) => "No session was found that fits what was asked for.",
        (false, Depth::Live) => "No live coding-agent session was found.",
        (false, Depth::All | Depth::Sessions(_)) => "No coding-agent session was found.",
    };
    say(app.err, what);
    say_where(app, reach)?;
    if reach.depth == Depth::Live {
        say(
            app.err,
            "`whosup list --all` shows what is on disk, `whosup demo` how this looks with sessions.",
        );
    } else {
        say(app.err, "`whosup demo` shows how this looks with sessions.");
    }
    Ok(())
}

/// Says where was looked: line by line what is there, and in one line the
/// agents that have nothing here.
fn say_where(app: &mut App<'_>, reach: &Reach) -> anyhow::Result<()> {
    let home = app.world.home();
    let mut looked_at = Vec::new();
    let mut absent = Vec::new();
    for adapter in AGENTS {
        let id = whosup_core::agents::id_of(*adapter);
        let mut wanted = reach.agents.iter();
        if !wanted.all(|wanted| wanted.contains(&id)) {
            continue;
        }
        let homes = app.world.homes_of(*adapter, &[])?;
        let is_there = |root: &Path| !matches!(root.try_exists(), Ok(false));
        let is_absent = !homes.iter().any(|its| is_there(&its.root));
        // Whoever asks for one agent wants to read where it would be.
        if is_absent && reach.agents.is_none() {
            absent.push(id.to_string());
        } else {
            let homes: Vec<String> = homes.iter().map(|its| place(&its.root, home)).collect();
            looked_at.push((id, homes.join(", ")));
        }
    }
    if !looked_at.is_empty() {
        say(app.err, "Looked at:");
        let names = looked_at.iter().map(|(id, _)| id.as_str().len());
        let width = names.max().unwrap_or(0);
        for (id, homes) in &looked_at {
            say(app.err, &format!("  {id:width$}  {homes}"));
        }
    }
    if !absent.is_empty() {
        let names = absent.join(", ");
        let words =
            format!("Without a home here: {names} (`whosup agents` shows where it would be).");
        say(app.err, &words);
    }
    Ok(())
}
