//! What clients may do, where the user allows it.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use serde_json::{Value, json};
use whosup_core::reader::IdQuery;

use crate::answer::{Failure, json_answer};
use crate::query::Parameters;
use crate::routes::Outcome;
use crate::server::Server;
use crate::sessions::{Named, query};

/// Something to do with a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Mark as ended a session whose state can no longer be determined.
    End,
    /// Hide an exited session from default views, or show it again (`undo`).
    Dismiss,
}

/// All of them, as the dashboard is told of them.
pub(crate) const ACTIONS: &str = "end, dismiss";

/// An action that a client asks for.
#[derive(Debug)]
pub struct Act {
    /// What to do.
    pub action: Action,
    /// With which session.
    pub session: IdQuery,
    /// The body of the request: a JSON object.
    pub more: Value,
}

/// Why something was not done.
#[derive(Debug)]
pub enum Refusal {
    /// The request is wrong.
    BadArgument(String),
    /// There is no such session.
    NoSuchSession(String),
    /// Several sessions may be meant: these.
    Ambiguous(String, Value),
    /// The session is live or may be, or something else is in the way.
    Conflict(String),
    /// It could not be done.
    Failed(String),
}

/// Whoever does what clients ask for: the commands of that name.
pub trait Actions: Send + Sync {
    /// Does it, and says what was done.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if it was not done.
    fn act(&self, act: &Act) -> Result<String, Refusal>;
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let (status, code, message) = match refusal {
            Refusal::BadArgument(message) => (StatusCode::BAD_REQUEST, "bad_argument", message),
            Refusal::NoSuchSession(message) => (StatusCode::NOT_FOUND, "no_such_session", message),
            Refusal::Ambiguous(message, candidates) => {
                let failure = Self::new(StatusCode::CONFLICT, "ambiguous", message);
                return failure.with_candidates(candidates);
            }
            Refusal::Conflict(message) => (StatusCode::CONFLICT, "conflict", message),
            Refusal::Failed(message) => (StatusCode::INTERNAL_SERVER_ERROR, "failed", message),
        };
        Self::new(status, code, message)
    }
}

/// Ends a session.
pub(crate) async fn end(
    State(server): State<Arc<Server>>,
    named: Named,
    asked: Query<Vec<(String, String)>>,
    body: Bytes,
) -> Outcome {
    act(&server, Action::End, named, Parameters::new(asked), &body).await
}

/// Dismisses a session.
pub(crate) async fn dismiss(
    State(server): State<Arc<Server>>,
    named: Named,
    asked: Query<Vec<(String, String)>>,
    body: Bytes,
) -> Outcome {
    act(
        &server,
        Action::Dismiss,
        named,
        Parameters::new(asked),
        &body,
    )
    .await
}

async fn act(
    server: &Arc<Server>,
    action: Action,
    named: Named,
    mut parameters: Parameters,
    body: &Bytes,
) -> Outcome {
    let acted = async {
        let session = query(named, &mut parameters)?;
        parameters.end()?;
        let more = match body.is_empty() {
            true => json!({}),
            false => serde_json::from_slice(body)
                .map_err(|error| Failure::bad(format!("the body is no JSON: {error}")))?,
        };
        if !more.is_object() {
            return Err(Failure::bad("the body is no JSON object"));
        }
        if server.actions.is_none() {
            let message = "actions are not allowed; `whosup serve --allow-actions` allows them";
            return Err(Failure::new(
                StatusCode::FORBIDDEN,
                "actions_not_allowed",
                message,
            ));
        }
        let act = Act {
            action,
            session,
            more,
        };
        let done = server
            .in_thread(move |server| match &server.actions {
                Some(actions) => Ok(actions.act(&act)?),
                None => Ok(String::new()),
            })
            .await?;
        Ok(json_answer(&json!({ "done": done })))
    };
    Outcome(acted.await)
}
