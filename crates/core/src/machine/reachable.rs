//! Which paths can be touched without the risk of waiting for ever.
//!
//! A path that a file or another process names may lie on a network or FUSE mount whose
//! server does not answer, or where touching a name starts an automount. Even a test
//! whether such a path exists may block for ever and can't be interrupted. So paths are
//! walked name by name, with the table of mounts beside them, and nothing is touched that
//! lies on such a mount. It is compared as text instead.
//!
//! Mounts that the user of this program relies on anyway are exempt: the one that their own
//! home lies on, and those of the homes of agents that their own environment or
//! configuration names ([`Mounts::rely_on`]). If they don't answer, nothing does.
//!
//! Where there is no table of mounts (other platforms), every path is touched.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use whosup_sidecar::file::{FileFacts, Links, facts_of_any};

use crate::machine::composed::composed;
use crate::machine::mounts::{Mounts, Table};

/// How many directories are cached.
const DIRECTORIES_MAX: usize = 10_000;
/// How many names are walked for one path, those of its links included.
const NAMES_MAX: usize = 512;
/// How long a path may be, in bytes: the kernel takes no longer one (`PATH_MAX`,
/// path_resolution(7)).
const PATH_BYTES_MAX: usize = 4096;
/// How many links are followed for one path, as the kernel does (path_resolution(7)).
const LINKS_MAX: usize = 40;

/// A path that can be touched: the answer, also that there is nothing, comes at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedPath(PathBuf);

/// Why a path is not touched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WhyNot {
    /// It lies on a mount that may never answer.
    #[error("it lies on a mount that may not answer: {kind} at `{}`", at.display())]
    Mount {
        /// Where that is mounted.
        at: PathBuf,
        /// What kind of file system it is.
        kind: String,
    },
    /// It is relative, so that it means different paths.
    #[error("it is not absolute")]
    Relative,
    /// It is too long, or has too many names or links.
    #[error("it has more than {PATH_BYTES_MAX} bytes, {NAMES_MAX} names or {LINKS_MAX} links")]
    TooLong,
    /// It leads through a link of `/proc`, which is followed without its text.
    #[error("it leads through a link in `{}`", of.display())]
    ProcLink {
        /// The directory of the link.
        of: PathBuf,
    },
}

#[expect(clippy::disallowed_methods, reason = "that is what was checked")]
impl CheckedPath {
    /// The path as it was written.
    #[must_use]
    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// Something exists there.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.0.exists()
    }

    /// A directory exists there.
    #[must_use]
    pub fn is_dir(&self) -> bool {
        self.0.is_dir()
    }

    /// A regular file exists there.
    #[must_use]
    pub fn is_file(&self) -> bool {
        self.0.is_file()
    }
}

/// The way to an existing file or directory, on local mounts only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    /// Its path without links.
    pub directory: PathBuf,
    /// The links that were followed.
    pub links: Vec<PathBuf>,
}

impl Way {
    /// The facts of the directory. It is as young as the youngest of it and the links: the
    /// time of birth is `None` if that is not known of one of them.
    pub(crate) fn facts(&self) -> Option<FileFacts> {
        let facts = facts_of_any(&self.directory, Links::Follow).ok()?;
        let links = self.links.iter();
        let born = links.map(|link| facts_of_any(link, Links::Refuse).ok()?.born_ms);
        let born_ms = born.fold(facts.born_ms, |youngest, born| Some(youngest?.max(born?)));
        Some(FileFacts { born_ms, ..facts })
    }
}

impl AsRef<Path> for CheckedPath {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Mounts {
    /// Returns whether a path that a file or another process names can be touched.
    ///
    /// # Errors
    ///
    /// [`WhyNot`] if it can't.
    pub fn touchable(&self, path: &Path) -> Result<CheckedPath, WhyNot> {
        let checked = || CheckedPath(path.to_owned());
        let Some(walked) = self.walk(path) else {
            return Ok(checked());
        };
        match &walked.end {
            End::There | End::Missing => Ok(checked()),
            End::Barred(why) => Err(why.clone()),
        }
    }

    /// Where a directory really is, in one spelling: equal bytes mean the same directory. A
    /// directory that is missing, or can't be touched, keeps the part of its path that could
    /// not be walked.
    #[must_use]
    pub fn real_path(&self, directory: &Path) -> PathBuf {
        composed(self.resolved(directory)).components().collect()
    }

    /// The path without links, as far as it could be walked, in the Unicode form that it
    /// is stored in.
    pub(crate) fn resolved(&self, path: &Path) -> PathBuf {
        match self.walk(path) {
            Some(walked) => walked.path.clone(),
            None => canonical(path).unwrap_or_else(|| path.to_owned()),
        }
    }

    /// Returns whether a path leads to a directory that the kernel calls `real`: in whatever
    /// Unicode form, and by whatever links.
    pub(crate) fn leads_to(&self, written: &Path, real: &Path) -> bool {
        crate::machine::composed::is_same(written, real)
            || self.real_path(written) == composed(real.to_owned())
    }

    /// The way to a path; `None` if it does not exist or is not local. A mount does not become
    /// local because the user relies on it.
    #[must_use]
    pub fn way_to(&self, path: &Path) -> Option<Way> {
        let no_table = Table::default();
        let table = self.table().unwrap_or(&no_table);
        let mut known = self.local();
        let mut walk = Walk::new(table, &mut known);
        walk.links = Some(Vec::new());
        let walked = walk.to(path);
        let links = walk.links.unwrap_or_default();
        matches!(walked.end, End::There).then(|| Way {
            directory: walked.path.clone(),
            links,
        })
    }

    /// Marks the mounts on the way to a path as touchable: the user relies on them. The path is
    /// touched when another path is asked for.
    pub fn rely_on(&self, path: &Path) {
        self.known().to_rely_on.push(path.to_owned());
    }

    /// Walks to a directory; `None` without a table of mounts.
    #[expect(clippy::disallowed_methods, reason = "the user relies on it")]
    pub(crate) fn walk(&self, path: &Path) -> Option<Arc<Walked>> {
        let mut known = self.known();
        let relied = std::mem::take(&mut known.to_rely_on);
        for path in &relied {
            // Before the table is read: an automount happens only now.
            std::fs::metadata(path.join(".")).ok();
        }
        let table = self.table()?;
        for path in relied {
            known.rely_on(table, path);
        }
        Some(known.walk(table, path))
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "without a table of mounts every path is touched"
)]
fn canonical(directory: &Path) -> Option<PathBuf> {
    directory.canonicalize().ok()
}

/// What is known of directories, and which mounts are relied on.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// By the written path. Other spellings of the same path (`a//b`) are separate: a comparison
    /// by components is slow.
    directories: HashMap<OsString, Arc<Walked>>,
    /// By the index in the table.
    relied_on: HashSet<usize>,
    relied_paths: HashSet<PathBuf>,
    /// Paths to rely on before the next question.
    to_rely_on: Vec<PathBuf>,
}

/// Where a path leads.
#[derive(Debug, Clone)]
pub(crate) struct Walked {
    /// Without links, as far as it could be walked.
    pub(crate) path: PathBuf,
    /// The mount that it lies on, by its place in the table.
    pub(crate) mount: Option<usize>,
    /// Something in it is a mount point.
    pub(crate) has_mount_points: bool,
    end: End,
}

#[derive(Debug, Clone)]
enum End {
    There,
    /// It does not exist, or is hidden from us.
    Missing,
    Barred(WhyNot),
}

impl Known {
    /// Walks to a directory, and caches the result, since it is needed for every file in it.
    fn walk(&mut self, table: &Table, path: &Path) -> Arc<Walked> {
        Walk::new(table, self).to(path)
    }

    fn rely_on(&mut self, table: &Table, path: PathBuf) {
        if !self.relied_paths.insert(path.clone()) {
            return;
        }
        let before = self.relied_on.len();
        let mut relying = Self {
            relied_on: std::mem::take(&mut self.relied_on),
            ..Self::default()
        };
        let mut walk = Walk::new(table, &mut relying);
        walk.is_relying = true;
        walk.to(&path);
        self.relied_on = relying.relied_on;
        if self.relied_on.len() != before {
            self.directories.clear();
        }
    }
}

struct Walk<'a> {
    table: &'a Table,
    known: &'a mut Known,
    names_left: usize,
    links_left: usize,
    /// All mounts on the way are touched, and relied on from now on.
    is_relying: bool,
    /// The followed links, if they are wanted.
    links: Option<Vec<PathBuf>>,
}

impl<'a> Walk<'a> {
    fn new(table: &'a Table, known: &'a mut Known) -> Self {
        Self {
            table,
            known,
            names_left: NAMES_MAX,
            links_left: LINKS_MAX,
            is_relying: false,
            links: None,
        }
    }

    fn to(&mut self, path: &Path) -> Arc<Walked> {
        if path.as_os_str().len() > PATH_BYTES_MAX {
            return self.barred(path.to_owned(), None, WhyNot::TooLong);
        }
        if let Some(known) = self.known.directories.get(path.as_os_str()) {
            return Arc::clone(known);
        }
        let barred = |why| self.barred(path.to_owned(), None, why);
        if self.names_left == 0 {
            return barred(WhyNot::TooLong);
        }
        self.names_left -= 1;
        let walked = match (path.components().next_back(), path.parent()) {
            (Some(Component::RootDir), _) => {
                let root = self.table.mounted_at(path, None);
                self.arrived(path.to_owned(), root)
            }
            (Some(Component::Normal(name)), Some(above)) => {
                let above = self.to(above);
                self.step(&above, name)
            }
            (Some(Component::ParentDir), Some(below)) => {
                let below = self.to(below);
                match below.end {
                    End::There => self.to(below.path.parent().unwrap_or(&below.path)),
                    _ => self.below(&below, OsStr::new("..")),
                }
            }
            _ => self.barred(path.to_owned(), None, WhyNot::Relative),
        };
        // Links that are wanted have to be found each time.
        let is_kept = self.links.is_none() || walked.path.as_os_str() == path.as_os_str();
        if is_kept && self.known.directories.len() < DIRECTORIES_MAX {
            let written = path.as_os_str().to_owned();
            self.known.directories.insert(written, Arc::clone(&walked));
        }
        walked
    }

    /// Walks to the next name, which is touched only if that can't block.
    #[expect(clippy::disallowed_methods, reason = "the mount was checked")]
    fn step(&mut self, above: &Walked, name: &OsStr) -> Arc<Walked> {
        if !matches!(above.end, End::There) {
            return self.below(above, name);
        }
        let path = above.path.join(name);
        if above.has_mount_points
            && let Some(mounted) = self.table.mounted_at(&path, above.mount)
        {
            // A mount point is a directory or a file, and no link: it need not be touched.
            return self.arrived(path, Some(mounted));
        }
        let on = above.mount.and_then(|number| self.table.mount(number));
        if let Some(mount) = on.filter(|mount| mount.is_automount() && !self.is_relying) {
            let why = WhyNot::Mount {
                at: mount.at.clone(),
                kind: mount.kind.clone(),
            };
            return self.barred(path, above.mount, why);
        }
        match std::fs::read_link(&path) {
            Err(error) if error.kind() == ErrorKind::InvalidInput => self.at(path, above.mount),
            // A path that can't be looked at fails at once, without blocking.
            Err(_) => self.ended(path, above.mount, End::Missing),
            Ok(_) if on.is_some_and(|mount| mount.kind == "proc") => {
                let of = above.path.clone();
                self.barred(path, above.mount, WhyNot::ProcLink { of })
            }
            Ok(_) if self.links_left == 0 => self.barred(path, above.mount, WhyNot::TooLong),
            Ok(target) => {
                self.links_left -= 1;
                if let Some(links) = &mut self.links {
                    links.push(path);
                }
                self.to(&above.path.join(target))
            }
        }
    }

    /// A path below something that is missing, or not touched.
    fn below(&self, above: &Walked, name: &OsStr) -> Arc<Walked> {
        let path = above.path.join(name);
        let mounted = self.table.mounted_at(&path, above.mount);
        match (&above.end, mounted) {
            (End::Barred(why), mounted) => self.barred(path, mounted.or(above.mount), why.clone()),
            // What is mounted there is hidden from us but could still block.
            (_, Some(mounted)) if self.reason_to_avoid(mounted).is_some() => {
                self.arrived_unrelied(path, mounted)
            }
            (_, mounted) => self.ended(path, mounted.or(above.mount), End::Missing),
        }
    }

    /// A mount point.
    fn arrived(&mut self, path: PathBuf, mount: Option<usize>) -> Arc<Walked> {
        let Some(number) = mount else {
            return self.at(path, None);
        };
        if self.is_relying {
            self.known.relied_on.insert(number);
        }
        self.arrived_unrelied(path, number)
    }

    fn arrived_unrelied(&self, path: PathBuf, mount: usize) -> Arc<Walked> {
        match self.reason_to_avoid(mount) {
            Some(why) => self.barred(path, Some(mount), why),
            None => self.at(path, Some(mount)),
        }
    }

    fn reason_to_avoid(&self, number: usize) -> Option<WhyNot> {
        let mount = self.table.mount(number)?;
        let is_avoided = mount.may_hang() && !self.known.relied_on.contains(&number);
        is_avoided.then(|| WhyNot::Mount {
            at: mount.at.clone(),
            kind: mount.kind.clone(),
        })
    }

    fn at(&self, path: PathBuf, mount: Option<usize>) -> Arc<Walked> {
        self.ended(path, mount, End::There)
    }

    fn barred(&self, path: PathBuf, mount: Option<usize>, why: WhyNot) -> Arc<Walked> {
        self.ended(path, mount, End::Barred(why))
    }

    fn ended(&self, path: PathBuf, mount: Option<usize>, end: End) -> Arc<Walked> {
        Arc::new(Walked {
            has_mount_points: self.table.has_mount_points_in(&path),
            path,
            mount,
            end,
        })
    }
}

#[cfg(all(test, unix))]
#[path = "reachable_tests.rs"]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests;
