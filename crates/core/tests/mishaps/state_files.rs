//! What has befallen the small files in which agents keep their state, and the
//! directories of these.

use super::*;

/// Files that say nothing of themselves when a part of them is missing: a log, the
/// changes to a database that are not in it yet. What is gone from them is not there,
/// and not unreadable.
fn is_whole_at_any_length(path: &Path) -> bool {
    let name = path.file_name().unwrap().to_str().unwrap();
    [".log", ".jsonl", "-wal", "-shm"]
        .iter()
        .any(|end| name.ends_with(end))
}

/// What is below a directory, relative to it: directories, or files with content.
pub(super) fn below(root: &Path, directory: &Path, are_directories: bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let metadata = path.symlink_metadata().unwrap();
        let is_file = metadata.is_file() && metadata.len() > 0;
        if is_file != are_directories && (is_file || metadata.is_dir()) {
            found.push(path.strip_prefix(root).unwrap().to_owned());
        }
        if metadata.is_dir() {
            found.extend(below(root, &path, are_directories));
        }
    }
    found.sort();
    found
}

/// Looks at every fixture before and after a change to one of its files, file by
/// file. A session without another source than that file may be gone with it.
#[track_caller]
fn check_each_file(is_wanted: impl Fn(&Path) -> bool, change: impl Fn(&Path)) {
    let wanted = std::env::var("WHOSUP_FIXTURES").unwrap_or_default();
    let mut report = String::new();
    let mut checked = 0;
    for (name, case) in cases() {
        // An agent without an adapter is known by its sidecars alone.
        if !name.contains(&wanted) || name.starts_with("common-place/") {
            continue;
        }
        let before = rows_of(&case);
        if !before.values().any(Row::is_live) {
            continue;
        }
        let whole = World::of_fixture(&case);
        let files = below(whole.home(), whole.home(), false);
        for file in files.into_iter().filter(|file| is_wanted(file)) {
            let world = World::of_fixture(&case);
            change(&world.home().join(&file));
            let answer = world.look(DepthName::All);
            let answers = Answers {
                has_own_environment: !world.file().env.is_empty(),
                before: before.clone(),
                after: rows(&answer),
                answer,
            };
            checked += 1;
            for fault in nothing_has_exited(&answers) {
                let _ = writeln!(report, "{name}: {}: {fault}", file.display());
            }
        }
    }
    assert!(checked > 0);
    assert!(report.is_empty(), "of {checked} files\n{report}");
}

/// A file of zero bytes, as a full disk leaves it, hid everything (oh-my-pi#8596,
/// opencode#7607, kern-ai#300); and what can't be read ends nobody.
#[test]
fn zero_bytes_in_place_of_any_file_end_no_session() {
    let is_wanted = |path: &Path| {
        let name = path.to_str().unwrap();
        // Changes to a database that are gone are not there, and Droid keeps nothing
        // of a session but its transcript.
        !["-wal", "-shm"].iter().any(|end| name.ends_with(end)) && !name.contains(".factory/")
    };
    check_each_file(is_wanted, |path| {
        File::create(path).unwrap();
    });
}

/// The same for what was torn in its middle.
#[test]
fn the_first_half_of_any_state_file_ends_no_session() {
    check_each_file(
        |path| !is_whole_at_any_length(path),
        |path| {
            let half = std::fs::metadata(path).unwrap().len() / 2;
            let file = File::options().write(true).open(path).unwrap();
            file.set_len(half).unwrap();
        },
    );
}

/// A root that lacks one of its directories was refused as a whole (abtop#135).
#[test]
fn a_directory_that_is_not_there_is_no_error_and_hides_nothing_beside_it() {
    let wanted = std::env::var("WHOSUP_FIXTURES").unwrap_or_default();
    let mut report = String::new();
    for (name, case) in cases() {
        if !name.contains(&wanted) {
            continue;
        }
        let world = World::of_fixture(&case);
        let before = world.look(DepthName::All);
        let known = before["problems"].as_array().unwrap();
        for directory in below(world.home(), world.home(), true) {
            let held = format!("@HOME@/{}/", directory.display());
            // Nobody holds a file that is not there.
            let world = World::of_changed_fixture(&case, |world| {
                each_process(world, |process| {
                    let held_files = process.get_mut("holds").and_then(Value::as_array_mut);
                    if let Some(files) = held_files {
                        files.retain(|file| !file["path"].as_str().unwrap().starts_with(&held));
                    }
                });
            });
            std::fs::remove_dir_all(world.home().join(&directory)).unwrap();
            let after = world.look(DepthName::All);
            let problems = after["problems"].as_array().unwrap().iter();
            let new = problems.filter(|one| !known.contains(one));
            for problem in new.filter(|one| one["message"].as_str().unwrap().contains("No such")) {
                let _ = writeln!(report, "{name}: {}: {problem}", directory.display());
            }
        }
    }
    assert!(report.is_empty(), "\n{report}");
}
