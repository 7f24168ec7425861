//! One process, as one look at the table saw it.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::{Field, Pid, PidNamespace, StartStamp};

/// What the kernel says a process is doing (proc_pid_stat(5), field 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunState {
    /// Running or runnable (`R`).
    Running,
    /// Sleeping (`S`, `I`).
    Sleeping,
    /// Waiting in the kernel (`D`).
    DiskSleep,
    /// Stopped by a signal or a tracer (`T`, `t`).
    Stopped,
    /// Exited, not yet reaped (`Z`). The leader of a process whose other
    /// threads run on looks like this too.
    Zombie,
    /// On its way out (`X`, `x`).
    Dead,
    /// A letter this crate does not know.
    Other(u8),
}

impl RunState {
    /// Whether the kernel lists it although its leader has exited.
    #[must_use]
    pub const fn is_exited(self) -> bool {
        matches!(self, Self::Zombie | Self::Dead)
    }
}

/// A controlling terminal, by its device number (proc_pid_stat(5), field 7).
///
/// Compare device numbers, never the names of open files: `/dev/pts/N` is
/// reused, and an open one may be deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tty {
    /// Major device number.
    pub major: u32,
    /// Minor device number.
    pub minor: u32,
}

impl Tty {
    /// What Linux calls the device, where it gives this number one name: `/dev/pts/3`.
    ///
    /// The name holds where the process lives: a container may have a `/dev/pts` of its own.
    /// (Linux, Documentation/admin-guide/devices.txt; a pseudo-terminal has the major
    /// number 136 whatever its minor one, drivers/tty/pty.c.)
    #[must_use]
    pub fn name(self) -> Option<String> {
        match (self.major, self.minor) {
            (136, minor) => Some(format!("/dev/pts/{minor}")),
            (4, minor @ 0..=63) => Some(format!("/dev/tty{minor}")),
            (4, minor @ 64..) => Some(format!("/dev/ttyS{}", minor.saturating_sub(64))),
            _ => None,
        }
    }

    /// The device that Linux calls so: the inverse of [`Tty::name`].
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        let number = |prefix: &str| {
            let digits = name.strip_prefix(prefix)?;
            let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse::<u32>().ok().filter(|_| is_number)
        };
        let tty = if let Some(minor) = number("/dev/pts/") {
            Self { major: 136, minor }
        } else if let Some(number) = number("/dev/ttyS") {
            let minor = number.checked_add(64)?;
            Self { major: 4, minor }
        } else {
            let minor = number("/dev/tty").filter(|minor| *minor < 64)?;
            Self { major: 4, minor }
        };
        Some(tty)
    }
}

/// When a terminal was last used, in milliseconds since 1970: no earlier times
/// than the true ones.
///
/// A kernel that notes such times notes them in steps of eight seconds, so that
/// they reveal no keystrokes (`tty_update_time`, Linux); these are the ends
/// of the steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalUse {
    /// Nothing that was typed has been read after this.
    pub no_input_since_ms: i64,
    /// Nothing has been written after this.
    pub no_output_since_ms: i64,
    /// Some terminal shows that this kernel notes such times. If none does, these are
    /// the times that the terminal was made with: it has not been used since, or the
    /// kernel notes nothing.
    pub is_noted: bool,
}

/// Bytes that a process has read from storage and written to it, with those of the
/// children that it has waited for (proc_pid_io(5)). What the page cache served is not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StorageBytes {
    /// Read.
    pub read: u64,
    /// Written.
    pub written: u64,
}

/// One process, as one look at the table saw it: what its `stat` shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its id in the namespace of the process that looks.
    pub pid: Pid,
    /// Its parent; `None` for a process whose parent is outside or none.
    pub ppid: Option<Pid>,
    /// What it is doing.
    pub run_state: RunState,
    /// It has exited although it is listed: a zombie none of whose threads
    /// runs on. Decided for [`RunState::is_exited`] states only, by its pidfd
    /// or its thread count; `false` for every other state.
    pub is_exited: bool,
    /// It is a thread of the kernel (`PF_KTHREAD`).
    pub is_kernel_thread: bool,
    /// It was forked and has executed no program since (`PF_FORKNOEXEC`), so that it looks
    /// like its parent. `false` where the system does not say.
    pub is_fork: bool,
    /// How many threads it has.
    pub threads: u32,
    /// When it began, raw.
    pub stamp: StartStamp,
    /// When it began, in milliseconds since 1970 by the wall clock of now.
    ///
    /// Only for comparing with dates that agents wrote: it moves when the clock
    /// is stepped or a paused machine resumes; [`Process::stamp`] does not.
    pub began_at_ms: Field<i64>,
    /// The memory it has resident, in bytes (field 24, pages).
    pub rss_bytes: Field<u64>,
    /// The processor time that it has used, its exited threads counted and its
    /// children not, in milliseconds (fields 14 and 15, ticks). A process that
    /// has exited and was not reaped still has it.
    pub cpu_ms: Field<u64>,
    /// Its controlling terminal; `None` if it has none.
    pub tty: Option<Tty>,
    /// Its process group.
    pub process_group: i32,
    /// Its Unix session.
    pub unix_session: i32,
    /// The process group in the foreground of its terminal, -1 if none.
    pub foreground_group: i32,
    /// Its name as the kernel has it: up to 15 bytes of anything.
    pub comm: Vec<u8>,
}

impl Process {
    /// [`Process::began_at_ms`], where that is known.
    #[must_use]
    pub fn began_ms(&self) -> Option<i64> {
        self.began_at_ms.clone().ok()
    }
}

/// What is known of a process beyond its `stat`; each field costs a read, and many
/// are refused to other users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Details {
    /// Its arguments; an empty list for a process that has none. Empty
    /// arguments behind a [`Details::title`] are what is left of others, and left out.
    /// [`Absent::Overwritten`](crate::Absent::Overwritten) does not occur here: see [`Details::title`].
    pub argv: Field<Vec<OsString>>,
    /// Only the beginning of [`Details::argv`] was read: an argument that is missing there may
    /// follow.
    pub is_argv_cut: bool,
    /// The text that a process put over its arguments (`process.title` of
    /// Node, `setproctitle`), trailing blanks removed; `None` if its
    /// arguments look untouched.
    ///
    /// Recognized by what such rewriting leaves: one argument followed by
    /// blanks or by NULs only, or one that has not the size of the arguments.
    pub title: Field<Option<OsString>>,
    /// The file it executes. The kernel's ` (deleted)` mark is taken off when
    /// the file's device and inode show that it is a mark; see
    /// [`Details::is_exe_deleted`].
    pub exe: Field<PathBuf>,
    /// The executed file is no longer at its path.
    pub is_exe_deleted: bool,
    /// Its current directory, without the kernel's ` (deleted)` mark.
    pub cwd: Field<PathBuf>,
    /// Its effective user.
    pub uid: Field<u32>,
    /// Its ids from our namespace inwards, ours first (`NSpid`, proc_pid_status(5)).
    /// One id: it lives in our own namespace.
    pub inner_pids: Field<Vec<Pid>>,
    /// The namespace that it lives in.
    pub pid_namespace: Field<PidNamespace>,
    /// It sees the same mounts as this program, so that a path means the same to both.
    /// Where there are no mount namespaces, all do.
    pub shares_mounts: Field<bool>,
    /// When its controlling terminal was last used.
    /// [`Absent::Unsupported`](crate::Absent::Unsupported) for a process without
    /// a terminal, one whose standard input is another file, and where nothing
    /// shows that such times are noted.
    pub terminal_use: Field<TerminalUse>,
}

impl Details {
    /// Details of which nothing could be read, all for one reason.
    #[must_use]
    pub fn absent(reason: crate::Absent) -> Self {
        Self {
            argv: Err(reason.clone()),
            is_argv_cut: false,
            title: Err(reason.clone()),
            exe: Err(reason.clone()),
            is_exe_deleted: false,
            cwd: Err(reason.clone()),
            uid: Err(reason.clone()),
            inner_pids: Err(reason.clone()),
            pid_namespace: Err(reason.clone()),
            shares_mounts: Err(reason.clone()),
            terminal_use: Err(reason),
        }
    }

    /// Its id in the namespace that it lives in.
    #[must_use]
    pub fn innermost_pid(&self) -> Option<Pid> {
        self.inner_pids.as_ref().ok()?.last().copied()
    }
}
