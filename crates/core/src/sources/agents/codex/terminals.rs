//! Which terminals may show which thread of the daemon, as far as the log records it.

use std::collections::BTreeMap;

use super::log_db::openings;
use super::scan::Scanning;
use super::thread_id;
use crate::adapter::{Role, Terminal};
use crate::judging::attribution::openers;

impl Scanning<'_> {
    /// Asks the log, where the daemon serves a thread that a terminal may
    /// show. The same in every look, however far it goes.
    pub(super) fn find_terminals(&mut self) {
        let processes = self.scan.processes();
        let (serving, others): (Vec<_>, Vec<_>) = processes.partition(|process| {
            let pid = process.process.pid;
            self.has_lock(pid) || self.has_open(pid)
        });
        let is_served = serving.iter().any(|process| process.role == Role::Host);
        let terminals = others
            .into_iter()
            .filter(|process| process.role == Role::Session);
        // Where one of them is not fully known, the log proves nothing.
        let terminals: Option<Vec<Terminal>> = terminals
            .map(|process| {
                let began_at_ms = process.process.began_ms()?;
                let pid = process.process.pid;
                Some(Terminal { pid, began_at_ms })
            })
            .collect();
        let terminals = terminals.unwrap_or_default();
        if !is_served || terminals.is_empty() {
            return;
        }
        let openings = match openings(&self.scan.home.root) {
            Ok(openings) => openings,
            Err((path, reason)) => {
                self.scan.problem(&path, reason);
                return;
            }
        };
        let ids = self.locks.keys();
        let births: BTreeMap<_, i64> = ids
            .filter_map(|id| Some((id.clone(), thread_id::born_at_ms(id.as_str())?)))
            .collect();
        let now_ms = self.scan.look.machine.now_ms();
        self.possible_terminals = openers(&births, &terminals, &openings, now_ms);
    }
}
