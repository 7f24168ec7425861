//! Transcripts whose end is missing, as a full disk, a torn write or a copy leaves them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::logs::{Cut, check_changed_files};
use super::*;

/// When a file that was cut was last modified.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Modified {
    /// When it was whole.
    ThenAsWell,
    /// Just now: that is when the disk filled up.
    Now,
}

/// How many lines from either end of a transcript are cut.
const LINES_CUT_MAX: usize = 2;

/// The first and the last few lengths: between them the same is missing.
fn few_of(lengths: &[u64]) -> Vec<u64> {
    let is_near_an_end = |at: usize| at < LINES_CUT_MAX || at + LINES_CUT_MAX >= lengths.len();
    let few = lengths.iter().enumerate();
    few.filter_map(|(at, length)| is_near_an_end(at).then_some(*length))
        .collect()
}

/// Looks at every fixture before and after each of its transcripts is cut in some lines.
#[track_caller]
fn check_transcripts(cut: Cut, modified: Modified) {
    let date = |world: &World, path: &Path, before: SystemTime| {
        let now_ms = u64::try_from(time_ms(&world.file().now)).unwrap();
        let at = match modified {
            Modified::ThenAsWell => before,
            Modified::Now => UNIX_EPOCH + Duration::from_millis(now_ms),
        };
        File::open(path).unwrap().set_modified(at).unwrap();
    };
    check_changed_files(
        |_| {},
        |_, path| path.extension().is_some_and(|end| end == "jsonl"),
        |bytes| {
            let lengths = few_of(&cut.lengths(bytes));
            let cut = |length: u64| bytes[..usize::try_from(length).unwrap()].to_vec();
            lengths.into_iter().map(cut).collect()
        },
        date,
    );
}

/// Nobody can know of one that is cut between two lines, and dated as before, that
/// anything is missing.
#[test]
fn a_transcript_that_is_cut_in_any_line_ends_no_session_and_revives_none() {
    check_transcripts(Cut::InLines, Modified::ThenAsWell);
}

#[test]
fn a_disk_that_fills_up_in_any_line_of_a_transcript_ends_no_session_and_revives_none() {
    check_transcripts(Cut::InLines, Modified::Now);
}

#[test]
fn a_disk_that_fills_up_before_any_line_ends_no_session_and_revives_none() {
    check_transcripts(Cut::BetweenLines, Modified::Now);
}
