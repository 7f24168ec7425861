//! What a notification is about.

use serde_json::Value;
use whosup_live::Row;

/// A transition of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// It started to wait for a person.
    Waiting,
    /// It was working and is idle.
    TurnEnded,
    /// It ended, or its process exited and left nothing behind.
    Ended,
    /// Its process is gone, and no end was recorded.
    Died,
}

impl Kind {
    /// The name on the command line, in the configuration and in the JSON.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::TurnEnded => "turn-ended",
            Self::Ended => "ended",
            Self::Died => "died",
        }
    }

    /// The transition between two looks; `before` is `None` if the session was not shown, and
    /// `was_in` the phase that its process was last known in.
    ///
    /// A session that was exited when first seen is no news: it may have exited long ago, and
    /// be in the view again.
    pub(super) fn between(before: Option<&Row>, was_in: Option<&str>, after: &Row) -> Option<Self> {
        let was = |field: &str| before.and_then(|before| before.text(field));
        if after.text("liveness") == Some("exited") {
            let was_running = was("liveness").is_some_and(|was| was != "exited");
            let is_news = was_running && was("phase") != Some("ended");
            let is_orphan = after.session.get("orphan") == Some(&Value::Bool(true));
            let kind = if is_orphan { Self::Died } else { Self::Ended };
            return is_news.then_some(kind);
        }
        let is_live = after.text("liveness") == Some("live");
        match (was("phase").or(was_in), after.text("phase")?) {
            (Some("waiting"), "waiting") => None,
            (_, "waiting") => (before.is_some() || is_live).then_some(Self::Waiting),
            (Some("working"), "idle") => Some(Self::TurnEnded),
            (Some(was), "ended") => (was != "ended").then_some(Self::Ended),
            _ => None,
        }
    }
}

/// What a person can be notified of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum On {
    /// A session does this.
    Session(Kind),
    /// The sessions of a day have cost more than is set.
    Budget,
}

impl On {
    /// All of them.
    pub(crate) const ALL: [Self; 5] = [
        Self::Session(Kind::Waiting),
        Self::Session(Kind::TurnEnded),
        Self::Session(Kind::Ended),
        Self::Session(Kind::Died),
        Self::Budget,
    ];

    /// The name on the command line, in the configuration and in the JSON.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Session(kind) => kind.name(),
            Self::Budget => "budget",
        }
    }

    /// Finds it by that name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|on| on.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use whosup_live::Row;

    use super::{Kind, On};

    fn row(fields: &Value) -> Row {
        Row {
            session: fields.as_object().unwrap().clone(),
            directory: None,
        }
    }

    #[track_caller]
    fn check(before: Option<Value>, after: Value, expected: Option<Kind>) {
        let before = before.as_ref().map(row);
        let happened = Kind::between(before.as_ref(), None, &row(&after));
        assert_eq!(happened, expected, "{before:?} {after}");
    }

    fn live(phase: &str) -> Value {
        json!({ "liveness": "live", "phase": phase })
    }

    #[test]
    fn a_phase_is_news_when_it_begins() {
        let from = |phase: &str| Some(live(phase));
        check(from("working"), live("waiting"), Some(Kind::Waiting));
        check(from("waiting"), live("waiting"), None);
        check(None, live("waiting"), Some(Kind::Waiting));
        check(from("working"), live("idle"), Some(Kind::TurnEnded));
        check(from("starting"), live("idle"), None);
        check(from("waiting"), live("working"), None);
        check(None, live("idle"), None);
        check(from("idle"), live("ended"), Some(Kind::Ended));
        check(None, live("ended"), None);
        let no_phase = json!({ "liveness": "live", "phase": null });
        check(from("working"), no_phase, None);
    }

    #[test]
    fn an_exit_is_news_once_and_only_of_a_session_that_was_seen_before() {
        let exited = |orphan: bool| json!({ "liveness": "exited", "orphan": orphan });
        check(Some(live("working")), exited(true), Some(Kind::Died));
        check(Some(live("idle")), exited(false), Some(Kind::Ended));
        check(Some(live("ended")), exited(false), None);
        check(Some(exited(true)), exited(false), None);
        check(None, exited(true), None);
        let unknown = json!({ "liveness": "unknown", "phase": "idle" });
        check(Some(unknown.clone()), exited(true), Some(Kind::Died));
        check(Some(live("idle")), unknown.clone(), None);
        let waiting = json!({ "liveness": "unknown", "phase": "waiting" });
        check(Some(unknown), waiting.clone(), Some(Kind::Waiting));
        check(None, waiting, None);
    }

    #[test]
    fn names_lead_back() {
        for on in On::ALL {
            assert_eq!(On::from_name(on.name()), Some(on));
        }
        assert_eq!(On::from_name("idle"), None);
    }
}
