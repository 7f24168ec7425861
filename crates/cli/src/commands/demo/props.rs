//! The files of agents in the home of a demo.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::Value;
use whosup_core::process::{Pid, PidScope, system_backend};

use super::part::{Actor, Fate};
use super::stage::Stage;

/// One minute, in milliseconds.
const MINUTE_MS: i64 = 60_000;

/// Writes files of agents.
#[derive(Debug)]
pub(super) struct Props<'a> {
    stage: &'a Stage,
    now_ms: i64,
    /// When all processes had started, which takes seconds on a busy machine.
    ready_ms: i64,
    actors: HashMap<&'static str, Actor>,
    scope: PidScope,
}

impl<'a> Props<'a> {
    /// For a demo that takes place at `now_ms`.
    pub(super) fn new(stage: &'a Stage, now_ms: i64) -> Self {
        Self {
            stage,
            now_ms,
            ready_ms: now_ms,
            actors: HashMap::new(),
            scope: system_backend().scope(),
        }
    }

    /// The same, with the processes that had started at `ready_ms`.
    pub(super) fn with_actors(self, actors: HashMap<&'static str, Actor>, ready_ms: i64) -> Self {
        Self {
            actors,
            ready_ms,
            ..self
        }
    }

    /// The process that plays a part.
    pub(super) fn actor(&self, name: &str) -> anyhow::Result<&Actor> {
        let actor = self.actors.get(name);
        actor.with_context(|| format!("cannot find who poses as `{name}`"))
    }

    /// The processes that exist during the scan.
    pub(super) fn pids_that_stay(&self) -> impl Iterator<Item = Pid> {
        let staying = self.actors.values();
        staying
            .filter(|actor| actor.fate == Fate::Stays)
            .map(|actor| actor.pid)
    }

    /// The PID scope of this machine.
    pub(super) const fn scope(&self) -> &PidScope {
        &self.scope
    }

    /// A path below the home.
    pub(super) fn path(&self, below_home: &str) -> PathBuf {
        self.stage.home().join(below_home)
    }

    /// The same as text, for the contents of files.
    pub(super) fn text(&self, below_home: &str) -> anyhow::Result<String> {
        let path = self.path(below_home);
        let text = path.to_str().map(str::to_owned);
        text.with_context(|| format!("cannot use `{}`: it is not UTF-8", path.display()))
    }

    /// The folder name that Claude Code and qwen-code give to a directory.
    pub(super) fn encoded(&self, below_home: &str) -> anyhow::Result<String> {
        let text = self.text(below_home)?;
        let units = text.encode_utf16().map(|unit| {
            let letter = u8::try_from(unit).ok().filter(u8::is_ascii_alphanumeric);
            letter.map_or('-', char::from)
        });
        Ok(units.collect())
    }

    /// An instant in milliseconds since 1970; the newest are after the start of the processes.
    pub(super) const fn minutes_ago(&self, minutes: i64) -> i64 {
        match minutes {
            0 => self.ready_ms,
            _ => self.now_ms.saturating_sub(minutes * MINUTE_MS),
        }
    }

    /// Makes a directory.
    pub(super) fn folder(&self, below_home: &str) -> anyhow::Result<()> {
        let path = self.path(below_home);
        self.stage
            .with(|_| fs::create_dir_all(&path))
            .with_context(|| format!("cannot make `{}`", path.display()))
    }

    /// Writes a file.
    pub(super) fn file(&self, below_home: &str, text: &str) -> anyhow::Result<()> {
        self.file_with_mode(below_home, text, 0o600)
    }

    /// Writes a file with a mode.
    pub(super) fn file_with_mode(
        &self,
        below_home: &str,
        text: &str,
        mode: u32,
    ) -> anyhow::Result<()> {
        let path = self.path(below_home);
        self.stage
            .with(|_| write(&path, text, mode))
            .with_context(|| format!("cannot write `{}`", path.display()))
    }

    /// Writes one JSON value a line.
    pub(super) fn lines(&self, below_home: &str, records: &[Value]) -> anyhow::Result<()> {
        let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
        self.file(below_home, &lines)
    }
}

fn write(path: &Path, text: &str, mode: u32) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// A date as agents write it.
pub(super) fn date(at_ms: i64) -> String {
    let at = jiff::Timestamp::from_millisecond(at_ms).unwrap_or_default();
    format!("{at:.3}")
}
