//! What is known of a transcript that lacks its end.

use std::time::{Duration, UNIX_EPOCH};

use serde_json::Value;

use super::World;
use crate::sources::transcript::MissingEnd;

const T: i64 = 1_795_800_000_000;

/// The missing end of a file with this content that was modified at `T + modified_ms`, and
/// whose last record of interest dates from `last_ms`. Records are dated by `at`, after `T`.
fn missing(content: &str, modified_ms: i64, last_ms: Option<i64>) -> Option<(i64, bool)> {
    let world = World::with(content.as_bytes());
    let at = UNIX_EPOCH + Duration::from_millis(u64::try_from(T + modified_ms).unwrap());
    let file = std::fs::File::options()
        .append(true)
        .open(&world.path)
        .unwrap();
    file.set_modified(at).unwrap();
    let date_of = |record: &Value| Some(T + record.get("at")?.as_i64()?);
    let last_at_ms = last_ms.map(|last| T + last);
    let missing = world.open().missing_end(last_at_ms, date_of).unwrap();
    missing.map(|MissingEnd { until_ms, is_torn }| (until_ms - T, is_torn))
}

#[test]
fn a_torn_record_may_be_as_late_as_the_file_was_modified() {
    let torn = "{\"at\":0}\n{\"at\":60";
    assert_eq!(missing(torn, 60_000, Some(0)), Some((60_000, true)));
    assert_eq!(missing(torn, 60_000, None), Some((60_000, true)));
    assert_eq!(missing(torn, 1_500, Some(0)), None);
    // An empty file gives no date.
    assert_eq!(missing("", 60_000, None), Some((60_000, true)));
    assert_eq!(missing("{\"a", 60_000, None), Some((60_000, true)));
    // It may have an image.
    let long = format!("{{\"at\":60000,\"image\":\"{}\"}}", "x".repeat(3 << 20));
    assert_eq!(missing(&format!("{long}\n"), 60_000, None), None);
    let torn = format!("{{\"at\":0}}\n{}", &long[..long.len() - 9]);
    assert_eq!(missing(&torn, 60_000, None), Some((60_000, true)));
}

#[test]
fn nothing_is_missing_before_the_last_whole_record_of_any_kind() {
    let aside = "{\"at\":0}\n{\"at\":60000}\n{\"aside\":";
    assert_eq!(missing(aside, 60_000, Some(0)), None);
    assert_eq!(missing(aside, 80_000, Some(0)), Some((80_000, true)));
}

#[test]
fn of_whole_lines_only_the_files_date_counts_with_more_slack() {
    let whole = "{\"at\":0}\n";
    assert_eq!(missing(whole, 8_000, Some(0)), None);
    assert_eq!(missing(whole, 60_000, Some(0)), Some((60_000, false)));
    // Only its newline is missing.
    assert_eq!(
        missing("{\"at\":0}", 60_000, Some(0)),
        Some((60_000, false))
    );
    assert_eq!(missing("{\"at\":0}", 1_500, None), None);
}

#[test]
fn of_whole_lines_that_were_all_written_when_the_file_was_made_nothing_is_missing() {
    let world = World::with(b"{\"at\":0}\n");
    let file = world.open();
    // Not every file system remembers when a file was made.
    if file.facts().born_ms.is_some() {
        assert_eq!(file.missing_end(Some(T), |_| None).unwrap(), None);
    }
    let torn = World::with(b"{\"at\":0}\n{");
    let missing = torn.open().missing_end(Some(T), |_| None).unwrap();
    assert!(missing.is_some_and(|end| end.is_torn));
}
