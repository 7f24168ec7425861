//! What a benchmark runs in: the program, its peers, how often.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, bail};

/// What a benchmark runs in.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    /// The program that is measured.
    pub(crate) whosup: PathBuf,
    /// A Python with psutil; `None` if there is none.
    pub(crate) python: Option<PathBuf>,
    /// abtop; `None` if there is none.
    pub(crate) abtop: Option<PathBuf>,
    /// ccusage; `None` if there is none.
    pub(crate) ccusage: Option<PathBuf>,
    /// How many rounds are measured; each benchmark has its own default.
    pub(crate) rounds: Option<usize>,
    /// How much smaller than usual the worlds are.
    pub(crate) smaller: usize,
    /// A signal has come.
    pub(crate) is_interrupted: Arc<AtomicBool>,
}

impl Setting {
    pub(crate) fn rounds(&self, usual: usize) -> usize {
        self.rounds.unwrap_or(usual)
    }

    /// How many of something there are, at least one.
    pub(crate) fn count(&self, usual: usize) -> usize {
        (usual / self.smaller.max(1)).max(1)
    }

    /// Fails once a signal has come, so that what was made is removed.
    pub(crate) fn go_on(&self) -> anyhow::Result<()> {
        if self.is_interrupted.load(Ordering::Relaxed) {
            bail!("interrupted");
        }
        Ok(())
    }

    /// The program, with nothing in its environment but a home.
    pub(crate) fn whosup(&self, home: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.whosup);
        command
            .args(arguments)
            .env_clear()
            .env("HOME", home)
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// A script of `bench/peers`.
    pub(crate) fn python(&self, script: &str, arguments: &[&str]) -> Option<Command> {
        let mut command = Command::new(self.python.as_ref()?);
        command
            .arg(peers().join(script))
            .args(arguments)
            .env_clear()
            .stdin(Stdio::null());
        Some(command)
    }
}

/// Where the peers are.
pub(crate) fn peers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers")
}

/// A program beside this one: built with it.
pub(crate) fn beside(name: &str) -> anyhow::Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name(name);
    path.canonicalize()
        .with_context(|| format!("cannot find `{}`: build the whole package", path.display()))
}

/// Whether a program can be run.
pub(crate) fn is_there(program: &Path, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// The load over the last minute.
pub(crate) fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let first = text.split(' ').next().and_then(|word| word.parse().ok());
    first.unwrap_or(f64::NAN)
}
