//! A desktop that shows notifications: a real bus with a test service.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

/// The Python of the system, which has the modules of distributions.
const PYTHON: &str = "/usr/bin/python3";
/// How long a notification may take to arrive.
const TIME_MAX: Duration = Duration::from_secs(45);

/// A bus with a notification service. Both end with this value.
pub(crate) struct Desktop {
    child: Child,
    shown: Receiver<Value>,
    /// The address of the bus.
    pub(crate) address: String,
}

impl Desktop {
    /// Starts it; `None`, with a message, if that is not possible.
    #[track_caller]
    pub(crate) fn start() -> Option<Self> {
        let needs = "import dbus.mainloop.glib; from gi.repository import GLib";
        let has_modules = Command::new(PYTHON).args(["-c", needs]).output();
        let has_modules = has_modules.is_ok_and(|output| output.status.success());
        let bus = Command::new("dbus-run-session").arg("--version").output();
        if !has_modules || bus.is_err() {
            eprintln!("skipped: needs dbus-run-session, and {PYTHON} with dbus and gi");
            return None;
        }
        let receiver = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/notifications.py");
        let mut child = Command::new("dbus-run-session")
            .args(["--", PYTHON])
            .arg(receiver)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, shown) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines() {
                let line = serde_json::from_str(&line.unwrap()).unwrap();
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut desktop = Self {
            child,
            shown,
            address: String::new(),
        };
        let first = desktop.next();
        first["address"]
            .as_str()
            .unwrap()
            .clone_into(&mut desktop.address);
        Some(desktop)
    }

    /// The next notification.
    #[track_caller]
    pub(crate) fn next(&self) -> Value {
        self.shown.recv_timeout(TIME_MAX).unwrap()
    }
}

impl Drop for Desktop {
    fn drop(&mut self) {
        // The service ends with its input, and the bus with the service.
        drop(self.child.stdin.take());
        self.child.wait().ok();
    }
}
