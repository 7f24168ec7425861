//! `whosup hook`

#[cfg(not(unix))]
#[path = "hook/input_by_thread.rs"]
mod input;
#[cfg(unix)]
mod input;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use clap::Args;
use whosup_core::machine::{Environment, now_ms};
use whosup_core::process::{Pid, system_backend};
use whosup_core::reader::in_full;
use whosup_core::sidecar::AgentId;
use whosup_core::sources::agents::adapter;
use whosup_track::{HookWorld, Prompts, TrackError, note_problem, receive};

use super::after_end::{self, AFTERMATH};
use crate::app::App;
use crate::config;
use crate::exit::ExitStatus;

/// How long the hook may be blocked by one and the same thing once it has read the event.
const BLOCKED_MAX: Duration = Duration::from_secs(1);
/// How long it may take in all, where very much runs at once and it has to wait for a
/// processor. An agent waits longer for a hook: Claude Code 2.1.332 a minute.
const TIME_MAX: Duration = Duration::from_secs(30);
/// How often it is looked at meanwhile.
const STEP: Duration = Duration::from_millis(50);

const EXAMPLES: &str = "\
Examples:
  whosup hook claude-code < event.json

Agents run this command from their hook settings. It prints nothing. Errors go to `hook.log`
beside the records, in ~/.local/state/whosup.

Exit status: always 0, since an agent takes another one for an answer.";

#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct HookArgs {
    /// The agent that runs this hook, as listed by `whosup agents`
    #[arg(value_name = "AGENT")]
    agent: String,
    /// The event name, for agents that leave it out of the payload
    #[arg(value_name = "EVENT", allow_hyphen_values = true)]
    event: Option<String>,
    /// Whatever an agent adds: passed over
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<std::ffi::OsString>,
}

/// Records the event on standard input. Always succeeds: a hook must neither stop its
/// agent nor print anything.
pub(crate) fn run(app: &App<'_>, arguments: &HookArgs) -> ExitStatus {
    let environment = Environment::here();
    let at_ms = now_ms();
    // The agent would read the message of a panic.
    std::panic::set_hook(Box::new(|_| {}));
    let recorded = catch_unwind(AssertUnwindSafe(|| {
        record(app, arguments, &environment, at_ms)
    }));
    let message = match recorded {
        Ok(Ok(())) => return ExitStatus::Done,
        Ok(Err(error)) => in_full(error.as_ref()),
        Err(_) => "it broke off".to_owned(),
    };
    note_problem(&environment, at_ms, &arguments.agent, &message);
    ExitStatus::Done
}

/// Whether the command line asks for this command, well formed or not.
pub(crate) fn is_asked_for() -> bool {
    std::env::args_os()
        .nth(1)
        .is_some_and(|first| first == "hook")
}

/// Notes a usage error in the log of hooks. Succeeds all the same.
pub(crate) fn note_usage(error: &clap::Error) -> ExitStatus {
    let message = error.kind().to_string();
    note_problem(&Environment::here(), now_ms(), "hook", &message);
    ExitStatus::Done
}

fn record(
    app: &App<'_>,
    arguments: &HookArgs,
    environment: &Environment,
    now_ms: i64,
) -> anyhow::Result<()> {
    let payload = input::read()?;
    end_in_time();
    let agent = arguments.agent.as_str();
    let known = AgentId::parse(agent).ok().and_then(|agent| adapter(&agent));
    let adapter = known.ok_or_else(|| TrackError::UnknownAgent {
        agent: agent.to_owned(),
    })?;
    // A broken configuration may say that prompts are private.
    let (prompts, problem) = match app.world.config_in(environment) {
        Ok(config) if config.reading.prompts == config::Prompts::Show => (Prompts::Keep, None),
        Ok(_) => (Prompts::Drop, None),
        Err(error) => (Prompts::Drop, Some(error)),
    };
    let world = HookWorld {
        environment: environment.clone(),
        backend: system_backend(),
        hook: Pid::own(),
        event: arguments.event.clone(),
        now_ms,
        prompts,
        is_aftermath: environment.variable(AFTERMATH).is_some(),
    };
    if let Some(ended) = receive(adapter, &payload, &world)? {
        after_end::start(app, environment, &[ended]);
    }
    problem.map_or(Ok(()), |error| Err(error.into()))
}

/// Ends this process in time, whatever blocks it (a file system that does not answer, for
/// example): the agent waits for its hook.
#[expect(clippy::exit, reason = "what waits can't be interrupted")]
fn end_in_time() {
    let watch = || {
        let began = Instant::now();
        let mut blocked = Duration::ZERO;
        let mut last = String::new();
        while blocked < BLOCKED_MAX && began.elapsed() < TIME_MAX {
            let asleep = Instant::now();
            std::thread::sleep(STEP);
            // Woken late: whatever it waits for may wait for a processor, too.
            let is_busy = asleep.elapsed() > STEP * 3 / 2;
            let waited = waits();
            blocked = match &waited {
                Some(now) if *now == last && is_busy => blocked,
                Some(now) if *now == last => blocked + STEP,
                _ => Duration::ZERO,
            };
            last = waited.unwrap_or_default();
        }
        std::process::exit(0);
    };
    // Without a thread, the event is recorded all the same.
    std::thread::Builder::new().spawn(watch).ok();
}

/// How often the main thread has waited for something, while it waits; `None` while it runs,
/// or only waits for a processor (`State` and `voluntary_ctxt_switches` of
/// proc_pid_status(5)). Where that is not known it is taken to wait.
fn waits() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let mut lines = status.lines();
        let text = lines.find_map(|line| line.strip_prefix(name));
        text.unwrap_or_default().trim().to_owned()
    };
    (!field("State:").starts_with('R')).then(|| field("voluntary_ctxt_switches:"))
}

/// The input is a complete JSON value: nothing can follow it.
fn is_whole(input: &[u8]) -> bool {
    input.trim_ascii_end().ends_with(b"}")
        && serde_json::from_slice::<serde::de::IgnoredAny>(input).is_ok()
}
