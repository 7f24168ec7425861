//! When the terminal of a process was last used.
//!
//! The kernel notes a terminal's reads as accesses to its file and writes as
//! changes of it, once for each step of eight seconds, whatever the file system
//! is mounted with (`tty_update_time`, drivers/tty/tty_io.c, Linux 6.18). Not
//! every kernel that looks like Linux does: that one does so shows where a
//! terminal has other times than it was made with.

use std::os::unix::ffi::OsStrExt as _;
use std::sync::OnceLock;

use rustix::fs::{AtFlags, CWD, Stat as FileStat, major, minor, statat};

use crate::{Absent, Field, TerminalUse, Tty};

use super::open::Opened;
use super::raw::{absent, for_each_number, open_listing, read_link};

/// How long the kernel lets such a time stand, in seconds.
const STEP_SECONDS: i64 = 8;
/// Where devices are.
const DEVICES: &[u8] = b"/dev/";
/// Where terminals are listed.
const TERMINALS: &str = "/dev/pts";
/// How many of them are tried until one shows that times are noted.
const TERMINALS_MAX: usize = 256;

/// Reads when the terminal of a process was last used.
pub(super) fn read_use(opened: &Opened) -> Field<TerminalUse> {
    if let Some(reason) = opened.bodiless() {
        return Err(reason);
    }
    let tty = opened.stat.tty.ok_or(Absent::Unsupported)?;
    // Anything else may lie on a file system that does not answer. What is no link is a
    // copy of a process table.
    let shown = read_link(opened.body(), "fd/0");
    if shown.is_ok_and(|shown| !shown.as_bytes().starts_with(DEVICES)) {
        return Err(Absent::Unsupported);
    }
    let input = statat(opened.body(), "fd/0", AtFlags::empty()).map_err(absent)?;
    if !is_terminal(&input, tty) {
        return Err(Absent::Unsupported);
    }
    let is_noted = is_noted(&input) || are_noted_elsewhere();
    use_of(&input, is_noted).ok_or(Absent::Unsupported)
}

fn is_terminal(file: &FileStat, tty: Tty) -> bool {
    (major(file.st_rdev), minor(file.st_rdev)) == (tty.major, tty.minor)
}

/// The terminal has been used since it was made, and that was noted.
fn is_noted(file: &FileStat) -> bool {
    let made_at = (file.st_ctime, file.st_ctime_nsec);
    (file.st_atime, file.st_atime_nsec) > made_at || (file.st_mtime, file.st_mtime_nsec) > made_at
}

/// Some terminal shows that this kernel notes when one is used. What was shown
/// once stays true.
fn are_noted_elsewhere() -> bool {
    static ARE_NOTED: OnceLock<()> = OnceLock::new();
    if ARE_NOTED.get().is_some() {
        return true;
    }
    let Ok(terminals) = open_listing(CWD, TERMINALS) else {
        return false;
    };
    let mut are_noted = false;
    // A list that breaks off may have shown it before it did.
    let _ = for_each_number(&terminals, TERMINALS_MAX, |name, _| {
        are_noted |= statat(&terminals, name, AtFlags::empty()).is_ok_and(|file| is_noted(&file));
    });
    if are_noted {
        ARE_NOTED.get_or_init(|| ());
    }
    are_noted
}

fn use_of(terminal: &FileStat, is_noted: bool) -> Option<TerminalUse> {
    Some(TerminalUse {
        no_input_since_ms: end_of_step_ms(terminal.st_atime)?,
        no_output_since_ms: end_of_step_ms(terminal.st_mtime)?,
        is_noted,
    })
}

/// The end of the step that a time is noted for.
fn end_of_step_ms(at_seconds: i64) -> Option<i64> {
    let step = at_seconds.div_euclid(STEP_SECONDS);
    let end = step.checked_add(1)?.checked_mul(STEP_SECONDS)?;
    end.checked_mul(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terminal(read_at: i64, written_at: i64, made_at: i64) -> FileStat {
        let mut file = statat(CWD, "/dev/null", AtFlags::empty()).expect("a device");
        file.st_rdev = rustix::fs::makedev(136, 3);
        (file.st_atime, file.st_atime_nsec) = (read_at, 0);
        (file.st_mtime, file.st_mtime_nsec) = (written_at, 0);
        (file.st_ctime, file.st_ctime_nsec) = (made_at, 0);
        file
    }

    #[test]
    fn a_terminal_was_used_last_before_the_end_of_a_step() {
        let check = |at: i64, right_ms: i64| {
            assert_eq!(end_of_step_ms(at), Some(right_ms), "{at}");
        };
        check(160, 168_000);
        check(167, 168_000);
        check(168, 176_000);
        let right = TerminalUse {
            no_input_since_ms: 168_000,
            no_output_since_ms: 904_000,
            is_noted: true,
        };
        assert_eq!(use_of(&terminal(160, 900, 100), true), Some(right));
    }

    #[test]
    fn times_that_a_terminal_was_made_with_are_no_notes() {
        assert!(!is_noted(&terminal(100, 100, 100)));
        assert!(is_noted(&terminal(160, 100, 100)));
        assert!(is_noted(&terminal(100, 160, 100)));
    }

    #[test]
    fn another_file_is_not_the_terminal() {
        let tty = |minor| Tty { major: 136, minor };
        assert!(is_terminal(&terminal(1, 1, 1), tty(3)));
        assert!(!is_terminal(&terminal(1, 1, 1), tty(4)));
    }
}
