//! Looks at what lies in a directory by names alone.

use std::io;
use std::path::{Path, PathBuf};

use super::{FileFacts, Kind, Links, ReadFileError, RegularFile, open_and_look, read_whole};

/// A directory that is open.
///
/// Asking it for many of the files below it costs less than asking for each
/// by its whole path, which is walked from the root every time.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    #[cfg(target_os = "linux")]
    handle: std::os::fd::OwnedFd,
}

/// Where a file is: at a path, or at a path below an open directory.
#[derive(Debug)]
pub(super) struct Place<'a> {
    directory: Option<&'a Directory>,
    name: &'a Path,
}

impl<'a> Place<'a> {
    pub(super) const fn of(path: &'a Path) -> Self {
        Self {
            directory: None,
            name: path,
        }
    }

    /// The whole path.
    pub(super) fn path(&self) -> PathBuf {
        match self.directory {
            Some(directory) => directory.path_of(self.name),
            None => self.name.to_owned(),
        }
    }

    #[cfg(target_os = "linux")]
    pub(super) const fn name(&self) -> &'a Path {
        self.name
    }

    #[cfg(target_os = "linux")]
    pub(super) fn handle(&self) -> Option<&'a std::os::fd::OwnedFd> {
        self.directory.map(|directory| &directory.handle)
    }

    /// What lies there, looked up through the standard library by the whole path.
    pub(super) fn look_by_path(&self, links: Links) -> io::Result<(Kind, FileFacts)> {
        let metadata = match links {
            Links::Refuse => std::fs::symlink_metadata(self.path()),
            Links::Follow => std::fs::metadata(self.path()),
        }?;
        Ok((Kind::of(metadata.file_type()), FileFacts::of(&metadata)))
    }
}

/// What something in a directory is, and when it came and changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryFacts {
    /// It is a directory.
    pub is_directory: bool,
    /// It is a regular file.
    pub is_file: bool,
    /// When its content last changed, in milliseconds since 1970.
    pub modified_ms: Option<i64>,
    /// When it was created, in milliseconds since 1970; absent where the file
    /// system does not remember that.
    pub born_ms: Option<i64>,
}

impl Directory {
    /// Opens a directory; links to it are followed.
    ///
    /// # Errors
    ///
    /// The system's error if it can't be opened, or is no directory.
    pub fn open(path: &Path) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        let handle = {
            use rustix::fs::{Mode, OFlags};

            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            rustix::fs::open(path, flags, Mode::empty())?
        };
        Ok(Self {
            path: path.to_owned(),
            #[cfg(target_os = "linux")]
            handle,
        })
    }

    /// The path that it was opened by.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of what lies at `name`, a path below this directory.
    #[must_use]
    pub fn path_of(&self, name: &Path) -> PathBuf {
        // In one piece: joining two paths copies the first of them twice.
        let bytes = self.path.as_os_str().len() + 1 + name.as_os_str().len();
        let mut path = PathBuf::with_capacity(bytes);
        path.push(&self.path);
        path.push(name);
        path
    }

    /// Reads a whole regular file of at most `bytes_max` bytes at `name`, a path below
    /// this directory, as [`read_regular`](super::read_regular) does.
    ///
    /// # Errors
    ///
    /// [`ReadFileError`], which names the whole path.
    pub fn read_regular(
        &self,
        name: &Path,
        bytes_max: u64,
        links: Links,
    ) -> Result<RegularFile, ReadFileError> {
        let place = self.place(name);
        read_whole(&place, open_and_look(&place, links)?, bytes_max)
    }

    const fn place<'a>(&'a self, name: &'a Path) -> Place<'a> {
        Place {
            directory: Some(self),
            name,
        }
    }

    /// Asks for the facts of what lies at `name`, a path below this directory,
    /// without opening it.
    ///
    /// # Errors
    ///
    /// The system's error if there is nothing, or it can't be looked at.
    pub fn facts(&self, name: &Path, links: Links) -> io::Result<EntryFacts> {
        #[cfg(target_os = "linux")]
        match self.statx(name, links) {
            // Before Linux 4.11, or forbidden by a filter of system calls.
            Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => {}
            stat => return Ok(stat?),
        }
        let path = self.path_of(name);
        let metadata = match links {
            Links::Refuse => std::fs::symlink_metadata(path),
            Links::Follow => std::fs::metadata(path),
        }?;
        Ok(EntryFacts {
            is_directory: metadata.is_dir(),
            is_file: metadata.is_file(),
            modified_ms: metadata.modified().ok().and_then(super::milliseconds),
            born_ms: metadata.created().ok().and_then(super::milliseconds),
        })
    }

    #[cfg(target_os = "linux")]
    fn statx(&self, name: &Path, links: Links) -> Result<EntryFacts, rustix::io::Errno> {
        use rustix::fs::{AtFlags, FileType, StatxFlags, statx};

        let flags = match links {
            Links::Refuse => AtFlags::SYMLINK_NOFOLLOW,
            Links::Follow => AtFlags::empty(),
        };
        let asked = StatxFlags::TYPE | StatxFlags::MTIME | StatxFlags::BTIME;
        let stat = statx(&self.handle, name, flags, asked)?;
        let has = |flag: StatxFlags| stat.stx_mask & flag.bits() != 0;
        let at = |flag, at| has(flag).then(|| timestamp_ms(at)).flatten();
        let kind = FileType::from_raw_mode(stat.stx_mode.into());
        Ok(EntryFacts {
            is_directory: kind == FileType::Directory,
            is_file: kind == FileType::RegularFile,
            modified_ms: at(StatxFlags::MTIME, stat.stx_mtime),
            born_ms: at(StatxFlags::BTIME, stat.stx_btime),
        })
    }
}

/// Milliseconds since 1970, rounded towards the past.
#[cfg(target_os = "linux")]
pub(super) fn timestamp_ms(at: rustix::fs::StatxTimestamp) -> Option<i64> {
    let milliseconds = at.tv_sec.checked_mul(1000)?;
    milliseconds.checked_add(i64::from(at.tv_nsec / 1_000_000))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{Directory, Links};
    use crate::file::{FileKind, ReadFileError, facts, read_regular};

    #[test]
    fn facts_by_name_are_those_by_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/a.json");
        fs::create_dir(folder.path().join("deep")).unwrap();
        fs::write(&path, "x").unwrap();
        let directory = Directory::open(folder.path()).unwrap();
        let by_name = directory.facts("deep/a.json".as_ref(), Links::Refuse);
        let by_name = by_name.unwrap();
        let by_path = facts(&path, Links::Refuse).unwrap();
        assert!(by_name.is_file && !by_name.is_directory);
        assert_eq!(by_name.modified_ms, by_path.modified_ms);
        assert_eq!(by_name.born_ms, by_path.born_ms);
        let deep = directory.facts("deep".as_ref(), Links::Refuse).unwrap();
        assert!(deep.is_directory && !deep.is_file);
        let error = directory.facts("none".as_ref(), Links::Refuse).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    }

    #[test]
    fn a_file_is_read_by_name_as_by_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        fs::write(&path, "{}").unwrap();
        let directory = Directory::open(folder.path()).unwrap();
        let by_name = directory.read_regular("a.json".as_ref(), 10, Links::Refuse);
        let by_path = read_regular(&path, 10, Links::Refuse).unwrap();
        assert_eq!(by_name.unwrap(), by_path);
        let error = |name: &str| {
            let read = directory.read_regular(name.as_ref(), 1, Links::Refuse);
            read.unwrap_err().to_string()
        };
        let at = folder.path().display();
        assert_eq!(error("b"), format!("cannot read `{at}/b`: no such file"));
        assert!(error("a.json").contains(&format!("{at}/a.json")));
        let refused = directory.read_regular("../".as_ref(), 1, Links::Refuse);
        assert!(matches!(
            refused,
            Err(ReadFileError::NotRegular {
                kind: FileKind::Directory,
                ..
            })
        ));
    }

    #[test]
    fn only_a_directory_is_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "x").unwrap();
        assert!(Directory::open(&path).is_err() || cfg!(not(target_os = "linux")));
        assert!(
            Directory::open(&folder.path().join("none")).is_err() || cfg!(not(target_os = "linux"))
        );
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_regular_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "x").unwrap();
        std::os::unix::fs::symlink("file", folder.path().join("link")).unwrap();
        fs::create_dir(folder.path().join("deep")).unwrap();
        let directory = Directory::open(folder.path()).unwrap();
        let read = |name: &str| {
            let read = directory.read_regular(name.as_ref(), 10, Links::Refuse);
            read.unwrap_err()
        };
        for (name, kind) in [("link", FileKind::Symlink), ("deep", FileKind::Directory)] {
            let path = folder.path().join(name);
            assert_eq!(
                read(name).to_string(),
                ReadFileError::NotRegular { path, kind }.to_string()
            );
        }
        assert!(matches!(read("none"), ReadFileError::NotFound { .. }));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_followed_or_looked_at_itself() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "x").unwrap();
        std::os::unix::fs::symlink("file", folder.path().join("link")).unwrap();
        let directory = Directory::open(folder.path()).unwrap();
        let at = |links| directory.facts("link".as_ref(), links).unwrap();
        assert!(at(Links::Follow).is_file);
        assert!(!at(Links::Refuse).is_file);
    }
}
