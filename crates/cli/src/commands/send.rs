//! `whosup send`

mod answer;
#[cfg(unix)]
mod front;
mod text;

use std::io::Read as _;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use whosup_core::adapter::phase::{Phase, WaitingFor};
use whosup_core::judging::verdict::Liveness;
use whosup_core::machine::{Machine, now_ms};
use whosup_core::process::{ExitWatch, Process};
use whosup_core::sessions::session::Session;
use whosup_core::sources::panes::{Pane, Typing, host_of};
use whosup_core::views::explain::sentence;

use super::check::status_of;
use super::show::look;
use crate::app::{App, say};
use crate::cell::{pane_words, place};
use crate::condition::is_inferred;
use crate::exit::ExitStatus;
use crate::id::IdArgs;
use crate::pane_command::run as run_command;

/// How long a text may be, in bytes.
const TEXT_BYTES_MAX: usize = 64 << 10;
/// The pause between a text and Enter: an agent takes what comes right after a paste for
/// part of the paste.
const BEFORE_ENTER: Duration = Duration::from_millis(150);

const EXAMPLES: &str = "\
Examples:
  whosup send 0a022b20 'run the tests' --enter           Type a prompt and press Enter
  whosup send 0a022b20 - < plan.md                       Paste a file; nothing is submitted
  whosup send 0a022b20 'and now?' --enter --wait         Print the answer when it is there

A text is typed only into the pane of a live session that waits for input. At a permission prompt,
in a turn, where the phase is unknown or the process is inferred, `--force` is needed. Even with
`--force`, nothing is typed unless the session's process is in the foreground of its terminal: a
shell never gets the text. Line breaks are pasted and do not submit; control characters are
removed.
Exit status: 0 typed, 1 exited, 2 refused or failed, 3 unknown, 4 no such session, 124 no answer in
time.";

#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SendArgs {
    #[command(flatten)]
    id: IdArgs,
    /// Text to type; `-` reads standard input
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    text: String,
    /// Press Enter after the text
    #[arg(long, short)]
    enter: bool,
    /// Type even at a permission prompt, in a turn, or where the phase or process is uncertain
    #[arg(long, short)]
    force: bool,
    /// Wait for the end of the turn, then print its last message
    #[arg(long, requires = "enter")]
    wait: bool,
    /// How long to wait at most, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "600", requires = "wait")]
    timeout: u32,
}

/// Types into the pane of a session.
///
/// # Errors
///
/// If the session is not found, or its pane cannot be typed into.
pub(crate) fn run(app: &mut App<'_>, arguments: &SendArgs) -> anyhow::Result<ExitStatus> {
    let text = read_text(&arguments.text)?;
    type_text(app, arguments, &text)
}

/// Types a text for a client without a terminal, and does not wait for an answer.
///
/// # Errors
///
/// See [`run`].
pub(crate) fn run_for_client(
    app: &mut App<'_>,
    id: IdArgs,
    text: &str,
    enter: bool,
    force: bool,
) -> anyhow::Result<ExitStatus> {
    let arguments = SendArgs {
        id,
        text: String::new(),
        enter,
        force,
        wait: false,
        timeout: 0,
    };
    type_text(app, &arguments, text)
}

fn type_text(app: &mut App<'_>, arguments: &SendArgs, text: &str) -> anyhow::Result<ExitStatus> {
    let typed = text::cleaned(text);
    let session = look(&app.world, &arguments.id)?.session;
    let id = crate::text::visible(session.key.session.as_str());
    let name = format!("{} session {id}", session.key.agent);
    if typed.is_empty() && !arguments.enter {
        bail!("cannot type into {name}: there is no text");
    }
    let refusal = refusal(&session);
    let is_final = refusal.is_some();
    let refusal = refusal.or_else(|| doubt(&session).filter(|_| !arguments.force));
    if let Some((why, status)) = refusal {
        say(app.err, &format!("error: cannot type into {name}: {why}"));
        if !is_final {
            say(
                app.err,
                "hint: `whosup show` shows what the session does; `--force` types the text anyway",
            );
        }
        return Ok(status);
    }
    let target = Target::of(app.world.machine(), &session)
        .with_context(|| format!("cannot type into {name}"))?;
    if typed.contains('\n') && !arguments.force {
        target.check_line_breaks(&name)?;
    }
    let sent_at_ms = now_ms();
    let failed = || format!("cannot type into {name}");
    if !typed.is_empty() {
        let paste = target.host()?.paste(target.pane, &typed);
        target.type_it(paste).with_context(failed)?;
    }
    if arguments.enter {
        if !typed.is_empty() {
            std::thread::sleep(BEFORE_ENTER);
        }
        let enter = target.host()?.enter(target.pane);
        target.type_it(enter).with_context(failed)?;
    }
    if arguments.wait {
        let time_max = Duration::from_secs(arguments.timeout.into());
        return answer::wait(app, &arguments.id, &name, sent_at_ms, time_max);
    }
    let pane = pane_words(target.pane);
    say(app.err, &format!("typed into {name} in {pane}"));
    Ok(ExitStatus::Done)
}

fn read_text(text: &str) -> anyhow::Result<String> {
    if text != "-" {
        return Ok(text.to_owned());
    }
    let mut bytes = Vec::new();
    let bound = u64::try_from(TEXT_BYTES_MAX)?.saturating_add(1);
    std::io::stdin()
        .take(bound)
        .read_to_end(&mut bytes)
        .context("cannot read the text from standard input")?;
    if bytes.len() > TEXT_BYTES_MAX {
        bail!("cannot type this text: it is longer than {TEXT_BYTES_MAX} bytes");
    }
    String::from_utf8(bytes).context("cannot type this text: it is not UTF-8")
}

/// Why a text can't be typed into a session, even with `--force`.
fn refusal(session: &Session) -> Option<(String, ExitStatus)> {
    if session.liveness() != Liveness::Live {
        let answer = session.liveness().name();
        let why = format!("it is {answer}: {}", sentence(session.verdict));
        return Some((why, status_of(session)));
    }
    let failed = |why: String| Some((why, ExitStatus::Failed));
    if session.sketch.parent.is_some() {
        return failed("it is a sub-agent, which takes no input".to_owned());
    }
    if !session.other_live.is_empty() {
        let pids: Vec<String> = session
            .other_live_pids()
            .map(|pid| pid.to_string())
            .collect();
        let pids = pids.join(", ");
        return failed(format!("it is live in other processes too: {pids}"));
    }
    if session.is_suspended() {
        return failed("its process is stopped, and would not read it".to_owned());
    }
    match &session.pane {
        Some(pane) if pane.pane.is_some() => None,
        Some(pane) if host_of(pane).is_some() => {
            let pane = pane_words(pane);
            failed(format!("its window is not known ({pane})"))
        }
        Some(pane) => failed(format!("{} takes no text from whosup", pane_words(pane))),
        None => {
            let place = place(session).unwrap_or_else(|| "no terminal".to_owned());
            failed(format!("its pane is not known ({place})"))
        }
    }
}

/// Why a text should not be typed into a session without `--force`.
fn doubt(session: &Session) -> Option<(String, ExitStatus)> {
    if is_inferred(session) {
        let why = "which process runs it is only inferred".to_owned();
        return Some((why, ExitStatus::Unknown));
    }
    let doing = session.doing();
    let failed = |why: &str| Some((why.to_owned(), ExitStatus::Failed));
    match (doing.phase, doing.waiting_for) {
        (Some(Phase::Idle), _) | (Some(Phase::Waiting), Some(WaitingFor::Prompt)) => None,
        (Some(Phase::Waiting), Some(WaitingFor::Permission)) => {
            failed("it asks for a permission, which the text would answer")
        }
        (Some(Phase::Waiting), Some(WaitingFor::Question)) => {
            failed("it asks a question, which the text would answer")
        }
        (Some(Phase::Waiting), _) => failed("it waits for something else than a prompt"),
        (Some(Phase::Working), _) => failed("it is in a turn"),
        (Some(Phase::Starting), _) => failed("it has only just started"),
        (Some(Phase::Ended), _) => failed("it has ended"),
        (None, _) => {
            let why = "what it does is not known".to_owned();
            Some((why, ExitStatus::Unknown))
        }
    }
}

/// The target of a text.
struct Target<'a> {
    machine: &'a Machine,
    pane: &'a Pane,
    process: &'a Process,
    watch: ExitWatch,
}

impl<'a> Target<'a> {
    fn of(machine: &'a Machine, session: &'a Session) -> anyhow::Result<Self> {
        let pane = session.pane.as_ref().context("its pane is not known")?;
        let process = session
            .terminal_process()
            .context("which process has its terminal is not known")?;
        let backend = machine.table().backend();
        let watch = backend.watch_exit(process.pid, &process.stamp)?;
        let watch = watch.ok_or_else(|| anyhow!("process {} has exited", process.pid))?;
        Ok(Self {
            machine,
            pane,
            process,
            watch,
        })
    }

    fn host(&self) -> anyhow::Result<&'static dyn whosup_core::sources::panes::PaneHost> {
        host_of(self.pane).ok_or_else(|| anyhow!("{} takes no text", self.pane.host))
    }

    /// Types, if the process is still there and has the pane's terminal.
    fn type_it(&self, typing: Option<Typing>) -> anyhow::Result<()> {
        let typing = typing.context("its pane host takes no text")?;
        for input in &typing.prepare {
            run_command(input)?;
        }
        for input in &typing.type_it {
            self.check_front()?;
            run_command(input)?;
        }
        Ok(())
    }

    #[cfg(unix)]
    fn check_front(&self) -> anyhow::Result<()> {
        front::check(self.machine, self.process, self.pane)?;
        if self.watch.wait(Some(Duration::ZERO))? {
            bail!("process {} has exited", self.process.pid);
        }
        Ok(())
    }

    #[cfg(not(unix))]
    fn check_front(&self) -> anyhow::Result<()> {
        let _ = (self.machine, &self.watch);
        bail!("this system does not report which process is in the foreground of a terminal")
    }

    /// A program that reads whole lines takes each line break for Enter.
    #[cfg(unix)]
    fn check_line_breaks(&self, name: &str) -> anyhow::Result<()> {
        if front::reads_lines(self.process) {
            bail!(
                "cannot type into {name}: the terminal reads line by line: each line break \
                 would be an Enter (`--force` types the text anyway)"
            );
        }
        Ok(())
    }

    #[cfg(not(unix))]
    fn check_line_breaks(&self, _: &str) -> anyhow::Result<()> {
        Ok(())
    }
}
