//! The folders of a home that hold the chats of one project each:
//! `tmp/SLUG/`, where `SLUG` is made of the directory's name.
//!
//! `projects.json` maps directories to slugs, and `.project_root` in the folder names the
//! directory. Both name the directory's real path, even if the shell came there by a link,
//! and the folder of one real path is never used for another: a project that has been moved,
//! with a link in its old place, has a new folder. Seen in Gemini CLI 0.61.0, 2026-11.
//!
//! The mark file has no visible end: a full disk or a torn write leaves the path of a parent
//! directory, or of none. So if the list has a longer path, that path counts, and without
//! the list the rest may be the prefix of any path.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use whosup_sidecar::file::Links;

use crate::sources::agents::kit::document::parse_document;
use crate::sources::agents::kit::hex::hex;
use crate::sources::agents::kit::reading::read_if_there;

/// How long `projects.json` may be.
const PROJECTS_BYTES_MAX: u64 = 16 << 20;
/// How long a path in `.project_root` may be (`PATH_MAX` and some more).
const ROOT_BYTES_MAX: u64 = 8 * 1024;

/// One project's folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Project {
    /// The folder, below `tmp`.
    pub(super) folder: PathBuf,
    /// The directory that it is about.
    pub(super) root: Option<PathBuf>,
}

impl Project {
    pub(super) fn chats(&self) -> PathBuf {
        self.folder.join("chats")
    }

    pub(super) fn prompts(&self) -> PathBuf {
        self.folder.join("logs.json")
    }

    /// The folder `slug` of the home at `home`, with the directory that its own
    /// mark names, else `root`.
    ///
    /// # Errors
    ///
    /// Why the mark can't be read.
    pub(super) fn at(home: &Path, slug: &str, root: Option<&Path>) -> Result<Self, String> {
        let folder = folders_in(home).join(slug);
        let marked = read_root(&folder.join(".project_root"))?;
        let is_torn = |marked: &Path| root.is_some_and(|root| is_beginning_of(marked, root));
        let marked = marked.filter(|marked| !is_torn(marked));
        Ok(Self {
            root: marked.or_else(|| root.map(Path::to_owned)),
            folder,
        })
    }

    /// The folder may belong to `work_dir`, if the mark is torn.
    pub(super) fn may_be_of(&self, work_dir: &Path) -> bool {
        let root = self.root.as_deref();
        root.is_none_or(|root| is_beginning_of(root, work_dir))
    }
}

/// Where the folders of a home are.
pub(super) fn folders_in(home: &Path) -> PathBuf {
    home.join("tmp")
}

/// The folder of a directory in releases before 0.30, and in later releases until it is
/// moved: the hash of its path.
pub(super) fn hashed_slug(root: &Path) -> Option<String> {
    Some(hex(Sha256::digest(root.to_str()?.as_bytes())))
}

/// Reads `projects.json`: which slug a directory has. None is the same as an
/// empty one.
pub(super) fn read_slugs(path: &Path) -> Result<BTreeMap<PathBuf, String>, String> {
    let Some(file) = read_if_there(path, PROJECTS_BYTES_MAX, Links::Follow)? else {
        return Ok(BTreeMap::new());
    };
    let value: Value = parse_document(&file.bytes)?;
    let projects = value.get("projects").and_then(Value::as_object);
    let projects = projects.ok_or("it has no object `projects`")?;
    let slugs = projects.iter().filter_map(|(root, slug)| {
        let slug = slug.as_str().filter(|slug| is_slug(slug))?;
        Some((PathBuf::from(root), slug.to_owned()))
    });
    Ok(slugs.collect())
}

/// A name that is one folder's: small letters, digits and hyphens.
pub(super) fn is_slug(text: &str) -> bool {
    let is_of_slug = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty() && text.chars().all(is_of_slug)
}

/// The rest of a longer path after a part was lost.
fn is_beginning_of(torn: &Path, path: &Path) -> bool {
    let (torn, path) = (torn.as_os_str(), path.as_os_str());
    torn != path && path.as_encoded_bytes().starts_with(torn.as_encoded_bytes())
}

fn read_root(path: &Path) -> Result<Option<PathBuf>, String> {
    let Some(file) = read_if_there(path, ROOT_BYTES_MAX, Links::Follow)? else {
        return Ok(None);
    };
    let text = String::from_utf8(file.bytes).map_err(|_| "it is not valid UTF-8".to_owned())?;
    let root = PathBuf::from(text.trim());
    Ok((root.is_absolute() && !text.contains('\0')).then_some(root))
}

#[cfg(all(test, unix))]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_read_and_only_names_of_one_folder_count() -> std::io::Result<()> {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("projects.json");
        assert_eq!(read_slugs(&path), Ok(BTreeMap::new()));
        std::fs::write(
            &path,
            r#"{"projects":{"/w/a":"a-1","/w/b":"../b","/w/c":7}}"#,
        )?;
        let right = BTreeMap::from([(PathBuf::from("/w/a"), "a-1".to_owned())]);
        assert_eq!(read_slugs(&path), Ok(right));
        for bad in ["{", "[]", "{}"] {
            std::fs::write(&path, bad)?;
            assert!(read_slugs(&path).is_err(), "{bad}");
        }
        Ok(())
    }

    #[test]
    fn a_folders_own_mark_outweighs_the_list() -> std::io::Result<()> {
        let home = tempfile::tempdir()?;
        let folder = home.path().join("tmp/a");
        std::fs::create_dir_all(&folder)?;
        let listed = Some(Path::new("/w/a"));
        let project = Project::at(home.path(), "a", listed).unwrap();
        assert_eq!(project.root.as_deref(), listed);
        std::fs::write(folder.join(".project_root"), "/w/other\n")?;
        let project = Project::at(home.path(), "a", listed).unwrap();
        assert_eq!(project.root.as_deref(), Some(Path::new("/w/other")));
        for torn in ["/w/", "/", "", "/w/a\0\0"] {
            std::fs::write(folder.join(".project_root"), torn)?;
            let project = Project::at(home.path(), "a", listed).unwrap();
            assert_eq!(project.root.as_deref(), listed, "{torn}");
            let unlisted = Project::at(home.path(), "a", None).unwrap();
            assert!(unlisted.may_be_of(Path::new("/w/a")), "{torn}");
        }
        std::fs::write(folder.join(".project_root"), "/w/other\n")?;
        let project = Project::at(home.path(), "a", None).unwrap();
        assert!(!project.may_be_of(Path::new("/w/other")));
        assert!(!project.may_be_of(Path::new("/w/app")));
        std::fs::rename(folder.join(".project_root"), home.path().join("mark"))?;
        std::os::unix::fs::symlink("../../mark", folder.join(".project_root"))?;
        let project = Project::at(home.path(), "a", listed).unwrap();
        assert_eq!(project.root.as_deref(), Some(Path::new("/w/other")));
        std::fs::write(folder.join(".project_root"), "relative")?;
        assert_eq!(Project::at(home.path(), "a", None).unwrap().root, None);
        Ok(())
    }
}
