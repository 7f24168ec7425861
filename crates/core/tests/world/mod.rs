//! Makes a world out of a fixture folder: a home tree in a temporary directory,
//! and a recorded process table around it.
//!
//! The format of `world.json` is described in `tests/fixtures/README.md`.

// Several test programs use this module, each a part of it.
#![allow(dead_code, missing_docs, unreachable_pub, unused_imports)]

mod answers;
mod expected;
mod files;
mod process;
pub mod wire_schema;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use tempfile::TempDir;
use whosup_core::adapter::Depth;
use whosup_core::machine::{Environment, Machine};
use whosup_process::{
    Absent, BootId, Field, HidePid, HostName, PidNamespace, PidScope, ProcessTable, Recorded, View,
};

pub use answers::{Difference, differences, snapshot, with_mark};
pub use expected::{Defaults, stated};
pub use files::Tree;

/// What stands for the temporary home in fixtures and expected answers.
pub const HOME_MARK: &str = "@HOME@";

/// A `world.json`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorldFile {
    /// The sentence that the case proves.
    pub about: String,
    /// When the look is taken.
    pub now: String,
    #[serde(default)]
    pub depth: DepthName,
    #[serde(default = "default_host")]
    pub host: String,
    #[serde(default = "default_boot_id")]
    pub boot_id: Option<String>,
    #[serde(default = "default_pid_namespace")]
    pub pid_namespace: u64,
    #[serde(default)]
    pub view: ViewFile,
    /// Our environment; `HOME` is always the temporary home.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    #[serde(default)]
    pub processes: Vec<process::ProcessFile>,
    /// Listed processes of which nothing can be read.
    #[serde(default)]
    pub unreadable: Vec<i32>,
    /// Processes that exist and that the table does not show.
    #[serde(default)]
    pub hidden: Vec<i32>,
    /// Ids of threads that lead no process.
    #[serde(default)]
    pub threads: Vec<i32>,
    #[serde(default)]
    pub panes: Vec<answers::PaneFile>,
    /// What git can't keep: directories, FIFOs, links, odd bytes, modes.
    #[serde(default)]
    pub make: Vec<files::Make>,
    /// When files were last modified.
    #[serde(default)]
    pub file_times: BTreeMap<String, String>,
}

impl WorldFile {
    /// Reads that of a fixture folder.
    pub fn read(folder: &Path) -> Self {
        Self::changed(folder, |_| {})
    }

    fn changed(folder: &Path, change: impl FnOnce(&mut Value)) -> Self {
        let path = folder.join("world.json");
        let text = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut value = serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        change(&mut value);
        serde_json::from_value(value).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }
}

/// The depth of a look, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DepthName {
    #[default]
    Live,
    All,
}

impl From<DepthName> for Depth {
    fn from(name: DepthName) -> Self {
        match name {
            DepthName::Live => Self::Live,
            DepthName::All => Self::All,
        }
    }
}

/// What differs from the view of root in the kernel's first namespaces.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ViewFile {
    is_proc_ours: Option<bool>,
    hide_pid: Option<String>,
    is_everything_shown: Option<bool>,
    is_initial_pid_namespace: Option<bool>,
    is_initial_time_namespace: Option<bool>,
    is_root: Option<bool>,
    uid: Option<u32>,
    booted_at: Option<String>,
}

fn default_host() -> String {
    "devbox".to_owned()
}

#[allow(clippy::unnecessary_wraps, reason = "serde wants the field's type")]
fn default_boot_id() -> Option<String> {
    Some("19c1d8ff-a55f-47c0-82a1-b0f1bc43623a".to_owned())
}

const fn default_pid_namespace() -> u64 {
    PidNamespace::INITIAL.0
}

impl ViewFile {
    fn view(&self, booted_at_ms: i64) -> View {
        let hide_pid = match self.hide_pid.as_deref() {
            None | Some("off") => HidePid::Off,
            Some("no-access") => HidePid::NoAccess,
            Some("invisible") => HidePid::Invisible,
            Some("ptraceable-only") => HidePid::PtraceableOnly,
            Some(other) => panic!("no such `hide_pid`: `{other}`"),
        };
        View {
            is_proc_ours: Ok(self.is_proc_ours.unwrap_or(true)),
            hide_pid: Ok(hide_pid),
            is_everything_shown: Ok(self.is_everything_shown.unwrap_or(true)),
            is_initial_pid_namespace: Ok(self.is_initial_pid_namespace.unwrap_or(true)),
            is_initial_time_namespace: Ok(self.is_initial_time_namespace.unwrap_or(true)),
            is_root: self.is_root.unwrap_or(true),
            booted_at_ms: Ok(booted_at_ms),
            uid: Ok(self
                .uid
                .unwrap_or_else(|| rustix::process::geteuid().as_raw())),
        }
    }
}

/// A world that a look can be taken of. Its files go when it is dropped.
#[derive(Debug)]
pub struct World {
    file: WorldFile,
    home: PathBuf,
    _tmux: Option<UnixListener>,
    _directory: TempDir,
}

impl World {
    /// Makes the world of a fixture folder.
    pub fn of_fixture(folder: &Path) -> Self {
        Self::of_changed_fixture(folder, |_| {})
    }

    /// Makes the world of a fixture folder after a change to its `world.json`.
    pub fn of_changed_fixture(folder: &Path, change: impl FnOnce(&mut Value)) -> Self {
        Self::new(WorldFile::changed(folder, change), &folder.join("home"))
    }

    /// Makes a world without any file or process.
    pub fn empty(now: &str) -> Self {
        let file = serde_json::json!({ "about": "nothing is there", "now": now });
        let file = serde_json::from_value(file).unwrap();
        Self::new(file, Path::new("/nonexistent"))
    }

    fn new(file: WorldFile, template: &Path) -> Self {
        let directory = tempfile::Builder::new()
            .prefix("whosup-fixture-")
            .tempdir()
            .unwrap();
        let home = directory.path().canonicalize().unwrap().join("dev");
        std::fs::create_dir(&home).unwrap();
        if template.exists() {
            files::copy_tree(template, &home, &home);
        }
        for make in &file.make {
            make.make(&home);
        }
        files::date_transcripts(&home, time_ms(&file.now));
        files::set_times(&file.file_times, &home);
        let tmux = (!file.panes.is_empty()).then(|| {
            let socket = answers::tmux_socket(&home);
            std::fs::create_dir(socket.parent().unwrap()).unwrap();
            UnixListener::bind(socket).unwrap()
        });
        Self {
            file,
            home,
            _tmux: tmux,
            _directory: directory,
        }
    }

    /// Gives every transcript the date of its last record, whatever the fixture says.
    pub fn date_transcripts(&self) {
        files::date_transcripts(&self.home, time_ms(&self.file.now));
    }

    /// The temporary home.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// What the fixture says.
    pub fn file(&self) -> &WorldFile {
        &self.file
    }

    /// The machine that a scan looks at.
    pub fn machine(&self) -> Machine {
        self.machine_of(self.recorded())
    }

    /// The machine, with a process that is listed and has exited by now.
    pub fn machine_without(&self, pid: i32) -> Machine {
        self.machine_of(self.recorded().exited_since(pid))
    }

    fn machine_of(&self, recorded: Recorded) -> Machine {
        Machine::new(
            self.environment(),
            time_ms(&self.file.now),
            ProcessTable::look(Arc::new(recorded)),
            answers::mounts(),
            Arc::new(answers::Answers::new(&self.file.panes)),
        )
    }

    fn environment(&self) -> Environment {
        let variables = self.file.env.iter();
        let variables = variables.map(|(name, value)| (name.clone(), self.expand_os(value)));
        let home = ("HOME".to_owned(), self.home.clone().into_os_string());
        Environment::new(
            Some(self.home.clone()),
            Some(self.home.clone()),
            variables.chain([home]),
        )
    }

    fn recorded(&self) -> Recorded {
        let scope = PidScope {
            host: Ok(HostName(self.file.host.clone())),
            boot: self.boot_id(),
            pid_namespace: Ok(PidNamespace(self.file.pid_namespace)),
        };
        let mut recorded = Recorded::new(scope, self.file.view.view(self.booted_at_ms()));
        for process in &self.file.processes {
            recorded = recorded.with(process.recorded(&self.home));
        }
        if !self.file.panes.is_empty() {
            recorded = recorded.with(answers::tmux_server(&self.home));
        }
        for pid in &self.file.unreadable {
            recorded = recorded.with_unreadable(*pid, Absent::PermissionDenied);
        }
        for pid in &self.file.hidden {
            recorded = recorded.hidden(*pid);
        }
        for id in &self.file.threads {
            recorded = recorded.with_thread(*id);
        }
        recorded
    }

    /// When the kernel began: as the world says, else as its first process
    /// says, else the day before.
    fn booted_at_ms(&self) -> i64 {
        match (&self.file.view.booted_at, self.file.processes.first()) {
            (Some(time), _) => time_ms(time),
            (None, Some(process)) => process.booted_at_ms(),
            (None, None) => time_ms(&self.file.now) - 24 * 60 * 60 * 1000,
        }
    }

    fn boot_id(&self) -> Field<BootId> {
        match &self.file.boot_id {
            None => Err(Absent::PermissionDenied),
            Some(text) => Ok(BootId::parse(text).unwrap_or_else(|| panic!("no boot id: `{text}`"))),
        }
    }

    fn expand_os(&self, text: &str) -> OsString {
        expand(text, &self.home).into()
    }

    /// Takes a look and gives it as the wire format has it, with the mark in
    /// place of the temporary home.
    pub fn look(&self, depth: DepthName) -> Value {
        self.look_at(&Depth::from(depth))
    }

    /// The same, however far the look goes.
    pub fn look_at(&self, depth: &Depth) -> Value {
        let value = snapshot(&self.machine(), depth);
        answers::with_mark(value, &self.home)
    }
}

/// Puts the temporary home in place of the mark.
pub fn expand(text: &str, home: &Path) -> String {
    text.replace(HOME_MARK, home.to_str().unwrap())
}

/// Reads an RFC 3339 date.
pub fn time_ms(text: &str) -> i64 {
    let time: jiff::Timestamp = text
        .parse()
        .unwrap_or_else(|error| panic!("`{text}`: {error}"));
    time.as_millisecond()
}
