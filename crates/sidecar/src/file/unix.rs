//! Opening files on Unix.

use std::fs::{File, FileType, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::{FileKind, Links, Numbers, ReadFileError};

pub(super) fn open(path: &Path, links: Links) -> io::Result<File> {
    // O_NONBLOCK: what became a FIFO a moment ago must not make us wait.
    // O_NOCTTY: what became a terminal must not become ours. O_CLOEXEC is set
    // by the standard library.
    let mut flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    if links == Links::Refuse {
        flags |= OFlags::NOFOLLOW;
    }
    OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
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
