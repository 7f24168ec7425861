use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use whosup_core::adapter::hook_event::EventKind;
use whosup_core::machine::Environment;
use whosup_core::sidecar::{AgentId, SessionId};
use whosup_core::sources::record::{LoggedEvent, SessionRecord};

use super::*;
use crate::append::append;
use crate::refresh::read_folded;
use crate::{Store, refresh};

/// How many threads append at once.
const WRITERS: u32 = 4;
/// How often each does.
const EVENTS_EACH: u32 = 60;

struct World {
    _directory: tempfile::TempDir,
    files: SessionFiles,
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let environment = Environment::new(Some(directory.path().to_owned()), None, []);
        let agent = AgentId::parse("claude-code").unwrap();
        let session = SessionId::parse("s1").unwrap();
        let files = Store::of(&environment).unwrap().files_of(&agent, &session);
        Self {
            _directory: directory,
            files,
        }
    }

    fn lock(&self) -> SessionLock {
        SessionLock::take(&self.files, Duration::from_secs(30))
            .unwrap()
            .unwrap()
    }

    fn append(&self, id: &str, name: &str) {
        append(&self.files, &event(id, name)).unwrap();
    }

    /// Makes it one line, as when it has grown long.
    fn shorten(&self, held: &SessionLock) {
        let mut log = open_log(&self.files).unwrap().unwrap();
        let bytes = read(&mut log).unwrap();
        let folded = fold(&self.files.agent, &self.files.session, &bytes);
        shorten(&self.files, &mut log, &bytes, folded, held).unwrap();
    }

    fn record(&self) -> SessionRecord {
        read_folded(&self.files).unwrap().unwrap()
    }
}

fn event(id: &str, name: &str) -> LoggedEvent {
    LoggedEvent {
        id: id.to_owned(),
        at_ms: 1_795_812_000_000,
        kind: EventKind::from_name(name).unwrap(),
        home: PathBuf::from("/home/dev/.claude"),
        owner: None,
        chain: Vec::new(),
        has_left: false,
        work_dir: None,
        git_branch: None,
        transcript: None,
        prompt: Some(id.to_owned()),
        reason: None,
        pane: None,
        cpu_ms: None,
        is_aftermath: false,
        end: None,
    }
}

#[test]
fn what_is_appended_while_a_log_is_shortened_counts_once() {
    let world = World::new();
    world.append("first", "turn-started");
    let is_done = AtomicBool::new(false);
    let writing = AtomicU32::new(WRITERS);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                world.shorten(&world.lock());
            }
        });
        for writer in 0..WRITERS {
            let (world, is_done, writing) = (&world, &is_done, &writing);
            threads.spawn(move || {
                for number in 0..EVENTS_EACH {
                    world.append(&format!("{writer}-{number}"), "turn-started");
                }
                if writing.fetch_sub(1, Ordering::Relaxed) == 1 {
                    is_done.store(true, Ordering::Relaxed);
                }
            });
        }
    });
    let turns = u64::from(WRITERS * EVENTS_EACH) + 1;
    assert_eq!(world.record().heard.turns, turns);
    assert!(!world.files.old_log.exists());
}

#[test]
fn who_is_killed_while_it_shortens_a_log_loses_nothing_that_was_appended() {
    // Before the new log is at its place,
    let world = World::new();
    world.append("a", "turn-started");
    std::fs::hard_link(&world.files.log, &world.files.old_log).unwrap();
    world.append("b", "turn-started");
    assert_eq!(
        refresh(&world.files, &world.lock())
            .unwrap()
            .unwrap()
            .heard
            .turns,
        2
    );
    assert!(!world.files.old_log.exists());

    // and after that: what came last is in the old log alone.
    let world = World::new();
    world.append("a", "turn-started");
    let held = world.lock();
    let before = std::fs::read(&world.files.log).unwrap();
    world.append("b", "turn-ended");
    let with_late = std::fs::read(&world.files.log).unwrap();
    std::fs::write(&world.files.log, &before).unwrap();
    world.shorten(&held);
    std::fs::write(&world.files.old_log, &with_late).unwrap();
    // Its writer saw that the log had gone, and so did the writer of another one.
    world.append("b", "turn-ended");
    world.append("c", "turn-started");
    let record = refresh(&world.files, &held).unwrap().unwrap();
    assert_eq!((record.heard.turns, record.phase), (2, Phase::Working));
    assert!(!world.files.old_log.exists());
    // Killed once more, while it put that back.
    std::fs::write(&world.files.old_log, &with_late).unwrap();
    let again = refresh(&world.files, &held).unwrap().unwrap();
    assert_eq!((again.heard.turns, again.phase), (2, Phase::Working));
}

#[test]
fn a_long_log_is_folded_on_and_a_record_of_another_one_is_not_believed() {
    let world = World::new();
    let held = world.lock();
    let prompt = "x".repeat(190);
    let append_many = |from: u32, to: u32| {
        for number in from..to {
            world.append(&format!("{prompt}-{number}"), "turn-started");
        }
    };
    append_many(0, 300);
    let first = refresh(&world.files, &held).unwrap().unwrap();
    assert_eq!(first.heard.turns, 300);
    append_many(300, 320);
    world.append("stop", "turn-ended");
    let folded_on = refresh(&world.files, &held).unwrap().unwrap();
    assert_eq!(folded_on, world.record());
    assert_eq!((folded_on.heard.turns, folded_on.phase), (320, Phase::Idle));
    // The record is of a log that was longer, shorter or another one.
    for change in [
        |record: &mut SessionRecord| record.heard.last_event = Some("other".to_owned()),
        |record: &mut SessionRecord| record.heard.log_bytes = Some(200_000),
        |record: &mut SessionRecord| record.heard.log_bytes = Some(u64::MAX),
        |record: &mut SessionRecord| record.heard.log_bytes = None,
    ] {
        let mut wrong = first.clone();
        wrong.heard.turns = 7;
        change(&mut wrong);
        std::fs::write(&world.files.record, wrong.to_json().to_string()).unwrap();
        assert_eq!(
            refresh(&world.files, &held).unwrap(),
            Some(folded_on.clone())
        );
    }
    // A line that is torn is folded when the next one has come.
    let log = std::fs::read(&world.files.log).unwrap();
    std::fs::write(&world.files.log, [&log, &b"\n{\"id\":\"to"[..]].concat()).unwrap();
    refresh(&world.files, &held).unwrap();
    append_many(320, 321);
    let after = refresh(&world.files, &held).unwrap().unwrap();
    assert_eq!((after.heard.turns, after.phase), (321, Phase::Working));
}

#[test]
fn a_log_that_is_taken_away_comes_back_with_what_was_heard_just_then() {
    let world = World::new();
    world.append("a", "turn-started");
    world.append("b", "session-ended");
    assert!(take_away(&world.files, &world.lock()).unwrap());
    assert!(!world.files.log.exists() && !world.files.old_log.exists());

    // Killed after it was taken away; then something is heard, or nothing.
    for heard in [None, Some("turn-ended")] {
        let world = World::new();
        world.append("a", "turn-started");
        world.append("b", "turn-started");
        let held = world.lock();
        refresh(&world.files, &held).unwrap();
        std::fs::rename(&world.files.log, &world.files.old_log).unwrap();
        if let Some(name) = heard {
            world.append("c", name);
        }
        let record = refresh(&world.files, &held).unwrap().unwrap();
        assert_eq!(record.heard.turns, 2, "{heard:?}");
        assert_eq!(record.phase == Phase::Idle, heard.is_some());
        assert!(!world.files.old_log.exists());
    }
}

#[test]
fn a_session_that_is_taken_up_while_its_records_are_removed_is_not_lost() {
    for round in 0..40 {
        let world = World::new();
        world.append("a", "turn-started");
        world.append("b", "session-ended");
        refresh(&world.files, &world.lock()).unwrap();
        std::thread::scope(|threads| {
            let remover = threads.spawn(|| crate::sweep::remove(&world.files).unwrap());
            let hook = threads.spawn(|| {
                // At another point of the other's work each time.
                for _ in 0..round * 20 {
                    std::hint::spin_loop();
                }
                world.append("c", "turn-started");
                refresh(&world.files, &world.lock()).unwrap();
            });
            hook.join().unwrap();
            remover.join().unwrap();
        });
        let record = refresh(&world.files, &world.lock()).unwrap().unwrap();
        assert_eq!(record.phase, Phase::Working, "round {round}");
    }
}

#[test]
fn a_lock_that_is_removed_never_has_two_holders() {
    let world = World::new();
    world.append("a", "turn-started");
    let holders = AtomicU32::new(0);
    std::thread::scope(|threads| {
        for _ in 0..WRITERS {
            threads.spawn(|| {
                for _ in 0..EVENTS_EACH {
                    let held = world.lock();
                    assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0);
                    std::thread::yield_now();
                    assert_eq!(holders.fetch_sub(1, Ordering::SeqCst), 1);
                    // As a removal does, last of all.
                    remove_if_there(&world.files.lock).unwrap();
                    drop(held);
                }
            });
        }
    });
}
