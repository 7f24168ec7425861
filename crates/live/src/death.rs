//! What the exit of a process changes, where no look is needed to know it.
//!
//! This is no second set of rules: what the last look has judged is judged again by the
//! same code, without the process. It holds while nothing else has happened since that look.

use std::collections::BTreeMap;
use std::sync::Arc;

use whosup_core::adapter::Description;
use whosup_core::adapter::claim::SessionKey;
use whosup_core::machine::Machine;
use whosup_core::process::{Pid, StartStamp};
use whosup_core::reader::{Filter, Wish};
use whosup_core::sessions::scan::Judged;

use crate::look::{gone, row_of};
use crate::rows::{Gone, Rows};

/// What is known since the last look.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) machine: Machine,
    pub(crate) judged: Judged,
    pub(crate) descriptions: BTreeMap<SessionKey, Description>,
}

impl Known {
    /// Takes the process, which has exited, out of what is shown, and returns what is known
    /// of sessions that are no longer shown. `None` if only a look can decide.
    pub(crate) fn without(
        &mut self,
        (pid, stamp): &(Pid, StartStamp),
        rows: &mut Rows,
    ) -> Option<BTreeMap<SessionKey, Gone>> {
        let Self {
            machine,
            judged,
            descriptions,
        } = self;
        let filter = Filter::new(Wish::default(), machine).ok()?;
        let mut left = BTreeMap::new();
        for mut session in judged.without(machine, *pid, stamp)? {
            let Some(row) = rows.sessions.get_mut(&session.key) else {
                continue;
            };
            session.description = descriptions.remove(&session.key)?;
            if filter.is_shown(&session) {
                *row = Arc::new(row_of(machine, &session));
            } else {
                rows.sessions.remove(&session.key);
                left.insert(session.key.clone(), gone(machine, &session));
            }
        }
        Some(left)
    }
}
