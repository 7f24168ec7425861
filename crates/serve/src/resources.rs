//! The resources of sessions, sampled only while a client wants them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::sleep;
use whosup_core::adapter::claim::SessionKey;
use whosup_core::sessions::resources::{Detail, Meter};
use whosup_core::views::wire::{resources, timestamp};
use whosup_live::{Filter, Message};

use crate::server::Server;

/// The time between two samples.
const EVERY: Duration = Duration::from_secs(2);

/// One sample.
#[derive(Debug, Default)]
pub(crate) struct Sample {
    as_of_ms: i64,
    sessions: Vec<(SessionKey, Value)>,
}

/// The samples for all clients.
#[derive(Debug)]
pub(crate) struct Samples {
    latest: watch::Sender<Arc<Sample>>,
    is_sampling: AtomicBool,
}

impl Samples {
    pub(crate) fn new() -> Self {
        Self {
            latest: watch::channel(Arc::default()).0,
            is_sampling: AtomicBool::new(false),
        }
    }
}

/// Subscribes to the samples, and keeps the sampling running.
pub(crate) fn subscribe(server: &Arc<Server>) -> watch::Receiver<Arc<Sample>> {
    let receiver = server.samples.latest.subscribe();
    if !server.samples.is_sampling.swap(true, Ordering::AcqRel) {
        tokio::spawn(sample(Arc::clone(server)));
    }
    receiver
}

async fn sample(server: Arc<Server>) {
    let mut meter = Meter::default();
    loop {
        let looking = Arc::clone(&server);
        let sampled = tokio::task::spawn_blocking(move || {
            let sample = take(&looking, &mut meter);
            (sample, meter)
        });
        let Ok((sample, used)) = sampled.await else {
            break;
        };
        meter = used;
        server.samples.latest.send_replace(Arc::new(sample));
        sleep(EVERY).await;
        if server.samples.latest.receiver_count() == 0 {
            break;
        }
    }
    server.samples.is_sampling.store(false, Ordering::Release);
    // A client that came meanwhile saw that sampling goes on.
    if server.samples.latest.receiver_count() > 0 {
        drop(subscribe(&server));
    }
}

fn take(server: &Server, meter: &mut Meter) -> Sample {
    let machine = server.machine();
    let Message::Snapshot { rows, .. } = server.engine.state(&Filter::default()) else {
        return Sample::default();
    };
    let used = meter.measure(&machine, &rows.metered(), Detail::Table);
    let sessions = used.into_iter();
    Sample {
        as_of_ms: machine.now_ms(),
        sessions: sessions
            .map(|(key, used)| (key, json!(resources(&used))))
            .collect(),
    }
}

/// The current resources of each live session, without percentages.
pub(crate) fn now(server: &Server) -> Vec<(SessionKey, Value)> {
    take(server, &mut Meter::default()).sessions
}

/// The sample as an event's data, for the sessions that the client is shown.
pub(crate) fn data(server: &Server, filter: &Filter, sample: &Sample) -> String {
    let Message::Snapshot { rows, .. } = server.engine.state(filter) else {
        return String::new();
    };
    let shown = sample.sessions.iter().filter_map(|(key, resources)| {
        let session = &rows.sessions.get(key)?.session;
        Some(json!({
            "agent": session.get("agent"),
            "session_id": session.get("session_id"),
            "home": session.get("home"),
            "resources": resources,
        }))
    });
    let sessions: Vec<Value> = shown.collect();
    json!({ "kind": "resources", "as_of": timestamp(sample.as_of_ms), "sessions": sessions })
        .to_string()
}
