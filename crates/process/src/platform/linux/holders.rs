//! Who holds which files: every process's descriptors, read once.

use std::collections::HashSet;
use std::ffi::CStr;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, StatxFlags, makedev, statat, statx};
use rustix::io::Errno;

use crate::{Absent, Access, Among, Field, FileId, Holder, Holders, LockKind, Pid, ProbeError};

use super::look::Look;
use super::open::Opened;
use super::raw::{Listed, absent, for_each_number, open_listing, read_record};

/// Descriptors that are looked at per process.
pub(super) const DESCRIPTORS_MAX: usize = 65_536;
/// The longest `fdinfo` that is read; a line per lock.
const FDINFO_BYTES_MAX: usize = 1024 * 1024;

const O_ACCMODE: u32 = 0o3;
const O_WRONLY: u32 = 0o1;
const O_RDWR: u32 = 0o2;

/// Finds who has `files` open.
pub(super) fn find_holders(
    look: &mut Look<'_>,
    files: &[FileId],
    among: Among<'_>,
) -> Result<Holders, ProbeError> {
    let wanted: HashSet<FileId> = files.iter().copied().collect();
    let pids = match among {
        Among::All => look.list_pids()?,
        Among::These(pids) => pids.to_vec(),
    };
    let mut holders = Holders::default();
    if wanted.is_empty() {
        return Ok(holders);
    }
    for pid in pids {
        let found = add_descriptors(look, pid, &wanted, &mut holders.found);
        match found {
            Ok(()) | Err(Absent::Vanished | Absent::Exited | Absent::KernelThread) => {}
            Err(reason) => holders.unreadable.push((pid, reason)),
        }
    }
    let by_place = |holder: &Holder| (holder.pid, holder.descriptor);
    holders.found.sort_by_key(by_place);
    holders.unreadable.sort_by_key(|(pid, _)| *pid);
    Ok(holders)
}

/// Adds the descriptors of one process that lead to a wanted file. What was
/// found before something failed is kept.
fn add_descriptors(
    look: &mut Look<'_>,
    pid: Pid,
    wanted: &HashSet<FileId>,
    found: &mut Vec<Holder>,
) -> Field<()> {
    // Most processes run, have descriptors and may be asked: then their folder
    // of descriptors is all that need be opened.
    let found_before = found.len();
    let mut buffer = std::mem::take(&mut look.buffer);
    let place = Place {
        directory: look.root(),
        prefix: format!("{pid}/"),
    };
    let walked = walk(&place, pid, wanted, found, &mut buffer);
    look.buffer = buffer;
    if matches!(walked, Ok(descriptors) if descriptors > 0) {
        return Ok(());
    }
    found.truncate(found_before);
    let opened = Opened::open(look, pid)?;
    if let Some(reason) = opened.bodiless() {
        return Err(reason);
    }
    let place = Place {
        directory: opened.body(),
        prefix: String::new(),
    };
    match walk(&place, pid, wanted, found, &mut look.buffer) {
        Ok(_) => Ok(()),
        Err(reason) => Err(opened.explain(reason, &mut look.buffer)),
    }
}

/// Where the folders of a process are.
struct Place<'a> {
    directory: BorrowedFd<'a>,
    /// What their names begin with there.
    prefix: String,
}

/// Adds the descriptors that lead to a wanted file, and returns how many there
/// are in all.
fn walk(
    place: &Place<'_>,
    pid: Pid,
    wanted: &HashSet<FileId>,
    found: &mut Vec<Holder>,
    buffer: &mut Vec<u8>,
) -> Field<usize> {
    let folder = format!("{}fd", place.prefix);
    let descriptors = open_listing(place.directory, &folder).map_err(absent)?;
    let mut failed = None;
    let mut count: usize = 0;
    let listed = for_each_number(&descriptors, DESCRIPTORS_MAX, |name, descriptor| {
        count = count.saturating_add(1);
        let holder = match read_file_id(&descriptors, name) {
            Ok(file) if wanted.contains(&file) => {
                read_holder(place, &descriptors, name, (pid, descriptor, file), buffer)
            }
            Ok(_) => return,
            Err(errno) => Err(absent(errno)),
        };
        match holder {
            Ok(holder) => found.extend(holder),
            // The descriptor was closed; that the process is gone shows elsewhere.
            Err(Absent::Vanished) => {}
            Err(reason) => failed = Some(reason),
        }
    });
    if listed.map_err(absent)? == Listed::Cut {
        return Err(Absent::TooMany {
            entries_max: DESCRIPTORS_MAX,
        });
    }
    failed.map_or(Ok(count), Err)
}

/// Reads what an open descriptor leads to, from what the kernel holds already:
/// a file on a network that does not answer must not hold us up.
pub(super) fn read_file_id(descriptors: &OwnedFd, name: &CStr) -> Result<FileId, Errno> {
    match statx(descriptors, name, AtFlags::STATX_DONT_SYNC, StatxFlags::INO) {
        Ok(file) => Ok(FileId {
            device: makedev(file.stx_dev_major, file.stx_dev_minor),
            inode: file.stx_ino,
        }),
        Err(Errno::NOSYS) => statat(descriptors, name, AtFlags::empty()).map(|file| FileId {
            device: file.st_dev,
            inode: file.st_ino,
        }),
        Err(errno) => Err(errno),
    }
}

/// Reads how a descriptor was opened and which locks it has; `None` if it led
/// to another file meanwhile, or its process, which the folder of descriptors
/// belongs to, has ended.
fn read_holder(
    place: &Place<'_>,
    descriptors: &OwnedFd,
    name: &CStr,
    (pid, descriptor, file): (Pid, i32, FileId),
    buffer: &mut Vec<u8>,
) -> Field<Option<Holder>> {
    let path = format!("{}fdinfo/{descriptor}", place.prefix);
    read_record(place.directory, path, FDINFO_BYTES_MAX, buffer)?;
    let (access, locks) = parse_fdinfo(buffer)?;
    if read_file_id(descriptors, name).map_err(absent)? != file {
        return Ok(None);
    }
    Ok(Some(Holder {
        pid,
        file,
        descriptor,
        access,
        locks,
    }))
}

/// Parses an `fdinfo` (proc_pid_fdinfo(5)).
pub(super) fn parse_fdinfo(bytes: &[u8]) -> Field<(Access, Vec<LockKind>)> {
    let mut access = None;
    let mut locks = Vec::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        if let Some(value) = line.strip_prefix(b"flags:") {
            access = parse_access(value);
        } else if let Some(value) = line.strip_prefix(b"lock:") {
            locks.extend(parse_lock(value));
        }
    }
    let access = access.ok_or_else(|| Absent::Malformed("`flags` of `fdinfo`".to_owned()))?;
    Ok((access, locks))
}

/// Parses the octal flags of open(2). `O_PATH` has the access mode 0.
fn parse_access(value: &[u8]) -> Option<Access> {
    let value = std::str::from_utf8(value.trim_ascii()).ok()?;
    let flags = u32::from_str_radix(value, 8).ok()?;
    Some(match flags & O_ACCMODE {
        O_WRONLY => Access::Write,
        O_RDWR => Access::ReadWrite,
        _ => Access::Read,
    })
}

/// Parses a lock: number, kind, mode, `READ` or `WRITE`, and who took it,
/// which is not needed: the process with the descriptor has the lock. One that is
/// waited for (`->`) is not held.
fn parse_lock(value: &[u8]) -> Option<LockKind> {
    let words = std::str::from_utf8(value).ok()?;
    let mut words = words.split_ascii_whitespace().skip(1);
    let kind = words.next()?;
    let is_exclusive = words.nth(1) == Some("WRITE");
    match kind {
        "->" => None,
        "FLOCK" => Some(LockKind::Flock { is_exclusive }),
        "POSIX" | "OFDLCK" => Some(LockKind::Record { is_exclusive }),
        _ => Some(LockKind::Other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, access: Access, locks: &[LockKind]) {
        let parsed = parse_fdinfo(text.as_bytes());
        assert_eq!(parsed, Ok((access, locks.to_vec())), "{text}");
    }

    #[test]
    fn access_is_read_from_the_octal_flags() {
        check("pos:\t0\nflags:\t0100000\nmnt_id:\t29\n", Access::Read, &[]);
        check("flags:\t0102001\n", Access::Write, &[]);
        check("flags:\t02100002\n", Access::ReadWrite, &[]);
        check("flags:\t012000000\n", Access::Read, &[]);
    }

    #[test]
    fn locks_are_read_with_their_kind_and_mode() {
        let text = "pos:\t0\nflags:\t0100002\nmnt_id:\t29\nino:\t7\n\
            lock:\t1: FLOCK  ADVISORY  WRITE 4711 00:2a:7 0 EOF\n\
            lock:\t2: POSIX  ADVISORY  READ 4711 00:2a:7 0 9\n\
            lock:\t3: OFDLCK ADVISORY  WRITE -1 00:2a:7 0 EOF\n\
            lock:\t4: LEASE  ACTIVE    WRITE 4711 00:2a:7 0 EOF\n\
            lock:\t5: -> FLOCK  ADVISORY  WRITE 4712 00:2a:7 0 EOF\n";
        let flock = LockKind::Flock { is_exclusive: true };
        let read = LockKind::Record {
            is_exclusive: false,
        };
        let open_file = LockKind::Record { is_exclusive: true };
        let expected = [flock, read, open_file, LockKind::Other];
        check(text, Access::ReadWrite, &expected);
    }

    #[test]
    fn an_fdinfo_without_flags_is_malformed() {
        for text in [&b""[..], b"flags:\t\n", b"flags:\t9\n", b"flags:\t\xFF\n"] {
            assert!(matches!(parse_fdinfo(text), Err(Absent::Malformed(_))));
        }
    }
}
