//! Measures `whosup list` with few and with many dead sessions on disk.

mod measure;
mod pose;
mod world;

// A test of whosup-core makes its worlds with it too.
#[path = "../../crates/core/tests/fast_path/disk.rs"]
#[allow(
    clippy::unwrap_used,
    dead_code,
    unreachable_pub,
    reason = "shared with a test"
)]
mod disk;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, bail};
use clap::{Parser, ValueEnum};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use measure::{Times, answer, run};
use world::World;

/// By how much the default view may cost more with many dead sessions.
const RATIO_MAX: f64 = 1.2;

/// Measures `whosup list` with few and with many dead sessions on disk.
#[derive(Debug, Parser)]
struct Arguments {
    /// The program that is measured
    #[arg(long, default_value = "target/release/whosup")]
    whosup: PathBuf,
    /// How often it is run on each home
    #[arg(long, default_value_t = 40)]
    rounds: usize,
    /// How many dead sessions the first home has
    #[arg(long, default_value_t = 1_000)]
    few: usize,
    /// How many dead sessions the second home has
    #[arg(long, default_value_t = 100_000)]
    many: usize,
    /// Where the live sessions work
    #[arg(long, default_value = "beside")]
    live: Place,
}

/// Where the live sessions work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Place {
    /// In directories that dead sessions worked in
    Beside,
    /// In directories of their own
    Apart,
}

fn main() -> anyhow::Result<ExitCode> {
    if let Some(code) = pose::run_if_posing() {
        return Ok(code);
    }
    let arguments = Arguments::parse();
    let whosup = arguments
        .whosup
        .canonicalize()
        .with_context(|| format!("cannot find `{}`", arguments.whosup.display()))?;
    if arguments.rounds == 0 {
        bail!("cannot measure without rounds");
    }
    // What was made is removed before it ends.
    let is_interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&is_interrupted))?;
    }
    let mut out = std::io::stdout();
    let counts = [arguments.few, arguments.many];
    writeln!(
        out,
        "making homes with {} and {} dead sessions",
        counts[0], counts[1]
    )?;
    let mut world = World::make(counts, arguments.live, is_interrupted)?;

    let mut answers = Vec::new();
    for home in 0..counts.len() {
        world.show(home)?;
        answers.push(answer(&whosup, &world)?);
    }
    for (few, many) in answers[0].iter().zip(&answers[1]) {
        if few != many {
            bail!("the answers differ:\n{few:#}\n{many:#}");
        }
    }
    writeln!(
        out,
        "{} live sessions, the same in both",
        world.live_count()
    )?;

    let mut times = counts.map(|_| Times::default());
    for _ in 0..arguments.rounds {
        for (home, times) in times.iter_mut().enumerate() {
            world.show(home)?;
            times.add(run(&whosup, &world)?);
        }
    }
    report(&mut out, counts, &times)?;
    Ok(ExitCode::SUCCESS)
}

fn report(out: &mut impl Write, counts: [usize; 2], times: &[Times; 2]) -> std::io::Result<()> {
    writeln!(
        out,
        "\n{:>12}  {:>10}  {:>14}  {:>10}",
        "dead", "median", "slowest tenth", "CPU"
    )?;
    for (count, times) in counts.iter().zip(times) {
        writeln!(
            out,
            "{count:>12}  {:>7.1} ms  {:>11.1} ms  {:>7.1} ms",
            times.median_ms(),
            times.slowest_tenth_ms(),
            times.cpu_ms()
        )?;
    }
    let [few, many] = times;
    let ratio = many.median_ms() / few.median_ms();
    let verdict = if ratio <= RATIO_MAX {
        "within"
    } else {
        "beyond"
    };
    writeln!(
        out,
        "\nratio {ratio:.2} of the medians, {:.2} of the CPU times: {verdict} the goal of {RATIO_MAX}",
        many.cpu_ms() / few.cpu_ms()
    )
}
