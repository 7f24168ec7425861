//! What is asked of tmux, and what becomes of odd answers.

use std::ffi::OsString;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use whosup_core::machine::command::{CommandError, CommandOutput, Commands};
use whosup_core::machine::mounts::Mounts;
use whosup_core::machine::problem::Found;
use whosup_core::machine::{Environment, Machine};
use whosup_core::sources::panes::{Pane, PaneHost as _, tmux::Tmux};
use whosup_process::{Absent, Backend as _, ProbeError, ProcessTable, Recorded, RecordedProcess};

const GOOD: &str = "%0 1000 0 900 /dev/pts/2 0 4 3 main:api:x\n";

const LOST: &str = "cannot list the panes of tmux server `900`: no socket leads to it";

/// A world with one socket, and a tmux that gives one answer.
struct World {
    _directory: TempDir,
    socket: PathBuf,
    _listener: UnixListener,
    table: Recorded,
    answers: Arc<Answers>,
}

/// Gives one answer for every socket of the world, says of other ones that
/// nobody listens there, and keeps the arguments of every run.
#[derive(Debug)]
struct Answers {
    directory: PathBuf,
    answer: Result<CommandOutput, CommandError>,
    runs: Mutex<Vec<Vec<OsString>>>,
}

impl Commands for Answers {
    fn run(
        &self,
        program: &str,
        args: &[OsString],
        _deadline: Instant,
    ) -> Result<CommandOutput, CommandError> {
        assert_eq!(program, "tmux");
        self.runs.lock().unwrap().push(args.to_vec());
        let mut paths = args.iter().map(Path::new);
        if paths.any(|path| path.starts_with(&self.directory)) {
            return self.answer.clone();
        }
        complained("no server running on elsewhere\n")
    }

    fn deadline(&self) -> Instant {
        Instant::now() + Duration::from_secs(1)
    }
}

fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn process(pid: i32, comm: &str) -> RecordedProcess {
    RecordedProcess::new(pid, 100, 1_790_000_000_000)
        .uid(own_uid())
        .comm(comm)
}

fn printed(text: impl AsRef<[u8]>) -> Result<CommandOutput, CommandError> {
    Ok(CommandOutput {
        is_success: true,
        stdout: text.as_ref().to_vec(),
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

impl World {
    /// A world whose process table has a server on the socket.
    fn new(answer: Result<CommandOutput, CommandError>) -> Self {
        let world = Self::without_server(answer);
        let server = process(900, "tmux: server");
        let socket = world.socket.to_str().unwrap().to_owned();
        world.with(server.argv(&["tmux", "-S", &socket, "new-session", "-d"]))
    }

    fn without_server(answer: Result<CommandOutput, CommandError>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().canonicalize().unwrap().join("socket");
        let listener = UnixListener::bind(&socket).unwrap();
        let mut view = Recorded::initial().view();
        view.uid = Ok(own_uid());
        let answers = Answers {
            directory: socket.parent().unwrap().to_owned(),
            answer,
            runs: Mutex::default(),
        };
        Self {
            _directory: directory,
            socket,
            _listener: listener,
            table: Recorded::initial().with_view(view).with(process(1, "init")),
            answers: Arc::new(answers),
        }
    }

    fn with(mut self, process: RecordedProcess) -> Self {
        self.table = self.table.with(process);
        self
    }

    fn directory(&self) -> &Path {
        self.socket.parent().unwrap()
    }

    /// Lists the panes; nothing real is asked.
    fn list(&self) -> Found<Vec<Pane>> {
        let machine = Machine::new(
            Environment::default(),
            0,
            ProcessTable::look(Arc::new(self.table.clone())),
            Mounts::default(),
            Arc::clone(&self.answers) as Arc<dyn Commands>,
        );
        Tmux.list(&machine)
    }

    fn was_asked(&self) -> bool {
        let runs = self.answers.runs.lock().unwrap();
        runs.iter()
            .any(|args| args.contains(&self.socket.clone().into()))
    }

    /// The one problem about the socket, without what all of them begin with.
    #[track_caller]
    fn check_problem(&self, expected: &str) {
        let problems = self.list().problems;
        let [problem] = problems.as_slice() else {
            panic!("{problems:?}");
        };
        let about = format!(
            "cannot list the panes of the tmux server on `{}`: ",
            self.socket.display()
        );
        assert_eq!(
            problem.message.strip_prefix(&about),
            Some(expected),
            "{problem}"
        );
    }

    #[track_caller]
    fn check_silence(&self) {
        let listed = self.list();
        assert_eq!((listed.found.len(), listed.problems), (0, Vec::new()));
    }
}

#[test]
fn one_listing_command_is_run_per_server() {
    let world = World::new(printed(GOOD));
    let listed = world.list();
    assert_eq!((listed.found.len(), listed.problems), (1, Vec::new()));
    let runs = world.answers.runs.lock().unwrap();
    let [args] = runs.as_slice() else {
        panic!("{runs:?}");
    };
    let socket = world.socket.to_str().unwrap();
    assert_eq!(args[..6], ["-u", "-S", socket, "list-panes", "-a", "-F"]);
}

#[test]
fn nothing_is_run_while_no_server_is_in_the_process_table() {
    let world = World::without_server(printed(GOOD))
        .with(process(901, "tmux: client"))
        .with(process(902, "tmux-sessionize"))
        .with(process(903, "tmux: server").zombie());
    world.check_silence();
    assert!(world.answers.runs.lock().unwrap().is_empty());
}

#[test]
fn a_process_table_that_cannot_be_read_asks_nobody() {
    let mut world = World::new(printed(GOOD));
    world.table = world.table.with_table_error(ProbeError::Unsupported);
    world.check_silence();
    assert!(!world.was_asked());
}

#[test]
fn a_running_server_without_a_tmux_to_ask_it_with_is_a_problem() {
    let program = "tmux".to_owned();
    let world = World::new(Err(CommandError::NotFound { program }));
    world.check_problem("`tmux` is not installed");
}

#[test]
fn a_server_that_cannot_be_asked_is_a_problem() {
    let program = || "tmux".to_owned();
    let time_max = Duration::from_millis(1500);
    let timed_out = CommandError::TimedOut {
        program: program(),
        time_max,
    };
    World::new(Err(timed_out)).check_problem("no answer within 1500 ms");
    let failed = CommandError::Failed {
        program: program(),
        reason: "too many open files".to_owned(),
    };
    World::new(Err(failed)).check_problem("too many open files");
    World::new(complained("")).check_problem("tmux failed and said nothing");
    let too_old = "protocol version mismatch (client 8, server 7)\nmore\n";
    let message = "tmux says: protocol version mismatch (client 8, server 7)";
    World::new(complained(too_old)).check_problem(message);
}

#[test]
fn a_socket_where_nobody_listens_is_told_only_for_a_server_that_is_here() {
    for complaint in [
        "no server running on /s\n",
        "error connecting to /s (No such file or directory)\n",
        "error connecting to /s (Connection refused)\n",
    ] {
        let messages = |world: &World| {
            let problems = world.list().problems.into_iter();
            problems.map(|problem| problem.message).collect::<Vec<_>>()
        };
        let world = World::new(complained(complaint));
        assert_eq!(messages(&world), [LOST]);
        // What may be a server, and may as well be a client that starts.
        let world = World::without_server(complained(complaint));
        let socket = world.socket.to_str().unwrap().to_owned();
        let world = world.with(process(900, "tmux").argv(&["tmux", "-S", &socket]));
        world.check_silence();
        assert!(world.was_asked());
    }
}

#[test]
fn a_server_without_panes_is_no_problem() {
    World::new(complained("no current target\n")).check_silence();
    World::new(complained("no sessions\n")).check_silence();
    World::new(printed("")).check_silence();
}

#[test]
fn good_lines_are_kept_beside_torn_ones_and_the_server_is_named() {
    let text = format!("{GOOD}torn\n%1 1001 0 900 /dev/pts/3 0 4 3 main:api:caf\u{e9}\n%2 10");
    let world = World::new(printed(text));
    let ids: Vec<_> = world
        .list()
        .found
        .into_iter()
        .filter_map(|pane| pane.pane)
        .collect();
    assert_eq!(ids, ["%0", "%1"]);
    world.check_problem("2 of 4 lines are no panes; line 2: 1 of 9 fields");
}

#[test]
fn a_title_that_is_not_utf_8_hides_no_pane() {
    let line = b"%0 1000 0 900 /dev/pts/2 0 4 3 main:api:caf\xe9\ttab|pipe:colon\rreturn\n";
    let listed = World::new(printed(line)).list();
    assert_eq!(listed.problems, []);
    assert_eq!(listed.found[0].title, "caf\u{fffd}\ttab|pipe:colon\rreturn");
}

#[test]
fn a_server_that_is_no_process_of_ours_here_is_not_believed() {
    let not_here = "its process `901` is no tmux server of ours here";
    let line = GOOD.replace(" 900 ", " 901 ");
    World::new(printed(&line)).check_problem(not_here);
    let world = World::new(printed(&line)).with(process(901, "bash"));
    world.check_problem(not_here);
    let contained = process(901, "tmux: server").inner_pids(&[7]);
    World::new(printed(&line))
        .with(contained)
        .check_problem(not_here);
    assert_eq!(World::new(printed(&line)).list().found, []);
}

#[test]
fn what_a_server_starts_is_no_other_server_though_it_has_its_name_at_first() {
    let world = World::new(printed(GOOD));
    let socket = world.socket.to_str().unwrap().to_owned();
    let child = process(1000, "tmux: server").ppid(900);
    let world = world.with(child.argv(&["tmux", "-S", &socket, "new-session", "-d"]));
    let listed = world.list();
    assert_eq!((listed.found.len(), listed.problems), (1, Vec::new()));
}

#[test]
fn a_server_in_a_container_is_not_asked() {
    let world = World::without_server(printed(GOOD));
    let socket = world.socket.to_str().unwrap().to_owned();
    let server = process(900, "tmux: server").argv(&["tmux", "-S", &socket]);
    let world = world.with(server.inner_pids(&[7]));
    world.check_silence();
    assert!(!world.was_asked());
}

#[test]
fn a_server_of_somebody_else_is_not_asked() {
    let world = World::without_server(printed(GOOD));
    let socket = world.socket.to_str().unwrap().to_owned();
    let server = process(900, "tmux: server").argv(&["tmux", "-S", &socket]);
    let world = world.with(server.uid(own_uid().wrapping_add(1)));
    world.check_silence();
    assert!(!world.was_asked());
}

#[test]
fn a_socket_of_somebody_else_is_not_asked() {
    let world = World::new(printed(GOOD));
    if let Err(error) = chown(&world.socket, Some(own_uid().wrapping_add(1)), None) {
        eprintln!("skipped: cannot give a file away: {error}");
        return;
    }
    assert_eq!(world.list().problems[0].message, LOST);
    assert!(!world.was_asked());
}

#[test]
fn a_socket_that_others_may_replace_is_not_asked() {
    let world = World::new(printed(GOOD));
    let directory = world.directory().to_owned();
    let message = format!(
        "cannot ask the tmux server on `{}`: others may replace what is in `{}`",
        world.socket.display(),
        directory.display(),
    );
    let set_mode = |mode| {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&directory, permissions).unwrap();
    };
    let messages = || {
        let problems = world.list().problems.into_iter();
        problems.map(|problem| problem.message).collect::<Vec<_>>()
    };
    set_mode(0o777);
    assert_eq!(messages(), [message.as_str()]);
    assert!(!world.was_asked());
    if chown(&directory, Some(own_uid().wrapping_add(1)), None).is_ok() {
        set_mode(0o755);
        assert_eq!(messages(), [message]);
        chown(&directory, Some(own_uid()), None).unwrap();
    } else {
        eprintln!("skipped in part: cannot give a directory away");
    }
    set_mode(0o1777);
    assert_eq!(messages(), [""; 0]);
    assert!(world.was_asked());
}

#[test]
fn what_is_no_socket_is_not_asked() {
    for name in ["file", "directory", "fifo"] {
        let world = World::without_server(printed(GOOD));
        let path = world.directory().join(name);
        match name {
            "file" => std::fs::write(&path, "").unwrap(),
            "directory" => std::fs::create_dir(&path).unwrap(),
            _ => {
                let (fifo, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR);
                rustix::fs::mknodat(rustix::fs::CWD, &path, fifo, mode, 0).unwrap();
            }
        }
        let path = path.to_str().unwrap().to_owned();
        let world = world.with(process(900, "tmux: server").argv(&["tmux", "-S", &path]));
        let problems = world.list().problems;
        assert_eq!(problems[0].message, LOST, "{name}");
        let runs = world.answers.runs.lock().unwrap();
        assert!(
            !runs.iter().flatten().any(|arg| arg == path.as_str()),
            "{name}"
        );
    }
}

#[test]
fn a_socket_is_asked_once_however_many_paths_lead_to_it() {
    let world = World::new(printed(GOOD));
    let link = world.directory().join("link");
    std::os::unix::fs::symlink(&world.socket, &link).unwrap();
    let link = link.to_str().unwrap().to_owned();
    let world = world.with(process(901, "tmux").argv(&["tmux", "-S", &link, "attach"]));
    let listed = world.list();
    assert_eq!((listed.found.len(), listed.problems), (1, Vec::new()));
    assert_eq!(world.answers.runs.lock().unwrap().len(), 1);
}

#[test]
fn a_server_whose_environment_cannot_be_read_is_looked_for_where_sockets_are() {
    let world = World::without_server(printed(GOOD));
    let directory = world.directory().join(format!("tmux-{}", own_uid()));
    std::fs::create_dir(&directory).unwrap();
    let socket = directory.join("named by nobody");
    let _listener = UnixListener::bind(&socket).unwrap();
    let mut server = process(900, "tmux: server");
    server.environment = Err(Absent::PermissionDenied);
    server.details.argv = Err(Absent::PermissionDenied);
    let other = process(901, "tmux").env(&[("TMUX_TMPDIR", world.directory().to_str().unwrap())]);
    let world = world.with(server).with(other);
    world.list();
    let runs = world.answers.runs.lock().unwrap();
    assert!(
        runs.iter()
            .any(|args| args.contains(&socket.clone().into()))
    );
}
