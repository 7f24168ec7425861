//! Rollouts: the transcripts of threads, by their names.
//!
//! Seen in Codex 0.171.0, 2026-11: `sessions/YYYY/MM/DD/rollout-TIME-ID.jsonl`
//! with the local date and time of the thread's birth; written from the first
//! prompt on and then held open; `archived_sessions/rollout-TIME-ID.jsonl` once
//! archived. Older rollouts may be compressed to `….jsonl.zst`. After a revert, or after a
//! resume in some releases, a thread continues in another file,
//! `rollout-TIME-ID_SEGMENT.jsonl` (cc-switch#6904, cc-switch#7273).

use std::path::{Path, PathBuf};

use crate::sources::agents::kit::uuid::{UUID_BYTES, is_uuid};

/// A rollout file, as described by its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rollout {
    /// Where it is.
    pub(super) path: PathBuf,
    /// The last UUID in its name: of the rollout, and mostly of its thread too.
    pub(super) id: String,
    /// The first UUID, if there are two: the thread that this file continues.
    pub(super) continues: Option<String>,
    /// The local time in its name, as text: it sorts like the time.
    pub(super) time: String,
    /// It is compressed.
    pub(super) is_compressed: bool,
    /// It lies among the archived rollouts.
    pub(super) is_archived: bool,
}

impl Rollout {
    /// Reads the name of a file. `None`: it is no rollout.
    pub(super) fn of(directory: &Path, name: &str, is_archived: bool) -> Option<Self> {
        let (stem, is_compressed) = match name.strip_suffix(".zst") {
            Some(plain) => (plain, true),
            None => (name, false),
        };
        let stem = stem.strip_prefix("rollout-")?.strip_suffix(".jsonl")?;
        let (rest, id) = split_uuid(stem)?;
        let (rest, continues) = match rest.strip_suffix('_').and_then(split_uuid) {
            Some((rest, thread)) => (rest, Some(thread)),
            None => (rest, None),
        };
        let time = match rest.strip_suffix('-') {
            Some(time) => time,
            // No time at all, which names that were made by hand may lack.
            None if rest.is_empty() => rest,
            None => return None,
        };
        Some(Self {
            path: directory.join(name),
            id: id.to_ascii_lowercase(),
            continues: continues.map(str::to_ascii_lowercase),
            time: time.to_owned(),
            is_compressed,
            is_archived,
        })
    }

    /// Returns whether the file name contains this id, so that the file may belong to the
    /// thread.
    pub(super) fn may_be_of(&self, thread: &str) -> bool {
        self.id == thread || self.continues.as_deref() == Some(thread)
    }
}

/// Splits the UUID off the end of a text.
fn split_uuid(text: &str) -> Option<(&str, &str)> {
    let (rest, uuid) = text.split_at_checked(text.len().checked_sub(UUID_BYTES)?)?;
    is_uuid(uuid).then_some((rest, uuid))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "01a03d4c-6ad5-7c61-8fb6-eb5c80d47252";
    const SEGMENT: &str = "01a03d5c-e4b7-7e02-b2d8-de3ee9c7b8dd";

    #[track_caller]
    fn check(name: &str, right: Option<(&str, Option<&str>, &str, bool)>) {
        let rollout = Rollout::of(Path::new("/d"), name, false);
        let parsed = rollout.as_ref().map(|rollout| {
            let continues = rollout.continues.as_deref();
            (
                rollout.id.as_str(),
                continues,
                rollout.time.as_str(),
                rollout.is_compressed,
            )
        });
        assert_eq!(parsed, right, "{name}");
    }

    #[test]
    fn a_name_tells_thread_time_and_form() {
        let time = "2026-08-26T17-18-13";
        check(
            &format!("rollout-{time}-{ID}.jsonl"),
            Some((ID, None, time, false)),
        );
        check(
            &format!("rollout-{time}-{ID}.jsonl.zst"),
            Some((ID, None, time, true)),
        );
        check(
            &format!("rollout-{time}-{ID}_{SEGMENT}.jsonl"),
            Some((SEGMENT, Some(ID), time, false)),
        );
        check(&format!("rollout-{ID}.jsonl"), Some((ID, None, "", false)));
        check(
            &format!("rollout-{}.jsonl", ID.to_uppercase()),
            Some((ID, None, "", false)),
        );
    }

    #[test]
    fn what_is_no_rollout_is_none() {
        for name in [
            "rollout-.jsonl",
            "rollout-2026-08-26T17-18-13.jsonl",
            "rollout-2026-08-26T17-18-13-01a03d4c.jsonl",
            &format!("rollout-x{ID}.jsonl"),
            &format!("rollout-2026-{ID}.jsonl.tmp"),
            &format!("rollout-2026-{ID}.json"),
            &format!("{ID}.jsonl"),
            "rollout-é1a03d4c-6ad5-7c61-8fb6-eb5c80d4725.jsonl",
            ".DS_Store",
        ] {
            check(name, None);
        }
    }
}
