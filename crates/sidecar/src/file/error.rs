//! Why a file could not be read.

use std::fmt;
use std::fs::FileType;
use std::io;
use std::path::{Path, PathBuf};

/// What lies at a path instead of a regular file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileKind {
    /// A symbolic link, where links are refused.
    Symlink,
    /// A directory.
    Directory,
    /// A FIFO (named pipe).
    Fifo,
    /// A character device.
    CharacterDevice,
    /// A block device.
    BlockDevice,
    /// A socket.
    Socket,
    /// Something that this platform has no name for.
    Other,
}

impl FileKind {
    /// Names what is no regular file.
    pub(super) fn unless_regular(file_type: FileType) -> Result<(), Self> {
        if file_type.is_file() {
            Ok(())
        } else if file_type.is_symlink() {
            Err(Self::Symlink)
        } else if file_type.is_dir() {
            Err(Self::Directory)
        } else {
            Err(super::platform::special_kind(file_type))
        }
    }
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Symlink => "a symbolic link",
            Self::Directory => "a directory",
            Self::Fifo => "a FIFO",
            Self::CharacterDevice => "a character device",
            Self::BlockDevice => "a block device",
            Self::Socket => "a socket",
            Self::Other => "no regular file",
        })
    }
}

/// Why a file could not be read. Only [`ReadFileError::NotFound`] means that
/// there is none.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[error("cannot read `{}`: {}", self.path().display(), self.reason())]
pub enum ReadFileError {
    /// There is no such file.
    NotFound {
        /// The file.
        path: PathBuf,
    },
    /// The system refused it to this user.
    PermissionDenied {
        /// The file.
        path: PathBuf,
    },
    /// Something else than a regular file lies there.
    NotRegular {
        /// The file.
        path: PathBuf,
        /// What it is.
        kind: FileKind,
    },
    /// It is larger than the caller's limit.
    TooLarge {
        /// The file.
        path: PathBuf,
        /// How long it is, or how much of it was seen while it grew, in bytes.
        len: u64,
        /// The bound, in bytes.
        bytes_max: u64,
    },
    /// Any other failure of the system.
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        reason: io::Error,
    },
}

impl ReadFileError {
    pub(super) fn from_io(path: &Path, error: io::Error) -> Self {
        let path = path.to_owned();
        match error.kind() {
            // A file in the place of a directory: there can be nothing below it.
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::NotFound { path },
            io::ErrorKind::PermissionDenied => Self::PermissionDenied { path },
            _ => Self::Io {
                path,
                reason: error,
            },
        }
    }

    /// The file that could not be read.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::NotFound { path }
            | Self::PermissionDenied { path }
            | Self::NotRegular { path, .. }
            | Self::TooLarge { path, .. }
            | Self::Io { path, .. } => path,
        }
    }

    /// Why not, without the path, for where that stands already.
    #[must_use]
    pub fn reason(&self) -> String {
        match self {
            Self::NotFound { .. } => "no such file".to_owned(),
            Self::PermissionDenied { .. } => "permission denied".to_owned(),
            Self::NotRegular { kind, .. } => format!("it is {kind}"),
            Self::TooLarge { len, bytes_max, .. } => {
                format!("it is larger than {bytes_max} bytes: it has at least {len}")
            }
            Self::Io { reason, .. } => reason.to_string(),
        }
    }
}
