//! `whosup watch` in a process of its own, whose lines are read as they arrive.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::Value;
use whosup_live::replay;

use super::world::{WHOSUP, World};

/// How long a line may take to arrive.
const LINE_TIME_MAX: Duration = Duration::from_secs(45);

/// `whosup watch --ndjson`, and the state by its lines.
pub(crate) struct Watching {
    pub(crate) child: Child,
    lines: Receiver<(Instant, Value)>,
    /// The first line with all changes so far.
    pub(crate) state: Value,
    /// The lines, and when they arrived.
    pub(crate) read: Vec<(Instant, Value)>,
}

impl Watching {
    /// Starts it in the world's directory, for sessions there.
    #[track_caller]
    pub(crate) fn start(world: &World) -> Self {
        Self::start_by(world, Command::new(WHOSUP), &["--cwd", "."])
    }

    /// Starts it by a command, with these options.
    #[track_caller]
    pub(crate) fn start_by(world: &World, mut command: Command, options: &[&str]) -> Self {
        let mut child = command
            .args(["watch", "--ndjson"])
            .args(options)
            .env_clear()
            .env("HOME", world.home())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .current_dir(world.work_dir())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines() {
                let came = Instant::now();
                let line = serde_json::from_str(&line.unwrap()).unwrap();
                if sender.send((came, line)).is_err() {
                    break;
                }
            }
        });
        let mut watching = Self {
            child,
            lines,
            state: Value::Null,
            read: Vec::new(),
        };
        watching.until("the snapshot", |state| !state.is_null());
        watching
    }

    /// Takes the next line, if there is one in time.
    pub(crate) fn take(&mut self, timeout: Duration) -> bool {
        match self.lines.recv_timeout(timeout) {
            Ok((came, line)) => {
                replay(&mut self.state, &line);
                self.read.push((came, line));
                true
            }
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => panic!("`watch` has ended: {:#?}", self.read),
        }
    }

    /// Reads until the state is as expected; returns when the last line arrived.
    #[track_caller]
    pub(crate) fn until(&mut self, what: &str, is_so: impl Fn(&Value) -> bool) -> Instant {
        let end = Instant::now() + LINE_TIME_MAX;
        while !is_so(&self.state) {
            let rest = end.saturating_duration_since(Instant::now());
            assert!(
                self.take(rest),
                "waited too long for {what}: {:#?}",
                self.read
            );
        }
        self.read
            .last()
            .map_or_else(Instant::now, |(came, _)| *came)
    }
}

/// A session of a snapshot.
pub(crate) fn session_in<'a>(state: &'a Value, id: &str) -> Option<&'a Value> {
    let mut sessions = state["sessions"].as_array()?.iter();
    sessions.find(|session| session["session_id"] == id)
}

/// Whether a session has a field with this value.
pub(crate) fn is(state: &Value, id: &str, field: &str, value: &str) -> bool {
    session_in(state, id).is_some_and(|session| session[field] == value)
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
