//! Hides sessions from default views on a person's request.

use std::path::{Path, PathBuf};

use whosup_core::adapter::claim::SessionKey;
use whosup_core::machine::Environment;
use whosup_core::sidecar::file::{Links, ReadFileError, read_regular};
use whosup_core::sidecar::own_directory::Durable;
use whosup_core::sources::dismissal::{DISMISSAL_BYTES_MAX, Dismissal, dismissals_root_of};

use crate::TrackError;
use crate::disk::{IN_AGENT, remove, replace};

/// Hides a session from default views until a hook reports an event of it.
///
/// # Errors
///
/// [`TrackError`] if that could not be written down.
pub fn dismiss(environment: &Environment, key: &SessionKey, now_ms: i64) -> Result<(), TrackError> {
    let path = path_of(environment, key)?;
    // A file that can't be read contains nothing that could be lost.
    let mut dismissal = read(&path)?.unwrap_or_default();
    dismissal.homes.retain(|(home, _)| **home != *key.home);
    dismissal.homes.push((key.home.to_path_buf(), now_ms));
    write(&path, &dismissal)
}

/// Brings a session back into default views; `false` if it was not dismissed.
///
/// # Errors
///
/// [`TrackError`] if that could not be written down.
pub fn bring_back(environment: &Environment, key: &SessionKey) -> Result<bool, TrackError> {
    let path = path_of(environment, key)?;
    let Some(mut dismissal) = read(&path)? else {
        return Ok(false);
    };
    let before = dismissal.homes.len();
    dismissal.homes.retain(|(home, _)| **home != *key.home);
    if dismissal.homes.len() == before {
        return Ok(false);
    }
    if dismissal.homes.is_empty() {
        remove(&path, IN_AGENT).map_err(TrackError::at("remove", &path))?;
    } else {
        write(&path, &dismissal)?;
    }
    Ok(true)
}

fn path_of(environment: &Environment, key: &SessionKey) -> Result<PathBuf, TrackError> {
    let root = dismissals_root_of(environment).ok_or(TrackError::NoPlace)?;
    let file = format!("{}.json", key.session);
    Ok(root.join(key.agent.as_str()).join(file))
}

fn read(path: &Path) -> Result<Option<Dismissal>, TrackError> {
    match read_regular(path, DISMISSAL_BYTES_MAX, Links::Refuse) {
        Ok(file) => Ok(Dismissal::parse(&file.bytes).ok()),
        Err(ReadFileError::NotFound { .. }) => Ok(None),
        Err(error) => {
            let error = std::io::Error::other(error.reason());
            Err(TrackError::at("read", path)(error))
        }
    }
}

fn write(path: &Path, dismissal: &Dismissal) -> Result<(), TrackError> {
    let text = dismissal.to_json().to_string();
    replace(path, IN_AGENT, text.as_bytes(), Durable::Now).map_err(TrackError::at("write", path))
}
