//! What a posing process does: what the harness tells it, one line at a time.
//!
//! It is this program under an agent's name. Its standard input is one end of a
//! socket, the harness has the other end: neither arguments nor variables show
//! that it poses, so it can have those that the agent has.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};

/// How long the text of one order may be, in bytes.
const ORDER_BYTES_MAX: u64 = 1 << 20;

/// What it holds.
#[derive(Default)]
struct Held {
    files: HashMap<String, File>,
    children: Vec<Child>,
}

/// Poses until the harness goes or says that it is over.
pub(crate) fn pose() -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    let stdin: OwnedFd = io::stdin().as_fd().try_clone_to_owned()?;
    let mut answers = UnixStream::from(stdin);
    let mut orders = BufReader::new(answers.try_clone()?);
    let mut held = Held::default();
    loop {
        let mut line = String::new();
        let read = (&mut orders).take(ORDER_BYTES_MAX).read_line(&mut line)?;
        if read == 0 {
            return Ok(());
        }
        let order: Value = serde_json::from_str(&line)?;
        let answer = match held.obey(&order) {
            Ok(answer) => answer,
            Err(error) => json!({ "error": error.to_string() }),
        };
        answers.write_all(format!("{answer}\n").as_bytes())?;
    }
}

impl Held {
    fn obey(&mut self, order: &Value) -> io::Result<Value> {
        let text = |key: &str| order[key].as_str().unwrap_or_default().to_owned();
        match order["do"].as_str().unwrap_or_default() {
            "settle" => settle(&text("comm"), order["tty"].as_str())?,
            "lock" => self.lock(&text("path"))?,
            "open" => {
                let file = open(&text("path"))?;
                self.files.insert(text("path"), file);
            }
            "close" => {
                self.files.remove(&text("path"));
            }
            "spawn" => return self.spawn(order),
            "hook" => return hook(&text("command"), &text("payload"), &text("home")),
            "exec" => return Err(Command::new(text("path")).arg("600").exec()),
            "reap" => {
                for mut child in self.children.drain(..) {
                    child.wait()?;
                }
            }
            "pid" => return Ok(json!({ "pid": std::process::id() })),
            other => return Err(io::Error::other(format!("unknown order `{other}`"))),
        }
        Ok(json!({}))
    }

    fn lock(&mut self, path: &str) -> io::Result<()> {
        let file = open(path)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        self.files.insert(path.to_owned(), file);
        Ok(())
    }

    /// Starts another posing process as its child, which talks to the harness
    /// by a connection of its own.
    fn spawn(&mut self, order: &Value) -> io::Result<Value> {
        let connection = UnixStream::connect(order["socket"].as_str().unwrap_or_default())?;
        let mut command = command(order);
        let child = command
            .stdin(Stdio::from(OwnedFd::from(connection)))
            .spawn()?;
        let pid = child.id();
        self.children.push(child);
        Ok(json!({ "pid": pid }))
    }
}

/// The command that starts a posing process.
pub(crate) fn command(order: &Value) -> Command {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut command = Command::new(text(&order["program"]));
    let mut argv = order["argv"].as_array().into_iter().flatten().map(text);
    if let Some(started_as) = argv.next() {
        command.arg0(started_as);
    }
    command.args(argv).env_clear();
    for (name, value) in order["env"].as_object().into_iter().flatten() {
        command.env(name, text(value));
    }
    command
        .current_dir(text(&order["cwd"]))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

fn open(path: &str) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .open(path)
}

/// Takes the name, and the terminal if there is one to take. What is typed
/// there is read, as an agent does.
fn settle(comm: &str, terminal: Option<&str>) -> io::Result<()> {
    if !comm.is_empty() {
        let name = std::ffi::CString::new(comm).map_err(io::Error::other)?;
        rustix::thread::set_name(&name)?;
    }
    let Some(terminal) = terminal else {
        return Ok(());
    };
    // Fails for who leads a process group already, which is no harm.
    rustix::process::setsid().ok();
    let mut terminal = OpenOptions::new().read(true).write(true).open(terminal)?;
    std::thread::spawn(move || {
        let mut typed = [0; 256];
        while terminal.read(&mut typed).is_ok_and(|count| count > 0) {}
    });
    Ok(())
}

/// Runs a hook as agents do, through a shell, and waits for it.
fn hook(command: &str, payload: &str, home: &str) -> io::Result<Value> {
    let mut shell = Command::new("/bin/sh")
        .args(["-c", command])
        .env_clear()
        .env("HOME", home)
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    if let Some(mut stdin) = shell.stdin.take() {
        // A hook that reads nothing is no failure of the agent's.
        stdin.write_all(payload.as_bytes()).ok();
    }
    Ok(json!({ "status": shell.wait()?.code() }))
}
