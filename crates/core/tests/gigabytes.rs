//! Files of gigabytes were read through, or lines of many megabytes into memory
//! (claude-esp#4, happy#1586, pocketshell#1225): a look at sessions of every
//! agent that writes transcripts, each with 3 GB in the middle of one line.
//!
//! One test in a program of its own: what it measures is the whole program.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test makes its own world, and fails where that fails"
)]

mod world;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;
use world::{DepthName, World};

/// A hole of this many bytes is put into transcripts: one line of NUL bytes.
const HOLE_BYTES: u64 = 3 << 30;
/// How much the peak may grow over all looks.
const GROWTH_BYTES_MAX: u64 = 100_000_000;
/// How long one look may take on a loaded machine; reading 3 GB takes longer.
const LOOK_TIME_MAX: Duration = Duration::from_secs(20);
/// How many cases of each agent are looked at.
const CASES_PER_AGENT: usize = 3;

/// Agents that keep all they have in a database, or in documents of which only those of a
/// bounded length are read.
const WITHOUT_TRANSCRIPTS: &[&str] = &[
    "cline",
    "common-place",
    "continue",
    "crush",
    "kilo",
    "opencode",
];

/// The most memory that this program has had (`VmHWM`, proc_pid_status(5)).
fn resident_bytes_peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line?.trim().strip_suffix("kB")?.trim();
    Some(kilobytes.parse::<u64>().ok()? * 1024)
}

fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut folders: Vec<_> = paths.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

/// Puts a hole before the last line of every transcript below a directory, and
/// tells into how many.
fn put_holes(directory: &Path) -> usize {
    let mut count = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let (path, facts) = (entry.path(), entry.metadata().unwrap());
        if facts.is_dir() {
            count += put_holes(&path);
        } else if facts.is_file()
            && facts.len() < HOLE_BYTES
            && path.extension().is_some_and(|name| name == "jsonl")
        {
            count += usize::from(put_hole(&path));
            let file = File::open(&path).unwrap();
            file.set_modified(facts.modified().unwrap()).unwrap();
        }
    }
    count
}

fn put_hole(path: &Path) -> bool {
    let bytes = std::fs::read(path).unwrap();
    let lines = bytes.trim_ascii_end();
    let Some(at) = lines.iter().rposition(|byte| *byte == b'\n') else {
        return false;
    };
    let (head, last) = bytes.split_at(at + 1);
    std::fs::write(path, head).unwrap();
    let mut file = File::options().append(true).open(path).unwrap();
    file.set_len(head.len() as u64 + HOLE_BYTES).unwrap();
    file.write_all(b"\n").unwrap();
    file.write_all(last).unwrap();
    true
}

/// The sessions of an answer whose life does not rest on what the middle of a
/// transcript says, and whether they are live.
fn settled(answer: &Value) -> BTreeSet<(String, String)> {
    let sessions = answer["sessions"].as_array().unwrap().iter();
    let is_settled = |one: &&Value| {
        let reason = one["reason"].as_str().unwrap();
        one["confidence"] != "inferred" && !["may-be-served-by", "no-process"].contains(&reason)
    };
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let settled = sessions.filter(is_settled);
    settled
        .map(|one| (text(&one["session_id"]), text(&one["liveness"])))
        .collect()
}

fn ids(answer: &Value) -> BTreeSet<String> {
    let sessions = answer["sessions"].as_array().unwrap().iter();
    let ids = sessions.map(|one| one["session_id"].as_str().unwrap().to_owned());
    ids.collect()
}

#[test]
fn three_gigabytes_in_a_transcript_of_any_agent_cost_neither_time_nor_memory() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut without = BTreeSet::new();
    // What all the code and fixtures take anyway.
    let mut worlds = Vec::new();
    for agent in folders(&root) {
        let before = worlds.len();
        for case in folders(&agent) {
            let world = World::of_fixture(&case);
            let answer = world.look(DepthName::All);
            if worlds.len() < before + CASES_PER_AGENT && put_holes(world.home()) > 0 {
                worlds.push((case, world, answer));
            }
        }
        if worlds.len() == before {
            without.insert(agent.file_name().unwrap().to_str().unwrap().to_owned());
        }
    }
    assert_eq!(
        without,
        WITHOUT_TRANSCRIPTS
            .iter()
            .map(|name| (*name).to_owned())
            .collect()
    );
    let before = resident_bytes_peak().unwrap();
    for (case, world, answer) in &worlds {
        let began = Instant::now();
        let after = world.look(DepthName::All);
        assert!(
            began.elapsed() < LOOK_TIME_MAX,
            "{}: {:?}",
            case.display(),
            began.elapsed()
        );
        assert_eq!(ids(&after), ids(answer), "{}", case.display());
        assert!(
            settled(&after).is_superset(&settled(answer)),
            "{}",
            case.display()
        );
    }
    let grown = resident_bytes_peak().unwrap().saturating_sub(before);
    assert!(grown < GROWTH_BYTES_MAX, "{grown} bytes more");
}
