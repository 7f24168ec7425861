//! Which directory a folder of sessions is about.
//!
//! `sessions/MD5` belongs to the directory whose path has that MD5, and
//! `sessions/KAOS_MD5` to one on another machine that kimi-cli works on
//! through its KAOS layer. `kimi.json` lists the paths.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::sources::agents::kit::document::from_object;
use crate::sources::agents::kit::hex::{hex, is_hex};
use md5::{Digest as _, Md5};
use serde_json::Value;

/// How long `kimi.json` may be.
const METADATA_BYTES_MAX: u64 = 16 << 20;
/// How many directories of it are read.
const WORK_DIRS_MAX: usize = 100_000;
/// How many characters an MD5 has.
const MD5_CHARACTERS: usize = 32;

/// What kind of folder a name below `sessions/` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FolderKind {
    /// A directory of this machine.
    Local,
    /// A directory of another machine.
    Remote,
}

impl FolderKind {
    /// Recognizes the kind by the name; `None` for other folders.
    pub(super) fn of(name: &str) -> Option<Self> {
        if is_hex(name, MD5_CHARACTERS) {
            return Some(Self::Local);
        }
        let (kaos, md5) = name.rsplit_once('_')?;
        (!kaos.is_empty() && is_hex(md5, MD5_CHARACTERS)).then_some(Self::Remote)
    }
}

/// The name of a local directory's folder; `None` if its path is not UTF-8,
/// which kimi-cli can't work in.
pub(super) fn folder_of(work_dir: &Path) -> Option<String> {
    Some(hex(Md5::digest(work_dir.to_str()?)))
}

/// Reads the local directories that `kimi.json` lists, by their folders.
///
/// # Errors
///
/// Why the file cannot be read. A missing file lists no directories.
pub(super) fn read(home: &Path) -> Result<HashMap<String, PathBuf>, String> {
    let work_dirs = from_object(&home.join("kimi.json"), METADATA_BYTES_MAX, |object| {
        let listed = object.opt_array("work_dirs")?.unwrap_or_default();
        let paths = listed.iter().take(WORK_DIRS_MAX).filter_map(local_path);
        let by_folder = paths.filter_map(|path| Some((folder_of(&path)?, path)));
        Ok(by_folder.collect())
    });
    Ok(work_dirs?.unwrap_or_default())
}

fn local_path(entry: &Value) -> Option<PathBuf> {
    let kaos = entry.get("kaos").and_then(Value::as_str);
    let path = entry.get("path").and_then(Value::as_str)?;
    matches!(kaos, None | Some("local")).then(|| PathBuf::from(path))
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_named_by_the_md5_of_the_path() {
        let folder = folder_of(Path::new("/home/dev/my_app.v1"));
        assert_eq!(folder.as_deref(), Some("467d12afc2f93d28de8215fc518a61df"));
    }

    #[test]
    fn a_folder_with_the_name_of_a_kaos_is_remote() {
        let md5 = "467d12afc2f93d28de8215fc518a61df";
        assert_eq!(FolderKind::of(md5), Some(FolderKind::Local));
        assert_eq!(
            FolderKind::of(&format!("ssh_{md5}")),
            Some(FolderKind::Remote)
        );
        assert_eq!(
            FolderKind::of(&format!("my_box_{md5}")),
            Some(FolderKind::Remote)
        );
        for other in [
            "",
            "tasks",
            "_467d12afc2f93d28de8215fc518a61df",
            &md5.to_uppercase(),
        ] {
            assert_eq!(FolderKind::of(other), None, "{other}");
        }
    }

    #[test]
    fn listed_directories_are_found_by_their_folders() -> std::io::Result<()> {
        let home = tempfile::tempdir()?;
        assert_eq!(read(home.path()), Ok(HashMap::new()));
        let text = r#"{"work_dirs":[{"path":"/home/dev/my_app.v1","kaos":"local","last_session_id":null},
            {"path":"/srv/x","kaos":"ssh"},{"kaos":"local"},7]}"#;
        std::fs::write(home.path().join("kimi.json"), text)?;
        let found = read(home.path());
        let right = HashMap::from([(
            "467d12afc2f93d28de8215fc518a61df".to_owned(),
            PathBuf::from("/home/dev/my_app.v1"),
        )]);
        assert_eq!(found, Ok(right));
        std::fs::write(home.path().join("kimi.json"), "{\"work_dirs\": 7}")?;
        let error = read(home.path()).expect_err("an error");
        assert_eq!(error, "`work_dirs` is not an array: found the number `7`");
        Ok(())
    }
}
