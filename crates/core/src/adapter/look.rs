//! The input and the output of an adapter's look.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use whosup_sidecar::SessionId;

use super::{AgentProcess, LaunchedIn, Sketch};
use crate::adapter::claim::{Claim, SessionKey};
use crate::machine::Machine;

/// One home of an agent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Home {
    /// Its root.
    pub root: Arc<Path>,
    /// It is the agent's default home.
    pub is_default: bool,
    /// The user who owns the root; `None` where that is unknown.
    pub owner_uid: Option<u32>,
}

/// The depth of a scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Depth {
    /// The sessions that processes, PID-keyed registries, locks and records lead to.
    Live,
    /// Every session on disk.
    All,
    /// What [`Depth::Live`] finds and, of these sessions, all that [`Depth::All`]
    /// does. An agent whose file names don't contain the session ID is walked.
    Sessions(BTreeSet<SessionId>),
}

impl Depth {
    /// Whether sessions are searched that no process leads to. If file names don't identify
    /// sessions, all files are read.
    #[must_use]
    pub const fn is_walk(&self) -> bool {
        !matches!(self, Self::Live)
    }

    /// Whether a session is searched that no process leads to.
    #[must_use]
    pub fn reaches(&self, session: &SessionId) -> bool {
        match self {
            Self::Live => false,
            Self::All => true,
            Self::Sessions(sessions) => sessions.contains(session),
        }
    }
}

/// The input of an adapter.
#[derive(Debug, Clone, Copy)]
pub struct Look<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// How far to look.
    pub depth: &'a Depth,
    /// This agent's processes, of every home.
    pub processes: &'a [AgentProcess],
}

impl<'a> Look<'a> {
    /// This agent's processes that may use `home`.
    pub fn processes_of(&self, home: &'a Home) -> impl Iterator<Item = &'a AgentProcess> + use<'a> {
        self.processes
            .iter()
            .filter(move |process| process.may_use(&home.root))
    }

    /// Since when processes of `home` run of which nothing shows where they were started, in
    /// milliseconds since 1970. What [is gone since](Self::is_gone_since) may be the former
    /// name of their directory.
    #[must_use]
    pub fn displaced_since(&self, home: &Home) -> Option<i64> {
        let is_displaced = |process: &&AgentProcess| {
            process.may_have_session() && process.launched_in == LaunchedIn::NotKnown
        };
        let displaced = self.processes_of(home).filter(is_displaced);
        displaced
            .map(|process| process.process.began_ms().unwrap_or(0))
            .min()
    }

    /// The same, of those that may have been started in this directory.
    #[must_use]
    pub fn displaced_from(&self, home: &Home, directory: Option<&Path>) -> Option<i64> {
        let since_ms = self.displaced_since(home)?;
        let is_gone = self.is_gone_since(directory?, since_ms);
        is_gone.then_some(since_ms)
    }

    /// Whether a directory that a session names is not there, must not be touched, or may have
    /// been made since then, in milliseconds since 1970.
    #[must_use]
    pub fn is_gone_since(&self, directory: &Path, since_ms: i64) -> bool {
        let way = self.machine.mounts().way_to(directory);
        let born_ms = way.and_then(|way| way.facts()?.born_ms);
        born_ms.is_none_or(|born| born >= since_ms)
    }
}

/// What was found in one home of an agent.
///
/// Boxed, because there may be very many, and they are sorted, grouped and moved.
#[derive(Debug, Clone, Default)]
pub struct AgentScan {
    /// The claims.
    pub claims: Vec<Box<Claim>>,
    /// What is known of sessions, claimed or not. A claimed session needs no sketch.
    pub sketches: Vec<Box<Sketch>>,
}

impl AgentScan {
    /// These claims and sketches.
    pub(crate) fn of<C, S>(claims: C, sketches: S) -> Self
    where
        C: IntoIterator<Item: Into<Box<Claim>>>,
        S: IntoIterator<Item: Into<Box<Sketch>>>,
    {
        Self {
            claims: claims.into_iter().map(Into::into).collect(),
            sketches: sketches.into_iter().map(Into::into).collect(),
        }
    }

    /// The sessions that it is about, some more than once.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &SessionKey> {
        let claimed = self.claims.iter().map(|claim| &claim.key);
        claimed.chain(self.sketches.iter().map(|sketch| &sketch.key))
    }

    /// Adds a claim.
    pub(crate) fn claim(&mut self, claim: impl Into<Box<Claim>>) {
        self.claims.push(claim.into());
    }

    /// Adds claims.
    pub(crate) fn claim_all(&mut self, claims: impl IntoIterator<Item: Into<Box<Claim>>>) {
        self.claims.extend(claims.into_iter().map(Into::into));
    }

    /// Adds a sketch.
    pub(crate) fn sketch(&mut self, sketch: impl Into<Box<Sketch>>) {
        self.sketches.push(sketch.into());
    }
}
