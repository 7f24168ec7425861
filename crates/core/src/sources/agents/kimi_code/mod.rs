//! Kimi Code, the successor of kimi-cli that is written in TypeScript.
//!
//! What it leaves, below its home (`KIMI_CODE_HOME`, `~/.kimi-code`). Seen in
//! Kimi Code 2.1.0, 2026-11.
//!
//! | File | Written | Says |
//! |---|---|---|
//! | `sessions/wd_SLUG_HASH/session_UUID/state.json` | with the first prompt, and by `/new` at once | directory, birth, title |
//! | `…/agents/main/wire.jsonl` | with it | the conversation |
//!
//! Nothing of this names a process, and nothing is removed at the end; the
//! arguments of the process are blanked, its environment stays. A process without a prompt
//! has no session, and a process that has resumed an old session leaves no sign of it before
//! the next prompt. So directory and dates give candidates, and the terminal chooses among
//! them by its use and by its title, which is the session's title, cut. There are two traps:
//!
//! - `/new` makes the new session at once, and the terminal shows the title of the previous
//!   session until the next prompt. While a younger session of that directory has had no
//!   prompt, the titles of older sessions prove nothing.
//! - A run with `--prompt` makes a session without a title, and exits soon. Such a session
//!   is not attributed to a terminal process beside it as if by `/new`. If the start of the
//!   run took unusually long, it is unknown whether the run is still there.
//!
//! A process does not own a session that began or was used while its terminal had no key
//! presses or showed nothing. One case may still mislead (such a pair is marked as
//! inferred): a session of a process that has gone, beside a terminal in which a person has
//! typed since and sent nothing.

mod hooks;
mod process;
mod session;
mod state;
mod wire;

use whosup_sidecar::AgentId;

use self::session::Reading;
use self::wire::DIALECT;
use crate::adapter::{Adapter, AgentScan, Description, Home, Look, Profile, Sketch, Watched};
use crate::machine::problem::Found;
use crate::sources::agents::kit::kimi_wire::SessionFiles;
use crate::sources::agents::kit::title::one_line;

/// The id of this agent.
const AGENT: AgentId = AgentId::from_static("kimi-code");

/// The adapter for Kimi Code.
#[derive(Debug, Clone, Copy)]
pub struct KimiCode;

static FILES: SessionFiles = SessionFiles {
    agent: AGENT,
    dialect: &DIALECT,
    wire: session::WIRE,
    folder_of: session::folder_of,
};

static PROFILE: Profile = Profile {
    id: "kimi-code",
    name: "Kimi Code",
    default_home: ".kimi-code",
    home_variables: &["KIMI_CODE_HOME"],
    detection: "the terminal's title and use; birth just after the process began, of runs with a prompt",
    checked_against: "2.1.0, 2026-11",
    launch_window_ms: Some(15_000),
    is_quiet_when_idle: true,
    resumes_from_anywhere: false,
    watched: &[Watched::tree("sessions")],
    programs: &process::PROGRAMS,
    hooks: Some(&hooks::HOOKS),
    counting: Some(&wire::COUNTING),
    dialect: Some(&DIALECT),
    resume: &["kimi", "--session", "{id}"],
    ..Profile::USUAL
};

impl Adapter for KimiCode {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn scan(&self, look: &Look<'_>, home: &Home) -> Found<AgentScan> {
        Reading::new(look, home).walk()
    }

    fn describe(&self, sketch: &Sketch) -> Found<Description> {
        FILES.describe(sketch, |path, found| {
            let Some(state) = state::read(path, sketch.key.session.as_str())? else {
                return Ok(());
            };
            if let Some(title) = state.title.as_deref().and_then(one_line) {
                found.title = Some(title);
                found.is_title_a_prompt = state.is_title_a_prompt;
            }
            found.started_at_ms = state.created_at_ms.or(found.started_at_ms);
            found.work_dir = state.work_dir;
            Ok(())
        })
    }
}
