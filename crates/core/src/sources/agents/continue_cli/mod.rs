//! Continue CLI (`cn`, npm `@continuedev/cli`).
//!
//! What it leaves below the home (`CONTINUE_GLOBAL_DIR`, `~/.continue`). Seen in Continue
//! CLI 1.5.47, 2026-11. What has a star was read in the bundle, or in the source of the
//! editor extensions, and not seen.
//!
//! | File | Written | Shows |
//! |---|---|---|
//! | `sessions/UUID.json` | as a whole at each step, from the first prompt on; with `-p` once, at the end | conversation, title and directory; no date |
//! | `sessions/sessions.json` | at the same times | of each session title, directory, and the date of the first record |
//!
//! No file names a process, no file is locked or kept open, the terminal's title does not
//! change, and nothing is removed at the end. So a process and a session are matched by
//! the rules that hold for all agents: the session is the only one that was used in the
//! directory of the process since the process began, and a person typed in the terminal.
//! Otherwise the session is unknown, with the process as the candidate.
//!
//! - `--resume` resumes the file that was modified last, of whatever directory, and the
//!   session keeps the directory that it has. Such a process may serve any session.
//! - `/clear`, `/resume` and `--fork` begin a new session. So a process without `--resume`
//!   works in no session that is older than the process.
//! - The extensions for editors keep sessions in the same place*, with a URI for the
//!   directory. Nothing shows which editor has a session open, so that these sessions are
//!   never called exited.
//! - A `.env` file in the directory of the process may move the home*. It is not read:
//!   sessions in such a home are not found, and the process is listed without a session.

mod document;
mod process;
mod scan;

use serde_json::Value;
use whosup_sidecar::AgentId;

use self::document::{BYTES_MAX, DIALECT};
use crate::adapter::{Adapter, Description, Message, Profile, Sketch, Watched};
use crate::machine::problem::{Found, Problem};
use crate::sources::agents::kit::document::{count_documents, from_document};

/// The id of this agent.
const AGENT: AgentId = AgentId::from_static("continue");

/// The adapter for the Continue CLI.
#[derive(Debug, Clone, Copy)]
pub struct Continue;

static PROFILE: Profile = Profile {
    id: "continue",
    name: "Continue CLI",
    default_home: ".continue",
    home_variables: &["CONTINUE_GLOBAL_DIR"],
    detection: "the date of the first prompt and the terminal's use",
    checked_against: "1.5.47, 2026-11",
    watched: &[Watched::at("sessions")],
    programs: &process::PROGRAMS,
    scan: scan::scan,
    counting: Some(&document::COUNTING),
    // The only option that takes an id is `--fork`. It continues the conversation under a
    // new id, where `--resume` would take whatever file was modified last.
    resume: &["cn", "--fork", "{id}"],
    ..Profile::USUAL
};

impl Adapter for Continue {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn describe(&self, sketch: &Sketch) -> Found<Description> {
        let path = sketch.transcript.as_deref();
        from_document(&AGENT, path, BYTES_MAX, |document| Description {
            last_activity_at_ms: sketch.last_record_at_ms.max(sketch.perhaps_until_ms),
            transcript: sketch.transcript.clone(),
            ..document::describe(document)
        })
    }

    fn counted_records(
        &self,
        sketches: &[&Sketch],
        each: &mut dyn FnMut(usize, &[Value]),
    ) -> Option<Vec<Problem>> {
        let problems = count_documents(&AGENT, sketches, BYTES_MAX, |at, document| {
            each(at, &document::counted(document));
        });
        Some(problems)
    }

    fn messages(&self, sketch: &Sketch, messages_max: usize) -> Found<Vec<Message>> {
        let path = sketch.transcript.as_deref();
        from_document(&AGENT, path, BYTES_MAX, |document| {
            DIALECT.messages_in(document::history(document), messages_max)
        })
    }
}
