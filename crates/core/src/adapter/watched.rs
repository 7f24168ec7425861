//! Paths whose changes are worth a new look.

use std::path::{Path, PathBuf};

/// A path below each home of an agent, from its [`Profile`](super::Profile).
#[derive(Debug, Clone, Copy)]
pub struct Watched {
    path: &'static str,
    is_recursive: bool,
}

/// A path worth watching.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WatchPath {
    /// The directory or file.
    pub path: PathBuf,
    /// Directories below it count too.
    pub is_recursive: bool,
}

impl Watched {
    /// A file, or a directory with its direct entries.
    pub(crate) const fn at(path: &'static str) -> Self {
        Self {
            path,
            is_recursive: false,
        }
    }

    /// A directory with all that is below it.
    pub(crate) const fn tree(path: &'static str) -> Self {
        Self {
            path,
            is_recursive: true,
        }
    }

    /// The path in one home.
    pub(super) fn below(self, home: &Path) -> WatchPath {
        WatchPath {
            path: home.join(self.path),
            is_recursive: self.is_recursive,
        }
    }
}

impl WatchPath {
    /// A file, or a directory with its direct entries.
    #[must_use]
    pub const fn at(path: PathBuf) -> Self {
        Self {
            path,
            is_recursive: false,
        }
    }

    /// A directory with all that is below it.
    #[must_use]
    pub const fn tree(path: PathBuf) -> Self {
        Self {
            path,
            is_recursive: true,
        }
    }
}
