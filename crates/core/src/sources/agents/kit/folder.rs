//! Lists a directory of an agent's, bounded and in one order.

use std::ffi::OsString;
use std::fs::{DirEntry, Metadata};
use std::io;
use std::path::Path;

use whosup_sidecar::AgentId;
use whosup_sidecar::file::{Links, facts_of_any};

use crate::machine::problem::Problem;

/// The names in a directory.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// Sorted, so that the order in which a file system lists never matters.
    pub(crate) names: Vec<OsString>,
    /// Some may be missing: there are more than were asked for, or they can't be listed.
    pub(crate) is_cut: bool,
}

impl Names {
    /// The names that are UTF-8. An agent's own names all are.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.names.iter().filter_map(|name| name.to_str())
    }
}

/// Lists the names in `directory`, at most `entries_max` of them. A missing directory is
/// empty. So is a directory whose name is longer than the file system allows, which agents
/// can build from a long working directory (pi#9836).
///
/// # Errors
///
/// The system's error if the directory cannot be read.
pub(crate) fn names_in(directory: &Path, entries_max: usize) -> io::Result<Names> {
    list(directory, entries_max, |_| true)
}

/// Lists like [`names_in`], and reports why names are missing.
pub(crate) fn list_or_report(
    directory: &Path,
    entries_max: usize,
    report: impl FnMut(String),
) -> Names {
    names_or_report(names_in(directory, entries_max), entries_max, report)
}

/// Lists the folders in `directory`, and reports why some are missing: everything but regular
/// files, which agents and people put beside them.
pub(crate) fn list_folders_or_report(
    directory: &Path,
    entries_max: usize,
    report: impl FnMut(String),
) -> Names {
    let is_folder = |entry: &DirEntry| !entry.file_type().is_ok_and(|kind| kind.is_file());
    names_or_report(list(directory, entries_max, is_folder), entries_max, report)
}

/// How the report ends that a listing was cut.
pub(crate) const LEFT_OUT: &str = "the rest is left out";

/// The names of a listing; reports why some are missing.
pub(crate) fn names_or_report(
    listed: io::Result<Names>,
    entries_max: usize,
    mut report: impl FnMut(String),
) -> Names {
    match listed {
        Ok(names) => {
            if names.is_cut {
                report(format!("more than {entries_max} entries: {LEFT_OUT}"));
            }
            names
        }
        Err(error) => {
            report(format!("cannot list it: {error}"));
            Names {
                names: Vec::new(),
                is_cut: true,
            }
        }
    }
}

/// Lists the names in a directory that belongs to no home. Why names are missing is a problem,
/// of `agent` if the directory is that agent's.
pub(crate) fn list_outside_homes(
    agent: Option<&AgentId>,
    directory: &Path,
    entries_max: usize,
    problems: &mut Vec<Problem>,
) -> Vec<String> {
    let names = list_or_report(directory, entries_max, |why| {
        problems.push(Problem::at(agent, directory, why));
    });
    names.texts().map(str::to_owned).collect()
}

/// The name that some agents give to the folder of a working directory: every character but
/// ASCII letters and digits becomes a hyphen, counted as JavaScript does (a character outside
/// the basic plane is two units). Not to be undone.
pub(crate) fn hyphenated(work_dir: &Path) -> String {
    let of_unit = |unit| match u8::try_from(unit) {
        Ok(byte) if byte.is_ascii_alphanumeric() => char::from(byte),
        _ => '-',
    };
    work_dir
        .to_string_lossy()
        .encode_utf16()
        .map(of_unit)
        .collect()
}

/// Returns whether a home that is looked at contains this directory.
#[expect(clippy::disallowed_methods, reason = "homes are looked at")]
pub(crate) fn is_directory(path: &Path) -> bool {
    path.is_dir()
}

/// Returns whether a home that is looked at contains anything at this path.
#[expect(clippy::disallowed_methods, reason = "homes are looked at")]
pub(crate) fn is_there(path: &Path) -> bool {
    path.exists()
}

/// Whether a file, or the list of a directory, was changed since then. Where that is unknown,
/// it may have been.
pub(crate) fn is_modified_since(path: &Path, since_ms: i64) -> bool {
    let facts = facts_of_any(path, Links::Follow).ok();
    let modified_ms = facts.and_then(|facts| facts.modified_ms);
    modified_ms.is_none_or(|modified_ms| modified_ms >= since_ms)
}

/// Reads the metadata of a path in a home that is looked at.
///
/// # Errors
///
/// The system's error if the path does not exist or cannot be examined.
#[expect(clippy::disallowed_methods, reason = "homes are looked at")]
pub(crate) fn metadata(path: &Path) -> io::Result<Metadata> {
    std::fs::metadata(path)
}

#[expect(clippy::disallowed_methods, reason = "homes are looked at")]
fn list(
    directory: &Path,
    entries_max: usize,
    is_wanted: impl Fn(&DirEntry) -> bool,
) -> io::Result<Names> {
    let mut found = Names::default();
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if can_not_be_there(&error) => return Ok(found),
        Err(error) => return Err(error),
    };
    for (index, entry) in entries.enumerate() {
        let entry = entry?;
        if index == entries_max {
            found.is_cut = true;
            break;
        }
        if is_wanted(&entry) {
            found.names.push(entry.file_name());
        }
    }
    found.names.sort_unstable();
    Ok(found)
}

fn can_not_be_there(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::InvalidFilename
    )
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests {
    use super::{list_folders_or_report, names_in};

    #[test]
    fn a_directory_that_is_not_there_has_no_names() -> std::io::Result<()> {
        let directory = tempfile::tempdir()?;
        let names = names_in(&directory.path().join("none"), 10)?;
        assert!(names.names.is_empty() && !names.is_cut);
        let names = names_in(&directory.path().join("n".repeat(300)), 10)?;
        assert!(names.names.is_empty() && !names.is_cut);
        Ok(())
    }

    #[test]
    fn names_are_sorted_and_bounded() -> std::io::Result<()> {
        let directory = tempfile::tempdir()?;
        for name in ["c", "a", "b"] {
            std::fs::write(directory.path().join(name), "")?;
        }
        let all = names_in(directory.path(), 3)?;
        assert_eq!(all.texts().collect::<Vec<_>>(), ["a", "b", "c"]);
        assert!(!all.is_cut);
        let cut = names_in(directory.path(), 2)?;
        assert_eq!(cut.names.len(), 2);
        assert!(cut.is_cut);
        Ok(())
    }

    #[test]
    fn a_regular_file_is_no_folder() -> std::io::Result<()> {
        let directory = tempfile::tempdir()?;
        std::fs::write(directory.path().join("b"), "")?;
        std::fs::create_dir(directory.path().join("a"))?;
        std::os::unix::fs::symlink("a", directory.path().join("c"))?;
        let mut reported = Vec::new();
        let folders = list_folders_or_report(directory.path(), 2, |why| reported.push(why));
        assert!(folders.is_cut && folders.names.len() < 3);
        assert_eq!(reported, ["more than 2 entries: the rest is left out"]);
        let folders = list_folders_or_report(directory.path(), 3, |why| reported.push(why));
        assert_eq!(folders.texts().collect::<Vec<_>>(), ["a", "c"]);
        assert_eq!(reported.len(), 1);
        Ok(())
    }

    #[test]
    fn a_file_in_the_place_of_a_directory_is_an_error() -> std::io::Result<()> {
        let directory = tempfile::tempdir()?;
        let file = directory.path().join("file");
        std::fs::write(&file, "")?;
        assert!(names_in(&file, 10).is_err());
        Ok(())
    }
}
