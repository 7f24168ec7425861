//! How long it takes to start.

use std::path::Path;

use anyhow::{Context as _, bail};
use whosup_process::system_backend;

use crate::measure::{Measure, Runner, answer, interleave, run};
use crate::outcome::{Goal, Outcome};
use crate::setting::Setting;

const ROUNDS: usize = 60;
/// How much faster than a Python that does nothing.
const PYTHON_RATIO_MIN: f64 = 20.0;

/// Measures the start.
pub(crate) fn measure(setting: &Setting) -> anyhow::Result<Outcome> {
    let home = tempfile::Builder::new().prefix("whosup-bench-").tempdir()?;
    let version = || setting.whosup(home.path(), &["--version"]);
    let list = || setting.whosup(home.path(), &["list"]);
    let python = |arguments: &[&str]| setting.python("nothing.py", arguments);
    check_answers(setting, home.path())?;
    let mut runners: Vec<Runner<'_>> = vec![
        ("`whosup --version`", 3, Box::new(|| run(&mut version()))),
        (
            "`whosup list`, an empty home",
            3,
            Box::new(|| run(&mut list())),
        ),
    ];
    if let Some(mut python) = python(&["--version"]) {
        let printed = String::from_utf8(answer(&mut python, home.path())?)?;
        if !printed.starts_with("nothing ") {
            bail!("the Python says {printed:?}");
        }
        runners.push((
            "Python with argparse, doing nothing",
            1,
            Box::new(|| {
                run(&mut setting
                    .python("nothing.py", &["list"])
                    .context("no Python")?)
            }),
        ));
    }
    let series = interleave(setting, ROUNDS, runners)?;
    let mut goals = Vec::new();
    let mut notes = Vec::new();
    match series.get(2) {
        Some(python) => {
            for (ours, text) in series
                .iter()
                .zip(["`--version`", "`list` on an empty home"])
            {
                for measure in [Measure::Wall, Measure::Cpu] {
                    let pair = (ours, python);
                    goals.push(Goal::times_less(text, pair, measure, PYTHON_RATIO_MIN));
                }
            }
        }
        None => notes.push("skipped: no Python".to_owned()),
    }
    let processes = std::fs::read_dir("/proc")?
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_string_lossy().parse::<u32>().is_ok())
        .count();
    let (listed, _) = system_backend().processes()?;
    notes.push(format!(
        "`list` looks once at every process of the machine that is no thread of the kernel: \
         at {} of {processes}.",
        listed.len()
    ));
    Ok(Outcome {
        name: "start",
        about: "What it costs to start, and to look when there is nothing to see, against a \
                Python that parses its arguments and ends."
            .to_owned(),
        series,
        goals,
        notes,
        ..Outcome::default()
    })
}

/// There must be a version, and no session.
fn check_answers(setting: &Setting, home: &Path) -> anyhow::Result<()> {
    let mut version = setting.whosup(home, &["--version"]);
    let printed = String::from_utf8(answer(&mut version, home)?)?;
    if !printed.starts_with("whosup ") {
        bail!("`--version` says {printed:?}");
    }
    let mut json = setting.whosup(home, &["list", "--json"]);
    let listed: serde_json::Value = serde_json::from_slice(&answer(&mut json, home)?)?;
    let is_empty = |all: &Vec<serde_json::Value>| all.is_empty();
    if !listed["sessions"].as_array().is_some_and(is_empty) {
        bail!("there are sessions in an empty home: {listed:#}");
    }
    Ok(())
}
