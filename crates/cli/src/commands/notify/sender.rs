//! Sends notifications from a thread of its own, so that a slow command or desktop does
//! not delay the detection of changes.

use std::sync::mpsc::{Receiver, Sender as ResultSender, SyncSender, channel, sync_channel};
use std::thread::Builder;

use anyhow::Context as _;
use whosup_core::machine::Environment;

use super::desktop;
use super::words::Words;
use crate::commands::after_end::run_one;
use crate::json::write_document;

/// How many notifications may wait to be sent.
const WAITING_MAX: usize = 32;

/// How a notification reaches a person.
#[derive(Debug, Clone)]
pub(super) enum Way {
    Desktop,
    /// A program and its arguments; the document goes to standard input.
    Command(Vec<String>),
}

impl Way {
    /// Sends a notification, and returns a report.
    ///
    /// # Errors
    ///
    /// Why it could not be sent.
    pub(super) fn send(&self, environment: &Environment, words: &Words) -> anyhow::Result<String> {
        let argv = match self {
            Self::Desktop => return desktop::show(words),
            Self::Command(argv) => argv,
        };
        let mut document = Vec::new();
        write_document(&mut document, &words.document)?;
        let command = argv.join(" ");
        run_one(argv, environment, &document).with_context(|| format!("`{command}` failed"))?;
        Ok(format!("`{command}` has run"))
    }

    /// Checks whether this way works.
    ///
    /// # Errors
    ///
    /// Why not.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        match self {
            Self::Desktop => desktop::check(),
            Self::Command(_) => Ok(()),
        }
    }
}

/// The thread that sends.
#[derive(Debug)]
pub(super) struct Sender {
    queue: SyncSender<Words>,
    failures: Receiver<anyhow::Error>,
}

impl Sender {
    /// Starts the thread. `wake` is called after a failure.
    ///
    /// # Errors
    ///
    /// If the thread can't start.
    pub(super) fn start(way: Way, wake: impl Fn() + Send + 'static) -> anyhow::Result<Self> {
        let (queue, waiting) = sync_channel(WAITING_MAX);
        let (report, failures) = channel();
        let send = move || send_all(&way, &waiting, &report, &wake);
        let thread = Builder::new().name("notifications".to_owned());
        thread
            .spawn(send)
            .context("cannot start the thread that sends notifications")?;
        Ok(Self { queue, failures })
    }

    /// Queues a notification.
    ///
    /// # Errors
    ///
    /// If the queue is full.
    pub(super) fn send(&self, words: Words) -> anyhow::Result<()> {
        let sent = self.queue.try_send(words);
        sent.context("a notification was left out: those before it are still being sent")
    }

    /// The failures since the last call.
    pub(super) fn failures(&self) -> impl Iterator<Item = anyhow::Error> {
        self.failures.try_iter()
    }
}

fn send_all(
    way: &Way,
    waiting: &Receiver<Words>,
    report: &ResultSender<anyhow::Error>,
    wake: &dyn Fn(),
) {
    let environment = Environment::here();
    for words in waiting {
        if let Err(error) = way.send(&environment, &words) {
            // The receiver may have ended already.
            report.send(error).ok();
            wake();
        }
    }
}
