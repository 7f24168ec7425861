//! The names and paths of the files in a project's folder.

use std::path::{Path, PathBuf};

use whosup_sidecar::SessionId;

use crate::sources::agents::kit::folder::hyphenated;
use crate::sources::agents::qwen_code::home::Runtime;
use crate::sources::agents::qwen_code::sidecar;

/// How the names of transcripts end.
const TRANSCRIPT_SUFFIX: &str = ".jsonl";
/// How long the id in a transcript's name is (a UUID, with or without hyphens).
const ID_LENGTHS: std::ops::RangeInclusive<usize> = 32..=36;

pub(super) fn chats_of(project: &Path) -> PathBuf {
    project.join("chats")
}

/// The folder of a directory's sessions.
pub(super) fn chats_in(runtime: &Runtime, work_dir: &Path) -> PathBuf {
    chats_of(&runtime.path.join("projects").join(hyphenated(work_dir)))
}

/// The name of a session's own sidecar.
pub(super) fn sidecar_name(session: &SessionId) -> String {
    format!("{session}{}", sidecar::SUFFIX)
}

pub(super) fn transcript_path(chats: &Path, session: &SessionId) -> PathBuf {
    chats.join(format!("{session}{TRANSCRIPT_SUFFIX}"))
}

/// The session that a transcript's name names. Other `.jsonl` files beside it
/// (`SESSION.ledger.jsonl`) name none.
pub(super) fn session_of(name: &str) -> Option<SessionId> {
    let stem = name.strip_suffix(TRANSCRIPT_SUFFIX)?;
    let is_id = ID_LENGTHS.contains(&stem.len())
        && stem
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    is_id.then(|| SessionId::parse(stem).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_encoded_as_qwen_code_does() {
        let check = |path: &str, right: &str| assert_eq!(hyphenated(Path::new(path)), right);
        check("/home/dev/my_app.v1", "-home-dev-my-app-v1");
        check("/home/dev/é", "-home-dev--");
        check("/w/\u{1F980}x", "-w---x");
    }

    #[test]
    fn only_an_id_names_a_transcript() {
        assert!(session_of("0a0cf238-8b66-4429-9815-234560ccc5d1.jsonl").is_some());
        for other in [
            "0a0cf238-8b66-4429-9815-234560ccc5d1.ledger.jsonl",
            "0a0cf238-8b66-4429-9815-234560ccc5d1.runtime.json",
            "notes.jsonl",
            ".jsonl",
        ] {
            assert_eq!(session_of(other), None, "{other}");
        }
    }
}
