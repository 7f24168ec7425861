//! Who holds which files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::bail;

use crate::crowd;
use crate::measure::{Measure, Runner, answer, interleave, run};
use crate::outcome::{Goal, Outcome};
use crate::setting::{Setting, is_there};

const PROCESSES: usize = 400;
const FILES: usize = 1_000;
const ROUNDS: usize = 20;
/// How much less CPU than one `lsof` for all files.
const LSOF_RATIO_MIN: f64 = 8.0;

/// Measures who holds 1,000 files.
pub(crate) fn measure(setting: &Setting) -> anyhow::Result<Outcome> {
    let folder = tempfile::Builder::new().prefix("whosup-bench-").tempdir()?;
    let root = folder.path().canonicalize()?;
    let (processes, files) = (setting.count(PROCESSES), setting.count(FILES));
    let paths: Vec<PathBuf> = (0..files)
        .map(|at| root.join(format!("file{at:04}")))
        .collect();
    for path in &paths {
        std::fs::write(path, "")?;
    }
    let list = root.join("list");
    let names: Vec<_> = paths.iter().map(|path| path.to_string_lossy()).collect();
    std::fs::write(&list, names.join("\n"))?;
    // Every second file is held by one process.
    let crowd = crowd::start(setting, &root, processes, |number| {
        let its = (0..files).filter(|at| at % 2 == 0 && at / 2 % processes == number);
        its.map(|at| paths[at].clone()).collect()
    })?;
    let ours = || -> anyhow::Result<Command> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["work", "holders"]).arg(&list);
        Ok(command)
    };
    let lsof = || {
        let mut command = Command::new("lsof");
        // Neither names of hosts and users nor warnings.
        command
            .args(["-n", "-P", "-l", "-w", "-F", "pn", "--"])
            .args(&paths);
        command.stdin(Stdio::null()).stderr(Stdio::null());
        command
    };
    let mut outcome = Outcome {
        name: "holders",
        about: format!(
            "Which of {} processes hold which of {files} files, half of which somebody holds: \
             one walk over the descriptors, against one `lsof` for all files. Both found the \
             same pairs. The starts of both programs count.",
            crowd.0.len()
        ),
        ..Outcome::default()
    };
    let mut runners: Vec<Runner<'_>> = vec![("whosup-process", 1, Box::new(|| run(&mut ours()?)))];
    if is_there(Path::new("lsof"), &["-v"]) {
        let found = answer(&mut ours()?, &root)?;
        let theirs = answer_of_lsof(&mut lsof(), &root)?;
        let found: BTreeSet<(String, String)> = String::from_utf8(found)?
            .lines()
            .filter_map(|line| line.split_once('\t'))
            .map(|(pid, path)| (pid.to_owned(), path.to_owned()))
            .collect();
        if found != theirs || found.len() != files.div_ceil(2) {
            bail!("we find {} holders, lsof {}", found.len(), theirs.len());
        }
        // It tells by its status that some files are held by nobody.
        runners.push(("lsof", 1, Box::new(|| run(&mut lenient(&lsof())))));
    } else {
        outcome.notes.push("skipped: no lsof".to_owned());
    }
    outcome.series = interleave(setting, ROUNDS, runners)?;
    if let [ours, lsof] = outcome.series.as_slice() {
        let text = "who holds which of 1,000 files";
        let goal = Goal::times_less(text, (ours, lsof), Measure::Cpu, LSOF_RATIO_MIN);
        outcome.goals.push(goal);
    }
    Ok(outcome)
}

/// The same command, by a shell that ends well.
fn lenient(command: &Command) -> Command {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "\"$@\" 2>/dev/null; :", "sh"]);
    shell.arg(command.get_program()).args(command.get_args());
    shell.stdin(Stdio::null());
    shell
}

fn answer_of_lsof(
    command: &mut Command,
    folder: &Path,
) -> anyhow::Result<BTreeSet<(String, String)>> {
    let bytes = answer(&mut lenient(command), folder)?;
    let mut found = BTreeSet::new();
    let mut pid = String::new();
    for line in String::from_utf8(bytes)?.lines() {
        match line.split_at(1) {
            ("p", number) => number.clone_into(&mut pid),
            ("n", path) => {
                found.insert((pid.clone(), path.to_owned()));
            }
            _ => {}
        }
    }
    Ok(found)
}
