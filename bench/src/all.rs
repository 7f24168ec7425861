//! `whosup list --all`: every session on disk.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::{Context as _, bail};
use serde::Deserialize;

use crate::measure::{Measure, Runner, answer, interleave, run};
use crate::outcome::{Goal, Outcome};
use crate::setting::{Setting, beside};
use crate::world::{Plan, World};

const SIDECARS: usize = 100_000;
const LIVE: [usize; 4] = [0, 10, 10, 0];
const ROUNDS: usize = 10;
/// How much less CPU than a Python it takes.
const PYTHON_RATIO_MIN: f64 = 2.5;

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
        let mut command = Command::new(&walkdir);
        command.arg(&home).env_clear();
        command
    };
    let list = |form: &str| setting.whosup(&home, &["list", "--all", form]);
    let python = || setting.python("sessions.py", &[&home_text, "--all"]);

    let ours = rows(&mut list("--json"), &world)?;
    check_live(&world, &ours)?;
    compare(&ours, rows_of_lines(&mut list("--ndjson"), &world)?)?;
    compare(&ours, rows(&mut peer(), &world)?)?;
    if let Some(mut python) = python() {
        compare(&ours, rows(&mut python, &world)?)?;
    }
    drop(ours);

    let mut runners: Vec<Runner<'_>> = vec![
        (
            "`whosup list --all --json`",
            1,
            Box::new(|| run(&mut list("--json"))),
        ),
        (
            "`whosup list --all --ndjson`",
            1,
            Box::new(|| run(&mut list("--ndjson"))),
        ),
        (
            "`whosup list --all`",
            1,
            Box::new(|| run(&mut setting.whosup(&home, &["list", "--all"]))),
        ),
        ("walkdir + serde_json", 1, Box::new(|| run(&mut peer()))),
    ];
    if setting.python.is_some() {
        let run_python = || run(&mut python().context("no Python")?);
        runners.push(("Python with psutil", 1, Box::new(run_python)));
    }
    let series = interleave(setting, ROUNDS, runners)?;
    let goal = series.get(4).map(|python| {
        let pair = (&series[0], python);
        Goal::times_less("`list --all --json`", pair, Measure::Cpu, PYTHON_RATIO_MIN)
    });
    let notes = setting.python.is_none();
    let notes = notes.then(|| "skipped: no Python with psutil".to_owned());
    Ok(Outcome {
        name: "all",
        about: about(count, world.live().len()),
        goals: goal.into_iter().collect(),
        series,
        notes: notes.into_iter().collect(),
        ..Outcome::default()
    })
}

fn about(count: usize, live: usize) -> String {
    format!(
        "Every session on disk: {count} dead sidecars, half of qwen-code in one folder per \
             project, half of kimi-cli in one folder per session, and {} live ones. Each dead \
             one had a process of its own. All programs gave every session the same life, \
             process, directory and file; whosup also gives each a reason, its evidence and how \
             it is resumed.",
        live
    )
}

/// What is compared of a session, by agent and id: its life, the process that is said to
/// serve it, where it works, and the file that says so.
type Rows = BTreeMap<(String, String), (String, Option<i64>, String, String)>;

/// A session as whosup and its peers write it.
#[derive(Deserialize)]
struct Listed {
    agent: String,
    session_id: String,
    liveness: String,
    work_dir: String,
    /// Of a peer.
    pid: Option<i64>,
    /// Of a peer.
    path: Option<String>,
    /// Of whosup: it names the process of a dead session too.
    #[serde(default)]
    evidence: Vec<Evidence>,
}

#[derive(Deserialize)]
struct Evidence {
    kind: String,
    path: Option<String>,
    says: String,
}

impl Listed {
    fn add_to(self, rows: &mut Rows) -> anyhow::Result<()> {
        let mut evidence = self.evidence.into_iter();
        let sidecar = evidence.find(|evidence| evidence.kind == "sidecar");
        let (pid, path) = match sidecar {
            Some(Evidence { path, says, .. }) => {
                let pid = says
                    .strip_prefix("pid ")
                    .and_then(|pid| pid.split(',').next());
                (pid.and_then(|pid| pid.parse().ok()), path)
            }
            None => (self.pid, self.path),
        };
        let path = path.with_context(|| format!("`{}` has no file", self.session_id))?;
        rows.insert(
            (self.agent, self.session_id),
            (self.liveness, pid, self.work_dir, path),
        );
        Ok(())
    }
}

/// The rows of one document.
fn rows(command: &mut Command, world: &World) -> anyhow::Result<Rows> {
    #[derive(Deserialize)]
    struct Document {
        sessions: Vec<Listed>,
    }
    let document: Document = serde_json::from_slice(&answer(command, world.path())?)
        .with_context(|| format!("{command:?} answers something else"))?;
    let mut rows = Rows::new();
    let mut sessions = document.sessions.into_iter();
    sessions.try_for_each(|session| session.add_to(&mut rows))?;
    Ok(rows)
}

/// The rows of lines.
fn rows_of_lines(command: &mut Command, world: &World) -> anyhow::Result<Rows> {
    #[derive(Deserialize)]
    #[serde(tag = "kind", rename_all = "kebab-case")]
    enum Line {
        Session(Listed),
        #[serde(other)]
        Other,
    }
    let mut rows = Rows::new();
    for line in answer(command, world.path())?.split(|byte| *byte == b'\n') {
        if line.is_empty() {
            continue;
        }
        if let Line::Session(session) = serde_json::from_slice(line)? {
            session.add_to(&mut rows)?;
        }
    }
    Ok(rows)
}

fn check_live(world: &World, rows: &Rows) -> anyhow::Result<()> {
    let live: BTreeMap<String, i32> = rows
        .iter()
        .filter(|(_, (liveness, ..))| liveness == "live")
        .filter_map(|((_, id), (_, pid, ..))| Some((id.clone(), i32::try_from((*pid)?).ok()?)))
        .collect();
    if live != *world.live() {
        let (found, all) = (live.len(), world.live().len());
        bail!("{found} of {all} live ones are found");
    }
    Ok(())
}

/// Another answer must say the same of every session.
fn compare(ours: &Rows, theirs: Rows) -> anyhow::Result<()> {
    if theirs != *ours {
        let mut both = ours.iter();
        let other = both.find(|(key, row)| theirs.get(*key) != Some(*row));
        bail!(
            "{} sessions are found, not {}; the first that differs is {other:?}",
            theirs.len(),
            ours.len()
        );
    }
    Ok(())
}
