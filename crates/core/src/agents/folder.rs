//! Lists a directory of an agent's, bounded and in one order.

use std::ffi::OsString;
use std::io;
use std::path::Path;

/// The names in a directory.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// Sorted, so that the order in which a file system lists never matters.
    pub(crate) names: Vec<OsString>,
    /// There are more than were asked for.
    pub(crate) is_cut: bool,
}

impl Names {
    /// The names that are UTF-8. An agent's own names all are.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.names.iter().filter_map(|name| name.to_str())
    }
}

/// Lists the names in `directory`, at most `entries_max` of them. A directory
/// that is not there has none; nor is one there whose name is longer than any
/// on its file system, as agents make up from a long working directory (pi#9836).
///
/// # Errors
///
/// What the system said if it can't be read.
pub(crate) fn names_in(directory: &Path, entries_max: usize) -> io::Result<Names> {
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if can_not_be_there(&error) => return Ok(Names::default()),
        Err(error) => return Err(error),
    };
    let mut found = Names::default();
    for entry in entries {
        let name = entry?.file_name();
        if found.names.len() == entries_max {
            found.is_cut = true;
            break;
        }
        found.names.push(name);
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

/// The same; tells what keeps it from listing everything.
pub(crate) fn list_or_tell(
    directory: &Path,
    entries_max: usize,
    mut tell: impl FnMut(String),
) -> Names {
    match names_in(directory, entries_max) {
        Ok(names) => {
            if names.is_cut {
                tell(format!("it has more than {entries_max} entries"));
            }
            names
        }
        Err(error) => {
            tell(error.to_string());
            Names::default()
        }
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests {
    use super::names_in;

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
    fn a_file_in_the_place_of_a_directory_is_an_error() -> std::io::Result<()> {
        let directory = tempfile::tempdir()?;
        let file = directory.path().join("file");
        std::fs::write(&file, "")?;
        assert!(names_in(&file, 10).is_err());
        Ok(())
    }
}
