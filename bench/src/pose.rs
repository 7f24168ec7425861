//! What a process does that poses as an agent: it holds what it was asked to
//! hold, and nothing else.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use anyhow::Context as _;

/// Set for a posing process.
const POSE: &str = "WHOSUP_BENCH_POSE";
/// The name that it goes by.
const NAME: &str = "WHOSUP_BENCH_NAME";
/// The files that it opens for writing, one a line; `{pid}` is its PID. What
/// ends in `.hold` it locks.
const HOLDS: &str = "WHOSUP_BENCH_HOLDS";

/// Waits until standard input ends, if this process is to pose.
pub(crate) fn run_if_posing() -> Option<ExitCode> {
    std::env::var_os(POSE)?;
    Some(match pose() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    })
}

fn pose() -> anyhow::Result<()> {
    if let Ok(name) = std::env::var(NAME) {
        std::fs::write("/proc/self/comm", name)?;
    }
    let holds = std::env::var(HOLDS).unwrap_or_default();
    let pid = std::process::id().to_string();
    let mut held = Vec::new();
    for path in holds.lines() {
        let path = path.replace("{pid}", &pid);
        let file = OpenOptions::new().create(true).append(true).open(&path)?;
        if path.ends_with(".hold") {
            File::lock(&file)?;
        }
        held.push(file);
    }
    let mut out = std::io::stdout();
    writeln!(out, "ready")?;
    out.flush()?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    drop(held);
    Ok(())
}

/// A process that poses, to be started.
#[derive(Debug)]
pub(crate) struct Pose<'a> {
    /// Where its executable is; this program is copied there.
    pub(crate) program: &'a Path,
    pub(crate) argv: &'a [&'a str],
    pub(crate) work_dir: &'a Path,
    pub(crate) home: &'a Path,
    /// The name that it takes, if not that of its executable.
    pub(crate) name: Option<&'a str>,
    pub(crate) holds: &'a [PathBuf],
}

impl Pose<'_> {
    /// Starts it, and waits until it holds what it is to hold.
    pub(crate) fn start(&self) -> anyhow::Result<Child> {
        use std::os::unix::process::CommandExt as _;

        if !self.program.exists() {
            std::fs::create_dir_all(self.program.parent().context("no folder")?)?;
            std::fs::copy(std::env::current_exe()?, self.program)?;
        }
        let holds: Vec<_> = self
            .holds
            .iter()
            .map(|path| path.to_string_lossy())
            .collect();
        let mut command = Command::new(self.program);
        command
            .arg0(self.argv.first().copied().unwrap_or("pose"))
            .args(self.argv.iter().skip(1))
            .current_dir(self.work_dir)
            .env_clear()
            .env("HOME", self.home)
            .env(POSE, "1")
            .env(HOLDS, holds.join("\n"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        if let Some(name) = self.name {
            command.env(NAME, name);
        }
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot run `{}`", self.program.display()))?;
        let mut ready = [0; 6];
        let spawned = child
            .stdout
            .as_mut()
            .context("no output")?
            .read_exact(&mut ready);
        spawned.with_context(|| format!("`{}` does not pose", self.program.display()))?;
        Ok(child)
    }
}

/// Processes that end when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Poses(pub(crate) Vec<Child>);

impl Drop for Poses {
    fn drop(&mut self) {
        for process in &mut self.0 {
            // One that has ended already is none to end.
            process.kill().ok();
            process.wait().ok();
        }
    }
}
