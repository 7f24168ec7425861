//! Does what clients ask for by the commands of that name, so that nothing is decided twice.

use std::path::PathBuf;

use serde_json::json;
use whosup_core::reader::{ErrorCode, IdError, ReadError, in_full};
use whosup_core::views::wire::WireError;
use whosup_serve::{Act, Action, Actions, Refusal};

use crate::app::{App, Face, World};
use crate::commands::{dismiss, end};
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
}

impl Actions for Commands {
    fn act(&self, act: &Act) -> Result<String, Refusal> {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut app = App {
            world: World::here(self.config_file.clone()),
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
        let done = match act.action {
            Action::End => end::run(&mut app, &end::EndArgs { id }),
            Action::Dismiss => {
                let undo = &act.more["undo"];
                let undo = if undo.is_null() {
                    Some(false)
                } else {
                    undo.as_bool()
                };
                let Some(undo) = undo else {
                    return Err(Refusal::BadArgument(
                        "`undo` is neither true nor false".to_owned(),
                    ));
                };
                dismiss::run(&mut app, &dismiss::DismissArgs { id, undo })
            }
        };
        let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        match done {
            Ok(ExitStatus::Done) => Ok(words(&out)),
            Ok(_) => Err(Refusal::Conflict(words(&err))),
            Err(error) => Err(refusal(error)),
        }
    }
}

fn refusal(error: anyhow::Error) -> Refusal {
    let words = in_full(error.as_ref());
    let Ok(error) = error.downcast::<IdError>() else {
        // A session that is live, or that no record is of.
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
