//! Times that a program takes of its own work.

use std::path::Path;
use std::process::Command;

use anyhow::Context as _;

use crate::measure::{Sample, Series, answer_json};

/// A program that takes times, and how it is called.
pub(crate) type Program<'a> = (&'a str, Box<dyn Fn() -> anyhow::Result<Command> + 'a>);

/// Runs programs in turn that each do their work so many times and tell the
/// times of each.
pub(crate) fn rounds(
    rounds: usize,
    folder: &Path,
    programs: &mut [Program<'_>],
) -> anyhow::Result<Vec<Series>> {
    let mut series: Vec<Series> = programs
        .iter()
        .map(|(name, _)| Series::new(*name))
        .collect();
    for _ in 0..rounds {
        for ((_, command), series) in programs.iter_mut().zip(&mut series) {
            let printed = answer_json(&mut command()?, folder)?;
            let samples = printed["samples"].as_array().context("no samples")?;
            // The first one warms the caches.
            for sample in samples.iter().skip(1) {
                let at = |place: usize| sample[place].as_f64().context("no number");
                series.samples.push(Sample {
                    wall_ms: at(0)?,
                    cpu_ms: at(1)?,
                    peak_kib: 0,
                });
            }
        }
    }
    Ok(series)
}
