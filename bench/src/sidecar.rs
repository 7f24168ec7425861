//! What it costs to announce a session, beside the bare system calls: write a
//! temporary file, fsync, rename.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use anyhow::Context as _;
use whosup_sidecar::{Agent, Owner, Phase, Place, Session};

use crate::measure::{Measure, Sample, Series, milliseconds};
use crate::outcome::{Bound, Goal, Outcome};
use crate::setting::Setting;
use crate::work::cpu_ms;

/// How many times the bare calls an operation may cost.
const RATIO_MAX: f64 = 2.0;
const ROUNDS: usize = 400;

/// Measures what it costs to announce a session.
pub(crate) fn measure(setting: &Setting) -> anyhow::Result<Outcome> {
    let directory = tempfile::Builder::new().prefix("whosup-bench-").tempdir()?;
    let series = run(setting, directory.path())?;
    let bare = series[0].median(Measure::Wall).max(f64::MIN_POSITIVE);
    let goals = series[1..].iter().map(|one| Goal {
        text: format!("{} over the bare calls (wall)", one.name),
        measured: one.median(Measure::Wall) / bare,
        bound: Bound::AtMost(RATIO_MAX),
        unit: "times",
    });
    Ok(Outcome {
        name: "sidecar",
        about: "To announce a session by a sidecar, to go over to another one and to tell a \
                phase, beside the bare calls: write a temporary file of the same size, `fsync`, \
                rename. In turn, each time in another order, within one process."
            .to_owned(),
        goals: goals.collect(),
        series: series.into(),
        ..Outcome::default()
    })
}

fn take<T>(series: &mut Series, step: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    let (cpu, began) = (cpu_ms(), Instant::now());
    let result = step()?;
    series.samples.push(Sample {
        wall_ms: milliseconds(began.elapsed()),
        cpu_ms: cpu_ms() - cpu,
        peak_kib: 0,
    });
    Ok(result)
}

/// Does each operation once per round, so that whatever else the machine does
/// falls on all of them.
fn run(setting: &Setting, directory: &Path) -> anyhow::Result<[Series; 4]> {
    let mut bare = Series::new("write + fsync + rename");
    let mut establish = Series::new("establish");
    let mut switch = Series::new("switch_session");
    let mut update = Series::new("update");
    let sidecars = directory.join("sidecars");
    let agent = Agent::new("bench-agent")?.version("1.0.0");
    let session = |id: String| {
        Session::new(&id, directory)?.place(Place::Directory(directory.join("sidecars")))
    };
    // Bytes of the same size, in a directory with as many files.
    let first = Owner::establish(agent.clone(), session("first".into())?)?;
    let bytes = fs::read(first.path().context("no file was written")?)?;
    let plain = directory.join("plain");
    fs::create_dir(&plain)?;
    for round in 0..setting.rounds(ROUNDS) {
        setting.go_on()?;
        // Each one comes after each other one: an fsync also pays for what was
        // done to the file system before it.
        for step in 0..4 {
            match (round + step) % 4 {
                0 => {
                    let path = plain.join(format!("s{round}.json"));
                    take(&mut bare, || write_bare(&plain, &path, &bytes))?;
                    fs::remove_file(&path)?;
                }
                1 => {
                    let new = session(format!("established-{round}"))?;
                    let owner = take(&mut establish, || Ok(Owner::establish(agent.clone(), new)?))?;
                    owner.release()?;
                }
                2 => {
                    let next = session(format!("s{round}"))?;
                    take(&mut switch, || Ok(first.switch_session(next)?))?;
                }
                _ => {
                    let phase = if round % 2 == 0 {
                        Phase::Working
                    } else {
                        Phase::Idle
                    };
                    take(&mut update, || Ok(first.update(phase)?))?;
                }
            }
        }
    }
    first.release()?;
    anyhow::ensure!(fs::read_dir(sidecars)?.next().is_none(), "a file was left");
    Ok([bare, establish, switch, update])
}

fn write_bare(directory: &Path, path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let temporary = directory.join("temporary");
    let mut file: File = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    Ok(())
}
