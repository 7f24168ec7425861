//! The logs of a share directory: the current log, and the renamed earlier logs.
//!
//! A process may have resumed a session days ago and been idle since: only a renamed log
//! records that. The first write after six each morning renames the log, so that there may
//! be several of one day. They are kept for ten days. Seen in kimi-cli 1.50.0, 2026-11.

use std::path::{Path, PathBuf};

use whosup_sidecar::file::{Directory, Links};

use super::log::{self, Log};
use crate::sources::agents::kit::folder::list_or_report;

/// Where the logs are, below the share directory.
pub(super) const FOLDER: &str = "logs";
/// The log that is written now.
const CURRENT: &str = "kimi.log";
/// How many files of the folder are looked at.
const ENTRIES_MAX: usize = 10_000;
/// How many logs are read, the newest of them.
const LOGS_MAX: usize = 32;

/// The share directory of a process that has the log `path` open. Every kimi-cli process has
/// one open. After a rename, a process keeps the renamed log open until its next write.
pub(super) fn home_of(path: &Path) -> Option<PathBuf> {
    let folder = path.parent()?;
    let home = folder.parent()?;
    let is_its = is_log(path.file_name()?.to_str()?) && folder.ends_with(FOLDER);
    is_its.then(|| home.to_owned())
}

/// `kimi.log`, or `kimi.2026-11-27_06-00-00_123456.log`.
fn is_log(name: &str) -> bool {
    name.starts_with("kimi.") && name.ends_with(".log")
}

/// Reads the logs that were written to since then, in milliseconds since 1970; all of
/// them if that is not known. `None` if there is none.
pub(super) fn read(
    folder: &Path,
    since_ms: Option<i64>,
    report: &mut dyn FnMut(&Path, String),
) -> Option<Log> {
    let names = list_or_report(folder, ENTRIES_MAX, |message| report(folder, message));
    let opened = Directory::open(folder).ok()?;
    let mut logs: Vec<(i64, &str)> = names
        .texts()
        .filter(|name| is_log(name))
        .map(|name| {
            let facts = opened.facts(name.as_ref(), Links::Follow).ok();
            // A log whose metadata cannot be read is opened, which reports the reason.
            let written = facts.and_then(|facts| facts.modified_ms);
            (written.unwrap_or(i64::MAX), name)
        })
        .filter(|(written, name)| {
            *name == CURRENT || since_ms.is_none_or(|since| *written >= since)
        })
        .collect();
    logs.sort_unstable_by(|one, other| other.cmp(one));
    logs.truncate(LOGS_MAX);
    let read = logs.into_iter().filter_map(|(_, name)| {
        let path = folder.join(name);
        log::read(&path).unwrap_or_else(|error| {
            report(&path, error.reason());
            None
        })
    });
    let read: Vec<Log> = read.collect();
    (!read.is_empty()).then(|| Log::of_all(read))
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests {
    use std::fs::File;
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn a_log_lies_in_a_share_directory() {
        for (path, home) in [
            ("/w/kimi/logs/kimi.log", Some("/w/kimi")),
            ("/w/logs/kimi.2026-11-27_06-00-00_1.log", Some("/w")),
            ("/logs/kimi.log", Some("/")),
            ("/w/kimi.log", None),
            ("/w/logs/kimi-code.log", None),
            ("/w/logs/kimi.log (deleted)", None),
            ("/", None),
        ] {
            assert_eq!(home_of(Path::new(path)), home.map(PathBuf::from), "{path}");
        }
    }

    /// The sessions in logs that were written to since then.
    fn sessions(folder: &Path, since_ms: Option<i64>) -> Vec<String> {
        let log = read(folder, since_ms, &mut |path, reported| {
            panic!("{path:?}: {reported}")
        });
        let events = log.unwrap().events.into_iter();
        events.map(|event| event.session).collect()
    }

    #[test]
    fn what_was_renamed_since_is_read_with_the_rest_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        for (name, days, lines) in [
            (
                "kimi.2026-11-24_06-00-00_1.log",
                3,
                ["24 23:00:00", "25 01:00:00"],
            ),
            (
                "kimi.2026-11-25_06-00-00_1.log",
                2,
                ["25 23:00:00", "26 05:00:00"],
            ),
            (
                "kimi.2026-11-25_06-00-00_1.2.log",
                1,
                ["26 04:00:00", "26 23:00:00"],
            ),
            ("kimi.log", 4, ["27 08:00:00", "27 09:00:00"]),
            ("other.log", 0, ["27 08:00:00", "27 09:00:00"]),
        ] {
            let line = |at: &&str| {
                let id = at.replace([' ', ':'], "-");
                format!(
                    "2026-11-{at}.000 | INFO | kimi_cli.cli:_run:1 |  - Resuming session: {id}\n"
                )
            };
            let path = folder.path().join(name);
            std::fs::write(&path, lines.iter().map(line).collect::<String>()).unwrap();
            let written = now - Duration::from_secs(days * 86_400);
            File::open(&path).unwrap().set_modified(written).unwrap();
        }
        let all = [
            "24-23-00-00",
            "25-01-00-00",
            "25-23-00-00",
            "26-04-00-00",
            "26-05-00-00",
            "26-23-00-00",
            "27-08-00-00",
            "27-09-00-00",
        ];
        assert_eq!(sessions(folder.path(), None), all);
        let since = now - Duration::from_secs(60 * 3600);
        let since = since.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let since = i64::try_from(since.as_millis()).unwrap();
        assert_eq!(sessions(folder.path(), Some(since)), all[2..]);
        // The current one counts however old it is.
        assert_eq!(sessions(folder.path(), Some(i64::MAX)), all[6..]);
    }

    #[test]
    fn a_missing_log_is_ignored_and_an_unreadable_one_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let mut reported = Vec::new();
        let mut report = |path: &Path, why: String| reported.push((path.to_owned(), why));
        assert_eq!(read(&folder.path().join("none"), None, &mut report), None);
        std::fs::create_dir(folder.path().join(CURRENT)).unwrap();
        assert_eq!(read(folder.path(), None, &mut report), None);
        let right = (folder.path().join(CURRENT), "it is a directory".to_owned());
        assert_eq!(reported, [right]);
    }
}
