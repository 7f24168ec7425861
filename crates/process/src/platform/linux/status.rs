//! `/proc/PID/status`, parsed as bytes (proc_pid_status(5)).

use crate::{Absent, Field, Pid};

/// More than the kernel writes, also with hundreds of groups.
pub(super) const STATUS_BYTES_MAX: usize = 1024 * 1024;

/// PID namespaces nest 32 deep at most (pid_namespaces(7)).
const INNER_PIDS_MAX: usize = 64;

/// The text of one `status`.
///
/// Its first line is the process's name, with newlines and backslashes
/// escaped by the kernel, so no line of it can be forged by a name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Status<'a>(pub(super) &'a [u8]);

impl<'a> Status<'a> {
    /// The words of a line, if there is one of that name.
    fn line(self, name: &str) -> Option<impl Iterator<Item = &'a str>> {
        let mut lines = self.0.split(|byte| *byte == b'\n');
        let rest = lines.find_map(|line| line.strip_prefix(name.as_bytes())?.strip_prefix(b":"))?;
        Some(std::str::from_utf8(rest).ok()?.split_ascii_whitespace())
    }

    fn malformed(name: &str) -> Absent {
        Absent::Malformed(format!("`{name}` of `status`"))
    }

    /// The process that this thread belongs to. The kernel writes 0 for one that
    /// is being reaped.
    pub(super) fn process_id(self) -> Field<Pid> {
        let word = self.line("Tgid").and_then(|mut words| words.next());
        if word == Some("0") {
            return Err(Absent::Vanished);
        }
        word.and_then(|word| Pid::new(word.parse().ok()?).ok())
            .ok_or_else(|| Self::malformed("Tgid"))
    }

    /// The effective user.
    pub(super) fn effective_uid(self) -> Field<u32> {
        let words = self.line("Uid").and_then(|mut words| words.nth(1));
        words
            .and_then(|word| word.parse().ok())
            .ok_or_else(|| Self::malformed("Uid"))
    }

    /// The ids in every namespace from the table's inwards. Linux 4.1 or newer.
    pub(super) fn inner_pids(self) -> Field<Vec<Pid>> {
        let words = self.line("NSpid").ok_or(Absent::Unsupported)?;
        let pids: Option<Vec<Pid>> = words
            .take(INNER_PIDS_MAX)
            .map(|word| Pid::new(word.parse().ok()?).ok())
            .collect();
        pids.filter(|pids| !pids.is_empty())
            .ok_or_else(|| Self::malformed("NSpid"))
    }

    /// The effective capabilities, one bit each (capabilities(7)).
    pub(super) fn effective_capabilities(self) -> Field<u64> {
        self.bits("CapEff")
    }

    /// The ignored signals: the lowest bit is signal 1.
    pub(super) fn ignored_signals(self) -> Field<u64> {
        self.bits("SigIgn")
    }

    fn bits(self, name: &str) -> Field<u64> {
        let words = self.line(name).and_then(|mut words| words.next());
        words
            .and_then(|word| u64::from_str_radix(word, 16).ok())
            .ok_or_else(|| Self::malformed(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] =
        b"Name:\tno\\nTgid:\t9\nUmask:\t0022\nTgid:\t41\nPid:\t42\nUid:\t1000\t0\t5\t6\n\
        NSpid:\t42\t7\t1\nSigIgn:\t0000000000001001\nCapEff:\t000001fffeffffff\n";

    fn pid(raw: i64) -> Pid {
        Pid::new(raw).unwrap()
    }

    #[test]
    fn lines_of_a_status_are_found_by_their_whole_name() {
        let status = Status(TEXT);
        assert_eq!(status.process_id(), Ok(pid(41)));
        assert_eq!(status.effective_uid(), Ok(0));
        assert_eq!(status.inner_pids(), Ok(vec![pid(42), pid(7), pid(1)]));
        assert_eq!(status.effective_capabilities(), Ok(0x01FF_FEFF_FFFF));
        assert_eq!(status.ignored_signals(), Ok(0x1001));
    }

    #[test]
    fn a_status_without_inner_pids_comes_from_an_old_kernel() {
        assert_eq!(
            Status(b"Name:\tsh\n").inner_pids(),
            Err(Absent::Unsupported)
        );
    }

    #[test]
    fn a_process_that_is_being_reaped_has_vanished() {
        let status = Status(b"Tgid:\t0\n");
        assert_eq!(status.process_id(), Err(Absent::Vanished));
    }

    #[test]
    fn garbage_in_a_status_is_malformed() {
        let status = Status(b"Tgid:\t-4\nUid:\t5\nNSpid:\t-3 x\nCapEff:\tzz\n");
        assert!(matches!(status.process_id(), Err(Absent::Malformed(_))));
        assert!(matches!(status.effective_uid(), Err(Absent::Malformed(_))));
        assert!(matches!(status.inner_pids(), Err(Absent::Malformed(_))));
        assert!(status.effective_capabilities().is_err());
        assert!(Status(b"Tgid:\t\xFF\n").process_id().is_err());
    }
}
