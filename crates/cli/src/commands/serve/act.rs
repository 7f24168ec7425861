//! Runs the actions of clients through the commands of the same names, so that each rule has
//! one implementation.

use std::path::PathBuf;

use serde_json::{Value, json};
use whosup_core::reader::{ErrorCode, IdError, ReadError, in_full};
use whosup_core::views::wire::WireError;
use whosup_serve::{Act, Action, Actions, Done, Refusal, UsageAsked};

use crate::app::{App, Face, World};
use crate::commands::{attach, dismiss, end, send, stop, usage};
use crate::exit::ExitStatus;
use crate::id::IdArgs;

/// The commands that clients may use.
pub(super) struct Commands {
    config_file: Option<PathBuf>,
}

impl Commands {
    pub(super) fn of(world: &World) -> Self {
        Self {
            config_file: world.config_file().map(ToOwned::to_owned),
        }
    }

    /// The machine as it is now.
    fn world(&self) -> World {
        World::here(self.config_file.clone())
    }
}

impl Actions for Commands {
    fn act(&self, act: &Act) -> Result<Done, Refusal> {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut app = App {
            world: self.world(),
            out: &mut out,
            err: &mut err,
            face: Face {
                is_coloured: false,
                width: None,
            },
            is_verbose: false,
        };
        let id = IdArgs {
            id: act.session.id.clone(),
            home: act.session.home.clone(),
        };
        let switch = |name| switch(&act.more, name);
        let done = match act.action {
            Action::End => end::run(&mut app, &end::EndArgs { id }),
            Action::Dismiss => {
                let undo = switch("undo")?;
                dismiss::run(&mut app, &dismiss::DismissArgs { id, undo })
            }
            Action::Send => {
                let text = text(&act.more)?;
                let (enter, force) = (switch("enter")?, switch("force")?);
                send::run_for_client(&mut app, id, text, enter, force)
            }
            Action::Attach => attach::run_for_client(&mut app, &id),
            Action::Stop => {
                let kill = switch("kill")?;
                stop::run(&mut app, &stop::StopArgs { id, kill })
            }
        };
        let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        match done {
            Ok(ExitStatus::Done) if act.action == Action::Attach => Ok(Done {
                words: words(&err),
                command: Some(words(&out)).filter(|command| !command.is_empty()),
            }),
            Ok(ExitStatus::Done) => Ok(Done {
                words: words(if out.is_empty() { &err } else { &out }),
                command: None,
            }),
            Ok(_) => Err(Refusal::Conflict(words(&err))),
            Err(error) => Err(refusal(error)),
        }
    }

    fn usage(&self, asked: &UsageAsked) -> Result<String, Refusal> {
        let since = asked.since.as_ref().map(|since| since.parse()).transpose();
        let since = since.map_err(|why| Refusal::BadArgument(format!("`since`: {why}")))?;
        let (by, agents) = (asked.by.clone(), asked.agents.clone());
        let arguments = usage::UsageArgs::of(since, by, agents, asked.directory.clone());
        let answer = usage::sum_up(&self.world(), &arguments, usage::Progress::Silent);
        let document = answer.map(|answer| json!(answer.document()).to_string());
        document.map_err(|error| Refusal::Failed(format!("{error:#}")))
    }
}

/// A Boolean field of a request; false if absent.
fn switch(more: &Value, name: &str) -> Result<bool, Refusal> {
    let value = &more[name];
    if value.is_null() {
        return Ok(false);
    }
    let wrong = || Refusal::BadArgument(format!("`{name}` is neither true nor false"));
    value.as_bool().ok_or_else(wrong)
}

fn text(more: &Value) -> Result<&str, Refusal> {
    let wrong = || Refusal::BadArgument("`text` is no text".to_owned());
    more["text"].as_str().ok_or_else(wrong)
}

fn refusal(error: anyhow::Error) -> Refusal {
    let words = in_full(error.as_ref());
    let Ok(error) = error.downcast::<IdError>() else {
        // A session that is live, or that has no record.
        return Refusal::Conflict(words);
    };
    match error.code() {
        ErrorCode::NoSuchSession | ErrorCode::NoSuchAgent => Refusal::NoSuchSession(words),
        ErrorCode::Ambiguous => {
            let error = WireError::from(&ReadError::from(error));
            Refusal::Ambiguous(words, json!(error.candidates))
        }
        ErrorCode::BadArgument => Refusal::BadArgument(words),
        _ => Refusal::Failed(words),
    }
}
