//! GitHub Copilot CLI (`copilot`, npm `@github/copilot`).
//!
//! What it leaves, below its home (`COPILOT_HOME`, `~/.copilot`). Seen in
//! Copilot CLI 1.0.102, 2026-11.
//!
//! | What | When | Says |
//! |---|---|---|
//! | `session-state/ID/` with `workspace.yaml` | from launch on | that the session exists; directory, branch, name |
//! | `session-state/ID/inuse.PID.hold`, held | from launch on; of a resumed session from the next prompt on | its process serves the session |
//! | `session-state/ID/inuse.PID.lock` beside it | the same | the PID again; alone in early versions |
//! | the two, not held | after SIGKILL, until the next start of any Copilot | no process serves the session |
//! | `session-state/ID/events.jsonl` | from the first prompt on | the conversation |
//! | `logs/process-MS-PID.log`, open for writing | while the process runs | which session its terminal shows |
//! | `open-sessions-state.json` | an entry from opening to `/exit` | what was open; stays after SIGTERM, SIGKILL and a closed terminal |
//!
//! One process may have several sessions open, one of them in front; each has a lock.
//! `/clear` makes a new session and closes the previous one; the previous lock is held a
//! second longer. The package cache (`~/.cache/copilot/pkg`) has `inuse` files too, which
//! belong to no session. Early versions (0.0.3xx) had the events in `session-state/ID.jsonl`
//! and no directory; these are read too (2026-11).

mod claims;
mod events;
mod hooks;
mod open_sessions;
mod process;
mod process_log;
mod scan;
mod session;
mod sketch;
mod workspace;

use std::path::Path;

use whosup_sidecar::AgentId;

use self::events::DIALECT;
use self::workspace::Workspace;
use crate::adapter::phase::Phase;
use crate::adapter::{Adapter, Description, Profile, Sketch, Watched};
use crate::machine::problem::{Found, Problem};
use crate::sources::agents::kit::bad_lines::BadLines;
use crate::sources::agents::kit::dialect::{is_missing, joined};
use crate::sources::agents::kit::title::one_line;
use crate::sources::transcript::TranscriptFile;

/// The id of this agent.
const AGENT: AgentId = AgentId::from_static("copilot");

/// The adapter for GitHub Copilot CLI.
#[derive(Debug, Clone, Copy)]
pub struct Copilot;

static PROFILE: Profile = Profile {
    id: "copilot",
    name: "Copilot CLI",
    default_home: ".copilot",
    home_variables: &["COPILOT_HOME"],
    detection: "held session locks; the log of each process; arguments",
    checked_against: "1.0.102, 2026-11",
    has_session_at_launch: true,
    watched: &[
        Watched::tree("session-state"),
        Watched::at("open-sessions-state.json"),
        Watched::at("logs"),
    ],
    hosts_claim: true,
    programs: &process::PROGRAMS,
    scan: scan::scan,
    hooks: Some(&hooks::HOOKS),
    counting: Some(&events::COUNTING),
    dialect: Some(&DIALECT),
    resume: &["copilot", "--resume={id}"],
    ..Profile::USUAL
};

impl Adapter for Copilot {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn describe(&self, sketch: &Sketch) -> Found<Description> {
        let sessions = sketch.key.home.join("session-state");
        let directory = sessions.join(sketch.key.session.as_str());
        let mut problems = Vec::new();
        // The scan has already reported what cannot be read.
        let workspace = Workspace::read(&directory.join(session::WORKSPACE)).unwrap_or_default();
        let mut found = Description::default();
        if sketch.transcript.is_none() && (workspace.is_some() || sketch.title.is_some()) {
            // It waits for its first prompt.
            found.phase = Some(Phase::Idle);
        }
        if let Some(path) = sketch.transcript.as_deref() {
            let read = read_events(&mut found, path);
            problems.extend(read.err().map(|message| Problem::at(&AGENT, path, message)));
        }
        if let Some(workspace) = workspace {
            add_workspace(&mut found, workspace);
        }
        Found { found, problems }
    }
}

/// Adds the facts from head and tail of the events.
fn read_events(found: &mut Description, path: &Path) -> Result<(), String> {
    let mut bad_lines = BadLines::default();
    let read = TranscriptFile::open(path).and_then(|file| {
        let tail = DIALECT.tail(&file, &mut bad_lines)?;
        let work_dir = tail.work_dir.clone();
        let head = DIALECT.head(&file, &mut bad_lines)?;
        // Where the end shows no directory, the workspace does.
        Ok(Description {
            work_dir,
            ..joined(tail, head)
        })
    });
    match read {
        Ok(read) => {
            *found = read;
            bad_lines.message().map_or(Ok(()), Err)
        }
        // A transcript that is not there (any more) is nothing to complain about.
        Err(error) if is_missing(&error) => Ok(()),
        Err(error) => Err(error.reason()),
    }
}

/// Adds the facts from the workspace: the name replaces the prompt, other facts are added
/// only if the events lack them.
fn add_workspace(found: &mut Description, workspace: Workspace) {
    if let Some(name) = workspace.name.as_deref().and_then(one_line) {
        let prompt = found.title.take();
        // What Copilot makes up itself may be nothing but the prompt.
        found.is_title_a_prompt = !workspace.is_name_given
            && prompt.is_some_and(|prompt| prompt.starts_with(name.trim_end_matches('…')));
        found.title = Some(name);
    }
    found.work_dir = found.work_dir.take().or(workspace.work_dir);
    found.git_branch = found.git_branch.take().or(workspace.branch);
    found.started_at_ms = found.started_at_ms.or(workspace.created_at_ms);
    found.last_activity_at_ms = found.last_activity_at_ms.or(workspace.created_at_ms);
}
