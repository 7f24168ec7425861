//! qwen-code.
//!
//! What it leaves, below its home (`QWEN_HOME`, `~/.qwen`) or its runtime
//! directory. Seen in qwen-code 0.24.4, 2026-11.
//!
//! | File | Written | Says | After the end |
//! |---|---|---|---|
//! | `sessions/PID.json` | at launch, in the home | PID, boot, start, namespace, session, directory, socket | removed; stays after SIGKILL |
//! | `sessions/PID-XXXXXXXX.json` | for each ACP session | the same | removed |
//! | `projects/ENCODED/chats/SESSION.runtime.json` | at launch, by the terminal interface | PID, host, session, directory | **stays** |
//! | `projects/ENCODED/chats/SESSION.jsonl` | at the first prompt | the conversation | stays |
//! | `tmp/session-writer-locks/SESSION.lock` | by ACP and daemon processes | PID, boot, start, namespace, host, session | removed or sealed |
//!
//! `/clear`, `/new` and `/resume` keep the process: the old sidecar goes, then
//! the registry record is changed in place, its date unchanged, and a new
//! sidecar comes, dated now. So for about a tenth of a second the record alone
//! names the session that was left; after that the newer date wins.
//! `qwen -p` and versions before 0.16 write a transcript and nothing else.

mod fit;
mod home;
mod hooks;
mod malformed;
mod process;
mod project;
mod reading;
mod registry;
mod sidecar;
mod transcript;
mod writer_lock;

use std::path::PathBuf;

use whosup_sidecar::AgentId;

use self::home::{DEFAULT_HOME, HOME_VARIABLE, RUNTIME_VARIABLE};
use self::project::Projects;
use self::reading::Reading;
use self::transcript::DIALECT;
use crate::adapter::phase::{FactSource, Phase, PhaseFact};
use crate::adapter::{
    Adapter, AgentScan, Description, Home, Invocation, Look, Profile, Sketch, Watched,
};
use crate::machine::Environment;
use crate::machine::problem::Found;

/// The id of this agent.
const AGENT: AgentId = AgentId::from_static("qwen-code");

/// The adapter for qwen-code.
#[derive(Debug, Clone, Copy)]
pub struct QwenCode;

/// The first characters of the terminal title in a turn, and while a person is asked: a
/// sign, and a variation selector for text. (Claude Code uses the sign without the
/// selector.)
const SIGNS: [(&str, &str, Phase); 2] = [
    ("◐", "\u{FE0E} ", Phase::Working),
    ("✳", "\u{FE0E} ", Phase::Waiting),
];

/// The prefix of the terminal title without a sign: `Qwen - DIRECTORY`.
const OWN_TITLE: &str = "Qwen - ";

static PROFILE: Profile = Profile {
    id: "qwen-code",
    name: "Qwen Code",
    default_home: DEFAULT_HOME,
    home_variables: &[HOME_VARIABLE, RUNTIME_VARIABLE],
    detection: "registry file per process, sidecars, session-writer locks",
    checked_against: "0.24.4, 2026-11",
    // A process that has a session before the first prompt publishes it. 9 to 13 s on a
    // loaded machine.
    launch_window_ms: Some(30_000),
    resumes_from_anywhere: false,
    // `qwen -p --resume ID` writes neither a record nor a sidecar.
    resumes_in_silence: true,
    watched: &[
        Watched::at("sessions"),
        Watched::tree("projects"),
        Watched::at("tmp/session-writer-locks"),
        Watched::at("settings.json"),
    ],
    hosts_claim: true,
    programs: &process::PROGRAMS,
    hooks: Some(&hooks::HOOKS),
    counting: Some(&transcript::COUNTING),
    dialect: Some(&DIALECT),
    resume: &["qwen", "--resume", "{id}"],
    ..Profile::USUAL
};

impl Adapter for QwenCode {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn homes(&self, environment: &Environment) -> Vec<PathBuf> {
        home::homes(environment)
    }

    /// A title without a sign belongs to an idle terminal, or to a person who disabled the
    /// sign. Neither a hook nor a record follows Escape in a turn, so only the missing sign
    /// shows it.
    fn phase_in_title(&self, title: &str) -> Option<PhaseFact> {
        let mut signs = SIGNS.iter();
        let sign = signs.find(|(sign, mark, _)| {
            let rest = title.strip_prefix(sign);
            rest.is_some_and(|rest| rest.starts_with(mark))
        });
        let fact = |phase| PhaseFact::new(FactSource::Title, phase);
        match sign {
            Some((sign, _, phase)) => Some(fact(Some(*phase)).in_word(sign)),
            None => title.starts_with(OWN_TITLE).then(|| fact(None)),
        }
    }

    fn scan(&self, look: &Look<'_>, home: &Home) -> Found<AgentScan> {
        let mut reading = Reading::new(look, home);
        let records = registry::read(&mut reading);
        let runtimes = home::runtime_directories(look, home);
        for runtime in &runtimes {
            writer_lock::read(&mut reading, runtime);
        }
        Projects::new(&mut reading, &runtimes).walk(&records);
        reading.finish()
    }

    fn describe(&self, sketch: &Sketch) -> Found<Description> {
        let path = sketch.transcript.as_deref();
        let described = path.and_then(|path| DIALECT.describe(&AGENT, path));
        let mut described = described.unwrap_or_default();
        // Registry and sidecar are newer: `/cd` changes them at once.
        if sketch.work_dir.is_some() {
            described.found.work_dir = None;
        }
        described
    }

    fn resume(&self, sketch: &Sketch, is_default_home: bool) -> Option<Invocation> {
        let command = PROFILE.resume_of(sketch, is_default_home)?;
        Some(match home::runtime_that_needs_naming(sketch) {
            Some(directory) => command.with(RUNTIME_VARIABLE, directory),
            None => command,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_in_its_terminals_title_tells_the_phase() {
        let phase = |title: &str| QwenCode.phase_in_title(title)?.phase;
        assert_eq!(phase("◐\u{FE0E} Qwen - app"), Some(Phase::Working));
        assert_eq!(phase("✳\u{FE0E} Qwen - app"), Some(Phase::Waiting));
        for other in ["Qwen - app", "✳ Claude Code", "◐", ""] {
            assert_eq!(phase(other), None, "{other}");
        }
    }
}
