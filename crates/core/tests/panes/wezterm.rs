//! What is listed of a real WezTerm, typed into it, and which of its panes comes to the front.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use whosup_core::machine::Machine;
use whosup_core::sources::panes::{Pane, PaneHost as _, Panes, wezterm::WezTerm};
use whosup_process::Pid;

use super::hosts::{With, answered};
use super::server::{machine_below, wait_for};

/// WezTerm's server without a window, which runs `cat`; it ends with the value.
struct RealWezTerm {
    directory: TempDir,
    server: Child,
}

impl RealWezTerm {
    fn start() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new("wezterm-mux-server");
        command.args(["--skip-config", "--", "cat"]);
        command.env_clear().envs(variables(&directory));
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let Ok(server) = command.stderr(Stdio::null()).spawn() else {
            eprintln!("skipped: wezterm-mux-server is not installed, nor in WHOSUP_WEZTERM");
            return None;
        };
        Some(Self { directory, server })
    }

    fn machine(&self) -> Machine {
        let server = Pid::new(i64::from(self.server.id())).unwrap();
        machine_below(vec![server], self.with(), &[])
    }

    fn with(&self) -> With {
        With(variables(&self.directory))
    }

    fn socket(&self) -> PathBuf {
        let directory = self.directory.path().canonicalize().unwrap();
        directory.join("wezterm/sock")
    }

    fn cli(&self, words: &[&str]) -> String {
        let mut command = Command::new("wezterm");
        command.args(["cli", "--no-auto-start"]).args(words);
        command.env_clear().envs(variables(&self.directory));
        command.env("WEZTERM_UNIX_SOCKET", self.socket());
        let output = command.stderr(Stdio::null()).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// So many panes, once each is joined to its process.
    fn panes(&self, count: usize) -> Vec<Pane> {
        wait_for("the panes", || {
            let panes = answered(&WezTerm, &self.machine())?;
            let are_joined = panes.iter().all(|pane| pane.pid.is_some());
            (panes.len() == count && are_joined).then_some(panes)
        })
    }
}

impl Drop for RealWezTerm {
    fn drop(&mut self) {
        self.server.kill().ok();
        self.server.wait().ok();
    }
}

/// Both programs are found by their names: by `PATH`, or in the folder `WHOSUP_WEZTERM`.
fn variables(directory: &TempDir) -> Vec<(&'static str, OsString)> {
    let directory = directory.path().canonicalize().unwrap();
    let mut path = std::env::var_os("WHOSUP_WEZTERM").unwrap_or_default();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    vec![
        ("HOME", directory.clone().into()),
        ("XDG_RUNTIME_DIR", directory.into()),
        ("SHELL", "/bin/sh".into()),
        ("PATH", path),
    ]
}

#[test]
fn panes_of_wezterm_are_listed_typed_into_and_gone_to() {
    let Some(wezterm) = RealWezTerm::start() else {
        return;
    };
    let [first] = wezterm.panes(1).try_into().unwrap();
    assert_eq!(
        (first.host, first.place.as_str()),
        ("wezterm", "default/0.0")
    );
    let server = first.server.as_ref().unwrap();
    assert_eq!(server.socket, wezterm.socket());
    let first_id = first.pane.as_deref().unwrap();
    let id = wezterm.cli(&["spawn", "--pane-id", first_id, "--", "cat"]);
    wezterm.cli(&["set-tab-title", "--pane-id", &id, "api"]);
    let second = wait_for("the name of the tab", || {
        let mut panes = wezterm.panes(2).into_iter();
        panes.find(|pane| pane.window.as_deref() == Some("api"))
    });
    assert_eq!(second.place, format!("default/api.{id}"));

    let machine = wezterm.machine();
    let panes = Panes::ask(&machine).found;
    let cat = machine.table().probe(second.pid.unwrap()).unwrap().unwrap();
    let shown = panes.shown(&cat, machine.table()).unwrap();
    assert_eq!((shown.pane, shown.tty), (Some(id.clone()), cat.tty));

    let with = wezterm.with();
    with.type_it(WezTerm.paste(&second, "hello"));
    with.type_it(WezTerm.enter(&second));
    wait_for("the text", || {
        let text = wezterm.cli(&["get-text", "--pane-id", &id]);
        text.contains("hello\nhello").then_some(())
    });
    assert_eq!(wezterm.cli(&["get-text", "--pane-id", first_id]), "");
    with.run_all(WezTerm.go(&first, None));
    let is_active = |id: &str| {
        let listed = wezterm.cli(&["list", "--format", "json"]);
        let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
        let mut rows = listed.as_array().unwrap().iter();
        let id: u64 = id.parse().unwrap();
        let row = rows
            .find(|row| row["pane_id"].as_u64() == Some(id))
            .unwrap();
        row["is_active"].as_bool().unwrap()
    };
    assert!(is_active(first_id));
    with.run_all(WezTerm.go(&second, None));
    assert!(is_active(&id));
}
