//! Runs programs in turn and takes their times.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use wait4::Wait4 as _;

use crate::setting::Setting;

/// How long one run may take.
const RUN_MAX: Duration = Duration::from_secs(600);

/// What one run took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    /// From start to end, in milliseconds.
    pub(crate) wall_ms: f64,
    /// User and system time of the program and of its children, in milliseconds.
    pub(crate) cpu_ms: f64,
    /// The most memory that it had at once, in KiB.
    pub(crate) peak_kib: u64,
}

/// The runs of one program on one world.
#[derive(Debug)]
pub(crate) struct Series {
    /// Which program, on what.
    pub(crate) name: String,
    /// In the order in which they were taken.
    pub(crate) samples: Vec<Sample>,
}

/// What is measured of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measure {
    Wall,
    Cpu,
}

impl Measure {
    fn of(self, sample: &Sample) -> f64 {
        match self {
            Self::Wall => sample.wall_ms,
            Self::Cpu => sample.cpu_ms,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Wall => "wall",
            Self::Cpu => "CPU",
        }
    }
}

impl Series {
    pub(crate) fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            samples: Vec::new(),
        }
    }

    /// What `part` of 100 runs stayed below.
    pub(crate) fn percentile(&self, measure: Measure, part: usize) -> f64 {
        let mut values: Vec<f64> = self.samples.iter().map(|one| measure.of(one)).collect();
        values.sort_by(f64::total_cmp);
        let last = values.len().saturating_sub(1);
        values
            .get((values.len() * part / 100).min(last))
            .copied()
            .unwrap_or_default()
    }

    pub(crate) fn median(&self, measure: Measure) -> f64 {
        self.percentile(measure, 50)
    }

    pub(crate) fn peak_kib(&self) -> u64 {
        let peaks = self.samples.iter().map(|sample| sample.peak_kib);
        peaks.max().unwrap_or_default()
    }

    pub(crate) fn to_json(&self) -> Value {
        let round = |value: f64| (value * 1000.0).round() / 1000.0;
        let column = |measure: Measure| -> Vec<f64> {
            let samples = self.samples.iter();
            samples.map(|one| round(measure.of(one))).collect()
        };
        json!({
            "name": self.name,
            "wall_ms": column(Measure::Wall),
            "cpu_ms": column(Measure::Cpu),
            "peak_kib": self.peak_kib(),
        })
    }
}

/// Runs a program to its end, its output thrown away.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<Sample> {
    command.stdout(Stdio::null());
    let began = Instant::now();
    let child = command
        .spawn()
        .with_context(|| format!("cannot run {command:?}"))?;
    let sample = wait(child, began)?;
    sample.with_context(|| format!("cannot measure {command:?}"))
}

/// Runs a program and returns what it writes, by way of a file.
pub(crate) fn answer(command: &mut Command, folder: &Path) -> anyhow::Result<Vec<u8>> {
    let path = folder.join("answer");
    command.stdout(File::create(&path)?);
    let child = command
        .spawn()
        .with_context(|| format!("cannot run {command:?}"))?;
    wait(child, Instant::now())?.with_context(|| format!("cannot run {command:?}"))?;
    Ok(std::fs::read(&path)?)
}

/// As [`answer`], as JSON.
pub(crate) fn answer_json(command: &mut Command, folder: &Path) -> anyhow::Result<Value> {
    let bytes = answer(command, folder)?;
    serde_json::from_slice(&bytes).with_context(|| format!("{command:?} answers no JSON"))
}

fn wait(mut child: Child, began: Instant) -> anyhow::Result<anyhow::Result<Sample>> {
    let ended = child.wait4()?;
    let wall = began.elapsed();
    if !ended.status.success() {
        return Ok(Err(anyhow::anyhow!("it ended with {}", ended.status)));
    }
    if wall > RUN_MAX {
        bail!("a run took {} s", wall.as_secs());
    }
    let cpu = ended.rusage.utime + ended.rusage.stime;
    Ok(Ok(Sample {
        wall_ms: milliseconds(wall),
        cpu_ms: milliseconds(cpu),
        // The crate tells bytes.
        peak_kib: ended.rusage.maxrss / 1024,
    }))
}

pub(crate) fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// One program in a race: how it is run once.
pub(crate) type Runner<'a> = (
    &'a str,
    usize,
    Box<dyn FnMut() -> anyhow::Result<Sample> + 'a>,
);

/// Runs several programs in turn, round by round, each so often in one round.
pub(crate) fn interleave(
    setting: &Setting,
    rounds_usual: usize,
    mut runners: Vec<Runner<'_>>,
) -> anyhow::Result<Vec<Series>> {
    let mut series: Vec<Series> = runners
        .iter()
        .map(|(name, ..)| Series::new(*name))
        .collect();
    for round in 0..=setting.rounds(rounds_usual) {
        for ((_, each, run), series) in runners.iter_mut().zip(&mut series) {
            for _ in 0..*each {
                setting.go_on()?;
                let sample = run()?;
                // The first round warms the caches.
                if round > 0 {
                    series.samples.push(sample);
                }
            }
        }
    }
    Ok(series)
}
