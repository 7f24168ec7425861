//! Which processes are found with all that they wrote by their records alone.

use std::path::Path;

use whosup_sidecar::file::{Directory, Links};

use super::project::{sidecar_name, transcript_name};
use super::reading::Reading;
use super::registry::Record;
use crate::adapter::{AgentProcess, Role};

/// How far apart, in milliseconds, the coming of a file into a folder and the
/// change of the folder may be dated: kernels date by their clock tick.
const SAME_CHANGE_MS: u64 = 20;

/// Tells whether the only record of a process and a sidecar in `chats`, which
/// has been read, agree on the session that the process serves, and nothing
/// came into that folder since: then its files are known, and the folder, which
/// may be large, need not be listed.
///
/// Quick successive clears can leave both the record and the sidecar of a
/// session that was left, and a newer sidecar beside them (qwen-code#3714).
/// What comes into a folder changes it, so the last that came must have been
/// this sidecar (it is renamed into place) or the transcript of its session.
/// Where several processes work, one may hide what another wrote before: so
/// this is asked only of a process that is alone there.
pub(super) fn is_settled(
    reading: &Reading<'_>,
    process: &AgentProcess,
    record: &Record,
    chats: &Path,
) -> bool {
    let sidecar = sidecar_name(&record.session);
    if !record.is_of_terminal()
        || process.role != Role::Session
        || !reading.is_named_in(&chats.join(&sidecar), &record.session, &process.process)
    {
        return false;
    }
    let Ok(folder) = Directory::open(chats) else {
        return false;
    };
    let told = |name: &str| folder.facts(name.as_ref(), Links::Refuse).ok();
    let Some(changed_ms) = told(".").and_then(|told| told.modified_ms) else {
        return false;
    };
    let came_at_ms = [
        told(&sidecar).and_then(|told| told.changed_ms),
        told(&transcript_name(&record.session)).and_then(|told| told.born_ms),
    ];
    came_at_ms
        .into_iter()
        .flatten()
        .any(|came| changed_ms.abs_diff(came) <= SAME_CHANGE_MS)
}
