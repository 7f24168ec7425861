//! `whosup list --all`: every session on disk.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::measure::{Measure, Runner, answer_json, interleave, run};
use crate::outcome::{Goal, Outcome};
use crate::setting::{Setting, beside};
use crate::world::{Plan, World};

const SIDECARS: usize = 10_000;
const LIVE: [usize; 4] = [0, 10, 10, 0];
const ROUNDS: usize = 20;
/// How much less CPU than a Python it takes.
const PYTHON_RATIO_MIN: f64 = 4.0;
/// How much less CPU than walkdir and `serde_json`.
const WALKDIR_RATIO_MIN: f64 = 2.0;

/// Measures the view of everything.
pub(crate) fn measure(setting: &Setting) -> anyhow::Result<Outcome> {
    let count = setting.count(SIDECARS);
    let world = World::make(
        setting,
        Plan {
            sizes: vec![[0, count / 2, count / 2, 0]],
            live: LIVE,
            has_transcripts: false,
            is_beside: true,
        },
    )?;
    let home = world.home();
    let home_text = home.to_string_lossy().into_owned();
    let walkdir = beside("whosup-peer-walkdir")?;
    let peer = || {
        let mut command = std::process::Command::new(&walkdir);
        command.arg(&home).env_clear();
        command
    };
    let all = || setting.whosup(&home, &["list", "--all", "--json"]);
    let python = || setting.python("sessions.py", &[&home_text, "--all"]);

    let ours = rows(&answer_json(&mut all(), world.path())?)?;
    compare(&world, &ours, &answer_json(&mut peer(), world.path())?)?;
    if let Some(mut python) = python() {
        compare(&world, &ours, &answer_json(&mut python, world.path())?)?;
    }

    let mut runners: Vec<Runner<'_>> = vec![
        (
            "`whosup list --all --json`",
            1,
            Box::new(|| run(&mut all())),
        ),
        (
            "`whosup list --all`",
            1,
            Box::new(|| run(&mut setting.whosup(&home, &["list", "--all"]))),
        ),
        ("walkdir + serde_json", 1, Box::new(|| run(&mut peer()))),
    ];
    if setting.python.is_some() {
        let name = "Python with psutil";
        runners.push((
            name,
            1,
            Box::new(|| run(&mut python().context("no Python")?)),
        ));
    }
    let series = interleave(setting, ROUNDS, runners)?;
    let against = |peer: usize, text: &str, at_least| {
        Goal::times_less(text, (&series[0], &series[peer]), Measure::Cpu, at_least)
    };
    let mut goals = vec![against(2, "`list --all --json`", WALKDIR_RATIO_MIN)];
    if series.len() > 3 {
        goals.push(against(3, "`list --all --json`", PYTHON_RATIO_MIN));
    }
    let skipped = "skipped: no Python with psutil".to_owned();
    let notes = setting.python.is_none().then_some(skipped);
    Ok(Outcome {
        name: "all",
        about: format!(
            "Every session on disk: {count} dead sidecars, half of qwen-code in one folder per \
             project, half of kimi-cli in one folder per session, and {} live ones. All programs \
             found the same ones live and as many dead; whosup also judges each with a reason, \
             and writes that.",
            world.live().len()
        ),
        series,
        goals,
        notes: notes.into_iter().collect(),
        ..Outcome::default()
    })
}

/// A peer must find the same.
fn compare(world: &World, ours: &(BTreeMap<String, i32>, u64), told: &Value) -> anyhow::Result<()> {
    let (live, dead) = ours;
    let theirs: BTreeMap<String, i32> = serde_json::from_value(told["live"].clone())?;
    if theirs != *live || told["dead"] != *dead || live != world.live() {
        let counts = (theirs.len(), &told["dead"], live.len(), dead);
        bail!(
            "a peer finds {} live and {} dead, we {} and {}",
            counts.0,
            counts.1,
            counts.2,
            counts.3
        );
    }
    Ok(())
}

/// The live sessions with their processes, and how many others there are.
fn rows(answer: &Value) -> anyhow::Result<(BTreeMap<String, i32>, u64)> {
    let sessions = answer["sessions"].as_array().context("no sessions")?;
    let mut live = BTreeMap::new();
    let mut dead = 0;
    for session in sessions {
        match session["liveness"].as_str() {
            Some("live") => {
                let pid = session["owner"]["pid"].as_i64().context("no PID")?;
                let id = session["session_id"].as_str().context("no id")?;
                live.insert(id.to_owned(), i32::try_from(pid)?);
            }
            Some("exited") => dead += 1,
            other => bail!("{} is {other:?}", session["session_id"]),
        }
    }
    Ok((live, dead))
}
