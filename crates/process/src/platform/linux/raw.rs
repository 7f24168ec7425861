//! Raw reads of the small files of `/proc`, relative to an open directory.

use std::ffi::{CStr, OsString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use rustix::buffer::spare_capacity;
use rustix::fs::{CWD, Mode, OFlags, RawDir, openat, readlinkat};
use rustix::io::{Errno, read};
use rustix::path::Arg;

use crate::{Absent, Field};

/// The first size of a buffer: more than any `stat` and most `status`.
const BUFFER_BYTES: usize = 8 * 1024;

/// How many reads one file may take at most; each fills what is free of a
/// buffer that doubles, so this is never reached before the bound in bytes.
const READS_MAX: usize = 4096;

/// The size of the buffer that directory entries are read into.
const LISTING_BYTES: usize = 32 * 1024;

/// Returns what a kernel error means for the value that was to be read.
///
/// A process that is gone is `ENOENT` by its path and `ESRCH` by an open file.
pub(super) fn absent(errno: Errno) -> Absent {
    match errno {
        Errno::ACCESS | Errno::PERM => Absent::PermissionDenied,
        Errno::NOENT | Errno::SRCH => Absent::Vanished,
        other => Absent::Io(other.to_string()),
    }
}

/// Opens the folder of a table, to look things up in.
pub(super) fn open_root(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(CWD, path, flags, Mode::empty())
}

/// Opens a directory to look things up in, without following a last symlink.
pub(super) fn open_dir(dir: impl AsFd, name: impl Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    openat(dir, name, flags, Mode::empty())
}

/// Opens a directory to list it.
pub(super) fn open_listing(dir: impl AsFd, name: impl Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    openat(dir, name, flags, Mode::empty())
}

/// Reads the text of a link.
pub(super) fn read_link(dir: impl AsFd, name: impl Arg) -> Result<OsString, Errno> {
    readlinkat(dir, name, Vec::new()).map(|text| OsString::from_vec(text.into_bytes()))
}

/// Reads a file into `buffer`, which is emptied first and keeps its capacity.
///
/// # Errors
///
/// [`Absent::TooLarge`] if the file has more than `bytes_max` bytes.
pub(super) fn read_file(
    dir: impl AsFd,
    name: impl Arg,
    bytes_max: usize,
    buffer: &mut Vec<u8>,
) -> Field<()> {
    let file = open_file(dir, name)?;
    read_open(&file, bytes_max, buffer, EndsBy::AnEmptyRead)
}

/// The same for a file that the kernel writes as one record (`single_open` of its
/// seq_file): it gives all that there is room for, so that one which leaves room has
/// ended, and need not be asked once more.
///
/// # Errors
///
/// As in [`read_file`].
pub(super) fn read_record(
    dir: impl AsFd,
    name: impl Arg,
    bytes_max: usize,
    buffer: &mut Vec<u8>,
) -> Field<()> {
    let file = open_file(dir, name)?;
    read_open(&file, bytes_max, buffer, EndsBy::AShortRead)
}

/// Reads at most the first `bytes_max` bytes of a file into `buffer`, and returns whether it has
/// more.
pub(super) fn read_beginning(
    dir: impl AsFd,
    name: impl Arg,
    bytes_max: usize,
    buffer: &mut Vec<u8>,
) -> Field<bool> {
    let file = open_file(dir, name)?;
    read_until(&file, bytes_max, buffer, EndsBy::AnEmptyRead)?;
    let has_more = buffer.len() > bytes_max;
    buffer.truncate(bytes_max);
    Ok(has_more)
}

fn open_file(dir: impl AsFd, name: impl Arg) -> Field<OwnedFd> {
    // O_NONBLOCK: a FIFO in a copy of a table must not block.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    openat(dir, name, flags, Mode::empty()).map_err(absent)
}

/// How a file's end shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EndsBy {
    AnEmptyRead,
    AShortRead,
}

fn read_open(file: &OwnedFd, bytes_max: usize, buffer: &mut Vec<u8>, ends_by: EndsBy) -> Field<()> {
    read_until(file, bytes_max, buffer, ends_by)?;
    if buffer.len() > bytes_max {
        buffer.clear();
        return Err(Absent::TooLarge { bytes_max });
    }
    Ok(())
}

/// Reads until the end of a file, or until there are more than `bytes_max` bytes.
fn read_until(
    file: &OwnedFd,
    bytes_max: usize,
    buffer: &mut Vec<u8>,
    ends_by: EndsBy,
) -> Field<()> {
    buffer.clear();
    buffer.reserve(BUFFER_BYTES);
    for _ in 0..READS_MAX {
        if buffer.len() == buffer.capacity() {
            buffer.reserve(buffer.len());
        }
        let room = buffer.capacity().saturating_sub(buffer.len());
        // What is not filled is never touched.
        match read(file, spare_capacity(buffer)) {
            Ok(0) => break,
            Ok(count) if count < room && ends_by == EndsBy::AShortRead => break,
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(errno) => {
                buffer.clear();
                return Err(absent(errno));
            }
        }
        if buffer.len() > bytes_max {
            break;
        }
    }
    Ok(())
}

/// How far a directory was listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Listed {
    /// To its end.
    Whole,
    /// To the bound that was given; there is more.
    Cut,
}

/// Calls `visit` with every entry of a directory that is named by a number;
/// other entries are none of ours.
///
/// # Errors
///
/// The kernel's error, also in the middle of the list.
pub(super) fn for_each_number(
    dir: &OwnedFd,
    entries_max: usize,
    mut visit: impl FnMut(&CStr, i32),
) -> Result<Listed, Errno> {
    let mut buffer = vec![MaybeUninit::uninit(); LISTING_BYTES];
    let mut entries = RawDir::new(dir, &mut buffer);
    let mut count = 0_usize;
    while let Some(entry) = entries.next() {
        let entry = entry?;
        if count >= entries_max {
            return Ok(Listed::Cut);
        }
        count = count.saturating_add(1);
        if let Some(number) = parse_entry(entry.file_name().to_bytes()) {
            visit(entry.file_name(), number);
        }
    }
    Ok(Listed::Whole)
}

/// Parses a number as the kernel names entries by it: no sign, no zero in front.
fn parse_entry(name: &[u8]) -> Option<i32> {
    let is_plain = name.iter().all(u8::is_ascii_digit) && (name == b"0" || !name.starts_with(b"0"));
    if !is_plain {
        return None;
    }
    std::str::from_utf8(name).ok()?.parse().ok()
}
