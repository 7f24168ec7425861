//! Which sessions a list shows.

use std::collections::{BTreeSet, HashSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::adapter::Depth;
use crate::adapter::claim::SessionKey;
use crate::adapter::phase::Phase;
use crate::judging::verdict::Liveness;
use crate::machine::Machine;
use crate::machine::composed::composed;
use crate::machine::mounts::Mounts;
use crate::sessions::merge::SUB_AGENT_DEPTH_MAX;
use crate::sessions::session::{ORPHAN_SHOWN_MS, Session, Unattributed};

/// Why a filter can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilterError {
    /// The directory of `--cwd` can't be looked up.
    #[error("cannot look for sessions in `{}`: {reason}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

/// The request for a list.
#[derive(Debug, Clone, Default)]
pub struct Wish {
    /// Every session on disk.
    pub is_all: bool,
    /// Sessions in this directory or below it.
    pub work_dir: Option<PathBuf>,
    /// With one of these answers; any if empty.
    pub liveness: BTreeSet<Liveness>,
    /// In one of these phases; any if empty.
    pub phases: BTreeSet<Phase>,
    /// With something that happened since, in milliseconds since 1970.
    pub since_ms: Option<i64>,
}

impl Wish {
    /// How far the scan must look: processes do not lead to sessions that have exited or ended.
    #[must_use]
    pub fn depth(&self) -> Depth {
        if self.is_all || wants_exited(&self.liveness, &self.phases) {
            Depth::All
        } else {
            Depth::Live
        }
    }
}

/// Whether these answers and phases include sessions that have exited or ended: only a walk
/// over every session on disk finds all of those.
#[must_use]
pub fn wants_exited(liveness: &BTreeSet<Liveness>, phases: &BTreeSet<Phase>) -> bool {
    liveness.contains(&Liveness::Exited) || phases.contains(&Phase::Ended)
}

/// Which sessions a list shows.
#[derive(Debug)]
pub struct Filter<'a> {
    wish: Wish,
    now_ms: i64,
    mounts: &'a Mounts,
}

impl<'a> Filter<'a> {
    /// A filter for a request.
    ///
    /// # Errors
    ///
    /// [`FilterError`] if the directory is not there.
    pub fn new(mut wish: Wish, machine: &'a Machine) -> Result<Self, FilterError> {
        let mounts = machine.mounts();
        if let Some(path) = wish.work_dir.take() {
            // A directory in the request is relied on.
            mounts.rely_on(&path);
            wish.work_dir = Some(real_directory(&path)?);
        }
        Ok(Self {
            wish,
            now_ms: machine.now_ms(),
            mounts,
        })
    }

    /// Whether reading a session's own files may change the answer about it.
    pub fn needs_files(&self, session: &Session) -> bool {
        let is_dated = session.last_activity_at_ms().is_some();
        let needs_date = !is_dated
            && (self.wish.since_ms.is_some() || (self.is_default() && session.is_orphan()));
        let needs_directory = self.wish.work_dir.is_some() && session.work_dir().is_none();
        // The transcript of a live session may be newer than the last report.
        let is_undecided = session.liveness() == Liveness::Live || session.sketch.facts.is_empty();
        let needs_phase = !self.wish.phases.is_empty() && is_undecided;
        needs_date || needs_directory || needs_phase
    }

    /// Returns whether a session is shown, by what is known of it now.
    pub fn is_shown(&self, session: &Session) -> bool {
        let wish = &self.wish;
        let has_liveness = if wish.liveness.is_empty() {
            wish.is_all || self.is_in_default_view(session)
        } else {
            wish.liveness.contains(&session.liveness())
        };
        let has_phase = wish.phases.is_empty()
            || session
                .phase()
                .is_some_and(|phase| wish.phases.contains(&phase));
        let is_recent = wish
            .since_ms
            .is_none_or(|since| session.last_activity_at_ms().is_some_and(|at| at >= since));
        has_liveness && has_phase && is_recent && self.is_in_directory(session.work_dir())
    }

    /// Returns whether a process without a session is shown.
    pub fn is_process_shown(&self, one: &Unattributed) -> bool {
        self.is_in_directory(one.process.work_dir())
    }

    fn is_default(&self) -> bool {
        !self.wish.is_all && self.wish.liveness.is_empty()
    }

    /// Live, unknown, and orphans of the last day.
    fn is_in_default_view(&self, session: &Session) -> bool {
        match session.liveness() {
            Liveness::Live => true,
            Liveness::Unknown => !session.is_dismissed,
            Liveness::Exited => {
                let last = session.last_heard_of_ms();
                // An orphan without any date may have died today.
                session.is_orphan()
                    && !session.is_dismissed
                    && last.is_none_or(|at| self.now_ms.saturating_sub(at) <= ORPHAN_SHOWN_MS)
            }
        }
    }

    fn is_in_directory(&self, work_dir: Option<&Path>) -> bool {
        let Some(wanted) = &self.wish.work_dir else {
            return true;
        };
        work_dir.is_some_and(|path| self.mounts.real_path(path).starts_with(wanted))
    }
}

/// A directory of a request with its links followed, as directories are compared: in the
/// composed Unicode form.
///
/// # Errors
///
/// [`FilterError`] if it does not exist.
#[expect(
    clippy::disallowed_methods,
    reason = "a directory in the request is relied on"
)]
pub fn real_directory(path: &Path) -> Result<PathBuf, FilterError> {
    let reason = match path.canonicalize() {
        Ok(real) if real.is_dir() => return Ok(composed(real)),
        Ok(_) => "it is not a directory".to_owned(),
        Err(error) if error.kind() == ErrorKind::NotFound => "no such directory".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(FilterError::Directory {
        path: path.to_owned(),
        reason,
    })
}

/// All sub-agents below the sessions in `shown`.
pub fn sub_agents_of<'a>(
    links: impl Iterator<Item = (&'a SessionKey, Option<SessionKey>)>,
    shown: &HashSet<SessionKey>,
) -> HashSet<SessionKey> {
    let links: Vec<(&SessionKey, SessionKey)> = links
        .filter_map(|(key, parent)| Some((key, parent?)))
        .collect();
    let mut above = shown.clone();
    let mut found = HashSet::new();
    for _ in 0..SUB_AGENT_DEPTH_MAX {
        let below: Vec<SessionKey> = links
            .iter()
            .filter(|(key, parent)| above.contains(parent) && !above.contains(*key))
            .map(|(key, _)| (*key).clone())
            .collect();
        if below.is_empty() {
            break;
        }
        above.extend(below.iter().cloned());
        found.extend(below);
    }
    found
}

/// The key of the session that this one is a sub-agent of.
pub fn parent_key(session: &Session) -> Option<SessionKey> {
    let parent = session.sketch.parent.clone()?;
    Some(SessionKey {
        session: parent,
        ..session.key.clone()
    })
}
