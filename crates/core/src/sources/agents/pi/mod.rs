//! pi, the coding agent of the pi-mono packages.
//!
//! What it leaves, below its directory (`PI_CODING_AGENT_DIR`, `~/.pi/agent`).
//! Seen in pi 0.73.1, 2026-11.
//!
//! | File | Written | Says |
//! |---|---|---|
//! | `sessions/--PATH--/DATE_UUID.jsonl` | at the first reply | the conversation; its first line has id, directory and birth |
//! | `settings.json`, also `.pi/` in a project | by a person | where the sessions lie (`sessionDir`) |
//!
//! Nothing of this names a process, and nothing is removed at the end; the
//! arguments of the process are blanked, its environment stays. Before the first reply there
//! is no file, and a process that has resumed an old session leaves no
//! sign of it before the next prompt. But the birth date in the first line is the time of
//! the launch or of `/new`. So a session that was born just after a process began belongs to
//! that process. For others, the use and the title of the terminal decide, or nothing does.
//!
//! A younger session may come from `/new`, or from a process that has gone: the file looks
//! the same. The terminal of the running process separates the two: without a key press
//! before the birth, there was no `/new`. The rest is undecided, with the process as the
//! candidate:
//!
//! - a session whose only prompt came at its birth, as in a run with `--print`: unless the
//!   process had just begun then;
//! - a session that was prompted long after the last key press in the terminal;
//! - a session that is too young to be of the launch, if the process has no other known
//!   session in which `/new` could have been typed.
//!
//! Two cases may still mislead (such a pair is marked as inferred): a process that was
//! launched within the same seconds and has gone, beside a process without a prompt; and a
//! session of a process that has gone, beside a terminal in which a person has typed since
//! and sent nothing.

mod process;
mod session;
mod session_dir;
mod transcript;

use whosup_sidecar::AgentId;

use self::session::Reading;
use self::transcript::DIALECT;
use crate::adapter::{Adapter, AgentScan, Home, Invocation, Look, Profile, Sketch, Watched};
use crate::machine::problem::Found;

/// The id of this agent.
const AGENT: AgentId = AgentId::from_static("pi");

/// The variable that moves its directory.
const HOME_VARIABLE: &str = "PI_CODING_AGENT_DIR";

/// The adapter for pi.
#[derive(Debug, Clone, Copy)]
pub struct Pi;

static PROFILE: Profile = Profile {
    id: "pi",
    name: "pi",
    default_home: ".pi/agent",
    home_variables: &[HOME_VARIABLE, session_dir::VARIABLE],
    detection: "birth just after the process began; the terminal's title and use",
    checked_against: "0.73.1, 2026-11",
    // 0.5 s on an idle machine, 3.5 s on a loaded one.
    launch_window_ms: Some(5_000),
    is_quiet_when_idle: true,
    // Of another directory it asks whether to fork the session.
    resumes_from_anywhere: false,
    watched: &[Watched::tree("sessions"), Watched::at("settings.json")],
    programs: &process::PROGRAMS,
    counting: Some(&transcript::COUNTING),
    dialect: Some(&DIALECT),
    resume: &["pi", "--session", "{id}"],
    ..Profile::USUAL
};

impl Adapter for Pi {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn scan(&self, look: &Look<'_>, home: &Home) -> Found<AgentScan> {
        let mut reading = Reading::new(look, home);
        reading.walk();
        reading.finish()
    }

    fn resume(&self, sketch: &Sketch, is_default_home: bool) -> Option<Invocation> {
        let command = PROFILE.resume_of(sketch, is_default_home)?;
        Some(match session_dir::that_needs_naming(sketch) {
            Some(directory) => command.with(session_dir::VARIABLE, directory),
            None => command,
        })
    }
}
