//! A process that an adapter recognized.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use whosup_process::{Details, Process};
use whosup_sidecar::{AgentId, SessionId};

use super::claim::CLOCK_SLACK_MS;
use super::{Adapter, Program};

/// The role of a process for its agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Runs one session at a time, or may run one later.
    Session,
    /// Shows a session that another process runs.
    Client,
    /// Runs many sessions at once: a daemon, an app server.
    Host,
    /// A wrapper above the real process.
    Launcher,
    /// Belongs to the agent and never runs a session (an updater, a
    /// pre-started spare, a hub).
    Auxiliary,
}

/// A process that an adapter recognized.
#[derive(Debug, Clone)]
pub struct AgentProcess {
    /// The agent.
    pub agent: AgentId,
    /// The adapter that recognized it.
    pub adapter: &'static dyn Adapter,
    /// The process.
    pub process: Process,
    /// The rest of what was read of it.
    pub details: Arc<Details>,
    /// Its role for the agent.
    pub role: Role,
    /// The homes that its environment names; empty if that can't be read.
    pub homes: Vec<PathBuf>,
    /// The directory in which it was started, by its environment.
    pub launched_in: LaunchedIn,
}

/// The directory that a process was started in, by its environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaunchedIn {
    /// Unknown: some agents wipe their environment.
    NotKnown,
    /// A directory that still exists.
    There,
    /// A missing directory: it was renamed or deleted while the process worked there.
    Gone(PathBuf),
}

impl AgentProcess {
    /// Whether it may run or show a session.
    #[must_use]
    pub fn may_have_session(&self) -> bool {
        matches!(self.role, Role::Session | Role::Client) && !self.process.is_exited
    }

    /// The process as the recognition sees it, for reading the arguments.
    #[must_use]
    pub fn program(&self) -> Program<'_> {
        Program {
            process: &self.process,
            details: &self.details,
        }
    }

    /// The session that its arguments name: an id, or the beginning of one.
    #[must_use]
    pub fn named_session(&self) -> Option<&str> {
        self.adapter.session_named_by(&self.program())
    }

    /// Whether its arguments name this session.
    #[must_use]
    pub fn names(&self, session: &SessionId) -> bool {
        let named = self.named_session();
        named.is_some_and(|named| is_prefix_of(named, session))
    }

    /// Whether it had begun at `at_ms`, in milliseconds since 1970; `None` where its begin is
    /// not known.
    #[must_use]
    pub fn had_begun_at(&self, at_ms: i64) -> Option<bool> {
        let began = self.process.began_ms()?;
        Some(at_ms >= began.saturating_sub(CLOCK_SLACK_MS))
    }

    /// Whether it had begun at one of these dates.
    #[must_use]
    pub fn had_begun_at_one_of(&self, dates: impl IntoIterator<Item = Option<i64>>) -> bool {
        let mut dates = dates.into_iter().flatten();
        dates.any(|at_ms| self.had_begun_at(at_ms) == Some(true))
    }

    /// Its directory, where it can be read.
    #[must_use]
    pub fn work_dir(&self) -> Option<&Path> {
        self.details.cwd.as_deref().ok()
    }

    /// The directory that its arguments name, or else its own.
    pub(crate) fn named_or_own_dir(&self) -> Option<PathBuf> {
        let named = self.adapter.work_dir_named_by(&self.program());
        named.or_else(|| self.work_dir().map(Path::to_owned))
    }

    /// The directory that its arguments name, or else those that its sessions may name.
    pub(crate) fn named_or_own_dirs(&self) -> Vec<PathBuf> {
        match self.adapter.work_dir_named_by(&self.program()) {
            Some(named) => vec![named],
            None => self.work_dirs().map(Path::to_owned).collect(),
        }
    }

    /// The directories that its sessions may name: its own, and the one that it was started
    /// in, where that has another name now.
    pub fn work_dirs(&self) -> impl Iterator<Item = &Path> {
        let gone = match &self.launched_in {
            LaunchedIn::Gone(gone) => Some(gone.as_path()),
            LaunchedIn::NotKnown | LaunchedIn::There => None,
        };
        self.work_dir().into_iter().chain(gone)
    }

    /// Returns whether it may use `home`: its environment names it, or can't be read.
    #[must_use]
    pub fn may_use(&self, home: &Path) -> bool {
        self.homes.is_empty() || self.homes.iter().any(|own| own == home)
    }
}

/// Whether a word in the arguments of a process names a session. Agents read a UUID in
/// capital letters too.
pub(crate) fn is_prefix_of(named: &str, session: &SessionId) -> bool {
    let is_of_uuid = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    let begins = session.as_str().get(..named.len());
    begins.is_some_and(|begins| {
        begins == named || (named.bytes().all(is_of_uuid) && begins.eq_ignore_ascii_case(named))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_is_named_by_a_prefix_whatever_its_case() {
        for (named, session, right) in [
            ("0A2b-", "0a2b-4711", true),
            ("0a2b-4711", "0A2B-4711", true),
            ("0a2b-4711-1", "0a2b-4711", false),
            ("ses_A", "ses_A1", true),
            ("ses_a", "ses_A1", false),
        ] {
            let session = SessionId::parse(session).unwrap();
            assert_eq!(is_prefix_of(named, &session), right, "{named}");
        }
    }
}
