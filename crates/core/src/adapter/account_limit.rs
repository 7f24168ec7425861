//! Limits of the account that sessions use.

/// The limits of one kind, in the last record of them in a session.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitRecord {
    /// What is limited, in the agent's word.
    pub name: Option<String>,
    /// When they were recorded, in milliseconds since 1970.
    pub recorded_at_ms: i64,
    /// One for each window of time; none if the account has no such limit.
    pub limits: Vec<AccountLimit>,
}

/// A limit of an account.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AccountLimit {
    /// The length of the window, in minutes.
    pub window_minutes: Option<u64>,
    /// The used share, in percent.
    pub used_percent: f64,
    /// When the window starts anew, in milliseconds since 1970.
    pub resets_at_ms: Option<i64>,
}

impl LimitRecord {
    /// The limits that still hold at an instant: the window has not started anew since, and the
    /// record is not from the future.
    pub fn current(&self, now_ms: i64) -> impl Iterator<Item = &AccountLimit> {
        let is_dated = self.recorded_at_ms <= now_ms;
        self.limits.iter().filter(move |limit| {
            let ends_ms = limit.resets_at_ms.or_else(|| {
                let window_ms = i64::try_from(limit.window_minutes?).ok()?;
                self.recorded_at_ms
                    .checked_add(window_ms.checked_mul(60_000)?)
            });
            is_dated && ends_ms.is_some_and(|ends| ends > now_ms)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_holds_until_use_begins_anew() {
        let holds = |window_minutes, resets_at_ms, now_ms| {
            let record = LimitRecord {
                name: None,
                recorded_at_ms: 1_000_000,
                limits: vec![AccountLimit {
                    window_minutes,
                    used_percent: 12.5,
                    resets_at_ms,
                }],
            };
            record.current(now_ms).count() == 1
        };
        assert!(holds(Some(300), Some(2_000_000), 1_999_999));
        assert!(!holds(Some(300), Some(2_000_000), 2_000_000));
        // Without that date it holds for one window at most.
        assert!(holds(Some(1), None, 1_059_999));
        assert!(!holds(Some(1), None, 1_060_000));
        assert!(!holds(None, None, 1_000_001));
        assert!(!holds(Some(u64::MAX), None, 1_000_001));
        // The clock was set back.
        assert!(!holds(Some(300), Some(2_000_000), 999_999));
    }
}
