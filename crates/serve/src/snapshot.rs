//! The current sessions.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use futures_util::stream::unfold;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use whosup_core::reader::{Filter, Form, ListQuery, Reader, Wish};
use whosup_core::sessions::session::Session;
use whosup_core::views::wire::{self, WireSession, WireSnapshot};

use crate::answer::{Answer, Answered, Failure, body_answer};
use crate::query::{Parameters, WantedSessions};
use crate::routes::Outcome;
use crate::server::Server;

/// How many chunks of a long answer may wait for the client.
const PIECES_MAX: usize = 16;
/// How long the walk waits for the client to read one of them.
const PIECE_TIME_MAX: Duration = Duration::from_secs(10);
/// The size of a chunk, in bytes.
const PIECE_BYTES: usize = 32 << 10;

/// Answers with a snapshot: what the engine knows, after a new look if requested; or with `all`,
/// everything on disk, as it is found.
pub(crate) async fn answer(
    State(server): State<Arc<Server>>,
    headers: HeaderMap,
    query: Query<Vec<(String, String)>>,
) -> Outcome {
    Outcome(snapshot(&server, &headers, Parameters::new(query)).await)
}

async fn snapshot(
    server: &Arc<Server>,
    headers: &HeaderMap,
    mut parameters: Parameters,
) -> Answered {
    let wanted = parameters.filter()?;
    let is_all = parameters.switch("all")?;
    let is_fresh = parameters.switch("fresh")?;
    parameters.end()?;
    if is_all || wanted.wants_exited() {
        return everything(server, query(wanted, is_all)).await;
    }
    let filter = wanted.on(|| server.machine());
    if is_fresh {
        server
            .in_thread(|server| Ok(server.engine.refresh()))
            .await?;
    } else {
        look_soon(server);
    }
    let message = server.engine.state(&filter);
    // A link may lead to another directory than before, though no session has changed.
    let mut directory = DefaultHasher::new();
    filter.directory.hash(&mut directory);
    let tag = format!("W/\"{}-{:x}\"", message.cursor(), directory.finish());
    let known = headers.get(header::IF_NONE_MATCH);
    let known = known
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let is_known = known.split(',').any(|one| one.trim() == tag);
    let mut answer = if is_known {
        let mut answer = Answer::new(Body::empty());
        *answer.status_mut() = StatusCode::NOT_MODIFIED;
        answer
    } else {
        body_answer("application/json", message.to_string())
    };
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        answer.headers_mut().insert(header::ETAG, tag);
    }
    Ok(answer)
}

/// Requests a look for changes without events; the next request sees the result.
fn look_soon(server: &Arc<Server>) {
    if !server.is_refreshing.swap(true, Ordering::AcqRel) {
        let server = Arc::clone(server);
        tokio::task::spawn_blocking(move || {
            server.engine.refresh();
            server.is_refreshing.store(false, Ordering::Release);
        });
    }
}

/// Every session on disk, or those that are wanted, each sent when it is found.
async fn everything(server: &Arc<Server>, query: ListQuery) -> Answered {
    let wish = query.wish.clone();
    // A wrong request is reported before the answer begins.
    server
        .ask(move |reader| {
            Filter::new(wish, reader.machine())?;
            Ok(())
        })
        .await?;
    let (sender, receiver) = mpsc::channel(PIECES_MAX);
    let server = Arc::clone(server);
    tokio::spawn(async move {
        let failed = sender.clone();
        let walk = move |reader: Reader<'_>| walk(reader, &query, sender);
        let walked = server.ask_through(&server.walks, walk).await;
        if let Err(failure) = walked {
            // What was sent so far is incomplete, and must not look complete.
            let error = io::Error::other(format!("{failure:?}"));
            failed.send(Err(error)).await.ok();
        }
    });
    let pieces = unfold(receiver, |mut receiver| async {
        let piece: io::Result<Bytes> = receiver.recv().await?;
        Some((piece, receiver))
    });
    Ok(body_answer("application/json", Body::from_stream(pieces)))
}

fn query(wanted: WantedSessions, is_all: bool) -> ListQuery {
    ListQuery {
        wish: Wish {
            is_all,
            work_dir: wanted.work_dir,
            liveness: wanted.liveness,
            phases: wanted.phases,
            since_ms: None,
        },
        agents: wanted.agents,
        ..ListQuery::default()
    }
}

fn walk(
    reader: Reader<'_>,
    query: &ListQuery,
    sender: mpsc::Sender<io::Result<Bytes>>,
) -> Result<(), Failure> {
    let mut pieces = Pieces {
        reader,
        sender,
        piece: String::new(),
        is_first: true,
        is_wanted: true,
    };
    let chosen = reader.choose(query, &mut pieces)?;
    let WireSnapshot {
        schema_version,
        taken_at,
        host,
        unattributed,
        problems,
        ..
    } = wire::snapshot(reader.machine(), &chosen.rest);
    if pieces.is_first {
        pieces.piece.push_str("{\"sessions\":[");
    }
    let rest = json!({
        "schema_version": schema_version,
        "taken_at": taken_at,
        "host": host,
        "unattributed": unattributed,
        "problems": problems,
    });
    // The rest of the document follows the sessions.
    let rest = rest.to_string();
    pieces.piece.push_str("],");
    pieces.piece.push_str(rest.trim_start_matches('{'));
    pieces.send();
    if !pieces.is_wanted {
        return Err(Failure::busy("the client does not read"));
    }
    Ok(())
}

/// Sessions on their way to a client.
struct Pieces<'a> {
    reader: Reader<'a>,
    sender: mpsc::Sender<io::Result<Bytes>>,
    piece: String,
    is_first: bool,
    /// The client is connected, and reads.
    is_wanted: bool,
}

impl Pieces<'_> {
    fn send(&mut self) {
        let piece = Ok(std::mem::take(&mut self.piece).into());
        if self.is_wanted {
            let sending = self.sender.send_timeout(piece, PIECE_TIME_MAX);
            self.is_wanted = Handle::current().block_on(sending).is_ok();
        }
    }
}

impl Form for Pieces<'_> {
    type Row = ();
    const NEEDS_IDS: bool = false;

    fn row(&mut self, session: &Session) {
        if !self.is_wanted {
            return;
        }
        let opening = if self.is_first {
            "{\"sessions\":["
        } else {
            ","
        };
        self.is_first = false;
        self.piece.push_str(opening);
        let session: WireSession = wire::session(self.reader.machine(), session);
        let session: Value = json!(session);
        self.piece.push_str(&session.to_string());
        if self.piece.len() >= PIECE_BYTES {
            self.send();
        }
    }
}
