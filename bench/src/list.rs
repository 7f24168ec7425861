//! `whosup list`: what is live, with few and with many dead sessions on disk.

use std::cell::RefCell;
use std::collections::BTreeMap;

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::measure::{Measure, Runner, Series, answer, answer_json, interleave, run};
use crate::outcome::{Bound, Goal, Outcome};
use crate::setting::Setting;
use crate::world::{Plan, World};

/// By how much the default view may cost more with many dead sessions.
const RATIO_MAX: f64 = 1.2;
/// How much less CPU than a Python it takes.
const PYTHON_RATIO_MIN: f64 = 300.0;
const FEW: usize = 1_000;
const MANY: usize = 100_000;
const LIVE_PER_AGENT: usize = 5;
const ROUNDS: usize = 30;

/// Measures the default view.
pub(crate) fn measure(setting: &Setting, is_beside: bool) -> anyhow::Result<Outcome> {
    let quarter = |count: usize| [count / 4; 4];
    let (few, many) = (setting.count(FEW), setting.count(MANY));
    let world = World::make(
        setting,
        Plan {
            sizes: vec![quarter(few), quarter(many)],
            live: [LIVE_PER_AGENT; 4],
            has_transcripts: true,
            is_beside,
        },
    )?;
    let world = RefCell::new(world);
    compare(setting, &mut world.borrow_mut())?;
    let home = world.borrow().home();
    let home_text = home.to_string_lossy().into_owned();
    let list = |size: usize| {
        world.borrow_mut().show(size)?;
        run(&mut setting.whosup(&home, &["list", "--json"]))
    };
    let names = [few, many].map(|count| format!("`whosup list --json`, {count} dead"));
    let python_name = format!("Python with psutil, {many} dead");
    let mut runners: Vec<Runner<'_>> = vec![
        (&names[0], 1, Box::new(|| list(0))),
        (&names[1], 1, Box::new(|| list(1))),
    ];
    if setting.python.is_some() {
        runners.push((
            &python_name,
            1,
            Box::new(|| {
                world.borrow_mut().show(1)?;
                let python = setting.python("sessions.py", &[&home_text]);
                run(&mut python.context("no Python")?)
            }),
        ));
    }
    let series = interleave(setting, ROUNDS, runners)?;
    let mut notes = Vec::new();
    let goals = goals_of(&series, &mut notes);
    let live = world.borrow().live().len();
    let place = if is_beside {
        "beside dead ones"
    } else {
        "apart"
    };
    Ok(Outcome {
        name: if is_beside { "list" } else { "list-apart" },
        about: format!(
            "The default view with {few} and with {many} dead sessions on disk and {live} live \
             ones, which work {place}: a quarter each of Claude Code and qwen-code (one folder \
             per project) and of kimi-cli and Copilot CLI (one folder per session), in 200 \
             directories. Both homes and the Python gave the same live sessions and processes."
        ),
        series,
        goals,
        notes,
        ..Outcome::default()
    })
}

fn goals_of(series: &[Series], notes: &mut Vec<String>) -> Vec<Goal> {
    let ratio = |measure| series[1].median(measure) / series[0].median(measure);
    let mut goals: Vec<Goal> = [Measure::Wall, Measure::Cpu]
        .map(|measure| Goal {
            text: format!(
                "`list` with many dead sessions over few ({})",
                measure.name()
            ),
            measured: ratio(measure),
            bound: Bound::AtMost(RATIO_MAX),
            unit: "times",
        })
        .into();
    match series.get(2) {
        Some(python) => goals.push(Goal::times_less(
            "`list` against a Python",
            (&series[1], python),
            Measure::Cpu,
            PYTHON_RATIO_MIN,
        )),
        None => notes.push("skipped: no Python with psutil".to_owned()),
    }
    goals
}

/// Both sizes, and the Python, must answer the same.
fn compare(setting: &Setting, world: &mut World) -> anyhow::Result<()> {
    let mut answers = Vec::new();
    for size in 0..2 {
        world.show(size)?;
        answers.push(live_rows(setting, world)?);
    }
    for (few, many) in answers[0].iter().zip(&answers[1]) {
        if few != many {
            bail!("the answers differ:\n{few:#}\n{many:#}");
        }
    }
    let home = world.home().to_string_lossy().into_owned();
    if let Some(mut python) = setting.python("sessions.py", &[&home]) {
        let printed = answer_json(&mut python, world.path())?;
        let printed: BTreeMap<String, i32> = serde_json::from_value(printed["live"].clone())?;
        if printed != *world.live() {
            bail!("the Python finds {printed:?} live, not {:?}", world.live());
        }
    }
    Ok(())
}

/// What the program answers about the world's live sessions, less what changes
/// from one look to the next.
fn live_rows(setting: &Setting, world: &World) -> anyhow::Result<Vec<Value>> {
    let mut list = setting.whosup(&world.home(), &["list", "--json"]);
    let bytes = answer(&mut list, world.path())?;
    let answer: Value = serde_json::from_slice(&bytes)?;
    let sessions = answer["sessions"].as_array().context("no sessions")?;
    let mut live: Vec<Value> = sessions
        .iter()
        .filter(|session| session["liveness"] == "live")
        .cloned()
        .collect();
    let found: BTreeMap<String, i32> = live
        .iter()
        .filter_map(|session| {
            let pid = i32::try_from(session["owner"]["pid"].as_i64()?).ok()?;
            Some((session["session_id"].as_str()?.to_owned(), pid))
        })
        .collect();
    if found != *world.live() {
        bail!("{found:?} are listed as live, not {:?}", world.live());
    }
    for session in &mut live {
        // By the wall clock of the look; its stamp must be the same.
        session["owner"]["started_at"] = Value::Null;
    }
    live.sort_by_key(|session| session["session_id"].to_string());
    Ok(live)
}
