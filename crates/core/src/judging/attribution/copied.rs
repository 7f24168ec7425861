//! Doubts claims of homes that were copied with what they say about running processes.

use super::{Drafts, ProcessKey, process_key};
use crate::adapter::AgentProcess;
use crate::adapter::claim::SessionKey;
use crate::sessions::merge::Parts;

/// A process that uses other homes, by its environment, which are there, has no claim in this
/// one: what names it here is a copy. Nothing follows from a copy: neither that the process
/// serves the session of it, nor that it has left one.
pub(super) fn doubt_copies(drafts: &mut Drafts, parts: &Parts) {
    let is_elsewhere = |process: &AgentProcess, key: &SessionKey| {
        let mut homes = process.homes.iter();
        // In a container its home may have another name.
        process.details.shares_mounts == Ok(true)
            && !process.may_use(&key.home)
            && homes.any(|home| parts.homes_there.contains(home))
    };
    let copies = drafts.iter().flat_map(|(key, draft)| {
        let inside = draft.live_claims().filter(|one| one.lies_in_home());
        let processes = inside.filter_map(|one| one.process.as_deref());
        let processes = processes.map(process_key);
        let elsewhere = processes.filter(|process| {
            let found = parts.process(process);
            found.is_some_and(|found| found.agent == key.agent && is_elsewhere(found, key))
        });
        elsewhere.map(|process| (key.clone(), process))
    });
    let copies: Vec<(SessionKey, ProcessKey)> = copies.collect();
    for (key, process) in copies {
        if let Some(draft) = drafts.get_mut(&key) {
            draft.doubt(&process, "; that process uses another home");
        }
    }
}
