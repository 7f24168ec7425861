//! Over the fixtures: all that a look reads lies under the paths that it names as worth
//! watching, and a look does not wake a watcher of those paths.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

#[path = "../../core/tests/world/mod.rs"]
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use whosup_core::machine::Machine;
use whosup_core::reader::{Form, ListQuery, Reader as Looker};
use whosup_core::sessions::session::Session;
use whosup_core::sessions::watch::Watch;
use whosup_core::sources::config::Config;
use whosup_core::sources::recognize::Users;
use whosup_live::Signals;
use world::World;

struct Watching<'a> {
    machine: &'a Machine,
    watch: Watch,
}

impl Form for Watching<'_> {
    type Row = ();
    const NEEDS_IDS: bool = false;

    fn row(&mut self, session: &Session) {
        self.watch.add_session(session, self.machine.now_ms());
    }
}

fn look(machine: &Machine) -> Watch {
    let mut form = Watching {
        machine,
        watch: Watch::default(),
    };
    let config = Config::default();
    let query = ListQuery {
        users: Users::All,
        ..ListQuery::default()
    };
    let chosen = Looker::new(machine, &config).choose(&query, &mut form);
    form.watch.add_look(machine, &chosen.unwrap().rest);
    form.watch
}

/// Watches every directory of a tree for files that are opened.
struct Opened {
    inotify: OwnedFd,
    directories: BTreeMap<i32, PathBuf>,
}

impl Opened {
    fn below(root: &Path) -> Self {
        let flags = CreateFlags::CLOEXEC | CreateFlags::NONBLOCK;
        let mut opened = Self {
            inotify: inotify::init(flags).unwrap(),
            directories: BTreeMap::new(),
        };
        let mut waiting = vec![root.to_owned()];
        while let Some(directory) = waiting.pop() {
            let flags = WatchFlags::OPEN | WatchFlags::ONLYDIR;
            // Some fixtures have directories that can't be read.
            let Ok(wd) = inotify::add_watch(&opened.inotify, &directory, flags) else {
                continue;
            };
            let entries = std::fs::read_dir(&directory)
                .into_iter()
                .flatten()
                .flatten();
            let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            waiting.extend(below.map(|entry| entry.path()));
            opened.directories.insert(wd, directory);
        }
        opened
    }

    /// The files that were opened since.
    fn files(&self) -> BTreeSet<PathBuf> {
        let mut buffer = [MaybeUninit::uninit(); 16 << 10];
        let mut reader = Reader::new(&self.inotify, &mut buffer);
        let mut files = BTreeSet::new();
        while let Ok(event) = reader.next() {
            let is_directory = event.events().contains(ReadFlags::ISDIR);
            if let (false, Some(name), Some(directory)) = (
                is_directory,
                event.file_name(),
                self.directories.get(&event.wd()),
            ) {
                let name = std::ffi::OsStr::from_bytes(name.to_bytes());
                files.insert(directory.join(name));
            }
        }
        files
    }
}

fn is_watched(watch: &Watch, file: &Path) -> bool {
    watch.paths.iter().any(|watched| {
        let path = watched.path.as_path();
        file == path
            || file.parent() == Some(path)
            || (watched.is_recursive && file.starts_with(path))
    })
}

fn fixtures() -> Vec<PathBuf> {
    let wanted = std::env::var("WHOSUP_FIXTURES").unwrap_or_default();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/tests/fixtures");
    let folders = |path: PathBuf| std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut cases: Vec<PathBuf> = folders(root)
        .filter(|agent| agent.file_type().unwrap().is_dir())
        .flat_map(|agent| folders(agent.path()))
        .map(|case| case.path())
        .filter(|case| case.join("world.json").exists())
        .filter(|case| case.to_string_lossy().contains(&wanted))
        .collect();
    cases.sort();
    assert!(!cases.is_empty(), "no fixture is called `{wanted}`");
    cases
}

#[test]
fn every_file_that_a_look_reads_lies_under_a_path_that_is_watched() {
    let mut lacks = BTreeSet::new();
    for case in fixtures() {
        let world = World::of_fixture(&case);
        let machine = world.machine();
        let opened = Opened::below(world.home());
        let watch = look(&machine);
        for file in opened.files() {
            let name = file
                .strip_prefix(world.home())
                .unwrap()
                .display()
                .to_string();
            if !is_watched(&watch, &file) {
                let case = case.components().rev().take(2).collect::<Vec<_>>();
                let case: PathBuf = case.into_iter().rev().collect();
                lacks.insert(format!("{}: {name}", case.display()));
            }
        }
    }
    let lacks: Vec<_> = lacks.into_iter().collect();
    assert!(
        lacks.is_empty(),
        "read and not watched:\n{}",
        lacks.join("\n")
    );
}

#[test]
fn a_look_does_not_wake_a_watcher_of_what_it_reads() {
    let mut woken = Vec::new();
    for case in fixtures() {
        let world = World::of_fixture(&case);
        let machine = world.machine();
        let watch = look(&machine);
        let mut signals = Signals::new().unwrap();
        signals.watch_files(&machine, &watch);
        assert!(!signals.wait(Duration::ZERO).unwrap().is_change());
        let machine = world.machine();
        assert_eq!(look(&machine), watch, "{}", case.display());
        if signals.wait(Duration::ZERO).unwrap().is_change() {
            woken.push(case.display().to_string());
        }
        // Another event would have woken it.
        let some = watch.paths.iter().find(|watched| watched.path.is_dir());
        if let Some(directory) = some {
            std::fs::write(directory.path.join("new"), "").ok();
            assert!(signals.wait(Duration::from_secs(10)).unwrap().is_anything);
        }
    }
    assert!(woken.is_empty(), "woken by a look: {woken:#?}");
}
