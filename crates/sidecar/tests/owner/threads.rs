//! Many threads on one handle, with a reader that sees everything.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use whosup_sidecar::{Phase, WriteError, parse_sidecar};

use super::world::World;

/// How often each thread updates a file at least, and at most.
const UPDATES: usize = 3_000;
const UPDATES_MAX: usize = 3_000_000;
/// How many reads must have happened meanwhile.
const LOOKS: usize = 100;

/// What was seen of one directory.
#[cfg(target_os = "linux")]
mod events {
    use std::collections::BTreeSet;
    use std::mem::MaybeUninit;
    use std::path::Path;

    use rustix::fs::inotify;
    use rustix::fs::inotify::{CreateFlags, ReadFlags, WatchFlags};

    /// Follows every name that comes and goes in a directory, in order.
    pub(super) struct Follower {
        descriptor: rustix::fd::OwnedFd,
        names: BTreeSet<String>,
    }

    impl Follower {
        pub(super) fn of(directory: &Path, names: &[String]) -> Self {
            let descriptor = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
            let wanted = WatchFlags::CREATE
                | WatchFlags::DELETE
                | WatchFlags::MOVED_FROM
                | WatchFlags::MOVED_TO;
            inotify::add_watch(&descriptor, directory, wanted).unwrap();
            Self {
                descriptor,
                names: names.iter().cloned().collect(),
            }
        }

        /// Takes in what happened since; calls `check` with the visible names
        /// at each moment.
        pub(super) fn follow(&mut self, mut check: impl FnMut(&BTreeSet<String>)) {
            let mut buffer = [MaybeUninit::uninit(); 65_536];
            let mut reader = inotify::Reader::new(&self.descriptor, &mut buffer);
            while let Ok(event) = reader.next() {
                let flags = event.events();
                assert!(!flags.contains(ReadFlags::QUEUE_OVERFLOW), "too slow");
                let Some(name) = event.file_name() else {
                    continue;
                };
                let name = name.to_str().unwrap();
                if name.starts_with('.') {
                    continue;
                }
                if flags.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO) {
                    self.names.insert(name.to_owned());
                } else {
                    self.names.remove(name);
                }
                check(&self.names);
            }
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn ten_thousand_switches_by_two_threads_leave_one_file_and_never_none() {
    use events::Follower;

    let world = World::in_memory();
    let owner = world.establish("first");
    let mut follower = Follower::of(&world.place(), &world.names());
    let is_done = AtomicBool::new(false);
    let (mut fewest, mut most, mut moments) = (usize::MAX, 0, 0);
    let mut see = |names: &std::collections::BTreeSet<String>| {
        (fewest, most) = (fewest.min(names.len()), most.max(names.len()));
        moments += 1;
    };
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..2)
            .map(|thread| {
                let (owner, world) = (&owner, &world);
                scope.spawn(move || {
                    for at in 0..5_000 {
                        let session = world.session(&format!("t{thread}-{at}"));
                        owner.switch_session(session).unwrap();
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            writers
                .into_iter()
                .for_each(|writer| writer.join().unwrap());
            is_done.store(true, Ordering::Release);
        });
        while !is_done.load(Ordering::Acquire) {
            follower.follow(&mut see);
            // Every file that is there is whole: this panics otherwise.
            world.sidecars();
        }
    });
    follower.follow(&mut see);
    assert_eq!(moments, 20_000, "a file came and one went, 10,000 times");
    assert_eq!((fewest, most), (1, 2));
    let path = owner.path().unwrap();
    let name = path.file_name().unwrap().to_str().unwrap();
    assert_eq!(world.names(), [name]);
    assert!(name.ends_with("-4999.runtime.json"), "{name}");
}

#[test]
fn a_file_that_is_updated_is_whole_and_there_at_every_moment() {
    let world = World::in_memory();
    let owner = world.establish("s1");
    let path = owner.path().unwrap();
    let is_done = AtomicBool::new(false);
    let looks = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let writers: Vec<_> = [Phase::Working, Phase::Idle]
            .into_iter()
            .map(|phase| {
                let (owner, looks) = (&owner, &looks);
                // On a busy machine the reader may be late to begin.
                let is_enough = move |at| at >= UPDATES && looks.load(Ordering::Acquire) >= LOOKS;
                scope.spawn(move || {
                    let mut updates = (0..UPDATES_MAX).take_while(|at| !is_enough(*at));
                    updates.try_for_each(|_| owner.update(phase)).unwrap();
                })
            })
            .collect();
        scope.spawn(|| {
            writers
                .into_iter()
                .for_each(|writer| writer.join().unwrap());
            is_done.store(true, Ordering::Release);
        });
        while !is_done.load(Ordering::Acquire) {
            let bytes = std::fs::read(&path).unwrap();
            assert_eq!(parse_sidecar(&bytes).unwrap().session_id.as_str(), "s1");
            looks.fetch_add(1, Ordering::AcqRel);
        }
    });
    let looks = looks.into_inner();
    assert!(looks >= LOOKS, "only {looks} looks");
    assert_eq!(world.names(), ["s1.runtime.json"]);
}

#[test]
fn after_a_release_nothing_is_written_by_any_thread() {
    for round in 0..20 {
        let world = World::in_memory();
        let owner = world.establish("s1");
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let (owner, world) = (&owner, &world);
                scope.spawn(move || {
                    for at in 0.. {
                        let session = world.session(&format!("t{thread}-{at}"));
                        match owner.switch_session(session) {
                            Ok(()) => {}
                            Err(WriteError::Released) => break,
                            Err(error) => panic!("{error}"),
                        }
                    }
                });
            }
            std::thread::sleep(Duration::from_millis(round % 5));
            owner.release().unwrap();
            assert!(world.names().is_empty(), "{:?}", world.names());
        });
        assert!(world.names().is_empty(), "{:?}", world.names());
        assert!(matches!(
            owner.update(Phase::Idle),
            Err(WriteError::Released)
        ));
        owner.release().unwrap();
        assert_eq!(owner.path(), None);
    }
}
