//! `whosup top`

mod ask;
mod draw;
mod input;
mod item;
mod keys;
mod model;
mod screen;

use std::fs::File;
use std::io::{self, IsTerminal as _};
use std::os::fd::AsFd as _;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Args;
use signal_hook::consts::SIGTSTP;
use whosup_core::machine::Machine;
use whosup_core::sessions::resources::{Detail, Meter};
use whosup_live::{Engine, Filter, Message, Subscription};

use self::ask::Asking;
use self::draw::Paint;
use self::input::Input;
use self::keys::Act;
use self::model::Model;
use self::screen::Screen;
use super::watch::wakes::{Wake, Wakes};
use super::watch::{end_by, next};
use crate::app::App;
use crate::exit::ExitStatus;
use crate::text;
use crate::watched::{WatchedArgs, machine_of};

/// How often processor time and memory are measured, and ages brought up to date.
const MEASURED_EVERY: Duration = Duration::from_secs(2);
/// The shortest time between two pictures of what changed by itself.
const PICTURES_APART: Duration = Duration::from_millis(50);

const EXAMPLES: &str = "\
Examples:
  whosup top                      All sessions, by project; those that wait for you first
  whosup top --cwd .              Sessions in this directory or below
  whosup top --agent codex        Sessions of one agent

Keys: Enter details, m messages, g go to the pane, r copy the resume command, d dismiss,
/ filter, s sort, ? help, q quit. CPU and memory include child processes.";

// What `top` is asked for.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TopArgs {
    #[command(flatten)]
    watched: WatchedArgs,
}

/// Shows sessions on the whole screen until the person quits.
///
/// # Errors
///
/// If there is no terminal, or whatever kept it from watching.
pub(crate) fn run(app: &mut App<'_>, arguments: &TopArgs) -> anyhow::Result<ExitStatus> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        bail!(
            "`whosup top` needs a terminal: `whosup watch` prints each change, `whosup list` \
             what is there now"
        );
    }
    let filter = Filter {
        is_without_sub_agents: true,
        ..arguments.watched.filter()?
    };
    let wakes = Wakes::begin_on_terminal(&[SIGTSTP])?;
    let engine = Engine::start(machine_of(&app.world)?)?;
    engine.on_change(wakes.call());
    let (sender, answers) = channel();
    let mut top = Top {
        changes: engine.subscribe(filter.clone(), None),
        engine,
        filter,
        model: Model::new((0, 0), app.world.home().map(ToOwned::to_owned)),
        paint: Paint::of(app.world.config()?, app.face.is_coloured),
        meter: Meter::default(),
        asking: Asking {
            config_file: app.world.config_file().map(ToOwned::to_owned),
            answers: sender,
        },
        answers,
        wakes,
        input: Input::default(),
        // Without a buffer: what is read is waited for elsewhere.
        stdin: File::from(io::stdin().as_fd().try_clone_to_owned()?),
        screen: Screen::enter()?,
    };
    let ended = top.until_ended();
    top.screen.give_back()?;
    match ended? {
        Some(signal) => end_by(signal),
        None => Ok(ExitStatus::Done),
    }
}

struct Top {
    engine: Engine,
    changes: Subscription,
    filter: Filter,
    model: Model,
    paint: Paint,
    meter: Meter,
    asking: Asking,
    answers: Receiver<(u64, Vec<String>)>,
    wakes: Wakes,
    input: Input,
    stdin: File,
    screen: Screen,
}

impl Top {
    /// Shows what is there until the person quits; the signal, if that ended it.
    fn until_ended(&mut self) -> anyhow::Result<Option<i32>> {
        self.wakes.read_input()?;
        let mut measured = None;
        loop {
            self.take_changes()?;
            if measured.is_none_or(|at: Instant| at.elapsed() >= MEASURED_EVERY) {
                self.measure();
                measured = Some(Instant::now());
            }
            self.screen.show(&mut self.model, &self.paint)?;
            // Nothing of this is in a release: a test sees how the terminal is left.
            debug_assert!(
                std::env::var_os("WHOSUP_TOP_PANICS").is_none(),
                "a test wants this panic"
            );
            let rest = measured.map_or(MEASURED_EVERY, |at| {
                MEASURED_EVERY.saturating_sub(at.elapsed())
            });
            match self.wakes.next(Some(rest)) {
                // What comes in a burst is one picture.
                Wake::Change => std::thread::sleep(PICTURES_APART),
                Wake::Input => {
                    let is_over = self.take_input()?;
                    self.wakes.read_on();
                    if is_over {
                        return Ok(None);
                    }
                }
                Wake::Resized | Wake::TimedOut => {}
                Wake::Continued => self.screen.take()?,
                Wake::OutputClosed => return Ok(None),
                Wake::Signal(SIGTSTP) => self.suspend()?,
                Wake::Signal(signal) => return Ok(Some(signal)),
            }
        }
    }

    fn take_changes(&mut self) -> anyhow::Result<()> {
        let mut has_changed = false;
        while next(&mut self.changes)?.is_some() {
            has_changed = true;
        }
        if has_changed && let Message::Snapshot { rows, .. } = self.engine.state(&self.filter) {
            self.model.update(&rows);
        }
        for (question, lines) in self.answers.try_iter() {
            self.model.answer(question, lines);
        }
        Ok(())
    }

    fn measure(&mut self) {
        let machine = Machine::here();
        // Also of sessions that are not shown: their processes are theirs.
        if let Message::Snapshot { rows, .. } = self.engine.state(&Filter::default()) {
            let metered = rows.metered();
            self.model.used = self.meter.measure(&machine, &metered, Detail::Table);
        }
        self.model.now_ms = self.model.now_ms.max(machine.now_ms());
        self.model.settle();
    }

    /// Does what was typed; whether that is all.
    fn take_input(&mut self) -> anyhow::Result<bool> {
        // A terminal that has gone shows nothing.
        let Some(events) = self.input.read(&mut self.stdin)? else {
            return Ok(true);
        };
        for event in events {
            match self.model.take(&event) {
                None => {}
                Some(Act::Quit) => return Ok(true),
                Some(Act::Suspend) => self.suspend()?,
                Some(act) => self.act(act)?,
            }
        }
        Ok(false)
    }

    fn act(&mut self, act: Act) -> anyhow::Result<()> {
        let Some(item) = self.model.selected().cloned() else {
            return Ok(());
        };
        let note = match act {
            Act::Go => match item.named() {
                Some((id, home)) => self.go(&id, &home)?,
                None => None,
            },
            Act::Dismiss => Some(self.asking.dismiss(&item)),
            Act::Copy(line) => {
                self.screen.copy(&line)?;
                Some(format!("copied: {line}"))
            }
            Act::Ask(question) => {
                let asked = (self.model.questions, question);
                let width = self.model.size.0;
                self.asking.ask(&item, asked, width, self.wakes.call())?;
                None
            }
            Act::Quit | Act::Suspend => None,
        };
        self.model.note = note;
        Ok(())
    }

    /// Goes to a pane by `whosup attach`, which may take the terminal over until the
    /// person comes back; what it complained of.
    fn go(&mut self, id: &str, home: &std::path::Path) -> anyhow::Result<Option<String>> {
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut command = Command::new(program);
        if let Some(file) = &self.asking.config_file {
            command.arg("--config").arg(file);
        }
        command.arg("attach").arg(id).arg("--home").arg(home);
        self.screen.give_back()?;
        let ended = command
            .stderr(Stdio::piped())
            .spawn()
            .and_then(std::process::Child::wait_with_output);
        self.screen.take()?;
        let ended = ended.context("cannot run `whosup attach`")?;
        let complaint = text::one_line(&String::from_utf8_lossy(&ended.stderr));
        Ok((!complaint.is_empty()).then_some(complaint))
    }

    /// Stops, as Ctrl-Z stops a program, until it is continued.
    fn suspend(&mut self) -> anyhow::Result<()> {
        self.screen.give_back()?;
        signal_hook::low_level::emulate_default_handler(SIGTSTP)?;
        self.screen.take()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
