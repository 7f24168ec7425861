//! What reads and watches sessions, for Node.js and Bun: questions in, answers of
//! [`whosup_core::reader`] and changes out, as JSON of [`WireReply`]. The package `whosup` gives them
//! types and throws the errors.

pub mod live;

use std::path::PathBuf;

use napi::bindgen_prelude::AsyncTask;
use napi::{Env, Error, Result, Task};
use napi_derive::napi;
use serde::Serialize;
use whosup_core::judging::verdict::Liveness;
use whosup_core::machine::Environment;
use whosup_core::reader::{self, IdQuery, ListQuery, ReadError, Wish};
use whosup_core::views::wire::WireReply;

/// A question that a thread beside the event loop answers.
#[derive(Debug)]
pub struct Question {
    asked: Asked,
}

#[derive(Debug)]
enum Asked {
    List {
        query: ListQuery,
        agents: Vec<String>,
    },
    Session(IdQuery),
    Liveness(IdQuery),
    Why(IdQuery),
}

impl Task for Question {
    type Output = String;
    type JsValue = String;

    fn compute(&mut self) -> Result<String> {
        match &self.asked {
            Asked::List { query, agents } => reply(
                query
                    .clone()
                    .of_agents(agents, &Environment::here())
                    .map_err(ReadError::from)
                    .and_then(|query| reader::list_sessions(&query)),
            ),
            Asked::Session(query) => reply(reader::session(query)),
            Asked::Liveness(query) => {
                let liveness = reader::liveness(query);
                reply(liveness.map(|liveness| liveness.map_or("none", Liveness::name)))
            }
            Asked::Why(query) => reply(reader::why(query)),
        }
    }

    fn resolve(&mut self, _env: Env, answer: String) -> Result<String> {
        Ok(answer)
    }
}

fn reply<T: Serialize>(answer: std::result::Result<T, ReadError>) -> Result<String> {
    serde_json::to_string(&WireReply::from(answer))
        .map_err(|error| Error::from_reason(error.to_string()))
}

/// Lists sessions.
#[napi]
pub fn list_sessions(
    is_all: bool,
    agents: Vec<String>,
    cwd: Option<String>,
) -> AsyncTask<Question> {
    let wish = Wish {
        is_all,
        work_dir: cwd.map(PathBuf::from),
        ..Wish::default()
    };
    let query = ListQuery {
        wish,
        ..ListQuery::default()
    };
    task(Asked::List { query, agents })
}

/// Describes one session.
#[napi]
pub fn session(id: String, home: Option<String>) -> AsyncTask<Question> {
    task(Asked::Session(query(id, home)))
}

/// Reports whether a session is live.
#[napi]
pub fn liveness(id: String, home: Option<String>) -> AsyncTask<Question> {
    task(Asked::Liveness(query(id, home)))
}

/// Explains the answer about one session.
#[napi]
pub fn why(id: String, home: Option<String>) -> AsyncTask<Question> {
    task(Asked::Why(query(id, home)))
}

fn task(asked: Asked) -> AsyncTask<Question> {
    AsyncTask::new(Question { asked })
}

fn query(id: String, home: Option<String>) -> IdQuery {
    IdQuery {
        id,
        home: home.map(PathBuf::from),
    }
}

/// What a fixture's world answers, for tests.
#[cfg(feature = "testing")]
#[napi]
pub fn answer_to_fixture(folder: String) -> String {
    whosup_worlds::answer_to_fixture(&PathBuf::from(folder))
}

/// What a vector's world answers, for tests.
#[cfg(feature = "testing")]
#[napi]
pub fn answer_to_vector(vector: String) -> Option<String> {
    whosup_worlds::answer_to_vector(&vector)
}
