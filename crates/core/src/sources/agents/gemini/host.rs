//! Processes that serve sessions to editors (`--acp`).
//!
//! Such a process has as many sessions as its client asks for, in any directory, and nothing
//! records which. Seen in Gemini CLI 0.61.0, 2026-11.

use whosup_sidecar::file::{Links, facts};

use super::chat::Chat;
use super::chats::MODIFIED_SLACK_MS;
use super::project::Project;
use super::scan::Scanning;
use crate::adapter::claim::{Claim, Evidence, EvidenceKind, Serving, Subject};
use crate::adapter::{AgentProcess, Role};
use crate::sources::agents::kit::folder::is_modified_since;
use crate::sources::trust::trust_of;

impl Scanning<'_> {
    /// Since when processes of this home serve editors, each as many sessions,
    /// of any directory, as it is asked for.
    pub(super) fn hosts_since(&self) -> Option<i64> {
        let hosts = self.look.processes_of(self.home);
        let hosts = hosts.filter(|process| process.role == Role::Host);
        hosts
            .map(|host| host.process.began_at_ms.clone().unwrap_or(0))
            .min()
    }

    /// A session has been made in the folder since a host began.
    pub(super) fn may_be_hosted(&self, project: &Project) -> bool {
        let since_ms = self.hosts_since();
        since_ms.is_some_and(|since_ms| {
            is_modified_since(&project.chats(), since_ms.saturating_sub(MODIFIED_SLACK_MS))
        })
    }

    /// A host may serve any session that was made or used since it began and belongs to no
    /// terminal. Nothing records which.
    pub(super) fn claim_of_hosts(&mut self, chat: &Chat, is_perhaps_of_terminal: bool) {
        if is_perhaps_of_terminal {
            return;
        }
        let is_since = |began: i64| {
            let dates = [chat.born_at_ms(), chat.last_at_ms];
            dates.into_iter().flatten().any(|at_ms| at_ms >= began)
        };
        let may_serve = |process: &&AgentProcess| {
            process.role == Role::Host
                && process
                    .process
                    .began_at_ms
                    .as_ref()
                    .map_or(true, |began| is_since(*began))
        };
        let hosts: Vec<&AgentProcess> = self
            .look
            .processes_of(self.home)
            .filter(may_serve)
            .collect();
        let Some((path, facts)) = chat
            .path
            .as_deref()
            .and_then(|path| Some((path, facts(path, Links::Follow).ok()?)))
        else {
            return;
        };
        for host in &hosts {
            // The launcher has the same arguments as the process that it started.
            let pid = host.process.pid;
            if hosts.iter().any(|other| other.process.ppid == Some(pid)) {
                continue;
            }
            let mounts = self.look.machine.mounts();
            let claim = Claim {
                serving: Serving::Many,
                trust: trust_of(&facts, self.home, self.look.machine),
                placement: mounts.placement_of(path),
                ..Claim::new(
                    self.key(&chat.id),
                    Subject::Process(pid),
                    Evidence::new(
                        EvidenceKind::Transcript,
                        Some(path.to_owned()),
                        format!(
                            "went on since process {pid} began, which serves sessions to an editor"
                        ),
                    ),
                )
            };
            self.add_claim(claim);
        }
    }
}
