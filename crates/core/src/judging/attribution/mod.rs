//! Decides which process serves which session: one solver for all agents.
//!
//! Input: sessions with their judged claims, clues and dates, and the agents' processes.
//! Output: for each session the process that serves it, or the processes that may, or the
//! proof that none does; for each process without a session its candidates.
//!
//! The solver goes from what is certain to what is not:
//!
//! 1. `copied`: what names a process in a home that it doesn't use is a copy.
//! 2. `supersede`: of several sessions that one process claims, the last that it took up
//!    is current, and it has left the others. Where a log is all that its claims rest on,
//!    the title of its terminal shows whether it has moved on since.
//! 3. `seek`: processes without a claim are matched with sessions by their arguments,
//!    their launch, the logs of their agent and the use of their terminals. Then those are
//!    asked whose session hooks alone reported: hooks may have fallen silent since.
//! 4. `dead`: a session without a process has exited only if no process is left that
//!    could serve it.
//!
//! Adapters contribute [clues](crate::adapter::Clue) and never match anything themselves:
//! what a log shows without naming a process for certain is matched here too, by
//! `place_runs` and `openers`, before the adapter makes its claims. All of that, and the
//! launches among the clues, go through the one function in `launch`.

mod copied;
mod current;
mod dead;
mod directory;
mod launch;
mod openings;
mod places;
mod put_down;
mod runs;
mod seek;
mod seeker;
mod shown;
mod solve;
mod supersede;
mod table;
mod terminal;

use std::collections::{BTreeMap, HashSet};

use whosup_process::{Pid, Process, StartStamp};

use crate::adapter::claim::SessionKey;
use crate::sessions::merge::{Draft, Parts};
use crate::sessions::session::Unattributed;

pub(crate) use directory::Beside;
pub(crate) use openings::openers;
pub use places::Places;
pub(crate) use runs::place_runs;

/// The sessions that are not finished yet.
pub(crate) type Drafts = BTreeMap<SessionKey, Draft>;

/// Names a process within one look.
pub(crate) type ProcessKey = (Pid, StartStamp);

pub(crate) fn process_key(process: &Process) -> ProcessKey {
    (process.pid, process.stamp.clone())
}

/// Decides who serves each session, and returns the processes that stay without one.
pub(crate) fn attribute(drafts: &mut Drafts, parts: &Parts) -> Vec<Unattributed> {
    copied::doubt_copies(drafts, parts);
    supersede::supersede(drafts, parts);
    for draft in drafts.values_mut() {
        draft.take_known_client();
    }
    let unattributed = seek::seek(drafts, parts);
    dead::question_the_dead(drafts, parts, &unattributed);
    unattributed
}

/// Processes with a known session.
fn attributed(drafts: &Drafts) -> HashSet<ProcessKey> {
    let owners = drafts
        .values()
        .filter(|draft| !draft.sketch.is_provisional)
        .flat_map(Draft::live_claims)
        .filter_map(|claim| claim.process.as_deref());
    let clients = drafts.values().filter_map(|draft| draft.client.as_deref());
    owners.chain(clients).map(process_key).collect()
}
