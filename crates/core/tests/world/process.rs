//! One process of a `world.json`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer};
use whosup_process::{
    Absent, Access, Field, FileId, LockKind, PidNamespace, RecordedProcess, RunState, TerminalUse,
};

use super::{expand, time_ms};

/// A value that may be left out, or be there and unreadable (`null`).
#[derive(Debug, Clone, Default)]
pub enum Given<T> {
    #[default]
    Missing,
    Unreadable,
    Value(T),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Given<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Option::<T>::deserialize(deserializer)?;
        Ok(value.map_or(Self::Unreadable, Self::Value))
    }
}

impl<T> Given<T> {
    fn put<U>(&self, field: &mut Field<U>, convert: impl FnOnce(&T) -> U) {
        match self {
            Self::Missing => {}
            Self::Unreadable => *field = Err(Absent::PermissionDenied),
            Self::Value(value) => *field = Ok(convert(value)),
        }
    }
}

/// A process as `world.json` gives it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessFile {
    pub pid: i32,
    #[serde(default = "default_ppid")]
    ppid: i32,
    /// Clock ticks since boot.
    start: u64,
    /// When it began, by the wall clock.
    began: String,
    comm: String,
    #[serde(default)]
    argv: Given<Vec<String>>,
    /// More arguments follow, which were not read.
    #[serde(default)]
    is_argv_cut: bool,
    /// A text that the process put over its arguments.
    title: Option<String>,
    #[serde(default)]
    exe: Given<String>,
    #[serde(default)]
    is_exe_deleted: bool,
    #[serde(default)]
    cwd: Given<String>,
    uid: Option<u32>,
    /// Its Unix session: the PID of the process that leads it.
    session: Option<i32>,
    tty: Option<(u32, u32)>,
    /// When something was last typed in its terminal, and last shown there.
    terminal_used: Option<(String, String)>,
    /// Nothing shows that the kernel notes that.
    #[serde(default)]
    is_use_perhaps_not_noted: bool,
    /// The letter of its state; `Z` with `threads` above 1 is a leader whose
    /// threads run on.
    #[serde(default = "default_state")]
    state: char,
    threads: Option<u32>,
    #[serde(default)]
    kernel: bool,
    /// It has executed no program since it was forked.
    #[serde(default)]
    fork: bool,
    #[serde(default)]
    env: Given<BTreeMap<String, String>>,
    /// Its ids in the namespaces below ours, outermost first.
    #[serde(default)]
    inner_pids: Vec<i32>,
    pid_namespace: Option<u64>,
    #[serde(default)]
    holds: Given<Vec<HeldFile>>,
}

/// A file that a process has open.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct HeldFile {
    path: String,
    access: String,
    #[serde(default)]
    locks: Vec<String>,
}

const fn default_ppid() -> i32 {
    1
}

const fn default_state() -> char {
    'S'
}

/// How long a clock tick is, in milliseconds.
const TICK_MS: i64 = 10;

impl ProcessFile {
    /// When the kernel began, by this process's two times.
    pub fn booted_at_ms(&self) -> i64 {
        time_ms(&self.began) - i64::try_from(self.start).unwrap() * TICK_MS
    }

    /// The process as a recorded table keeps it.
    pub fn recorded(&self, home: &Path) -> RecordedProcess {
        let mut process = RecordedProcess::new(self.pid, self.start, time_ms(&self.began))
            .comm(&self.comm)
            .ppid(self.ppid)
            .uid(
                self.uid
                    .unwrap_or_else(|| rustix::process::geteuid().as_raw()),
            )
            .inner_pids(&self.inner_pids)
            .env(&[("HOME", home.to_str().unwrap())]);
        if let Some((major, minor)) = self.tty {
            process = process.tty(major, minor);
        }
        if let Some(session) = self.session {
            process.process.unix_session = session;
        }
        process.details.argv = Ok(vec![self.comm.clone().into()]);
        self.put_details(&mut process, home);
        self.put_open_files(&mut process, home);
        self.put_state(process)
    }

    fn put_details(&self, process: &mut RecordedProcess, home: &Path) {
        let details = &mut process.details;
        self.argv.put(&mut details.argv, |argv| {
            argv.iter().map(|arg| expand(arg, home).into()).collect()
        });
        if let Some(title) = &self.title {
            details.argv = Ok(vec![OsString::from(title)]);
            details.title = Ok(Some(OsString::from(title)));
        }
        self.exe
            .put(&mut details.exe, |exe| expand(exe, home).into());
        details.is_exe_deleted = self.is_exe_deleted;
        details.is_argv_cut = self.is_argv_cut;
        self.cwd
            .put(&mut details.cwd, |cwd| expand(cwd, home).into());
        if let Some((typed, shown)) = &self.terminal_used {
            details.terminal_use = Ok(TerminalUse {
                no_input_since_ms: time_ms(typed),
                no_output_since_ms: time_ms(shown),
                is_noted: !self.is_use_perhaps_not_noted,
            });
        }
        if let Some(inode) = self.pid_namespace {
            details.pid_namespace = Ok(PidNamespace(inode));
        }
        self.env.put(&mut process.environment, |variables| {
            let mut variables = variables.clone();
            variables
                .entry("HOME".to_owned())
                .or_insert_with(|| super::HOME_MARK.to_owned());
            variables
                .iter()
                .map(|(name, value)| (name.clone(), expand(value, home).into()))
                .collect()
        });
    }

    fn put_open_files(&self, process: &mut RecordedProcess, home: &Path) {
        match &self.holds {
            Given::Missing => {}
            Given::Unreadable => {
                process.open_files = Err(Absent::PermissionDenied);
                process.open_paths = Err(Absent::PermissionDenied);
            }
            Given::Value(files) => {
                for file in files {
                    let path = PathBuf::from(expand(&file.path, home));
                    *process = process.clone().holds_at(
                        &path,
                        file_id(&path),
                        access(&file.access),
                        file.locks.iter().map(|name| lock(name)).collect(),
                    );
                }
            }
        }
    }

    fn put_state(&self, process: RecordedProcess) -> RecordedProcess {
        let threads = self.threads.unwrap_or(1);
        let process = process.threads(threads);
        let process = match self.state {
            'R' => process.run_state(RunState::Running),
            'S' => process.run_state(RunState::Sleeping),
            'D' => process.run_state(RunState::DiskSleep),
            'T' => process.run_state(RunState::Stopped),
            'Z' if threads > 1 => process.zombie_leader(threads),
            'Z' => process.zombie(),
            other => panic!("no such state: `{other}`"),
        };
        match (self.kernel, self.fork) {
            (true, _) => process.kernel_thread(),
            (false, true) => process.fork(),
            (false, false) => process,
        }
    }
}

fn file_id(path: &Path) -> FileId {
    let metadata = std::fs::metadata(path)
        .unwrap_or_else(|error| panic!("held file {}: {error}", path.display()));
    FileId {
        device: metadata.dev(),
        inode: metadata.ino(),
    }
}

fn access(name: &str) -> Access {
    match name {
        "r" => Access::Read,
        "w" => Access::Write,
        "rw" => Access::ReadWrite,
        other => panic!("no such access: `{other}`"),
    }
}

fn lock(name: &str) -> LockKind {
    match name {
        "flock-write" => LockKind::Flock { is_exclusive: true },
        "flock-read" => LockKind::Flock {
            is_exclusive: false,
        },
        "record-write" => LockKind::Record { is_exclusive: true },
        "record-read" => LockKind::Record {
            is_exclusive: false,
        },
        "other" => LockKind::Other,
        name => panic!("no such lock: `{name}`"),
    }
}
