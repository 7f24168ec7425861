//! How much memory is in use at most.

use std::path::Path;

use anyhow::{Context as _, bail};

use crate::large::{Shape, write_transcript};
use crate::measure::{Series, answer_json, interleave, run};
use crate::outcome::{Bound, Goal, Outcome};
use crate::setting::Setting;
use crate::world::{Plan, World};

const SESSIONS: usize = 100_000;
const LARGE_BYTES: u64 = 3_000_000_000;
const LINE_BYTES: usize = 64 * 1024 * 1024;
/// How much of the file system is left free, in bytes.
const SPARE_BYTES: u64 = 4_000_000_000;
const ROUNDS: usize = 3;
const JSON_MIB_MAX: f64 = 250.0;
const NDJSON_MIB_MAX: f64 = 60.0;
const SHOW_MIB_MAX: f64 = 50.0;

/// The sessions with large transcripts.
const LARGE: [(&str, &str); 3] = [
    (
        "3000000a-e8f2-410e-9552-8385582a8e8b",
        "`whosup show`, 3 GB of records",
    ),
    (
        "3000000b-e8f2-410e-9552-8385582a8e8b",
        "`whosup show`, 3 GB, most of it a hole",
    ),
    (
        "3000000c-e8f2-410e-9552-8385582a8e8b",
        "`whosup show`, a line of 64 MiB",
    ),
];

/// Measures memory.
pub(crate) fn measure(setting: &Setting) -> anyhow::Result<Outcome> {
    let count = setting.count(SESSIONS);
    let mut outcome = Outcome {
        name: "memory",
        about: format!(
            "The most memory that is in use at once: `list --all` on {count} sessions of four \
             agents, `show` on transcripts of 3 GB and on one with a line of 64 MiB."
        ),
        ..Outcome::default()
    };
    let all = measure_all(setting, count)?;
    // The table is for people, and has no bound.
    let goals = all.iter().zip([JSON_MIB_MAX, NDJSON_MIB_MAX]);
    outcome
        .goals
        .extend(goals.map(|(series, at_most)| peak_goal(series, at_most)));
    outcome.series.extend(all);
    let shown = measure_show(setting, &mut outcome.notes)?;
    let goals = shown.iter().map(|series| peak_goal(series, SHOW_MIB_MAX));
    outcome.goals.extend(goals);
    outcome.series.extend(shown);
    // What a process has used before it becomes another program counts as well.
    let own = own_peak_kib().context("cannot tell our own memory")?;
    let smallest = outcome.series.iter().map(Series::peak_kib).min();
    if smallest.is_none_or(|smallest| smallest <= own) {
        let note = format!("the benchmark itself had {} MiB", own / 1024);
        outcome.notes.push(note);
    }
    Ok(outcome)
}

fn peak_goal(series: &Series, at_most: f64) -> Goal {
    Goal {
        text: format!("peak memory of {}", series.name),
        measured: series.peak_kib() as f64 / 1024.0,
        bound: Bound::AtMost(at_most),
        unit: "MiB",
    }
}

fn measure_all(setting: &Setting, count: usize) -> anyhow::Result<Vec<Series>> {
    let world = World::make(
        setting,
        Plan {
            sizes: vec![[count / 4; 4]],
            live: [5; 4],
            has_transcripts: true,
            is_beside: true,
        },
    )?;
    let home = world.home();
    let list = |arguments: &'static [&'static str]| {
        let home = home.clone();
        Box::new(move || run(&mut setting.whosup(&home, arguments)))
    };
    interleave(
        setting,
        ROUNDS,
        vec![
            (
                "`whosup list --all --json`",
                1,
                list(&["list", "--all", "--json"]),
            ),
            (
                "`whosup list --all --ndjson`",
                1,
                list(&["list", "--all", "--ndjson"]),
            ),
            ("`whosup list --all`", 1, list(&["list", "--all"])),
        ],
    )
}

fn measure_show(setting: &Setting, notes: &mut Vec<String>) -> anyhow::Result<Vec<Series>> {
    let folder = tempfile::Builder::new().prefix("whosup-bench-").tempdir()?;
    let home = folder.path().canonicalize()?.join("dev");
    let project = home.join(".claude/projects/-w-app");
    let mut series = Vec::new();
    for (at, (id, name)) in LARGE.into_iter().enumerate() {
        setting.go_on()?;
        let path = project.join(format!("{id}.jsonl"));
        let shape = match at {
            0 => Shape::Records { bytes: LARGE_BYTES },
            1 => Shape::Hole { bytes: LARGE_BYTES },
            _ => Shape::LongLine { bytes: LINE_BYTES },
        };
        if at == 0 && !has_room(folder.path(), LARGE_BYTES) {
            notes.push(format!(
                "skipped: {name}: the file system has no room for it"
            ));
            continue;
        }
        write_transcript(&path, Path::new("/w/app"), id, &shape)?;
        let show = || setting.whosup(&home, &["show", id, "--json"]);
        let printed = answer_json(&mut show(), &home)?;
        let session = printed.get("session").unwrap_or(&printed);
        if !session.to_string().contains(id) || !printed.to_string().contains("make it large") {
            bail!("`show` tells {printed:#}");
        }
        series.extend(interleave(
            setting,
            ROUNDS,
            vec![(name, 1, Box::new(|| run(&mut show())))],
        )?);
        std::fs::remove_file(&path)?;
    }
    Ok(series)
}

fn has_room(folder: &Path, bytes: u64) -> bool {
    rustix::fs::statvfs(folder)
        .is_ok_and(|system| system.f_bavail.saturating_mul(system.f_frsize) > bytes + SPARE_BYTES)
}

/// The most memory that this process has had.
fn own_peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}
