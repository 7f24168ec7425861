//! What the processes of sessions use, sampled only while some client asked for it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::sleep;
use whosup_core::adapter::claim::SessionKey;
use whosup_core::process::{Pid, Process, ProcessTable, StartStamp};
use whosup_core::views::wire::timestamp;
use whosup_live::{Filter, Message, Row};

use crate::server::Server;

/// How often it is sampled.
const EVERY: Duration = Duration::from_secs(2);
/// How many processes one session has that are counted.
const TREE_MAX: usize = 4_096;

/// One sample.
#[derive(Debug, Default)]
pub(crate) struct Sample {
    as_of_ms: i64,
    sessions: Vec<(SessionKey, Value)>,
}

/// The samples, for who asked.
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

/// Reads the samples, and has them taken as long as it is read.
pub(crate) fn subscribe(server: &Arc<Server>) -> watch::Receiver<Arc<Sample>> {
    let receiver = server.samples.latest.subscribe();
    if !server.samples.is_sampling.swap(true, Ordering::AcqRel) {
        tokio::spawn(sample(Arc::clone(server)));
    }
    receiver
}

async fn sample(server: Arc<Server>) {
    let mut before = Before::default();
    loop {
        let looking = Arc::clone(&server);
        let sampled = tokio::task::spawn_blocking(move || {
            let sample = take(&looking, &mut before);
            (sample, before)
        });
        let Ok((sample, taken)) = sampled.await else {
            break;
        };
        before = taken;
        server.samples.latest.send_replace(Arc::new(sample));
        sleep(EVERY).await;
        if server.samples.latest.receiver_count() == 0 {
            break;
        }
    }
    server.samples.is_sampling.store(false, Ordering::Release);
    // Whoever came meanwhile saw that it was still sampled.
    if server.samples.latest.receiver_count() > 0 {
        drop(subscribe(&server));
    }
}

/// The processor time of each process at the last sample.
#[derive(Debug, Default)]
struct Before(HashMap<(Pid, StartStamp), (u64, Instant)>);

fn take(server: &Server, before: &mut Before) -> Sample {
    let machine = server.machine();
    let table = machine.table();
    let now = Instant::now();
    let children = children(table);
    let mut known = HashMap::new();
    let mut sessions = Vec::new();
    if let Message::Snapshot { rows, .. } = server.engine.state(&Filter::default()) {
        for (key, row) in &rows.sessions {
            let Some(owner) = owner(table, row) else {
                continue;
            };
            let tree = tree(owner, &children);
            let of_tree: Vec<Used> = tree
                .iter()
                .map(|one| before.used(one, now, &mut known))
                .collect();
            sessions.push((key.clone(), resources(owner, &of_tree)));
        }
    }
    before.0 = known;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    Sample {
        as_of_ms: i64::try_from(now.unwrap_or_default().as_millis()).unwrap_or(i64::MAX),
        sessions,
    }
}

/// The session's process, if it is still the same. A daemon's numbers are no session's.
fn owner<'a>(table: &'a ProcessTable, row: &Row) -> Option<&'a Process> {
    let owner = row.session.get("owner")?;
    let pid = Pid::new(owner["pid"].as_i64()?).ok()?;
    let process = table.seen(pid)?;
    let is_same = owner["start_stamp"].as_str() == Some(&process.stamp.to_string());
    (is_same && !process.is_exited).then_some(process)
}

fn children(table: &ProcessTable) -> HashMap<Pid, Vec<&Process>> {
    let mut children: HashMap<Pid, Vec<&Process>> = HashMap::new();
    for process in table.processes().into_iter().flatten() {
        if let Some(parent) = process.ppid {
            children.entry(parent).or_default().push(process);
        }
    }
    children
}

/// A process and all below it, itself first.
fn tree<'a>(owner: &'a Process, children: &HashMap<Pid, Vec<&'a Process>>) -> Vec<&'a Process> {
    let mut tree = vec![owner];
    let mut at = 0;
    while let Some(process) = tree.get(at)
        && tree.len() < TREE_MAX
    {
        let below = children.get(&process.pid);
        tree.extend(below.into_iter().flatten());
        at += 1;
    }
    tree
}

/// What one process uses.
struct Used {
    cpu_percent: Option<f64>,
    cpu_seconds: Option<f64>,
    rss_bytes: Option<u64>,
}

impl Before {
    #[expect(clippy::cast_precision_loss, reason = "shown to a person")]
    fn used(
        &self,
        process: &Process,
        now: Instant,
        known: &mut HashMap<(Pid, StartStamp), (u64, Instant)>,
    ) -> Used {
        let key = (process.pid, process.stamp.clone());
        let cpu_ms = process.cpu_ms.as_ref().ok().copied();
        let cpu_percent = cpu_ms.and_then(|cpu_ms| {
            let (before_ms, at) = self.0.get(&key)?;
            let passed_ms = now.saturating_duration_since(*at).as_secs_f64() * 1_000.0;
            let used_ms = cpu_ms.saturating_sub(*before_ms) as f64;
            (passed_ms > 0.0).then(|| (used_ms / passed_ms * 1_000.0).round() / 10.0)
        });
        if let Some(cpu_ms) = cpu_ms {
            known.insert(key, (cpu_ms, now));
        }
        Used {
            cpu_percent,
            cpu_seconds: cpu_ms.map(|cpu_ms| cpu_ms as f64 / 1_000.0),
            rss_bytes: process.rss_bytes.as_ref().ok().copied(),
        }
    }
}

/// As in the wire format.
fn resources(owner: &Process, tree: &[Used]) -> Value {
    let sum = |of: fn(&Used) -> Option<f64>| {
        let parts: Vec<f64> = tree.iter().filter_map(of).collect();
        (!parts.is_empty()).then(|| (parts.iter().sum::<f64>() * 1_000.0).round() / 1_000.0)
    };
    let rss = tree.iter().filter_map(|used| used.rss_bytes);
    let own = tree.first();
    json!({
        "owner": {
            "cpu_percent": own.and_then(|own| own.cpu_percent),
            "cpu_seconds": own.and_then(|own| own.cpu_seconds),
            "rss_bytes": own.and_then(|own| own.rss_bytes),
            "pss_bytes": null,
            "read_bytes": null,
            "write_bytes": null,
            "threads": owner.threads,
        },
        "tree": {
            "processes": tree.len(),
            "cpu_percent": sum(|used| used.cpu_percent),
            "cpu_seconds": sum(|used| used.cpu_seconds),
            "rss_bytes": rss.fold(None, |sum, rss| Some(sum.unwrap_or(0) + rss)),
        },
    })
}

/// The sample as an event's data, of the sessions that one client is shown.
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
