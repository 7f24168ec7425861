//! Reads a sidecar from its file.

use std::path::{Path, PathBuf};

use crate::file::{Directory, FileFacts, Links, ReadFileError, RegularFile, read_regular};
use crate::{SIDECAR_BYTES_MAX, Sidecar, SidecarError, parse_sidecar};

/// Why a sidecar could not be read from its file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadSidecarError {
    /// The file can't be read.
    #[error(transparent)]
    File(#[from] ReadFileError),
    /// The file is no sidecar.
    #[error("cannot read sidecar `{}`: {reason}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: SidecarError,
    },
}

impl ReadSidecarError {
    /// The file that could not be read.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::File(error) => error.path(),
            Self::Invalid { path, .. } => path,
        }
    }

    /// Why not, without the path, for where that stands already.
    #[must_use]
    pub fn reason(&self) -> String {
        match self {
            Self::File(error) => error.reason(),
            Self::Invalid { reason, .. } => reason.to_string(),
        }
    }
}

/// Reads the sidecar at `path`: a regular file of at most
/// [`SIDECAR_BYTES_MAX`] bytes, not through a symbolic link.
///
/// # Errors
///
/// [`ReadSidecarError`] names the path and the reason.
///
/// ```
/// use whosup_sidecar::read_sidecar;
///
/// let path = std::env::temp_dir().join("no-such-directory/runtime.json");
/// let error = read_sidecar(&path).unwrap_err();
/// assert_eq!(error.reason(), "no such file");
/// ```
pub fn read_sidecar(path: &Path) -> Result<(Sidecar, FileFacts), ReadSidecarError> {
    let file = read_regular(path, SIDECAR_BYTES_MAX, Links::Refuse)?;
    parse(&file, || path.to_owned())
}

/// Reads the sidecar at `name`, a path below an open directory: the same, and for many
/// files in one directory faster.
///
/// # Errors
///
/// [`ReadSidecarError`] names the whole path and the reason.
pub fn read_sidecar_in(
    directory: &Directory,
    name: &Path,
) -> Result<(Sidecar, FileFacts), ReadSidecarError> {
    let file = directory.read_regular(name, SIDECAR_BYTES_MAX, Links::Refuse)?;
    parse(&file, || directory.path_of(name))
}

fn parse(
    file: &RegularFile,
    path: impl FnOnce() -> PathBuf,
) -> Result<(Sidecar, FileFacts), ReadSidecarError> {
    match parse_sidecar(&file.bytes) {
        Ok(sidecar) => Ok((sidecar, file.facts)),
        Err(reason) => Err(ReadSidecarError::Invalid {
            path: path(),
            reason,
        }),
    }
}
