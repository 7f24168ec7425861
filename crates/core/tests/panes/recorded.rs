//! Hosts by answers that were recorded, and answers that go wrong.

use std::ffi::OsString;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use whosup_core::machine::command::{CommandError, CommandOutput, Commands};
use whosup_core::machine::mounts::Mounts;
use whosup_core::machine::problem::Found;
use whosup_core::machine::{Environment, Machine};
use whosup_core::sources::panes::{
    Going, Pane, PaneHost, kitty::Kitty, screen::Screen, wezterm::WezTerm, zellij::Zellij,
};
use whosup_process::{Pid, ProcessTable, Recorded, RecordedProcess};

/// Gives one answer, and keeps what was run.
#[derive(Debug)]
struct Answer {
    answer: Result<CommandOutput, CommandError>,
    runs: Mutex<Vec<String>>,
}

impl Commands for Answer {
    fn run(
        &self,
        program: &str,
        args: &[OsString],
        _: Instant,
    ) -> Result<CommandOutput, CommandError> {
        let args = args.iter().map(|arg| arg.to_string_lossy().into_owned());
        let words: Vec<String> = [program.to_owned()].into_iter().chain(args).collect();
        self.runs.lock().unwrap().push(words.join(" "));
        self.answer.clone()
    }

    fn deadline(&self) -> Instant {
        Instant::now() + Duration::from_secs(2)
    }
}

fn printed(text: &str) -> Result<CommandOutput, CommandError> {
    Ok(CommandOutput {
        is_success: true,
        stdout: text.as_bytes().to_vec(),
        stderr: Vec::new(),
    })
}

fn complained(text: &str) -> Result<CommandOutput, CommandError> {
    Ok(CommandOutput {
        is_success: false,
        stdout: Vec::new(),
        stderr: text.as_bytes().to_vec(),
    })
}

const BEGAN_MS: i64 = 1_790_000_000_000;

fn process(pid: i32, ppid: i32, comm: &str) -> RecordedProcess {
    RecordedProcess::new(pid, 100, BEGAN_MS)
        .ppid(ppid)
        .comm(comm)
        .uid(0)
}

fn list(
    host: &dyn PaneHost,
    processes: impl IntoIterator<Item = RecordedProcess>,
    answer: Result<CommandOutput, CommandError>,
) -> (Found<Vec<Pane>>, Vec<String>) {
    list_at(BEGAN_MS + 60_000, host, processes, answer)
}

fn list_at(
    now_ms: i64,
    host: &dyn PaneHost,
    processes: impl IntoIterator<Item = RecordedProcess>,
    answer: Result<CommandOutput, CommandError>,
) -> (Found<Vec<Pane>>, Vec<String>) {
    let world = Recorded::initial().with(process(1, 0, "init"));
    let world = processes.into_iter().fold(world, Recorded::with);
    let runs = Mutex::default();
    let answer = Arc::new(Answer { answer, runs });
    let machine = Machine::new(
        Environment::default(),
        now_ms,
        ProcessTable::look(Arc::new(world)),
        Mounts::default(),
        Arc::clone(&answer) as Arc<dyn Commands>,
    );
    let listed = host.list(&machine);
    let runs = std::mem::take(&mut *answer.runs.lock().unwrap());
    (listed, runs)
}

fn wezterm() -> [RecordedProcess; 3] {
    let socket = [("WEZTERM_UNIX_SOCKET", "/run/user/0/wezterm/gui-sock-900")];
    [
        process(900, 1, "wezterm-gui"),
        process(1000, 900, "bash").tty(136, 2).env(&socket),
        process(1001, 900, "bash").tty(136, 3).env(&socket),
    ]
}

/// As `wezterm cli list` of 2025-02-23 prints it, with a pane of another computer.
const WEZTERM_LIST: &str = r#"[
  {"window_id": 0, "tab_id": 0, "pane_id": 0, "workspace": "default",
   "size": {"rows": 24, "cols": 80, "pixel_width": 640, "pixel_height": 384, "dpi": 0},
   "title": "cat", "cwd": "file:///home/dev/", "cursor_x": 0, "cursor_y": 0,
   "cursor_shape": "Default", "cursor_visibility": "Visible", "left_col": 0, "top_row": 0,
   "tab_title": "", "window_title": "", "is_active": true,
   "is_zoomed": false, "tty_name": "/dev/pts/2"},
  {"window_id": 0, "tab_id": 5, "pane_id": 7, "workspace": "default",
   "title": "claude", "cwd": "file://foo/home/dev/", "tab_title": "api",
   "is_active": true, "is_zoomed": false, "tty_name": "/dev/pts/3"},
  {"window_id": 0, "tab_id": 6, "pane_id": 8, "workspace": "default",
   "title": "far away", "tab_title": "", "tty_name": null}
]"#;

#[test]
fn panes_of_wezterm_are_joined_by_terminals_of_its_children() {
    let (listed, runs) = list(&WezTerm, wezterm(), printed(WEZTERM_LIST));
    assert_eq!(listed.problems, []);
    let panes: Vec<_> = listed
        .found
        .iter()
        .map(|pane| (pane.pane.as_deref().unwrap(), pane.pid, pane.place.as_str()))
        .collect();
    let pid = |pid| Pid::new(pid).ok();
    let expected = [
        ("0", pid(1000), "default/0.0"),
        ("7", pid(1001), "default/api.7"),
        ("8", None, "default/6.8"),
    ];
    assert_eq!(panes, expected);
    let run = "env WEZTERM_UNIX_SOCKET=/run/user/0/wezterm/gui-sock-900 \
               wezterm cli --no-auto-start list --format json";
    assert_eq!(runs, [run]);
    let Some(Going::Run(commands)) = WezTerm.go(&listed.found[1], None) else {
        panic!("it is focused from anywhere");
    };
    let argv = [
        "wezterm",
        "cli",
        "--no-auto-start",
        "activate-pane",
        "--pane-id",
        "7",
    ];
    assert_eq!(commands[0].argv, argv);
    assert_eq!(commands[0].environment[0].0, "WEZTERM_UNIX_SOCKET");
    let typing = WezTerm.paste(&listed.found[1], "two\nlines").unwrap();
    assert_eq!(typing.type_it[0].stdin, "two\nlines");
}

#[test]
fn a_host_that_fails_is_a_problem() {
    let screen = [
        process(900, 1, "screen").argv(&["SCREEN", "-S", "w"]),
        process(1000, 900, "bash").tty(136, 2),
    ];
    let kitty = [
        process(900, 1, "kitty"),
        process(1000, 900, "bash")
            .tty(136, 2)
            .env(&[("KITTY_LISTEN_ON", "unix:/tmp/k"), ("KITTY_PID", "900")]),
    ];
    let zellij = [process(900, 1, "zellij").argv(&["zellij", "--server", "/nowhere/z/one"])];
    let check = |host: &dyn PaneHost, processes: Vec<RecordedProcess>, answer, expected: &str| {
        let (listed, _) = list(host, processes, answer);
        assert_eq!(listed.found, []);
        let messages: Vec<_> = listed.problems.into_iter().map(|one| one.message).collect();
        let name = host.name();
        let problem = format!("cannot list the panes of {name} server `900`: {expected}");
        assert_eq!(messages, [problem]);
    };
    let no = || complained("No!\nmore");
    check(&WezTerm, wezterm().to_vec(), no(), "No!");
    check(&Screen, screen.to_vec(), no(), "No!");
    check(&Kitty, kitty.to_vec(), no(), "No!");
    check(&Zellij, zellij.to_vec(), no(), "no socket leads to it");
    let missing = || {
        let program = "kitty".to_owned();
        Err(CommandError::NotFound { program })
    };
    check(
        &Kitty,
        kitty.to_vec(),
        missing(),
        "`kitty` is not installed",
    );
    let torn = "cannot understand its list of windows: EOF while parsing a list at line 1 column 1";
    check(&Kitty, kitty.to_vec(), printed("["), torn);
    let slow = || {
        let (program, time_max) = ("screen".to_owned(), Duration::from_secs(2));
        Err(CommandError::TimedOut { program, time_max })
    };
    check(&Screen, screen.to_vec(), slow(), "no answer within 2000 ms");
}

#[test]
fn no_zellij_is_asked_while_one_is_starting() {
    let server =
        |pid: i32, socket: &str| process(pid, 1, "zellij").argv(&["zellij", "--server", socket]);
    let both = || {
        let child = process(1000, 900, "bash").tty(136, 2);
        [
            server(900, "/nowhere/z/one"),
            child,
            server(901, "/nowhere/z/two"),
        ]
    };
    let problems = |now_ms| {
        let (listed, runs) = list_at(now_ms, &Zellij, both(), printed("[]"));
        assert_eq!(runs, <[&str; 0]>::default());
        let problems = listed.problems.into_iter();
        problems.map(|one| one.message).collect::<Vec<_>>()
    };
    let starting = "cannot list the panes of zellij server `901`: it is starting, and a question \
                    would end it (zellij-org/zellij#5632)";
    assert_eq!(problems(BEGAN_MS + 1_000), [starting]);
    // Later its programs have ended: only their sockets are missing here.
    let lost =
        |pid| format!("cannot list the panes of zellij server `{pid}`: no socket leads to it");
    assert_eq!(problems(BEGAN_MS + 60_000), [lost(900), lost(901)]);
}

/// The variable has the number that a window had when it was opened.
#[test]
fn the_terminal_of_a_window_of_screen_leads_to_its_process_and_no_variable_does() {
    let child = |pid, minor, window| {
        let child = process(pid, 900, "bash").tty(136, minor);
        child.env(&[("WINDOW", window)])
    };
    let screen = || {
        [
            process(900, 1, "screen").argv(&["SCREEN", "-S", "w"]),
            child(1000, 2, "0"),
            child(1001, 3, "1"),
        ]
    };
    let found = |listing| {
        let (listed, _) = list(&Screen, screen(), printed(listing));
        let panes = listed.found.into_iter();
        let found = panes.map(|pane| (pane.pane, pane.pid.map(Pid::get)));
        found.collect::<Vec<_>>()
    };
    let at = |number: &str, pid| (Some(number.to_owned()), pid);
    let swapped = found("0 /dev/pts/3 sh<|>1 /dev/pts/2 api<|>");
    assert_eq!(swapped, [at("0", Some(1001)), at("1", Some(1000))]);
    let unknown = [
        at("0", None),
        at("1", None),
        (None, Some(1000)),
        (None, Some(1001)),
    ];
    assert_eq!(found("0 0T sh<|>1 1T api<|>"), unknown);
    // A title may look like the end of a window and the next one.
    assert_eq!(found("0 /dev/pts/3 sh<|>1 /dev/pts/3 api<|>"), unknown);
}

#[test]
fn what_is_typed_into_a_screen_has_no_escapes_of_its_own() {
    let screen = [
        process(900, 1, "screen").argv(&["SCREEN", "-S", "w"]),
        process(1000, 900, "bash")
            .tty(136, 2)
            .env(&[("WINDOW", "0")]),
    ];
    let (listed, _) = list(&Screen, screen, printed("0 0T sh<|>"));
    let typing = Screen.paste(&listed.found[0], "a\\b ^c $d").unwrap();
    let argv = &typing.type_it[0].invocation.argv;
    assert_eq!(argv.last().unwrap(), "a\\\\b \\^c \\$d");
    let typing = Screen.paste(&listed.found[0], "one\ntwo").unwrap();
    let argv = &typing.type_it[0].invocation.argv;
    assert_eq!(argv.last().unwrap(), "\\033[200~one\\012two\\033[201~");
    // A message to the server has a bound.
    let typing = Screen.paste(&listed.found[0], &"x".repeat(2_000)).unwrap();
    let pieces = typing
        .type_it
        .iter()
        .map(|input| input.invocation.argv.last().unwrap().len());
    let pieces: Vec<usize> = pieces.collect();
    assert_eq!(pieces.iter().sum::<usize>(), 2_000);
    assert!(pieces.iter().all(|length| *length <= 512), "{pieces:?}");
}
