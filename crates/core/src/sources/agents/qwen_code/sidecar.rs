//! The sidecars: every `*.runtime.json` beside the transcripts.
//!
//! The content of a sidecar names the session, not the file name: if the session's own
//! sidecar belongs to a live process, some versions write `SESSION.claim-HEX.runtime.json`
//! beside it.

use std::path::{Path, PathBuf};

use whosup_process::Pid;
use whosup_sidecar::file::{Directory, FileFacts, ReadFileError};
use whosup_sidecar::{
    ReadSidecarError, Sidecar, SidecarPid, read_listed_sidecar, read_sidecar, read_sidecar_in,
};

use super::home::Runtime;
use super::reading::Reading;
use crate::adapter::claim::{Claim, ClaimedScope, Evidence, EvidenceKind, Exclusivity};
use crate::sources::agents::kit::sidecar_facts;

/// How the names of sidecars end.
pub(super) const SUFFIX: &str = ".runtime.json";

/// Which sidecars make claims.
#[derive(Clone, Copy)]
pub(super) enum Keep<'a> {
    /// All sidecars of the home, in its runtime directory.
    All(&'a Runtime),
    /// The sidecars of the home that name one of these processes.
    Naming(&'a Runtime, &'a [Pid]),
}

/// Reads one sidecar and adds its claim.
pub(super) fn read(reading: &mut Reading<'_>, path: &Path, keep: Keep<'_>) {
    take(reading, read_sidecar(path), path.to_owned(), keep);
}

/// The same for a sidecar at `name` in an open directory; `is_file` if a listing has just
/// shown a regular file.
pub(super) fn read_in(
    reading: &mut Reading<'_>,
    directory: &Directory,
    name: &Path,
    is_file: bool,
    keep: Keep<'_>,
) {
    let read = if is_file {
        read_listed_sidecar(directory, name)
    } else {
        read_sidecar_in(directory, name)
    };
    take(reading, read, directory.path_of(name), keep);
}

fn take(
    reading: &mut Reading<'_>,
    read: Result<(Sidecar, FileFacts), ReadSidecarError>,
    path: PathBuf,
    keep: Keep<'_>,
) {
    match read {
        Ok((sidecar, facts)) => {
            let pid = match sidecar.pid {
                SidecarPid::Process(pid) => Some(pid),
                SidecarPid::Released => None,
            };
            let (runtime, is_wanted) = match keep {
                Keep::All(runtime) => (runtime, true),
                Keep::Naming(runtime, pids) => {
                    (runtime, pid.is_some_and(|pid| pids.contains(&pid)))
                }
            };
            if !runtime.is_for(reading.home(), pid, reading.look()) {
                reading.note_elsewhere(&sidecar.session_id);
            } else if is_wanted {
                add_claim(reading, sidecar, path, &facts);
            }
        }
        // The process left the session since the directory was listed.
        Err(ReadSidecarError::File(ReadFileError::NotFound { .. })) => {}
        Err(error) => reading.problem(&path, error.reason()),
    }
}

fn add_claim(reading: &mut Reading<'_>, mut sidecar: Sidecar, path: PathBuf, facts: &FileFacts) {
    let session = &sidecar.session_id;
    let (subject, says) = sidecar_facts::subject(&sidecar);
    let key = reading.key(session);
    let fact = sidecar_facts::phase(&sidecar, facts, reading.look().machine);
    let (sketch, is_only_one) =
        reading.note_left_on_exit(session, subject.pid(), sidecar.started_at_ms);
    // The registry, which is read first, follows `/cd` too and has more facts.
    sketch
        .work_dir
        .get_or_insert_with(|| sidecar.work_dir.clone());
    if sketch.agent_version.is_none() {
        sketch.agent_version = sidecar.agent_version.take();
    }
    if sketch.endpoint.is_none() {
        sketch.endpoint = sidecar_facts::endpoint(&sidecar);
    }
    // Which of several processes is meant is settled later.
    sketch.facts.extend(fact.filter(|_| is_only_one));
    // Only the terminal interface writes sidecars.
    sketch.is_headless.get_or_insert(false);
    let claim = Claim {
        scope: ClaimedScope {
            host: Some(sidecar.hostname).filter(|host| !host.is_empty()),
            boot: sidecar.boot_id,
            pid_namespace: sidecar.pid_namespace,
        },
        stamp: sidecar.process_start,
        dated_at_ms: Some(sidecar.started_at_ms),
        modified_at_ms: facts.modified_ms,
        executable: sidecar.executable,
        work_dir: Some(sidecar.work_dir),
        exclusivity: Exclusivity::Exclusive,
        trust: reading.trust(facts),
        placement: reading.placement(&path, facts),
        ..Claim::new(
            key,
            subject,
            Evidence::new(EvidenceKind::Sidecar, Some(path), says),
        )
    };
    reading.claim(claim);
}
