//! How `/proc` is mounted (proc_pid_mountinfo(5)).

use crate::{Absent, Field, HidePid};

/// The options of a mount of `/proc` that decide who is shown (proc(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProcMount {
    pub(super) hide_pid: HidePid,
    /// The group that `hidepid` 1 and 2 exempt, as the kernel's first user
    /// namespace numbers it; group 0 if none was named.
    pub(super) exempt_gid: u32,
}

/// Which line of a `mountinfo` is meant.
#[derive(Debug, Clone, Copy)]
pub(super) enum MountName<'a> {
    /// By its ID, which statx(2) reports since Linux 5.8.
    Id(u64),
    /// By its mount point. The last one counts: mounts made later are on top.
    Point(&'a [u8]),
}

/// Finds the mount of `/proc` in the text of a `mountinfo`.
///
/// # Errors
///
/// [`Absent::Malformed`] if it is not there or is none of `/proc`, or names an
/// unknown way of hiding.
pub(super) fn parse_proc_mount(mountinfo: &[u8], name: MountName<'_>) -> Field<ProcMount> {
    let mut lines = mountinfo.split(|byte| *byte == b'\n');
    let mount = lines.rfind(|line| is_named(line, name));
    let mount = mount.ok_or_else(|| malformed("has no mount of the process table"))?;
    let tail = split_tail(mount).ok_or_else(|| malformed("has a line without a file system"))?;
    let mut words = tail.split(|byte| *byte == b' ');
    if words.next() != Some(b"proc") {
        return Err(malformed("has another file system for the process table"));
    }
    parse_options(words.nth(1).unwrap_or_default())
}

/// Returns whether an access to a path may block for ever, by the text of a `mountinfo`:
/// the deepest mount point above it counts, and of several at one place the last.
pub(super) fn may_hang_at(mountinfo: &[u8], path: &[u8]) -> bool {
    let path = escaped(path);
    let mut deepest: Option<(usize, &[u8])> = None;
    for line in mountinfo.split(|byte| *byte == b'\n') {
        let point = line.split(|byte| *byte == b' ').nth(4);
        let Some((point, tail)) = point.zip(split_tail(line)) else {
            continue;
        };
        let point = point.strip_suffix(b"/").unwrap_or(point);
        let rest = path.strip_prefix(point);
        let is_above = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"));
        if is_above && deepest.is_none_or(|(len, _)| len <= point.len()) {
            deepest = Some((point.len(), tail));
        }
    }
    let kind = deepest.and_then(|(_, tail)| tail.split(|byte| *byte == b' ').next());
    let kind = kind.and_then(|kind| std::str::from_utf8(kind).ok());
    kind.is_some_and(crate::file_system::may_hang)
}

/// A path with the octal escapes of `mountinfo`.
fn escaped(path: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(path.len());
    for byte in path {
        match byte {
            b' ' | b'\t' | b'\n' | b'\\' => {
                escaped.extend_from_slice(format!("\\{byte:03o}").as_bytes());
            }
            byte => escaped.push(*byte),
        }
    }
    escaped
}

fn is_named(line: &[u8], name: MountName<'_>) -> bool {
    let mut words = line.split(|byte| *byte == b' ');
    match name {
        MountName::Id(id) => words.next() == Some(id.to_string().as_bytes()),
        MountName::Point(point) => words.nth(4) == Some(point),
    }
}

/// What follows the optional fields: type, source, options of the file system.
fn split_tail(line: &[u8]) -> Option<&[u8]> {
    const SEPARATOR: &[u8] = b" - ";
    let at = line
        .windows(SEPARATOR.len())
        .position(|window| window == SEPARATOR)?;
    line.get(at.checked_add(SEPARATOR.len())?..)
}

fn parse_options(options: &[u8]) -> Field<ProcMount> {
    let mut mount = ProcMount {
        hide_pid: HidePid::Off,
        exempt_gid: 0,
    };
    for option in options.trim_ascii().split(|byte| *byte == b',') {
        if let Some(value) = option.strip_prefix(b"hidepid=") {
            mount.hide_pid = parse_hide_pid(value)?;
        } else if let Some(value) = option.strip_prefix(b"gid=") {
            let gid = std::str::from_utf8(value)
                .ok()
                .and_then(|text| text.parse().ok());
            mount.exempt_gid = gid.ok_or_else(|| malformed("has an unknown `gid`"))?;
        }
    }
    Ok(mount)
}

/// Numbers before Linux 5.8, names since.
fn parse_hide_pid(value: &[u8]) -> Field<HidePid> {
    match value {
        b"0" | b"off" => Ok(HidePid::Off),
        b"1" | b"noaccess" => Ok(HidePid::NoAccess),
        b"2" | b"invisible" => Ok(HidePid::Invisible),
        b"4" | b"ptraceable" => Ok(HidePid::PtraceableOnly),
        _ => Err(malformed("has an unknown `hidepid`")),
    }
}

fn malformed(what: &str) -> Absent {
    Absent::Malformed(format!("`mountinfo` {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const POINT: MountName<'_> = MountName::Point(b"/proc");

    fn text(options: &str) -> Vec<u8> {
        format!(
            "20 27 0:20 / /sys rw - sysfs sysfs rw\n\
             22 27 0:21 / /proc rw,nosuid shared:5 master:1 - proc proc {options}\n\
             23 27 0:22 / /mnt/hidepid=2 rw - proc proc rw,hidepid=2\n"
        )
        .into_bytes()
    }

    #[track_caller]
    fn check(options: &str, hide_pid: HidePid, exempt_gid: u32) {
        let expected = ProcMount {
            hide_pid,
            exempt_gid,
        };
        assert_eq!(parse_proc_mount(&text(options), POINT), Ok(expected));
    }

    #[test]
    fn a_path_may_hang_on_the_deepest_mount_above_it() {
        let text = b"27 1 254:0 / / rw - ext4 /dev/vda rw\n\
            30 27 0:40 / /net rw shared:7 - nfs4 server:/x rw\n\
            31 30 254:0 / /net/local rw - ext4 /dev/vdb rw\n\
            32 27 0:42 / /a\\040b rw - fuse.sshfs host: rw\n\
            33 27 0:43 / /net rw - tmpfs tmpfs rw\n";
        let check = |path: &str, right| {
            assert_eq!(may_hang_at(text, path.as_bytes()), right, "{path}");
        };
        check("/home/dev", false);
        check("/a b/c", true);
        check("/a bc", false);
        check("/network", false);
        check("/net/local/x", false);
        // The last one mounted at a place covers the others.
        check("/net/x", false);
        assert!(may_hang_at(&text[..90], b"/net"));
    }

    #[test]
    fn every_spelling_of_hidepid_is_known() {
        check("rw", HidePid::Off, 0);
        check("rw,hidepid=0", HidePid::Off, 0);
        check("rw,hidepid=off", HidePid::Off, 0);
        check("rw,hidepid=1", HidePid::NoAccess, 0);
        check("rw,gid=23,hidepid=noaccess", HidePid::NoAccess, 23);
        check("rw,hidepid=2", HidePid::Invisible, 0);
        check("rw,hidepid=invisible,gid=5", HidePid::Invisible, 5);
        check("rw,hidepid=4", HidePid::PtraceableOnly, 0);
        check(
            "rw,hidepid=ptraceable,subset=pid",
            HidePid::PtraceableOnly,
            0,
        );
    }

    #[test]
    fn an_unknown_way_of_hiding_is_not_taken_for_none() {
        assert!(parse_proc_mount(&text("rw,hidepid=3"), POINT).is_err());
        assert!(parse_proc_mount(&text("rw,hidepid="), POINT).is_err());
        assert!(parse_proc_mount(&text("rw,gid=x"), POINT).is_err());
    }

    #[test]
    fn the_mount_on_top_counts_and_one_is_found_by_its_id() {
        let mut both = text("rw");
        both.extend_from_slice(b"24 22 0:23 / /proc rw - proc proc rw,hidepid=invisible\n");
        let top = parse_proc_mount(&both, POINT).unwrap();
        assert_eq!(top.hide_pid, HidePid::Invisible);
        let below = parse_proc_mount(&both, MountName::Id(22)).unwrap();
        assert_eq!(below.hide_pid, HidePid::Off);
        assert!(parse_proc_mount(&both, MountName::Id(2)).is_err());
    }

    #[test]
    fn a_mount_that_is_missing_or_of_another_kind_is_not_known() {
        assert!(parse_proc_mount(b"", POINT).is_err());
        assert!(parse_proc_mount(b"22 27 0:21 / /proc rw\n", POINT).is_err());
        let other = b"22 27 0:21 / /proc rw - tmpfs tmpfs rw\n";
        assert!(parse_proc_mount(other, POINT).is_err());
    }
}
