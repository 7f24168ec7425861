//! The process table.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::measure::{Measure, answer};
use crate::outcome::{Goal, Outcome};
use crate::setting::Setting;
use crate::{crowd, inside};

const PROCESSES: usize = 400;
const ROUNDS: usize = 10;
/// How often each looks in one round.
const LOOKS: &str = "20";
/// How much less CPU than psutil.
const PSUTIL_RATIO_MIN: f64 = 3.5;
/// How far apart two may date the start of a process, in milliseconds: psutil
/// counts from a boot time in whole seconds.
const BEGAN_SLACK_MS: f64 = 1_500.0;

/// Measures one look at the process table.
pub(crate) fn measure(setting: &Setting) -> anyhow::Result<Outcome> {
    let folder = tempfile::Builder::new().prefix("whosup-bench-").tempdir()?;
    let crowd = crowd::start(setting, folder.path(), setting.count(PROCESSES), |_| {
        Vec::new()
    })?;
    let ours = |arguments: &[&str]| -> anyhow::Result<Command> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["work", "table"]).args(arguments);
        Ok(command)
    };
    let psutil = |arguments: &[&str]| {
        let python = setting.python("table.py", arguments);
        python.context("no Python with psutil")
    };
    let mut outcome = Outcome {
        name: "table",
        about: format!(
            "One look at the process table, with {} processes started for it, beside those of \
             the machine: PID, parent, name, start, whether it is a zombie. The start of the \
             programs is left out. Both found the same of every started process.",
            crowd.0.len()
        ),
        ..Outcome::default()
    };
    let mut programs: Vec<inside::Program<'_>> =
        vec![("whosup-process", Box::new(|| ours(&[LOOKS])))];
    if setting.python.is_some() {
        let printed = [
            answer(&mut ours(&[])?, folder.path())?,
            answer(&mut psutil(&["print"])?, folder.path())?,
        ];
        let [ours, theirs] = printed.map(|bytes| rows(&String::from_utf8_lossy(&bytes)));
        for pid in crowd.0.iter().map(|child| child.id().to_string()) {
            let (ours, theirs) = (&ours[&pid], &theirs[&pid]);
            if ours.0 != theirs.0 || (ours.1 - theirs.1).abs() * 1000.0 > BEGAN_SLACK_MS {
                bail!("{ours:?} is not {theirs:?}");
            }
        }
        programs.push(("psutil", Box::new(|| psutil(&["time", LOOKS]))));
    } else {
        outcome
            .notes
            .push("skipped: no Python with psutil".to_owned());
    }
    outcome.series = inside::rounds(setting.rounds(ROUNDS), folder.path(), &mut programs)?;
    if let [ours, psutil] = outcome.series.as_slice() {
        let text = "the table of 400 processes";
        let goal = Goal::times_less(text, (ours, psutil), Measure::Cpu, PSUTIL_RATIO_MIN);
        outcome.goals.push(goal);
    }
    Ok(outcome)
}

/// By PID: parent and name, and when it began, in seconds.
fn rows(text: &str) -> BTreeMap<String, (String, f64)> {
    let row = |line: &str| {
        let mut fields = line.split('\t');
        let (pid, parent) = (fields.next()?, fields.next()?);
        let began = fields.next()?.parse().ok()?;
        Some((
            pid.to_owned(),
            (format!("{parent} {}", fields.next()?), began),
        ))
    };
    text.lines().filter_map(row).collect()
}
