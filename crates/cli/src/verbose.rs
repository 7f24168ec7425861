//! `--verbose`: reports each step and how long it takes on standard error.
//!
//! It prints steps, paths and numbers, but no title, prompt or other text of a session, so
//! that the output can go into a bug report.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tracing::{Level, debug, enabled};
use whosup_core::machine::Machine;
use whosup_core::machine::observer::{About, Observer, Running};

use crate::text;

/// Starts to report. Without this call nothing is measured.
pub(crate) fn follow() {
    tracing_subscriber::fmt()
        .with_max_level(Level::DEBUG)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_target(false)
        .without_time()
        .try_init()
        // Already reporting: a demo got the option too.
        .ok();
}

/// Reports how long the whole command took.
pub(crate) fn end(began: Instant) {
    debug!("done in {}", words(began.elapsed()));
}

/// Runs `work`, and reports how long it took.
pub(crate) fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let done = work();
    debug!("{what}: {}", words(began.elapsed()));
    done
}

/// Looks at the machine. Each later step of the look is reported too.
pub(crate) fn look(look: &dyn Fn() -> Machine) -> Machine {
    if !enabled!(Level::DEBUG) {
        return look();
    }
    let began = Instant::now();
    let machine = look();
    let processes = match machine.table().processes() {
        Ok(processes) => format!("{} processes", processes.len()),
        Err(error) => format!("cannot be read: {error}"),
    };
    debug!("process table: {processes}, {}", words(began.elapsed()));
    let home = machine.environment().home().map(ToOwned::to_owned);
    machine.followed_by(Arc::new(Follower { home }))
}

/// Reports each step of a look when it ends.
#[derive(Debug)]
struct Follower {
    home: Option<PathBuf>,
}

impl Observer for Follower {
    fn begin(&self, about: About<'_>) -> Box<dyn Running> {
        let path = about
            .path
            .map(|path| text::path(path, self.home.as_deref()));
        let parts = [Some(about.step), about.of, path.as_deref()];
        let parts: Vec<&str> = parts.into_iter().flatten().collect();
        Box::new(Step {
            name: parts.join(" "),
            began: Instant::now(),
        })
    }
}

struct Step {
    name: String,
    began: Instant,
}

impl Running for Step {
    fn end(self: Box<Self>, found: String) {
        let took = words(self.began.elapsed());
        debug!("{}: {}, {took}", self.name, text::visible(&found));
    }
}

/// A duration to the tenth of a millisecond.
fn words(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1_000.0)
}
