//! `whosup resume`

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::Args;
use whosup_core::adapter::Invocation;
use whosup_core::judging::verdict::Liveness;
use whosup_core::machine::Environment;
use whosup_core::machine::mounts::Mounts;
use whosup_core::sessions::session::Session;
use whosup_core::views::explain::sentence;

use super::show::look;
use crate::app::{App, say};
use crate::cell::place;
use crate::directory::{gone_to_resume_in, is_gone};
use crate::exit::ExitStatus;
use crate::id::IdArgs;
use crate::shell::{line, printed, quoted};
use crate::text;

const EXAMPLES: &str = "\
Examples:
  whosup resume 0a022b20            Resume a session in its directory
  whosup resume --print 0a022b20    Print the command

The agent's own command replaces whosup. A session that is live, or may be, is refused: two
processes that write one session corrupt it. A command from a file that other programs may have
written is never run, and `--print` needs `--force` to print it. Read it before you run it.
Exit status: that of the agent; 2 not run, 3 the session may be live, 4 no such session.";

/// Why a command of an agent without an adapter is not run.
const UNTRUSTED: &str = "its command comes from a file that any program may have written";

#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    id: IdArgs,
    /// Print the command instead of running it
    #[arg(long)]
    print: bool,
    /// Resume even if the session is live or may be; with `--print`, print even an untrusted
    /// command
    #[arg(long, short)]
    force: bool,
}

/// Replaces this process with the agent's own command for resuming a session.
///
/// # Errors
///
/// If the session is not found or has no such command, or the command can't be run.
pub(crate) fn run(app: &mut App<'_>, arguments: &ResumeArgs) -> anyhow::Result<ExitStatus> {
    let shown = look(&app.world, &arguments.id)?;
    let session = &shown.session;
    let name = name_of(session);
    if let Some((because, status)) = in_use(session).filter(|_| !arguments.force) {
        say(app.err, &format!("error: cannot resume {name}: {because}"));
        if let Some(way) = way_in_spite(session) {
            let warning = "two processes that write one session corrupt it";
            say(app.err, &format!("hint: {way}; {warning}"));
        }
        return Ok(status);
    }
    let Some(invocation) = session.invocation() else {
        anyhow::bail!("cannot resume {name}: {}", why_not(session));
    };
    let command = Resumption {
        directory: invocation
            .directory
            .as_deref()
            .or_else(|| session.work_dir())
            .map(Path::to_owned),
        invocation,
    };
    let is_for_a_reader = arguments.print && arguments.force;
    if !(session.is_invocation_ours() || is_for_a_reader) {
        say(
            app.err,
            &format!("error: cannot resume {name}: {UNTRUSTED}"),
        );
        let line = text::visible(&command.line());
        say(app.err, &format!("hint: the command is: {line}"));
        say(
            app.err,
            "hint: read it first; `--print --force` prints it for a shell",
        );
        return Ok(ExitStatus::Failed);
    }
    if arguments.print {
        if let Some(gone) = gone_to_resume_in(app.world.machine(), session) {
            let gone = text::visible(&gone.to_string_lossy());
            let message = format!("the directory of {name}, `{gone}`, is no longer there");
            say(app.err, &format!("warning: {message}"));
        }
        writeln!(app.out, "{}", printed(command.line()))?;
        return Ok(ExitStatus::Done);
    }
    let program = command.program(app.world.machine().environment(), &name)?;
    command.check_directory(&name, app.world.machine().mounts())?;
    app.out.flush()?;
    command.run(&program)
}

/// `codex session 01a2…`
fn name_of(session: &Session) -> String {
    let id = text::visible(session.key.session.as_str());
    format!("{} session {id}", session.key.agent)
}

/// How a session that has exited is continued, if that is known and not refused.
pub(super) fn way_to_continue(session: &Session) -> Option<String> {
    session.invocation().filter(|_| in_use(session).is_none())?;
    let id = text::visible(session.key.session.as_str());
    Some(if session.is_invocation_ours() {
        format!("whosup resume {id} continues it")
    } else {
        format!("whosup resume {id} shows a command, and why it is not run")
    })
}

/// What `--force` does with a session that is in use; `None` if it does not help.
fn way_in_spite(session: &Session) -> Option<&'static str> {
    session.invocation()?;
    Some(if session.is_invocation_ours() {
        "`--force` resumes it anyway"
    } else {
        "`--print --force` prints its command, which any program may have written"
    })
}

/// Why a second process on this session might conflict with another.
fn in_use(session: &Session) -> Option<(String, ExitStatus)> {
    let pids = session.owner.iter().map(|owner| owner.pid);
    let pids = pids.chain(session.other_live_pids());
    let pids: Vec<String> = pids.map(|pid| format!("process {pid}")).collect();
    let pane = place(session).map(|place| format!("in {place}"));
    let who: Vec<String> = pids.into_iter().chain(pane).collect();
    let who = who.join(", ");
    match session.liveness() {
        Liveness::Live => Some((
            format!("it is live: {who} ({})", session.verdict.reason()),
            ExitStatus::Failed,
        )),
        Liveness::Unknown => Some((
            format!("it may be live: {}", sentence(session.verdict)),
            ExitStatus::Unknown,
        )),
        Liveness::Exited if !session.other_live.is_empty() => {
            Some((format!("it may be live: {who}"), ExitStatus::Unknown))
        }
        Liveness::Exited => session.held_by().map(|pid| {
            let because = format!("process {pid} has left it and still holds it");
            (because, ExitStatus::Unknown)
        }),
    }
}

fn why_not(session: &Session) -> String {
    match &session.sketch.parent {
        Some(parent) => format!(
            "it is a sub-agent of {}, which can be resumed",
            text::visible(parent.as_str())
        ),
        None if !session.sketch.is_resumable => "nothing was ever said in it".to_owned(),
        None => "no command is known that does it".to_owned(),
    }
}

/// The command to run, and the directory.
struct Resumption {
    directory: Option<PathBuf>,
    invocation: Invocation,
}

impl Resumption {
    fn line(&self) -> String {
        let directory = self.directory.as_deref().map(Path::to_string_lossy);
        let variables: Vec<(&str, String)> = self
            .invocation
            .environment
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_string_lossy().into_owned()))
            .collect();
        line(
            self.invocation.argv.iter().map(String::as_str),
            directory.as_deref(),
            variables
                .iter()
                .map(|(name, value)| (*name, value.as_str())),
            quoted,
        )
    }

    /// Finds the program, as a shell would.
    fn program(&self, environment: &Environment, name: &str) -> anyhow::Result<PathBuf> {
        let wanted = self.invocation.argv.first().map(String::as_str);
        let wanted = wanted.unwrap_or_default();
        if wanted.contains('/') {
            return Ok(PathBuf::from(wanted));
        }
        let path = environment.variable("PATH").unwrap_or(OsStr::new(""));
        let mut found = std::env::split_paths(path).map(|directory| directory.join(wanted));
        found
            .find(|program| is_executable(program))
            .ok_or_else(|| anyhow::anyhow!("cannot resume {name}: there is no `{wanted}` on PATH"))
    }

    fn check_directory(&self, name: &str, mounts: &Mounts) -> anyhow::Result<()> {
        match &self.directory {
            // Where the check could block for ever, the change to that directory, which the user
            // asked for, reports the error.
            Some(directory) if is_gone(mounts, directory) => {
                let shown = text::visible(&directory.to_string_lossy());
                anyhow::bail!("cannot resume {name}: the directory `{shown}` is no longer there")
            }
            _ => Ok(()),
        }
    }

    #[cfg(unix)]
    fn run(&self, program: &Path) -> anyhow::Result<ExitStatus> {
        use std::os::unix::process::CommandExt as _;
        let mut command = std::process::Command::new(program);
        command
            .arg0(self.invocation.argv.first().map_or("", String::as_str))
            .args(self.invocation.argv.iter().skip(1))
            .envs(
                self.invocation
                    .environment
                    .iter()
                    .map(|(name, value)| (name, value)),
            );
        if let Some(directory) = &self.directory {
            // A shell would report it too.
            command.current_dir(directory).env("PWD", directory);
        }
        // `exec` returns only if it failed.
        let error = command.exec();
        Err(anyhow::Error::new(error).context(format!("cannot run `{}`", program.display())))
    }

    #[cfg(not(unix))]
    fn run(&self, _: &Path) -> anyhow::Result<ExitStatus> {
        anyhow::bail!("cannot be replaced by another program on this system: use `--print`")
    }
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    let file = std::fs::metadata(path);
    file.is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    path.is_file()
}
