//! Measures whosup beside programs that answer the same questions.

mod all;
mod claude;
mod copilot;
mod crowd;
mod holders;
mod hook;
mod inside;
mod large;
mod list;
mod measure;
mod memory;
mod outcome;
mod pose;
mod report;
mod serve;
mod setting;
mod sidecar;
mod start;
mod sweep;
mod table;
mod transcript;
mod usage;
mod work;
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

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context as _;
use clap::{Parser, Subcommand, ValueEnum};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use outcome::Outcome;
use setting::{Setting, is_there, load};

/// Measures whosup beside programs that answer the same questions.
#[derive(Debug, Parser)]
struct Arguments {
    /// The program that is measured
    #[arg(long, global = true, default_value = "target/dist/whosup")]
    whosup: PathBuf,
    /// A Python with psutil [default: ~/.cache/whosup/bench/venv/bin/python]
    #[arg(long, global = true)]
    python: Option<PathBuf>,
    /// abtop [default: as found by PATH]
    #[arg(long, global = true)]
    abtop: Option<PathBuf>,
    /// ccusage [default: as found by PATH]
    #[arg(long, global = true)]
    ccusage: Option<PathBuf>,
    /// How many rounds are measured
    #[arg(long, global = true)]
    rounds: Option<usize>,
    /// How many times smaller the worlds are than those that the goals are about
    #[arg(long, global = true, default_value_t = 1)]
    smaller: usize,
    /// How long `idle` and `clients` take, in seconds
    #[arg(long, global = true)]
    seconds: Option<u64>,
    /// Where the raw numbers of one benchmark go
    #[arg(long, global = true, value_name = "FILE")]
    raw: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The start: --version, and list on an empty home
    Start,
    /// The default view, with few and with many dead sessions on disk
    List {
        /// Where the live sessions work
        #[arg(long, default_value = "beside")]
        live: Place,
    },
    /// list --all
    All,
    /// Who holds which files
    Holders,
    /// The process table
    Table,
    /// The default view beside abtop's
    Claude,
    /// Peak memory
    Memory,
    /// The last usage in a large transcript
    Transcript,
    /// An event of a hook
    Hook,
    /// What it costs to announce a session
    Sidecar,
    /// A sweep that has one session to end, with few and with many dead ones on disk
    Sweep,
    /// From the death of an owner to a client of the server
    Death,
    /// From a renamed record to a client of the server
    Rename,
    /// What the server costs while nothing happens
    Idle,
    /// Very many clients of the server while very much changes
    Clients,
    /// The state by the server, with very many sessions on disk
    State,
    /// Counting a gigabyte of transcripts, and a line that was appended
    Usage,
    /// Runs them all and writes README.md and raw.json
    Report {
        /// These alone
        #[arg(long, value_name = "NAMES", value_delimiter = ',')]
        only: Vec<String>,
        /// Where to [default: bench/reports/DATE]
        #[arg(long)]
        folder: Option<PathBuf>,
    },
    /// Work that is measured inside one process
    #[command(hide = true)]
    Work {
        #[command(subcommand)]
        work: work::Work,
    },
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
    if let Command::Work { work } = &arguments.command {
        work::run(work)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Command::Report { only, folder } = &arguments.command {
        let folder = report::folder(folder.clone())?;
        report::write(&folder, only, &passed_on(&arguments))?;
        writeln!(std::io::stdout(), "{}", folder.join("README.md").display())?;
        return Ok(ExitCode::SUCCESS);
    }
    let setting = setting_of(&arguments)?;
    let before = load();
    let mut outcome = measure(&setting, &arguments)?;
    outcome.load = [before, load()];
    if let Some(path) = &arguments.raw {
        std::fs::write(path, format!("{:#}\n", outcome.to_json()))?;
    }
    write!(std::io::stdout(), "{}", outcome.to_text())?;
    Ok(ExitCode::SUCCESS)
}

fn measure(setting: &Setting, arguments: &Arguments) -> anyhow::Result<Outcome> {
    match &arguments.command {
        Command::Start => start::measure(setting),
        Command::List { live } => list::measure(setting, *live == Place::Beside),
        Command::All => all::measure(setting),
        Command::Holders => holders::measure(setting),
        Command::Table => table::measure(setting),
        Command::Claude => claude::measure(setting),
        Command::Memory => memory::measure(setting),
        Command::Transcript => transcript::measure(setting),
        Command::Hook => hook::measure(setting),
        Command::Sidecar => sidecar::measure(setting),
        Command::Sweep => sweep::measure(setting),
        Command::Death => serve::death(setting),
        Command::Rename => serve::rename(setting),
        Command::Idle => serve::idle(setting, arguments.seconds.unwrap_or(300)),
        Command::Clients => serve::clients(setting, arguments.seconds.unwrap_or(60)),
        Command::State => serve::state(setting),
        Command::Usage => usage::measure(setting),
        Command::Report { .. } | Command::Work { .. } => Ok(Outcome::default()),
    }
}

fn setting_of(arguments: &Arguments) -> anyhow::Result<Setting> {
    let whosup = &arguments.whosup;
    let whosup = whosup
        .canonicalize()
        .with_context(|| format!("cannot find `{}`", whosup.display()))?;
    // What was made is removed before it ends.
    let is_interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&is_interrupted))?;
    }
    let home = std::env::home_dir();
    let venv = home.map(|home| home.join(".cache/whosup/bench/venv/bin/python"));
    let python = arguments.python.clone().or(venv);
    let abtop = arguments.abtop.clone().or_else(|| in_path("abtop"));
    let ccusage = arguments.ccusage.clone().or_else(|| in_path("ccusage"));
    Ok(Setting {
        ccusage: ccusage.filter(|ccusage| is_there(ccusage, &["--version"])),
        whosup,
        python: python.filter(|python| is_there(python, &["-c", "import psutil"])),
        abtop: abtop.filter(|abtop| is_there(abtop, &["--json"])),
        rounds: arguments.rounds,
        smaller: arguments.smaller,
        is_interrupted,
    })
}

fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

/// The options of the benchmarks of a report.
fn passed_on(arguments: &Arguments) -> Vec<String> {
    let mut passed = Vec::new();
    let mut pass = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            passed.extend([format!("--{name}"), value]);
        }
    };
    let text = |path: &Path| path.to_string_lossy().into_owned();
    pass("whosup", Some(text(&arguments.whosup)));
    pass("python", arguments.python.as_deref().map(text));
    pass("abtop", arguments.abtop.as_deref().map(text));
    pass("ccusage", arguments.ccusage.as_deref().map(text));
    pass("rounds", arguments.rounds.map(|rounds| rounds.to_string()));
    pass(
        "seconds",
        arguments.seconds.map(|seconds| seconds.to_string()),
    );
    pass("smaller", Some(arguments.smaller.to_string()));
    passed
}
