//! Finding agents in a recorded process table.

use std::sync::Arc;

use whosup_process::{ProcessTable, Recorded, RecordedProcess};

use super::*;
use crate::machine::Environment;
use crate::machine::command::NoCommands;
use crate::machine::mounts::Mounts;
use crate::sources::agents::vibe::Vibe;

mod others;
#[cfg(target_os = "linux")]
mod real;

const CLAUDE: &str = "/opt/claude/bin/claude";

fn machine(directory: &Path, processes: Vec<RecordedProcess>) -> Machine {
    let processes = processes.into_iter();
    let recorded = processes.fold(Recorded::initial(), Recorded::with);
    Machine::new(
        Environment::new(Some(directory.to_owned()), None, []),
        0,
        ProcessTable::look(Arc::new(recorded)),
        Mounts::parse(b"27 1 254:0 / / rw - ext4 /dev/vda rw\n"),
        Arc::new(NoCommands),
    )
}

fn find(directory: &Path, processes: Vec<RecordedProcess>) -> AgentProcesses {
    let mut problems = Vec::new();
    let machine = machine(directory, processes);
    let found = find_agent_processes(&machine, AGENTS, &mut problems);
    assert_eq!(problems, []);
    found
}

fn process(pid: i32, comm: &str, exe: &str, argv: &[&str]) -> RecordedProcess {
    RecordedProcess::new(pid, 1, 0)
        .comm(comm)
        .exe(exe)
        .argv(argv)
}

/// Each process, by PID, with the agent it was recognized as.
fn recognized(found: &AgentProcesses) -> Vec<(i32, &str)> {
    let processes = found.recognized.iter();
    processes
        .map(|one| (one.process.pid.get(), one.agent.as_str()))
        .collect()
}

/// Each process, by PID, with the agents it may be.
fn possible(found: &AgentProcesses) -> Vec<(i32, Vec<&str>)> {
    let processes = found.possible.iter();
    processes
        .map(|one| {
            let agents = one.agents.iter().map(AgentId::as_str).collect();
            (one.process.pid.get(), agents)
        })
        .collect()
}

#[test]
fn agents_are_found_behind_loaders_emulators_wrappers_and_links() {
    let nowhere = Path::new("/nowhere");
    let found = find(
        nowhere,
        vec![
            process(10, "cc", CLAUDE, &["cc"]),
            process(
                11,
                "ld-linux-x86-64",
                "/lib/ld-linux-x86-64.so.2",
                &["ld.so", CLAUDE],
            ),
            process(
                12,
                "claude",
                "/usr/bin/qemu-x86_64",
                &["qemu-x86_64", CLAUDE, "claude"],
            ),
            process(
                13,
                ".codex-wrapped",
                "/nix/x/bin/.codex-wrapped",
                &["codex"],
            ),
            process(
                14,
                "codex-raw",
                "/nix/x/bin/codex-raw",
                &["codex", "resume"],
            ),
            process(
                15,
                ".opencode-wrapp",
                "/nix/x/bin/.opencode-wrapped",
                &["opencode"],
            ),
            process(
                16,
                "2.1.332",
                "/home/dev/.claude/remote/ccd-cli/2.1.332",
                &["/home/dev/.claude/remote/ccd-cli/2.1.332"],
            ),
            // The program has given itself a name.
            process(17, "worker", "/usr/bin/node", &["node", "/usr/bin/qwen"]),
            process(18, "cc", "/usr/bin/gcc-14", &["cc", "-c", "x.c"]),
            process(19, "ld-musl-x86_64.", "/usr/lib/libc.so", &["ld", CLAUDE]),
            process(20, "claude", "/tmp/prooted-4711-Ab12Cd", &["claude"]),
            process(21, "node", "/usr/bin/node-22", &["node", "/usr/bin/qwen"]),
        ],
    );
    let right = [
        (10, "claude-code"),
        (11, "claude-code"),
        (12, "claude-code"),
        (13, "codex"),
        (14, "codex"),
        (15, "opencode"),
        (16, "claude-code"),
        (17, "qwen-code"),
        (19, "claude-code"),
        (20, "claude-code"),
        (21, "qwen-code"),
    ];
    assert_eq!(recognized(&found), right);
    assert_eq!(possible(&found), []);
    let loaded = &found.recognized[1];
    assert_eq!(loaded.program().exe(), Some(Path::new(CLAUDE)));
    assert_eq!(loaded.program().argv(), [CLAUDE]);
}

#[test]
fn who_may_be_an_agent_is_named_unless_it_is_known_to_be_a_tool_or_another() {
    let nowhere = Path::new("/nowhere");
    let found = find(
        nowhere,
        vec![
            process(10, "claude", CLAUDE, &["claude"]),
            // The tool of an agent, and one whose parent is no agent.
            process(11, "claude", CLAUDE, &["rg", "needle"]).ppid(10),
            process(12, "claude", CLAUDE, &["other-name"]),
            process(13, "ld.so", "/usr/lib/ld.so", &["ld.so"]),
            process(14, "ld.so", "/usr/lib/ld.so", &["ld.so"]).ppid(10),
            process(
                15,
                "python3",
                "/usr/bin/python3",
                &["python3", "/w/my_vibe.py"],
            ),
            process(16, "node", "/usr/bin/node", &["node", "server.js"]),
            process(17, "bash", "/usr/bin/bash", &["bash"]),
        ],
    );
    assert_eq!(recognized(&found), [(10, "claude-code")]);
    let right = [
        (12, vec!["claude-code"]),
        (13, vec![]),
        (14, vec![]),
        (15, vec!["vibe"]),
    ];
    assert_eq!(possible(&found), right);
    let [numbered, unnumbered, ..] = found.possible.as_slice() else {
        panic!("{found:?}");
    };
    let codex = AgentId::parse("codex").unwrap();
    assert!(!numbered.may_be(&codex));
    assert!(unnumbered.may_be(&codex));
}

#[test]
fn who_has_started_an_agent_is_not_one_itself() {
    let npx = |pid, package: &str| {
        let title = format!("npm exec {package}");
        process(pid, "npm exec", "/usr/bin/node", &[&title]).title(&title)
    };
    let gemini = process(12, "node", "/usr/bin/node", &["node", "/n/bin/gemini"]);
    let processes = vec![
        npx(10, "@google/gemini-cli"),
        process(11, "sh", "/usr/bin/dash", &["sh", "-c", "gemini"]).ppid(10),
        gemini.ppid(11),
        // It has started nothing yet, or an agent of another kind.
        npx(13, "@google/gemini-cli"),
        npx(14, "@qwen-code/qwen-code"),
        process(15, "claude", CLAUDE, &["claude"]).ppid(14),
    ];
    let found = find(Path::new("/nowhere"), processes);
    assert_eq!(recognized(&found), [(12, "gemini"), (15, "claude-code")]);
    let right = [(13, vec!["gemini"]), (14, vec!["qwen-code"])];
    assert_eq!(possible(&found), right);
}

/// A process of another agent causes no doubt about the agent that is asked for. The homes
/// of a process decide what it may serve: a process that exited before they were read serves
/// nothing, and belongs to no home.
#[test]
fn a_process_that_went_away_while_it_was_looked_at_is_not_found() {
    let with_environment = |pid, environment| {
        let mut made = process(pid, "claude", CLAUDE, &["claude"]);
        made.environment = Err(environment);
        made
    };
    let processes = vec![
        with_environment(20, Absent::Vanished),
        with_environment(21, Absent::Exited),
        with_environment(22, Absent::PermissionDenied),
    ];
    let found = find(Path::new("/nowhere"), processes);
    assert_eq!(recognized(&found), [(22, "claude-code")]);
}

#[test]
fn what_another_adapter_recognizes_is_not_possible() {
    let machine = machine(
        Path::new("/nowhere"),
        vec![process(10, "cc", CLAUDE, &["cc"])],
    );
    let found = find_agent_processes(&machine, &[&Vibe], &mut Vec::new());
    assert_eq!(recognized(&found), []);
    assert_eq!(possible(&found), []);
}

#[test]
fn the_script_behind_a_link_of_another_name_is_looked_at() {
    let directory = tempfile::tempdir().unwrap();
    let real = directory.path().canonicalize().unwrap();
    let package = real.join("node_modules/@qwen-code/qwen-code");
    std::fs::create_dir_all(&package).unwrap();
    std::fs::write(package.join("cli.js"), "").unwrap();
    std::os::unix::fs::symlink(package.join("cli.js"), real.join("q")).unwrap();
    let link = real.join("q");
    let link = link.to_str().unwrap();
    let of = |argument: &str, cwd: &Path| {
        let made = process(10, "node", "/usr/bin/node", &["node", argument]).cwd(cwd);
        find(&real, vec![made])
    };
    assert_eq!(recognized(&of(link, Path::new("/"))), [(10, "qwen-code")]);
    assert_eq!(recognized(&of("q", &real)), [(10, "qwen-code")]);
    assert_eq!(recognized(&of("q", Path::new("/"))), []);
    // In a container that path leads elsewhere.
    let inside = process(10, "node", "/usr/bin/node", &["node", link]).pid_namespace(4_026_532_000);
    assert_eq!(recognized(&find(&real, vec![inside])), []);
}

#[test]
fn a_home_is_known_with_the_user_who_owns_it() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join(".vibe");
    std::fs::create_dir(&root).unwrap();
    let us = rustix::process::geteuid();
    let owner = if us.is_root() {
        std::os::unix::fs::chown(&root, Some(12_345), None).unwrap();
        12_345
    } else {
        eprintln!("only a home of our own is looked at: only root can give one away");
        us.as_raw()
    };
    let machine = machine(directory.path(), Vec::new());
    let homes = homes(&machine, &Vibe, &[], &mut [], &mut Vec::new());
    assert_eq!(homes.len(), 1);
    assert_eq!(homes[0].owner_uid, Some(owner));
}

#[cfg(unix)]
#[test]
fn a_home_that_is_not_there_yet_is_one_by_two_names() {
    let directory = tempfile::tempdir().unwrap();
    let (real, link) = (directory.path().join("real"), directory.path().join("link"));
    std::fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let by_link =
        process(7, "claude", CLAUDE, &["claude"]).env(&[("HOME", link.to_str().unwrap())]);
    let machine = machine(&real, vec![by_link]);
    let mut problems = Vec::new();
    let found = find_agent_processes(&machine, AGENTS, &mut problems);
    let mut processes = found.recognized;
    assert_eq!(processes[0].homes, [link.join(".claude")]);
    let claude = agents::adapter(&processes[0].agent).unwrap();
    let homes = homes(&machine, claude, &[], &mut processes, &mut problems);
    let roots: Vec<&Path> = homes.iter().map(|home| &*home.root).collect();
    assert_eq!(roots, [real.join(".claude")]);
    assert_eq!(processes[0].homes, [real.join(".claude")]);
    assert_eq!(problems, []);
}
