//! All benchmarks, one after the other, each in a process of its own, and what
//! they found as `README.md` and `raw.json`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use serde_json::{Value, json};

use crate::setting::load;

/// The benchmarks of a report, in its order.
const BENCHMARKS: &[&[&str]] = &[
    &["start"],
    &["list"],
    &["list", "--live", "apart"],
    &["all"],
    &["holders"],
    &["table"],
    &["claude"],
    &["memory"],
    &["transcript"],
    &["hook"],
    &["sidecar"],
    &["sweep"],
    &["death"],
    &["rename"],
    &["idle"],
    &["clients"],
    &["state"],
    &["usage"],
];

/// Runs these benchmarks, or all, with these arguments and writes the report.
pub(crate) fn write(folder: &Path, only: &[String], arguments: &[String]) -> anyhow::Result<()> {
    // Said before anything is measured, not after.
    let writable = fs::create_dir_all(folder).and_then(|()| tempfile::tempfile_in(folder));
    writable.with_context(|| {
        let folder = folder.display();
        format!("cannot write to `{folder}`; `--folder` names another one")
    })?;
    let machine = machine();
    let mut text = String::new();
    let mut goals = String::new();
    let mut raw = Vec::new();
    let is_wanted = |name| only.is_empty() || only.iter().any(|wanted| wanted == name);
    for benchmark in BENCHMARKS.iter().filter(|words| is_wanted(words[0])) {
        let name = benchmark.join(" ");
        let answer = run(benchmark, arguments)?;
        writeln!(text, "## {name}\n")?;
        let Some((outcome, shown)) = answer else {
            writeln!(text, "**Failed**: see what was said on standard error.\n")?;
            writeln!(goals, "| {name} | | | **failed** | |")?;
            continue;
        };
        text.push_str(&shown);
        text.push('\n');
        for goal in outcome["goals"].as_array().into_iter().flatten() {
            let is_met = goal["met"] == true;
            writeln!(
                goals,
                "| {} | {} {} | {} | {} | {} |",
                goal["text"].as_str().unwrap_or_default(),
                goal["demand"].as_str().unwrap_or_default(),
                goal["unit"].as_str().unwrap_or_default(),
                goal["measured"],
                if is_met { "met" } else { "**missed**" },
                outcome["load"],
            )?;
        }
        raw.push(outcome);
    }
    let mut readme = format!("# Speed, measured {}\n\n", date());
    for (key, value) in &machine {
        writeln!(readme, "- {key}: {value}")?;
    }
    let tried = fs::read_to_string(folder.join("tried.md")).unwrap_or_default();
    write!(
        readme,
        "\nPrograms run in turn, round by round; what is compared is the median. CPU time is \
         user and system time of a program and of its children. Other programs ran meanwhile: \
         the load is given with every figure. The raw numbers are in [raw.json](raw.json).\n\n\
         | Goal | Demanded | Measured | | Load before and after |\n|---|---|---|---|---|\n\
         {goals}\n{tried}\n{text}"
    )?;
    fs::write(
        folder.join("README.md"),
        readme.trim_end().to_owned() + "\n",
    )?;
    let machine: serde_json::Map<String, Value> = machine
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.into()))
        .collect();
    let raw = json!({ "machine": machine, "benchmarks": raw });
    fs::write(folder.join("raw.json"), format!("{raw:#}\n"))?;
    Ok(())
}

/// Runs one benchmark; `None` if it failed, which it has said.
fn run(benchmark: &[&str], arguments: &[String]) -> anyhow::Result<Option<(Value, String)>> {
    let folder = tempfile::Builder::new().prefix("whosup-bench-").tempdir()?;
    let json: PathBuf = folder.path().join("outcome.json");
    let shown = folder.path().join("outcome.md");
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(arguments)
        .arg("--raw")
        .arg(&json)
        .args(benchmark);
    command.stdout(fs::File::create(&shown)?);
    let status = command.status()?;
    if !status.success() {
        return Ok(None);
    }
    let outcome = serde_json::from_slice(&fs::read(&json)?)?;
    Ok(Some((outcome, fs::read_to_string(&shown)?)))
}

/// Today, in UTC.
pub(crate) fn date() -> String {
    let now = jiff::Timestamp::now().to_string();
    now.get(..10).unwrap_or(&now).to_owned()
}

/// What the numbers were measured on.
fn machine() -> Vec<(&'static str, String)> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        let value = line.and_then(|line| line.split_once(':'));
        value.map_or_else(String::new, |(_, value)| value.trim().to_owned())
    };
    let count = std::thread::available_parallelism().map_or(0, usize::from);
    let said = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output();
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        text.unwrap_or_default()
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    vec![
        (
            "processor",
            format!(
                "{}, {count} of them",
                field(&read("/proc/cpuinfo"), "model name")
            ),
        ),
        ("memory", field(&read("/proc/meminfo"), "MemTotal")),
        ("kernel", said("uname", &["-sr"])),
        ("file system", said("stat", &["-f", "-c", "%T", "/tmp"])),
        (
            "user",
            if rustix::process::geteuid().is_root() {
                "root"
            } else {
                "an ordinary user"
            }
            .to_owned(),
        ),
        ("Rust", said("rustc", &["--version"])),
        ("load when it began", format!("{:.1}", load())),
    ]
}

/// Fails if a date would lead elsewhere.
pub(crate) fn folder(named: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    if let Some(named) = named {
        return Ok(named);
    }
    let reports = Path::new(env!("CARGO_MANIFEST_DIR")).join("reports");
    if !reports.parent().is_some_and(Path::is_dir) {
        bail!("cannot find `{}`: name a folder", reports.display());
    }
    Ok(reports.join(date()))
}
