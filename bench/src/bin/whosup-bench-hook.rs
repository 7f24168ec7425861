//! Measures `whosup hook` against the smallest Python hook that does the same
//! job: understand the event, find the agent's process above it, append a line.
//!
//! The program copies itself to where an agent would be installed and runs there as
//! the agent, so that both hooks find it above them.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Parser;
use serde_json::{Value, json};

/// How many times as long the other hook must take at least.
const RATIO_MIN: f64 = 3.0;
/// How much processor time an event may cost, in milliseconds.
const CPU_MS_MAX: f64 = 20.0;
/// How many clock ticks a second has in `/proc` (`USER_HZ`, proc_pid_stat(5)).
const TICKS_PER_SECOND: f64 = 100.0;
/// Where an agent's program is, below the directory that is made up.
const AGENT: &str = "opt/@anthropic-ai/claude-code/bin/claude";
/// Tells the copy which directory that is.
const ROOT: &str = "WHOSUP_BENCH_ROOT";
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

/// Measures `whosup hook` against the smallest Python hook that does the same job.
#[derive(Debug, Parser)]
struct Arguments {
    /// The program that is measured
    #[arg(long, default_value = "target/release/whosup")]
    whosup: PathBuf,
    /// The Python that runs the other hook: the interpreter itself, not a wrapper
    #[arg(long, default_value = "/usr/bin/python3")]
    python: PathBuf,
    /// How many events each is told
    #[arg(long, default_value_t = 300)]
    rounds: usize,
    /// How long the event log is before, in bytes
    #[arg(long, default_value_t = 0)]
    log_bytes: usize,
}

/// The times of one hook.
#[derive(Debug, Default)]
struct Times {
    walls: Vec<Duration>,
    cpu_ticks: u64,
}

impl Times {
    fn run(&mut self, command: &mut Command, payload: &Path) -> anyhow::Result<()> {
        command.stdin(File::open(payload)?).stdout(Stdio::null());
        let before = cpu_ticks_of_children()?;
        let began = Instant::now();
        let status = command.status()?;
        let wall = began.elapsed();
        if !status.success() {
            bail!("cannot measure: {command:?} ended with {status}");
        }
        self.cpu_ticks += cpu_ticks_of_children()?.saturating_sub(before);
        self.walls.push(wall);
        self.walls.sort_unstable();
        Ok(())
    }

    fn wall_ms(&self, tenths: usize) -> f64 {
        let at = self.walls.len() * tenths / 10;
        let wall = self.walls.get(at).copied().unwrap_or_default();
        wall.as_secs_f64() * 1000.0
    }

    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    fn cpu_ms(&self) -> f64 {
        let ms = self.cpu_ticks as f64 / TICKS_PER_SECOND * 1000.0;
        ms / self.walls.len().max(1) as f64
    }
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    if let Some(root) = std::env::var_os(ROOT) {
        return measure(&arguments, Path::new(&root));
    }
    let directory = tempfile::Builder::new().prefix("whosup-bench-").tempdir()?;
    let root = directory.path().canonicalize()?;
    let agent = root.join(AGENT);
    std::fs::create_dir_all(agent.parent().context("a path with a name has a parent")?)?;
    std::fs::create_dir_all(root.join("home/work"))?;
    std::fs::copy(std::env::current_exe()?, &agent)?;
    let resolve = |path: &Path| {
        path.canonicalize()
            .with_context(|| format!("cannot find `{}`", path.display()))
    };
    let status = Command::new(&agent)
        .args(["--rounds", &arguments.rounds.to_string()])
        .args(["--log-bytes", &arguments.log_bytes.to_string()])
        .arg("--whosup")
        .arg(resolve(&arguments.whosup)?)
        .arg("--python")
        .arg(resolve(&arguments.python)?)
        .env_clear()
        .env("HOME", root.join("home"))
        .env(ROOT, &root)
        .current_dir(root.join("home/work"))
        .status()?;
    let is_good = status.success();
    Ok(if is_good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Tells both hooks the same events, in turn.
fn measure(arguments: &Arguments, root: &Path) -> anyhow::Result<ExitCode> {
    let home = root.join("home");
    let log = home.join(format!(
        ".local/state/whosup/sessions/claude-code/{SESSION}.jsonl"
    ));
    let payload = write_payload(root)?;
    let script = root.join("hook.py");
    std::fs::write(&script, PYTHON_HOOK)?;
    let python_log = root.join("python.jsonl");
    let mut whosup = Command::new(&arguments.whosup);
    whosup.args(["hook", "claude-code"]).env_remove(ROOT);
    let mut python = Command::new(&arguments.python);
    // Without what it would look for of its own accord: the fastest that it gets.
    python
        .args(["-I", "-S"])
        .args([&script, &python_log])
        .env_remove(ROOT);

    Times::default().run(&mut whosup, &payload)?;
    Times::default().run(&mut python, &payload)?;
    compare(&log, &python_log)?;
    grow(&log, arguments.log_bytes)?;
    let (mut ours, mut theirs) = (Times::default(), Times::default());
    for _ in 0..arguments.rounds {
        ours.run(&mut whosup, &payload)?;
        theirs.run(&mut python, &payload)?;
    }
    compare(&log, &python_log)?;
    report(&ours, &theirs)
}

fn write_payload(root: &Path) -> anyhow::Result<PathBuf> {
    let payload = root.join("payload.json");
    let event = json!({
        "session_id": SESSION,
        "transcript_path": root.join(format!("home/.claude/projects/-work/{SESSION}.jsonl")),
        "cwd": root.join("home/work"),
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

fn report(ours: &Times, theirs: &Times) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout();
    writeln!(
        out,
        "hook        median ms  nine of ten below ms  mean CPU ms"
    )?;
    for (name, times) in [("whosup", ours), ("Python", theirs)] {
        let (median, slow, cpu) = (times.wall_ms(5), times.wall_ms(9), times.cpu_ms());
        writeln!(out, "{name:10}  {median:9.2}  {slow:20.2}  {cpu:11.2}")?;
    }
    let ratio = theirs.wall_ms(5) / ours.wall_ms(5);
    writeln!(
        out,
        "the Python hook takes {ratio:.1} times as long (goal: {RATIO_MIN})"
    )?;
    let is_good = ratio >= RATIO_MIN && ours.cpu_ms() < CPU_MS_MAX;
    Ok(if is_good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// User and system time of the children that were waited for (fields 16 and 17).
fn cpu_ticks_of_children() -> anyhow::Result<u64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(") ").context("no name in `stat`")?;
    let mut times = fields.split(' ').skip(13).take(2);
    let mut next =
        || -> anyhow::Result<u64> { Ok(times.next().context("`stat` is short")?.parse()?) };
    Ok(next()? + next()?)
}
