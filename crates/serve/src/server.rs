//! The server: its shared state, and its life.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Semaphore, watch};
use whosup_core::machine::Machine;
use whosup_core::process::is_signal_ignored;
use whosup_core::reader::{ErrorCode, Reader, in_full};
use whosup_core::sources::config::Config;
use whosup_live::{Engine, World, WorldError};

use crate::ServeError;
use crate::access::Names;
use crate::actions::Actions;
use crate::answer::Failure;
use crate::connection;
use crate::gate::Gate;
use crate::listen::Bound;
use crate::resources::Samples;
use crate::routes;
use crate::token::Tokens;

/// How many threads answer requests.
const THREADS: usize = 2;
/// How many threads scan the machine, read files or run actions.
const LOOKING_THREADS_MAX: usize = 16;
/// How many such requests are answered at once.
const LOOKS_MAX: usize = 4;
/// How many requests may wait for such a thread.
const LOOKS_WAITING_MAX: usize = 64;
/// How many clients are sent everything on disk at once: such a look takes as long as they read.
const WALKS_MAX: usize = 4;
/// How many actions run at once: an action that stops a process may wait for the exit.
const ACTS_MAX: usize = 3;
/// How many actions may wait for a place.
const ACTS_WAITING_MAX: usize = 32;
/// How many requests may wait for the count of usage.
const COUNTS_WAITING_MAX: usize = 8;
/// How many clients may read the stream of changes.
const STREAMS_MAX: usize = 512;
/// How many descriptors the server's own threads and signals take.
const DESCRIPTORS: usize = 16;
/// How long running requests may continue when the server ends.
const END_TIME_MAX: Duration = Duration::from_secs(1);

/// The parts of a server.
pub struct Options {
    /// The engine.
    pub engine: Engine,
    /// The world for looking up single sessions: the engine's.
    pub world: Box<dyn World>,
    /// The token.
    pub tokens: Tokens,
    /// Runs and counts actions for clients.
    pub commands: Box<dyn Actions>,
    /// Clients may act.
    pub allows_actions: bool,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").finish_non_exhaustive()
    }
}

/// The shared state of all parts.
pub(crate) struct Server {
    pub(crate) engine: Engine,
    world: Mutex<Box<dyn World>>,
    pub(crate) tokens: Tokens,
    pub(crate) commands: Box<dyn Actions>,
    pub(crate) allows_actions: bool,
    pub(crate) names: Names,
    /// Wakes the streams. The engine has what there is to read.
    pub(crate) changes: watch::Sender<()>,
    pub(crate) streams: Arc<Semaphore>,
    looks: Gate,
    pub(crate) walks: Gate,
    pub(crate) acts: Gate,
    pub(crate) counts: Gate,
    /// A look for changes without events was requested and has not started.
    pub(crate) is_refreshing: AtomicBool,
    pub(crate) samples: Samples,
    pub(crate) tally: Tally,
}

/// Counters for metrics.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) requests: AtomicU64,
    pub(crate) events: AtomicU64,
    /// The time from the look that showed an event until it was written, in microseconds.
    pub(crate) event_delay_us: AtomicU64,
    pub(crate) connections: AtomicU64,
    pub(crate) refused_connections: AtomicU64,
}

/// Serves until SIGTERM, SIGINT or SIGHUP. Calls `began` once all is there to answer requests, and
/// before the first one is answered.
///
/// # Errors
///
/// [`ServeError::Runtime`] if no threads can be started, or the error of `began`.
pub fn serve<E: From<ServeError>>(
    bound: Bound,
    options: Options,
    began: impl FnOnce() -> Result<(), E>,
) -> Result<(), E> {
    try_out().map_err(ServeError::Runtime)?;
    let runtime = Builder::new_multi_thread()
        .worker_threads(THREADS)
        .max_blocking_threads(LOOKING_THREADS_MAX)
        .thread_name("whosup-serve")
        .enable_all()
        .build()
        .map_err(ServeError::Runtime)?;
    let ended = runtime.block_on(async {
        let mut signals = Signals::new().map_err(ServeError::Runtime)?;
        let server = Arc::new(Server::new(options, bound.names()));
        let router = routes::router(Arc::clone(&server));
        let accepting = bound.accept(server, router)?;
        began()?;
        tokio::select! {
            () = accepting => {}
            () = signals.any() => {}
        }
        Ok(())
    });
    runtime.shutdown_timeout(END_TIME_MAX);
    ended
}

/// Finds out whether there are threads and descriptors: tokio panics without some of them, and
/// without others it answers no request.
fn try_out() -> io::Result<()> {
    let stderr = io::stderr();
    let descriptors = (0..DESCRIPTORS).map(|_| rustix::io::dup(&stderr));
    descriptors.collect::<Result<Vec<OwnedFd>, _>>()?;
    let gate = Mutex::new(());
    thread::scope(|threads| {
        // They end when all have begun.
        let _closed = gate.lock();
        (0..THREADS + LOOKING_THREADS_MAX).try_for_each(|_| {
            let begun = thread::Builder::new().spawn_scoped(threads, || drop(gate.lock()));
            begun.map(drop)
        })
    })
}

fn bad_config(error: &WorldError) -> Failure {
    let status = axum::http::StatusCode::INTERNAL_SERVER_ERROR;
    Failure::new(status, ErrorCode::BadConfig.name(), in_full(error))
}

/// The signals that end the server.
struct Signals(Vec<tokio::signal::unix::Signal>);

impl Signals {
    fn new() -> io::Result<Self> {
        let kinds = [
            SignalKind::terminate(),
            SignalKind::interrupt(),
            SignalKind::hangup(),
        ];
        let heard = kinds.into_iter();
        let heard = heard.filter(|kind| !is_signal_ignored(kind.as_raw_value()));
        Ok(Self(heard.map(signal).collect::<Result<_, _>>()?))
    }

    async fn any(&mut self) {
        poll_fn(|context| {
            let mut signals = self.0.iter_mut();
            match signals.any(|signal| signal.poll_recv(context).is_ready()) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
    }
}

impl Server {
    fn new(options: Options, names: Names) -> Self {
        let (changes, _) = watch::channel(());
        let wake = changes.clone();
        options.engine.on_change(move || {
            wake.send_replace(());
        });
        connection::raise_limit();
        Self {
            engine: options.engine,
            world: Mutex::new(options.world),
            tokens: options.tokens,
            commands: options.commands,
            allows_actions: options.allows_actions,
            names,
            changes,
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
            looks: Gate::new(LOOKS_MAX, LOOKS_WAITING_MAX),
            walks: Gate::new(WALKS_MAX, LOOKS_WAITING_MAX),
            acts: Gate::new(ACTS_MAX, ACTS_WAITING_MAX),
            counts: Gate::new(1, COUNTS_WAITING_MAX),
            is_refreshing: AtomicBool::new(false),
            samples: Samples::new(),
            tally: Tally::default(),
        }
    }

    /// A new look at the machine, and the configuration.
    pub(crate) fn now(&self) -> (Machine, Result<Config, WorldError>) {
        let mut world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        world.now()
    }

    /// A new look at the machine.
    pub(crate) fn machine(&self) -> Machine {
        self.now().0
    }

    /// Reads the machine, in a thread that may block.
    pub(crate) async fn ask<T: Send + 'static>(
        self: &Arc<Self>,
        ask: impl FnOnce(Reader<'_>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        self.ask_through(&self.looks, ask).await
    }

    /// Reads the machine, once not too much of that kind runs.
    pub(crate) async fn ask_through<T: Send + 'static>(
        self: &Arc<Self>,
        gate: &Gate,
        ask: impl FnOnce(Reader<'_>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        self.through(gate, move |server| {
            let (machine, config) = server.now();
            let config = config.map_err(|error| bad_config(&error))?;
            ask(Reader::new(&machine, &config))
        })
        .await
    }

    /// Runs something slow, once not too many others run.
    pub(crate) async fn in_thread<T: Send + 'static>(
        self: &Arc<Self>,
        act: impl FnOnce(&Self) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        self.through(&self.looks, act).await
    }

    /// Runs something slow, once not too much of that kind runs. A client that disconnects ends
    /// nothing: the place is free only when the thread is done.
    pub(crate) async fn through<T: Send + 'static>(
        self: &Arc<Self>,
        gate: &Gate,
        act: impl FnOnce(&Self) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let inside = gate.enter().await?;
        let server = Arc::clone(self);
        let acted = tokio::task::spawn_blocking(move || {
            let _inside = inside;
            act(&server)
        });
        let acted = acted.await;
        acted.unwrap_or_else(|_| {
            Err(Failure::new(
                axum::http::StatusCode::INTERNAL_SERVER_ERROR,
                "failed",
                "the request could not be answered",
            ))
        })
    }
}
