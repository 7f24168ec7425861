//! `whosup stop`

use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use whosup_core::judging::verdict::Liveness;
use whosup_core::machine;
use whosup_core::process::{ExitWatch, Process};
use whosup_core::reader::Reach;
use whosup_core::sessions::session::Session;
use whosup_core::views::explain::sentence;
use whosup_track::dismiss;

use super::check::status_of;
use crate::app::{App, World, say};
use crate::condition::is_inferred;
use crate::exit::ExitStatus;
use crate::id::{IdArgs, find};
use crate::text;

/// How long the process has to exit after SIGTERM.
const TERMINATE_TIME_MAX: Duration = Duration::from_secs(10);
/// How long it has to exit after SIGKILL.
const KILL_TIME_MAX: Duration = Duration::from_secs(5);
/// The exit status after a timeout, as of timeout(1).
const TIMED_OUT: u8 = 124;

const EXAMPLES: &str = "\
Examples:
  whosup stop 0a022b20           Send SIGTERM to the session's process, and wait for its exit
  whosup stop --kill 0a022b20    If it still runs after 10 s, send SIGKILL

The signal goes to the process that was found (through a pidfd), never to a later process with the
same PID. A process that serves several sessions is not stopped. A stopped session is dismissed:
`whosup list` and `whosup orphans` show it again once there is new activity.
Exit status: 0 stopped, 1 had exited before, 2 refused or failed, 3 unknown, 4 no such session,
124 it still runs.";

#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StopArgs {
    #[command(flatten)]
    pub(crate) id: IdArgs,
    /// Send SIGKILL if the process still runs after SIGTERM
    #[arg(long)]
    pub(crate) kill: bool,
}

/// Ends the process of a session.
///
/// # Errors
///
/// If the session is not found, or the process cannot be signalled.
pub(crate) fn run(app: &mut App<'_>, arguments: &StopArgs) -> anyhow::Result<ExitStatus> {
    let session = find(&app.world, &arguments.id)?;
    let id = text::visible(session.key.session.as_str());
    let name = name_of(&session);
    if session.liveness() != Liveness::Live {
        let answer = session.liveness().name();
        let because = sentence(session.verdict);
        say(app.err, &format!("{name} is {answer}: {because}"));
        return Ok(status_of(&session));
    }
    let owner = match stoppable(&app.world, &session)? {
        Ok(owner) => owner,
        Err((why, status)) => {
            say(app.err, &format!("error: cannot stop {name}: {why}"));
            return Ok(status);
        }
    };
    let pid = owner.pid;
    let backend = app.world.machine().table().backend();
    let watch = backend
        .watch_exit(pid, &owner.stamp)
        .with_context(|| format!("cannot stop {name}: its process {pid} cannot be watched"))?;
    let Some(watch) = watch else {
        say(
            app.err,
            &format!("{name} has exited: process {pid} is gone"),
        );
        return Ok(ExitStatus::Exited);
    };
    let began = Instant::now();
    if signal(&watch, By::Sigterm, TERMINATE_TIME_MAX)? {
        return stopped(app, &session, owner, "SIGTERM", began);
    }
    let waited = TERMINATE_TIME_MAX.as_secs();
    if !arguments.kill {
        let still = format!("process {pid} still runs {waited} s after SIGTERM");
        say(app.err, &format!("error: cannot stop {name}: {still}"));
        if session.is_suspended() {
            let hint = "it is suspended (ctrl-z), and gets the signal when it is continued (`fg`)";
            say(app.err, &format!("hint: {hint}"));
        }
        say(app.err, &format!("hint: whosup stop --kill {id}"));
        return Ok(ExitStatus::OfProgram(TIMED_OUT));
    }
    if signal(&watch, By::Sigkill, KILL_TIME_MAX)? {
        return stopped(app, &session, owner, "SIGKILL", began);
    }
    let still = format!("process {pid} still runs after SIGKILL: the kernel holds it");
    say(app.err, &format!("error: cannot stop {name}: {still}"));
    Ok(ExitStatus::OfProgram(TIMED_OUT))
}

/// Reports that the process has exited. Who stops a session does not want it among those that
/// died without an end.
fn stopped(
    app: &mut App<'_>,
    session: &Session,
    owner: &Process,
    by: &str,
    began: Instant,
) -> anyhow::Result<ExitStatus> {
    let seconds = began.elapsed().as_secs_f64();
    let what = format!("process {} exited {seconds:.1} s after {by}", owner.pid);
    say(app.err, &format!("stopped {}: {what}", name_of(session)));
    dismiss(
        app.world.machine().environment(),
        &session.key,
        machine::now_ms(),
    )?;
    Ok(ExitStatus::Done)
}

fn name_of(session: &Session) -> String {
    let id = text::visible(session.key.session.as_str());
    format!("{} session {id}", session.key.agent)
}

/// The process that serves only this session, or why there is none to end.
fn stoppable<'a>(
    world: &World,
    session: &'a Session,
) -> anyhow::Result<Result<&'a Process, (String, ExitStatus)>> {
    let refused = |why: String, status| Ok(Err((why, status)));
    if let Some(parent) = &session.sketch.parent {
        let parent = text::visible(parent.as_str());
        let why = format!("it is a sub-agent, and ends with the session {parent}");
        return refused(why, ExitStatus::Failed);
    }
    let Some(owner) = session.owner.as_deref() else {
        let why = "which process runs it is not known".to_owned();
        return refused(why, ExitStatus::Unknown);
    };
    if is_inferred(session) {
        let why = format!("that process {} runs it is only inferred", owner.pid);
        return refused(why, ExitStatus::Unknown);
    }
    let scanned = world.scan(&Reach::default())?;
    let sharing = scanned.snapshot.sessions.iter().filter(|other| {
        let is_same = other.owner.as_ref().is_some_and(|its| its.pid == owner.pid);
        let is_live = other.liveness() == Liveness::Live;
        is_same && is_live && other.key != session.key && other.sketch.parent.is_none()
    });
    let others = sharing.count();
    if session.is_owner_shared || others > 0 {
        let what = if others > 0 {
            text::count(others, "other session", "other sessions")
        } else {
            "any number of sessions".to_owned()
        };
        let why = format!("process {} serves {what} too", owner.pid);
        return refused(why, ExitStatus::Failed);
    }
    Ok(Ok(owner))
}

/// How a process is asked to end.
#[derive(Debug, Clone, Copy)]
enum By {
    Sigterm,
    Sigkill,
}

/// Sends a signal to the watched process, and waits; returns whether it has exited.
#[cfg(target_os = "linux")]
fn signal(watch: &ExitWatch, by: By, time_max: Duration) -> anyhow::Result<bool> {
    use rustix::process::{Signal, pidfd_send_signal};
    let signal = match by {
        By::Sigterm => Signal::TERM,
        By::Sigkill => Signal::KILL,
    };
    match pidfd_send_signal(watch, signal) {
        // It has exited meanwhile.
        Ok(()) | Err(rustix::io::Errno::SRCH) => {}
        Err(errno) => {
            let pid = watch.pid();
            return Err(anyhow::Error::new(errno).context(format!("cannot signal process {pid}")));
        }
    }
    Ok(watch.wait(Some(time_max))?)
}

#[cfg(not(target_os = "linux"))]
fn signal(watch: &ExitWatch, by: By, _: Duration) -> anyhow::Result<bool> {
    let pid = watch.pid();
    anyhow::bail!("cannot signal process {pid} ({by:?}): this system has no pidfd")
}
