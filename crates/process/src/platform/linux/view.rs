//! Where a PID means something, and what can be seen from here.

use std::ffi::OsStr;

use rustix::fs::{AtFlags, StatxFlags, fstatfs, statat, statx};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid, getgroups};

use crate::{
    Absent, BootId, Field, HidePid, HostName, Pid, PidNamespace, PidScope, ProbeError, View,
};

use super::details::parse_namespace;
use super::look::Look;
use super::mount::{MountName, ProcMount, parse_proc_mount};
use super::raw::{absent, read_file, read_link, read_record};
use super::status::{STATUS_BYTES_MAX, Status};
use super::{Proc, SYSTEM_ROOT};

/// The inode of the first user namespace (`PROC_USER_INIT_INO`, include/linux/proc_ns.h).
const INITIAL_USER_NAMESPACE: u64 = 0xEFFF_FFFD;
/// The inode of the first time namespace (`PROC_TIME_INIT_INO`).
const INITIAL_TIME_NAMESPACE: u64 = 0xEFFF_FFFA;
/// The capability to look into any process (`CAP_SYS_PTRACE`, capabilities(7)).
const CAN_TRACE: u64 = 1 << 19;
/// The magic number of a `/proc` made by a kernel (`PROC_SUPER_MAGIC`, statfs(2)).
const PROC_MAGIC: i64 = 0x9FA0;

const NAME_BYTES_MAX: usize = 4096;
pub(super) const MOUNTINFO_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Reads host, boot and PID namespace.
pub(super) fn read_scope(table: &Proc) -> PidScope {
    let Ok(mut look) = Look::open(table) else {
        return PidScope {
            host: read_own_host_name(),
            boot: Err(Absent::Unsupported),
            pid_namespace: Err(Absent::Unsupported),
        };
    };
    let host = if look.is_system() {
        read_own_host_name()
    } else {
        read_line(&mut look, "sys/kernel/hostname").map(HostName)
    };
    let boot = read_line(&mut look, "sys/kernel/random/boot_id").and_then(|line| {
        let malformed = || Absent::Malformed("`boot_id` is no UUID".to_owned());
        BootId::parse(&line).ok_or_else(malformed)
    });
    PidScope {
        host,
        boot,
        pid_namespace: read_own_namespace(&look, "pid").map(PidNamespace),
    }
}

/// Reads what can be seen from here.
pub(super) fn read_view(table: &Proc) -> View {
    let uid = geteuid().as_raw();
    let mut view = View {
        is_proc_ours: Ok(false),
        hide_pid: Err(Absent::Unsupported),
        is_everything_shown: Err(Absent::Unsupported),
        is_initial_pid_namespace: Err(Absent::Unsupported),
        is_initial_time_namespace: Err(Absent::Unsupported),
        is_root: uid == 0,
        uid: Ok(uid),
        booted_at_ms: Err(Absent::Unsupported),
    };
    let mut look = match Look::open(table) {
        Ok(look) => look,
        Err(ProbeError::File { reason, .. }) => {
            view.is_proc_ours = Err(reason);
            return view;
        }
        Err(_) => return view,
    };
    view.booted_at_ms = look.clock().booted_at_ms.clone();
    view.is_proc_ours = read_is_proc_ours(&look);
    let mount = read_proc_mount(&mut look);
    view.hide_pid = mount.clone().map(|mount| mount.hide_pid);
    view.is_everything_shown = mount.and_then(|mount| read_is_everything_shown(&mut look, mount));
    view.is_initial_pid_namespace =
        read_own_namespace(&look, "pid").map(|inode| PidNamespace(inode) == PidNamespace::INITIAL);
    view.is_initial_time_namespace = match read_own_namespace(&look, "time") {
        // A kernel before 5.6 has other namespaces and none of time.
        Err(Absent::Vanished) if read_own_namespace(&look, "uts").is_ok() => Ok(true),
        namespace => namespace.map(|inode| inode == INITIAL_TIME_NAMESPACE),
    };
    view
}

/// Returns whether a table shows the process that looks.
///
/// In a new PID namespace over the old `/proc`, `self` has the number that the
/// old namespace gave us. That may happen to be our own one, but then our
/// `status` lists more than one number.
pub(super) fn read_is_proc_ours(look: &Look<'_>) -> Field<bool> {
    let link = match read_link(look.root(), "self") {
        Ok(link) => link,
        Err(Errno::NOENT) => return Ok(false),
        Err(errno) => return Err(absent(errno)),
    };
    if !look.is_system() && !is_made_by_kernel(look) {
        return Ok(statat(look.root(), &link, AtFlags::SYMLINK_NOFOLLOW).is_ok());
    }
    if link != OsStr::new(&Pid::own().to_string()) {
        return Ok(false);
    }
    let mut buffer = Vec::new();
    read_record(look.root(), "self/status", STATUS_BYTES_MAX, &mut buffer)?;
    match Status(&buffer).inner_pids() {
        Ok(pids) => Ok(pids.len() == 1),
        // A kernel that does not list them leaves the number to compare.
        Err(Absent::Unsupported) => Ok(true),
        Err(reason) => Err(reason),
    }
}

fn is_made_by_kernel(look: &Look<'_>) -> bool {
    // The type of the field differs per architecture; the number fits all.
    fstatfs(look.root()).is_ok_and(|found| i128::from(found.f_type) == i128::from(PROC_MAGIC))
}

/// Reads the name of this host from the kernel (uname(2)).
fn read_own_host_name() -> Field<HostName> {
    let name = rustix::system::uname();
    let name = name.nodename().to_str();
    name.map(|name| HostName(name.to_owned()))
        .map_err(|_| Absent::Malformed("the host's name is not UTF-8".to_owned()))
}

fn read_line(look: &mut Look<'_>, path: &str) -> Field<String> {
    let mut buffer = std::mem::take(&mut look.buffer);
    let read = read_file(look.root(), path, NAME_BYTES_MAX, &mut buffer).map_err(unsupported);
    let line = read.and_then(|()| {
        let line = std::str::from_utf8(buffer.trim_ascii());
        line.map(str::to_owned)
            .map_err(|_| Absent::Malformed(format!("`{path}` is not UTF-8")))
    });
    look.buffer = buffer;
    line
}

/// A missing file of the system, unlike one of a process, means that it is unsupported.
fn unsupported(reason: Absent) -> Absent {
    match reason {
        Absent::Vanished => Absent::Unsupported,
        reason => reason,
    }
}

fn read_own_namespace(look: &Look<'_>, kind: &str) -> Field<u64> {
    let link = read_link(look.root(), format!("self/ns/{kind}")).map_err(absent)?;
    parse_namespace(&link, kind)
}

/// Reads how the table is mounted. A copy of a table has its `mountinfo` too.
fn read_proc_mount(look: &mut Look<'_>) -> Field<ProcMount> {
    let mut buffer = std::mem::take(&mut look.buffer);
    let read = read_file(
        look.root(),
        "self/mountinfo",
        MOUNTINFO_BYTES_MAX,
        &mut buffer,
    );
    let name = match read_mount_id(look) {
        Some(id) => MountName::Id(id),
        None => MountName::Point(SYSTEM_ROOT.as_bytes()),
    };
    let mount = read
        .map_err(unsupported)
        .and_then(|()| parse_proc_mount(&buffer, name));
    look.buffer = buffer;
    mount
}

/// The id of the mount that the table was opened on, if it is a kernel's own.
fn read_mount_id(look: &Look<'_>) -> Option<u64> {
    if !is_made_by_kernel(look) {
        return None;
    }
    let wanted = StatxFlags::MNT_ID;
    let found = statx(look.root(), "", AtFlags::EMPTY_PATH, wanted).ok()?;
    (found.stx_mask & wanted.bits() != 0).then_some(found.stx_mnt_id)
}

/// Returns whether nothing is hidden from us: the mount hides nothing, or we are in
/// the exempt group, or may trace every process.
///
/// Group numbers and capabilities prove this in the first user namespace only. In
/// another namespace the answer is unknown, which counts as hidden.
fn read_is_everything_shown(look: &mut Look<'_>, mount: ProcMount) -> Field<bool> {
    if mount.hide_pid == HidePid::Off {
        return Ok(true);
    }
    if read_own_namespace(look, "user").map_err(unsupported)? != INITIAL_USER_NAMESPACE {
        return Ok(false);
    }
    if mount.hide_pid != HidePid::PtraceableOnly && is_in_group(mount.exempt_gid) {
        return Ok(true);
    }
    let mut buffer = std::mem::take(&mut look.buffer);
    let read = read_record(look.root(), "self/status", STATUS_BYTES_MAX, &mut buffer);
    let capabilities = read.and_then(|()| Status(&buffer).effective_capabilities());
    look.buffer = buffer;
    Ok(capabilities? & CAN_TRACE != 0)
}

fn is_in_group(gid: u32) -> bool {
    let groups = getgroups().unwrap_or_default();
    getegid().as_raw() == gid || groups.iter().any(|group| group.as_raw() == gid)
}
