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
//! arguments of the process are blanked, its environment stays. Before the
//! first reply there is no file, and a process that has taken up an old session
//! leaves no sign of it before the next prompt. But the birth in the first line
//! is when the process was launched, or told `/new`. So a session that was born
//! just after a process began is that process's; of others the use and the
//! title of the terminal decide, or nothing does.
//!
//! A younger session may be of `/new`, or of a process that has gone: the file
//! looks the same. What tells them apart is the terminal of the process that is
//! there: if nobody had typed in it when the session was born, it was not told
//! `/new`. What is left is undecided, with the process as the candidate:
//!
//! - a session that had its only prompt at its birth, as one of a run with
//!   `--print` has: unless the process had just begun then;
//! - one that was prompted when nobody had typed in the terminal for long;
//! - one that is too young to be of the launch, where no other session of the
//!   process is known that `/new` could have been told in.
//!
//! What may still mislead (such a pair is marked as inferred): a process that was
//! launched within the same seconds and has gone, beside one that nobody has
//! prompted; and a session of a process that has gone, beside one in whose
//! terminal somebody has typed since and sent nothing.

mod process;
mod session;
mod session_dir;
mod transcript;

use whosup_sidecar::AgentId;

use self::session::Reading;
use self::transcript::DIALECT;
use crate::adapter::{
    Adapter, AgentScan, CommandLine, Description, Home, Invocation, Look, Message, Profile, Sketch,
    Watched,
};
use crate::machine::Machine;
use crate::machine::problem::Found;

/// The id of this agent.
const AGENT: AgentId = AgentId::from_static("pi");

/// The variable that moves its directory.
const HOME_VARIABLE: &str = "PI_CODING_AGENT_DIR";
/// Where it is by default, below the user's home.
const DEFAULT_HOME: &str = ".pi/agent";

/// The adapter for pi.
#[derive(Debug, Clone, Copy)]
pub struct Pi;

static PROFILE: Profile = Profile {
    id: "pi",
    name: "pi",
    default_home: DEFAULT_HOME,
    home_variables: &[HOME_VARIABLE, session_dir::VARIABLE],
    detection: "birth just after the process began; the terminal's title and use",
    checked_against: "0.73.1, 2026-11",
    // 0.5 s on an idle machine, 3.5 s on a loaded one.
    launch_window_ms: Some(5_000),
    is_quiet_when_idle: true,
    // Of another directory it asks whether to fork the session.
    resumes_from_anywhere: false,
    watched: &[Watched::tree("sessions"), Watched::at("settings.json")],
    ..Profile::USUAL
};

impl Adapter for Pi {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn programs(&self) -> &'static CommandLine {
        &process::PROGRAMS
    }

    fn scan(&self, look: &Look<'_>, home: &Home) -> Found<AgentScan> {
        let mut reading = Reading::new(look, home);
        reading.walk();
        reading.finish()
    }

    fn describe(&self, _look: &Look<'_>, sketch: &Sketch) -> Found<Description> {
        // A session that has only been named has no file yet, or none any more.
        let path = sketch.transcript.as_deref();
        path.and_then(|path| DIALECT.describe(&AGENT, path))
            .unwrap_or_default()
    }

    fn messages(
        &self,
        _machine: &Machine,
        sketch: &Sketch,
        messages_max: usize,
    ) -> Found<Vec<Message>> {
        DIALECT.messages(&AGENT, sketch.transcript.as_deref(), messages_max)
    }

    fn resume(&self, sketch: &Sketch, is_default_home: bool) -> Option<Invocation> {
        let command = Invocation::new(["pi", "--session", sketch.key.session.as_str()]);
        let command = command.in_home_of(sketch, is_default_home, HOME_VARIABLE);
        Some(match session_dir::that_needs_naming(sketch) {
            Some(directory) => command.with(session_dir::VARIABLE, directory),
            None => command,
        })
    }
}
