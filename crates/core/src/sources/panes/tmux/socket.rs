//! The tmux servers that run here, and their sockets.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use whosup_process::{Details, Pid, Process};

use crate::machine::mounts::Mounts;
use crate::machine::problem::Problem;
use crate::machine::{Environment, Machine};
use crate::sources::panes::servers::{ServerProcess, find_ours};

/// How many sockets are asked.
pub(super) const SOCKETS_MAX: usize = 64;
/// How many entries of a directory of sockets are looked at.
const DIRECTORY_ENTRIES_MAX: usize = 1_000;
/// How deep a socket may lie, in directories.
const DEPTH_MAX: usize = 128;

/// Where sockets are without `TMUX_TMPDIR` (tmux(1), FILES).
const SOCKETS_PARENT: &str = "/tmp";
/// The socket's name without `-L` (tmux(1)).
const DEFAULT_LABEL: &str = "default";
/// The options of tmux that take a value (tmux(1), SYNOPSIS).
const OPTIONS_WITH_VALUE: &[u8] = b"cfLST";

/// Everyone may write (`S_IWOTH`, inode(7)).
const WORLD_WRITABLE: u32 = 0o002;
/// Entries may be replaced by their owner only (`S_ISVTX`, inode(7)).
const STICKY: u32 = 0o1000;

/// A process that may be a tmux server of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Server {
    /// The process.
    pub(super) process: Process,
    /// It is certainly a server: it has set its name itself. The first process of a pane inherits
    /// the server's name for a moment.
    pub(super) is_certain: bool,
    /// Where it may listen, best first.
    places: Vec<PathBuf>,
}

/// A socket that may be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Socket {
    /// Its path, without symbolic links.
    pub(super) path: PathBuf,
    /// The servers that it should be the socket of.
    pub(super) of: Vec<Pid>,
}

/// Returns whether the name of a process may belong to a tmux server.
///
/// Where a program can name itself, a server is `tmux: server` and a client
/// `tmux: client`; elsewhere, and while one starts, both are `tmux`. What is
/// installed as `tmux-3.6` is `tmux-3.6:`, the rest being cut off.
/// (Seen in tmux 3.3a on Linux, 2026-11.)
pub(super) fn may_be_server(comm: &[u8]) -> bool {
    let has_name = comm.windows(4).any(|part| part == b"tmux");
    has_name && !is_client(comm) && (comm == b"tmux" || comm.contains(&b':'))
}

fn is_server(comm: &[u8]) -> bool {
    comm.ends_with(b": server")
}

fn is_client(comm: &[u8]) -> bool {
    comm.ends_with(b": client")
}

/// Finds the tmux servers of user `uid` in the process table.
pub(super) fn find_servers(machine: &Machine, uid: u32) -> Vec<Server> {
    let ours = variable_tmux(machine.environment());
    let named_by_ours = ours.as_ref().and_then(|tmux| tmux.server);
    let is_child_of_server = |process: &Process| {
        let parent = process.ppid.and_then(|pid| machine.table().seen(pid));
        parent.is_some_and(|parent| may_be_server(&parent.comm))
    };
    let servers = find_ours(machine, |process| {
        may_be_server(&process.comm) || named_by_ours == Some(process.pid)
    });
    let servers = servers.into_iter();
    let servers = servers.map(|ServerProcess { process, details }| Server {
        is_certain: is_server(&process.comm) && !is_child_of_server(&process),
        places: places(machine, &process, &details, uid),
        process,
    });
    servers.collect()
}

/// The places where a server may listen, by the rules by which tmux chooses
/// one: `-S`, else `-L`, else `TMUX`, else the default name.
fn places(machine: &Machine, process: &Process, details: &Details, uid: u32) -> Vec<PathBuf> {
    let environment = machine
        .environment_of(process, &["TMUX", "TMUX_TMPDIR"])
        .unwrap_or_default();
    let absolute = |path: &Path| match (&details.cwd, path.is_absolute()) {
        (_, true) => Some(path.to_owned()),
        (Ok(cwd), false) => Some(cwd.join(path)),
        (Err(_), false) => None,
    };
    let argv = details.argv.as_deref().unwrap_or_default();
    let options = parse_options(argv);
    if let Some(path) = options.socket {
        return absolute(Path::new(&path)).into_iter().collect();
    }
    if options.label.is_none()
        && let Some(tmux) = variable_tmux(&environment)
    {
        return absolute(&tmux.socket).into_iter().collect();
    }
    let label = options.label.unwrap_or_else(|| DEFAULT_LABEL.into());
    directories(&environment, uid)
        .into_iter()
        .map(|directory| directory.join(&label))
        .collect()
}

/// The directories that have the sockets of user `uid`.
fn directories(environment: &Environment, uid: u32) -> Vec<PathBuf> {
    let moved = environment.variable("TMUX_TMPDIR").map(PathBuf::from);
    let parents = moved.into_iter().chain([PathBuf::from(SOCKETS_PARENT)]);
    parents
        .filter(|parent| parent.is_absolute())
        .map(|parent| parent.join(format!("tmux-{uid}")))
        .collect()
}

/// The value of `TMUX` in a pane: `SOCKET,PID,SESSION`.
#[derive(Debug, PartialEq, Eq)]
struct VariableTmux {
    socket: PathBuf,
    server: Option<Pid>,
}

fn variable_tmux(environment: &Environment) -> Option<VariableTmux> {
    let value = environment.variable("TMUX")?.as_bytes();
    let mut fields = value.split(|byte| *byte == b',');
    let socket = fields.next().filter(|socket| !socket.is_empty())?;
    let server = fields
        .next()
        .and_then(|field| std::str::from_utf8(field).ok()?.parse().ok())
        .and_then(|number: i64| Pid::new(number).ok());
    Some(VariableTmux {
        socket: PathBuf::from(OsStr::from_bytes(socket)),
        server,
    })
}

/// The socket in the arguments of a tmux.
#[derive(Debug, PartialEq, Eq, Default)]
struct Options {
    /// `-S`.
    socket: Option<OsString>,
    /// `-L`.
    label: Option<OsString>,
}

/// Reads the options before the command, as getopt(3) does: letters may share
/// a dash, a value may follow at once or be the next argument.
fn parse_options(argv: &[OsString]) -> Options {
    let mut options = Options::default();
    let mut args = argv.iter().skip(1);
    while let Some(arg) = args.next() {
        let Some(letters) = arg.as_bytes().strip_prefix(b"-") else {
            break;
        };
        if letters.is_empty() || letters == b"-" {
            break;
        }
        let Some(at) = letters
            .iter()
            .position(|letter| OPTIONS_WITH_VALUE.contains(letter))
        else {
            continue;
        };
        let (letter, joined) = (letters.get(at), letters.get(at.saturating_add(1)..));
        let value = match joined {
            Some(joined) if !joined.is_empty() => Some(OsStr::from_bytes(joined).to_owned()),
            _ => args.next().cloned(),
        };
        match letter {
            Some(b'S') => options.socket = value,
            Some(b'L') => options.label = value,
            _ => {}
        }
    }
    options
}

/// The sockets to ask, each once, even if several paths name it.
#[derive(Debug)]
pub(super) struct Sockets<'a> {
    /// Those that may be asked.
    pub(super) sockets: Vec<Socket>,
    /// The servers whose sockets are not asked. A problem reports the reason.
    pub(super) refused: Vec<Pid>,
    /// The reasons.
    pub(super) problems: Vec<Problem>,
    uid: u32,
    /// Knows which places can be touched.
    mounts: &'a Mounts,
    /// The index in `sockets` by device and inode; `None` for a refused socket.
    places: HashMap<(u64, u64), Option<usize>>,
}

impl<'a> Sockets<'a> {
    /// Finds the sockets of the servers and the socket that our own environment names. If a
    /// server listens at none of its places, finds all sockets in the usual places.
    pub(super) fn find(machine: &'a Machine, uid: u32, servers: &[Server]) -> Self {
        let mut found = Self {
            sockets: Vec::new(),
            refused: Vec::new(),
            problems: Vec::new(),
            uid,
            places: HashMap::new(),
            mounts: machine.mounts(),
        };
        let mut is_one_lost = false;
        for server in servers {
            let mut places = server.places.iter();
            let is_there = places.any(|place| found.add(place, Some(server.process.pid)));
            is_one_lost |= !is_there;
        }
        if let Some(tmux) = variable_tmux(machine.environment()) {
            found.add(&tmux.socket, None);
        }
        if is_one_lost {
            found.add_directories(machine, servers);
        }
        found
    }

    /// Adds the file at `path` if it is a socket of ours, and returns whether it is.
    #[expect(clippy::disallowed_methods, reason = "checked before")]
    fn add(&mut self, path: &Path, of: Option<Pid>) -> bool {
        if self.mounts.touchable(path).is_err() {
            return false;
        }
        let path = self.mounts.resolved(path);
        let Ok(metadata) = path.metadata() else {
            return false;
        };
        if !metadata.file_type().is_socket() || metadata.uid() != self.uid {
            return false;
        }
        let id = (metadata.dev(), metadata.ino());
        let at = match self.places.get(&id) {
            Some(at) => *at,
            None => self.add_new(path, id),
        };
        match at.and_then(|at| self.sockets.get_mut(at)) {
            Some(socket) => socket.of.extend(of),
            None => self.refused.extend(of),
        }
        true
    }

    fn add_new(&mut self, path: PathBuf, id: (u64, u64)) -> Option<usize> {
        let at = match find_open_directory(&path, self.uid) {
            Some(directory) => {
                self.problems.push(Problem::of_machine(format!(
                    "cannot ask the tmux server on `{}`: others may replace what is in `{}`",
                    path.display(),
                    directory.display(),
                )));
                None
            }
            None if self.sockets.len() >= SOCKETS_MAX => {
                self.problems.push(Problem::of_machine(format!(
                    "cannot ask every tmux server: more than {SOCKETS_MAX} sockets"
                )));
                None
            }
            None => {
                self.sockets.push(Socket {
                    path,
                    of: Vec::new(),
                });
                Some(self.sockets.len().saturating_sub(1))
            }
        };
        self.places.insert(id, at);
        at
    }

    /// Adds every socket in the directories that tmux puts them in.
    #[expect(clippy::disallowed_methods, reason = "checked before")]
    fn add_directories(&mut self, machine: &Machine, servers: &[Server]) {
        let ours = directories(machine.environment(), self.uid);
        let theirs = servers
            .iter()
            .flat_map(|server| &server.places)
            .filter_map(|place| place.parent().map(Path::to_owned))
            .filter(|directory| directory.ends_with(format!("tmux-{}", self.uid)));
        let directories: HashSet<PathBuf> = ours.into_iter().chain(theirs).collect();
        let mut directories: Vec<PathBuf> = directories.into_iter().collect();
        directories.sort();
        for directory in directories {
            if self.mounts.touchable(&directory).is_err() {
                continue;
            }
            let Ok(entries) = directory.read_dir() else {
                continue;
            };
            for entry in entries.take(DIRECTORY_ENTRIES_MAX).flatten() {
                self.add(&entry.path(), None);
            }
        }
    }
}

/// Finds a directory above a path in which another user could replace the file.
#[expect(clippy::disallowed_methods, reason = "above a socket that was checked")]
fn find_open_directory(path: &Path, uid: u32) -> Option<PathBuf> {
    // In a user namespace the root directory belongs to an unknown user.
    let trusted = [
        Some(0),
        Some(uid),
        Path::new("/").metadata().ok().map(|root| root.uid()),
    ];
    let is_closed = |directory: &Path| {
        directory.metadata().is_ok_and(|metadata| {
            let mode = metadata.mode();
            trusted.contains(&Some(metadata.uid()))
                && (mode & WORLD_WRITABLE == 0 || mode & STICKY != 0)
        })
    };
    path.ancestors()
        .skip(1)
        .take(DEPTH_MAX)
        .find(|directory| !is_closed(directory))
        .map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(argv: &[&str]) -> Options {
        let argv: Vec<OsString> = argv.iter().map(OsString::from).collect();
        parse_options(&argv)
    }

    #[track_caller]
    fn check_socket(argv: &[&str], socket: &str) {
        assert_eq!(options(argv).socket, Some(socket.into()), "{argv:?}");
    }

    #[test]
    fn a_socket_is_read_however_getopt_takes_it() {
        check_socket(&["tmux", "-S", "/s", "new"], "/s");
        check_socket(&["tmux", "-S/s"], "/s");
        check_socket(&["tmux", "-2uS", "/s", "-D"], "/s");
        check_socket(&["tmux", "-f", "-L", "-uS/s"], "/s");
        check_socket(&["tmux", "-S", "/other", "-S", "/s"], "/s");
    }

    #[test]
    fn options_of_the_command_are_not_those_of_tmux() {
        let none = Options::default();
        assert_eq!(options(&["tmux", "new-session", "-S", "/s"]), none);
        assert_eq!(options(&["tmux", "--", "-S", "/s"]), none);
        assert_eq!(options(&["tmux", "-f", "/conf", "new", "-L", "x"]), none);
        assert_eq!(options(&["tmux", "-S"]), none);
        assert_eq!(options(&[]), none);
    }

    #[test]
    fn a_label_is_read_too() {
        let label = Some("work".into());
        assert_eq!(options(&["tmux", "-Lwork", "attach"]).label, label);
        assert_eq!(options(&["tmux", "-D", "-L", "work"]).label, label);
    }

    #[test]
    fn clients_and_programs_with_similar_names_are_no_servers() {
        for comm in ["tmux: server", "tmux", "tmux-3.6:", "tmux-3.6: serve"] {
            assert!(may_be_server(comm.as_bytes()), "{comm}");
        }
        for comm in [
            "tmux: client",
            "tmux-sessionize",
            "tmuxinator",
            "tmate: server",
            "",
        ] {
            assert!(!may_be_server(comm.as_bytes()), "{comm}");
        }
    }

    #[test]
    fn the_variable_of_a_pane_names_the_socket_and_the_server() {
        let parse = |value: &str| {
            let variables = [("TMUX".to_owned(), OsString::from(value))];
            variable_tmux(&Environment::new(None, None, variables))
        };
        let tmux = |socket: &str, server| VariableTmux {
            socket: PathBuf::from(socket),
            server,
        };
        assert_eq!(parse("/s,900,0"), Some(tmux("/s", Pid::new(900).ok())));
        assert_eq!(parse("/s"), Some(tmux("/s", None)));
        assert_eq!(parse("/s,x,0"), Some(tmux("/s", None)));
        assert_eq!(parse(",900,0"), None);
        assert_eq!(parse(""), None);
    }
}
