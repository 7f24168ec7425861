//! Metrics in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::State;
use serde_json::Value;
use whosup_core::adapter::claim::SessionKey;
use whosup_live::{Filter, Message, Rows};

use crate::answer::{Answer, body_answer};
use crate::resources;
use crate::server::{Server, Tally};

/// How many sessions have metrics of their own.
const NAMED_MAX: usize = 1_000;

/// Answers with the metrics.
pub(crate) async fn answer(State(server): State<Arc<Server>>) -> Answer {
    let mut text = String::new();
    // With too many other requests at once, the metrics lack resources.
    let used = server
        .in_thread(|server| Ok(resources::now(server)))
        .await
        .unwrap_or_default();
    if let Message::Snapshot { rows, .. } = server.engine.state(&Filter::default()) {
        let sessions: Vec<&serde_json::Map<String, Value>> =
            rows.sessions.values().map(|row| &row.session).collect();
        write_sessions(&mut text, &sessions);
        write_resources(&mut text, &rows, &used);
        write_one(
            &mut text,
            (
                "whosup_unattributed_processes",
                "gauge",
                "Agent processes without a known session.",
            ),
            count(rows.unattributed.len()),
        );
        write_one(
            &mut text,
            ("whosup_problems", "gauge", "Things that could not be read."),
            count(rows.problems.len()),
        );
    }
    write_server(&mut text, &server);
    body_answer("text/plain; version=0.0.4; charset=utf-8", text)
}

/// Name, type and help of a metric.
type Head = (&'static str, &'static str, &'static str);

fn write_head(text: &mut String, (name, kind, help): Head) {
    // Writing to a `String` can't fail.
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn write_one(text: &mut String, head: Head, value: f64) {
    write_head(text, head);
    let _ = writeln!(text, "{} {value}", head.0);
}

#[expect(clippy::cast_precision_loss, reason = "a metric")]
fn count(number: usize) -> f64 {
    number as f64
}

#[expect(clippy::cast_precision_loss, reason = "a metric")]
fn number(number: u64) -> f64 {
    number as f64
}

fn write_sessions(text: &mut String, sessions: &[&serde_json::Map<String, Value>]) {
    let word = |session: &serde_json::Map<String, Value>, field: &str| {
        let word = session.get(field).and_then(Value::as_str);
        word.unwrap_or("none").to_owned()
    };
    let mut counts: BTreeMap<[String; 3], usize> = BTreeMap::new();
    for session in sessions {
        let key = ["agent", "liveness", "phase"].map(|field| word(session, field));
        *counts.entry(key).or_default() += 1;
    }
    let name = "whosup_sessions";
    write_head(text, (name, "gauge", "Sessions that `whosup list` shows."));
    for ([agent, liveness, phase], sessions) in counts {
        let labels = labels(&[
            ("agent", &agent),
            ("liveness", &liveness),
            ("phase", &phase),
        ]);
        let _ = writeln!(text, "{name}{labels} {sessions}");
    }
    let now_s = jiff::Timestamp::now().as_duration().as_secs_f64();
    write_named(
        text,
        (
            "whosup_session_waiting_seconds",
            "gauge",
            "How long a session has waited for a person.",
        ),
        sessions,
        |session| {
            let is_waiting = word(session, "phase") == "waiting";
            let since = session.get("phase_since").filter(|_| is_waiting)?;
            Some((now_s - seconds(since)?).max(0.0))
        },
    );
    for (head, field, inner) in [
        (
            (
                "whosup_session_context_tokens",
                "gauge",
                "Tokens in the context of a session.",
            ),
            "context",
            "tokens",
        ),
        (
            (
                "whosup_session_turn_output_tokens",
                "gauge",
                "Tokens that the turn has produced.",
            ),
            "turn",
            "output_tokens",
        ),
    ] {
        write_named(text, head, sessions, |session| {
            session.get(field)?.get(inner)?.as_f64()
        });
    }
}

/// One line for each session that has a value.
fn write_named(
    text: &mut String,
    head: Head,
    sessions: &[&serde_json::Map<String, Value>],
    value: impl Fn(&serde_json::Map<String, Value>) -> Option<f64>,
) {
    let sessions = sessions.iter().copied();
    let valued = sessions.filter_map(|session| Some((session, value(session)?)));
    write_valued(text, head, valued);
}

/// The resources of each session, without daemons that several sessions share.
fn write_resources(text: &mut String, rows: &Rows, used: &[(SessionKey, Value)]) {
    for (head, field) in [
        (
            (
                "whosup_session_cpu_seconds",
                "gauge",
                "Processor time of the running processes of a session.",
            ),
            "cpu_seconds",
        ),
        (
            (
                "whosup_session_rss_bytes",
                "gauge",
                "Resident memory of the processes of a session.",
            ),
            "rss_bytes",
        ),
    ] {
        let valued = used.iter().filter_map(|(key, used)| {
            let session = &rows.sessions.get(key)?.session;
            Some((session, used["tree"][field].as_f64()?))
        });
        write_valued(text, head, valued);
    }
}

fn write_valued<'a>(
    text: &mut String,
    head: Head,
    valued: impl Iterator<Item = (&'a serde_json::Map<String, Value>, f64)>,
) {
    write_head(text, head);
    for (session, value) in valued.take(NAMED_MAX) {
        let field = |name: &str| {
            session
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let mut names = vec![("agent", field("agent")), ("session", field("session_id"))];
        if !field("home").is_empty() {
            names.push(("home", field("home")));
        }
        let _ = writeln!(text, "{}{} {value}", head.0, labels(&names));
    }
}

fn labels(pairs: &[(&str, &str)]) -> String {
    let pairs: Vec<String> = pairs
        .iter()
        .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
        .collect();
    format!("{{{}}}", pairs.join(","))
}

fn escaped(value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"");
    value.replace('\n', "\\n")
}

/// A date as seconds since 1970.
#[expect(clippy::cast_precision_loss, reason = "a metric")]
fn seconds(date: &Value) -> Option<f64> {
    let date: jiff::Timestamp = date.as_str()?.parse().ok()?;
    Some(date.as_millisecond() as f64 / 1_000.0)
}

fn write_server(text: &mut String, server: &Server) {
    write_engine(text, server);
    write_traffic(text, &server.tally);
    let streams = count(server.changes.receiver_count());
    let help = "Clients that read the stream of changes.";
    write_one(text, ("whosup_streams", "gauge", help), streams);
    let help = "Processor time of the server.";
    write_one(
        text,
        ("whosup_cpu_seconds_total", "counter", help),
        own_cpu(),
    );
    let version = labels(&[("version", env!("CARGO_PKG_VERSION"))]);
    let help = "The version of whosup.";
    write_head(text, ("whosup_build_info", "gauge", help));
    // Writing to a `String` can't fail.
    let _ = writeln!(text, "whosup_build_info{version} 1");
}

fn write_engine(text: &mut String, server: &Server) {
    let counts = server.engine.counts();
    for (name, help, value) in [
        (
            "whosup_wakeups_total",
            "Times that the engine woke up.",
            number(counts.wakeups),
        ),
        (
            "whosup_looks_total",
            "Looks that the engine took.",
            number(counts.looks),
        ),
        (
            "whosup_exits_at_once_total",
            "Exits that were published before the look that they led to.",
            number(counts.exits),
        ),
        (
            "whosup_look_seconds_total",
            "Processor time that looks took.",
            number(counts.look_us) / 1e6,
        ),
    ] {
        write_one(text, (name, "counter", help), value);
    }
}

fn write_traffic(text: &mut String, tally: &Tally) {
    let read = |count: &AtomicU64| number(count.load(Ordering::Relaxed));
    for (name, help, value) in [
        ("whosup_requests_total", "Requests.", read(&tally.requests)),
        (
            "whosup_events_total",
            "Changes that were sent, over all clients.",
            read(&tally.events),
        ),
        (
            "whosup_event_delay_seconds_total",
            "From looks to the events sent of them.",
            read(&tally.event_delay_us) / 1e6,
        ),
        (
            "whosup_connections_total",
            "Connections.",
            read(&tally.connections),
        ),
        (
            "whosup_refused_connections_total",
            "Connections that were too many.",
            read(&tally.refused_connections),
        ),
    ] {
        write_one(text, (name, "counter", help), value);
    }
}

/// The processor time of this process, in seconds.
#[expect(clippy::cast_precision_loss, reason = "a metric")]
fn own_cpu() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::labels;

    #[test]
    fn texts_in_labels_stay_in_their_quotes() {
        assert_eq!(
            labels(&[("session", "a\"} 1\nwhosup_x 2 \\")]),
            "{session=\"a\\\"} 1\\nwhosup_x 2 \\\\\"}"
        );
    }
}
