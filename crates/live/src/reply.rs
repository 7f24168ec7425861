//! Replies to bindings in other languages, in JSON: `{"answer": …}` or `{"error": …}`.

use std::time::Duration;

use serde_json::json;
use whosup_core::views::wire::WireError;

use crate::{Engine, Received, Subscription, Waiting, WatchError};

/// The subject of a binding: all changes, or one wait.
#[derive(Debug)]
pub enum Watched {
    /// Every change, and the engine that publishes it.
    Changes(Subscription, Engine),
    /// One wait.
    Waiting(Box<Waiting>),
}

impl Watched {
    /// The engine.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        match self {
            Self::Changes(_, engine) => engine,
            Self::Waiting(waiting) => waiting.engine(),
        }
    }

    /// The next reply in JSON, if there is one now.
    pub fn take(&mut self) -> Option<String> {
        let answered = match self {
            Self::Changes(changes, _) => match changes.next(Duration::ZERO) {
                Received::Message(message) => Ok(Some(message.to_string())),
                Received::Nothing => Ok(None),
                Received::Over(why) => Err(WatchError::Over(why)),
            },
            Self::Waiting(waiting) => {
                let waited = waiting.next(Duration::ZERO);
                waited.map(|waited| waited.map(|waited| waited.to_json().to_string()))
            }
        };
        match answered {
            Ok(answer) => answer.map(|answer| format!("{{\"answer\":{answer}}}")),
            Err(error) => Some(failed(&error)),
        }
    }
}

/// The reply in JSON that reports an error.
#[must_use]
pub fn failed(error: &WatchError) -> String {
    json!({ "error": WireError::from(error) }).to_string()
}
