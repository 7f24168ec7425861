//! Names of threads.
//!
//! Seen in Codex 0.171.0, 2026-11: `session_index.jsonl` gets a line `{"id", "thread_name",
//! "updated_at"}` each time that Codex (at the first prompt) or a person names a thread; the
//! last line counts.

use std::collections::HashMap;
use std::path::Path;

use serde_json::Value;

use crate::sources::agents::kit::dialect::is_missing;
use crate::sources::transcript::{TailBounds, TranscriptError, TranscriptFile};

/// The name of the index.
pub(super) const INDEX: &str = "session_index.jsonl";
/// How much of the index is read, from its end, in bytes: tens of thousands of
/// names.
const INDEX_BYTES_MAX: u64 = 8 << 20;

/// Reads the names of the threads that pass `is_wanted`. A home without an
/// index has none; lines that can't be read are passed over.
pub(super) fn read_names(
    home: &Path,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<HashMap<String, String>, TranscriptError> {
    let file = match TranscriptFile::open(&home.join(INDEX)) {
        Ok(file) => file,
        Err(error) if is_missing(&error) => return Ok(HashMap::new()),
        Err(error) => return Err(error),
    };
    let mut names = HashMap::new();
    let bounds = TailBounds {
        bytes_max: INDEX_BYTES_MAX,
    };
    for line in file.backwards(bounds)? {
        for value in line?.json().values.iter().rev() {
            let Some((id, name)) = name_in(value) else {
                continue;
            };
            if is_wanted(&id) {
                // The one further back is older.
                names.entry(id).or_insert(name);
            }
        }
    }
    Ok(names)
}

fn name_in(value: &Value) -> Option<(String, String)> {
    let id = value.get("id")?.as_str()?.to_ascii_lowercase();
    let name = value.get("thread_name")?.as_str()?.trim();
    (!name.is_empty()).then(|| (id, name.to_owned()))
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests {
    use super::*;

    #[test]
    fn the_last_name_of_a_thread_counts_and_broken_lines_do_not() {
        let home = tempfile::tempdir().unwrap();
        let lines = concat!(
            "{\"id\":\"A\",\"thread_name\":\"first\",\"updated_at\":\"x\"}\n",
            "{\"id\":\"b\",\"thread_name\":\"other\"}\n",
            "{\"id\":\"a\",\"thread_name\":\" second \"}\n",
            "{\"id\":\"a\",\"thread_name\":\"  \"}\n",
            "{\"id\":7,\"thread_name\":\"x\"}\n\0\0\n[]\n",
            "{\"id\":\"c\",\"thread_n",
        );
        std::fs::write(home.path().join("session_index.jsonl"), lines).unwrap();
        let names = read_names(home.path(), |_| true).unwrap();
        assert_eq!(names.len(), 2);
        assert_eq!(names["a"], "second");
        assert_eq!(names["b"], "other");
        assert_eq!(read_names(home.path(), |id| id == "b").unwrap().len(), 1);
    }

    #[test]
    fn a_home_without_an_index_has_no_names_and_a_directory_in_its_place_is_an_error() {
        let home = tempfile::tempdir().unwrap();
        assert!(read_names(home.path(), |_| true).unwrap().is_empty());
        std::fs::create_dir(home.path().join("session_index.jsonl")).unwrap();
        assert!(read_names(home.path(), |_| true).is_err());
    }
}
