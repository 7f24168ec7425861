//! Which sessions a list shows.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::agents::Depth;
use crate::claim::{EvidenceKind, SessionKey};
use crate::phase::Phase;
use crate::session::{Session, Unattributed};
use crate::verdict::{Liveness, UnknownBecause, Verdict};

/// How long an orphan stays in the default view, in milliseconds.
const ORPHAN_SHOWN_MS: i64 = 24 * 60 * 60 * 1_000;

/// How deep sub-agents of sub-agents are followed.
const SUB_AGENT_DEPTH_MAX: usize = 16;

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

/// What a list is asked for.
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
    /// How far the scan must look: sessions that have exited or ended are not
    /// among what processes lead to.
    #[must_use]
    pub fn depth(&self) -> Depth {
        let wants_exited =
            self.liveness.contains(&Liveness::Exited) || self.phases.contains(&Phase::Ended);
        if self.is_all || wants_exited {
            Depth::All
        } else {
            Depth::Live
        }
    }
}

/// Which sessions a list shows.
#[derive(Debug)]
pub struct Filter {
    wish: Wish,
    now_ms: i64,
    real_paths: RefCell<HashMap<PathBuf, PathBuf>>,
}

impl Filter {
    /// A filter for what is wished.
    ///
    /// # Errors
    ///
    /// [`FilterError`] if the directory is not there.
    pub fn new(mut wish: Wish, now_ms: i64) -> Result<Self, FilterError> {
        if let Some(path) = wish.work_dir.take() {
            wish.work_dir = Some(real_directory(path)?);
        }
        Ok(Self {
            wish,
            now_ms,
            real_paths: RefCell::default(),
        })
    }

    /// Tells whether the answer about a session may change once its own files
    /// are read.
    pub fn needs_files(&self, session: &Session) -> bool {
        let is_dated = session.last_activity_at_ms().is_some();
        let needs_date = !is_dated
            && (self.wish.since_ms.is_some() || (self.is_default() && session.is_orphan()));
        let needs_directory = self.wish.work_dir.is_some() && session.work_dir().is_none();
        let needs_phase = !self.wish.phases.is_empty() && session.sketch.published.is_none();
        needs_date || needs_directory || needs_phase
    }

    /// Tells whether a session is shown, by what is known of it now.
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

    /// Tells whether a process without a session is shown.
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
            Liveness::Unknown => !is_mere_candidate(session),
            Liveness::Exited => {
                let last = session.last_heard_of_ms();
                // An orphan without any date may be of today.
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
        work_dir.is_some_and(|work_dir| self.real_path(work_dir).starts_with(wanted))
    }

    fn real_path(&self, path: &Path) -> PathBuf {
        let mut known = self.real_paths.borrow_mut();
        if let Some(real) = known.get(path) {
            return real.clone();
        }
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        known.insert(path.to_owned(), real.clone());
        real
    }
}

fn real_directory(path: PathBuf) -> Result<PathBuf, FilterError> {
    let reason = match path.canonicalize() {
        Ok(real) if real.is_dir() => return Ok(real),
        Ok(_) => "it is not a directory".to_owned(),
        Err(error) if error.kind() == ErrorKind::NotFound => "no such directory".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(FilterError::Directory { path, reason })
}

/// Nothing speaks for it but a process that may serve it: it is named beside
/// that process.
fn is_mere_candidate(session: &Session) -> bool {
    let has_own_evidence = session.evidence.iter().any(|judged| {
        !matches!(
            judged.evidence.kind,
            EvidenceKind::Touched | EvidenceKind::Transcript
        )
    });
    let is_candidate = matches!(
        session.verdict,
        Verdict::Unknown(UnknownBecause::MayBeServedBy(_))
    );
    is_candidate && !has_own_evidence
}

/// Of sessions and the parents they name: the sub-agents of those in `shown`, and
/// theirs.
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
