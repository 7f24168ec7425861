//! The stream of changes (server-sent events).
//!
//! The server never waits for a client: a stream is produced only as fast as the client reads,
//! and a client that falls behind what is kept gets a snapshot again.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use futures_util::stream::unfold;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, sleep_until};
use whosup_live::{Cursor, Filter, Message, Received, Subscription};

use crate::actions::ACTIONS;
use crate::answer::{Answered, Failure, body_answer};
use crate::query::Parameters;
use crate::resources::{self, Sample};
use crate::routes::Outcome;
use crate::server::Server;

/// When a client reconnects, in milliseconds.
const RETRY_MS: u32 = 2_000;
/// How often a comment is sent, because proxies close silent connections, and the token is checked.
const ALIVE_EVERY: Duration = Duration::from_secs(15);
/// The maximum size of one chunk, in bytes.
const PIECE_BYTES_MAX: usize = 256 << 10;

/// Answers with a snapshot and each change of it; or, after `Last-Event-ID`, with the
/// changes since.
pub(crate) async fn answer(
    State(server): State<Arc<Server>>,
    headers: HeaderMap,
    query: Query<Vec<(String, String)>>,
) -> Outcome {
    Outcome(stream(server, &headers, Parameters::new(query)))
}

fn stream(server: Arc<Server>, headers: &HeaderMap, mut parameters: Parameters) -> Answered {
    if parameters.switch("all")? {
        return Err(Failure::bad(
            "`all` has no stream of changes; ask for `state`",
        ));
    }
    let wanted = parameters.filter()?;
    if wanted.wants_exited() {
        return Err(Failure::bad(
            "sessions that have exited or ended have no stream of changes; ask for `state`",
        ));
    }
    let after = parameters.one("after")?;
    let has_resources = parameters.switch("resources")?;
    parameters.end()?;
    let after = match headers.get("last-event-id") {
        Some(id) => id.to_str().ok().map(str::to_owned),
        None => after,
    };
    // An invalid ID, or an ID of another run, gets a snapshot.
    let after = after.and_then(|id| id.parse::<Cursor>().ok());
    let busy = || Failure::busy("too many clients read the stream; try again later");
    let can_act = server.allows_actions;
    let permit = Arc::clone(&server.streams).try_acquire_owned();
    let filter = wanted.on(|| server.machine());
    let reading = Reading {
        subscription: server.engine.subscribe(filter.clone(), after),
        samples: has_resources.then(|| resources::subscribe(&server)),
        filter,
        changes: server.changes.subscribe(),
        token: server.tokens.read().ok().map(|token| token.to_string()),
        server,
        has_begun: false,
        is_over: false,
        alive_at: Instant::now() + ALIVE_EVERY,
        _permit: permit.map_err(|_| busy())?,
    };
    let pieces = unfold(reading, |mut reading| async move {
        let piece = reading.next().await?;
        Some((Ok::<_, Infallible>(piece), reading))
    });
    let mut answer = body_answer("text/event-stream", Body::from_stream(pieces));
    let headers = answer.headers_mut();
    let no_store = HeaderValue::from_static("no-cache, no-store, no-transform");
    headers.insert(header::CACHE_CONTROL, no_store);
    let unbuffered = HeaderName::from_static("x-accel-buffering");
    headers.insert(unbuffered, HeaderValue::from_static("no"));
    if can_act {
        let actions = HeaderValue::from_static(ACTIONS);
        headers.insert(HeaderName::from_static("whosup-actions"), actions);
    }
    Ok(answer)
}

/// One client's stream.
struct Reading {
    server: Arc<Server>,
    subscription: Subscription,
    changes: watch::Receiver<()>,
    filter: Filter,
    /// The samples of resources, if they were requested.
    samples: Option<watch::Receiver<Arc<Sample>>>,
    /// The token that the stream was opened with.
    token: Option<String>,
    has_begun: bool,
    is_over: bool,
    /// When the next comment is due.
    alive_at: Instant,
    _permit: OwnedSemaphorePermit,
}

impl Reading {
    /// The next chunk; `None` when the stream has ended.
    async fn next(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        let mut piece = String::new();
        if !std::mem::replace(&mut self.has_begun, true) {
            // Writing to a `String` can't fail.
            let _ = write!(piece, "retry: {RETRY_MS}\n\n");
        }
        loop {
            if self.alive_at <= Instant::now() {
                // A revoked token ends the stream, also one that is never silent.
                if !self.is_permitted() {
                    return None;
                }
                self.alive_at = Instant::now() + ALIVE_EVERY;
                piece.push_str(":\n\n");
            }
            self.changes.mark_unchanged();
            self.take(&mut piece);
            if !piece.is_empty() {
                return Some(piece.into());
            }
            if self.is_over {
                return None;
            }
            let changed = tokio::select! {
                changed = self.changes.changed() => changed.is_ok(),
                sample = next_sample(&mut self.samples) => {
                    let data = resources::data(&self.server, &self.filter, &sample);
                    return Some(format!("event: resources\ndata: {data}\n\n").into());
                }
                () = sleep_until(self.alive_at) => true,
            };
            if !changed {
                return None;
            }
        }
    }

    fn is_permitted(&self) -> bool {
        let is_known = |token: &String| self.server.tokens.is(token);
        self.token.as_ref().is_some_and(is_known)
    }

    /// Collects what there is to send.
    fn take(&mut self, piece: &mut String) {
        while piece.len() < PIECE_BYTES_MAX {
            match self.subscription.next(Duration::ZERO) {
                Received::Message(message) => {
                    self.note(&message);
                    write_event(piece, &message);
                }
                Received::Nothing => return,
                Received::Over(_) => {
                    self.is_over = true;
                    return;
                }
            }
        }
    }

    fn note(&self, message: &Message) {
        let now_us = jiff::Timestamp::now().as_microsecond();
        if let Message::Change(_) = message {
            let delay_us = now_us.saturating_sub(message.as_of_ms().saturating_mul(1_000));
            let tally = &self.server.tally;
            tally.events.fetch_add(1, Ordering::Relaxed);
            let delay_us = u64::try_from(delay_us).unwrap_or(0);
            tally.event_delay_us.fetch_add(delay_us, Ordering::Relaxed);
        }
    }
}

/// The next sample; waits for ever if samples were not requested.
async fn next_sample(samples: &mut Option<watch::Receiver<Arc<Sample>>>) -> Arc<Sample> {
    if let Some(samples) = samples
        && samples.changed().await.is_ok()
    {
        return Arc::clone(&samples.borrow_and_update());
    }
    std::future::pending().await
}

/// One event. JSON escapes every control character, so that the data is one line whatever
/// is in the texts.
fn write_event(piece: &mut String, message: &Message) {
    // Writing to a `String` can't fail.
    let _ = write!(
        piece,
        "id: {}\nevent: {}\ndata: {message}\n\n",
        message.cursor(),
        message.kind()
    );
}
