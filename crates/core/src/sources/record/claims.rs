//! What records claim: which processes have, or had, which sessions.

use std::path::Path;

use super::history::{Histories, HistoryLine};
use super::{KnownOwner, RecordedOwner, SessionRecord, StoredRecord, records_root};
use crate::adapter::Home;
use crate::adapter::claim::{
    Claim, ClaimedScope, Evidence, EvidenceKind, Exclusivity, Leaving, Serving, SessionKey,
    Subject, TakenUp, Trust,
};
use crate::machine::Machine;
use crate::sources::trust::trust_of;

/// The directory is ours: its owner may write what is in it.
pub(super) fn home_of_records(root: &Path) -> Home {
    Home {
        owner_uid: whosup_sidecar::file::owner_of(root),
        is_default: true,
        root: root.into(),
    }
}

impl StoredRecord {
    /// The claims that the owners who have not released the session serve it, each with its owner.
    /// Whether a *shared* owner still serves it is shown by the agent's own lock, so a scan does not
    /// make that claim.
    #[must_use]
    pub fn claims_of_owners(&self, machine: &Machine) -> Vec<(&RecordedOwner, Claim)> {
        let known = self.record.owners.open();
        known
            .filter_map(|known| Some((known.identity.as_ref()?, self.claim_of(known, machine)?)))
            .collect()
    }

    /// The claim that this owner serves the session; `None` if it was not found.
    fn claim_of(&self, known: &KnownOwner, machine: &Machine) -> Option<Claim> {
        let owner = known.identity.as_ref()?;
        let root = records_root(machine)?;
        let trust = trust_of(&self.facts, &home_of_records(&root), machine);
        let subject = match owner.is_unrecognized {
            true => Subject::Unrecognized {
                pid: owner.pid,
                is_settled: known.is_settled(),
            },
            false => Subject::Process(owner.pid),
        };
        Some(Claim {
            subject,
            dated_at_ms: Some(known.last_event_at_ms),
            taken_up: TakenUp::At(known.taken_up_at_ms()),
            serving: if owner.is_shared {
                Serving::Many
            } else {
                Serving::One
            },
            ..about(owner, self.claim(trust, says_of(owner), machine))
        })
    }

    /// The claims of an open session: one for each owner that has not released it.
    pub(super) fn claims_of_open(
        &self,
        machine: &Machine,
        histories: &mut Histories<'_>,
    ) -> Vec<Claim> {
        let record = &self.record;
        let mut claims = Vec::new();
        for known in record.owners.open() {
            let Some(owner) = known.identity.as_ref().filter(|owner| !owner.is_shared) else {
                continue;
            };
            let heard_at_ms = known.claimed_at_ms.or(known.worked_at_ms);
            let history = histories.of_process(owner);
            let left_at_ms = history.and_then(|history| {
                history.left_at_ms(&record.agent, &record.session, heard_at_ms)
            });
            let Some(mut claim) = self.claim_of(known, machine) else {
                continue;
            };
            if let Some(at_ms) = left_at_ms {
                let ended_at_ms = None;
                claim.taken_up = TakenUp::Left(Leaving { at_ms, ended_at_ms });
            }
            claims.push(claim);
        }
        if record.owners.may_be_another() || record.owners.have_let_go() {
            let says = "its hooks had no process of the agent above them".to_owned();
            let trust = Trust::Trusted;
            claims.push(Claim {
                subject: Subject::NotFound,
                ..self.claim(trust, says, machine)
            });
        }
        claims
    }

    /// What every claim of a record has, without an owner.
    pub(super) fn claim(&self, trust: Trust, says: String, machine: &Machine) -> Claim {
        Claim {
            dated_at_ms: Some(self.record.last_event_at_ms),
            modified_at_ms: self.facts.modified_ms,
            work_dir: self.record.work_dir.clone(),
            // Some agents report a new process only at its first prompt.
            exclusivity: Exclusivity::Shared,
            trust,
            placement: machine.mounts().placement_of(&self.path),
            ..Claim::new(
                key_of(&self.record),
                Subject::Released,
                Evidence::new(EvidenceKind::Record, Some(self.path.clone()), says),
            )
        }
    }
}

pub(super) fn key_of(record: &SessionRecord) -> SessionKey {
    SessionKey {
        agent: record.agent.clone(),
        session: record.session.clone(),
        home: record.home.as_path().into(),
    }
}

fn says_of(owner: &RecordedOwner) -> String {
    let start = owner.stamp.as_ref().map(ToString::to_string);
    let start = start.as_deref().unwrap_or("unknown");
    let as_what = if owner.is_unrecognized {
        ", not recognized as the agent"
    } else {
        ""
    };
    format!("pid {}, start {start}{as_what}", owner.pid)
}

/// The claim, about this process.
fn about(owner: &RecordedOwner, claim: Claim) -> Claim {
    Claim {
        scope: ClaimedScope {
            host: owner.host.clone(),
            boot: owner.boot.clone(),
            pid_namespace: owner.pid_namespace,
            platform: None,
        },
        stamp: owner.stamp.clone(),
        executable: owner.executable.clone(),
        ..claim
    }
}

/// The claim that a process had this line's session and has left it. It shows that what
/// another source still says of that session and that process is old.
#[must_use]
pub fn claim_of_history(line: &HistoryLine, path: &Path, machine: &Machine) -> Claim {
    let owner = &line.owner;
    let claim = Claim {
        dated_at_ms: Some(line.at_ms),
        // An untrusted history is not read.
        trust: Trust::Trusted,
        placement: machine.mounts().placement_of(path),
        ..Claim::new(
            SessionKey {
                agent: line.agent.clone(),
                session: line.session.clone(),
                home: line.home.as_path().into(),
            },
            Subject::Process(owner.pid),
            Evidence::new(
                EvidenceKind::Record,
                Some(path.to_owned()),
                format!("{}, and has left it", says_of(owner)),
            ),
        )
    };
    about(owner, claim)
}
