//! Measures what it costs to announce a session, beside the bare system calls:
//! write a temporary file, fsync, rename.
//!
//! `cargo run --release --manifest-path bench/Cargo.toml --bin sidecar`

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Parser;
use whosup_sidecar::{Agent, Owner, Phase, Place, Session};

/// How many times the bare calls an operation may cost.
const RATIO_MAX: f64 = 2.0;

/// Measures what it costs to announce a session.
#[derive(Debug, Parser)]
struct Arguments {
    /// How often each is done
    #[arg(long, default_value_t = 400)]
    rounds: usize,
    /// Where files are made; the temporary directory if it is not said
    #[arg(long)]
    directory: Option<PathBuf>,
}

/// The times of one operation.
struct Times {
    name: &'static str,
    walls: Vec<Duration>,
}

impl Times {
    const fn of(name: &'static str) -> Self {
        Self {
            name,
            walls: Vec::new(),
        }
    }

    fn take<T>(&mut self, step: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
        let began = Instant::now();
        let result = step()?;
        self.walls.push(began.elapsed());
        Ok(result)
    }

    fn at(&self, tenths: usize) -> f64 {
        let mut walls = self.walls.clone();
        walls.sort_unstable();
        let wall = walls.get(walls.len() * tenths / 10).copied();
        wall.unwrap_or_default().as_secs_f64() * 1e6
    }

    fn median_us(&self) -> f64 {
        self.at(5)
    }
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let base = arguments.directory.unwrap_or_else(std::env::temp_dir);
    let directory = tempfile::tempdir_in(base).context("cannot make a directory")?;
    let [bare, establish, switch, update] = run(directory.path(), arguments.rounds)?;
    let mut out = std::io::stdout();
    writeln!(
        out,
        "{} rounds, in turn, in `{}`",
        arguments.rounds,
        directory.path().display()
    )?;
    let mut is_within = true;
    for times in [&bare, &establish, &switch, &update] {
        let ratio = times.median_us() / bare.median_us();
        is_within &= ratio < RATIO_MAX;
        writeln!(
            out,
            "{:<24} median {:>8.1} µs   nine of ten below {:>8.1} µs   ratio {ratio:.2}",
            times.name,
            times.median_us(),
            times.at(9),
        )?;
    }
    Ok(if is_within {
        ExitCode::SUCCESS
    } else {
        writeln!(out, "more than {RATIO_MAX} times the bare calls")?;
        ExitCode::FAILURE
    })
}

/// Does each operation once per round, so that whatever else the machine does
/// falls on all of them.
fn run(directory: &Path, rounds: usize) -> anyhow::Result<[Times; 4]> {
    let mut bare = Times::of("write + fsync + rename");
    let mut establish = Times::of("establish");
    let mut switch = Times::of("switch_session");
    let mut update = Times::of("update");
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
    for round in 0..rounds {
        // Each one comes after each other one: an fsync also pays for what was
        // done to the file system before it.
        for step in 0..4 {
            match (round + step) % 4 {
                0 => {
                    let path = plain.join(format!("s{round}.json"));
                    bare.take(|| write_bare(&plain, &path, &bytes))?;
                    fs::remove_file(&path)?;
                }
                1 => {
                    let new = session(format!("established-{round}"))?;
                    let owner = establish.take(|| Ok(Owner::establish(agent.clone(), new)?))?;
                    owner.release()?;
                }
                2 => {
                    let next = session(format!("s{round}"))?;
                    switch.take(|| Ok(first.switch_session(next)?))?;
                }
                _ => {
                    let phase = if round % 2 == 0 {
                        Phase::Working
                    } else {
                        Phase::Idle
                    };
                    update.take(|| Ok(first.update(phase)?))?;
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
