//! In the place of the database, in a build that can't read one.

use std::path::Path;

use whosup_sidecar::file::{FileFacts, Links, ReadFileError, facts};

use super::row::Row;
use crate::sources::agents::kit::database::SessionRows;

/// Reads nothing; `None` if there is nothing.
///
/// # Errors
///
/// That it can't be read, if it is there.
pub(super) fn read(path: &Path) -> Result<Option<(SessionRows<Row>, FileFacts)>, String> {
    match facts(path, Links::Follow) {
        Err(ReadFileError::NotFound { .. }) => Ok(None),
        _ => Err("this build can't read databases".to_owned()),
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests {
    use super::*;

    #[test]
    fn a_database_that_exists_is_reported_as_unreadable() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sessions.db");
        assert!(read(&path).unwrap().is_none());
        std::fs::write(&path, "").unwrap();
        assert_eq!(read(&path).unwrap_err(), "this build can't read databases");
    }
}
