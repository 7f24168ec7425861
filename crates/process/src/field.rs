//! A value read from the system, or the reason why it is absent.

/// What was read, or why it could not be.
pub type Field<T> = Result<T, Absent>;

/// Why a field of a process or of the view is absent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Absent {
    /// The kernel refused it to this user (`EACCES`, `EPERM`).
    #[error("permission denied")]
    PermissionDenied,
    /// The process went away, or its PID was reused, between two reads.
    #[error("the process went away while it was read")]
    Vanished,
    /// The process is a zombie, which has lost this value.
    #[error("the process has exited")]
    Exited,
    /// Kernel threads lack this value.
    #[error("a kernel thread has none")]
    KernelThread,
    /// This platform or this kernel does not report it.
    #[error("not reported by this system")]
    Unsupported,
    /// The process overwrote it (a title in place of its arguments).
    #[error("overwritten by the process")]
    Overwritten,
    /// More than this crate is willing to read.
    #[error("larger than {bytes_max} bytes")]
    TooLarge {
        /// The bound that was exceeded, in bytes.
        bytes_max: usize,
    },
    /// There are more of them than this crate is willing to read.
    #[error("more than {entries_max} entries")]
    TooMany {
        /// The bound that was exceeded, in entries.
        entries_max: usize,
    },
    /// It was read and could not be understood.
    #[error("malformed: {0}")]
    Malformed(String),
    /// Any other failure of the system.
    #[error("{0}")]
    Io(String),
}
