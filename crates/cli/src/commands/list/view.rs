//! Writes a list: as a table, as JSON, or why there is nothing to show.

use std::borrow::Cow;
use std::io::{self, IoSlice, Write};

use anyhow::bail;
use whosup_core::adapter::{Depth, Home};
use whosup_core::machine::Machine;
use whosup_core::machine::problem::Problem;
use whosup_core::sessions::session::Session;
use whosup_core::sources::agents::AGENTS;
use whosup_core::views::reader::{Chosen, Form, Order, Reach, Shown};
use whosup_core::views::wire;

use super::ListArgs;
use super::json_rows::{JsonRows, RowId};
use crate::app::{App, World, say};
use crate::column::{Cells, Column, SessionCells};
use crate::commands::agents::place;
use crate::condition::{Condition, Wording};
use crate::json::escaped;
use crate::json::{Indenter, Line, SESSION_DEPTH, write_line};
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

/// The JSON of a session, as it stands in a document or on a line of its own.
pub(super) struct Json<'a> {
    machine: &'a Machine,
    is_line: bool,
    rows: JsonRows,
    indenter: Indenter,
}

impl<'a> Json<'a> {
    /// Of sessions of `machine`.
    pub(super) fn of(machine: &'a Machine, is_line: bool) -> Self {
        Self {
            machine,
            is_line,
            rows: JsonRows::default(),
            indenter: Indenter::at(SESSION_DEPTH),
        }
    }
}

impl Json<'_> {
    /// What was kept of a session.
    fn text(&self, row: &serde_json::Result<RowId>) -> anyhow::Result<Cow<'_, [u8]>> {
        match row {
            Ok(row) => self.rows.row(row),
            Err(error) => bail!("cannot write a session as JSON: {error}"),
        }
    }
}

impl Form for Json<'_> {
    type Row = serde_json::Result<RowId>;
    const NEEDS_IDS: bool = false;

    fn row(&mut self, session: &Session) -> Self::Row {
        let wire = wire::session(self.machine, session);
        let Self {
            is_line, indenter, ..
        } = self;
        self.rows.add(session.agent(), |out| {
            if *is_line {
                escaped::write(out, &Line::Session(&wire))
            } else {
                indenter.write(out, &wire)
            }
        })
    }
}

/// How a document begins that has no sessions yet, up to where they belong.
const NO_SESSIONS: &str = "\"sessions\": []";

/// Prints one document.
pub(super) fn write_json(
    out: &mut dyn Write,
    form: &Json<'_>,
    chosen: &Chosen<serde_json::Result<RowId>>,
) -> anyhow::Result<()> {
    let document = escaped::pretty(&wire::snapshot(form.machine, &chosen.rest))?;
    // No text of a document has a bare quotation mark in it.
    let place = document
        .find(NO_SESSIONS)
        .filter(|_| !chosen.shown.is_empty());
    let Some(place) = place else {
        writeln!(out, "{document}")?;
        return Ok(());
    };
    let (before, after) = document.split_at(place + NO_SESSIONS.len() - 1);
    out.write_all(before.as_bytes())?;
    let mut gap = &b"\n    "[..];
    for portion in chosen.shown.chunks(ROWS_AT_ONCE) {
        let rows = portion.iter().map(|shown| form.text(&shown.row));
        let rows: Vec<Cow<'_, [u8]>> = rows.collect::<Result<_, _>>()?;
        let mut slices = Vec::with_capacity(rows.len().saturating_mul(2));
        for row in &rows {
            slices.extend([gap, row].map(IoSlice::new));
            gap = b",\n    ";
        }
        write_slices(out, &mut slices)?;
    }
    writeln!(out, "\n  {after}")?;
    Ok(())
}

/// How many rows are written at once. Linux takes no more than 1,024 pieces (IOV_MAX),
/// and each has one before it.
const ROWS_AT_ONCE: usize = 512;

/// Writes pieces one after another, from where they are.
fn write_slices(out: &mut dyn Write, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
    while !slices.is_empty() {
        match out.write_vectored(slices) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut slices, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Prints one object a line.
pub(super) fn write_ndjson(
    out: &mut dyn Write,
    form: &Json<'_>,
    chosen: &Chosen<serde_json::Result<RowId>>,
) -> anyhow::Result<()> {
    let rest = wire::snapshot(form.machine, &chosen.rest);
    let head = Line::Snapshot {
        schema_version: rest.schema_version,
        taken_at: &rest.taken_at,
        host: &rest.host,
    };
    write_line(out, &head)?;
    for shown in &chosen.shown {
        out.write_all(&form.text(&shown.row)?)?;
        out.write_all(b"\n")?;
    }
    let unattributed = rest.unattributed.iter().map(Line::Unattributed);
    let problems = rest.problems.iter().map(Line::Problem);
    for line in unattributed.chain(problems) {
        write_line(out, &line)?;
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
        is_by_state: arguments.sort == Order::State,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes three bytes at a time, and is interrupted before each.
    #[derive(Default)]
    struct Slow {
        taken: Vec<u8>,
        is_ready: bool,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.is_ready = !self.is_ready;
            if self.is_ready {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let taken = bytes.get(..3).unwrap_or(bytes);
            self.taken.extend_from_slice(taken);
            Ok(taken.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn pieces_are_written_whole_however_few_bytes_are_taken_at_a_time() {
        let pieces = [&b"\n    "[..], b"{}", b",", b"", b"{\"a\": 1}"];
        let mut slow = Slow::default();
        write_slices(&mut slow, &mut pieces.map(IoSlice::new)).unwrap();
        assert_eq!(slow.taken, pieces.concat());
        let mut full = &mut [0_u8; 4][..];
        let error = write_slices(&mut full, &mut pieces.map(IoSlice::new)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WriteZero);
    }
}
