//! Which terminals may show which thread of the daemon's, as far as their log
//! tells.

use std::collections::BTreeMap;

use super::log_db::openings;
use super::scan::Scanning;
use super::thread_id;
use crate::adapter::{AgentProcess, Role, Terminal};
use crate::machine::problem::Problem;

impl Scanning<'_> {
    /// Asks the log, where the daemon serves a thread that a terminal may
    /// show. The same in every look, however far it goes.
    pub(super) fn find_terminals(&mut self) {
        let is_serving = |its: &AgentProcess| {
            let pid = its.process.pid;
            let mut locks = self.locks.values();
            locks.any(|lock| lock.holders.contains(&pid))
                || self.open.values().any(|pids| pids.contains(&pid))
        };
        let (serving, others): (Vec<_>, Vec<_>) = self
            .look
            .processes_of(self.home)
            .partition(|its| is_serving(its));
        let is_served = serving.iter().any(|its| its.role == Role::Host);
        let terminals: Option<Vec<Terminal>> = others
            .into_iter()
            .filter(|its| its.role == Role::Session)
            .map(|its| {
                let began_at_ms = its.process.began_at_ms.clone().ok()?;
                let pid = its.process.pid;
                Some(Terminal { pid, began_at_ms })
            })
            .collect();
        let terminals = terminals.unwrap_or_default();
        if !is_served || terminals.is_empty() {
            return;
        }
        let openings = match openings(&self.home.root) {
            Ok(openings) => openings,
            Err((path, reason)) => {
                self.problems.push(Problem::at(self.agent, &path, reason));
                return;
            }
        };
        let births: BTreeMap<_, i64> = self
            .locks
            .keys()
            .filter_map(|id| Some((id.clone(), thread_id::born_at_ms(id.as_str())?)))
            .collect();
        let now_ms = self.look.machine.now_ms();
        let matcher = self.look.matcher;
        self.possible_terminals = matcher.openers(&births, &terminals, &openings, now_ms);
    }
}
