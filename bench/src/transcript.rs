//! The last usage in a transcript of 200 MB.

use std::process::Command;

use anyhow::{Context as _, bail};

use crate::inside;
use crate::large::{Shape, write_transcript};
use crate::measure::{Measure, answer_json};
use crate::outcome::{Goal, Outcome};
use crate::setting::Setting;

const BYTES: u64 = 200_000_000;
const ROUNDS: usize = 10;
/// How often each reads it in one round.
const READS: &str = "50";
/// How much faster than a Python that reads the last MiB.
const PYTHON_RATIO_MIN: f64 = 20.0;

/// Measures how fast the last usage is read.
pub(crate) fn measure(setting: &Setting) -> anyhow::Result<Outcome> {
    let folder = tempfile::Builder::new().prefix("whosup-bench-").tempdir()?;
    let path = folder.path().join("transcript.jsonl");
    let bytes = BYTES / setting.smaller.max(1) as u64;
    write_transcript(&path, folder.path(), "s", &Shape::Records { bytes })?;
    let path_text = path.to_string_lossy().into_owned();
    let ours = |times: Option<&str>| -> anyhow::Result<Command> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["work", "last-usage"]).arg(&path).args(times);
        Ok(command)
    };
    let python = |arguments: &[&str]| {
        let python = setting.python("last_usage.py", arguments);
        python.context("no Python")
    };
    let mut outcome = Outcome {
        name: "transcript",
        about: format!(
            "The last usage in a transcript of {} MB, in the page cache, opened anew each time, \
             against a Python that reads its last MiB. The start of the programs is left out. \
             Both read the same usage.",
            bytes / 1_000_000
        ),
        ..Outcome::default()
    };
    let mut programs: Vec<inside::Program<'_>> =
        vec![("whosup-core", Box::new(|| ours(Some(READS))))];
    if setting.python.is_some() {
        let read = answer_json(&mut ours(None)?, folder.path())?;
        let theirs = answer_json(&mut python(&["print", &path_text])?, folder.path())?;
        if read != theirs {
            bail!("we read {read}, the Python {theirs}");
        }
        let time = || python(&["time", &path_text, READS]);
        programs.push(("Python, the last MiB", Box::new(time)));
    } else {
        outcome.notes.push("skipped: no Python".to_owned());
    }
    outcome.series = inside::rounds(setting.rounds(ROUNDS), folder.path(), &mut programs)?;
    if let [ours, python] = outcome.series.as_slice() {
        for measure in [Measure::Wall, Measure::Cpu] {
            let text = "the last usage of 200 MB";
            let goal = Goal::times_less(text, (ours, python), measure, PYTHON_RATIO_MIN);
            outcome.goals.push(goal);
        }
    }
    Ok(outcome)
}
