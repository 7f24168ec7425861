//! `/proc/PID/stat`, parsed as bytes (proc_pid_stat(5)).

use crate::{Absent, Field, Pid, Process, RunState, StartStamp, Tty};

use super::clock::Clock;

/// More than the kernel writes: 52 numbers and a name.
pub(super) const STAT_BYTES_MAX: usize = 16 * 1024;

/// Marks a thread of the kernel in field 9 (`PF_KTHREAD`, include/linux/sched.h).
const KERNEL_THREAD_FLAG: u64 = 0x0020_0000;
/// Marks a task that was forked and has executed no program since (`PF_FORKNOEXEC`).
const FORK_FLAG: u64 = 0x0000_0040;
/// Marks a task that is on its way out (`PF_EXITING`).
const EXITING_FLAG: u64 = 0x0000_0004;

/// The index of field 3, the first one after the name.
const FIRST_FIELD: usize = 3;
/// Fields that are kept at most; the kernel writes 52.
const FIELDS_MAX: usize = 64;

/// What is needed of one `stat`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) pid: Pid,
    pub(super) comm: Vec<u8>,
    pub(super) run_state: RunState,
    pub(super) ppid: Option<Pid>,
    pub(super) process_group: i32,
    pub(super) unix_session: i32,
    pub(super) tty: Option<Tty>,
    pub(super) foreground_group: i32,
    pub(super) is_kernel_thread: bool,
    is_fork: bool,
    has_exiting_flag: bool,
    pub(super) threads: u32,
    pub(super) start_ticks: u64,
    /// Resident memory (field 24, there in pages).
    rss_bytes: Field<u64>,
    /// Processor time in user and kernel mode (fields 14 and 15), in ticks.
    cpu_ticks: Field<u64>,
    /// Where its arguments are in memory; `None` if we may not know.
    pub(super) arguments: Option<Span>,
    /// Where its environment is in memory; `None` if we may not know.
    pub(super) environment: Option<Span>,
    /// How it ended, as `wait` reports it (field 52); 0 too if we may not know.
    pub(super) wait_status: Field<i32>,
}

/// A region of a process's memory. The kernel puts it at another place,
/// mostly by chance, whenever the process executes a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    start: u64,
    pub(super) bytes: u64,
}

impl Stat {
    pub(super) fn stamp(&self) -> StartStamp {
        StartStamp::LinuxTicks(self.start_ticks)
    }

    /// It has exited, or is about to and has lost its memory and files.
    pub(super) const fn is_exiting(&self) -> bool {
        self.run_state.is_exited() || self.has_exiting_flag
    }

    fn rss_bytes(&self) -> Field<u64> {
        if self.is_kernel_thread {
            return Err(Absent::KernelThread);
        }
        if self.run_state.is_exited() {
            return Err(Absent::Exited);
        }
        self.rss_bytes.clone()
    }

    /// The process that it describes; whether a zombie has exited is for the
    /// caller to decide.
    pub(super) fn into_process(self, clock: &Clock) -> Process {
        Process {
            pid: self.pid,
            ppid: self.ppid,
            run_state: self.run_state,
            is_exited: false,
            is_kernel_thread: self.is_kernel_thread,
            is_fork: self.is_fork,
            threads: self.threads,
            stamp: self.stamp(),
            began_at_ms: clock.began_at_ms(self.start_ticks),
            rss_bytes: self.rss_bytes(),
            cpu_ms: self
                .cpu_ticks
                .and_then(|ticks| clock.milliseconds_of(ticks)),
            tty: self.tty,
            process_group: self.process_group,
            unix_session: self.unix_session,
            foreground_group: self.foreground_group,
            comm: self.comm,
        }
    }
}

/// Parses a `stat`.
///
/// The name (field 2) is in parentheses and may hold any byte but NUL, `)` and
/// newlines included, so fields are counted from the *last* `)`: all that
/// follow are numbers and one letter.
///
/// # Errors
///
/// [`Absent::Malformed`] naming the first field that is not as documented.
pub(super) fn parse_stat(bytes: &[u8]) -> Field<Stat> {
    // Without its end the last number may be half a number.
    let bytes = bytes.strip_suffix(b"\n").ok_or_else(|| malformed("end"))?;
    let (pid, comm, rest) = split_name(bytes).ok_or_else(|| malformed("name"))?;
    let mut fields: [&[u8]; FIELDS_MAX] = [b""; FIELDS_MAX];
    let words = rest.trim_ascii_start().split(|byte| *byte == b' ');
    for (slot, word) in fields.iter_mut().skip(FIRST_FIELD).zip(words) {
        *slot = word;
    }
    let number = |index: usize| field_number(&fields, index);
    let small = |index: usize| {
        let value = number(index)?;
        i32::try_from(value).map_err(|_| malformed(&format!("field {index}")))
    };
    let letter = match fields[FIRST_FIELD] {
        [letter] => *letter,
        _ => return Err(malformed("field 3")),
    };
    let flags = u64::try_from(number(9)?).map_err(|_| malformed("field 9"))?;
    Ok(Stat {
        pid,
        comm: comm.to_vec(),
        run_state: parse_run_state(letter),
        ppid: Pid::new(number(4)?.try_into().unwrap_or(0)).ok(),
        process_group: small(5)?,
        unix_session: small(6)?,
        tty: parse_tty(small(7)?),
        foreground_group: small(8)?,
        is_kernel_thread: flags & KERNEL_THREAD_FLAG != 0,
        is_fork: flags & FORK_FLAG != 0,
        has_exiting_flag: flags & EXITING_FLAG != 0,
        threads: u32::try_from(number(20)?).map_err(|_| malformed("field 20"))?,
        start_ticks: u64::try_from(number(22)?).map_err(|_| malformed("field 22"))?,
        rss_bytes: parse_rss_bytes(&fields),
        cpu_ticks: parse_cpu_ticks(&fields),
        arguments: parse_span(&fields, 48),
        environment: parse_span(&fields, 50),
        wait_status: small(52),
    })
}

/// Splits a `stat` into the PID, the name and what follows the name.
fn split_name(bytes: &[u8]) -> Option<(Pid, &[u8], &[u8])> {
    let opening = bytes.iter().position(|byte| *byte == b'(')?;
    let closing = bytes.iter().rposition(|byte| *byte == b')')?;
    let comm = bytes.get(opening.checked_add(1)?..closing)?;
    let rest = bytes.get(closing.checked_add(1)?..)?;
    let pid = parse_number(bytes.get(..opening)?.trim_ascii())?;
    let pid = Pid::new(i64::try_from(pid).ok()?).ok()?;
    Some((pid, comm, rest))
}

fn field_number(fields: &[&[u8]; FIELDS_MAX], index: usize) -> Field<i128> {
    let word = fields.get(index).copied().unwrap_or_default();
    parse_number(word).ok_or_else(|| malformed(&format!("field {index}")))
}

/// So many digits are a number of 64 bits, whatever they are.
const SHORT_DIGITS: usize = 18;

/// Parses a decimal number: digits, with a minus before them or not.
fn parse_number(word: &[u8]) -> Option<i128> {
    let digits = word.strip_prefix(b"-").unwrap_or(word);
    if digits.is_empty() || digits.len() > 20 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    if digits.len() > SHORT_DIGITS {
        return std::str::from_utf8(word).ok()?.parse().ok();
    }
    let next = |number: i64, digit: &u8| number * 10 + i64::from(digit - b'0');
    let number = i128::from(digits.iter().fold(0, next));
    Some(if digits.len() < word.len() {
        -number
    } else {
        number
    })
}

const fn parse_run_state(letter: u8) -> RunState {
    match letter {
        b'R' => RunState::Running,
        b'S' | b'I' => RunState::Sleeping,
        b'D' => RunState::DiskSleep,
        b'T' | b't' => RunState::Stopped,
        b'Z' => RunState::Zombie,
        b'X' | b'x' => RunState::Dead,
        other => RunState::Other(other),
    }
}

/// Splits a device number as the kernel packs it in field 7: minor in bits 31
/// to 20 and 7 to 0, major in bits 19 to 8. Zero is no terminal.
const fn parse_tty(packed: i32) -> Option<Tty> {
    if packed == 0 {
        return None;
    }
    let packed = packed.cast_unsigned();
    Some(Tty {
        major: (packed >> 8) & 0xFFF,
        minor: (packed & 0xFF) | ((packed >> 12) & 0xF_FF00),
    })
}

/// A region of memory whose bounds are the field `first` and the next one;
/// they are zero where we may not know, and before they are set.
fn parse_span(fields: &[&[u8]; FIELDS_MAX], first: usize) -> Option<Span> {
    let start = u64::try_from(field_number(fields, first).ok()?).ok()?;
    let end = u64::try_from(field_number(fields, first.checked_add(1)?).ok()?).ok()?;
    let bytes = end.checked_sub(start)?;
    (start != 0).then_some(Span { start, bytes })
}

/// Field 24, in pages.
fn parse_rss_bytes(fields: &[&[u8]; FIELDS_MAX]) -> Field<u64> {
    let pages = u64::try_from(field_number(fields, 24)?).ok();
    let page_bytes = u64::try_from(rustix::param::page_size()).ok();
    pages
        .zip(page_bytes)
        .and_then(|(pages, page_bytes)| pages.checked_mul(page_bytes))
        .ok_or_else(|| malformed("field 24"))
}

/// Fields 14 and 15: what it ran itself, in user and in kernel mode.
fn parse_cpu_ticks(fields: &[&[u8]; FIELDS_MAX]) -> Field<u64> {
    let user = u64::try_from(field_number(fields, 14)?).ok();
    let kernel = u64::try_from(field_number(fields, 15)?).ok();
    user.zip(kernel)
        .and_then(|(user, kernel)| user.checked_add(kernel))
        .ok_or_else(|| malformed("fields 14 and 15"))
}

fn malformed(what: &str) -> Absent {
    Absent::Malformed(format!("{what} of `stat`"))
}

#[cfg(test)]
mod tests;
