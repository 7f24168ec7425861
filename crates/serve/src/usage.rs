//! The usage of sessions, like `whosup usage --json`.

use std::sync::Arc;

use axum::extract::State;
use whosup_core::views::usage::By;

use crate::actions::UsageAsked;
use crate::answer::{Failure, body_answer};
use crate::query::Parameters;
use crate::routes::Outcome;
use crate::server::Server;
use crate::sessions::Asked;

/// Answers with the document of the command.
pub(crate) async fn answer(State(server): State<Arc<Server>>, asked: Asked) -> Outcome {
    let answer = async {
        let mut parameters = Parameters::new(asked);
        let asked = question(&mut parameters)?;
        parameters.end()?;
        let document = server
            .through(&server.counts, move |server| {
                Ok(server.commands.usage(&asked)?)
            })
            .await?;
        Ok(body_answer("application/json", document))
    };
    Outcome(answer.await)
}

fn question(parameters: &mut Parameters) -> Result<UsageAsked, Failure> {
    let by = parameters.all("by").into_iter();
    let by = by.flat_map(|names| names.split(',').map(by_of).collect::<Vec<_>>());
    Ok(UsageAsked {
        by: by.collect::<Result<_, _>>()?,
        since: parameters.one("since")?,
        agents: parameters.agents()?.into_iter().collect(),
        directory: parameters.directory()?,
    })
}

fn by_of(name: &str) -> Result<By, Failure> {
    By::from_name(name).ok_or_else(|| {
        let names = By::ALL.map(By::name).join(", ");
        Failure::bad(format!(
            "`by` is one or several of {names}, with commas between them"
        ))
    })
}
