//! The registry: one record for each process, `sessions/PID.json`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use whosup_process::{Pid, StartStamp};
use whosup_sidecar::SessionId;
use whosup_sidecar::file::{FileFacts, Links, read_regular};

use super::AGENT;
use super::record::{Record, parse_record};
use crate::adapter::Home;
use crate::machine::problem::{Found, Problem};
use crate::sources::agents::kit::folder::list_or_report;
use crate::sources::agents::kit::reading::read_if_there;

/// How many entries of the registry are looked at.
const RECORDS_MAX: usize = 10_000;
/// How large a record may be, in bytes; they have some hundreds. Claude Code
/// itself reads no larger one.
const RECORD_BYTES_MAX: u64 = 256 * 1024;
/// How often a record is read that seems to be cut off: it is written in place.
const READS_MAX: usize = 4;
/// How long to wait before it is read again.
const READ_PAUSE: Duration = Duration::from_millis(2);
/// How many records of one scan are read more than once, so that many broken records cost no
/// more than a few.
const REREAD_RECORDS_MAX: usize = 16;

/// A record, and the file that it was read from.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) record: Record,
    pub(super) path: PathBuf,
    pub(super) facts: FileFacts,
}

/// The folder of the registry.
pub(super) fn folder(home: &Home) -> PathBuf {
    home.root.join("sessions")
}

/// The session that the registry names for one process.
pub(super) fn session_of(home: &Path, pid: Pid, stamp: &StartStamp) -> Option<SessionId> {
    let path = home.join("sessions").join(format!("{pid}.json"));
    let file = read_regular(&path, RECORD_BYTES_MAX, Links::Refuse).ok()?;
    let record = parse_record(&file.bytes).ok()?;
    let is_its = record.pid == pid && record.stamp.as_ref() == Some(stamp);
    is_its.then_some(record.session)
}

/// Reads every record of a home. A malformed record is a problem; a file with another name
/// is not, for releases add files of their own beside the records.
pub(super) fn read(home: &Home) -> Found<Vec<Entry>> {
    let folder = folder(home);
    let mut found: Found<Vec<Entry>> = Found::default();
    let names = list_or_report(&folder, RECORDS_MAX, |why| {
        found.problems.push(Problem::at(&AGENT, &folder, why));
    });
    let mut rereads_left = REREAD_RECORDS_MAX;
    for name in names.texts() {
        let Some(pid) = process_in(name) else {
            continue;
        };
        let path = folder.join(name);
        match read_entry(&path, pid, &mut rereads_left) {
            Ok(entry) => found.found.extend(entry),
            Err(message) => found.problems.push(Problem::at(&AGENT, &path, message)),
        }
    }
    for entry in &found.found {
        let odd_fields = entry.record.odd_fields.iter();
        let problems = odd_fields.map(|error| Problem::at(&AGENT, &entry.path, error));
        found.problems.extend(problems);
    }
    found
}

/// The process in the name of a record, `PID.json`.
fn process_in(name: &str) -> Option<Pid> {
    let digits = name.strip_suffix(".json")?;
    let pid = Pid::new(digits.parse().ok()?).ok()?;
    // As it is written: with a zero or a sign before it, it is a file of another's.
    (pid.to_string() == digits).then_some(pid)
}

/// Reads one record, again while it seems to be cut off. `Ok(None)`: it was removed, as when
/// the process exits.
fn read_entry(path: &Path, named: Pid, rereads_left: &mut usize) -> Result<Option<Entry>, String> {
    let may_be_reread = *rereads_left > 0;
    let mut reads = 0;
    loop {
        reads += 1;
        let Some(file) = read_if_there(path, RECORD_BYTES_MAX, Links::Refuse)? else {
            return Ok(None);
        };
        match parse_record(&file.bytes) {
            Ok(record) if record.pid == named => {
                let (path, facts) = (path.to_owned(), file.facts);
                return Ok(Some(Entry {
                    record,
                    path,
                    facts,
                }));
            }
            Ok(Record { pid, .. }) => {
                let message = format!("`pid` is {pid}, but the file is named after {named}");
                return Err(message);
            }
            Err(error) if !error.may_be_torn() => return Err(error.to_string()),
            Err(error) if reads == READS_MAX || !may_be_reread => {
                return Err(format!("{error} (read {reads} times)"));
            }
            Err(_) if reads == 1 => *rereads_left -= 1,
            Err(_) => {}
        }
        std::thread::sleep(READ_PAUSE);
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
#[path = "registry_tests.rs"]
mod tests;
