//! What can be seen of the process table from here.

use crate::Field;

/// How `/proc` is mounted with respect to processes of other users (proc(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HidePid {
    /// `hidepid=0`: everybody sees every process.
    Off,
    /// `hidepid=1`: the directories are seen, their files are not readable.
    NoAccess,
    /// `hidepid=2`: processes of others are not there.
    Invisible,
    /// `hidepid=4`: only processes that may be traced are there.
    PtraceableOnly,
}

/// What can be seen of the process table from here, known before anything is
/// judged by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// `/proc` shows the PID namespace of the process that looks: `/proc/self`
    /// is there and is us. Otherwise there is no process table.
    pub is_proc_ours: Field<bool>,
    /// How `/proc` hides processes.
    pub hide_pid: Field<HidePid>,
    /// `hidepid` hides nothing from us: it is off, or, in the kernel's first
    /// user namespace, we are in the group that `gid=` exempts or may trace
    /// every process (`CAP_SYS_PTRACE`, which root has unless a container
    /// took it away).
    pub is_everything_shown: Field<bool>,
    /// We are in the kernel's first PID namespace.
    pub is_initial_pid_namespace: Field<bool>,
    /// We are in the kernel's first time namespace, so raw start stamps and
    /// boot time mean what they mean to everybody.
    pub is_initial_time_namespace: Field<bool>,
    /// The effective user is root.
    pub is_root: bool,
    /// The effective user id of the process that looks; absent where there are none.
    pub uid: Field<u32>,
    /// When the kernel began by the wall clock of now, in milliseconds since
    /// 1970. It moves when the clock is stepped: for comparing dates only.
    pub booted_at_ms: Field<i64>,
}
