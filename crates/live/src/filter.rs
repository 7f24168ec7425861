//! The sessions that a subscriber is shown: the filters of `list`, within the default view.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use whosup_core::machine::composed::composed;

use crate::change::{Change, Why};
use crate::rows::{Row, Rows};

/// The sessions to show. An empty set means all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Filter {
    /// Of these agents.
    pub agents: BTreeSet<String>,
    /// In this directory, links followed, or below.
    pub directory: Option<PathBuf>,
    /// With one of these answers.
    pub liveness: BTreeSet<String>,
    /// In one of these phases.
    pub phases: BTreeSet<String>,
    /// Without sub-agents.
    pub is_without_sub_agents: bool,
}

impl Filter {
    /// Whether a session is shown.
    #[must_use]
    pub fn shows(&self, row: &Row) -> bool {
        let has = |wanted: &BTreeSet<String>, field| {
            wanted.is_empty() || row.text(field).is_some_and(|value| wanted.contains(value))
        };
        let is_sub_agent = || row.text("parent_session_id").is_some();
        has(&self.agents, "agent")
            && has(&self.liveness, "liveness")
            && has(&self.phases, "phase")
            && self.is_in_directory(row.directory.as_deref())
            && !(self.is_without_sub_agents && is_sub_agent())
    }

    /// The part of a look that is shown.
    #[must_use]
    pub fn of_rows(&self, rows: &Rows) -> Rows {
        let sessions = rows.sessions.iter();
        Rows {
            sessions: sessions
                .filter(|(_, row)| self.shows(row))
                .map(|(key, row)| (key.clone(), Arc::clone(row)))
                .collect(),
            unattributed: self.processes(&rows.unattributed),
            problems: self.problems(&rows.problems),
            ..rows.clone()
        }
    }

    /// The change as seen through this filter; `None` if nothing changes there.
    #[must_use]
    pub fn of_change(&self, change: &Change) -> Option<Change> {
        match change {
            Change::Added { row, .. } => self.shows(row).then(|| change.clone()),
            Change::Removed { before, .. } => self.shows(before).then(|| change.clone()),
            Change::Changed { key, before, after } => {
                let key = key.clone();
                match (self.shows(before), self.shows(after)) {
                    (true, true) => (!change.is_hidden()).then(|| change.clone()),
                    (false, true) => Some(Change::Added {
                        key,
                        row: Arc::clone(after),
                    }),
                    (true, false) => Some(Change::Removed {
                        key,
                        before: Arc::clone(before),
                        why: Why::Filtered,
                        row: Arc::clone(after),
                    }),
                    (false, false) => None,
                }
            }
            Change::Unattributed { before, after } => {
                let (before, after) = (self.processes(before), self.processes(after));
                (before != after).then_some(Change::Unattributed { before, after })
            }
            Change::Problems { before, after } => {
                let (before, after) = (self.problems(before), self.problems(after));
                (before != after).then_some(Change::Problems { before, after })
            }
        }
    }

    fn processes(&self, all: &Arc<Vec<Value>>) -> Arc<Vec<Value>> {
        if self.agents.is_empty() && self.directory.is_none() {
            return Arc::clone(all);
        }
        let work_dir = |one: &Value| Some(composed(one["work_dir"].as_str()?.into()));
        let shown = all.iter().filter(|one| {
            self.is_of_agent(one, false) && self.is_in_directory(work_dir(one).as_deref())
        });
        Arc::new(shown.cloned().collect())
    }

    fn problems(&self, all: &Arc<Vec<Value>>) -> Arc<Vec<Value>> {
        if self.agents.is_empty() {
            return Arc::clone(all);
        }
        let shown = all.iter().filter(|one| self.is_of_agent(one, true));
        Arc::new(shown.cloned().collect())
    }

    fn is_of_agent(&self, one: &Value, otherwise: bool) -> bool {
        let agent = one["agent"].as_str();
        let is_wanted = |agent| self.agents.is_empty() || self.agents.contains(agent);
        agent.map_or(otherwise, is_wanted)
    }

    fn is_in_directory(&self, directory: Option<&Path>) -> bool {
        let Some(wanted) = &self.directory else {
            return true;
        };
        directory.is_some_and(|its| its.starts_with(wanted))
    }
}

#[cfg(test)]
mod tests;
