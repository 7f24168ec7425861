//! Writes a list: as a table, or why there is nothing to show.

use std::io::{self, Write};

use whosup_core::agents::{AGENTS, Depth, Home};
use whosup_core::problem::Problem;
use whosup_core::reader::{Chosen, Form, Order, Reach, Shown};
use whosup_core::session::Session;

use super::ListArgs;
use crate::app::{App, World, say};
use crate::column::{Cells, Column, SessionCells};
use crate::commands::agents::place;
use crate::condition::{Condition, Wording};
use crate::short_id::ShortIds;
use crate::table::{Cell, Rows, Shape, natural_width, write_table};
use crate::text;

/// Prints what could not be read, one a line.
pub(super) fn write_problems(out: &mut dyn Write, problems: &[Problem]) -> io::Result<()> {
    for problem in problems {
        writeln!(out, "{}", text::visible(&problem.to_string()))?;
    }
    Ok(())
}

/// The cells of a session.
pub(super) struct Row<'a> {
    pub(super) cells: Cells<'a>,
    pub(super) columns: Vec<Column>,
}

impl Form for Row<'_> {
    type Row = SessionCells;
    const NEEDS_IDS: bool = true;

    fn row(&mut self, session: &Session) -> SessionCells {
        self.cells.of_session(&self.columns, session)
    }
}

/// Prints the table, or says that there is nothing, and sums up on standard
/// error what a person should know besides.
pub(super) fn write_list(
    app: &mut App<'_>,
    arguments: &ListArgs,
    reach: &Reach,
    chosen: &Chosen<SessionCells>,
) -> anyhow::Result<()> {
    let columns = arguments.columns();
    let shapes: Vec<Shape> = columns.iter().map(|column| column.shape()).collect();
    let ids = ShortIds::of_ids(chosen.ids.clone());
    let mut table = Table {
        cells: cells(&app.world, &columns)?,
        columns: &columns,
        chosen,
        ids: &ids,
        has_processes: !arguments.is_about_conversations(),
        is_by_state: arguments.order() == Order::State,
        wording: Wording::Full,
    };
    let is_empty =
        chosen.shown.is_empty() && (!table.has_processes || chosen.rest.unattributed.is_empty());
    if is_empty {
        say_nothing_is_there(app, arguments, reach)?;
    } else {
        if let Some(room) = app.face.width
            && natural_width(&shapes, &table)? > room
        {
            table.wording = Wording::Short;
        }
        let (width, is_coloured) = (app.face.width, app.face.is_coloured);
        write_table(app.out, &shapes, &table, width, is_coloured)?;
        // What is said about the table comes below it.
        app.out.flush()?;
    }
    if chosen.shown.iter().any(|shown| shown.is_inferred) {
        say(
            app.err,
            "? = inferred, not proven; `whosup why ID` tells what it rests on",
        );
    }
    let problems = chosen.rest.problems.len();
    if problems > 0 {
        let what = text::count(problems, "thing", "things");
        say(
            app.err,
            &format!("warning: {what} could not be read; `whosup list --problems` shows them"),
        );
    }
    Ok(())
}

/// What the cells of a list with these columns are made with.
pub(super) fn cells<'a>(world: &'a World, columns: &[Column]) -> anyhow::Result<Cells<'a>> {
    Ok(Cells {
        config: world.config()?,
        home: world.home(),
        now_ms: world.machine().now_ms(),
        has_directory: columns.contains(&Column::Directory),
    })
}

/// One row for each session, and, between those that are live and the rest,
/// one for each process without a session.
struct Table<'a> {
    cells: Cells<'a>,
    columns: &'a [Column],
    chosen: &'a Chosen<SessionCells>,
    ids: &'a ShortIds,
    has_processes: bool,
    is_by_state: bool,
    wording: Wording,
}

impl Rows for Table<'_> {
    fn each(&self, show: &mut dyn FnMut(&[Cell]) -> io::Result<()>) -> io::Result<()> {
        let shown = &self.chosen.shown;
        let is_after = |shown: &Shown<_>| shown.rank > Condition::NoSession.rank();
        let at = shown
            .iter()
            .position(is_after)
            .filter(|_| self.is_by_state)
            .unwrap_or(shown.len());
        let (before, after) = shown.split_at(at);
        let show_session =
            |shown: &Shown<SessionCells>, show: &mut dyn FnMut(&[Cell]) -> io::Result<()>| {
                show(&shown.row.cells(
                    self.columns,
                    (self.cells.config, self.wording),
                    self.ids.get(shown.id()),
                    shown.depth,
                ))
            };
        before.iter().try_for_each(|one| show_session(one, show))?;
        let processes = self.chosen.rest.unattributed.iter();
        for one in processes.filter(|_| self.has_processes) {
            let told = (self.ids, self.wording);
            let columns = self.columns.iter();
            let cells = columns.map(|column| self.cells.of_process(*column, one, told));
            show(&cells.collect::<Vec<Cell>>())?;
        }
        after.iter().try_for_each(|one| show_session(one, show))
    }
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
        let is_there =
            |its: &Home| its.owner_uid.is_some() || !matches!(its.root.try_exists(), Ok(false));
        let is_absent = !homes.iter().any(is_there);
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
