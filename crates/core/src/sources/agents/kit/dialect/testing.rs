//! Transcripts for the tests of dialects.

#![allow(clippy::disallowed_methods, reason = "tests make their own files")]

use whosup_sidecar::AgentId;

use super::Dialect;
use crate::sources::transcript::TranscriptFile;

/// Writes a transcript with these lines. It stays until the directory is dropped.
pub(crate) fn file_of(lines: &[impl AsRef<str>]) -> (tempfile::TempDir, TranscriptFile) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("transcript.jsonl");
    let lines = lines.iter().map(|line| format!("{}\n", line.as_ref()));
    std::fs::write(&path, lines.collect::<String>()).expect("a file");
    let file = TranscriptFile::open(&path).expect("a transcript");
    (directory, file)
}

/// The texts of all messages in these lines.
pub(crate) fn messages_in(dialect: &Dialect, lines: &[impl AsRef<str>]) -> Vec<String> {
    let (_directory, file) = file_of(lines);
    let agent = AgentId::from_static("test");
    let found = dialect.messages(&agent, Some(file.path()), 100);
    assert_eq!(found.problems, []);
    found
        .found
        .into_iter()
        .map(|message| message.text)
        .collect()
}
