#![allow(clippy::disallowed_methods, reason = "tests make their own files")]

use std::fs;
use std::os::unix::fs::symlink;

use whosup_sidecar::file::{Links, facts_of_any};

use super::*;

/// When the process of the table below began.
const BEGAN_MS: i64 = 1_795_813_200_000;

fn directory(path: &str, seen: Option<(u64, Option<i64>)>) -> Directory {
    Directory {
        path: PathBuf::from(path),
        seen: seen.map(|(inode, born_ms)| Seen {
            device: 1,
            inode,
            born_ms,
        }),
    }
}

#[test]
fn a_directory_excludes_a_process_only_if_nothing_else_explains_the_difference() {
    let old = Some(BEGAN_MS - 60_000);
    let just_before = Some(BEGAN_MS - CLOCK_SLACK_MS);
    let young = Some(BEGAN_MS + 60_000);
    let own = || directory("/w/b", Some((2, old)));
    let text = |path| directory(path, None);
    let began = Some(BEGAN_MS);
    let table = [
        // By whatever names, one directory is one.
        (
            directory("/w/a", Some((2, old))),
            own(),
            began,
            Beside::Same,
        ),
        (
            directory("/w/a", Some((2, None))),
            own(),
            None,
            Beside::Same,
        ),
        // Another one that was there before the process.
        (
            directory("/w/a", Some((1, old))),
            own(),
            began,
            Beside::Excluded,
        ),
        // It may have taken the place of the one that the process works in.
        (
            directory("/w/a", Some((1, young))),
            own(),
            began,
            Beside::Unknown,
        ),
        (
            directory("/w/a", Some((1, just_before))),
            own(),
            began,
            Beside::Unknown,
        ),
        (
            directory("/w/a", Some((1, None))),
            own(),
            began,
            Beside::Unknown,
        ),
        (
            directory("/w/a", Some((1, old))),
            own(),
            None,
            Beside::Unknown,
        ),
        // Replaced between the two looks.
        (
            directory("/w/b", Some((1, old))),
            own(),
            began,
            Beside::Unknown,
        ),
        // Not there, not local, or not touched: text.
        (text("/w/b"), own(), began, Beside::Same),
        (text("/w/a"), own(), began, Beside::Unknown),
        (
            directory("/w/a", Some((1, old))),
            text("/w/b"),
            began,
            Beside::Unknown,
        ),
        (text("/w/a"), text("/w/a"), began, Beside::Same),
        (text("/w/a"), text("/w/b"), began, Beside::Unknown),
    ];
    for (recorded, process, began, right) in table {
        let found = recorded.beside(&process, began);
        assert_eq!(found, right, "{recorded:?} {process:?} {began:?}");
    }
}

/// Two real directories, and a process that works in one of them.
struct World {
    root: PathBuf,
    /// After the birth of both, by more than clocks may differ.
    began_ms: i64,
    _folder: tempfile::TempDir,
}

impl World {
    /// `None` if the file system does not remember births.
    #[allow(clippy::print_stderr, reason = "a skipped test prints why")]
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["app", "other"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        let Some(born) = facts_of_any(&root.join("other"), Links::Follow)
            .unwrap()
            .born_ms
        else {
            eprintln!(
                "skipped: the file system of {} has no births",
                root.display()
            );
            return None;
        };
        Some(Self {
            root,
            began_ms: born + 2 * CLOCK_SLACK_MS,
            _folder: folder,
        })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn beside(&self, recorded: &str, own: &str, began_ms: i64) -> Beside {
        let mounts = Mounts::of_this_machine();
        let look = |name| Directory::recorded(&mounts, &self.at(name));
        look(recorded).beside(&look(own), Some(began_ms))
    }
}

#[test]
fn real_directories_are_the_same_by_any_link_and_others_are_excluded() {
    let Some(world) = World::new() else { return };
    symlink("app", world.at("link")).unwrap();
    assert_eq!(world.beside("link", "app", world.began_ms), Beside::Same);
    assert_eq!(world.beside("app", "app", world.began_ms), Beside::Same);
    assert_eq!(
        world.beside("app", "other", world.began_ms),
        Beside::Excluded
    );
}

#[test]
fn a_directory_that_was_renamed_deleted_or_made_anew_excludes_no_process() {
    let Some(world) = World::new() else { return };
    // The process began right after the first of them was made.
    let began = world.began_ms - 2 * CLOCK_SLACK_MS;
    let later = world.began_ms + 600_000;
    fs::rename(world.at("app"), world.at("renamed")).unwrap();
    assert_eq!(world.beside("app", "renamed", later), Beside::Unknown);
    fs::create_dir(world.at("app")).unwrap();
    assert_eq!(world.beside("app", "renamed", began), Beside::Unknown);
    // Only its age makes the difference.
    assert_eq!(world.beside("app", "renamed", later), Beside::Excluded);
    fs::remove_dir(world.at("renamed")).unwrap();
    assert_eq!(world.beside("app", "renamed", later), Beside::Unknown);
    assert_eq!(world.beside("gone", "other", later), Beside::Unknown);
    assert_eq!(world.beside("gone", "gone", later), Beside::Same);
    // Whatever had their names then has another one now.
    let mounts = Mounts::of_this_machine();
    let is_made_since = |name: &str, since_ms: i64| {
        let recorded = Directory::recorded(&mounts, &world.at(name));
        recorded.is_made_since(Some(since_ms))
    };
    assert!(is_made_since("app", began - 60_000));
    assert!(!is_made_since("app", later));
    assert!(is_made_since("gone", later));
}

#[test]
fn a_link_that_was_made_anew_excludes_no_process() {
    let Some(world) = World::new() else { return };
    symlink("app", world.at("link")).unwrap();
    fs::remove_file(world.at("link")).unwrap();
    symlink("other", world.at("link")).unwrap();
    let link = facts_of_any(&world.at("link"), Links::Refuse).unwrap();
    let Some(linked_ms) = link.born_ms else {
        eprintln!("skipped: the file system does not remember when a link was made");
        return;
    };
    // The directory that it leads to now is older than the process; the link is not.
    assert_eq!(world.beside("link", "app", linked_ms), Beside::Unknown);
    let later = linked_ms + 2 * CLOCK_SLACK_MS;
    assert_eq!(world.beside("link", "app", later), Beside::Excluded);
}
