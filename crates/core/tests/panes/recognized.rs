//! Terminals that list no panes, by the processes above an agent's.

use std::sync::Arc;

use whosup_core::sources::panes::Panes;
use whosup_process::{Pid, ProcessTable, Recorded, RecordedProcess, Tty};

fn process(pid: i32, ppid: i32, comm: &str) -> RecordedProcess {
    RecordedProcess::new(pid, 100, 1_790_000_000_000)
        .ppid(ppid)
        .comm(comm)
}

/// Looks for the terminal of process 4711 with the terminal 136:2, the shell of which has
/// the PID 1000.
#[track_caller]
fn check(above: impl IntoIterator<Item = RecordedProcess>, expected: Option<&str>) {
    let world = Recorded::initial()
        .with(process(1, 0, "init"))
        .with(process(1000, 900, "bash").tty(136, 2))
        .with(process(4711, 1000, "claude").tty(136, 2));
    let world = above.into_iter().fold(world, Recorded::with);
    let table = ProcessTable::look(Arc::new(world));
    let process = table.seen(Pid::new(4711).unwrap()).unwrap();
    let shown = Panes::default().shown(process, &table);
    let host = shown.as_ref().map(|pane| pane.host);
    assert_eq!(host, expected);
    if let Some(pane) = shown {
        assert_eq!((pane.pane, pane.server), (None, None));
        assert_eq!(
            pane.tty,
            Some(Tty {
                major: 136,
                minor: 2
            })
        );
    }
}

#[test]
fn a_terminal_is_recognized_by_its_process() {
    for (comm, host) in [
        ("gnome-terminal-", "gnome-terminal"),
        ("konsole", "konsole"),
        ("alacritty", "alacritty"),
        ("iTermServer-3.5", "iterm2"),
        ("ghostty", "ghostty"),
        ("xterm", "xterm"),
        ("code", "vscode"),
        ("cursor", "cursor"),
        ("kitty", "kitty"),
        ("wezterm-gui", "wezterm"),
    ] {
        check([process(900, 1, comm)], Some(host));
    }
    check([process(900, 1, "systemd")], None);
    check([], None);
}

#[test]
fn an_editor_that_runs_on_a_runtime_is_recognized_by_what_it_runs() {
    let node = process(900, 1, "node");
    let server = [
        "/home/dev/.vscode-server/bin/1a2b/node",
        "out/server-main.js",
    ];
    check([node.argv(&server)], Some("vscode"));
    let node = process(900, 1, "node").exe("/home/dev/.cursor-server/bin/1a2b/node");
    check([node], Some("cursor"));
    let java = process(900, 1, "java").argv(&["java", "com.intellij.idea.Main"]);
    check([java], Some("jetbrains"));
}

#[test]
fn the_nearest_terminal_is_the_one() {
    let xterm = process(900, 800, "xterm").tty(136, 1);
    let above = [
        process(800, 700, "bash").tty(136, 1),
        process(700, 1, "code"),
    ];
    check([xterm].into_iter().chain(above), Some("xterm"));
}

#[test]
fn a_window_of_an_unknown_terminal_is_not_in_the_terminal_that_it_was_started_from() {
    let unknown = process(900, 800, "my-terminal").tty(136, 1);
    let above = [
        process(800, 700, "bash").tty(136, 1),
        process(700, 1, "code"),
    ];
    check([unknown].into_iter().chain(above), None);
}

#[test]
fn a_multiplexer_that_was_started_from_a_terminal_is_not_in_it() {
    check(
        [process(900, 700, "tmux: server"), process(700, 1, "code")],
        None,
    );
}
