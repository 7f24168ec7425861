//! Two threads of one process go from session to session, 10,000 times in all, while
//! another thread reads: once as agents do it by hand (remove the old file, write the
//! new file), and once with [`Owner`].
//!
//! ```console
//! $ cargo run --release -p whosup-sidecar --example swap_race
//! ```

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program that shows something, and stops where it can't"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use whosup_sidecar::{Agent, Owner, Place, Session, parse_sidecar};

const SWITCHES_PER_THREAD: usize = 5_000;

/// What the reading thread saw, and what was left.
#[derive(Default)]
struct Seen {
    looks: usize,
    nothing: usize,
    too_many: usize,
    broken: usize,
    left: usize,
}

fn main() {
    let before = race(|place| {
        let first = by_hand(place, "first");
        let last = Mutex::new(first);
        Box::new(move |id| {
            // Between these lines the other thread does the same.
            let old = last.lock().unwrap().clone();
            fs::remove_file(old).ok();
            let new = by_hand(place, id);
            *last.lock().unwrap() = new;
        })
    });
    let after = race(|place| {
        let agent = Agent::new("driver").unwrap().version("1.0");
        let owner = Owner::establish(agent, session(place, "first")).unwrap();
        Box::new(move |id| owner.switch_session(session(place, id)).unwrap())
    });
    println!("{:44} {:>9} {:>9}", "", "by hand", "Owner");
    let rows: [(&str, Number); 5] = [
        ("looks of the reader", |seen| seen.looks),
        ("of these without any file", |seen| seen.nothing),
        ("of these with more than two files", |seen| seen.too_many),
        ("of these with a file that is not whole", |seen| seen.broken),
        ("files at the end (one is right)", |seen| seen.left),
    ];
    for (what, number) in rows {
        println!("{what:44} {:>9} {:>9}", number(&before), number(&after));
    }
}

type Number = fn(&Seen) -> usize;
type Switch<'a> = Box<dyn Fn(&str) + Sync + 'a>;

fn race<'p>(begin: impl FnOnce(&'p Path) -> Switch<'p>) -> Seen {
    // Both live as long as the program.
    let directory = Box::leak(Box::new(tempfile::tempdir().unwrap()));
    let place: &'p Path = Box::leak(directory.path().join("sessions").into_boxed_path());
    fs::create_dir(place).unwrap();
    let switch = begin(place);
    let is_done = AtomicBool::new(false);
    let mut seen = Seen::default();
    std::thread::scope(|threads| {
        let switch = &switch;
        let writers = [0, 1].map(|thread| {
            threads.spawn(move || {
                for at in 0..SWITCHES_PER_THREAD {
                    switch(&format!("t{thread}-{at}"));
                }
            })
        });
        threads.spawn(|| {
            for writer in writers {
                writer.join().unwrap();
            }
            is_done.store(true, Ordering::Release);
        });
        while !is_done.load(Ordering::Acquire) {
            look(place, &mut seen);
        }
    });
    seen.left = names(place).len();
    fs::remove_dir_all(directory.path()).unwrap();
    seen
}

fn look(place: &Path, seen: &mut Seen) {
    let names = names(place);
    seen.looks += 1;
    seen.nothing += usize::from(names.is_empty());
    seen.too_many += usize::from(names.len() > 2);
    let is_broken =
        |path: &PathBuf| fs::read(path).is_ok_and(|bytes| parse_sidecar(&bytes).is_err());
    seen.broken += usize::from(names.iter().any(is_broken));
}

fn names(place: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(place).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.to_string_lossy().ends_with(".runtime.json"))
        .collect()
}

fn by_hand(place: &Path, id: &str) -> PathBuf {
    let path = place.join(format!("{id}.runtime.json"));
    let pid = std::process::id();
    let text = format!(
        "{{\"schema_version\": 1, \"pid\": {pid}, \"session_id\": \"{id}\", \"work_dir\": \"/home/dev/app\", \
         \"hostname\": \"devbox\", \"started_at\": 1795813200.5, \"driver_version\": \"1.0\"}}"
    );
    fs::write(&path, text).unwrap();
    path
}

fn session(place: &Path, id: &str) -> Session {
    let session = Session::new(id, "/home/dev/app").unwrap();
    session.place(Place::Directory(place.to_owned())).unwrap()
}
