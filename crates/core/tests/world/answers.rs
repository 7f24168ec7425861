//! What a look answers, put into a form that can be compared and kept.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::Value;
use whosup_core::adapter::Depth;
use whosup_core::machine::Machine;
use whosup_core::machine::command::{CommandError, CommandOutput, Commands};
use whosup_core::machine::mounts::Mounts;
use whosup_core::reader::Reader;
use whosup_core::sessions::scan::{Scanned, Scope, scan, scan_at_once};
use whosup_core::sources::config::Config;
use whosup_core::sources::recognize::Users;
use whosup_core::views::wire;
use whosup_process::RecordedProcess;

use super::HOME_MARK;

/// Takes a look, asks every session for more, and gives all of it as the wire
/// format has it. What is settled early must be what it is with everything beside it.
#[track_caller]
pub fn snapshot(machine: &Machine, depth: &Depth) -> Value {
    let scope = Scope {
        depth: depth.clone(),
        users: Users::Own,
        ..Scope::default()
    };
    let config = Config::default();
    let answer = |mut scanned: Scanned<'_>| {
        Reader::new(machine, &config).describe(&mut scanned, |_| true);
        serde_json::to_value(wire::snapshot(machine, &scanned.snapshot)).unwrap()
    };
    let answered = answer(scan(machine, &scope));
    assert_eq!(
        answered,
        answer(scan_at_once(machine, &scope)),
        "something is settled too early: left; as it is with everything beside it: right"
    );
    answered
}

/// A machine with one local disk.
pub fn mounts() -> Mounts {
    Mounts::parse(b"27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n")
}

/// A pane of the world's one tmux server.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaneFile {
    pub pane: String,
    /// The process that was started in it.
    pub pid: i32,
    /// For the reader: processes are joined by `pid` and their Unix session.
    pub tty: Option<(u32, u32)>,
    #[serde(default)]
    pub title: String,
}

/// The PID of the world's tmux server, which is there if it has panes.
pub const TMUX_PID: i32 = 900;

/// The socket of the world's tmux server.
pub fn tmux_socket(home: &Path) -> PathBuf {
    home.join("tmux/default")
}

/// The tmux server of a world.
pub fn tmux_server(home: &Path) -> RecordedProcess {
    let socket = tmux_socket(home);
    RecordedProcess::new(TMUX_PID, 77, 0)
        .comm("tmux: server")
        .argv(&["tmux", "-S", socket.to_str().unwrap(), "new-session"])
        .exe("/usr/bin/tmux")
        .uid(rustix::process::geteuid().as_raw())
}

/// Answers the commands that a look runs: only tmux is installed, and only if
/// the world has panes.
#[derive(Debug)]
pub struct Answers {
    panes: Vec<PaneFile>,
}

impl Answers {
    pub fn new(panes: &[PaneFile]) -> Self {
        Self {
            panes: panes.to_vec(),
        }
    }

    fn listing(&self) -> String {
        let rows = self.panes.iter().map(|pane| {
            let (id, pid, title) = (&pane.pane, pane.pid, &pane.title);
            format!("{id} {pid} 0 {TMUX_PID}  0 4 3 main:api:{title}\n")
        });
        rows.collect()
    }
}

impl Commands for Answers {
    fn run(
        &self,
        program: &str,
        args: &[OsString],
        _deadline: Instant,
    ) -> Result<CommandOutput, CommandError> {
        if program != "tmux" || self.panes.is_empty() {
            return Err(CommandError::NotFound {
                program: program.to_owned(),
            });
        }
        assert!(args.iter().any(|arg| arg == "list-panes"), "{args:?}");
        Ok(CommandOutput {
            is_success: true,
            stdout: self.listing().into_bytes(),
            stderr: Vec::new(),
        })
    }

    fn deadline(&self) -> Instant {
        Instant::now() + Duration::from_secs(2)
    }
}

/// Puts the mark in place of the temporary home in every text.
pub fn with_mark(value: Value, home: &Path) -> Value {
    let home = home.to_str().unwrap();
    match value {
        Value::String(text) => Value::String(text.replace(home, HOME_MARK)),
        Value::Array(items) => {
            let items = items.into_iter();
            items.map(|item| with_mark(item, Path::new(home))).collect()
        }
        Value::Object(fields) => {
            let fields = fields.into_iter();
            Value::Object(
                fields
                    .map(|(key, value)| (key, with_mark(value, Path::new(home))))
                    .collect(),
            )
        }
        other => other,
    }
}

/// One place where two answers differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Where: `sessions[0].liveness`.
    pub at: String,
    /// What was expected there, if anything.
    pub expected: Option<String>,
    /// What was found there, if anything.
    pub found: Option<String>,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "(absent)".to_owned());
        let (expected, found) = (text(&self.expected), text(&self.found));
        write!(f, "{}: expected {expected}, found {found}", self.at)
    }
}

/// Every place where two answers differ.
pub fn differences(expected: &Value, found: &Value) -> Vec<Difference> {
    let mut differences = Vec::new();
    compare(String::new(), Some(expected), Some(found), &mut differences);
    differences
}

fn compare(
    at: String,
    expected: Option<&Value>,
    found: Option<&Value>,
    differences: &mut Vec<Difference>,
) {
    match (expected, found) {
        (Some(Value::Object(left)), Some(Value::Object(right))) => {
            let keys: BTreeSet<_> = left.keys().chain(right.keys()).collect();
            for key in keys {
                let place = if at.is_empty() {
                    key.clone()
                } else {
                    format!("{at}.{key}")
                };
                compare(place, left.get(key), right.get(key), differences);
            }
        }
        (Some(Value::Array(left)), Some(Value::Array(right))) => {
            for index in 0..left.len().max(right.len()) {
                let place = format!("{at}[{index}]");
                compare(place, left.get(index), right.get(index), differences);
            }
        }
        (expected, found) if expected == found => {}
        (expected, found) => differences.push(Difference {
            at,
            expected: expected.map(ToString::to_string),
            found: found.map(ToString::to_string),
        }),
    }
}
