//! Which processes are found with all that they wrote by their records alone.

use std::path::Path;

use whosup_sidecar::file::{Directory, Links};

use super::project::{sidecar_name, transcript_name};
use super::reading::Reading;
use super::registry::Record;
use crate::adapter::claim::Claim;
use crate::adapter::{AgentProcess, Role};

/// How far apart, in milliseconds, the coming of a file into a folder and the
/// change of the folder may be dated: kernels date by their clock tick.
const SAME_CHANGE_MS: u64 = 20;

/// Returns whether the only record of a process and a sidecar in `chats`, which has been
/// read, agree on the session of the process, and nothing was added to that folder since.
/// Then its files are known, and the folder, which may be large, need not be listed.
///
/// Quick successive clears can leave both the record and the sidecar of a previous session,
/// and a newer sidecar beside them (qwen-code#3714). Every addition changes the folder, so
/// the last addition must have been this sidecar (it is renamed into place) or the
/// transcript of its session. Where several processes work, a later write may hide an
/// earlier write of another process: so this is used only for a process that is alone there.
pub(super) fn is_settled(
    reading: &Reading<'_>,
    process: &AgentProcess,
    record: &Record,
    chats: &Path,
) -> bool {
    let sidecar = sidecar_name(&record.session);
    let path = chats.join(&sidecar);
    let is_of_sidecar = |claim: &Claim| {
        claim.evidence.path.as_deref() == Some(path.as_path())
            && claim.key.session == record.session
    };
    if !record.is_of_terminal()
        || process.role != Role::Session
        || !reading.scan.claims_of(&process.process).any(is_of_sidecar)
    {
        return false;
    }
    let Ok(folder) = Directory::open(chats) else {
        return false;
    };
    let facts = |name: &str| folder.facts(name.as_ref(), Links::Refuse).ok();
    let Some(changed_ms) = facts(".").and_then(|facts| facts.modified_ms) else {
        return false;
    };
    let came_at_ms = [
        facts(&sidecar).and_then(|facts| facts.changed_ms),
        facts(&transcript_name(&record.session)).and_then(|facts| facts.born_ms),
    ];
    came_at_ms
        .into_iter()
        .flatten()
        .any(|came| changed_ms.abs_diff(came) <= SAME_CHANGE_MS)
}
