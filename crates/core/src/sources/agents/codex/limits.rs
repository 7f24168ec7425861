//! `rate_limits` in `token_count`: the limits of the account.
//!
//! Seen in Codex 0.171.0, 2026-11: they come with each answer of the model, `primary` for
//! the short window and `secondary` for the long one; both are null for an account without
//! limits. `resets_at` is in seconds since 1970.

use serde_json::Value;

use crate::adapter::{AccountLimit, LimitRecord};
use crate::sources::agents::kit::dialect::{count_at, date_at, text_at};

/// The limits in one record.
pub(super) fn of_record(record: &Value) -> Option<LimitRecord> {
    let limits = record.pointer("/payload/rate_limits")?;
    limits.as_object()?;
    let windows = ["/primary", "/secondary"].into_iter();
    Some(LimitRecord {
        name: text_at(limits, "/limit_id").map(str::to_owned),
        recorded_at_ms: date_at(record, "/timestamp")?,
        limits: windows
            .filter_map(|window| of_window(limits.pointer(window)?))
            .collect(),
    })
}

fn of_window(window: &Value) -> Option<AccountLimit> {
    let used_percent = window.get("used_percent")?.as_f64()?;
    let resets_at = window.get("resets_at").and_then(Value::as_i64);
    (used_percent.is_finite() && used_percent >= 0.0).then_some(AccountLimit {
        window_minutes: count_at(window, "/window_minutes"),
        used_percent,
        resets_at_ms: resets_at.and_then(|at| at.checked_mul(1_000)),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn limits_are_read_as_far_as_they_are_there() {
        let record = |primary: Value, secondary: Value| {
            let limits = json!({ "limit_id": "codex", "primary": primary, "secondary": secondary });
            of_record(
                &json!({ "timestamp": "2026-11-29T14:08:43.798Z", "type": "event_msg",
                "payload": { "type": "token_count", "rate_limits": limits } }),
            )
        };
        let window =
            json!({ "used_percent": 34.5, "window_minutes": 300, "resets_at": 1_795_964_922 });
        let found = record(window, Value::Null).unwrap();
        let right = AccountLimit {
            window_minutes: Some(300),
            used_percent: 34.5,
            resets_at_ms: Some(1_795_964_922_000),
        };
        assert_eq!(found.limits, [right]);
        assert_eq!(found.name.as_deref(), Some("codex"));
        let odd = json!({ "used_percent": -3, "resets_at": 9.5 });
        assert!(
            record(odd, json!({ "window_minutes": 5 }))
                .unwrap()
                .limits
                .is_empty()
        );
        assert_eq!(
            of_record(&json!({ "payload": { "rate_limits": null } })),
            None
        );
    }
}
