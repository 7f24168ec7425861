//! When something was last typed in the terminal of a process.
//!
//! The kernel notes a terminal's reads as accesses to its file and writes as
//! changes of it, once for each step of eight seconds, whatever the file system
//! is mounted with (`tty_update_time`, drivers/tty/tty_io.c, Linux 6.18).

use rustix::fs::{AtFlags, Stat as FileStat, major, minor, statat};

use crate::{Absent, Field, Tty};

use super::open::Opened;
use super::raw::absent;

/// How long the kernel lets such a time stand, in seconds.
const STEP_SECONDS: i64 = 8;

/// Reads since when nothing was read from the terminal of a process.
pub(super) fn read_silent_since(opened: &Opened) -> Field<i64> {
    if let Some(reason) = opened.bodiless() {
        return Err(reason);
    }
    let tty = opened.stat.tty.ok_or(Absent::Unsupported)?;
    let input = statat(opened.body(), "fd/0", AtFlags::empty()).map_err(absent)?;
    silent_since_ms(&input, tty).ok_or(Absent::Unsupported)
}

/// The end of the step in which something was read from the terminal `file`;
/// `None` if it is another file, or has the times that it was made with.
fn silent_since_ms(file: &FileStat, tty: Tty) -> Option<i64> {
    let is_its = (major(file.st_rdev), minor(file.st_rdev)) == (tty.major, tty.minor);
    let read_at = (file.st_atime, file.st_atime_nsec);
    let written_at = (file.st_mtime, file.st_mtime_nsec);
    let made_at = (file.st_ctime, file.st_ctime_nsec);
    if !is_its || (read_at <= made_at && written_at <= made_at) {
        return None;
    }
    let step = file.st_atime.div_euclid(STEP_SECONDS);
    let end = step.checked_add(1)?.checked_mul(STEP_SECONDS)?;
    end.checked_mul(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terminal(read_at: i64, written_at: i64, made_at: i64) -> FileStat {
        let mut file = statat(rustix::fs::CWD, "/dev/null", AtFlags::empty()).expect("a device");
        file.st_rdev = rustix::fs::makedev(136, 3);
        (file.st_atime, file.st_atime_nsec) = (read_at, 0);
        (file.st_mtime, file.st_mtime_nsec) = (written_at, 0);
        (file.st_ctime, file.st_ctime_nsec) = (made_at, 0);
        file
    }

    const TTY: Tty = Tty {
        major: 136,
        minor: 3,
    };

    #[test]
    fn what_was_read_last_was_read_before_the_end_of_its_step() {
        let check = |read_at: i64, right_ms: i64| {
            let file = terminal(read_at, 900, 100);
            assert_eq!(silent_since_ms(&file, TTY), Some(right_ms), "{read_at}");
        };
        check(160, 168_000);
        check(167, 168_000);
        check(168, 176_000);
        // Nothing was ever read, and writes are noted: so reads would be.
        check(100, 104_000);
    }

    #[test]
    fn times_that_never_moved_and_other_files_tell_nothing() {
        assert_eq!(silent_since_ms(&terminal(100, 100, 100), TTY), None);
        let other = Tty {
            major: 136,
            minor: 4,
        };
        assert_eq!(silent_since_ms(&terminal(160, 900, 100), other), None);
    }
}
