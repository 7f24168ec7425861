//! Reads what `stat` does not contain.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, Stat as FileStat, statat};

use crate::{Absent, Details, ExitStatus, Field, Pid, PidNamespace, ProbeError, Process};

use super::Proc;
use super::argv::{CommandLine, parse_command_line};
use super::look::Look;
use super::mount::may_hang_at;
use super::open::Opened;
use super::raw::{absent, read_beginning, read_file, read_link, read_record};
use super::status::{STATUS_BYTES_MAX, Status};
use super::terminal;
use super::view::MOUNTINFO_BYTES_MAX;

/// How much of a command line is read.
const ARGV_BYTES_MAX: usize = 256 * 1024;

/// More than the kernel writes to `io`: seven numbers with their names.
const IO_BYTES_MAX: usize = 4096;

/// How often things are read anew while a process executes another program.
const READS_MAX: usize = 4;
/// How long it is waited for after that, in milliseconds: on a busy machine a process may
/// be stopped while the kernel makes it ready.
const READY_MS_MAX: usize = 20;

/// Tries to read what a process lacks while it executes another program: a few at once,
/// then one each millisecond.
pub(super) fn tries() -> impl Iterator<Item = usize> {
    (0..READS_MAX + READY_MS_MAX).inspect(|at| {
        if *at >= READS_MAX {
            std::thread::sleep(Duration::from_millis(1));
        }
    })
}

/// What the kernel writes behind the path of a file that is no longer there.
const DELETED_MARK: &[u8] = b" (deleted)";

/// Reads the details of `process`; each absent field has its own reason.
pub(super) fn read_details(table: &Proc, process: &Process) -> Details {
    let mut look = match Look::open(table) {
        Ok(look) => look,
        Err(error) => return Details::absent(not_opened(&error)),
    };
    let opened = match Opened::open_same(&mut look, process) {
        Ok(opened) => opened,
        Err(reason) => return Details::absent(reason),
    };
    let own_mounts = read_mount_namespace(look.root(), "self/ns/mnt");
    let mut details = read_settled(&opened, &own_mounts, &mut look.buffer);
    if !opened.is_same(&mut look) {
        details = Details::absent(Absent::Vanished);
    }
    details
}

/// Reads the ids of `process` in every namespace, and nothing else.
pub(super) fn read_inner_pids(table: &Proc, process: &Process) -> Field<Vec<Pid>> {
    let mut look = Look::open(table).map_err(|error| not_opened(&error))?;
    let opened = Opened::open_same(&mut look, process)?;
    let read = read_record(opened.dir(), "status", STATUS_BYTES_MAX, &mut look.buffer)
        .and_then(|()| Status(&look.buffer).inner_pids())
        .map_err(|reason| opened.explain(reason, &mut look.buffer))?;
    if !opened.is_same(&mut look) {
        return Err(Absent::Vanished);
    }
    Ok(read)
}

/// Reads the path of the program that `process` executes, and nothing else: one link.
pub(super) fn read_executable(table: &Proc, process: &Process) -> Field<PathBuf> {
    let link = table.root().join(process.pid.to_string()).join("exe");
    read_link(CWD, &link).map(PathBuf::from).map_err(absent)
}

/// Reads how `process` ended; `None` if it has not.
pub(super) fn read_exit_status(table: &Proc, process: &Process) -> Field<Option<ExitStatus>> {
    let mut look = Look::open(table).map_err(|error| not_opened(&error))?;
    let opened = Opened::open_same(&mut look, process)?;
    if opened.bodiless() != Some(Absent::Exited) {
        return Ok(None);
    }
    let status = opened.stat.wait_status.clone()?;
    if status == 0 {
        // The kernel also reports 0 to readers without permission. They cannot read
        // this file either (the same check, proc_pid_io(5)).
        read_file(opened.dir(), "io", IO_BYTES_MAX, &mut look.buffer)
            .map_err(|_| Absent::PermissionDenied)?;
    }
    let ended = ExitStatus::of_wait(status);
    ended
        .map(Some)
        .ok_or_else(|| Absent::Malformed("field 52".to_owned()))
}

/// Why nothing could be read where a table could not be opened. That is no
/// fact about a process.
pub(super) fn not_opened(error: &ProbeError) -> Absent {
    match error {
        ProbeError::File { reason, .. } => reason.clone(),
        _ => Absent::Unsupported,
    }
}

/// Reads everything between two looks at where its arguments are that agree,
/// so that a process in the middle of `execve` is not read as half of each program.
fn read_settled(opened: &Opened, own_mounts: &Field<u64>, buffer: &mut Vec<u8>) -> Details {
    let mut before = opened.body_stat().arguments;
    for _ in 0..READS_MAX {
        let details = read_opened(opened, own_mounts, buffer);
        let after = match opened.read_body_stat(buffer) {
            Ok(stat) if !stat.is_exiting() => stat.arguments,
            _ => return details,
        };
        if before == after {
            return details;
        }
        before = after;
    }
    Details::absent(Absent::Io(
        "the process executes one program after another".to_owned(),
    ))
}

fn read_opened(opened: &Opened, own_mounts: &Field<u64>, buffer: &mut Vec<u8>) -> Details {
    let bodily = opened.bodiless().map_or(Ok(()), Err);
    let exe = bodily.clone().and_then(|()| read_path(opened, "exe"));
    let command_line = bodily
        .clone()
        .and_then(|()| read_command_line(opened, buffer));
    let is_argv_cut = command_line.as_ref().is_ok_and(|line| line.is_cut);
    let (argv, title) = match command_line {
        Ok(line) => (Ok(line.argv), Ok(line.title)),
        Err(reason) => (Err(reason.clone()), Err(reason)),
    };
    let cwd = bodily.and_then(|()| read_path(opened, "cwd"));
    let status = read_record(opened.dir(), "status", STATUS_BYTES_MAX, buffer);
    let uid = status.clone().and_then(|()| Status(buffer).effective_uid());
    let inner_pids = status.and_then(|()| Status(buffer).inner_pids());
    let mut explain = |reason| opened.explain(reason, buffer);
    Details {
        argv: argv.map_err(&mut explain),
        is_argv_cut,
        title: title.map_err(&mut explain),
        is_exe_deleted: exe.as_ref().is_ok_and(|link| link.is_deleted),
        exe: exe.map(|link| link.path).map_err(&mut explain),
        cwd: cwd.map(|link| link.path).map_err(&mut explain),
        uid: uid.map_err(&mut explain),
        inner_pids: inner_pids.map_err(&mut explain),
        pid_namespace: read_pid_namespace(opened.dir()).map_err(&mut explain),
        shares_mounts: read_mount_namespace(opened.dir(), "ns/mnt")
            .and_then(|theirs| Ok(theirs == own_mounts.clone()?))
            .map_err(&mut explain),
        terminal_use: terminal::read_use(opened).map_err(&mut explain),
    }
}

/// Reads the arguments. Two cases need a second look: a process that is just
/// executing a program has no arguments for a moment, and one text alone is a
/// title if it has not the size of the arguments, which another read shows.
fn read_command_line(opened: &Opened, buffer: &mut Vec<u8>) -> Field<CommandLine> {
    for _ in tries() {
        if read_beginning(opened.body(), "cmdline", ARGV_BYTES_MAX, buffer)? {
            return beginning_of(buffer);
        }
        let line = parse_command_line(buffer, None);
        if line.argv.len() > 1 || line.title.is_some() {
            return Ok(line);
        }
        let text = buffer.clone();
        let stat = opened.read_body_stat(buffer)?;
        if stat.is_exiting() {
            return Err(Absent::Exited);
        }
        if text.is_empty() && stat.arguments.is_some_and(|span| span.bytes == 0) {
            return Ok(line);
        }
        read_file(opened.body(), "cmdline", ARGV_BYTES_MAX, buffer)?;
        if !text.is_empty() && *buffer == text {
            return Ok(parse_command_line(
                &text,
                stat.arguments.map(|span| span.bytes),
            ));
        }
    }
    Err(Absent::Unsupported)
}

/// The whole arguments at the beginning of a long command line: of the last one, a part may be
/// missing.
fn beginning_of(buffer: &mut Vec<u8>) -> Field<CommandLine> {
    let whole = buffer.iter().rposition(|byte| *byte == 0);
    let whole = whole.ok_or(Absent::TooLarge {
        bytes_max: ARGV_BYTES_MAX,
    })?;
    buffer.truncate(whole.saturating_add(1));
    Ok(CommandLine {
        is_cut: true,
        ..parse_command_line(buffer, None)
    })
}

/// Reads the PID namespace of a process: the link `ns/pid`, `pid:[4026531836]`.
pub(super) fn read_pid_namespace(dir: BorrowedFd<'_>) -> Field<PidNamespace> {
    let link = read_link(dir, "ns/pid").map_err(absent)?;
    parse_namespace(&link, "pid").map(PidNamespace)
}

/// Reads a link to a mount namespace, `mnt:[4026531841]`.
fn read_mount_namespace(dir: BorrowedFd<'_>, name: &str) -> Field<u64> {
    let link = read_link(dir, name).map_err(absent)?;
    parse_namespace(&link, "mnt")
}

/// Parses the text of a link to a namespace (namespaces(7)).
pub(super) fn parse_namespace(link: &OsStr, kind: &str) -> Field<u64> {
    let text = link.to_str().and_then(|text| text.strip_prefix(kind));
    text.and_then(|text| text.strip_prefix(":[")?.strip_suffix(']')?.parse().ok())
        .ok_or_else(|| Absent::Malformed(format!("link `ns/{kind}`")))
}

/// Returns whether a path lies on a file system that may not answer, for the process or
/// for us.
fn may_hang(body: BorrowedFd<'_>, path: &OsStr) -> bool {
    let mut mountinfo = Vec::new();
    let theirs = read_file(body, "mountinfo", MOUNTINFO_BYTES_MAX, &mut mountinfo);
    if theirs.is_ok() && may_hang_at(&mountinfo, path.as_bytes()) {
        return true;
    }
    let ours = read_file(
        CWD,
        "/proc/self/mountinfo",
        MOUNTINFO_BYTES_MAX,
        &mut mountinfo,
    );
    ours.is_ok() && may_hang_at(&mountinfo, path.as_bytes())
}

/// The path that a link shows, without the kernel's mark.
#[derive(Debug, PartialEq, Eq)]
struct Linked {
    path: PathBuf,
    is_deleted: bool,
}

/// Reads `exe` or `cwd`. Their text is for people; what they lead to is the file itself.
fn read_path(opened: &Opened, name: &str) -> Field<Linked> {
    let body = opened.body();
    let text = read_link(body, name).map_err(absent)?;
    let unmarked = text.as_bytes().strip_suffix(DELETED_MARK);
    let Some(unmarked) = unmarked.filter(|path| !path.is_empty()) else {
        return Ok(Linked {
            path: PathBuf::from(text),
            is_deleted: false,
        });
    };
    if is_mark(body, name, &text) {
        return Ok(Linked {
            path: PathBuf::from(OsString::from_vec(unmarked.to_vec())),
            is_deleted: true,
        });
    }
    Ok(Linked {
        path: PathBuf::from(text),
        is_deleted: false,
    })
}

/// Returns whether the ` (deleted)` behind a path is the kernel's, or the end of
/// a name: no name leads to a deleted file, and the name with it, if it is the
/// kernel's, leads to another file or none, by our root and by the process's.
///
/// What it leads to is not asked for where that may never be answered.
fn is_mark(body: BorrowedFd<'_>, name: &str, text: &OsStr) -> bool {
    if may_hang(body, text) {
        return false;
    }
    let Ok(file) = statat(body, name, AtFlags::empty()) else {
        return false;
    };
    if file.st_nlink == 0 {
        return true;
    }
    let is_file = |found: &FileStat| (found.st_dev, found.st_ino) == (file.st_dev, file.st_ino);
    let by_our_root = statat(CWD, text, AtFlags::empty());
    let mut theirs = b"root".to_vec();
    theirs.extend_from_slice(text.as_bytes());
    let by_their_root = statat(
        body.as_fd(),
        Path::new(OsStr::from_bytes(&theirs)),
        AtFlags::empty(),
    );
    let leads_elsewhere = |found: &Result<FileStat, rustix::io::Errno>| match found {
        Ok(found) => !is_file(found),
        Err(errno) => matches!(*errno, rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR),
    };
    leads_elsewhere(&by_our_root) && leads_elsewhere(&by_their_root)
}
