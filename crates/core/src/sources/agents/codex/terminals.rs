//! Which terminals may show which thread of the daemon, as far as the log records it.

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
        let is_serving = |process: &AgentProcess| {
            let pid = process.process.pid;
            let mut locks = self.locks.values();
            locks.any(|lock| lock.holders.contains(&pid))
                || self.open.values().any(|pids| pids.contains(&pid))
        };
        let (serving, others): (Vec<_>, Vec<_>) = self
            .look
            .processes_of(self.home)
            .partition(|process| is_serving(process));
        let is_served = serving.iter().any(|process| process.role == Role::Host);
        let terminals: Option<Vec<Terminal>> = others
            .into_iter()
            .filter(|process| process.role == Role::Session)
            .map(|process| {
                let began_at_ms = process.process.began_at_ms.clone().ok()?;
                let pid = process.process.pid;
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
