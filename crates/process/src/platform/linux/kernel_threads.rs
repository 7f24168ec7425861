//! What the kernel runs for itself: children of `kthreadd`.

use crate::Pid;

use super::look::Look;
use super::raw::read_file;

/// The process that all threads of the kernel are children of, in the kernel's first
/// PID namespace; in others an ordinary process has this PID.
const KTHREADD: i64 = 2;

/// More than so many PIDs, each with a blank, are not read.
const CHILDREN_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Lists the threads of the kernel, by PID, in one read (proc_tid_children(5)): most of
/// the processes of a small machine. `None` where the list is missing, as in a container,
/// or from a kernel without `CONFIG_PROC_CHILDREN`.
///
/// Children of `kthreadd` are also the programs that the kernel starts itself as root
/// (a handler of core dumps, `modprobe`), none of which is anybody's agent; theirs are
/// not. A PID that was listed before this and is listed here is a thread of the kernel
/// now, whatever had it then.
pub(super) fn list(look: &mut Look<'_>) -> Option<Vec<Pid>> {
    let kthreadd = Pid::new(KTHREADD).ok()?;
    let stat = look.read_stat(kthreadd).ok()?;
    if !stat.is_kernel_thread || stat.ppid.is_some() {
        return None;
    }
    let mut children = std::mem::take(&mut look.buffer);
    let path = format!("{kthreadd}/task/{kthreadd}/children");
    let read = read_file(look.root(), path, CHILDREN_BYTES_MAX, &mut children);
    let listed = read.ok().and_then(|()| parse_children(&children));
    look.buffer = children;
    let mut pids = listed?;
    pids.sort_unstable();
    Some(pids)
}

/// Parses PIDs with a blank behind each. Without its end the last one may be half a PID.
fn parse_children(text: &[u8]) -> Option<Vec<Pid>> {
    let whole = text.strip_suffix(b" ")?;
    let words = std::str::from_utf8(whole).ok()?.split(' ');
    words
        .map(|word| Pid::new(word.parse().ok()?).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_are_numbers_with_a_blank_behind_each() {
        let pids = |numbers: &[i64]| {
            let pids = numbers.iter().map(|number| Pid::new(*number).unwrap());
            Some(pids.collect::<Vec<_>>())
        };
        assert_eq!(parse_children(b"3 4 1077 "), pids(&[3, 4, 1077]));
        assert_eq!(parse_children(b"3 "), pids(&[3]));
        for wrong in ["", "3 4 10", " ", "3  4 ", "3 -4 ", "3 x "] {
            assert_eq!(parse_children(wrong.as_bytes()), None, "{wrong:?}");
        }
    }
}
