//! Removes the histories of processes that are gone.

use std::collections::BTreeSet;
use std::path::Path;

use whosup_core::judging::observe::Observer;
use whosup_core::machine::Machine;
use whosup_core::machine::problem::Problem;
use whosup_core::sidecar::file::{Links, read_regular};
use whosup_core::sources::record::{
    HISTORY_BYTES_MAX, HistoryLine, StoredRecord, claim_of_history, histories_root_of,
    history_name, parse_history,
};

use super::SweepReport;
use super::conditions::positive_exit;
use crate::shorten::remove_if_there;

/// How many histories one sweep looks at; the next one looks again.
const LOOKED_AT_MAX: usize = 2_000;

/// Removes the histories of the processes that are provably gone, unless a session that
/// is not known to have ended was theirs: which of those were left is known by them alone.
pub(super) fn remove_old(machine: &Machine, open: &[StoredRecord], report: &mut SweepReport) {
    let Some(root) = histories_root_of(machine.environment()) else {
        return;
    };
    let owners = open.iter().flat_map(|stored| stored.record.owners.iter());
    let owners = owners.filter_map(|known| known.identity.as_ref());
    let needed: BTreeSet<String> = owners.filter_map(history_name).collect();
    let entries = std::fs::read_dir(&root).into_iter().flatten();
    for entry in entries.take(LOOKED_AT_MAX).filter_map(Result::ok) {
        let name = entry.file_name();
        let is_needed = name.to_str().is_none_or(|name| needed.contains(name));
        let path = root.join(&name);
        if is_needed || !is_of_gone_process(&path, machine) {
            continue;
        }
        if let Err(error) = remove_if_there(&path) {
            report.problems.push(Problem::of_machine(error));
        }
    }
}

/// Returns whether the process of a history is provably gone.
fn is_of_gone_process(path: &Path, machine: &Machine) -> bool {
    let Ok(file) = read_regular(path, HISTORY_BYTES_MAX, Links::Refuse) else {
        return false;
    };
    let Some(line) = parse_history(&file.bytes).lines.pop() else {
        return false;
    };
    let HistoryLine { owner, .. } = &line;
    let claim = claim_of_history(&line, path, machine);
    let verdict = Observer::new(machine, [&claim]).judge(&claim).verdict;
    positive_exit(owner, verdict, machine).is_some()
}
