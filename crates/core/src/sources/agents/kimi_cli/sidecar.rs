//! What a sidecar claims.

use std::path::PathBuf;

use whosup_sidecar::Sidecar;

use crate::adapter::claim::{
    Claim, ClaimedScope, Evidence, EvidenceKind, Placement, SessionKey, Subject, Trust,
};
use crate::sources::agents::kit::sidecar_facts;

/// Where a sidecar was read.
pub(super) struct Source {
    pub(super) path: PathBuf,
    pub(super) modified_at_ms: Option<i64>,
    pub(super) trust: Trust,
    pub(super) placement: Placement,
}

/// The claim of a sidecar that can't be read: it may name any process.
pub(super) fn unread_claim(key: SessionKey, path: PathBuf, placement: Placement) -> Claim {
    Claim {
        placement,
        ..Claim::new(
            key,
            Subject::Unreadable,
            Evidence::new(
                EvidenceKind::Sidecar,
                Some(path),
                "it can't be read".to_owned(),
            ),
        )
    }
}

/// The claim of a sidecar.
///
/// Not an exclusive one: a headless run of the same session overwrites the
/// sidecar of the shell that still serves it, and exits.
pub(super) fn claim(key: SessionKey, sidecar: Sidecar, source: Source) -> Claim {
    let (subject, says) = sidecar_facts::subject(&sidecar);
    Claim {
        scope: ClaimedScope {
            host: Some(sidecar.hostname).filter(|host| !host.is_empty()),
            boot: sidecar.boot_id,
            pid_namespace: sidecar.pid_namespace,
        },
        stamp: sidecar.process_start,
        dated_at_ms: Some(sidecar.started_at_ms),
        modified_at_ms: source.modified_at_ms,
        executable: sidecar.executable,
        work_dir: Some(sidecar.work_dir),
        trust: source.trust,
        placement: source.placement,
        ..Claim::new(
            key,
            subject,
            Evidence::new(EvidenceKind::Sidecar, Some(source.path), says),
        )
    }
}
