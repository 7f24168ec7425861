//! What is listed of real multiplexers beside tmux, what is typed into them, and how their
//! panes are gone to.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use whosup_core::adapter::Invocation;
use whosup_core::machine::Machine;
use whosup_core::machine::command::{CommandError, CommandOutput, Commands, SystemCommands};
use whosup_core::sources::panes::{
    Going, Pane, PaneHost, Panes, Typing, screen::Screen, zellij::Zellij,
};
use whosup_process::{Pid, Process};

use super::server::{Server, machine_below, wait_for};

/// Runs the real commands, with some variables set, for a long time.
#[derive(Debug, Clone)]
pub(crate) struct With(pub(crate) Vec<(&'static str, OsString)>);

impl Commands for With {
    fn run(
        &self,
        program: &str,
        args: &[OsString],
        deadline: Instant,
    ) -> Result<CommandOutput, CommandError> {
        let variables = self.0.iter().map(|(name, value)| {
            let mut word = OsString::from(format!("{name}="));
            word.push(value);
            word
        });
        let program = OsString::from(program);
        let words: Vec<OsString> = variables
            .chain([program])
            .chain(args.iter().cloned())
            .collect();
        SystemCommands.run("env", &words, deadline)
    }

    fn deadline(&self) -> Instant {
        Instant::now() + Duration::from_secs(30)
    }
}

impl With {
    /// Runs a command as a person's shell would.
    #[track_caller]
    pub(crate) fn invoke(&self, invocation: &Invocation, stdin: &str) {
        let mut command = Command::new(&invocation.argv[0]);
        command.args(&invocation.argv[1..]);
        let own = self.0.iter().map(|(name, value)| (*name, value.clone()));
        command.envs(own).envs(invocation.environment.clone());
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(stdin.as_bytes())
            .unwrap();
        assert!(child.wait().unwrap().success(), "{invocation:?}");
    }

    #[track_caller]
    pub(crate) fn type_it(&self, typing: Option<Typing>) {
        let typing = typing.unwrap();
        for input in typing.prepare.iter().chain(&typing.type_it) {
            self.invoke(&input.invocation, &input.stdin);
        }
    }

    #[track_caller]
    pub(crate) fn run_all(&self, going: Option<Going>) {
        let Some(Going::Run(commands)) = going else {
            panic!("{going:?}");
        };
        for command in &commands {
            self.invoke(command, "");
        }
    }
}

#[track_caller]
pub(crate) fn list(host: &dyn PaneHost, machine: &Machine) -> Vec<Pane> {
    let listed = host.list(machine);
    assert_eq!(listed.problems, []);
    listed.found
}

/// The panes, for who waits: a server that begins does not answer yet.
pub(crate) fn answered(host: &dyn PaneHost, machine: &Machine) -> Option<Vec<Pane>> {
    let listed = host.list(machine);
    listed.problems.is_empty().then_some(listed.found)
}

/// A GNU screen of a test's own; it ends with the value.
struct RealScreen {
    directory: TempDir,
    pid: Pid,
}

impl RealScreen {
    fn start(session: &str) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let program = Command::new("screen").arg("-v").output();
        if program.is_err() {
            eprintln!("skipped: screen is not installed");
            return None;
        }
        let sockets = directory.path().join("sockets");
        std::fs::create_dir(&sockets).unwrap();
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(&sockets, private).unwrap();
        let mut its = Self {
            directory,
            pid: Pid::own(),
        };
        its.run(&["-dmS", session, "cat"]);
        its.pid = wait_for("a screen", || {
            let mut entries = sockets.read_dir().unwrap();
            let name = entries.next()?.unwrap().file_name().into_string().unwrap();
            Pid::new(name.split_once('.')?.0.parse().ok()?).ok()
        });
        Some(its)
    }

    fn sockets(&self) -> PathBuf {
        self.directory.path().join("sockets")
    }

    fn run(&self, arguments: &[&str]) {
        let mut command = Command::new("screen");
        command.env_clear().env("SCREENDIR", self.sockets());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
            .env("HOME", self.directory.path())
            .env("SHELL", "/bin/sh");
        let status = command.args(arguments).stdin(Stdio::null()).status();
        assert!(status.unwrap().success(), "{arguments:?}");
    }

    fn tell(&self, arguments: &[&str]) {
        let session = format!("{}.", self.pid);
        self.run(&[&["-S", &session, "-X"], arguments].concat());
    }

    fn machine(&self) -> Machine {
        machine_below(vec![self.pid], With(Vec::new()), &[])
    }

    /// What a window shows. The server writes it after the command has returned.
    fn shown(&self, window: &str) -> String {
        let copies = tempfile::tempdir_in(&self.directory).unwrap();
        let file = copies.path().join("hardcopy");
        let session = format!("{}.", self.pid);
        let copy = ["-S", &session, "-p", window, "-X", "hardcopy"];
        self.run(&[&copy[..], &[file.to_str().unwrap()]].concat());
        let whole = wait_for("a copy of the window", || {
            let text = std::fs::read_to_string(&file).ok()?;
            (text.lines().count() == 24).then_some(text)
        });
        whole.trim_end().to_owned()
    }
}

impl Drop for RealScreen {
    fn drop(&mut self) {
        self.tell(&["quit"]);
    }
}

impl RealScreen {
    /// The panes, once screen lists so many windows and so many processes run in them.
    fn panes(&self, windows: usize) -> Vec<Pane> {
        wait_for("windows with processes", || {
            let panes = answered(&Screen, &self.machine())?;
            let count = |is_it: fn(&Pane) -> bool| panes.iter().filter(|pane| is_it(pane)).count();
            let is_whole = count(|pane| pane.pane.is_some()) == windows
                && count(|pane| pane.pid.is_some()) == windows;
            is_whole.then_some(panes)
        })
    }

    /// The windows that the processes of panes are in, by the name of the process.
    fn windows_of(&self, panes: Vec<Pane>, comm: &str) -> Vec<Option<String>> {
        let machine = self.machine();
        let panes = Panes::new(panes);
        let processes = machine.table().processes().unwrap().iter();
        let its = processes.filter(|one| one.comm == comm.as_bytes());
        its.map(|one| panes.of(one, machine.table()).unwrap().pane.clone())
            .collect()
    }
}

/// Screen 4 does not report which window a process is in, and their numbers may be swapped.
#[test]
fn a_process_is_in_a_window_of_screen_only_where_screen_reports_it() {
    let Some(screen) = RealScreen::start("work") else {
        return;
    };
    let alone = screen.windows_of(screen.panes(1), "cat");
    assert_eq!(alone, [Some("0".to_owned())]);
    screen.tell(&["number", "3"]);
    let alone = wait_for("the number", || {
        let panes = screen.panes(1);
        (panes[0].pane.as_deref() == Some("3")).then_some(panes)
    });
    assert_eq!(screen.windows_of(alone, "cat"), [Some("3".to_owned())]);
    screen.tell(&["number", "0"]);
    screen.tell(&["screen", "-t", "other", "sleep", "1000"]);
    screen.panes(2);
    screen.run(&[
        "-S",
        &format!("{}.", screen.pid),
        "-p",
        "0",
        "-X",
        "number",
        "1",
    ]);
    let swapped = wait_for("the numbers", || {
        let panes = screen.panes(2);
        (panes[0].window.as_deref() == Some("other")).then_some(panes)
    });
    let (known, unknown): (Vec<_>, Vec<_>) = swapped
        .iter()
        .cloned()
        .partition(|pane| pane.pane.is_some() && pane.pid.is_some());
    for pane in unknown.iter().filter(|pane| pane.pid.is_some()) {
        let session = format!("{}.work", screen.pid);
        assert_eq!(pane.session, Some(session), "{pane:?}");
        assert!(Screen.attach(pane).is_none() && Screen.paste(pane, "x").is_none());
    }
    // Screen 5 reports it.
    let [of_cat, of_sleep] = if known.is_empty() {
        [None, None]
    } else {
        [Some("1"), Some("0")]
    };
    let of = |comm| screen.windows_of(swapped.clone(), comm);
    assert_eq!(of("cat"), [of_cat.map(str::to_owned)]);
    assert_eq!(of("sleep"), [of_sleep.map(str::to_owned)]);
}

#[test]
fn windows_of_screen_are_listed() {
    let Some(screen) = RealScreen::start("work") else {
        return;
    };
    screen.tell(&["screen", "-t", "my api", "cat"]);
    screen.tell(&["sessionname", "renamed"]);
    let panes = screen.panes(2);
    let name = format!("{}.renamed", screen.pid);
    for (pane, window) in panes.iter().zip(["cat", "my api"]) {
        assert_eq!(pane.window.as_deref(), Some(window));
        assert_eq!(pane.session.as_deref(), Some(name.as_str()));
        assert_eq!(pane.server.as_ref().unwrap().pid, Some(screen.pid));
        assert_eq!(
            pane.server.as_ref().unwrap().socket,
            screen.sockets().join(&name)
        );
    }
}

#[test]
fn a_text_is_typed_into_the_very_window_of_screen() {
    let Some(screen) = RealScreen::start("work") else {
        return;
    };
    screen.tell(&["screen", "-t", "api", "cat"]);
    let panes = screen.panes(2);
    let with = With(Vec::new());
    with.type_it(Screen.paste(&panes[0], "a $b ^c \\d"));
    with.type_it(Screen.enter(&panes[0]));
    let expected = "a $b ^c \\d\na $b ^c \\d";
    wait_for("the text", || (screen.shown("0") == expected).then_some(()));
    assert_eq!(screen.shown("1"), "");
}

#[test]
fn going_to_a_window_of_screen_selects_it() {
    let Some(screen) = RealScreen::start("work") else {
        return;
    };
    screen.tell(&["screen", "-t", "api", "cat"]);
    screen.panes(2);
    // A person's terminal.
    let attach = format!(
        "SCREENDIR='{}' TERM=xterm screen -x {}. -p 0",
        screen.sockets().display(),
        screen.pid
    );
    let Some(outside) = Server::start(&attach) else {
        return;
    };
    let panes = wait_for("the person's client", || {
        let machine = machine_below(vec![screen.pid, outside.pid], With(Vec::new()), &[]);
        let panes = Panes::ask(&machine).found;
        let shown = {
            let cat = machine.table().processes().unwrap().iter();
            let mut cats = cat.filter(|one| one.comm == b"cat");
            panes.shown(cats.next()?, machine.table())?
        };
        // The pane around the screen is that of the client.
        let outer = shown.outer.as_ref()?;
        assert_eq!(outer.server.as_ref().unwrap().pid, Some(outside.pid));
        answered(&Screen, &machine)
    });
    With(Vec::new()).run_all(Screen.go(&panes[1], Some(&panes[0])));
    // What is typed in the client goes to the window that it shows.
    wait_for("the window", || {
        outside.run(&["send-keys", "-t", "%0", "x", "Enter"]);
        screen.shown("1").contains("x\nx").then_some(())
    });
    let argv = Screen.attach(&panes[1]).unwrap().argv;
    let session = format!("{}.work", screen.pid);
    assert_eq!(argv, ["screen", "-S", &session, "-x", "-p", "1"]);
}

/// A zellij session in a pane of a tmux; both end with the value.
struct RealZellij {
    tmux: Server,
    directory: PathBuf,
    program: PathBuf,
    server: Pid,
}

impl RealZellij {
    fn start() -> Option<Self> {
        let wanted = std::env::var_os("WHOSUP_ZELLIJ").unwrap_or_else(|| "zellij".into());
        let answer = Command::new(&wanted).arg("--version").output();
        if !answer.is_ok_and(|answer| answer.status.success()) {
            eprintln!("skipped: zellij is not installed, and WHOSUP_ZELLIJ does not name it");
            return None;
        }
        let tmux = Server::start("sleep 600")?;
        let directory = tmux.directory();
        let config = directory.join(".config/zellij");
        std::fs::create_dir_all(&config).unwrap();
        // Without a configuration it would ask questions.
        let quiet = "show_startup_tips false\nshow_release_notes false\n";
        std::fs::write(config.join("config.kdl"), quiet).unwrap();
        let mut its = Self {
            tmux,
            directory,
            program: wanted.into(),
            server: Pid::own(),
        };
        let variables = its.variables();
        let variables = variables.iter().map(|(name, value)| {
            let value = value.to_string_lossy();
            format!("{name}='{value}'")
        });
        let line = format!(
            "{} TERM=xterm-256color '{}' -s one",
            variables.collect::<Vec<_>>().join(" "),
            its.program.display()
        );
        its.tmux.run(&["respawn-pane", "-k", "-t", "%0", &line]);
        let socket = its.directory.join("z/contract_version_1/one");
        let argument = socket.as_os_str().to_owned();
        its.server = wait_for("a server of zellij that has started its first pane", || {
            let machine = Machine::here();
            let all = machine.table().processes().unwrap();
            let is_its = |argv: &[OsString]| argv.contains(&argument);
            let is_server = |process: &&Process| {
                let details = machine.table().details(process);
                let argv = details.argv.as_deref();
                process.comm == b"zellij" && process.tty.is_none() && argv.is_ok_and(is_its)
            };
            let servers: Vec<&Process> = all.iter().filter(is_server).collect();
            for server in &servers {
                // A look from its first moment on does not end it.
                Zellij.list(&machine_below(vec![server.pid], its.with(), &[]));
            }
            // It forks twice to become a daemon: what leads a Unix session is about to exit.
            let server = servers.into_iter().find(|server| {
                let has_child = all.iter().any(|child| child.ppid == Some(server.pid));
                server.unix_session != server.pid.get() && has_child
            });
            server.map(|process| process.pid)
        });
        Some(its)
    }

    /// The command needs to be found by its name.
    fn variables(&self) -> Vec<(&'static str, OsString)> {
        let own = std::env::var_os("PATH").unwrap_or_default();
        let mut path = self
            .program
            .parent()
            .unwrap_or(Path::new(""))
            .as_os_str()
            .to_owned();
        if !path.is_empty() {
            path.push(":");
        }
        path.push(own);
        vec![
            ("HOME", self.directory.clone().into()),
            ("ZELLIJ_SOCKET_DIR", self.directory.join("z").into()),
            ("PATH", path),
        ]
    }

    fn with(&self) -> With {
        With(self.variables())
    }

    fn machine(&self) -> Machine {
        machine_below(vec![self.server, self.tmux.pid], self.with(), &[])
    }

    fn action(&self, session: &str, words: &[&str]) -> String {
        let mut command = Command::new(&self.program);
        command
            .envs(self.variables())
            .args(["--session", session, "action"]);
        let output = command.args(words).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for RealZellij {
    fn drop(&mut self) {
        for session in ["one", "two"] {
            let mut command = Command::new(&self.program);
            command
                .envs(self.variables())
                .args(["kill-session", session]);
            command.output().ok();
        }
    }
}

#[test]
fn panes_of_zellij_are_listed_typed_into_and_gone_to() {
    let Some(zellij) = RealZellij::start() else {
        return;
    };
    wait_for("the first pane", || {
        let listed = Zellij.list(&zellij.machine());
        listed
            .found
            .iter()
            .any(|pane| pane.pid.is_some())
            .then_some(())
    });
    zellij.action("one", &["new-tab", "--name", "api", "--", "cat"]);
    let (machine, cat) = wait_for("the agent's pane", || {
        let machine = zellij.machine();
        let panes = Panes::ask(&machine).found;
        let mut all = machine.table().processes().unwrap().iter();
        let process = all.find(|process| process.comm == b"cat")?;
        let shown = panes.shown(process, machine.table())?;
        Some((machine, shown))
    });
    assert_eq!((cat.host, cat.session.as_deref()), ("zellij", Some("one")));
    assert_eq!(cat.window.as_deref(), Some("api"));
    assert_eq!(cat.outer.as_ref().unwrap().host, "tmux");
    let id = cat.pane.clone().unwrap();
    assert!(cat.place.starts_with("one/api pane "), "{}", cat.place);
    drop(machine);

    zellij.action("one", &["go-to-tab-name", "Tab #1"]);
    // zellij goes by the client that has sent a key last.
    zellij.tmux.run(&["send-keys", "-t", "%0", "x"]);
    let with = zellij.with();
    with.type_it(Zellij.paste(&cat, "hello"));
    with.type_it(Zellij.enter(&cat));
    wait_for("the text", || {
        let shown = zellij.action("one", &["dump-screen", "--pane-id", &id]);
        shown.contains("hello\nhello").then_some(())
    });
    with.run_all(Zellij.go(&cat, Some(&cat)));
    wait_for("the tab of the pane", || {
        let shown = zellij.tmux.run(&["capture-pane", "-p", "-t", "%0"]);
        shown.contains("hello").then_some(())
    });

    zellij.action("one", &["rename-session", "two"]);
    let renamed = wait_for("the new name", || {
        let listed = Zellij.list(&zellij.machine());
        let mut panes = listed.found.into_iter();
        panes.find(|pane| pane.pane == cat.pane)
    });
    assert_eq!(renamed.session.as_deref(), Some("two"));
    assert_eq!(renamed.pid, cat.pid);
}
