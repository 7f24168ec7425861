//! The phases of sessions in the last hours, from the event logs of hooks.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Query, State};
use serde_json::{Value, json};
use whosup_core::sources::record::{PhaseSpan, SessionTimeline, read_timeline};
use whosup_core::views::wire::timestamp;

use crate::answer::{Failure, json_answer};
use crate::query::Parameters;
use crate::routes::Outcome;
use crate::server::Server;

/// The default span.
const SINCE: Duration = Duration::from_secs(6 * 3_600);
/// The longest span.
const SINCE_MAX: Duration = Duration::from_secs(7 * 24 * 3_600);

/// Answers with the phases of each session since a time.
pub(crate) async fn answer(
    State(server): State<Arc<Server>>,
    query: Query<Vec<(String, String)>>,
) -> Outcome {
    let timeline = async {
        let mut parameters = Parameters::new(query);
        let since = parameters.one("since")?;
        parameters.end()?;
        server
            .in_thread(move |server| {
                let machine = server.machine();
                let now_ms = machine.now_ms();
                let since_ms = since_ms(since.as_deref(), now_ms)?;
                let read = read_timeline(&machine, since_ms);
                let problems = read.problems.iter().map(|problem| {
                    json!({
                        "agent": problem.agent.as_ref().map(ToString::to_string),
                        "path": problem.path.as_ref().map(|path| path.to_string_lossy()),
                        "message": problem.message,
                    })
                });
                Ok(json_answer(&json!({
                    "since": timestamp(since_ms),
                    "until": timestamp(now_ms),
                    "sessions": read.found.iter().map(session).collect::<Vec<_>>(),
                    "problems": problems.collect::<Vec<_>>(),
                })))
            })
            .await
    };
    Outcome(timeline.await)
}

/// A time before now (`90m`, `6h`, `2d`) or a date.
fn since_ms(since: Option<&str>, now_ms: i64) -> Result<i64, Failure> {
    let before = |span: Duration| {
        let span_ms = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        now_ms.saturating_sub(span_ms)
    };
    let since = match since {
        None => before(SINCE),
        Some(text) => match span(text) {
            Some(span) => before(span),
            None => {
                let date: Result<jiff::Timestamp, _> = text.parse();
                let date = date.map_err(|_| {
                    Failure::bad("`since` is neither a time such as `6h` nor a date of RFC 3339")
                })?;
                date.as_millisecond()
            }
        },
    };
    Ok(since.max(before(SINCE_MAX)))
}

fn span(text: &str) -> Option<Duration> {
    let unit = text.chars().next_back()?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return None,
    };
    let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
    Some(Duration::from_secs(number.checked_mul(seconds)?))
}

fn session(timeline: &SessionTimeline) -> Value {
    let spans = timeline.spans.iter().map(|span: &PhaseSpan| {
        json!({
            "phase": span.phase.name(),
            "from": timestamp(span.from_ms),
            "until": span.until_ms.and_then(timestamp),
        })
    });
    json!({
        "agent": timeline.key.agent.to_string(),
        "session_id": timeline.key.session.to_string(),
        "work_dir": timeline.work_dir.as_ref().map(|path| path.to_string_lossy()),
        "spans": spans.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::since_ms;

    #[test]
    fn a_time_before_now_or_a_date_is_understood_and_junk_is_refused() {
        let now = 1_795_812_879_887;
        assert_eq!(since_ms(Some("90m"), now).unwrap(), now - 90 * 60_000);
        assert_eq!(since_ms(Some("2d"), now).unwrap(), now - 2 * 86_400_000);
        let date = "2026-11-27T19:00:00Z";
        let at: jiff::Timestamp = date.parse().unwrap();
        assert_eq!(since_ms(Some(date), now).unwrap(), at.as_millisecond());
        // The longest span.
        assert_eq!(
            since_ms(Some("99999999d"), now).unwrap(),
            now - 7 * 86_400_000
        );
        for junk in [
            "",
            "h",
            "-1h",
            "6",
            "6w",
            "yesterday",
            "99999999999999999999h",
            "6ö",
        ] {
            assert!(since_ms(Some(junk), now).is_err(), "{junk}");
        }
    }
}
