//! The limits of accounts, as the sessions used last recorded them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use whosup_sidecar::AgentId;

use crate::adapter::{LimitRecord, Sketch};
use crate::machine::Machine;
use crate::sessions::scan::untouched_transcript;
use crate::sources::agents;

/// How many sessions of one home are read: those used last.
const SESSIONS_MAX: usize = 8;

/// Limits of an account.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// The agent.
    pub agent: AgentId,
    /// The home in which they were recorded.
    pub home: PathBuf,
    /// What was recorded.
    pub record: LimitRecord,
}

/// When a session was last used, and the session.
type UsedSession<'a> = (Option<i64>, &'a Sketch);

/// The limits that sessions recorded last, in order of agent, home and name; each with when
/// it was last used.
#[must_use]
pub fn account_limits<'a>(
    machine: &Machine,
    sessions: impl IntoIterator<Item = (&'a Sketch, Option<i64>)>,
) -> Vec<Limits> {
    let mut of_homes: BTreeMap<(&AgentId, &Path), Vec<UsedSession<'_>>> = BTreeMap::new();
    for (sketch, used_at_ms) in sessions {
        let key = (&sketch.key.agent, &*sketch.key.home);
        of_homes.entry(key).or_default().push((used_at_ms, sketch));
    }
    let mut found = Vec::new();
    for ((agent, home), mut sessions) in of_homes {
        let Some(adapter) = agents::adapter(agent) else {
            continue;
        };
        sessions.sort_by_key(|(used_at_ms, _)| std::cmp::Reverse(*used_at_ms));
        let mut newest: BTreeMap<Option<String>, LimitRecord> = BTreeMap::new();
        for (_, sketch) in sessions.into_iter().take(SESSIONS_MAX) {
            if untouched_transcript(machine, sketch).is_some() {
                continue;
            }
            let Some(record) = adapter.account_limits(sketch) else {
                continue;
            };
            let known = newest
                .entry(record.name.clone())
                .or_insert_with(|| record.clone());
            if record.recorded_at_ms > known.recorded_at_ms {
                *known = record;
            }
        }
        let records = newest.into_values();
        found.extend(records.map(|record| Limits {
            agent: agent.clone(),
            home: home.to_owned(),
            record,
        }));
    }
    found
}
