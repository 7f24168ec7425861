//! The actions of clients, if the user allows them.

use std::path::PathBuf;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Value, json};
use whosup_core::reader::IdQuery;
use whosup_core::sidecar::AgentId;
use whosup_core::views::usage::By;

use crate::answer::{Failure, json_answer};
use crate::query::Parameters;
use crate::routes::Outcome;
use crate::server::Server;
use crate::sessions::{Asked, Named, query};

/// An action on a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Mark as ended a session whose state can no longer be determined.
    End,
    /// Hide an exited session from default views, or show it again (`undo`).
    Dismiss,
    /// Type `text` into the pane of a session, press `enter`.
    Send,
    /// Show the pane of a session, or name the command that does.
    Attach,
    /// End the process of a session.
    Stop,
}

impl Action {
    /// The fields that the body of a request may have.
    const fn fields(self) -> &'static [&'static str] {
        match self {
            Self::End | Self::Attach => &[],
            Self::Dismiss => &["undo"],
            Self::Send => &["text", "enter", "force"],
            Self::Stop => &["kill"],
        }
    }
}

/// All actions, in the form that the dashboard gets.
pub(crate) const ACTIONS: &str = "end, dismiss, send, attach, stop";

/// A request for an action.
#[derive(Debug)]
pub struct Act {
    /// The action.
    pub action: Action,
    /// The session.
    pub session: IdQuery,
    /// The body of the request: a JSON object.
    pub more: Value,
}

/// Why an action was not done.
#[derive(Debug)]
pub enum Refusal {
    /// The request is wrong.
    BadArgument(String),
    /// There is no such session.
    NoSuchSession(String),
    /// Several sessions match.
    Ambiguous(String, Value),
    /// The session is live or may be, or another condition prevents it.
    Conflict(String),
    /// The action failed.
    Failed(String),
}

/// The result of an action.
#[derive(Debug)]
pub struct Done {
    /// The result in words.
    pub words: String,
    /// A command for a shell, if the rest needs a terminal.
    pub command: Option<String>,
}

/// A request for usage, with the options of the command of that name.
#[derive(Debug, Default)]
pub struct UsageAsked {
    /// The keys to group by; empty: days.
    pub by: Vec<By>,
    /// A span or a date; `None`: the default of the command.
    pub since: Option<String>,
    /// Only sessions of these agents; empty: all.
    pub agents: Vec<AgentId>,
    /// Only what was used in this directory or below.
    pub directory: Option<PathBuf>,
}

/// Does what clients ask for, by running the commands of the same names.
pub trait Actions: Send + Sync {
    /// Runs an action.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if it was not done.
    fn act(&self, act: &Act) -> Result<Done, Refusal>;

    /// Sums up what sessions used, as a JSON document.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if the request is wrong or the configuration can't be used.
    fn usage(&self, asked: &UsageAsked) -> Result<String, Refusal>;
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

/// Runs an action, if the user allows it.
pub(crate) async fn act(
    action: Action,
    State(server): State<Arc<Server>>,
    named: Named,
    asked: Asked,
    body: Bytes,
) -> Outcome {
    let acted = async {
        let mut parameters = Parameters::new(asked);
        let session = query(named, &mut parameters)?;
        parameters.end()?;
        let more = match body.is_empty() {
            true => json!({}),
            false => serde_json::from_slice(&body)
                .map_err(|error| Failure::bad(format!("the body is no JSON: {error}")))?,
        };
        let Value::Object(fields) = &more else {
            return Err(Failure::bad("the body is no JSON object"));
        };
        if !server.allows_actions {
            let message = "actions are not allowed; `whosup serve --allow-actions` allows them";
            return Err(Failure::new(
                StatusCode::FORBIDDEN,
                "actions_not_allowed",
                message,
            ));
        }
        // As with parameters: the client may rely on it.
        let mut names = fields.keys();
        if let Some(name) = names.find(|name| !action.fields().contains(&name.as_str())) {
            let name = name.escape_debug();
            return Err(Failure::bad(format!("`{name}` is no field of this")));
        }
        let act = Act {
            action,
            session,
            more,
        };
        let done = server
            .through(&server.acts, move |server| Ok(server.commands.act(&act)?))
            .await?;
        Ok(json_answer(
            &json!({ "done": done.words, "command": done.command }),
        ))
    };
    Outcome(acted.await)
}
