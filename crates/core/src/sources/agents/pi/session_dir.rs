//! Where the sessions of a home lie: below it, one folder for each directory;
//! or all in the one directory that a variable or a setting names.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;
use whosup_sidecar::file::{Links, read_regular};
use whosup_sidecar::parse_json;

use super::{HOME_VARIABLE, Pi};
use crate::adapter::{Adapter as _, Home, Look, Sketch};
use crate::machine::Environment;
use crate::sources::agents::kit::dialect::text_at;

/// The variable that moves the sessions.
pub(super) const VARIABLE: &str = "PI_CODING_AGENT_SESSION_DIR";

/// How long a settings file may be.
const SETTINGS_BYTES_MAX: u64 = 1 << 20;

/// The name of a directory's folder below `sessions/`; `None` if its path is
/// not UTF-8.
pub(super) fn folder_of(work_dir: &Path) -> Option<String> {
    let path = work_dir.to_str()?;
    let path = path.strip_prefix(['/', '\\']).unwrap_or(path);
    Some(format!("--{}--", path.replace(['/', '\\', ':'], "-")))
}

/// The directories that have sessions of `home` besides its own folders, if they can be
/// touched.
pub(super) fn moved_to(look: &Look<'_>, home: &Home) -> BTreeSet<PathBuf> {
    let own = look.machine.environment();
    let settings = home.root.join("settings.json");
    let mut directories = BTreeSet::new();
    if Pi.homes(own).iter().any(|root| **root == *home.root) {
        let named = own.directory(VARIABLE);
        if let Some(named) = &named {
            look.machine.mounts().rely_on(named);
        }
        directories.extend(named);
        directories.extend(setting(&settings, own));
    }
    for process in look.processes_of(home) {
        let names = [HOME_VARIABLE, VARIABLE];
        let Some(environment) = look.machine.environment_of(&process.process, &names) else {
            continue;
        };
        directories.extend(environment.directory(VARIABLE));
        directories.extend(setting(&settings, &environment));
        if let Some(work_dir) = process.work_dir() {
            let path = work_dir.join(".pi").join("settings.json");
            if look.machine.mounts().touchable(&path).is_ok() {
                directories.extend(setting(&path, &environment));
            }
        }
    }
    directories.remove(&home.root.join("sessions"));
    directories.retain(|directory| look.machine.mounts().touchable(directory).is_ok());
    directories
}

/// The directory of a session outside of the home's default ones. It may have been set for
/// one process only, so a resume command must name it.
pub(super) fn that_needs_naming(sketch: &Sketch) -> Option<&Path> {
    let directory = sketch.transcript.as_deref()?.parent()?;
    let own = sketch.key.home.join("sessions");
    (directory.parent() != Some(&own)).then_some(directory)
}

fn setting(path: &Path, environment: &Environment) -> Option<PathBuf> {
    // Settings that can't be read are for pi to complain about.
    let file = read_regular(path, SETTINGS_BYTES_MAX, Links::Follow).ok()?;
    let settings: Value = parse_json(&file.bytes).ok()?;
    environment.resolve(Path::new(text_at(&settings, "/sessionDir")?))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use whosup_sidecar::SessionId;

    use super::*;
    use crate::adapter::claim::SessionKey;

    #[test]
    fn a_session_that_lies_elsewhere_is_resumed_there() {
        let resumed = |transcript: &str| {
            let mut sketch = Sketch::new(SessionKey {
                agent: super::super::AGENT,
                session: SessionId::parse("01a2").expect("an id"),
                home: std::path::Path::new("/h/.pi/agent").into(),
            });
            sketch.transcript = Some(transcript.into());
            Pi.resume(&sketch, true).expect("a command").environment
        };
        assert_eq!(resumed("/h/.pi/agent/sessions/--w--/x_01a2.jsonl"), []);
        let moved = [(VARIABLE.to_owned(), "/data/pi".into())];
        assert_eq!(resumed("/data/pi/x_01a2.jsonl"), moved);
    }

    #[test]
    fn a_folder_has_the_path_with_hyphens() {
        let folder = folder_of(Path::new("/home/dev/my_app.v1"));
        assert_eq!(folder.as_deref(), Some("--home-dev-my_app.v1--"));
        assert_eq!(folder_of(Path::new("/")).as_deref(), Some("----"));
    }
}
