//! Waits for the end of the turn that a text began.

use std::time::{Duration, Instant};

use whosup_core::adapter::MessageRole;
use whosup_core::adapter::phase::Phase;
use whosup_core::judging::verdict::Liveness;
use whosup_core::sessions::session::Session;

use crate::app::{App, World, say};
use crate::commands::show::look;
use crate::exit::ExitStatus;
use crate::id::IdArgs;
use crate::text;

/// The time between two looks.
const STEP: Duration = Duration::from_millis(400);
/// How many of the last messages may be the answer.
const MESSAGES_MAX: usize = 50;
/// The exit status after a timeout, as of timeout(1).
const TIMED_OUT: u8 = 124;

/// Looks until the turn has ended, then prints its last message.
pub(super) fn wait(
    app: &mut App<'_>,
    id: &IdArgs,
    name: &str,
    sent_at_ms: i64,
    time_max: Duration,
) -> anyhow::Result<ExitStatus> {
    let began = Instant::now();
    let (mut has_worked, mut has_asked) = (false, false);
    while began.elapsed() < time_max {
        std::thread::sleep(STEP);
        let world = app.world.again();
        let session = look(&world, id)?.session;
        if session.liveness() == Liveness::Exited {
            say(app.err, &format!("{name} has exited"));
            return Ok(ExitStatus::Exited);
        }
        let doing = session.doing();
        has_worked |= doing.phase == Some(Phase::Working);
        if doing.phase == Some(Phase::Waiting) && !has_asked {
            has_asked = true;
            say(app.err, &format!("{name} waits for you"));
        }
        if doing.phase != Some(Phase::Idle) {
            continue;
        }
        let answer = answer(&world, &session, sent_at_ms);
        // A turn may start and end between two looks.
        let is_new = doing.since_ms.is_some_and(|since| since >= sent_at_ms);
        if has_worked || is_new || answer.is_some() {
            for line in text::lines(&answer.unwrap_or_default()) {
                writeln!(app.out, "{line}")?;
            }
            return Ok(ExitStatus::Done);
        }
    }
    let seconds = time_max.as_secs();
    say(
        app.err,
        &format!("error: no answer of {name} within {seconds} s"),
    );
    Ok(ExitStatus::OfProgram(TIMED_OUT))
}

/// The agent's last message since.
fn answer(world: &World, session: &Session, sent_at_ms: i64) -> Option<String> {
    let found = world.reader().ok()?.messages(session, MESSAGES_MAX);
    let mut last = found.found.into_iter().rev();
    let is_answer = |message: &whosup_core::adapter::Message| {
        message.role == MessageRole::Assistant && !message.text.trim().is_empty()
    };
    let answer = last.find(is_answer)?;
    let is_new = answer.at_ms.is_some_and(|at| at >= sent_at_ms);
    is_new.then_some(answer.text)
}
