//! Session facts that a sidecar records.

use std::fmt::Write as _;
use std::path::PathBuf;

use whosup_process::{Pid, StampKind};
use whosup_sidecar::file::FileFacts;
use whosup_sidecar::{Sidecar, SidecarPid};

use super::scan::Scan;
use crate::adapter::claim::{Claim, ClaimedScope, Evidence, EvidenceKind, Subject};
use crate::adapter::phase::{FactSource, Phase, PhaseFact, WaitingFor, is_ahead};
use crate::machine::Machine;

/// How far behind the clock the time of a file may be when it is written, in
/// milliseconds: Linux dates files by a clock that advances a hundred times a second at
/// the least.
const FILE_CLOCK_STEP_MS: i64 = 10;

/// The process that it names; `None` if that has released the session.
pub(crate) const fn pid(sidecar: &Sidecar) -> Option<Pid> {
    match sidecar.pid {
        SidecarPid::Process(pid) => Some(pid),
        SidecarPid::Released => None,
    }
}

/// The claim of a sidecar, to add or to complete: not an exclusive one.
pub(crate) fn claim(scan: &Scan<'_>, sidecar: Sidecar, path: PathBuf, facts: &FileFacts) -> Claim {
    let (subject, says) = subject(&sidecar);
    let evidence = Evidence::new(EvidenceKind::Sidecar, path, says);
    let claim = scan.claim_by_file(&sidecar.session_id, subject, evidence, facts);
    completed(claim, sidecar)
}

/// The claim, with the scope, dates and paths of its sidecar.
pub(crate) fn completed(claim: Claim, sidecar: Sidecar) -> Claim {
    Claim {
        scope: ClaimedScope {
            host: Some(sidecar.hostname).filter(|host| !host.is_empty()),
            boot: sidecar.boot_id,
            pid_namespace: sidecar.pid_namespace,
            platform: sidecar.process_start_kind.map(StampKind::platform),
        },
        stamp: sidecar.process_start,
        dated_at_ms: Some(sidecar.started_at_ms),
        executable: sidecar.executable,
        work_dir: Some(sidecar.work_dir),
        ..claim
    }
}

/// Who serves it, and that in words.
pub(crate) fn subject(sidecar: &Sidecar) -> (Subject, String) {
    let Some(pid) = pid(sidecar) else {
        return (Subject::Released, "released (pid 0)".to_owned());
    };
    let mut says = String::with_capacity("pid 2147483647".len());
    // Writing to a text can't fail.
    let _ = write!(says, "pid {pid}");
    if let Some(start) = &sidecar.process_start_text {
        let _ = write!(says, ", start {start}");
    }
    (Subject::Process(pid), says)
}

/// The phase of the conversation, if the sidecar has it.
///
/// No field dates the phase. The owner rewrites the file with each phase, so that the
/// modification time of the file is the date: without a date, the phase would lose to every
/// record of the conversation, however old. (A file from the future gives no date, but its
/// phase may still be correct.)
pub(crate) fn phase(sidecar: &Sidecar, facts: &FileFacts, machine: &Machine) -> Option<PhaseFact> {
    let word = sidecar.phase.as_ref()?;
    let waiting_for = sidecar.waiting_for.as_deref();
    let fact = PhaseFact::new(FactSource::Registry, Phase::from_name(word));
    let fact = fact.waiting_for(waiting_for.and_then(WaitingFor::from_name));
    let written_ms = facts
        .modified_ms
        .filter(|at| !is_ahead(*at, machine.now_ms()));
    let at_ms = written_ms.map(|at| at.saturating_add(FILE_CLOCK_STEP_MS));
    Some(PhaseFact {
        since_ms: written_ms,
        process: pid(sidecar).zip(sidecar.process_start.clone()),
        ..fact.in_word(word).dated(at_ms)
    })
}

/// The address at which the process listens, if the sidecar has it.
pub(crate) fn endpoint(sidecar: &Sidecar) -> Option<String> {
    sidecar.endpoint.as_deref().map(without_secrets)
}

/// A URL without parts that may be secret: a user, a query, a fragment.
pub(crate) fn without_secrets(endpoint: &str) -> String {
    let Some((scheme, rest)) = endpoint.split_once("://") else {
        return endpoint.to_owned();
    };
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (host, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let host = host.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}{path}")
}

#[cfg(test)]
mod tests {
    use super::without_secrets;

    #[test]
    fn secrets_of_an_endpoint_are_left_out() {
        for (endpoint, shown) in [
            ("/run/agent.sock", "/run/agent.sock"),
            ("http://127.0.0.1:80/x", "http://127.0.0.1:80/x"),
            ("http://u:secret@h:1/x?token=secret#secret", "http://h:1/x"),
            ("ws://h?token=secret", "ws://h"),
            ("unix:///run/a@b.sock", "unix:///run/a@b.sock"),
        ] {
            assert_eq!(without_secrets(endpoint), shown);
        }
    }
}
