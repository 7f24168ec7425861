//! What a list shows only on request: tokens, cost, processor time, memory.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use whosup_core::adapter::claim::SessionKey;
use whosup_core::machine::Machine;
use whosup_core::machine::problem::Problem;
use whosup_core::reader::Reach;
use whosup_core::sessions::resources::{Detail, Meter, Metered, Resources};
use whosup_core::sessions::session::Session;
use whosup_core::sources::recognize::Users;

use crate::app::{World, say};
use crate::column::Column;
use crate::ledger::Ledger;

/// The time between the two samples of processor time.
const LOOKS_APART: Duration = Duration::from_millis(200);

/// Counts and measures sessions.
pub(super) struct Count<'a> {
    machine: &'a Machine,
    ledger: Option<Ledger>,
    resources: BTreeMap<SessionKey, Resources>,
}

impl<'a> Count<'a> {
    /// Prepares what these columns or the order need.
    pub(super) fn begin(
        world: &'a World,
        columns: &[Column],
        users: Users,
    ) -> anyhow::Result<Self> {
        let machine = world.machine();
        let is_counted = columns.iter().any(|column| column.needs_usage());
        let ledger = is_counted.then(|| Ledger::of(machine)).transpose()?;
        let is_measured = columns.iter().any(|column| column.needs_resources());
        Ok(Self {
            machine,
            ledger,
            resources: if is_measured {
                measure(world, columns, users)?
            } else {
                BTreeMap::new()
            },
        })
    }

    /// Adds the requested numbers to a session.
    pub(super) fn add_to(&mut self, session: &mut Session) {
        if let Some(ledger) = &mut self.ledger {
            ledger.add_to(self.machine, session);
        }
        session.resources = self.resources.remove(&session.key);
    }

    /// Saves the counts, and returns what could not be counted.
    pub(super) fn finish(&mut self, err: &mut dyn Write) -> Vec<Problem> {
        let Some(mut ledger) = self.ledger.take() else {
            return Vec::new();
        };
        if let Err(error) = ledger.save() {
            say(err, &format!("warning: {error}"));
        }
        ledger.problems
    }
}

/// Measures all live sessions, shown or not: processes of a session that runs below another
/// session count for the inner session only.
fn measure(
    world: &World,
    columns: &[Column],
    users: Users,
) -> anyhow::Result<BTreeMap<SessionKey, Resources>> {
    let reach = Reach {
        users,
        ..Reach::default()
    };
    let sessions = world.scan(&reach)?.snapshot.sessions;
    let metered: Vec<Metered> = sessions.iter().filter_map(Metered::of).collect();
    let detail = if columns.contains(&Column::Io) {
        Detail::Owners
    } else {
        Detail::Table
    };
    let mut meter = Meter::default();
    if !columns.contains(&Column::Cpu) {
        return Ok(meter.measure(world.machine(), &metered, detail));
    }
    meter.measure(world.machine(), &metered, Detail::Table);
    std::thread::sleep(LOOKS_APART);
    Ok(meter.measure(&Machine::here(), &metered, detail))
}
