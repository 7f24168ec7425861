//! `whosup attach`

#[cfg(unix)]
mod picker;

use std::path::PathBuf;

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use whosup_core::adapter::phase::Phase;
use whosup_core::judging::verdict::Liveness;
use whosup_core::machine::Machine;
use whosup_core::process::Pid;
use whosup_core::reader::Reach;
use whosup_core::sessions::session::Session;
use whosup_core::sources::panes::{Going, Input, Pane, Panes, host_of};
use whosup_core::views::explain::sentence;

use super::resume::way_to_continue;
use super::show::look;
use crate::app::{App, World, say};
use crate::cell::{pane_words, place};
use crate::completion;
use crate::condition::words_of;
use crate::exit::ExitStatus;
use crate::id::IdArgs;
use crate::pane_command::{run as run_command, shell_line, take_over};
use crate::shell::printed;
use crate::short_id::ShortIds;
use crate::text;
use whosup_core::reader::Wording;

const EXAMPLES: &str = "\
Examples:
  whosup attach 0a022b20            Bring the session's pane to you
  whosup attach                     Choose a session; type to filter
  whosup attach --waiting           Go to the session that has waited longest
  whosup attach --print 0a022b20    Print the command for this terminal

Inside tmux, zellij or screen, your client switches to the pane. Outside, the session of the pane
is attached in this terminal. kitty and WezTerm focus their window.
Exit status: 0 done, 1 exited, 2 it cannot be shown from here, 3 unknown, 4 no such session.";

#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AttachArgs {
    /// Session ID or unique prefix, such as `0a022b20`; a list to choose from if omitted
    #[arg(
        value_name = "ID",
        conflicts_with = "waiting",
        add = ArgValueCompleter::new(completion::sessions)
    )]
    id: Option<String>,
    /// Home of the agent, where several homes have the session
    #[arg(long, value_name = "DIR", requires = "id")]
    home: Option<PathBuf>,
    /// Go to the session that has waited longest
    #[arg(long)]
    waiting: bool,
    /// Print the command instead of running it
    #[arg(long)]
    print: bool,
}

/// Shows the pane of a session to the caller.
///
/// # Errors
///
/// If the session is not found, or its pane cannot be shown from here.
pub(crate) fn run(app: &mut App<'_>, arguments: &AttachArgs) -> anyhow::Result<ExitStatus> {
    let session = match (&arguments.id, arguments.waiting) {
        (Some(id), _) => {
            let (id, home) = (id.clone(), arguments.home.clone());
            look(&app.world, &IdArgs { id, home })?.session
        }
        (None, true) => match longest_waiting(&app.world)? {
            Some(session) => session,
            None => {
                say(app.err, "no session waits");
                return Ok(ExitStatus::NoSuchSession);
            }
        },
        (None, false) => match choose(app)? {
            Choice::Taken(session) => *session,
            Choice::Refused(status) => return Ok(status),
        },
    };
    let how = if arguments.print { How::Print } else { How::Go };
    show(app, &session, how)
}

/// Shows the pane of a session for a program without a terminal: runs the commands that
/// need no terminal, and prints the command if that is not enough.
///
/// # Errors
///
/// See [`run`].
pub(crate) fn run_for_client(app: &mut App<'_>, id: &IdArgs) -> anyhow::Result<ExitStatus> {
    let session = look(&app.world, id)?.session;
    show(app, &session, How::WithoutTerminal)
}

/// How a pane is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    /// In this terminal, which another program may take over.
    Go,
    /// The command is printed.
    Print,
    /// In this terminal, but a command that needs a terminal is printed.
    WithoutTerminal,
}

fn show(app: &mut App<'_>, session: &Session, how: How) -> anyhow::Result<ExitStatus> {
    let name = format!("{} session {}", session.key.agent, id_of(session));
    match session.liveness() {
        Liveness::Live => {}
        Liveness::Exited => {
            let because = sentence(session.verdict);
            say(app.err, &format!("error: cannot show {name}: {because}"));
            if let Some(way) = way_to_continue(session) {
                say(app.err, &format!("hint: {way}"));
            }
            return Ok(ExitStatus::Exited);
        }
        Liveness::Unknown => {
            let because = sentence(session.verdict);
            say(app.err, &format!("error: cannot show {name}: {because}"));
            return Ok(ExitStatus::Unknown);
        }
    }
    let going = way_to(app.world.machine(), session)
        .ok_or_else(|| anyhow!("cannot show {name}: {}", why_not(session)))?;
    say_further_panes(app, session);
    let is_printed = match how {
        How::Go => false,
        How::Print => true,
        How::WithoutTerminal => !matches!(going, Going::Run(_)),
    };
    go(app, &name, &going, is_printed)
}

/// The live sessions, waiting sessions first.
fn live_sessions(world: &World) -> anyhow::Result<Vec<Session>> {
    let mut scanned = world.scan(&Reach::default())?;
    let is_shown =
        |session: &Session| session.liveness() == Liveness::Live && session.sketch.parent.is_none();
    scanned.snapshot.unattributed.clear();
    world.describe(&mut scanned, is_shown)?;
    let mut sessions = std::mem::take(&mut scanned.snapshot.sessions);
    sessions.retain(is_shown);
    // Within a phase, the longest wait first.
    sessions.sort_by_key(|session| {
        let doing = session.doing();
        let order = match doing.phase {
            Some(Phase::Waiting) => 0,
            Some(Phase::Idle) => 1,
            _ => 2,
        };
        (order, doing.since_ms.unwrap_or(i64::MAX))
    });
    Ok(sessions)
}

fn longest_waiting(world: &World) -> anyhow::Result<Option<Session>> {
    let mut sessions = live_sessions(world)?.into_iter();
    Ok(sessions.find(|session| session.doing().phase == Some(Phase::Waiting)))
}

/// The result of the choice.
enum Choice {
    Taken(Box<Session>),
    Refused(ExitStatus),
}

fn choose(app: &mut App<'_>) -> anyhow::Result<Choice> {
    let mut sessions = live_sessions(&app.world)?;
    let ids = ShortIds::of(&sessions);
    #[cfg(unix)]
    if picker::is_possible() && !sessions.is_empty() {
        let rows = rows(app, &sessions, &ids)?;
        let face = app.face;
        return Ok(match picker::pick(app.err, &rows, face)? {
            Some(at) => Choice::Taken(Box::new(sessions.swap_remove(at))),
            None => Choice::Refused(ExitStatus::Failed),
        });
    }
    say(app.err, "error: no session was named");
    for session in &sessions {
        say(app.err, &format!("  {}", words(session, &ids)));
    }
    say(
        app.err,
        "hint: whosup attach ID, or choose one on a terminal",
    );
    Ok(Choice::Refused(ExitStatus::Failed))
}

#[cfg(unix)]
fn rows(app: &App<'_>, sessions: &[Session], ids: &ShortIds) -> anyhow::Result<Vec<picker::Row>> {
    let config = app.world.config()?;
    let rows = sessions.iter().map(|session| {
        let state = crate::condition::State::of(session);
        picker::Row {
            state: state.words(Wording::Full),
            style: config.style(state.condition),
            text: words(session, ids),
        }
    });
    Ok(rows.collect())
}

/// A session in a line: `claude-code 0a022b20 Fix the login /w/app tmux main:api.0`.
fn words(session: &Session, ids: &ShortIds) -> String {
    let id = text::visible(ids.get(&session.key.session));
    let title = session.title().map(text::one_line).unwrap_or_default();
    let directory = session.work_dir();
    let directory = directory.map(|path| text::visible(&path.to_string_lossy()));
    let place = place(session).unwrap_or_default();
    let agent = session.key.agent.to_string();
    let state = words_of(session, Wording::Full);
    let parts = [
        agent,
        id,
        state,
        title,
        directory.unwrap_or_default(),
        place,
    ];
    let parts = parts.iter().filter(|part| !part.is_empty());
    parts.cloned().collect::<Vec<_>>().join("  ")
}

/// How the pane is reached from here.
fn way_to(machine: &Machine, session: &Session) -> Option<Going> {
    match session.pane_to_show() {
        Some(pane) => {
            let here = here(machine);
            host_of(pane)?.go(pane, here.as_ref())
        }
        None => Some(Going::Become(session.agents_own_attach()?)),
    }
}

/// The pane that this program runs in.
fn here(machine: &Machine) -> Option<Pane> {
    let own = machine.table().seen(Pid::own())?;
    let panes = Panes::ask(machine).found;
    panes.of(own, machine.table()).cloned()
}

fn why_not(session: &Session) -> String {
    match &session.pane {
        Some(pane) if host_of(pane).is_some() => {
            format!("its window is not known ({})", pane_words(pane))
        }
        Some(pane) => format!("{} lists no panes to whosup", pane_words(pane)),
        None => match place(session) {
            Some(place) => format!("no pane host shows it ({place})"),
            None => "no terminal shows it".to_owned(),
        },
    }
}

/// Names the other panes of a session that is live in several.
fn say_further_panes(app: &mut App<'_>, session: &Session) {
    let shown = session.pane_to_show();
    let panes = session
        .other_live
        .iter()
        .filter_map(|other| other.pane.as_ref());
    for pane in panes.filter(|pane| Some(*pane) != shown) {
        say(
            app.err,
            &format!("warning: it is live in {} too", pane_words(pane)),
        );
    }
}

fn go(
    app: &mut App<'_>,
    name: &str,
    going: &Going,
    is_printed: bool,
) -> anyhow::Result<ExitStatus> {
    if let Going::ByHand { why, .. } = going
        && !is_printed
    {
        let lines: Vec<String> = lines(going);
        say(
            app.err,
            &format!("error: cannot show {name} from here: {why}"),
        );
        say(
            app.err,
            &format!("hint: then run {}", text::visible(&lines.join(" && "))),
        );
        return Ok(ExitStatus::Failed);
    }
    if is_printed {
        if let Going::ByHand { why, .. } = going {
            say(app.err, &format!("warning: {why}"));
        }
        writeln!(app.out, "{}", printed(lines(going).join(" && ")))?;
        return Ok(ExitStatus::Done);
    }
    app.out.flush()?;
    follow(going).with_context(|| format!("cannot show {name} from here"))?;
    Ok(ExitStatus::Done)
}

/// Runs the commands.
fn follow(going: &Going) -> anyhow::Result<()> {
    let (commands, last) = match going {
        Going::Run(commands) => (commands.as_slice(), None),
        Going::Become(last) => (&[][..], Some(last)),
        Going::RunThenBecome(commands, last) => (commands.as_slice(), Some(last)),
        Going::ByHand { why, .. } => bail!("{why}"),
    };
    for command in commands {
        match run_command(&Input::of(command.clone())) {
            // zellij fails if there is nothing to change.
            Err(error) if error.to_string().contains("is already focused") => {}
            answer => answer?,
        }
    }
    last.map_or(Ok(()), take_over)
}

/// The commands for a shell.
fn lines(going: &Going) -> Vec<String> {
    let commands = going.commands();
    let last = commands.len().saturating_sub(1);
    let takes_over = |at| at == last && !matches!(going, Going::Run(_) | Going::ByHand { .. });
    let lines = commands.iter().enumerate();
    lines
        .map(|(at, command)| shell_line(command, takes_over(at)))
        .collect()
}

fn id_of(session: &Session) -> String {
    text::visible(session.key.session.as_str())
}
