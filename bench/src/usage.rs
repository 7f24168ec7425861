//! Counting a gigabyte of transcripts, and a line that was appended to one.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::inside;
use crate::large::{Shape, write_transcript};
use crate::measure::{Measure, Runner, answer_json, interleave, run};
use crate::outcome::{Bound, Goal, Outcome};
use crate::setting::Setting;

const FILES: u64 = 256;
const FILE_BYTES: u64 = 4_000_000;
const ROUNDS: usize = 5;
const OURS: [&str; 5] = [
    "usage",
    "--since",
    "2026-01-01T00:00:00Z",
    "--utc",
    "--json",
];
/// How many lines are appended in one round.
const APPENDED: &str = "2000";
/// How much faster than ccusage it is, with an empty cache.
const CCUSAGE_RATIO_MIN: f64 = 2.0;
/// How long a count takes of which everything is in the cache, in milliseconds.
const CACHED_MS_MAX: f64 = 100.0;
/// How long an appended line takes, in milliseconds.
const APPENDED_MS_MAX: f64 = 0.02;

/// Measures how fast tokens are counted.
pub(crate) fn measure(setting: &Setting) -> anyhow::Result<Outcome> {
    let folder = tempfile::Builder::new().prefix("whosup-bench-").tempdir()?;
    let home = folder.path();
    let bytes = FILE_BYTES / setting.smaller.max(1) as u64;
    write_transcripts(setting, home, bytes)?;
    let ours = || setting.whosup(home, &OURS);
    let anew = || {
        // It may not be there yet.
        std::fs::remove_dir_all(home.join(".cache")).ok();
        ours()
    };
    let theirs = || Some(ccusage(setting.ccusage.as_deref()?, home));
    let mut outcome = Outcome {
        name: "usage",
        about: format!(
            "The tokens in {FILES} transcripts of {} MB together, in the page cache: with our cache \
             empty, and full; against ccusage, which has none. Both count the same. And one line \
             that was appended to a transcript which was counted before.",
            FILES * bytes / 1_000_000
        ),
        ..Outcome::default()
    };
    let mut runners: Vec<Runner<'_>> = vec![
        (
            "`whosup usage`, cache empty",
            1,
            Box::new(|| run(&mut anew())),
        ),
        (
            "`whosup usage`, cache full",
            1,
            Box::new(|| run(&mut ours())),
        ),
    ];
    if let Some(mut peer) = theirs() {
        let counted = output(&answer_json(&mut anew(), home)?, "/total/output_tokens")?;
        let counted_by_peer = output(&answer_json(&mut peer, home)?, "/totals/outputTokens")?;
        if counted != counted_by_peer {
            bail!("we count {counted} tokens of output, ccusage {counted_by_peer}");
        }
        let run_peer = || run(&mut theirs().context("no ccusage")?);
        runners.push(("ccusage", 1, Box::new(run_peer)));
    } else {
        outcome.notes.push("skipped: no ccusage".to_owned());
    }
    outcome.series = interleave(setting, ROUNDS, runners)?;
    if let [empty, _, peer] = outcome.series.as_slice() {
        let pair = (empty, peer);
        let goal = Goal::times_less("a full count", pair, Measure::Wall, CCUSAGE_RATIO_MIN);
        outcome.goals.push(goal);
    }
    outcome
        .goals
        .extend(outcome.series.get(1).map(|cached| Goal {
            text: "a count from the cache (wall)".to_owned(),
            measured: cached.median(Measure::Wall),
            bound: Bound::AtMost(CACHED_MS_MAX),
            unit: "ms",
        }));
    measure_appended(setting, home, bytes, &mut outcome)?;
    Ok(outcome)
}

fn write_transcripts(setting: &Setting, home: &Path, bytes: u64) -> anyhow::Result<()> {
    for number in 0..FILES {
        setting.go_on()?;
        let session = format!("0a022b20-e8f2-410e-9552-{number:012}");
        let path = home.join(format!(".claude/projects/-home-dev-app/{session}.jsonl"));
        write_transcript(&path, home, &session, &Shape::Records { bytes })?;
    }
    Ok(())
}

/// Measures what a line costs that was appended to a counted transcript.
fn measure_appended(
    setting: &Setting,
    home: &Path,
    bytes: u64,
    outcome: &mut Outcome,
) -> anyhow::Result<()> {
    let path = home.join("appended.jsonl");
    write_transcript(&path, home, "s", &Shape::Records { bytes })?;
    let mut programs: Vec<inside::Program<'_>> = vec![(
        "a line appended",
        Box::new(|| {
            let mut command = Command::new(std::env::current_exe()?);
            command.args(["work", "appended"]).arg(&path).arg(APPENDED);
            Ok(command)
        }),
    )];
    let appended = inside::rounds(setting.rounds(ROUNDS), home, &mut programs)?;
    outcome.goals.extend(appended.first().map(|appended| Goal {
        text: "a line that was appended (wall)".to_owned(),
        measured: appended.median(Measure::Wall),
        bound: Bound::AtMost(APPENDED_MS_MAX),
        unit: "ms",
    }));
    outcome.series.extend(appended);
    Ok(())
}

fn ccusage(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["claude", "daily", "--json", "--offline"]);
    command.env("HOME", home).env_remove("CLAUDE_CONFIG_DIR");
    command.stdin(Stdio::null()).stderr(Stdio::null());
    command
}

fn output(answer: &Value, place: &str) -> anyhow::Result<u64> {
    let found = answer.pointer(place).and_then(Value::as_u64);
    found.with_context(|| format!("the answer has no `{place}`: {answer}"))
}
