//! Threads: which rollouts belong to which.

use std::collections::BTreeMap;

use whosup_sidecar::SessionId;

use super::AGENT;
use super::header::{Header, Part};
use super::record::DIALECT;
use super::rollout::Rollout;
use crate::machine::problem::Problem;
use crate::sources::transcript::{HeadBounds, Stopped, TranscriptFile};

/// How much of a rollout is read to see whether it has messages: a longer rollout has more
/// than a header.
const WORDS_BOUNDS: HeadBounds = HeadBounds {
    bytes_max: 1 << 20,
    lines_max: 16,
};

/// A rollout and the facts in its header.
#[derive(Debug, Clone)]
pub(super) struct Segment {
    /// The rollout.
    pub(super) rollout: Rollout,
    /// The header; empty for a compressed or unreadable rollout.
    pub(super) header: Header,
}

/// Groups rollouts by thread, and keeps the newest segment of each thread.
///
/// The two paths of an archived hard link, and a plain and a compressed copy, are one file.
/// The segments of one thread belong together.
pub(super) fn newest_segments(
    rollouts: Vec<Rollout>,
    problems: &mut Vec<Problem>,
) -> BTreeMap<SessionId, Segment> {
    let mut threads: BTreeMap<SessionId, Segment> = BTreeMap::new();
    for rollout in rollouts {
        let segment = Segment::read(rollout, problems);
        let Some(id) = segment.thread(problems) else {
            continue;
        };
        keep_newest(&mut threads, id, segment);
    }
    threads
}

/// Adds a segment to its thread, unless a newer one is known.
pub(super) fn keep_newest(
    threads: &mut BTreeMap<SessionId, Segment>,
    thread: SessionId,
    segment: Segment,
) {
    let known = threads.get(&thread);
    if known.is_none_or(|known| known.is_older_than(&segment)) {
        threads.insert(thread, segment);
    }
}

impl Segment {
    fn read(rollout: Rollout, problems: &mut Vec<Problem>) -> Self {
        let read = match rollout.is_compressed {
            true => Ok(Header::default()),
            false => Header::read(&rollout.path, Part::Beginning),
        };
        let header = read.unwrap_or_else(|error| {
            problems.push(Problem::at(&AGENT, &rollout.path, error));
            Header::default()
        });
        Self { rollout, header }
    }

    /// The thread of the rollout.
    ///
    /// A name with two ids belongs to the first thread if it continues that thread, and to
    /// the second if it is a fork of the first. Reports differ, so the header decides if it
    /// can.
    fn thread(&self, problems: &mut Vec<Problem>) -> Option<SessionId> {
        let rollout = &self.rollout;
        let header = &self.header;
        let header_id = header.id.as_ref();
        let is_other = |id: &String| header_id.is_some_and(|header_id| header_id != id);
        let own = &rollout.id;
        let (id, doubt) = match &rollout.continues {
            None => {
                let doubt = "its header names another thread than its name does";
                (own, is_other(own).then_some(doubt))
            }
            Some(_) if header_id == Some(own) => (own, None),
            Some(first) if header.forked_from.as_ref() == Some(first) => (own, None),
            Some(first) if is_other(first) => {
                (first, Some("its header names neither thread of its name"))
            }
            Some(first) => {
                let doubt = "its name has two threads, and its header does not say whether it is a fork: taken for a part of the first";
                let is_doubtful = header_id.is_some() && !header.has_history_base;
                (first, is_doubtful.then_some(doubt))
            }
        };
        problems.extend(doubt.map(|doubt| Problem::at(&AGENT, &rollout.path, doubt)));
        SessionId::parse(id).ok()
    }

    /// Returns whether `other` continues the thread, rather than this rollout. A rollout
    /// that has only a header, such as a copy made elsewhere, continues nothing.
    pub(super) fn is_older_than(&self, other: &Self) -> bool {
        self.rollout != other.rollout
            && (self.may_have_words(), self.age()) < (other.may_have_words(), other.age())
    }

    fn may_have_words(&self) -> bool {
        if self.rollout.is_compressed || self.header.has_history_base {
            return true;
        }
        let file = TranscriptFile::open(&self.rollout.path);
        let read = file.and_then(|file| file.head(WORDS_BOUNDS));
        read.map_or(true, |head| {
            let mut values = head.lines.iter().flat_map(|line| line.json().values);
            head.stopped != Stopped::NothingLeft
                || values.any(|value| !(DIALECT.record)(&value).is_aside)
        })
    }

    /// Sorts the segments of a thread by age, and the better of two that are
    /// the same last.
    fn age(&self) -> (&str, &str, bool, bool) {
        let rollout = &self.rollout;
        (
            &rollout.time,
            &rollout.id,
            !rollout.is_archived,
            !rollout.is_compressed,
        )
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests {
    use std::path::Path;

    use super::*;

    const ROOT: &str = "01a03d4c-6ad5-7c61-8fb6-eb5c80d47252";
    const OTHER: &str = "01a03d5c-e4b7-7e02-b2d8-de3ee9c7b8dd";

    /// The thread of a rollout by its name and the fields of its header, and
    /// whether that left a doubt.
    fn thread(name: &str, fields: &str) -> (String, bool) {
        let dir = tempfile::tempdir().unwrap();
        let line = format!(r#"{{"type":"session_meta","payload":{{{fields}}}}}"#);
        std::fs::write(dir.path().join(name), line).unwrap();
        let rollout = Rollout::of(dir.path(), name, false).unwrap();
        let mut problems = Vec::new();
        let threads = newest_segments(vec![rollout], &mut problems);
        let id = threads.into_keys().next().unwrap();
        (id.as_str().to_owned(), !problems.is_empty())
    }

    #[test]
    fn a_segment_belongs_to_the_thread_that_it_goes_on_with() {
        let name = format!("rollout-2026-08-27T17-33-00-{ROOT}_{OTHER}.jsonl");
        let based = format!(r#""id":"{ROOT}","history_base":{{"thread_id":"{ROOT}"}}"#);
        assert_eq!(thread(&name, &based), (ROOT.to_owned(), false));
        let of_a_fork = format!(
            r#""id":"{ROOT}","forked_from_id":"{}","history_base":{{"thread_id":"{ROOT}"}}"#,
            "00000000-0000-7000-8000-000000000000"
        );
        assert_eq!(thread(&name, &of_a_fork), (ROOT.to_owned(), false));
        let silent = format!(r#""id":"{ROOT}""#);
        assert_eq!(thread(&name, &silent), (ROOT.to_owned(), true));
        assert_eq!(thread(&name, r#""cwd":"/w""#), (ROOT.to_owned(), false));
    }

    #[test]
    fn a_fork_is_a_thread_of_its_own() {
        let name = format!("rollout-2026-08-27T17-33-00-{ROOT}_{OTHER}.jsonl");
        let marked = format!(r#""id":"{ROOT}","forked_from_id":"{ROOT}""#);
        assert_eq!(thread(&name, &marked), (OTHER.to_owned(), false));
        let named = format!(r#""id":"{OTHER}""#);
        assert_eq!(thread(&name, &named), (OTHER.to_owned(), false));
    }

    #[test]
    fn a_header_that_contradicts_the_name_is_a_problem_and_the_name_counts() {
        let name = format!("rollout-2026-08-27T17-33-00-{ROOT}.jsonl");
        let other = format!(r#""id":"{OTHER}""#);
        assert_eq!(thread(&name, &other), (ROOT.to_owned(), true));
        let same = format!(r#""id":"{}""#, ROOT.to_uppercase());
        assert_eq!(thread(&name, &same), (ROOT.to_owned(), false));
    }

    #[test]
    fn the_newest_segment_stands_for_the_thread_whatever_the_order() {
        let dir = Path::new("/nowhere");
        let names = [
            format!("rollout-2026-08-26T17-18-13-{ROOT}.jsonl.zst"),
            format!("rollout-2026-08-27T09-00-00-{ROOT}_{OTHER}.jsonl.zst"),
        ];
        let rollouts = |archived: bool| {
            let rollouts = names
                .iter()
                .map(move |name| Rollout::of(dir, name, archived).unwrap());
            rollouts.collect::<Vec<_>>()
        };
        let mut problems = Vec::new();
        let mut all = rollouts(true);
        all.extend(rollouts(false));
        for _ in 0..all.len() {
            all.rotate_left(1);
            let threads = newest_segments(all.clone(), &mut problems);
            let newest: Vec<_> = threads.values().collect();
            assert_eq!(newest.len(), 1);
            assert_eq!(newest[0].rollout.time, "2026-08-27T09-00-00");
            assert!(!newest[0].rollout.is_archived);
        }
        assert!(problems.is_empty());
    }
}
