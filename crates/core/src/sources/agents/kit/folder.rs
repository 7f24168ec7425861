//! Lists a directory of an agent's, bounded and in one order.

use std::ffi::OsString;
use std::fs::{DirEntry, Metadata};
use std::io;
use std::path::Path;

use whosup_sidecar::file::{Links, facts_of_any};

/// The names in a directory.
#[derive(Debug, Default)]
pub(crate) struct Names<N = OsString> {
    /// Sorted, so that the order in which a file system lists never matters.
    pub(crate) names: Vec<N>,
    /// There are more than were asked for.
    pub(crate) is_cut: bool,
}

impl Names {
    /// The names that are UTF-8. An agent's own names all are.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.names.iter().filter_map(|name| name.to_str())
    }
}

/// A name in a directory, and the type of the entry.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    pub(crate) name: OsString,
    /// The listing shows a regular file.
    pub(crate) is_file: bool,
}

/// Lists the names in `directory`, at most `entries_max` of them. A missing directory is
/// empty. So is a directory whose name is longer than the file system allows, which agents
/// can build from a long working directory (pi#9836).
///
/// # Errors
///
/// The system's error if the directory cannot be read.
pub(crate) fn names_in(directory: &Path, entries_max: usize) -> io::Result<Names> {
    list(directory, entries_max, |entry| entry.file_name())
}

/// Lists like [`names_in`], with the type of each entry.
///
/// # Errors
///
/// The system's error if the directory cannot be read.
pub(crate) fn entries_in(directory: &Path, entries_max: usize) -> io::Result<Names<Entry>> {
    list(directory, entries_max, |entry| Entry {
        name: entry.file_name(),
        is_file: entry.file_type().is_ok_and(|kind| kind.is_file()),
    })
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
fn list<N: Ord>(
    directory: &Path,
    entries_max: usize,
    take: impl Fn(&DirEntry) -> N,
) -> io::Result<Names<N>> {
    let mut found = Names {
        names: Vec::new(),
        is_cut: false,
    };
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if can_not_be_there(&error) => return Ok(found),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        if found.names.len() == entries_max {
            found.is_cut = true;
            break;
        }
        found.names.push(take(&entry));
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

/// Lists the folders in `directory`: everything but regular files, which agents
/// and people put beside them.
///
/// # Errors
///
/// The system's error if the directory cannot be read.
pub(crate) fn folders_in(directory: &Path, entries_max: usize) -> io::Result<Names> {
    let listed = entries_in(directory, entries_max)?;
    let folders = listed.names.into_iter().filter(|entry| !entry.is_file);
    Ok(Names {
        names: folders.map(|entry| entry.name).collect(),
        is_cut: listed.is_cut,
    })
}

/// Lists like [`folders_in`] and reports why entries are missing.
pub(crate) fn list_folders_or_report(
    directory: &Path,
    entries_max: usize,
    report: impl FnMut(String),
) -> Names {
    names_or_report(folders_in(directory, entries_max), entries_max, report)
}

/// Lists like [`names_in`] and reports why entries are missing.
pub(crate) fn list_or_report(
    directory: &Path,
    entries_max: usize,
    report: impl FnMut(String),
) -> Names {
    names_or_report(names_in(directory, entries_max), entries_max, report)
}

/// Lists like [`entries_in`] and reports why entries are missing.
pub(crate) fn list_entries_or_report(
    directory: &Path,
    entries_max: usize,
    report: impl FnMut(String),
) -> Names<Entry> {
    names_or_report(entries_in(directory, entries_max), entries_max, report)
}

fn names_or_report<N>(
    listed: io::Result<Names<N>>,
    entries_max: usize,
    mut report: impl FnMut(String),
) -> Names<N> {
    match listed {
        Ok(names) => {
            if names.is_cut {
                report(format!("it has more than {entries_max} entries"));
            }
            names
        }
        Err(error) => {
            report(error.to_string());
            Names {
                names: Vec::new(),
                is_cut: false,
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests {
    use super::{entries_in, names_in};

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
    fn an_entry_shows_whether_it_is_a_regular_file() -> std::io::Result<()> {
        let directory = tempfile::tempdir()?;
        std::fs::write(directory.path().join("b"), "")?;
        std::fs::create_dir(directory.path().join("a"))?;
        let entries = entries_in(directory.path(), 3)?.names;
        let listed = entries.iter().map(|one| (one.name.to_str(), one.is_file));
        assert_eq!(
            listed.collect::<Vec<_>>(),
            [(Some("a"), false), (Some("b"), true)]
        );
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
