//! Paths whose changes are worth a new look.

use std::path::{Path, PathBuf};

/// A path worth watching.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WatchPath<P = PathBuf> {
    /// The directory or file.
    pub path: P,
    /// Directories below it count too.
    pub is_recursive: bool,
}

/// A path below each home of an agent, from its [`Profile`](super::Profile).
pub type Watched = WatchPath<&'static str>;

impl<P> WatchPath<P> {
    /// A file, or a directory with its direct entries.
    #[must_use]
    pub const fn at(path: P) -> Self {
        Self {
            path,
            is_recursive: false,
        }
    }

    /// A directory with all that is below it.
    #[must_use]
    pub const fn tree(path: P) -> Self {
        Self {
            path,
            is_recursive: true,
        }
    }
}

impl Watched {
    /// The path in one home.
    pub(super) fn below(self, home: &Path) -> WatchPath {
        WatchPath {
            path: home.join(self.path),
            is_recursive: self.is_recursive,
        }
    }
}
