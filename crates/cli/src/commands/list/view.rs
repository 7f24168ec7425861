//! Writes a list as a table, or explains why it is empty.

use std::io::{self, Write};

use whosup_core::adapter::{Depth, Home};

use whosup_core::machine::problem::Problem;
use whosup_core::reader::{Chosen, Direction, Form, Order, Reach};
use whosup_core::sessions::session::Session;
use whosup_core::sources::agents::AGENTS;

use super::ListArgs;
use super::count::Count;
use crate::app::{App, World, say};
use crate::cell::{Cells, NOTHING};
use crate::column::Column;
use crate::commands::agents::place;
use crate::condition::{Condition, State, Wording};
use crate::short_id::ShortIds;
use crate::table::{Cell, Shape, fitting, natural_width, write_table};
use crate::text;

/// Prints what could not be read, one problem per line.
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

/// A session, or a process without a session.
pub(super) struct TableRow {
    state: State,
    cells: Vec<Cell>,
    /// Shown for a missing title if no column shows the directory.
    stand_in: Option<String>,
}

impl Form for Row<'_> {
    type Row = TableRow;
    const NEEDS_IDS: bool = true;

    fn prepare(&mut self, session: &mut Session) {
        self.count.add_to(session);
    }

    fn row(&mut self, session: &Session) -> TableRow {
        let (state, cells) = self.cells.of_session(&self.columns, session);
        TableRow {
            stand_in: has_no_title(&self.columns, &cells).then(|| self.cells.stand_in(session)),
            state,
            cells,
        }
    }
}

fn has_no_title(columns: &[Column], cells: &[Cell]) -> bool {
    let mut titles = columns.iter().zip(cells);
    titles.any(|(column, cell)| *column == Column::Title && cell.text == NOTHING)
}

/// Prints the table, or that there is nothing, and a summary on standard error.
pub(super) fn write_list(
    app: &mut App<'_>,
    arguments: &ListArgs,
    reach: &Reach,
    chosen: Chosen<TableRow>,
) -> anyhow::Result<()> {
    let is_any_inferred = chosen.shown.iter().any(|shown| shown.is_inferred);
    let problems = chosen.rest.problems.len();
    let cells = cells(&app.world)?;
    let rows = rows(arguments, &cells, chosen);
    if rows.is_empty() {
        say_nothing_is_there(app, arguments, reach)?;
    } else {
        write_rows(app, arguments, rows)?;
        // Remarks come below the table.
        app.out.flush()?;
    }
    if is_any_inferred {
        say(
            app.err,
            "? = inferred, not proven; `whosup why ID` shows the evidence",
        );
    }
    say_problems(app.err, problems);
    Ok(())
}

/// Reports how many things could not be read, if any.
pub(super) fn say_problems(err: &mut dyn Write, problems: usize) {
    if problems > 0 {
        let what = text::count(problems, "thing", "things");
        say(
            err,
            &format!("warning: {what} could not be read; `whosup list --problems` shows them"),
        );
    }
}

fn write_rows(app: &mut App<'_>, arguments: &ListArgs, rows: Vec<TableRow>) -> io::Result<()> {
    let columns = &arguments.columns();
    let shapes: Vec<Shape> = columns.iter().map(|column| column.shape()).collect();
    let mut cells = Vec::new();
    let mut beside = Vec::new();
    for row in rows {
        cells.push(row.cells);
        beside.push((row.state, row.stand_in));
    }
    let (width, is_coloured) = (app.face.width, app.face.is_coloured);
    if width.is_some_and(|room| natural_width(&shapes, &cells) > room) {
        let states = beside.iter().map(|(state, _)| state.words(Wording::Short));
        replace(columns, Column::State, &mut cells, states.map(Some));
    }
    let shown = fitting(&shapes, &cells, width);
    let mut shown = columns.iter().zip(shown);
    if !shown.any(|(column, is_shown)| *column == Column::Directory && is_shown) {
        let stand_ins = beside.into_iter().map(|(_, stand_in)| stand_in);
        replace(columns, Column::Title, &mut cells, stand_ins);
    }
    write_table(
        app.out,
        &shapes,
        &cells,
        arguments.header(),
        width,
        is_coloured,
    )
}

/// The maker of cells.
pub(super) fn cells(world: &World) -> anyhow::Result<Cells<'_>> {
    Ok(Cells {
        config: world.config()?,
        world,
        now_ms: world.machine().now_ms(),
    })
}

/// One row per session and, between live sessions and the rest, one row per process without
/// a session.
fn rows(arguments: &ListArgs, cells: &Cells<'_>, chosen: Chosen<TableRow>) -> Vec<TableRow> {
    let ids = ShortIds::of_ids(chosen.ids);
    let mut processes = chosen.rest.unattributed;
    if arguments.is_about_conversations() {
        processes.clear();
    }
    let columns = &arguments.columns();
    let processes = processes.iter().map(|one| {
        let of_process = columns
            .iter()
            .map(|column| cells.of_process(*column, one, &ids));
        let of_process: Vec<Cell> = of_process.collect();
        TableRow {
            state: State::NO_SESSION,
            stand_in: has_no_title(columns, &of_process).then(|| cells.stand_in_of_process(one)),
            cells: of_process,
        }
    });
    let is_below = |rank: usize| match arguments.direction() {
        Direction::Forward => rank > Condition::NoSession.rank(),
        Direction::Reversed => rank < Condition::NoSession.rank(),
    };
    let at = chosen
        .shown
        .iter()
        .position(|shown| arguments.order() == Order::State && is_below(shown.rank));
    let mut rows: Vec<TableRow> = Vec::new();
    for mut shown in chosen.shown {
        let id = shown.id().clone();
        for (column, cell) in columns.iter().zip(&mut shown.row.cells) {
            match column {
                Column::Id => cell.text = text::visible(ids.get(&id)),
                Column::Title if shown.depth > 0 => {
                    let indent = format!("{}└ ", "  ".repeat(shown.depth - 1));
                    cell.text.insert_str(0, &indent);
                    if let Some(stand_in) = &mut shown.row.stand_in {
                        stand_in.insert_str(0, &indent);
                    }
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

/// Replaces the texts of a column, if it is shown.
fn replace(
    columns: &[Column],
    column: Column,
    rows: &mut [Vec<Cell>],
    texts: impl Iterator<Item = Option<String>>,
) {
    let at = columns.iter().position(|one| *one == column);
    for (row, text) in rows.iter_mut().zip(texts) {
        if let Some((cell, text)) = at.and_then(|at| row.get_mut(at)).zip(text) {
            cell.text = text;
        }
    }
}

fn say_nothing_is_there(
    app: &mut App<'_>,
    arguments: &ListArgs,
    reach: &Reach,
) -> anyhow::Result<()> {
    let what = match (arguments.is_narrowed(), &reach.depth) {
        (true, _) => "No session matches the filters.",
        (false, Depth::Live) => "No live coding-agent session was found.",
        (false, Depth::All | Depth::Sessions(_)) => "No coding-agent session was found.",
    };
    say(app.err, what);
    if arguments.is_filtered_by_config {
        say(
            app.err,
            "hint: the filters below `[list]` in the configuration apply; `--all` leaves them out",
        );
    }
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

/// Reports the places searched: one line for each that exists, and one line for the agents
/// without any.
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
        // With one agent asked for, its absence is shown with the place where it would be.
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
        let words = format!("Not found here: {names} (`whosup agents` shows the places searched).");
        say(app.err, &words);
    }
    Ok(())
}
