//! Any file of any agent may hold anything: the rest is still found, and nothing
//! but the answer changes.
//!
//! The worlds are those of the core's fixtures. The first four bytes choose one
//! and one of its files, the others are put into that file.

#![no_main]

#[path = "../../crates/core/tests/world/mod.rs"]
mod world;

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use libfuzzer_sys::fuzz_target;
use whosup_core::adapter::{Depth};
use whosup_core::sources::agents::{AGENTS};
use whosup_core::sources::recognize::Users;
use whosup_core::sessions::scan::{Scope, scan};
use whosup_core::judging::verdict::Liveness;
use world::World;

/// How many messages of a session are asked for.
const MESSAGES_MAX: usize = 3;

/// The fixtures, by name, and the worlds that were made of them so far.
struct Worlds {
    cases: Vec<PathBuf>,
    made: HashMap<usize, (World, Vec<PathBuf>)>,
}

thread_local! {
    static WORLDS: RefCell<Worlds> = RefCell::new(Worlds {
        cases: cases(),
        made: HashMap::new(),
    });
}

fuzz_target!(|bytes: &[u8]| {
    let [a, b, c, d, content @ ..] = bytes else { return };
    let (case, file) = (u16::from_le_bytes([*a, *b]), u16::from_le_bytes([*c, *d]));
    WORLDS.with_borrow_mut(|worlds| {
        let case = usize::from(case) % worlds.cases.len();
        let path = worlds.cases[case].clone();
        let (world, files) = worlds.made.entry(case).or_insert_with(|| {
            let world = World::of_fixture(&path);
            let files = files_in(world.home());
            (world, files)
        });
        if files.is_empty() {
            return;
        }
        let file = &files[usize::from(file) % files.len()];
        let before = std::fs::read(file).expect("a file of the fixture");
        std::fs::write(file, content).expect("a file of the fixture");
        check(world);
        assert_eq!(std::fs::read(file).expect("still there"), content, "a look changed it");
        std::fs::write(file, before).expect("a file of the fixture");
    });
});

/// Both looks end, and agree about who is live.
fn check(world: &World) {
    let [fast, full] = [Depth::Live, Depth::All].map(|depth| {
        let machine = world.machine();
        let scope = Scope { depth, users: Users::All, ..Scope::default() };
        let mut scanned = scan(&machine, &scope);
        scanned.describe(|_| true);
        for session in &scanned.snapshot.sessions {
            let adapter = AGENTS.iter().find(|all| all.profile().id == session.key.agent.as_str());
            if let Some(adapter) = adapter {
                let _ = adapter.messages(&session.sketch, MESSAGES_MAX);
            }
        }
        let live = scanned.snapshot.sessions.iter();
        let live = live.filter(|session| session.liveness() == Liveness::Live);
        let mut live: Vec<_> = live
            .map(|session| (session.key.clone(), session.owner.as_ref().map(|owner| owner.pid)))
            .collect();
        live.sort();
        live
    });
    assert_eq!(fast, full, "left: the fast path; right: the full walk");
}

fn cases() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/core/tests/fixtures");
    let mut cases: Vec<_> = entries(&root).iter().flat_map(|agent| entries(agent)).collect();
    cases.retain(|case| case.join("world.json").is_file());
    cases.sort();
    cases
}

fn entries(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(path) else { return Vec::new() };
    entries.map(|entry| entry.expect("an entry").path()).collect()
}

/// The small regular files below a folder, by name.
fn files_in(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in entries(&folder) {
            let Ok(metadata) = path.symlink_metadata() else { continue };
            if metadata.is_dir() {
                folders.push(path);
            } else if metadata.is_file() && metadata.len() < 1 << 20 {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}
