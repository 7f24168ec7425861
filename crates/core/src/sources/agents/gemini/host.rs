//! Processes that serve sessions to editors (`--acp`).
//!
//! Such a process has as many sessions as its client asks for, in any directory, and nothing
//! records which. Seen in Gemini CLI 0.61.0, 2026-11.

use whosup_sidecar::file::{Links, facts};

use super::chat::Chat;
use super::chats::may_be_written_since;
use super::project::Project;
use super::scan::Scanning;
use crate::adapter::claim::{Claim, Evidence, EvidenceKind, Serving, Subject};
use crate::adapter::{AgentProcess, Role};

impl<'a> Scanning<'a> {
    fn hosts(&self) -> impl Iterator<Item = &'a AgentProcess> + use<'a> {
        let processes = self.scan.processes();
        processes.filter(|process| process.role == Role::Host)
    }

    /// Since when processes of this home serve editors, each as many sessions,
    /// of any directory, as it is asked for.
    pub(super) fn hosts_since(&self) -> Option<i64> {
        let began = |host: &AgentProcess| host.process.began_ms().unwrap_or(0);
        self.hosts().map(began).min()
    }

    /// A session has been made in the folder since a host began.
    pub(super) fn may_be_hosted(&self, project: &Project) -> bool {
        let since_ms = self.hosts_since();
        since_ms.is_some_and(|since_ms| may_be_written_since(&project.chats(), since_ms))
    }

    /// A host may serve any session that was made or used since it began and belongs to no
    /// terminal. Nothing records which.
    pub(super) fn claim_of_hosts(&mut self, chat: &Chat, is_perhaps_of_terminal: bool) {
        let path = chat.path.as_deref().filter(|_| !is_perhaps_of_terminal);
        let Some((path, facts)) =
            path.and_then(|path| Some((path, facts(path, Links::Follow).ok()?)))
        else {
            return;
        };
        let latest = chat.born_at_ms().max(chat.last_at_ms);
        let may_serve = |host: &&AgentProcess| {
            let began = host.process.began_ms();
            began.is_none_or(|began| latest >= Some(began))
        };
        let hosts: Vec<&AgentProcess> = self.hosts().filter(may_serve).collect();
        for host in &hosts {
            // The launcher has the same arguments as the process that it started.
            let pid = host.process.pid;
            if hosts.iter().any(|other| other.process.ppid == Some(pid)) {
                continue;
            }
            let says =
                format!("went on since process {pid} began, which serves sessions to an editor");
            let evidence = Evidence::new(EvidenceKind::Transcript, path.to_owned(), says);
            let subject = Subject::Process(pid);
            self.scan.claim(Claim {
                serving: Serving::Many,
                ..self.scan.claim_by_file(&chat.id, subject, evidence, &facts)
            });
        }
    }
}
