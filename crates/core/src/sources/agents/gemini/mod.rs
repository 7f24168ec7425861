//! Gemini CLI (`gemini`, npm `@google/gemini-cli`).
//!
//! What it leaves, below `.gemini` in the user's home (or in what
//! `GEMINI_CLI_HOME` names). Seen in Gemini CLI 0.61.0, 2026-11.
//!
//! | File | Written | Says |
//! |---|---|---|
//! | `projects.json`, `tmp/SLUG/.project_root` | at the first launch in a directory | which folder is which directory |
//! | `tmp/SLUG/chats/session-MINUTE-ID8.jsonl` | at launch, at `/clear` | the conversation; born then |
//! | a second one by a later minute, same id | when it is resumed (`--resume`) | that a process has resumed it, and when |
//! | `tmp/SLUG/chats/PARENT/ID.jsonl` | by sub-agents | theirs |
//! | `tmp/SLUG/logs.json` | whenever a person types | what, when, and the session that the process began with |
//!
//! Nothing names a process, nothing is held open. The rest is in the process's
//! arguments and in the title of its terminal (`◇  Ready`, `✦  Working…`,
//! `✋  Action Required`). A start removes every chat of its project without messages, even
//! those of running processes, and together with the mark of a resumed session that session
//! itself. Both come back with the next message, without their first line. A process
//! survives its terminal, and then has none. Gemini CLI opens the transcripts of other
//! processes to read them, and adds summaries to them, so neither an open file nor a
//! modification time identifies a process.

mod chat;
mod chats;
mod hooks;
mod host;
mod lineage;
mod message;
mod process;
mod project;
mod prompts;
mod scan;
mod subagent;
mod transcript;

use whosup_sidecar::AgentId;

use crate::adapter::phase::{FactSource, Phase, PhaseFact, WaitingFor};
use crate::adapter::{Adapter, Description, Message, Profile, Sketch, Watched};
use crate::machine::problem::Found;
use crate::sources::agents::kit::folder::is_there;
use crate::sources::agents::kit::reading::found_at;

/// The id of this agent.
const AGENT: AgentId = AgentId::from_static("gemini");

/// The adapter for Gemini CLI.
#[derive(Debug, Clone, Copy)]
pub struct Gemini;

static PROFILE: Profile = Profile {
    id: "gemini",
    name: "Gemini CLI",
    default_home: ".gemini",
    home_variables: &["GEMINI_CLI_HOME"],
    moves_users_home: true,
    detection: "arguments; chats made at launch; what was typed in which process",
    checked_against: "0.61.0, 2026-11",
    has_session_at_launch: true,
    launch_window_ms: Some(15_000),
    is_quiet_when_idle: true,
    resumes_from_anywhere: false,
    watched: &[Watched::tree("tmp"), Watched::at("projects.json")],
    programs: &process::PROGRAMS,
    scan: scan::scan,
    hooks: Some(&hooks::HOOKS),
    counting: Some(&message::COUNTING),
    resume: &["gemini", "--resume", "{id}"],
    ..Profile::USUAL
};

impl Adapter for Gemini {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn phase_in_title(&self, title: &str) -> Option<PhaseFact> {
        let title = title.trim();
        let mut characters = title.chars();
        let (phase, waiting_for) = match characters.next()? {
            '\u{25C7}' => (Phase::Idle, None),
            '\u{2726}' | '\u{23F2}' => (Phase::Working, None),
            '\u{270B}' => (Phase::Waiting, Some(WaitingFor::Permission)),
            _ => return None,
        };
        let word = characters.as_str().trim_start_matches('\u{FE0F}').trim();
        let word = word.split(" (").next().unwrap_or_default().trim();
        let fact = PhaseFact::new(FactSource::Title, Some(phase)).waiting_for(waiting_for);
        (!word.is_empty()).then(|| fact.in_word(word))
    }

    fn describe(&self, sketch: &Sketch) -> Found<Description> {
        let Some(path) = sketch.transcript.as_deref() else {
            return Found::default();
        };
        let (found, problem) = match transcript::describe(path) {
            Ok(described) => described,
            // Another start has removed it: it had no messages yet.
            Err(_) if !is_there(path) => return Found::default(),
            Err(message) => (Description::default(), Some(message)),
        };
        found_at(&AGENT, path, found, problem)
    }

    fn messages(&self, sketch: &Sketch, messages_max: usize) -> Found<Vec<Message>> {
        let path = sketch.transcript.as_deref();
        path.map(|path| transcript::messages(path, messages_max))
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminals_title_shows_the_phase() {
        let phase = |title: &str| {
            let fact = Gemini.phase_in_title(title)?;
            Some((fact.phase?, fact.waiting_for, fact.word?))
        };
        let ready = Some((Phase::Idle, None, "Ready".to_owned()));
        assert_eq!(phase("\u{25C7}  Ready (app)          "), ready);
        let working = Some((Phase::Working, None, "Working\u{2026}".to_owned()));
        assert_eq!(phase("\u{2726}  Working\u{2026} (app)"), working);
        assert_eq!(phase("\u{23F2}  Working\u{2026} (app)"), working);
        let thinking = Some((Phase::Working, None, "Reading the tests".to_owned()));
        assert_eq!(phase("\u{2726}  Reading the tests (app)"), thinking);
        let asking = (
            Phase::Waiting,
            Some(WaitingFor::Permission),
            "Action Required".to_owned(),
        );
        assert_eq!(
            phase("\u{270B}\u{FE0F}  Action Required (app)"),
            Some(asking)
        );
        for other in ["Gemini CLI (app)", "vim", "\u{25C7}", ""] {
            assert_eq!(phase(other), None, "{other}");
        }
    }
}
