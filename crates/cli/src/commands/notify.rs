//! `whosup notify`

mod budget;
mod desktop;
mod kind;
mod pace;
mod phases;
mod quiet;
mod sender;
mod words;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::ensure;
use clap::Args;
use serde_json::{Map, Value, json};
use whosup_core::adapter::claim::SessionKey;
use whosup_core::reader::{in_full, real_directory};
use whosup_core::sidecar::AgentId;
use whosup_core::views::wire;
use whosup_live::{Change, Engine, Filter, Message, Row};

use self::budget::Budget;
pub(crate) use self::budget::Dollars;
use self::kind::Kind;
pub(crate) use self::kind::On;
use self::pace::{Happening, Notice, Pace};
use self::phases::Phases;
pub(crate) use self::quiet::Quiet;
use self::sender::{Sender, Way};
use self::words::Words;
use super::watch::wakes::{Wake, Wakes};
use super::watch::{end_by, next};
use crate::app::{App, say};
use crate::cli::{agent_parser, name_parser};
use crate::config::NotifyDefaults;
use crate::exit::ExitStatus;
use crate::text::{count, visible};
use crate::watched::machine_of;

const EXAMPLES: &str = "\
Examples:
  whosup notify                              Until Ctrl-C
  whosup notify --on waiting,died --cwd ~/work
  whosup notify --exec 'jq -r .summary | mail -s whosup me@example.org'
  whosup notify --budget 20                  Also when today's cost passes 20 US dollars
  whosup notify --test                       Send one notification, and report what happened
  whosup service install notify              Keep it running

Without --exec, notifications appear on the desktop. The command gets a JSON object on standard
input: `kind`, `at`, `summary`, and `sessions` as in `whosup list --json`. At most one notification
for each session and kind is sent in ten seconds, and a burst is summed up. The table `[notify]` of
config.toml has defaults and quiet hours.";

#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct NotifyArgs {
    /// Notify of this; of all that sessions do if it is not given
    #[arg(
        long,
        value_name = "KIND",
        value_delimiter = ',',
        value_parser = name_parser(On::ALL.map(On::name), On::from_name)
    )]
    on: Vec<On>,
    /// Notify when the cost of the day passes this amount
    #[arg(long, value_name = "USD", allow_negative_numbers = true)]
    budget: Option<Dollars>,
    /// Run this with `sh -c` in place of a desktop notification
    #[arg(long, value_name = "COMMAND")]
    exec: Option<String>,
    /// Only sessions of these agents
    #[arg(long, value_name = "AGENT", value_delimiter = ',', value_parser = agent_parser())]
    agent: Vec<AgentId>,
    /// Only sessions in this directory or below
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Send one notification, and report what happened
    #[arg(long)]
    test: bool,
}

/// Notifies until it is stopped.
///
/// # Errors
///
/// If it can't watch sessions or write its output.
pub(crate) fn run(app: &mut App<'_>, arguments: &NotifyArgs) -> anyhow::Result<ExitStatus> {
    let defaults = app.world.config()?.notify.clone();
    let way = way(arguments, &defaults);
    if arguments.test {
        return test(app, &way, &defaults);
    }
    way.check()?;
    let wakes = Wakes::begin()?;
    let filter = filter(arguments, &defaults)?;
    let sender = Sender::start(way, wakes.call())?;
    let engine = Engine::start(machine_of(&app.world)?)?;
    engine.on_change(wakes.call());
    let mut changes = engine.subscribe(filter, None);
    let budget = budget(app, arguments, &defaults, wakes.call())?;
    let mut notifier = Notifier::of(arguments, defaults, sender, budget);
    loop {
        while let Some(message) = next(&mut changes)? {
            notifier.hear(app, &message)?;
        }
        notifier.flush(app)?;
        notifier.hold_against_budget(app)?;
        for failure in notifier.sender.failures() {
            say(
                app.err,
                &format!("warning: {}", visible(&in_full(failure.as_ref()))),
            );
        }
        app.out.flush()?;
        let due = notifier.due();
        match wakes.next(due.map(|due| due.saturating_duration_since(Instant::now()))) {
            Wake::OutputClosed => return Ok(ExitStatus::Done),
            Wake::Signal(signal) => return end_by(signal),
            Wake::Change | Wake::Resized | Wake::Continued | Wake::Input | Wake::TimedOut => {}
        }
    }
}

fn way(arguments: &NotifyArgs, defaults: &NotifyDefaults) -> Way {
    match (&arguments.exec, &defaults.exec) {
        (Some(line), _) => Way::Command(["sh", "-c", line].map(str::to_owned).into()),
        (None, Some(argv)) => Way::Command(argv.clone()),
        (None, None) => Way::Desktop,
    }
}

/// The agents and the directory that are asked for.
fn scope<'a>(
    arguments: &'a NotifyArgs,
    defaults: &'a NotifyDefaults,
) -> (&'a Vec<AgentId>, Option<&'a PathBuf>) {
    let agents = if arguments.agent.is_empty() {
        &defaults.agent
    } else {
        &arguments.agent
    };
    (agents, arguments.cwd.as_ref().or(defaults.cwd.as_ref()))
}

/// Phase and liveness are not filtered: a transition has two sides.
fn filter(arguments: &NotifyArgs, defaults: &NotifyDefaults) -> anyhow::Result<Filter> {
    let (agents, directory) = scope(arguments, defaults);
    Ok(Filter {
        agents: agents.iter().map(ToString::to_string).collect(),
        directory: directory.map(|path| real_directory(path)).transpose()?,
        is_without_sub_agents: true,
        ..Filter::default()
    })
}

/// Begins to count costs, if they are asked for.
fn budget(
    app: &App<'_>,
    arguments: &NotifyArgs,
    defaults: &NotifyDefaults,
    wake: impl Fn() + Send + 'static,
) -> anyhow::Result<Option<Budget>> {
    let on = on(arguments, defaults);
    let limit = arguments.budget.or(defaults.budget);
    let is_asked_for = arguments.budget.is_some() || on.contains(&On::Budget);
    let Some(limit) = limit.filter(|_| is_asked_for || on.is_empty()) else {
        ensure!(
            !is_asked_for,
            "`--on budget` has no amount\nhint: `--budget 20`, or `budget = 20.0` in the table [notify] of config.toml"
        );
        return Ok(None);
    };
    let (agents, directory) = scope(arguments, defaults);
    let asked = budget::asked(agents.clone(), directory.cloned());
    let config_file = app.world.config_file().map(ToOwned::to_owned);
    Budget::start(limit, &asked, config_file, wake).map(Some)
}

/// What is asked for, on the command line or else in the configuration.
fn on<'a>(arguments: &'a NotifyArgs, defaults: &'a NotifyDefaults) -> &'a Vec<On> {
    if arguments.on.is_empty() {
        &defaults.on
    } else {
        &arguments.on
    }
}

/// Sends one notification.
fn test(app: &mut App<'_>, way: &Way, defaults: &NotifyDefaults) -> anyhow::Result<ExitStatus> {
    let machine = app.world.machine();
    let frame = json!({ "schema_version": wire::SCHEMA_VERSION });
    let frame = frame.as_object().cloned().unwrap_or_default();
    let words = Words::of_test(machine.now_ms(), &frame);
    let happened = way.send(machine.environment(), &words)?;
    writeln!(app.out, "{}", visible(&happened))?;
    let quiet = defaults.quiet;
    if quiet.is_some_and(|quiet| quiet.holds(machine.now_ms(), app.world.zone())) {
        say(
            app.err,
            "note: these are quiet hours, so no other notification is sent now",
        );
    }
    Ok(ExitStatus::Done)
}

/// The known sessions, and the notifications about their changes.
struct Notifier {
    on: Vec<On>,
    budget: Option<Budget>,
    quiet: Option<Quiet>,
    pace: Pace,
    sender: Sender,
    /// The sessions as they were last shown; `None` before the first look.
    known: Option<BTreeMap<SessionKey, Arc<Row>>>,
    phases: Phases,
    frame: Arc<Map<String, Value>>,
    as_of_ms: i64,
}

impl Notifier {
    fn of(
        arguments: &NotifyArgs,
        defaults: NotifyDefaults,
        sender: Sender,
        budget: Option<Budget>,
    ) -> Self {
        let on = on(arguments, &defaults);
        Self {
            on: if on.is_empty() {
                On::ALL.into()
            } else {
                on.clone()
            },
            budget,
            quiet: defaults.quiet,
            pace: Pace::default(),
            sender,
            known: None,
            phases: Phases::default(),
            frame: Arc::default(),
            as_of_ms: 0,
        }
    }

    fn hear(&mut self, app: &mut App<'_>, message: &Message) -> anyhow::Result<()> {
        self.as_of_ms = message.as_of_ms();
        self.budget.iter_mut().for_each(Budget::touch);
        match message {
            Message::Snapshot { rows, .. } => {
                self.frame = Arc::clone(&rows.frame);
                // The state at the start is no news. A later snapshot means that changes were lost.
                let known = self.known.replace(rows.sessions.clone());
                if known.is_none() {
                    let sessions = count(rows.sessions.len(), "session", "sessions");
                    say(app.err, &format!("watching {sessions}"));
                }
                for (key, row) in &rows.sessions {
                    match &known {
                        Some(known) => {
                            self.compare(app, key, known.get(key).map(Arc::as_ref), row)?
                        }
                        None => self.phases.note(key, row),
                    }
                }
            }
            Message::Change(place) => match place.change() {
                Change::Added { key, row } => {
                    self.compare(app, key, None, row)?;
                    self.know(key, Some(row));
                }
                Change::Changed { key, before, after } => {
                    self.compare(app, key, Some(before), after)?;
                    self.know(key, Some(after));
                }
                Change::Removed {
                    key, before, row, ..
                } => {
                    self.compare(app, key, Some(before), row)?;
                    self.know(key, None);
                }
                Change::Unattributed { .. } | Change::Problems { .. } => {}
            },
        }
        Ok(())
    }

    fn know(&mut self, key: &SessionKey, row: Option<&Arc<Row>>) {
        let known = self.known.get_or_insert_default();
        match row {
            Some(row) => known.insert(key.clone(), Arc::clone(row)),
            None => known.remove(key),
        };
    }

    fn compare(
        &mut self,
        app: &mut App<'_>,
        key: &SessionKey,
        before: Option<&Row>,
        after: &Arc<Row>,
    ) -> anyhow::Result<()> {
        let kind = Kind::between(before, self.phases.of(key, after), after);
        self.phases.note(key, after);
        let kind = kind.filter(|kind| self.on.contains(&On::Session(*kind)));
        let Some(kind) = kind else { return Ok(()) };
        let happening = Happening {
            kind,
            key: key.clone(),
            row: Arc::clone(after),
        };
        match self.pace.take(happening, Instant::now()) {
            Some(notice) => self.notify(app, &notice),
            None => Ok(()),
        }
    }

    fn flush(&mut self, app: &mut App<'_>) -> anyhow::Result<()> {
        match self.pace.flush(Instant::now()) {
            Some(notice) => self.notify(app, &notice),
            None => Ok(()),
        }
    }

    /// When there is something to do though nothing changes.
    fn due(&self) -> Option<Instant> {
        let counting = self.budget.as_ref().and_then(Budget::due);
        self.pace.due().into_iter().chain(counting).min()
    }

    fn hold_against_budget(&mut self, app: &mut App<'_>) -> anyhow::Result<()> {
        let Some(budget) = &mut self.budget else {
            return Ok(());
        };
        let limit = budget.limit();
        match budget.advance(Instant::now()) {
            Ok(Some(cost)) => {
                let words = Words::of_budget(&cost, limit, self.as_of_ms, &self.frame);
                self.send(app, words)
            }
            Ok(None) => Ok(()),
            Err(error) => {
                let words = visible(&in_full(error.as_ref()));
                say(app.err, &format!("warning: {words}"));
                Ok(())
            }
        }
    }

    fn notify(&mut self, app: &mut App<'_>, notice: &Notice) -> anyhow::Result<()> {
        let words = Words::of(notice, self.as_of_ms, &self.frame, app.world.home());
        self.send(app, words)
    }

    /// Sends a notification outside of quiet hours, and prints a line of it.
    fn send(&mut self, app: &mut App<'_>, words: Words) -> anyhow::Result<()> {
        let (zone, at_ms) = (app.world.zone(), self.as_of_ms);
        if self.quiet.is_some_and(|quiet| quiet.holds(at_ms, zone)) {
            return Ok(());
        }
        let at = app.world.local_time(at_ms).unwrap_or_default();
        let line = format!("{at} {}: {}", words.summary, words.body.join(", "));
        writeln!(app.out, "{}", visible(&line))?;
        if let Err(error) = self.sender.send(words) {
            say(app.err, &format!("warning: {error}"));
        }
        Ok(())
    }
}
