//! What all pane hosts share: finding our servers in the process table, and asking all of them
//! at once.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::Builder;
use std::time::Instant;

use whosup_process::{Details, Pid, Process};

use super::{Pane, PaneServer};
use crate::machine::Machine;
use crate::machine::command::CommandError;
use crate::machine::problem::{Found, Problem};

/// How many server processes of one host are looked at.
const SERVERS_MAX: usize = 64;
/// How many processes below one server are looked at.
const CHILDREN_MAX: usize = 10_000;
/// How much of an error message is shown, in characters.
pub(super) const COMPLAINT_CHARS_MAX: usize = 200;

/// The server of a pane host.
#[derive(Debug, Clone)]
pub(super) struct ServerProcess {
    pub(super) process: Process,
    pub(super) details: Arc<Details>,
}

impl ServerProcess {
    /// The server in the form of a pane.
    pub(super) fn listening_at(&self, socket: impl Into<PathBuf>) -> PaneServer {
        PaneServer {
            socket: socket.into(),
            pid: Some(self.process.pid),
            stamp: Some(self.process.stamp.clone()),
        }
    }

    /// The word behind `option` in the arguments, or joined to it with `=`.
    pub(super) fn option(&self, option: &str) -> Option<String> {
        let argv = self.details.argv.as_deref().ok()?;
        let mut words = argv.iter().map(|word| word.to_string_lossy());
        while let Some(word) = words.next() {
            match word.strip_prefix(option) {
                Some("") => return words.next().map(std::borrow::Cow::into_owned),
                Some(joined) if joined.starts_with('=') => {
                    return joined.strip_prefix('=').map(str::to_owned);
                }
                _ => {}
            }
        }
        None
    }
}

/// A server, and where it listens as its host's commands take it.
pub(super) struct Listening<S> {
    pub(super) server: ServerProcess,
    pub(super) socket: S,
}

/// Whether a process belongs to our user and our PID namespace, so that the PIDs that it
/// reports are comparable with ours.
///
/// A server of another user is never asked, not even by root: asking means trusting.
pub(super) fn is_ours(details: &Details, uid: u32) -> bool {
    let lives_among_ours = details
        .inner_pids
        .as_ref()
        .map_or(true, |pids| pids.len() == 1);
    details.uid == Ok(uid) && lives_among_ours
}

/// The processes of our user that look like a server.
pub(super) fn find_ours(
    machine: &Machine,
    is_server: impl Fn(&Process) -> bool,
) -> Vec<ServerProcess> {
    let (Ok(uid), Ok(processes)) = (&machine.table().view().uid, machine.table().processes())
    else {
        return Vec::new();
    };
    processes
        .iter()
        .filter(|process| !process.is_kernel_thread && !process.is_exited && is_server(process))
        .filter_map(|process| {
            let details = machine.table().details(process);
            is_ours(&details, *uid).then(|| ServerProcess {
                process: process.clone(),
                details,
            })
        })
        .take(SERVERS_MAX)
        .collect()
}

/// The processes that a server started.
pub(super) fn children<'a>(
    machine: &'a Machine,
    server: &Process,
) -> impl Iterator<Item = &'a Process> + use<'a> {
    let parent = Some(server.pid);
    let processes = machine.table().processes().unwrap_or_default().iter();
    let children = processes.filter(move |process| process.ppid == parent && !process.is_exited);
    children.take(CHILDREN_MAX)
}

/// The child of a server for each of its panes, by the id that the server put into the
/// child's environment.
///
/// A program that replaced the child may have changed the variable, so that an ID counts only
/// if exactly one child has it.
pub(super) fn children_by_id(
    machine: &Machine,
    server: &Process,
    variable: &str,
) -> Vec<(String, Process)> {
    let with_id = children(machine, server).filter_map(|child| {
        let environment = machine.table().environment(child, &[variable]).ok()?;
        let (_, id) = environment.into_iter().next()?;
        Some((id.into_string().ok()?, child.clone()))
    });
    let all: Vec<(String, Process)> = with_id.collect();
    let is_alone = |id: &str| all.iter().filter(|(other, _)| other == id).count() == 1;
    let alone = all.iter().filter(|(id, _)| is_alone(id));
    alone.cloned().collect()
}

/// Takes the process of a pane out of what [`children_by_id`] found.
pub(super) fn child_of<'a>(children: &'a [(String, Process)], id: &str) -> Option<&'a Process> {
    let mut children = children.iter();
    children.find(|(of, _)| of == id).map(|(_, child)| child)
}

/// Asks all servers at once, and makes panes of each answer. A server without an answer is a
/// problem.
pub(super) fn list_each<S: Sync, A: Send>(
    host: &str,
    machine: &Machine,
    servers: &[Listening<S>],
    ask: impl Fn(&Listening<S>, Instant) -> Result<A, String> + Sync,
    panes_of: impl Fn(&Listening<S>, A) -> Vec<Pane>,
) -> Found<Vec<Pane>> {
    let deadline = machine.commands().deadline();
    let answers = ask_all(host, servers, |listening| ask(listening, deadline));
    let mut found: Found<Vec<Pane>> = Found::default();
    for (listening, answer) in servers.iter().zip(answers) {
        match answer {
            Ok(answer) => found.found.extend(panes_of(listening, answer)),
            Err(reason) => {
                let problem = silent(host, listening.server.process.pid, &reason);
                found.problems.push(problem);
            }
        }
    }
    found
}

/// Asks all servers at once.
pub(super) fn ask_all<S: Sync, A: Send>(
    host: &str,
    servers: &[S],
    ask: impl Fn(&S) -> Result<A, String> + Sync,
) -> Vec<Result<A, String>> {
    let ask = &ask;
    std::thread::scope(|threads| {
        let asked: Vec<_> = servers
            .iter()
            .map(|server| {
                let started = Builder::new().name(format!("whosup-{host}"));
                (server, started.spawn_scoped(threads, move || ask(server)))
            })
            .collect();
        let lost = |_| Err("the answer was lost".to_owned());
        let answers = asked.into_iter().map(|(server, asked)| match asked {
            Ok(asked) => asked.join().unwrap_or_else(lost),
            // No thread can be started: ask it here, within the same deadline.
            Err(_) => ask(server),
        });
        answers.collect()
    })
}

/// Runs a listing command with these variables. Returns the output, or why there is none.
pub(super) fn run(
    machine: &Machine,
    variables: &[(&str, Option<&str>)],
    argv: &[&str],
    deadline: Instant,
) -> Result<Vec<u8>, String> {
    let words = with_variables(variables, argv);
    let (program, args) = words.split_first().ok_or("there is no command")?;
    let args: Vec<OsString> = args.iter().map(OsString::from).collect();
    match machine.commands().run(program, &args, deadline) {
        Ok(output) if output.is_success => Ok(output.stdout),
        Ok(output) => {
            // Some hosts write errors to standard output.
            let printed = [output.stderr, output.stdout].concat();
            let printed = String::from_utf8_lossy(&printed);
            let line = printed.lines().map(str::trim).find(|line| !line.is_empty());
            let line: String = line
                .unwrap_or("it failed and printed nothing")
                .chars()
                .collect();
            Err(line.chars().take(COMPLAINT_CHARS_MAX).collect())
        }
        Err(error) => Err(reason_of(error)),
    }
}

/// Why a command gave no answer.
pub(super) fn reason_of(error: CommandError) -> String {
    match error {
        CommandError::NotFound { program } => format!("`{program}` is not installed"),
        CommandError::Failed { reason, .. } => reason,
        CommandError::TimedOut { time_max, .. } => {
            format!("no answer within {} ms", time_max.as_millis())
        }
    }
}

/// A command with variables set, or taken away, by env(1).
fn with_variables(variables: &[(&str, Option<&str>)], argv: &[&str]) -> Vec<String> {
    let mut words = Vec::new();
    if !variables.is_empty() {
        words.push("env".to_owned());
        let unset = variables.iter().filter(|(_, value)| value.is_none());
        words.extend(unset.flat_map(|(name, _)| ["-u".to_owned(), (*name).to_owned()]));
        let set = variables
            .iter()
            .filter_map(|(name, value)| Some(format!("{name}={}", (*value)?)));
        words.extend(set);
    }
    words.extend(argv.iter().map(|word| (*word).to_owned()));
    words
}

/// The problem of a server that gave no answer.
pub(super) fn silent(host: &str, server: Pid, reason: &str) -> Problem {
    Problem::of_machine(format!(
        "cannot list the panes of {host} server `{server}`: {reason}"
    ))
}
