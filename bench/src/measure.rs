//! Runs the program and takes its times.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::world::World;

/// How many clock ticks a second has in `/proc` (`USER_HZ`, proc_pid_stat(5)).
const TICKS_PER_SECOND: f64 = 100.0;

/// The times of several runs.
#[derive(Debug, Default)]
pub(crate) struct Times {
    walls: Vec<Duration>,
    cpu_ticks: u64,
}

/// The times of one run.
#[derive(Debug)]
pub(crate) struct Run {
    wall: Duration,
    cpu_ticks: u64,
}

impl Times {
    pub(crate) fn add(&mut self, run: Run) {
        self.walls.push(run.wall);
        self.walls.sort_unstable();
        self.cpu_ticks += run.cpu_ticks;
    }

    pub(crate) fn median_ms(&self) -> f64 {
        self.at(self.walls.len() / 2)
    }

    /// Nine of ten runs were faster.
    pub(crate) fn slowest_tenth_ms(&self) -> f64 {
        self.at(self.walls.len() * 9 / 10)
    }

    fn at(&self, place: usize) -> f64 {
        let wall = self.walls.get(place).copied().unwrap_or_default();
        wall.as_secs_f64() * 1000.0
    }

    /// The mean of user and system time.
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    pub(crate) fn cpu_ms(&self) -> f64 {
        let seconds = self.cpu_ticks as f64 / TICKS_PER_SECOND;
        seconds * 1000.0 / self.walls.len().max(1) as f64
    }
}

/// Runs the program once.
pub(crate) fn run(whosup: &Path, world: &World) -> anyhow::Result<Run> {
    let before = cpu_ticks_of_children()?;
    let began = Instant::now();
    let status = command(whosup, world).stdout(Stdio::null()).status()?;
    let wall = began.elapsed();
    if !status.success() {
        bail!("cannot measure: `whosup list` ended with {status}");
    }
    Ok(Run {
        wall,
        cpu_ticks: cpu_ticks_of_children()?.saturating_sub(before),
    })
}

/// What the program answers about the world's live sessions, less what changes
/// from one look to the next.
pub(crate) fn answer(whosup: &Path, world: &World) -> anyhow::Result<Vec<Value>> {
    let path = world.path().join("answer.json");
    let status = command(whosup, world)
        .stdout(File::create(&path)?)
        .status()?;
    if !status.success() {
        bail!("cannot compare: `whosup list` ended with {status}");
    }
    let answer: Value = serde_json::from_slice(&std::fs::read(&path)?)?;
    let sessions = answer["sessions"].as_array().context("no sessions")?;
    let mut live: Vec<Value> = sessions
        .iter()
        .filter(|session| {
            session["session_id"]
                .as_str()
                .is_some_and(|id| world.is_live(id))
        })
        .cloned()
        .collect();
    if live.len() != world.live_count() {
        bail!(
            "{} of {} live sessions are listed",
            live.len(),
            world.live_count()
        );
    }
    for session in &mut live {
        if session["liveness"] != "live" {
            bail!("a live session is listed as another: {session:#}");
        }
        session["owner"]["rss_bytes"] = Value::Null;
        // By the wall clock of the look; its stamp must be the same.
        session["owner"]["started_at"] = Value::Null;
    }
    live.sort_by_key(|session| session["session_id"].to_string());
    Ok(live)
}

fn command(whosup: &Path, world: &World) -> Command {
    let mut command = Command::new(whosup);
    command
        .args(["list", "--json"])
        .env_clear()
        .env("HOME", world.home())
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// User and system time of the children that have ended (fields 16 and 17 of
/// `stat`).
fn cpu_ticks_of_children() -> anyhow::Result<u64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat
        .rsplit_once(") ")
        .context("cannot read `/proc/self/stat`")?;
    let ticks = fields.split(' ').skip(13).take(2);
    ticks.map(|ticks| Ok(ticks.parse::<u64>()?)).sum()
}
