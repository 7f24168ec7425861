//! Real processes behind a loader, a link and a wrapper's name.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use super::*;
use crate::sources::agents::kit::program_tests::copy_program;

/// A process that ends with this test. It reports when it runs the program.
struct Running(Child);

impl Running {
    /// Starts `command`, which must be a shell that is given these arguments.
    fn start(command: &mut Command) -> Option<Self> {
        command.args(["-c", "echo ready; read line"]);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut running = Self(child.ok()?);
        let output = running.0.stdout.take()?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).ok()?;
        (line == "ready\n").then_some(running)
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.0.id()).unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The agent that is recognized in a process of this test.
fn recognized_as(running: &Running) -> (Option<String>, Option<String>) {
    let machine = Machine::here();
    let mut problems = Vec::new();
    let found = find_agent_processes(&machine, AGENTS, &mut problems);
    let pid = running.pid();
    let of_agent = found.recognized.iter();
    let mut of_agent = of_agent.filter(|one| one.process.pid.get() == pid);
    let possible = found.possible.iter();
    let mut possible = possible.filter(|one| one.process.pid.get() == pid);
    let agents = |one: &PossibleProcess| {
        let agents: Vec<&str> = one.agents.iter().map(AgentId::as_str).collect();
        agents.join(" ")
    };
    (
        of_agent.next().map(|one| one.agent.as_str().to_owned()),
        possible.next().map(agents),
    )
}

#[track_caller]
fn check_recognized(running: &Running, right: &str) {
    assert_eq!(recognized_as(running), (Some(right.to_owned()), None));
}

/// The loader of this machine's programs, if it can be found.
fn loader() -> Option<&'static str> {
    let known = [
        "/lib64/ld-linux-x86-64.so.2",
        "/lib/ld-linux-aarch64.so.1",
        "/lib/ld-musl-x86_64.so.1",
        "/lib/ld-musl-aarch64.so.1",
    ];
    known.into_iter().find(|path| Path::new(path).exists())
}

#[test]
fn a_program_below_the_loader_is_the_agent_that_it_is() {
    let Some(loader) = loader() else {
        println!("skipped: no loader is known here");
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    copy_program("/bin/sh", directory.path().join("claude"));
    std::os::unix::fs::symlink("claude", directory.path().join("cc")).unwrap();
    for program in ["./claude", "./cc"] {
        let mut command = Command::new(loader);
        command.arg(program).current_dir(directory.path());
        let Some(running) = Running::start(&mut command) else {
            println!("skipped: the loader can't run a program");
            return;
        };
        check_recognized(&running, "claude-code");
    }
}

#[test]
fn a_program_that_a_link_of_another_name_leads_to_is_the_agent_that_it_is() {
    let directory = tempfile::tempdir().unwrap();
    for (name, link, agent) in [("claude", "cc", "claude-code"), ("codex", "co", "codex")] {
        copy_program("/bin/sh", directory.path().join(name));
        let link = directory.path().join(link);
        std::os::unix::fs::symlink(name, &link).unwrap();
        let running = Running::start(&mut Command::new(&link)).unwrap();
        check_recognized(&running, agent);
    }
}

#[test]
fn a_program_with_a_wrappers_name_is_the_agent_that_it_is() {
    use std::os::unix::process::CommandExt as _;
    let directory = tempfile::tempdir().unwrap();
    for (name, argument, agent) in [
        (".claude-wrapped", "claude", "claude-code"),
        (".codex-wrapped", "/usr/bin/codex", "codex"),
        ("codex-raw", "codex", "codex"),
        (".opencode-wrapped", "opencode", "opencode"),
    ] {
        let program = directory.path().join(name);
        copy_program("/bin/sh", &program);
        let running = Running::start(Command::new(&program).arg0(argument)).unwrap();
        check_recognized(&running, agent);
    }
}

#[test]
fn an_agents_executable_under_another_name_may_be_that_agent() {
    use std::os::unix::process::CommandExt as _;
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("claude");
    copy_program("/bin/sh", &program);
    let running = Running::start(Command::new(&program).arg0("other-name")).unwrap();
    assert_eq!(
        recognized_as(&running),
        (None, Some("claude-code".to_owned()))
    );
    let other = directory.path().join("another");
    copy_program("/bin/sh", &other);
    let running = Running::start(&mut Command::new(&other)).unwrap();
    assert_eq!(recognized_as(&running), (None, None));
}
