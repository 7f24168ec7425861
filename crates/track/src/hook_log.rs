//! The log for errors of hooks, which an agent must not see.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use whosup_core::machine::Environment;
use whosup_core::sidecar::own_directory::{Access, split};
use whosup_core::sources::record::records_root_of;
use whosup_core::views::wire::timestamp;

use crate::disk::{IN_WHOSUP, directory_for};

/// The name of the log.
const NAME: &str = "hook.log";
/// The name of the previous log.
const OLD_NAME: &str = "hook.log.old";
/// A log that is longer than this, in bytes, is renamed and a new log begins.
const LOG_BYTES_MAX: u64 = 256 * 1024;
/// How much of one message is kept, in characters.
const MESSAGE_CHARS_MAX: usize = 1_000;

/// Notes what kept a hook from being recorded, in `whosup/hook.log` of the state
/// directory. There are two such files at most, the older one with `.old` behind it.
///
/// A failure to write it is ignored: there is no other place to report it.
pub fn note_problem(environment: &Environment, now_ms: i64, agent: &str, message: &str) {
    let Some(path) = path_of(environment) else {
        return;
    };
    let shown = |text: &str| -> String {
        let printable = |c: char| if c.is_control() { ' ' } else { c };
        text.chars()
            .take(MESSAGE_CHARS_MAX)
            .map(printable)
            .collect()
    };
    let at = timestamp(now_ms).unwrap_or_default();
    let line = format!("{at} {}: {}\n", shown(agent), shown(message));
    append(&path, &line).ok();
}

fn append(path: &Path, line: &str) -> io::Result<()> {
    let (directory, name) = split(path)?;
    let directory = directory_for(directory, IN_WHOSUP)?;
    let mut log = directory.open_or_make_file(name, Access::Append)?;
    if log.metadata()?.len() > LOG_BYTES_MAX {
        directory.rename(name, OLD_NAME.as_ref())?;
        log = directory.open_or_make_file(name, Access::Append)?;
    }
    log.write_all(line.as_bytes())
}

fn path_of(environment: &Environment) -> Option<PathBuf> {
    let records = records_root_of(environment)?;
    Some(records.parent()?.join(NAME))
}
