//! Doubts claims of homes that were copied with what they say about running processes.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;

use super::{Drafts, ProcessKey, process_key};
use crate::adapter::claim::SessionKey;
use crate::sessions::merge::Parts;

/// A process that has a claim in its own home, by its environment, has none in other homes:
/// what names it there is a copy. Nothing follows from a copy: neither that the process
/// serves the session of it, nor that it has left one.
pub(super) fn doubt_copies(drafts: &mut Drafts, parts: &Parts) {
    let mut claimed: HashMap<ProcessKey, BTreeSet<&SessionKey>> = HashMap::new();
    for (key, draft) in &*drafts {
        let processes = draft.live_claims().filter_map(|one| one.process.as_deref());
        for process in processes {
            claimed.entry(process_key(process)).or_default().insert(key);
        }
    }
    let mut copies: Vec<(SessionKey, ProcessKey)> = Vec::new();
    for (process, keys) in claimed {
        let homes: HashSet<&Path> = keys.iter().map(|key| &*key.home).collect();
        let found = parts.process(&process).filter(|_| homes.len() > 1);
        let Some(found) = found else {
            continue;
        };
        let (own, others): (Vec<_>, Vec<_>) =
            keys.into_iter().partition(|key| found.may_use(&key.home));
        if !own.is_empty() {
            copies.extend(others.into_iter().map(|key| (key.clone(), process.clone())));
        }
    }
    for (key, process) in copies {
        if let Some(draft) = drafts.get_mut(&key) {
            draft.doubt(&process, "; that process has a claim in its own home");
        }
    }
}
