//! The sidecars: every `*.runtime.json` beside the transcripts.
//!
//! The content of a sidecar names the session, not the file name: if the session's own
//! sidecar belongs to a live process, some versions write `SESSION.claim-HEX.runtime.json`
//! beside it.

use std::path::PathBuf;

use whosup_process::Pid;
use whosup_sidecar::file::{FileFacts, ReadFileError};
use whosup_sidecar::{ReadSidecarError, Sidecar};

use super::home::Runtime;
use super::reading::Reading;
use crate::adapter::claim::{Claim, Exclusivity};
use crate::sources::agents::kit::sidecar_facts;

/// How the names of sidecars end.
pub(super) const SUFFIX: &str = ".runtime.json";

/// Adds the claim of a sidecar that was read in a runtime directory, if it is of this home.
/// If processes are searched for, a sidecar counts only if it names one of them.
pub(super) fn take(
    reading: &mut Reading<'_>,
    runtime: &Runtime,
    path: PathBuf,
    read: Result<(Sidecar, FileFacts), ReadSidecarError>,
    searched_for: Option<&[Pid]>,
) {
    let (sidecar, facts) = match read {
        Ok(read) => read,
        // The process left the session since the directory was listed.
        Err(ReadSidecarError::File(ReadFileError::NotFound { .. })) => return,
        Err(error) => return reading.scan.problem(&path, error.reason()),
    };
    let pid = sidecar_facts::pid(&sidecar);
    let is_named = |pids: &[Pid]| pid.is_some_and(|pid| pids.contains(&pid));
    if !runtime.is_for(&reading.scan, pid) {
        reading.elsewhere.insert(sidecar.session_id);
    } else if searched_for.is_none_or(is_named) {
        add_claim(reading, sidecar, path, &facts);
    }
}

fn add_claim(reading: &mut Reading<'_>, mut sidecar: Sidecar, path: PathBuf, facts: &FileFacts) {
    let fact = sidecar_facts::phase(&sidecar, facts, reading.scan.look.machine);
    let (sketch, is_only_one) = reading.note_left_on_exit(&sidecar);
    // The registry, which is read first, follows `/cd` too and has more facts.
    sketch
        .work_dir
        .get_or_insert_with(|| sidecar.work_dir.clone());
    let version = sidecar.agent_version.take();
    sketch.agent_version = sketch.agent_version.take().or(version);
    let endpoint = sketch.endpoint.take();
    sketch.endpoint = endpoint.or_else(|| sidecar_facts::endpoint(&sidecar));
    // Which of several processes is meant is settled later.
    sketch.facts.extend(fact.filter(|_| is_only_one));
    // Only the terminal interface writes sidecars.
    sketch.is_headless.get_or_insert(false);
    let claim = sidecar_facts::claim(&reading.scan, sidecar, path, facts);
    reading.scan.claim(Claim {
        exclusivity: Exclusivity::Exclusive,
        ..claim
    });
}
