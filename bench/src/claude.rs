//! `whosup list --json` beside `abtop --json`, with sessions of Claude Code.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::measure::{Measure, Runner, answer_json, interleave, run};
use crate::outcome::{Bound, Goal, Outcome};
use crate::setting::{Setting, is_there};
use crate::world::{Plan, World};

const LIVE: usize = 6;
const DEAD: usize = 100;
const ROUNDS: usize = 40;
/// The commands that may be run: the pane hosts'.
const PANE_HOSTS: &[&str] = &["tmux"];

/// Measures the default view of six sessions.
pub(crate) fn measure(setting: &Setting) -> anyhow::Result<Outcome> {
    let world = World::make(
        setting,
        Plan {
            sizes: vec![[setting.count(DEAD), 0, 0, 0]],
            live: [LIVE, 0, 0, 0],
            has_transcripts: true,
            is_beside: true,
        },
    )?;
    let home = world.home();
    let list = || setting.whosup(&home, &["list", "--json"]);
    let mut outcome = Outcome {
        name: "claude",
        about: format!(
            "The default view with {LIVE} live sessions of Claude Code and {DEAD} dead ones, \
             beside `abtop --json`. Both listed the same sessions and processes."
        ),
        ..Outcome::default()
    };
    let ours = pairs(
        &answer_json(&mut list(), world.path())?["sessions"],
        &["owner", "pid"],
    )?;
    let mut runners: Vec<Runner<'_>> =
        vec![("`whosup list --json`", 1, Box::new(|| run(&mut list())))];
    if let Some(abtop) = &setting.abtop {
        let home = home.clone();
        let peer = move || {
            let mut command = Command::new(abtop);
            command
                .arg("--json")
                .env_clear()
                .env("HOME", &home)
                .env("PATH", "/usr/bin:/bin")
                .stdin(Stdio::null())
                .stderr(Stdio::null());
            command
        };
        let theirs = pairs(
            &answer_json(&mut peer(), world.path())?["sessions"],
            &["pid"],
        )?;
        if ours != theirs {
            bail!("we tell {ours:?}, abtop {theirs:?}");
        }
        runners.push(("`abtop --json`", 1, Box::new(move || run(&mut peer()))));
    } else {
        outcome
            .notes
            .push("skipped: no abtop (`cargo install abtop --locked --version 0.5.5`)".to_owned());
    }
    outcome.series = interleave(setting, ROUNDS, runners)?;
    if let [ours, abtop] = outcome.series.as_slice() {
        for measure in [Measure::Wall, Measure::Cpu] {
            let text = "`list --json` is no slower than `abtop --json`";
            outcome
                .goals
                .push(Goal::times_less(text, (ours, abtop), measure, 1.0));
        }
    }
    count_commands(setting, &world, &mut outcome)?;
    Ok(outcome)
}

/// No command may be run but the pane hosts'.
fn count_commands(setting: &Setting, world: &World, outcome: &mut Outcome) -> anyhow::Result<()> {
    match commands_of(setting, world)? {
        Some(commands) => {
            let foreign = commands.iter().filter(|program| {
                let name = Path::new(program)
                    .file_name()
                    .and_then(|name| name.to_str());
                !name.is_some_and(|name| PANE_HOSTS.contains(&name))
            });
            outcome.goals.push(Goal {
                text: "commands that are run, the pane hosts' aside".to_owned(),
                measured: f64::from(u32::try_from(foreign.count())?),
                bound: Bound::AtMost(0.0),
                unit: "commands",
            });
            outcome
                .notes
                .push(format!("commands that were run: {commands:?}"));
        }
        None => outcome
            .notes
            .push("skipped: no strace, so commands are not counted".to_owned()),
    }
    Ok(())
}

/// Sessions with their processes.
fn pairs(sessions: &Value, pid: &[&str]) -> anyhow::Result<BTreeSet<(String, i64)>> {
    let sessions = sessions.as_array().context("no sessions")?;
    let live = sessions.iter().filter(|one| one["liveness"] != "exited");
    live.map(|session| {
        let id = session["session_id"].as_str().context("no id")?;
        let number = pid.iter().fold(session, |value, key| &value[*key]).as_i64();
        Ok((
            id.to_owned(),
            number.with_context(|| format!("no PID: {session:#}"))?,
        ))
    })
    .collect()
}

/// The programs that one `list` runs; `None` if that can't be traced.
fn commands_of(setting: &Setting, world: &World) -> anyhow::Result<Option<Vec<String>>> {
    if !is_there(Path::new("strace"), &["-V"]) {
        return Ok(None);
    }
    let trace = world.path().join("trace");
    let mut command = Command::new("strace");
    command
        .args(["-f", "-qq", "-e", "trace=execve", "-o"])
        .arg(&trace);
    command.arg(&setting.whosup).args(["list", "--json"]);
    command.env_clear().env("HOME", world.home());
    command.env("PATH", "/usr/bin:/bin").stderr(Stdio::null());
    run(&mut command)?;
    let text = std::fs::read_to_string(&trace)?;
    let programs = text
        .lines()
        .filter(|line| line.ends_with("= 0"))
        .filter_map(|line| line.split('"').nth(1))
        .map(str::to_owned);
    // The first is the program itself.
    Ok(Some(programs.skip(1).collect()))
}
