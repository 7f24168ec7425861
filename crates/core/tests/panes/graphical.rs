//! What is listed of a real kitty, on a display of its own.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use whosup_core::machine::Machine;
use whosup_core::sources::panes::{Pane, PaneHost as _, Panes, kitty::Kitty};
use whosup_process::Pid;

use super::hosts::{With, list};
use super::server::{machine_below, wait_for};

/// A kitty on a display of a test's own; both end with the value.
struct RealKitty {
    directory: TempDir,
    display: Child,
    kitty: Child,
}

impl RealKitty {
    /// Starts one that listens, or not.
    fn start(is_listening: bool) -> Option<Self> {
        let is_there = |program: &str| Command::new(program).arg("-help").output().is_ok();
        if !is_there("Xvfb") || !is_there("kitty") {
            eprintln!("skipped: kitty or Xvfb is not installed");
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        let mut display = Command::new("Xvfb")
            .args([
                "-displayfd",
                "1",
                "-screen",
                "0",
                "800x600x24",
                "-nolisten",
                "tcp",
            ])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut number = String::new();
        let mut output = BufReader::new(display.stdout.take().unwrap());
        output.read_line(&mut number).unwrap();
        let mut kitty = Command::new("kitty");
        kitty.args(["--config", "NONE", "-o", "allow_remote_control=yes"]);
        if is_listening {
            let socket = format!("unix:{}", directory.path().join("kitty").display());
            kitty.args(["--listen-on", &socket]);
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        kitty.args(["cat"]).env_clear().env("PATH", path);
        kitty.env("HOME", directory.path()).env("LANG", "C.UTF-8");
        kitty.env("XDG_RUNTIME_DIR", directory.path());
        kitty.env("DISPLAY", format!(":{}", number.trim()));
        kitty.env("LIBGL_ALWAYS_SOFTWARE", "1");
        kitty.stdout(Stdio::null()).stderr(Stdio::null());
        let kitty = kitty.spawn().unwrap();
        Some(Self {
            directory,
            display,
            kitty,
        })
    }

    fn pid(&self) -> Pid {
        Pid::new(i64::from(self.kitty.id())).unwrap()
    }

    fn socket(&self) -> PathBuf {
        PathBuf::from(format!(
            "unix:{}",
            self.directory.path().join("kitty").display()
        ))
    }

    fn with(&self) -> With {
        With(vec![("HOME", OsString::from(self.directory.path()))])
    }

    fn machine(&self) -> Machine {
        machine_below(vec![self.pid()], self.with(), &[])
    }

    fn remote(&self, words: &[&str]) -> String {
        let mut command = Command::new("kitty");
        command.args(["@", "--to"]).arg(self.socket()).args(words);
        let output = command.output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn panes(&self, count: usize) -> Vec<Pane> {
        wait_for("the windows", || {
            let machine = self.machine();
            let mut all = machine.table().processes().unwrap().iter();
            // It answers once its first program runs.
            all.find(|process| process.comm == b"cat")?;
            let panes = Kitty.list(&machine).found;
            let are_there = panes.len() == count && panes.iter().all(|pane| pane.tty.is_some());
            are_there.then_some(panes)
        })
    }
}

impl Drop for RealKitty {
    fn drop(&mut self) {
        for child in [&mut self.kitty, &mut self.display] {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

#[test]
fn windows_of_kitty_are_listed_typed_into_and_focused() {
    let Some(kitty) = RealKitty::start(true) else {
        return;
    };
    kitty.panes(1);
    kitty.remote(&["launch", "--type=tab", "--tab-title", "api", "cat"]);
    let panes = kitty.panes(2);
    let windows: Vec<_> = panes
        .iter()
        .filter_map(|pane| pane.window.as_deref())
        .collect();
    assert_eq!(windows[1], "api");
    assert_eq!(panes[1].server.as_ref().unwrap().pid, Some(kitty.pid()));
    let machine = kitty.machine();
    let found = Panes::new(list(&Kitty, &machine));
    let process = machine.table().seen(panes[0].pid.unwrap()).unwrap();
    assert_eq!(found.of(process, machine.table()), panes.first());

    let with = kitty.with();
    with.type_it(Kitty.paste(&panes[0], "hello \\x41"));
    with.type_it(Kitty.enter(&panes[0]));
    let first = format!("id:{}", panes[0].pane.as_deref().unwrap());
    wait_for("the text", || {
        let text = kitty.remote(&["get-text", "--match", &first]);
        text.contains("hello \\x41\nhello \\x41").then_some(())
    });
    let second = format!("id:{}", panes[1].pane.as_deref().unwrap());
    assert_eq!(kitty.remote(&["get-text", "--match", &second]).trim(), "");

    let active = || {
        let listed = kitty.remote(&["ls"]);
        let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
        let tabs = listed[0]["tabs"].as_array().unwrap();
        let tab = tabs.iter().position(|tab| tab["is_active_tab"] == true);
        tab.unwrap()
    };
    assert_eq!(active(), 1);
    with.run_all(Kitty.go(&panes[0], None));
    wait_for("the first tab", || (active() == 0).then_some(()));
}

#[test]
fn a_kitty_that_does_not_listen_is_recognized() {
    let Some(kitty) = RealKitty::start(false) else {
        return;
    };
    let shown = wait_for("the window", || {
        let machine = kitty.machine();
        let mut all = machine.table().processes().unwrap().iter();
        let process = all.find(|process| process.comm == b"cat" && process.tty.is_some())?;
        let panes = Panes::ask(&machine);
        assert_eq!(panes.problems, []);
        panes.found.shown(process, machine.table())
    });
    assert_eq!((shown.host, shown.pane), ("kitty", None));
    assert!(shown.tty.is_some());
}
