//! Opening files where there is no Unix: the standard library alone.

use std::fs::{File, FileType, Metadata};
use std::io;
use std::path::Path;

use super::{FileFacts, FileKind, Kind, Links, Numbers, Place, ReadFileError};

pub(super) fn open(place: &Place<'_>, links: Links) -> io::Result<File> {
    match links {
        // What lies there was looked at a moment ago and is no link. A link
        // that took its place since is followed: there is no flag against it.
        Links::Refuse | Links::Follow => File::open(place.path()),
    }
}

/// What lies at a place.
pub(super) fn look_at(place: &Place<'_>, links: Links) -> io::Result<(Kind, FileFacts)> {
    place.look_by_path(links)
}

/// What is open.
pub(super) fn look_at_open(file: &File) -> io::Result<(Kind, FileFacts)> {
    let metadata = file.metadata()?;
    Ok((Kind::of(metadata.file_type()), FileFacts::of(&metadata)))
}

/// Names what made an open fail.
pub(super) fn refused(path: &Path, error: io::Error) -> ReadFileError {
    ReadFileError::from_io(path, error)
}

pub(super) fn special_kind(_: FileType) -> FileKind {
    FileKind::Other
}

#[cfg(windows)]
pub(super) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, offset)
}

#[cfg(not(windows))]
pub(super) fn read_at(mut file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    use std::io::{Read as _, Seek as _, SeekFrom};

    file.seek(SeekFrom::Start(offset))?;
    file.read(buffer)
}

pub(super) fn numbers(_: &Metadata) -> Numbers {
    Numbers {
        uid: None,
        mode: None,
        device: 0,
        inode: 0,
    }
}
