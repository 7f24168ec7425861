//! Writes a list as one JSON document, or as one JSON object per line.

use std::borrow::Cow;
use std::io::{self, Write};

use anyhow::Context as _;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use whosup_core::machine::Machine;
use whosup_core::reader::{Chosen, Form};
use whosup_core::sessions::session::{Session, Snapshot};
use whosup_core::views::wire::{self, WireSession, WireSnapshot};

use super::count::Count;
use crate::json::{Line, escaped, write_document};

/// A session as compact JSON until the list is sorted, which takes less memory than a
/// [`WireSession`].
type Row = serde_json::Result<Box<RawValue>>;

/// The rows of a document.
pub(super) struct Rows<'a> {
    pub(super) machine: &'a Machine,
    pub(super) count: Count<'a>,
}

impl Form for Rows<'_> {
    type Row = Row;
    const NEEDS_IDS: bool = false;

    fn prepare(&mut self, session: &mut Session) {
        self.count.add_to(session);
    }

    fn row(&mut self, session: &Session) -> Row {
        let session: WireSession<Cow<'_, str>> = wire::session(self.machine, session);
        to_raw_value(&session)
    }
}

/// Prints one document.
pub(super) fn write(
    out: &mut dyn Write,
    machine: &Machine,
    chosen: Chosen<Row>,
) -> anyhow::Result<()> {
    let rest = wire::snapshot(machine, &chosen.rest);
    let rows = chosen.shown.into_iter().map(|shown| shown.row);
    let rows: Result<Vec<Box<RawValue>>, _> = rows.collect();
    let document = WireSnapshot {
        schema_version: rest.schema_version,
        taken_at: rest.taken_at,
        host: rest.host,
        sessions: rows.context("cannot write a session as JSON")?,
        unattributed: rest.unattributed,
        problems: rest.problems,
    };
    Ok(write_document(out, &document)?)
}

/// Writes each session when it is found, unless the lines are sorted.
pub(super) struct Lines<'a> {
    machine: &'a Machine,
    pub(super) count: Count<'a>,
    out: &'a mut dyn Write,
    is_sorted: bool,
    has_begun: bool,
    /// The result of the lines so far: after a failure nothing is written.
    written: io::Result<()>,
    /// The line that is being written.
    line: Vec<u8>,
}

impl<'a> Lines<'a> {
    pub(super) fn new(
        machine: &'a Machine,
        count: Count<'a>,
        out: &'a mut dyn Write,
        is_sorted: bool,
    ) -> Self {
        Self {
            machine,
            count,
            out,
            is_sorted,
            has_begun: false,
            written: Ok(()),
            line: Vec::new(),
        }
    }

    /// Writes the lines that were held for sorting, and what follows the sessions.
    pub(super) fn finish(mut self, chosen: &Chosen<Option<Row>>) -> anyhow::Result<()> {
        for row in chosen.shown.iter().filter_map(|shown| shown.row.as_ref()) {
            match row {
                Ok(row) => self.write(row),
                Err(error) => anyhow::bail!("cannot write a session as JSON: {error}"),
            }
        }
        let rest = wire::snapshot(self.machine, &chosen.rest);
        self.begin();
        for one in &rest.unattributed {
            self.write(&Line::Unattributed(one));
        }
        for problem in &rest.problems {
            self.write(&Line::Problem(problem));
        }
        Ok(self.written?)
    }

    /// Writes the first line, which is known before any session is found; missing if the scan
    /// fails at once.
    fn begin(&mut self) {
        if std::mem::replace(&mut self.has_begun, true) {
            return;
        }
        let nothing = Snapshot {
            taken_at_ms: self.machine.now_ms(),
            scope: self.machine.table().scope().clone(),
            sessions: Vec::new(),
            unattributed: Vec::new(),
            problems: Vec::new(),
            looked_at: Vec::new(),
            processes: Vec::new(),
        };
        let nothing = wire::snapshot(self.machine, &nothing);
        self.write(&Line::Snapshot {
            schema_version: nothing.schema_version,
            taken_at: &nothing.taken_at,
            host: &nothing.host,
        });
    }

    fn write(&mut self, line: &impl Serialize) {
        self.begin();
        if self.written.is_ok() {
            self.line.clear();
            let line = escaped::write(&mut self.line, line).map_err(io::Error::from);
            self.line.push(b'\n');
            self.written = line.and_then(|()| self.out.write_all(&self.line));
        }
    }
}

impl Form for Lines<'_> {
    /// The line, if it is held for sorting.
    type Row = Option<Row>;
    const NEEDS_IDS: bool = false;

    fn prepare(&mut self, session: &mut Session) {
        self.count.add_to(session);
    }

    fn row(&mut self, session: &Session) -> Option<Row> {
        let session = wire::session(self.machine, session);
        let line = Line::Session(&session);
        if self.is_sorted {
            return Some(to_raw_value(&line));
        }
        self.write(&line);
        None
    }
}
