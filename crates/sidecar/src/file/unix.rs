//! Opening files on Unix.

use std::fs::{File, FileType, Metadata};
use std::io;
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, MetadataExt as _};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;

use super::{FileFacts, FileKind, Kind, Links, Numbers, Place, ReadFileError};

pub(super) fn open(place: &Place<'_>, links: Links) -> io::Result<File> {
    // O_NONBLOCK: what became a FIFO a moment ago must not make us wait.
    // O_NOCTTY: what became a terminal must not become ours.
    let mut flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    if links == Links::Refuse {
        flags |= OFlags::NOFOLLOW;
    }
    loop {
        #[cfg(target_os = "linux")]
        let opened = match place.handle() {
            Some(directory) => openat(directory, place.name(), flags, Mode::empty()),
            None => openat(CWD, place.name(), flags, Mode::empty()),
        };
        #[cfg(not(target_os = "linux"))]
        let opened = openat(CWD, place.path(), flags, Mode::empty());
        match opened {
            // open(2): a signal may interrupt it on a slow file system.
            Err(Errno::INTR) => {}
            opened => return Ok(opened?.into()),
        }
    }
}

/// What lies at a place.
pub(super) fn look_at(place: &Place<'_>, links: Links) -> io::Result<(Kind, FileFacts)> {
    #[cfg(target_os = "linux")]
    if let Some(found) = statx::look_at(place, links) {
        return Ok(found?);
    }
    place.look_by_path(links)
}

/// What is open.
pub(super) fn look_at_open(file: &File) -> io::Result<(Kind, FileFacts)> {
    #[cfg(target_os = "linux")]
    if let Some(found) = statx::look_at_open(file) {
        return Ok(found?);
    }
    let metadata = file.metadata()?;
    Ok((Kind::of(metadata.file_type()), FileFacts::of(&metadata)))
}

/// The facts of a file from one call (statx(2)); `None` before Linux 4.11, and
/// where a filter of system calls forbids it.
#[cfg(target_os = "linux")]
mod statx {
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::path::Path;

    use rustix::fs::{AtFlags, CWD, FileType, Statx, StatxFlags, makedev, statx};
    use rustix::io::Errno;

    use super::super::directory::timestamp_ms;
    use super::{FileFacts, FileKind, Kind, Links, Place};

    type Looked = Result<(Kind, FileFacts), Errno>;

    pub(super) fn look_at(place: &Place<'_>, links: Links) -> Option<Looked> {
        let flags = match links {
            Links::Refuse => AtFlags::SYMLINK_NOFOLLOW,
            Links::Follow => AtFlags::empty(),
        };
        match place.handle() {
            Some(directory) => look(directory, place.name(), flags),
            None => look(CWD, place.name(), flags),
        }
    }

    pub(super) fn look_at_open(file: &File) -> Option<Looked> {
        look(file, Path::new(""), AtFlags::EMPTY_PATH)
    }

    fn look(directory: impl AsFd, name: &Path, flags: AtFlags) -> Option<Looked> {
        let asked = StatxFlags::BASIC_STATS | StatxFlags::BTIME | StatxFlags::MNT_ID;
        match statx(directory, name, flags, asked) {
            Err(Errno::NOSYS | Errno::PERM) => None,
            found => Some(found.map(|found| (kind_of(&found), facts_of(&found)))),
        }
    }

    fn kind_of(found: &Statx) -> Kind {
        Kind(match FileType::from_raw_mode(found.stx_mode.into()) {
            FileType::RegularFile => Ok(()),
            FileType::Directory => Err(FileKind::Directory),
            FileType::Symlink => Err(FileKind::Symlink),
            FileType::Fifo => Err(FileKind::Fifo),
            FileType::Socket => Err(FileKind::Socket),
            FileType::CharacterDevice => Err(FileKind::CharacterDevice),
            FileType::BlockDevice => Err(FileKind::BlockDevice),
            FileType::Unknown => Err(FileKind::Other),
        })
    }

    fn facts_of(found: &Statx) -> FileFacts {
        let has = |flag: StatxFlags| found.stx_mask & flag.bits() != 0;
        let at = |flag, at| has(flag).then(|| timestamp_ms(at)).flatten();
        FileFacts {
            uid: Some(found.stx_uid),
            mode: Some(found.stx_mode.into()),
            device: makedev(found.stx_dev_major, found.stx_dev_minor),
            inode: found.stx_ino,
            len: found.stx_size,
            modified_ms: at(StatxFlags::MTIME, found.stx_mtime),
            born_ms: at(StatxFlags::BTIME, found.stx_btime),
            mount: has(StatxFlags::MNT_ID).then_some(found.stx_mnt_id),
        }
    }
}

/// Names what made an open fail.
pub(super) fn refused(path: &Path, error: io::Error) -> ReadFileError {
    let kind = match Errno::from_io_error(&error) {
        // open(2): ELOOP and, on the BSDs, EMLINK for a link under O_NOFOLLOW.
        Some(Errno::LOOP | Errno::MLINK) => FileKind::Symlink,
        // open(2): ENXIO for a socket, or a device that isn't there.
        Some(Errno::NXIO) => FileKind::Other,
        _ => return ReadFileError::from_io(path, error),
    };
    let path = path.to_owned();
    ReadFileError::NotRegular { path, kind }
}

pub(super) fn special_kind(file_type: FileType) -> FileKind {
    if file_type.is_fifo() {
        FileKind::Fifo
    } else if file_type.is_char_device() {
        FileKind::CharacterDevice
    } else if file_type.is_block_device() {
        FileKind::BlockDevice
    } else if file_type.is_socket() {
        FileKind::Socket
    } else {
        FileKind::Other
    }
}

pub(super) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    file.read_at(buffer, offset)
}

pub(super) fn numbers(metadata: &Metadata) -> Numbers {
    Numbers {
        uid: Some(metadata.uid()),
        mode: Some(metadata.mode()),
        device: metadata.dev(),
        inode: metadata.ino(),
    }
}
