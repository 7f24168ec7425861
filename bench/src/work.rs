//! Work that is measured inside one process, since a start would hide it:
//! `whosup-bench work …`, run as a program of its own.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, bail};
use clap::Subcommand;
use serde_json::{Value, json};
use whosup_core::sidecar::AgentId;
use whosup_core::sources::agents;
use whosup_core::sources::transcript::{TailBounds, TranscriptFile};
use whosup_process::{Among, FileId, ProcessTable, system_backend};

use crate::measure::milliseconds;

/// What is done.
#[derive(Debug, Subcommand)]
pub(crate) enum Work {
    /// Prints the process table, or looks at it so many times
    Table { times: Option<usize> },
    /// Prints who holds the files that a list names
    Holders { list: PathBuf },
    /// Prints the last usage in a transcript, or reads it so many times
    LastUsage { path: PathBuf, times: Option<usize> },
    /// Appends a line to a transcript and counts it, so many times
    Appended { path: PathBuf, times: usize },
    /// Tells hooks of events, as the agent that is above them
    Hook(crate::hook::Below),
}

/// Does it, and prints the result, or the times of each in milliseconds.
pub(crate) fn run(work: &Work) -> anyhow::Result<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    match work {
        Work::Table { times: None } => {
            let table = ProcessTable::look(system_backend());
            for process in table.processes()? {
                let parent = process.ppid.map_or(0, whosup_process::Pid::get);
                let began = process.began_at_ms.clone().unwrap_or_default();
                let comm = String::from_utf8_lossy(&process.comm);
                writeln!(
                    out,
                    "{}\t{parent}\t{}.{:03}\t{comm}",
                    process.pid,
                    began / 1000,
                    began % 1000
                )?;
            }
        }
        Work::Table { times: Some(times) } => {
            let samples = timed(*times, || {
                let table = ProcessTable::look(system_backend());
                Ok(table.processes()?.len())
            })?;
            writeln!(out, "{}", json!({ "samples": samples }))?;
        }
        Work::Holders { list } => {
            let mut by_id = std::collections::HashMap::new();
            for path in std::fs::read_to_string(list)?.lines() {
                use std::os::unix::fs::MetadataExt as _;
                let metadata = std::fs::metadata(path)?;
                let id = FileId {
                    device: metadata.dev(),
                    inode: metadata.ino(),
                };
                by_id.insert(id, path.to_owned());
            }
            let files: Vec<FileId> = by_id.keys().copied().collect();
            let holders = system_backend().holders(&files, Among::All)?;
            for holder in holders.found {
                let path = by_id
                    .get(&holder.file)
                    .context("a file that was not asked for")?;
                writeln!(out, "{}\t{path}", holder.pid)?;
            }
        }
        Work::LastUsage { path, times: None } => writeln!(out, "{}", last_usage(path)?)?,
        Work::LastUsage {
            path,
            times: Some(times),
        } => {
            let samples = timed(*times, || last_usage(path))?;
            writeln!(out, "{}", json!({ "samples": samples }))?;
        }
        Work::Appended { path, times } => {
            writeln!(out, "{}", json!({ "samples": appended(path, *times)? }))?;
        }
        Work::Hook(below) => writeln!(out, "{}", crate::hook::below(below)?)?,
    }
    out.flush()?;
    Ok(())
}

/// The last record that `fits`.
fn last_record(path: &Path, fits: impl Fn(&Value) -> bool) -> anyhow::Result<Value> {
    let file = TranscriptFile::open(path)?;
    for line in file.backwards(TailBounds::default())? {
        let line = line?;
        if !line.bytes().trim_ascii().is_empty() {
            let record: Value = serde_json::from_slice(line.bytes())?;
            if fits(&record) {
                return Ok(record);
            }
        }
    }
    bail!("it has no such record")
}

fn last_usage(path: &Path) -> anyhow::Result<Value> {
    let mut record = last_record(path, |record| !record["message"]["usage"].is_null())?;
    Ok(record["message"]["usage"].take())
}

/// Counts a transcript, and then each line that is appended to it. To append one is not
/// timed.
fn appended(path: &Path, times: usize) -> anyhow::Result<Vec<[f64; 2]>> {
    let agent = AgentId::parse("claude-code")?;
    let adapter = agents::adapter(&agent).context("no adapter")?;
    let counting = adapter.profile().counting.context("it counts nothing")?;
    let last = last_record(path, |_| true)?;
    let mut file = std::fs::OpenOptions::new().append(true).open(path)?;
    let mut counted = Some(counting.count(&TranscriptFile::open(path)?, None)?);
    let mut samples = Vec::with_capacity(times);
    for _ in 0..times {
        writeln!(file, "{last}")?;
        let before = counted.take();
        let sample = timed(1, || {
            counted = Some(counting.count(&TranscriptFile::open(path)?, before.clone())?);
            Ok(())
        })?;
        samples.extend(sample);
    }
    Ok(samples)
}

/// Wall and CPU time of each, in milliseconds.
fn timed<T>(
    times: usize,
    mut work: impl FnMut() -> anyhow::Result<T>,
) -> anyhow::Result<Vec<[f64; 2]>> {
    let mut samples = Vec::with_capacity(times);
    for _ in 0..times {
        let (cpu, began) = (cpu_ms(), Instant::now());
        std::hint::black_box(work()?);
        samples.push([milliseconds(began.elapsed()), cpu_ms() - cpu]);
    }
    Ok(samples)
}

/// The CPU time of this process so far.
pub(crate) fn cpu_ms() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let whole = std::time::Duration::new(
        now.tv_sec.unsigned_abs(),
        u32::try_from(now.tv_nsec).unwrap_or_default(),
    );
    milliseconds(whole)
}
