//! Where hooks say what went wrong: an agent must not see it.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;

use whosup_core::machine::Environment;
use whosup_core::record::records_root_of;
use whosup_core::wire::timestamp;

use crate::disk::{make_directory, open_own};

/// A log that is longer than this, in bytes, makes room for a new one.
const LOG_BYTES_MAX: u64 = 256 * 1024;
/// How much of one message is kept, in characters.
const MESSAGE_CHARS_MAX: usize = 1_000;

/// Notes what kept a hook from being recorded, in `whosup/hook.log` of the state
/// directory. There are two such files at most, the older one with `.old` behind it.
///
/// Where even that fails there is nobody left to tell.
pub fn note_problem(environment: &Environment, now_ms: i64, agent: &str, message: &str) {
    let Some(path) = path_of(environment) else {
        return;
    };
    if std::fs::metadata(&path).is_ok_and(|log| log.len() > LOG_BYTES_MAX) {
        std::fs::rename(&path, path.with_extension("log.old")).ok();
    }
    let shown = |text: &str| -> String {
        let printable = |c: char| if c.is_control() { ' ' } else { c };
        text.chars()
            .take(MESSAGE_CHARS_MAX)
            .map(printable)
            .collect()
    };
    let at = timestamp(now_ms).unwrap_or_default();
    let line = format!("{at} {}: {}\n", shown(agent), shown(message));
    if let Some(directory) = path.parent() {
        make_directory(directory).ok();
    }
    let log = open_own(&path, OpenOptions::new().append(true));
    log.and_then(|mut log| log.write_all(line.as_bytes())).ok();
}

fn path_of(environment: &Environment) -> Option<PathBuf> {
    let records = records_root_of(environment)?;
    Some(records.parent()?.join("hook.log"))
}
