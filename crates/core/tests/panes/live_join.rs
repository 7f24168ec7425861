//! Which pane a real process lives in.

use std::process::Command;

use rustix::process::Signal;
use whosup_core::machine::Machine;
use whosup_core::sources::panes::Panes;
use whosup_process::{Process, RunState};

use super::server::{Server, machine, signal, wait_for};

/// The pane that a process lives in, if any.
#[track_caller]
fn pane_of(machine: &Machine, process: &Process) -> Option<String> {
    let panes = Panes::ask(machine);
    assert_eq!(panes.problems, []);
    let pane = panes.found.of(process, machine.table());
    pane.and_then(|pane| pane.pane.clone())
}

fn seen(machine: &Machine, process: &Process) -> Process {
    machine.table().seen(process.pid).unwrap().clone()
}

#[test]
fn a_process_lives_in_the_pane_with_its_terminal_active_or_not() {
    let Some(server) = Server::start("sleep 600") else {
        return;
    };
    let agent = server.waiter("agent-here");
    let shell = format!("{}; true", agent.display());
    server.run(&["respawn-pane", "-k", "-t", "%0", &shell]);
    server.run(&["split-window", "-t", "%0"]);
    let active = server.run(&["display-message", "-p", "-t", "%1", "#{pane_active}"]);
    assert_eq!(active, "1");
    let agent = server.wait_for_process("agent-here");
    assert_ne!(agent.pid, server.process_in("%0"));
    let machine = machine(&[&server]);
    assert_eq!(pane_of(&machine, &agent), Some("%0".to_owned()));
    let shell = machine.table().seen(server.process_in("%1")).unwrap();
    assert_eq!(pane_of(&machine, shell), Some("%1".to_owned()));
    let server_itself = machine.table().seen(server.pid).unwrap();
    assert_eq!(pane_of(&machine, server_itself), None);
}

#[test]
fn a_pane_is_the_shells_again_once_the_agent_has_exited() {
    let Some(server) = Server::start("sleep 600") else {
        return;
    };
    let agent = server.waiter("agent-quits");
    let shell = format!("{}; read line", agent.display());
    server.run(&["respawn-pane", "-k", "-t", "%0", &shell]);
    let agent = server.wait_for_process("agent-quits");
    signal(agent.pid, Signal::TERM);
    let machine = wait_for("its exit", || {
        let machine = machine(&[&server]);
        let process = machine.table().seen(agent.pid);
        process
            .is_none_or(|process| process.is_exited)
            .then_some(machine)
    });
    let shell = machine.table().seen(server.process_in("%0")).unwrap();
    assert_eq!(pane_of(&machine, shell), Some("%0".to_owned()));
}

#[test]
fn a_process_in_a_dead_pane_is_in_no_pane() {
    let Some(server) = Server::start("sleep 600") else {
        return;
    };
    server.run(&["set-option", "-g", "remain-on-exit", "on"]);
    let new = ["split-window", "-P", "-F", "#{pane_pid}", "sleep 601"];
    server.run(&new);
    let before = machine(&[&server]);
    let process = before
        .table()
        .seen(server.process_in("%1"))
        .unwrap()
        .clone();
    assert_eq!(pane_of(&before, &process), Some("%1".to_owned()));
    signal(process.pid, Signal::KILL);
    let is_dead = ["display-message", "-p", "-t", "%1", "#{pane_dead}"];
    wait_for("a dead pane", || {
        (server.run(&is_dead) == "1").then_some(())
    });
    assert_eq!(pane_of(&before, &process), None);
}

#[test]
fn a_stopped_process_keeps_its_pane() {
    let Some(server) = Server::start("sleep 600; read line") else {
        return;
    };
    let process = server.wait_for_process("sleep");
    signal(process.pid, Signal::STOP);
    let machine = wait_for("a stopped process", || {
        let machine = machine(&[&server]);
        let is_stopped = seen(&machine, &process).run_state == RunState::Stopped;
        is_stopped.then_some(machine)
    });
    let stopped = seen(&machine, &process);
    assert_eq!(pane_of(&machine, &stopped), Some("%0".to_owned()));
}

#[test]
fn a_process_that_survived_its_pane_is_in_no_pane() {
    let Some(server) = Server::start("sleep 600") else {
        return;
    };
    let survivor = server.waiter("survivor");
    let command = format!("trap '' HUP; exec {}", survivor.display());
    server.run(&["split-window", "-t", "%0", &command]);
    let survivor = server.wait_for_process("survivor");
    let machine_before = machine(&[&server]);
    assert_eq!(pane_of(&machine_before, &survivor), Some("%1".to_owned()));
    server.run(&["kill-pane", "-t", "%1"]);
    let machine = wait_for("a process without terminal", || {
        let machine = machine(&[&server]);
        seen(&machine, &survivor).tty.is_none().then_some(machine)
    });
    let survivor = seen(&machine, &survivor);
    let pane = pane_of(&machine, &survivor);
    signal(survivor.pid, Signal::KILL);
    assert_eq!(survivor.ppid, Some(server.pid));
    assert_eq!(pane, None);
}

#[test]
fn a_child_that_gave_up_its_terminal_lives_where_its_parent_lives() {
    let Some(server) = Server::start("sleep 600") else {
        return;
    };
    let tool = server.waiter("tool");
    let command = format!("setsid {} & wait", tool.display());
    server.run(&["respawn-pane", "-k", "-t", "%0", &command]);
    let tool = server.wait_for_process("tool");
    assert_eq!(tool.tty, None);
    let machine = machine(&[&server]);
    let pane = pane_of(&machine, &tool);
    signal(tool.pid, Signal::KILL);
    assert_eq!(pane, Some("%0".to_owned()));
}

#[test]
fn a_terminal_that_is_shown_in_a_pane_leads_to_that_pane() {
    if Command::new("script").arg("--version").output().is_err() {
        eprintln!("skipped: script is not installed");
        return;
    }
    let Some(server) = Server::start("sleep 600") else {
        return;
    };
    let agent = server.waiter("agent-shown");
    let command = format!("script -qec '{}' /dev/null", agent.display());
    server.run(&["respawn-pane", "-k", "-t", "%0", &command]);
    let agent = server.wait_for_process("agent-shown");
    let machine = machine(&[&server]);
    let in_pane = machine.table().seen(server.process_in("%0")).unwrap();
    assert!(agent.tty.is_some() && agent.tty != in_pane.tty);
    assert_eq!(pane_of(&machine, &agent), Some("%0".to_owned()));
}

#[test]
fn a_server_started_within_a_pane_keeps_its_own_panes() {
    let Some(outer) = Server::start("sleep 600") else {
        return;
    };
    let inner_socket = outer.directory().join("inner");
    let inner = outer.waiter("agent-inner");
    let command = format!(
        "tmux -S {socket} -f /dev/null new-session '{inner}'",
        socket = inner_socket.display(),
        inner = inner.display(),
    );
    outer.run(&[
        "respawn-pane",
        "-k",
        "-t",
        "%0",
        &format!("env -u TMUX {command}"),
    ]);
    let inner = wait_for("a server in a pane", || Server::adopt(&inner_socket));
    let agent = inner.wait_for_process("agent-inner");
    let machine = machine(&[&outer, &inner]);
    let panes = Panes::ask(&machine);
    assert_eq!(panes.problems, []);
    let pane = panes.found.of(&agent, machine.table()).unwrap();
    assert_eq!(pane.server.as_ref().unwrap().pid, Some(inner.pid));
    // The client is attached a moment later than the server answers.
    let outer_pane = wait_for("the pane around it", || {
        let machine = self::machine(&[&outer, &inner]);
        let shown = Panes::ask(&machine).found.shown(&agent, machine.table())?;
        shown.outer
    });
    assert_eq!(outer_pane.server.unwrap().pid, Some(outer.pid));
    assert_eq!(outer_pane.pane.as_deref(), Some("%0"));
    assert_eq!(outer_pane.outer, None);
}
