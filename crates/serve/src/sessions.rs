//! One session: its description, its explanation, and its last messages.

use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::{Path, Query, State};
use serde_json::{Value, json};
use whosup_core::reader::IdQuery;
use whosup_core::views::wire;

use crate::answer::{Answered, Failure, json_answer};
use crate::query::Parameters;
use crate::routes::Outcome;
use crate::server::Server;

/// The maximum number of messages.
const MESSAGES_MAX: u16 = 1_000;
/// The default number of messages.
const MESSAGES: u16 = 20;

/// The agent and the ID in a path.
pub(crate) type Named = Path<(String, String)>;
/// The unparsed parameters of a request.
pub(crate) type Asked = Query<Vec<(String, String)>>;

/// Answers like `whosup show --json`.
pub(crate) async fn show(State(server): State<Arc<Server>>, named: Named, asked: Asked) -> Outcome {
    let show = async {
        let mut parameters = Parameters::new(asked);
        let query = query(named, &mut parameters)?;
        parameters.end()?;
        server
            .ask(move |reader| Ok(json!(reader.session(&query)?)))
            .await
    };
    answered(show.await)
}

/// Answers like `whosup why --json`.
pub(crate) async fn why(State(server): State<Arc<Server>>, named: Named, asked: Asked) -> Outcome {
    let why = async {
        let mut parameters = Parameters::new(asked);
        let query = query(named, &mut parameters)?;
        parameters.end()?;
        server
            .ask(move |reader| Ok(json!(reader.why(&query)?)))
            .await
    };
    answered(why.await)
}

/// Answers like `whosup show --tail N --json`.
pub(crate) async fn messages(
    State(server): State<Arc<Server>>,
    named: Named,
    asked: Asked,
) -> Outcome {
    let messages = async {
        let mut parameters = Parameters::new(asked);
        let query = query(named, &mut parameters)?;
        let tail = parameters.number("tail", MESSAGES_MAX)?.unwrap_or(MESSAGES);
        parameters.end()?;
        server
            .ask(move |reader| {
                let mut single = reader.single(&query)?;
                let found = reader.messages(&single.session, tail.into());
                let messages = found.take(&mut single.snapshot.problems);
                let mut document = json!(wire::snapshot(reader.machine(), &single.snapshot));
                let messages = messages.iter().map(|message| {
                    json!({
                        "role": message.role.name(),
                        "at": message.at_ms.and_then(wire::timestamp),
                        "text": message.text,
                    })
                });
                document["messages"] = messages.collect();
                Ok(document)
            })
            .await
    };
    answered(messages.await)
}

fn answered(document: Result<Value, Failure>) -> Outcome {
    let answered: Answered = document.map(|document| json_answer(&document));
    Outcome(answered)
}

/// The query for a session.
pub(crate) fn query(
    Path((agent, id)): Named,
    parameters: &mut Parameters,
) -> Result<IdQuery, Failure> {
    Ok(IdQuery {
        id: format!("{agent}:{id}"),
        home: parameters.one("home")?.map(PathBuf::from),
    })
}
