//! The sidecars: every `*.runtime.json` beside the transcripts.
//!
//! Which session one is about is what it says inside, never its name: where a
//! session's own sidecar belongs to a live process, some versions write
//! `SESSION.claim-HEX.runtime.json` beside it.

use std::path::Path;

use whosup_process::Pid;
use whosup_sidecar::file::{Directory, FileFacts, ReadFileError};
use whosup_sidecar::{ReadSidecarError, Sidecar, SidecarPid, read_sidecar, read_sidecar_in};

use super::home::Runtime;
use super::reading::Reading;
use crate::agents::told_by_sidecar;
use crate::claim::{Claim, ClaimedScope, Evidence, EvidenceKind, Exclusivity, Serving, Subject};

/// How the names of sidecars end.
pub(super) const SUFFIX: &str = ".runtime.json";

/// Which sidecars make claims.
#[derive(Clone, Copy)]
pub(super) enum Keep<'a> {
    /// All of the home's, in its runtime directory.
    All(&'a Runtime),
    /// Those of the home's that name one of these processes.
    Naming(&'a Runtime, &'a [Pid]),
}

/// Reads one sidecar and adds its claim.
pub(super) fn read(reading: &mut Reading<'_>, path: &Path, keep: Keep<'_>) {
    take(reading, read_sidecar(path), path, keep);
}

/// The same for a sidecar at `name` in an open directory.
pub(super) fn read_in(
    reading: &mut Reading<'_>,
    directory: &Directory,
    name: &str,
    keep: Keep<'_>,
) {
    let read = read_sidecar_in(directory, name.as_ref());
    take(reading, read, &directory.path().join(name), keep);
}

fn take(
    reading: &mut Reading<'_>,
    read: Result<(Sidecar, FileFacts), ReadSidecarError>,
    path: &Path,
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
        // Its session was left since the directory was listed.
        Err(ReadSidecarError::File(ReadFileError::NotFound { .. })) => {}
        Err(error) => reading.problem(path, error.reason()),
    }
}

fn add_claim(reading: &mut Reading<'_>, sidecar: Sidecar, path: &Path, facts: &FileFacts) {
    let session = &sidecar.session_id;
    let (subject, pid, says) = match sidecar.pid {
        SidecarPid::Process(pid) => (Subject::Process(pid), Some(pid), says(pid, &sidecar)),
        SidecarPid::Released => (Subject::Released, None, "released (pid 0)".to_owned()),
    };
    let is_only_one = reading.note_left_on_exit(session, pid, sidecar.started_at_ms);
    let sketch = reading.sketch(session);
    // The registry, which is read first, follows `/cd` as well and knows more.
    sketch
        .work_dir
        .get_or_insert_with(|| sidecar.work_dir.clone());
    if sketch.agent_version.is_none() {
        sketch.agent_version.clone_from(&sidecar.agent_version);
    }
    if sketch.endpoint.is_none() {
        sketch.endpoint = told_by_sidecar::endpoint(&sidecar);
    }
    // Which of several processes is meant is settled later.
    sketch.published = told_by_sidecar::phase(&sidecar).filter(|_| is_only_one);
    // Only the terminal interface writes sidecars.
    sketch.is_headless.get_or_insert(false);
    let claim = Claim {
        key: reading.key(session),
        subject,
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
        serving: Serving::One,
        trust: reading.trust(facts),
        placement: reading.placement(path, facts),
        evidence: Evidence {
            kind: EvidenceKind::Sidecar,
            path: Some(path.to_owned()),
            says,
        },
    };
    reading.claim(claim);
}

fn says(pid: Pid, sidecar: &Sidecar) -> String {
    match &sidecar.process_start_text {
        Some(start) => format!("pid {pid}, start {start}"),
        None => format!("pid {pid}"),
    }
}
