//! Why bytes are no record and no lock.

use whosup_process::PidNamespace;
use whosup_sidecar::{FieldError, JsonError, StrictObject};

/// Why bytes are no record or no lock. The text goes after the file's path.
#[derive(Debug, thiserror::Error)]
pub(super) enum Malformed {
    #[error(transparent)]
    Json(#[from] JsonError),
    #[error(transparent)]
    Field(#[from] FieldError),
    /// The fields are sound, and cannot be used.
    #[error("{0}")]
    Unusable(String),
}

/// A PID namespace, which a field names by its inode number.
pub(super) fn pid_namespace(
    object: &StrictObject<'_>,
    key: &str,
) -> Result<Option<PidNamespace>, FieldError> {
    let Some(raw) = object.opt_integer(key)? else {
        return Ok(None);
    };
    match u64::try_from(raw) {
        Ok(inode) if inode > 0 => Ok(Some(PidNamespace(inode))),
        _ => Err(object.out_of_range(key, "an inode number", &raw.to_string())),
    }
}
