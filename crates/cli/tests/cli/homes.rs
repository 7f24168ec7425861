//! Real processes, each the only process with the variable that moves the home of its agent:
//! the scanning program does not have it. Each agent has a file.

mod cline;
mod codex;
mod copilot;
mod crush;
mod droid;
mod gemini;
mod kimi_cli;
mod kimi_code;
mod opencode;
mod pi;
mod qwen_code;
mod vibe;

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command as StdCommand, Stdio};

use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};

use super::world::{Posing, World, copy_program, said};

/// The target of a test's variable, below home.
const ELSEWHERE: &str = "elsewhere";

/// A world with a directory that only one process knows.
struct Moved {
    world: World,
    /// The directory.
    root: PathBuf,
}

/// A session that a process serves in the directory, and what is expected of it.
struct Served<'a> {
    agent: &'a str,
    session: &'a str,
    posing: Posing,
    /// Its home, if it is not the default.
    home: Option<&'a Path>,
    /// The variable of the process.
    variable: (&'a str, &'a Path),
    /// The arguments that resume the session.
    argv: &'a [&'a str],
    /// The variable for them.
    env: (&'a str, &'a Path),
}

impl Moved {
    fn new() -> Self {
        let world = World::new();
        let root = world.home().join(ELSEWHERE);
        std::fs::create_dir_all(&root).unwrap();
        Self { world, root }
    }

    fn write(&self, below: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        self.world.write(&format!("{ELSEWHERE}/{below}"), bytes)
    }

    fn work_dir(&self) -> String {
        self.world.work_dir().to_str().unwrap().to_owned()
    }

    /// Its directory with all but letters and digits replaced by hyphens.
    fn work_dir_in_hyphens(&self) -> String {
        let encode = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        self.work_dir().chars().map(encode).collect()
    }

    /// A lock for the process that is about to start.
    fn lock(&self, below: &str) -> Stdio {
        let path = self.write(below, "");
        let lock = File::options().append(true).open(path).unwrap();
        flock(&lock, FlockOperation::LockExclusive).unwrap();
        lock.into()
    }

    /// Starts a shell called `program` on a script: it waits for the end of the test, whatever its
    /// arguments are.
    fn pose_on_script(
        &self,
        program: &str,
        script: &str,
        arguments: &[&str],
        change: impl FnOnce(&mut StdCommand),
    ) -> Posing {
        let script = self.world.root().join("opt").join(script);
        std::fs::create_dir_all(script.parent().unwrap()).unwrap();
        std::fs::write(&script, "read line\n").unwrap();
        let path = self.world.root().join("opt").join(program);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        copy_program("/bin/sh", &path);
        self.world.pose(program, |command| {
            command.arg(&script).args(arguments);
            change(command);
        })
    }

    /// Starts a shell called `program` that reads commands; `-s` makes it ignore all other
    /// arguments.
    fn pose_as_shell(
        &self,
        program: &str,
        session: &str,
        change: impl FnOnce(&mut StdCommand),
    ) -> Posing {
        let path = self.world.root().join("opt").join(program);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        copy_program("/bin/sh", &path);
        self.world.pose(program, |command| {
            command.args(["-s", session]);
            change(command);
        })
    }

    /// Checks what is shown of a session: without the variable while its process runs, and
    /// with the variable after its end.
    #[track_caller]
    fn check(&self, served: Served<'_>) {
        self.check_live(&served);
        self.check_resume(served);
    }

    /// Checks that this is the only live session of its directory, in its home.
    #[track_caller]
    fn check_live(&self, served: &Served<'_>) {
        let answer = self.world.run(["list", "--json", "--cwd", "."]).json();
        let rows = answer["sessions"].as_array().unwrap();
        let live: Vec<&Value> = rows
            .iter()
            .filter(|row| row["liveness"] == "live")
            .collect();
        let [row] = live.as_slice() else {
            panic!("{answer:#}");
        };
        assert_eq!(row["agent"], served.agent, "{row:#}");
        assert_eq!(row["session_id"], served.session, "{row:#}");
        assert_eq!(row["owner"]["pid"], served.posing.pid(), "{row:#}");
        assert_eq!(row["work_dir"], self.work_dir(), "{row:#}");
        assert_eq!(row["home"], json!(served.home), "{row:#}");
        // Processes of other tests lead to their worlds.
        let root = self.world.root().to_str().unwrap();
        let is_here = |problem: &Value| {
            problem["path"]
                .as_str()
                .is_some_and(|path| path.starts_with(root))
        };
        let problems = answer["problems"].as_array().unwrap();
        assert!(!problems.iter().any(is_here), "{answer:#}");
    }

    /// Ends the process, and checks that with the variable set, the command is shown that
    /// resumes the session in its directory.
    #[track_caller]
    fn check_resume(&self, mut served: Served<'_>) {
        served.posing.kill();
        served.posing.reap();
        let mut command = self.world.whosup();
        let (variable, value) = served.variable;
        command.env(variable, value);
        let answer = said(command.args(["list", "--all", "--json", "--cwd", "."])).json();
        let rows = answer["sessions"].as_array().unwrap();
        let row = rows.iter().find(|row| row["session_id"] == served.session);
        let row = row.unwrap_or_else(|| panic!("{answer:#}"));
        assert_eq!(row["liveness"], "exited", "{row:#}");
        let (variable, value) = served.env;
        let env = json!({ variable: value });
        let resume =
            json!({ "argv": served.argv, "cwd": self.work_dir(), "env": env, "trusted": true });
        assert_eq!(row["resume"], resume, "{row:#}");
    }
}

/// The output of a program for a text on standard input, up to the first space.
fn digest(program: &str, text: &str) -> String {
    let mut child = StdCommand::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(text.as_bytes()).unwrap();
    drop(input);
    let output = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    output.split_whitespace().next().unwrap().to_owned()
}

fn time(ms: u64) -> String {
    let at = jiff::Timestamp::from_millisecond(i64::try_from(ms).unwrap()).unwrap();
    format!("{at:.3}")
}
