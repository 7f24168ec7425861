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
        (
            "walkdir, every file read and no more",
            1,
            Box::new(|| run(peer().arg("--read-only"))),
        ),
    ];
    if setting.python.is_some() {
        let run_python = || run(&mut python().context("no Python")?);
        runners.push(("Python with psutil", 1, Box::new(run_python)));
    }
    let series = interleave(setting, ROUNDS, runners)?;
    let against = |peer: usize, text: &str, at_least| {
        Goal::times_less(text, (&series[0], &series[peer]), Measure::Cpu, at_least)
    };
    let mut goals = vec![against(2, "`list --all --json`", WALKDIR_RATIO_MIN)];
    if series.len() > 4 {
        goals.push(against(4, "`list --all --json`", PYTHON_RATIO_MIN));
    }
    let notes = setting.python.is_none();
    let notes = notes.then(|| "skipped: no Python with psutil".to_owned());
    Ok(Outcome {
        name: "all",
        about: about(count, world.live().len()),
        series,
        goals,
        notes: notes.into_iter().collect(),
        ..Outcome::default()
    })
}

fn about(count: usize, live: usize) -> String {
    format!(
        "Every session on disk: {count} dead sidecars, half of qwen-code in one folder per \
             project, half of kimi-cli in one folder per session, and {} live ones. Each dead \
             one had a process of its own. All programs told of every session the same life, \
             process, directory and file; whosup also gives each a reason, its evidence and how \
             it is resumed.",
        live
    )
}

/// What is compared of a session, by agent and id: its life, the process that is said to
/// serve it, where it works, and the file that says so.
type Rows = BTreeMap<(String, String), (String, Option<i64>, String, String)>;

/// A peer must find the same of every session.
fn compare(world: &World, ours: &Rows, told: &Value) -> anyhow::Result<()> {
    let theirs = rows_of(told, |session| {
        Some((session["pid"].as_i64(), session["path"].as_str()?))
    })?;
    let live: BTreeMap<String, i32> = ours
        .iter()
        .filter(|(_, (liveness, ..))| liveness == "live")
        .filter_map(|((_, id), (_, pid, ..))| Some((id.clone(), i32::try_from((*pid)?).ok()?)))
        .collect();
    if live != *world.live() {
        bail!(
            "{} of {} live ones are found",
            live.len(),
            world.live().len()
        );
    }
    if theirs != *ours {
        let other = ours
            .iter()
            .find(|(key, row)| theirs.get(*key) != Some(*row));
        bail!(
            "a peer finds {} sessions, we {}; the first that differs is {other:?}",
            theirs.len(),
            ours.len()
        );
    }
    Ok(())
}

/// What whosup tells. The process of a dead session is in its evidence.
fn rows(answer: &Value) -> anyhow::Result<Rows> {
    rows_of(answer, |session| {
        let sidecar = session["evidence"]
            .as_array()?
            .iter()
            .find(|evidence| evidence["kind"] == "sidecar")?;
        let says = sidecar["says"].as_str()?.strip_prefix("pid ")?;
        let pid = says.split(',').next()?.parse().ok();
        Some((pid, sidecar["path"].as_str()?))
    })
}

fn rows_of<'a>(
    answer: &'a Value,
    said: impl Fn(&'a Value) -> Option<(Option<i64>, &'a str)>,
) -> anyhow::Result<Rows> {
    let sessions = answer["sessions"].as_array().context("no sessions")?;
    let row = |session: &'a Value| {
        let text = |key: &str| Some(session[key].as_str()?.to_owned());
        let (pid, path) = said(session)?;
        let key = (text("agent")?, text("session_id")?);
        Some((
            key,
            (text("liveness")?, pid, text("work_dir")?, path.to_owned()),
        ))
    };
    let rows = sessions.iter().map(|session| {
        row(session).with_context(|| format!("`{}` lacks something", session["session_id"]))
    });
    rows.collect()
}
