//! Logs whose end is missing, as a full disk, a torn write or a copy leaves them, and
//! other files whose end does not show.

use std::time::SystemTime;

use super::state_files::below;
use super::*;

/// How long a file may be to be changed in many places.
const BYTES_MAX: u64 = 1 << 20;

/// Where a log is cut.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// In the middle of a line.
    InLines,
    /// Before a line, so that a whole one is the last.
    BetweenLines,
}

impl Cut {
    /// The lengths that a log is cut to.
    pub(super) fn lengths(self, bytes: &[u8]) -> Vec<u64> {
        let mut lengths = Vec::new();
        let mut start = 0;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            lengths.push(match self {
                Self::InLines => start + line.len() / 2,
                Self::BetweenLines => start,
            });
            start += line.len();
        }
        lengths.into_iter().map(|one| one as u64).collect()
    }
}

/// Looks at every fixture before and after each of its logs is cut in every place.
#[track_caller]
fn check_logs(cut: Cut, is_wanted: impl Fn(&str) -> bool) {
    check_cuts(
        |name, path| path.extension().is_some_and(|end| end == "log") && is_wanted(name),
        |bytes| cut.lengths(bytes),
    );
}

/// Looks at every fixture before and after each of some files is cut to some lengths:
/// nothing has exited for that, and nothing is live.
#[track_caller]
fn check_cuts(is_wanted: impl Fn(&str, &Path) -> bool, lengths: impl Fn(&[u8]) -> Vec<u64>) {
    check_prepared(|_| {}, is_wanted, lengths);
}

/// The same, after something else has befallen each world.
#[track_caller]
fn check_prepared(
    prepare: impl Fn(&World),
    is_wanted: impl Fn(&str, &Path) -> bool,
    lengths: impl Fn(&[u8]) -> Vec<u64>,
) {
    check_changes(prepare, is_wanted, |bytes| {
        let cut = |length: u64| bytes[..usize::try_from(length).unwrap()].to_vec();
        lengths(bytes).into_iter().map(cut).collect()
    });
}

/// The same with other changes than cuts.
#[track_caller]
fn check_changes(
    prepare: impl Fn(&World),
    is_wanted: impl Fn(&str, &Path) -> bool,
    changes: impl Fn(&[u8]) -> Vec<Vec<u8>>,
) {
    check_changed_files(prepare, is_wanted, changes, |_, _, _| {});
}

/// The same, where each file that was changed is dated by what it was dated before.
#[track_caller]
pub(super) fn check_changed_files(
    prepare: impl Fn(&World),
    is_wanted: impl Fn(&str, &Path) -> bool,
    changes: impl Fn(&[u8]) -> Vec<Vec<u8>>,
    date: impl Fn(&World, &Path, SystemTime),
) {
    let wanted = std::env::var("WHOSUP_FIXTURES").unwrap_or_default();
    let mut report = String::new();
    let mut checked = 0;
    for (name, case) in cases() {
        if !name.contains(&wanted) {
            continue;
        }
        let whole = World::of_fixture(&case);
        prepare(&whole);
        let files = below(whole.home(), whole.home(), false).into_iter();
        let files: Vec<_> = files.filter(|path| is_wanted(&name, path)).collect();
        if files.is_empty() {
            continue;
        }
        let before = rows(&whole.look(DepthName::All));
        if !before.values().any(Row::is_live) {
            continue;
        }
        for file in files {
            let metadata = std::fs::metadata(whole.home().join(&file)).unwrap();
            if metadata.len() > BYTES_MAX {
                continue;
            }
            let bytes = std::fs::read(whole.home().join(&file)).unwrap();
            let modified = metadata.modified().unwrap();
            for mut changed in changes(&bytes) {
                let world = World::of_fixture(&case);
                prepare(&world);
                move_home(&mut changed, whole.home(), world.home());
                // In its place, as whoever has it open has that very file.
                let path = world.home().join(&file);
                File::create(&path).unwrap().write_all(&changed).unwrap();
                date(&world, &path, modified);
                let answer = world.look(DepthName::All);
                let answers = Answers {
                    has_own_environment: !world.file().env.is_empty(),
                    before: before.clone(),
                    after: rows(&answer),
                    answer,
                };
                checked += 1;
                let faults = nothing_has_exited(&answers).into_iter();
                for fault in faults.chain(nothing_has_come_to_life(&answers)) {
                    let _ = writeln!(
                        report,
                        "{name}: {} of {} bytes: {fault}",
                        file.display(),
                        changed.len()
                    );
                }
            }
        }
    }
    assert!(checked > 0);
    assert!(report.is_empty(), "of {checked} cuts\n{report}");
}

/// A file names the home that it lies in, and each world has its own, of one length.
fn move_home(bytes: &mut [u8], from: &Path, to: &Path) {
    let [from, to] = [from, to].map(|home| home.to_str().unwrap().as_bytes());
    assert_eq!(from.len(), to.len());
    for at in 0..bytes.len() {
        if bytes[at..].starts_with(from) {
            bytes[at..at + to.len()].copy_from_slice(to);
        }
    }
}

/// What was not live is not so now. A sub-agent has ended by the last record of its
/// transcript alone: without that it is at work, as its parent is.
fn nothing_has_come_to_life(answers: &Answers) -> Vec<String> {
    let live = answers.after.iter().filter(|(_, row)| row.is_live());
    let new = live.filter_map(|(key, after)| {
        let before = answers.before.get(key)?;
        let lacks_its_end =
            before.is_sub_agent && before.reason == "released" && after.reason == "parent-live";
        let is_new = !before.is_live() && !lacks_its_end;
        is_new.then(|| format!("{key}: {before:?} became {after:?}"))
    });
    new.collect()
}

#[test]
fn a_log_that_is_cut_in_any_line_ends_no_session_and_revives_none() {
    check_logs(Cut::InLines, |_| true);
}

/// Where the database or the transcripts show that something was not logged.
#[test]
fn a_log_that_is_cut_before_any_line_ends_no_session_and_revives_none() {
    // Of a process's own log nothing shows that, if its last line is whole.
    check_logs(Cut::BetweenLines, |name| !name.starts_with("copilot/"));
}

/// After a full disk had room again: half a line and the next one are missing, and the
/// log goes on where that broke off.
#[test]
fn a_log_with_a_hole_ends_no_session_and_revives_none() {
    check_changes(
        |_| {},
        |_, path| path.extension().is_some_and(|end| end == "log"),
        |bytes| {
            let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
            let with_hole = |at: usize| {
                let (broken, _) = lines[at].split_at(lines[at].len() / 2);
                [&lines[..at].concat(), broken, &lines[at + 2..].concat()].concat()
            };
            (0..lines.len().saturating_sub(2)).map(with_hole).collect()
        },
    );
}

/// Gemini CLI's mark of a folder is a path and nothing else.
#[test]
fn a_mark_that_is_cut_anywhere_ends_no_session_and_revives_none() {
    check_cuts(is_mark, |bytes| (0..bytes.len() as u64).collect());
}

fn is_mark(_: &str, path: &Path) -> bool {
    path.ends_with(".project_root")
}

/// The same where the list of folders, which says it as well, is gone.
#[test]
fn without_the_list_a_mark_that_is_cut_ends_no_session() {
    let prepare = |world: &World| {
        let list = world.home().join(".gemini/projects.json");
        if list.is_file() {
            std::fs::remove_file(list).unwrap();
        }
    };
    check_prepared(prepare, is_mark, |bytes| vec![bytes.len() as u64 / 2]);
}
