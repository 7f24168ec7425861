//! A place for sidecars, and driver processes that announce sessions there.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use whosup_sidecar::{Agent, Owner, Place, Session, Sidecar, parse_sidecar};

/// Set for a copy of this test program that is a driver.
pub(crate) const DRIVER: &str = "WHOSUP_TEST_DRIVER";
/// How long anything is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A temporary state directory.
pub(crate) struct World {
    root: TempDir,
}

impl World {
    /// On the disk of the temporary directory.
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        Self { root }
    }

    /// In memory, if that can be had: for tests that write thousands of files.
    pub(crate) fn in_memory() -> Self {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() {
            return Self {
                root: tempfile::tempdir_in(memory).unwrap(),
            };
        }
        eprintln!("no /dev/shm here: this test writes to the disk and takes its time");
        Self::new()
    }

    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    /// Where the drivers' sidecars go.
    pub(crate) fn place(&self) -> PathBuf {
        self.root().join("agent-sessions/driver")
    }

    pub(crate) fn session(&self, id: &str) -> Session {
        let session = Session::new(id, "/home/dev/app").unwrap();
        session.place(Place::Directory(self.place())).unwrap()
    }

    pub(crate) fn establish(&self, id: &str) -> Owner {
        Owner::establish(agent(), self.session(id)).unwrap()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.place().join(name)
    }

    /// The names of all files there, hidden ones too.
    pub(crate) fn names(&self) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.place()) else {
            return Vec::new();
        };
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// Every sidecar there by its name; each must be whole.
    pub(crate) fn sidecars(&self) -> BTreeMap<String, Sidecar> {
        let names = self.names().into_iter();
        let visible = names.filter(|name| !name.starts_with('.'));
        visible
            .filter_map(|name| {
                // It may have been left since.
                let bytes = std::fs::read(self.path(&name)).ok()?;
                let sidecar = parse_sidecar(&bytes)
                    .unwrap_or_else(|error| panic!("`{name}` is no sidecar: {error}"));
                Some((name, sidecar))
            })
            .collect()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::create_dir_all(self.place()).unwrap();
        std::fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn driver(&self) -> Driver {
        Driver::start(Command::new(std::env::current_exe().unwrap()), self)
    }

    /// A driver below a program that changes what it may or can do.
    pub(crate) fn driver_below(&self, wrapper: &[&str]) -> Driver {
        let mut command = Command::new(wrapper[0]);
        command.args(&wrapper[1..]);
        command.arg(std::env::current_exe().unwrap());
        Driver::start(command, self)
    }
}

pub(crate) fn agent() -> Agent {
    Agent::new("test-agent").unwrap().version("1.2.0")
}

/// A process that announces sessions; it ends with this handle.
pub(crate) struct Driver {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Driver {
    fn start(mut command: Command, world: &World) -> Self {
        let mut child = command
            .args(["--exact", "a_driver_obeys_each_command", "--nocapture"])
            .env(DRIVER, "1")
            .env("XDG_STATE_HOME", world.root())
            .current_dir(world.root())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    /// Writes a line, and does not wait for what comes of it.
    pub(crate) fn send_line(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        // A driver that has been killed reads nothing.
        writeln!(input, "{line}").and_then(|()| input.flush()).ok();
    }

    /// Reads the next answer; empty if there will be none.
    pub(crate) fn answer(&mut self) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            if self.output.read_line(&mut line).unwrap_or(0) == 0 {
                return String::new();
            }
            // The test harness prints something before it runs the driver.
            let answer = line.trim_end();
            if answer == "ok" || answer.starts_with("error ") || answer == "unsupported" {
                return answer.to_owned();
            }
        }
    }

    pub(crate) fn ask(&mut self, line: &str) -> String {
        self.send_line(line);
        self.answer()
    }

    #[track_caller]
    pub(crate) fn must(&mut self, line: &str) {
        assert_eq!(self.ask(line), "ok", "{line}");
    }

    /// Kills it with SIGKILL, and reaps it.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Lets it end by itself.
    pub(crate) fn end(&mut self) {
        self.send_line("exit");
        drop(self.input.take());
        let began = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(began.elapsed() < PATIENCE, "the driver does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
