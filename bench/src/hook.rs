//! `whosup hook` beside the smallest Python hook that does the same job:
//! understand the event, find the agent's process above it, append a line.
//!
//! The program copies itself to where an agent would be installed and runs there as
//! the agent, so that both hooks find it above them.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::{Value, json};

use crate::measure::{Measure, Sample, Series, answer_json, run};
use crate::outcome::{Bound, Goal, Outcome};
use crate::setting::Setting;

/// How many times as long the other hook must take at least.
const RATIO_MIN: f64 = 3.0;
/// How much processor time an event may cost, in milliseconds.
const CPU_MS_MAX: f64 = 20.0;
const ROUNDS: usize = 300;
/// How long the event log of a long session is, in bytes.
const LONG_LOG_BYTES: usize = 1_000_000;
/// The Python that runs the other hook if no other one is named.
const PYTHON: &str = "/usr/bin/python3";
/// Where an agent's program is, below the directory that is made up.
const AGENT: &str = "opt/@anthropic-ai/claude-code/bin/claude";
/// The session that all events are of.
const SESSION: &str = "0a022b20-0000-4000-8000-000000000001";

/// The other hook.
const PYTHON_HOOK: &str = r#"
import json, os, sys, time
event = json.load(sys.stdin)
pid, owner = os.getppid(), None
while pid > 1 and owner is None:
    with open(f"/proc/{pid}/stat", "rb") as stat:
        text = stat.read()
    end = text.rindex(b")")
    fields = text[end + 2:].split()
    if text[text.index(b"(") + 1:end] == b"claude":
        owner = {"pid": pid, "start": fields[19].decode()}
    pid = int(fields[1])
line = {"at": time.time(), "session": event["session_id"],
        "event": event["hook_event_name"], "owner": owner}
with open(sys.argv[1], "a") as log:
    log.write(json.dumps(line) + "\n")
"#;

/// What is measured below the agent.
#[derive(Debug, Args)]
pub(crate) struct Below {
    whosup: PathBuf,
    /// The Python of the other hook, if there is one.
    python: Option<PathBuf>,
    #[arg(long)]
    rounds: usize,
    /// How long the event log is before, in bytes
    #[arg(long)]
    log_bytes: usize,
}

/// Measures what an event costs in a session that has just begun, and in a long one.
pub(crate) fn measure(setting: &Setting) -> anyhow::Result<Outcome> {
    let python = setting.python.as_deref().unwrap_or(Path::new(PYTHON));
    let python = python.canonicalize().ok();
    let mut outcome = Outcome {
        name: "hook",
        about: format!(
            "One event of a hook, in a session that has just begun and in one with a log of \
             {LONG_LOG_BYTES} bytes, beside the smallest Python hook that understands the event, \
             finds the agent's process above it and appends a line (without its site packages, \
             the fastest that it gets). Both found the same process."
        ),
        ..Outcome::default()
    };
    for (name, log_bytes) in [("a short log", 0), ("a long log", LONG_LOG_BYTES)] {
        setting.go_on()?;
        let series = series_of(setting, python.as_deref(), (name, log_bytes))?;
        let ours = &series[0];
        outcome.goals.push(Goal {
            text: format!("an event of a hook, {name} (CPU, median)"),
            measured: ours.median(Measure::Cpu),
            bound: Bound::AtMost(CPU_MS_MAX),
            unit: "ms",
        });
        if let Some(theirs) = series.get(1) {
            let text = format!("an event of a hook, {name}");
            let pair = (ours, theirs);
            let goal = Goal::times_less(&text, pair, Measure::Wall, RATIO_MIN);
            outcome.goals.push(goal);
        }
        outcome.series.extend(series);
    }
    if python.is_none() {
        outcome.notes.push("skipped: no Python".to_owned());
    }
    Ok(outcome)
}

/// Lets a copy of this program pose as the agent and tell both hooks of events.
fn series_of(
    setting: &Setting,
    python: Option<&Path>,
    (name, log_bytes): (&str, usize),
) -> anyhow::Result<Vec<Series>> {
    let directory = tempfile::Builder::new().prefix("whosup-bench-").tempdir()?;
    let root = directory.path().canonicalize()?;
    let agent = root.join(AGENT);
    std::fs::create_dir_all(agent.parent().context("a path with a name has a parent")?)?;
    std::fs::create_dir_all(root.join("home/work"))?;
    std::fs::copy(std::env::current_exe()?, &agent)?;
    let mut command = Command::new(&agent);
    command
        .args(["work", "hook"])
        .args(["--rounds", &setting.rounds(ROUNDS).to_string()])
        .args(["--log-bytes", &log_bytes.to_string()])
        .arg(&setting.whosup)
        .args(python)
        .env_clear()
        .env("HOME", root.join("home"))
        .current_dir(root.join("home/work"))
        .stdin(Stdio::null());
    let printed = answer_json(&mut command, &root)?;
    let printed = printed.as_array().context("no series")?;
    let names = ["`whosup hook`", "Python"].map(|program| format!("{program}, {name}"));
    let series = names.into_iter().zip(printed).map(|(name, printed)| {
        let samples: Vec<(f64, f64, u64)> = serde_json::from_value(printed.clone())?;
        let mut series = Series::new(name);
        series.samples = samples
            .into_iter()
            .map(|(wall_ms, cpu_ms, peak_kib)| Sample {
                wall_ms,
                cpu_ms,
                peak_kib,
            })
            .collect();
        Ok(series)
    });
    series.collect()
}

/// Tells both hooks the same events, in turn, below this process.
pub(crate) fn below(arguments: &Below) -> anyhow::Result<Value> {
    let home = std::env::home_dir().context("no home")?;
    let log = home.join(format!(
        ".local/state/whosup/sessions/claude-code/{SESSION}.jsonl"
    ));
    let payload = write_payload(&home)?;
    let script = home.join("hook.py");
    std::fs::write(&script, PYTHON_HOOK)?;
    let python_log = home.join("python.jsonl");
    let mut whosup = Command::new(&arguments.whosup);
    whosup.args(["hook", "claude-code"]);
    let mut programs = vec![whosup];
    programs.extend(arguments.python.as_ref().map(|python| {
        let mut python = Command::new(python);
        python.args(["-I", "-S"]).args([&script, &python_log]);
        python
    }));
    let mut series: Vec<Vec<(f64, f64, u64)>> = vec![Vec::new(); programs.len()];
    for round in 0..=arguments.rounds {
        for (program, samples) in programs.iter_mut().zip(&mut series) {
            let sample = run(program.stdin(File::open(&payload)?))?;
            // The first round warms the caches.
            if round > 0 {
                samples.push((sample.wall_ms, sample.cpu_ms, sample.peak_kib));
            }
        }
        if arguments.python.is_some() && (round == 0 || round == arguments.rounds) {
            compare(&log, &python_log)?;
        }
        if round == 0 {
            grow(&log, arguments.log_bytes)?;
        }
    }
    Ok(json!(series))
}

fn write_payload(home: &Path) -> anyhow::Result<PathBuf> {
    let payload = home.join("payload.json");
    let event = json!({
        "session_id": SESSION,
        "transcript_path": home.join(format!(".claude/projects/-work/{SESSION}.jsonl")),
        "cwd": home.join("work"),
        "hook_event_name": "PreToolUse",
        "permission_mode": "default",
        "tool_name": "Bash",
        "tool_input": { "command": "cargo test --workspace", "description": "Runs the tests" },
    });
    std::fs::write(&payload, event.to_string())?;
    Ok(payload)
}

/// Both must have found the same: the agent, which is this process.
fn compare(log: &Path, python_log: &Path) -> anyhow::Result<()> {
    let ours = last_line(log)?;
    let theirs = last_line(python_log)?;
    let own = std::process::id();
    let found = (
        &ours["owner"]["pid"],
        &ours["owner"]["start_stamp"],
        &ours["event"],
    );
    let expected = (
        &theirs["owner"]["pid"],
        &theirs["owner"]["start"],
        &json!("tool-started"),
    );
    let is_right = theirs["owner"]["pid"] == own && theirs["event"] == "PreToolUse";
    if found != expected || !is_right || theirs["session"] != SESSION {
        bail!("the hooks do not agree: {ours} and {theirs}");
    }
    Ok(())
}

fn last_line(log: &Path) -> anyhow::Result<Value> {
    let text = std::fs::read_to_string(log)?;
    let line = text.lines().rfind(|line| !line.is_empty());
    Ok(serde_json::from_str(line.context("an empty log")?)?)
}

/// Makes the log as long as after many events.
fn grow(log: &Path, bytes: usize) -> anyhow::Result<()> {
    let line = last_line(log)?;
    let mut file = File::options().append(true).open(log)?;
    let mut len = usize::try_from(file.metadata()?.len())?;
    for number in 0.. {
        if len >= bytes {
            break;
        }
        let mut event = line.clone();
        event["id"] = json!(format!("{number}-{}", line["id"]));
        let text = format!("\n{event}\n");
        file.write_all(text.as_bytes())?;
        len += text.len();
    }
    Ok(())
}
