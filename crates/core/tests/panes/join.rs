//! Which pane a process lives in, on tables made up as data.

use std::path::PathBuf;
use std::sync::Arc;

use whosup_core::sources::panes::{Pane, PaneServer, Panes};
use whosup_process::{Pid, ProcessTable, Recorded, RecordedProcess, Tty};

/// The tmux server of these tests.
const SERVER: i32 = 900;
/// The shell in its pane `%3`, whose terminal is 136:2.
const SHELL: i32 = 1000;

fn process(pid: i32, ppid: i32, comm: &str) -> RecordedProcess {
    RecordedProcess::new(pid, 100, 1_790_000_000_000)
        .ppid(ppid)
        .comm(comm)
}

/// A process with a terminal, in the Unix session that `leader` leads.
fn with_tty(pid: i32, ppid: i32, comm: &str, minor: u32, leader: i32) -> RecordedProcess {
    let mut process = process(pid, ppid, comm).tty(136, minor);
    process.process.unix_session = leader;
    process
}

fn pane(id: &str, pid: Option<i32>, minor: Option<u32>) -> Pane {
    Pane {
        host: "tmux",
        server: Some(PaneServer {
            socket: PathBuf::from("/s"),
            pid: Pid::new(i64::from(SERVER)).ok(),
            stamp: None,
        }),
        session: Some("main".to_owned()),
        window: Some("api".to_owned()),
        pane: Some(id.to_owned()),
        place: "main:api.0".to_owned(),
        tty: minor.map(|minor| Tty { major: 136, minor }),
        pid: pid.map(|pid| Pid::new(i64::from(pid)).unwrap()),
        title: String::new(),
        is_dead: false,
        viewers: Vec::new(),
        outer: None,
    }
}

/// Looks for the pane of process 4711, the last of `processes`, in a world with
/// one tmux server, one pane `%3` and the shell in it.
#[track_caller]
fn check(processes: impl IntoIterator<Item = RecordedProcess>, expected: Option<&str>) {
    let panes = vec![pane("%3", Some(SHELL), Some(2))];
    check_in(panes, processes, expected);
}

#[track_caller]
fn check_in(
    panes: Vec<Pane>,
    processes: impl IntoIterator<Item = RecordedProcess>,
    expected: Option<&str>,
) {
    let world = Recorded::initial()
        .with(process(1, 0, "init"))
        .with(process(SERVER, 1, "tmux: server"))
        .with(with_tty(SHELL, SERVER, "bash", 2, SHELL));
    let world = processes.into_iter().fold(world, Recorded::with);
    let table = ProcessTable::look(Arc::new(world));
    let process = table.seen(Pid::new(4711).unwrap()).unwrap();
    let panes = Panes::new(panes);
    let found = panes
        .of(process, &table)
        .and_then(|pane| pane.pane.as_deref());
    assert_eq!(found, expected);
}

#[test]
fn a_process_with_the_terminal_of_a_pane_lives_there() {
    check([with_tty(4711, SHELL, "claude", 2, SHELL)], Some("%3"));
}

#[test]
fn a_process_whose_parent_has_exited_keeps_the_terminal_and_the_pane() {
    check([with_tty(4711, 1, "claude", 2, SHELL)], Some("%3"));
}

#[test]
fn the_process_that_a_pane_was_started_with_lives_there() {
    let pane = pane("%5", Some(4711), Some(5));
    check_in(
        vec![pane],
        [with_tty(4711, SERVER, "claude", 5, 4711)],
        Some("%5"),
    );
}

#[test]
fn a_terminal_of_that_number_in_a_container_is_another_terminal() {
    let shim = process(2000, 1, "containerd-shim");
    let init = with_tty(2001, 2000, "bash", 2, 2001);
    check([shim, init, with_tty(4711, 2001, "claude", 2, 2001)], None);
}

#[test]
fn a_process_that_lost_terminal_and_parent_is_in_no_pane() {
    check([process(4711, 1, "claude")], None);
}

#[test]
fn a_process_that_lost_its_terminal_below_the_server_is_in_no_pane() {
    check([process(4711, SERVER, "node")], None);
}

#[test]
fn a_server_in_the_foreground_of_a_pane_lends_that_pane_to_nobody() {
    let inner = with_tty(2000, SHELL, "tmux: server", 2, SHELL);
    check([inner, process(4711, 2000, "node")], None);
}

#[test]
fn a_child_without_terminal_lives_where_its_parent_lives() {
    let agent = with_tty(2000, SHELL, "claude", 2, SHELL);
    let tool = process(2001, 2000, "bash");
    check([agent, tool, process(4711, 2001, "codex")], Some("%3"));
}

#[test]
fn a_later_look_by_another_clock_finds_the_same_parents() {
    let shell = with_tty(SHELL, SERVER, "bash", 2, SHELL);
    let world = Recorded::initial().with(shell);
    let table = ProcessTable::look(Arc::new(world.with(process(4711, SHELL, "codex"))));
    let mut later = process(4711, SHELL, "codex").process;
    later.began_at_ms = Ok(1_789_999_999_999);
    let panes = Panes::new(vec![pane("%3", Some(SHELL), Some(2))]);
    assert!(panes.of(&later, &table).is_some());
}

#[test]
fn a_child_of_a_process_without_pane_has_none() {
    let agent = with_tty(2000, 1, "claude", 9, 2000);
    check([agent, process(4711, 2000, "bash")], None);
}

#[test]
fn another_terminal_leads_to_the_pane_that_shows_it() {
    for relay in ["sudo", "su", "runuser", "script"] {
        let relay = with_tty(2000, SHELL, relay, 2, SHELL);
        let monitor = with_tty(2001, 2000, "sudo", 9, 2001);
        check(
            [relay, monitor, with_tty(4711, 2001, "claude", 9, 2001)],
            Some("%3"),
        );
    }
}

#[test]
fn a_window_started_from_a_pane_is_not_in_that_pane() {
    let window = with_tty(2000, SHELL, "kitty", 2, SHELL);
    let shell = with_tty(2001, 2000, "bash", 9, 2001);
    let agent = with_tty(4711, 2001, "claude", 9, 2001);
    check([window, shell.clone(), agent], None);
    let without_terminal = process(2000, SHELL, "kitty");
    let tool = process(4711, 2001, "codex");
    check([without_terminal, shell, tool], None);
}

#[test]
fn a_dead_pane_has_no_process_even_if_its_numbers_are_reused() {
    let mut dead = pane("%5", Some(4711), Some(5));
    dead.is_dead = true;
    check_in(vec![dead], [with_tty(4711, 1, "claude", 5, 4711)], None);
}

#[test]
fn a_host_that_knows_terminals_alone_is_joined_by_them() {
    let pane = pane("%7", None, Some(9));
    let agent = with_tty(4711, 1, "claude", 9, 2000);
    check_in(vec![pane], [agent], Some("%7"));
}

#[test]
fn without_panes_no_process_has_one() {
    check_in(
        Vec::new(),
        [with_tty(4711, SHELL, "claude", 2, SHELL)],
        None,
    );
}
