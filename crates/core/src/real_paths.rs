//! Where directories really are, for comparing what agents wrote with what the kernel
//! says.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::mounts::Mounts;

/// Where the directories really are that were looked for so far.
#[derive(Debug, Clone, Default)]
pub struct RealPaths {
    /// By what was written: as bytes, which are compared faster than paths are.
    known: HashMap<OsString, PathBuf>,
}

impl RealPaths {
    /// Looks where a directory really is, unless that is known.
    pub fn find(&mut self, mounts: &Mounts, directory: &Path) {
        let written = directory.as_os_str();
        if !self.known.contains_key(written) {
            let real = mounts.real_path(directory);
            self.known.insert(written.to_owned(), real);
        }
    }

    /// Where a directory really is; `None` if nobody looked.
    #[must_use]
    pub fn of(&self, directory: &Path) -> Option<&Path> {
        let known = self.known.get(directory.as_os_str());
        known.map(PathBuf::as_path)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::RealPaths;
    use crate::mounts::Mounts;

    #[cfg(unix)]
    #[test]
    fn what_leads_to_one_directory_has_the_same_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        std::fs::create_dir(real.join("app")).unwrap();
        std::os::unix::fs::symlink("app", real.join("link")).unwrap();
        let mounts = Mounts::of_this_machine();
        let mut paths = RealPaths::default();
        let at = |name: &str| real.join(name);
        for written in ["app", "link", "./app/", "gone", "gone/", "./gone//"] {
            assert_eq!(paths.of(&at(written)), None);
            paths.find(&mounts, &at(written));
        }
        let bytes = |name: &str| paths.of(&at(name)).map(Path::as_os_str);
        for written in ["app", "link", "./app/"] {
            assert_eq!(bytes(written), Some(at("app").as_os_str()));
        }
        for written in ["gone", "gone/", "./gone//"] {
            assert_eq!(bytes(written), Some(at("gone").as_os_str()));
        }
    }
}
