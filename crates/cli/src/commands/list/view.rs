//! Writes a list as a table, or why there is nothing to show.

use std::io::{self, Write};

use whosup_core::adapter::{Depth, Home};

use whosup_core::machine::problem::Problem;
use whosup_core::reader::{Chosen, Form, Order, Reach};
use whosup_core::sessions::session::Session;
use whosup_core::sources::agents::AGENTS;

use super::{Count, ListArgs};
use crate::app::{App, World, say};
use crate::column::{Cells, Column};
use crate::commands::agents::place;
use crate::condition::{Condition, State, Wording};
use crate::short_id::ShortIds;
use crate::table::{Cell, Shape, natural_width, write_table};
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
    pub(super) count: Count<'a>,
    pub(super) columns: Vec<Column>,
}

/// The state of a session or process, and its cells.
type TableRow = (State, Vec<Cell>);

impl Form for Row<'_> {
    type Row = TableRow;
    const NEEDS_IDS: bool = true;

    fn prepare(&mut self, session: &mut Session) {
        self.count.add_to(session);
    }

    fn row(&mut self, session: &Session) -> TableRow {
        self.cells.of_session(&self.columns, session)
    }
}

/// Prints the table, or says that there is nothing, and sums up on standard
/// error what a person should know besides.
pub(super) fn write_list(
    app: &mut App<'_>,
    arguments: &ListArgs,
    reach: &Reach,
    chosen: Chosen<TableRow>,
) -> anyhow::Result<()> {
    let is_any_inferred = chosen.shown.iter().any(|shown| shown.is_inferred);
    let problems = chosen.rest.problems.len();
    let columns = arguments.columns();
    let shapes: Vec<Shape> = columns.iter().map(|column| column.shape()).collect();
    let cells = cells(&app.world, &columns)?;
    let rows = rows(arguments, &columns, &cells, chosen);
    let (states, mut rows): (Vec<State>, Vec<Vec<Cell>>) = rows.into_iter().unzip();
    if rows.is_empty() {
        say_nothing_is_there(app, arguments, reach)?;
    } else {
        let (width, is_coloured) = (app.face.width, app.face.is_coloured);
        if width.is_some_and(|room| natural_width(&shapes, &rows) > room) {
            shorten_states(&columns, &states, &mut rows);
        }
        write_table(app.out, &shapes, &rows, width, is_coloured)?;
        // What is said about the table comes below it.
        app.out.flush()?;
    }
    if is_any_inferred {
        say(
            app.err,
            "? = inferred, not proven; `whosup why ID` tells what it rests on",
        );
    }
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
fn rows(
    arguments: &ListArgs,
    columns: &[Column],
    cells: &Cells<'_>,
    chosen: Chosen<TableRow>,
) -> Vec<TableRow> {
    let ids = ShortIds::of_ids(chosen.ids);
    let mut processes = chosen.rest.unattributed;
    if arguments.is_about_conversations() {
        processes.clear();
    }
    let processes = processes.iter().map(|one| {
        let columns = columns.iter();
        let cells = columns.map(|column| cells.of_process(*column, one, &ids));
        (State::NO_SESSION, cells.collect())
    });
    let is_by_state = arguments.order() == Order::State;
    let at = chosen
        .shown
        .iter()
        .position(|shown| is_by_state && shown.rank > Condition::NoSession.rank());
    let mut rows: Vec<TableRow> = Vec::new();
    for mut shown in chosen.shown {
        let id = shown.id().clone();
        for (column, cell) in columns.iter().zip(&mut shown.row.1) {
            match column {
                Column::Id => cell.text = text::visible(ids.get(&id)),
                Column::Title if shown.depth > 0 => {
                    let indent = "  ".repeat(shown.depth - 1);
                    cell.text = format!("{indent}└ {}", cell.text);
                }
                _ => {}
            }
        }
        rows.push(shown.row);
    }
    let at = at.unwrap_or(rows.len());
    rows.splice(at..at, processes);
    rows
}

fn shorten_states(columns: &[Column], states: &[State], rows: &mut [Vec<Cell>]) {
    let at = columns.iter().position(|column| *column == Column::State);
    for (row, state) in rows.iter_mut().zip(states) {
        if let Some(cell) = at.and_then(|at| row.get_mut(at)) {
            cell.text = state.words(Wording::Short);
        }
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
        let id = whosup_core::sources::agents::id_of(*adapter);
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
