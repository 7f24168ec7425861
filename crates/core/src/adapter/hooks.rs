//! The format of an agent's hooks, and their settings.

use std::path::{Path, PathBuf};

use whosup_sidecar::{SessionId, StrictObject};

use crate::adapter::hook_event::{
    EventKind, HookError, HookEvent, HookPayload, PayloadKeys, StartSource,
};
use crate::machine::Environment;

/// The format of an agent's hooks, and their settings.
#[derive(Debug)]
pub struct Hooks {
    /// The meaning of the agent's name of an event, with the payload for the rest.
    ///
    /// An unknown name only shows that the agent is running.
    pub meaning: fn(&str, &HookPayload<'_>) -> Result<EventKind, HookError>,
    /// The names of the parts of a payload.
    pub keys: PayloadKeys,
    /// The session whose transcript has this path, by its name.
    pub session_of_transcript: fn(&Path) -> Option<SessionId>,
    /// The files that the hooks may be set in. The first existing file counts; the last
    /// file is created if none exists.
    pub settings: &'static [SettingsFile],
    /// The events to install hooks for, by the agent's names.
    pub events: &'static [&'static str],
    /// The list of hooks that a person trusts, if the agent runs no others.
    pub trust: Option<HookTrust>,
}

/// The list of hooks that a person trusts.
#[derive(Debug, Clone, Copy)]
pub struct HookTrust {
    /// The file, below the agent's home.
    pub file: &'static str,
    /// How many hooks of some settings are trusted, by the text of that file.
    pub count: fn(&str, &Path) -> usize,
}

/// A file that hooks may be set in.
#[derive(Debug, Clone, Copy)]
pub struct SettingsFile {
    /// Where it is.
    pub place: SettingsPlace,
    /// How they are written there.
    pub form: SettingsForm,
}

/// The place of a settings file.
#[derive(Debug, Clone, Copy)]
pub enum SettingsPlace {
    /// Below the agent's home.
    Home(&'static str),
    /// The path from the environment, whatever the home; `None` if none is set.
    Environment(fn(&Environment) -> Option<PathBuf>),
}

impl SettingsFile {
    /// The file `below` an agent's home.
    pub(crate) const fn in_home(below: &'static str, form: SettingsForm) -> Self {
        Self {
            place: SettingsPlace::Home(below),
            form,
        }
    }

    /// The path for one home of the agent.
    #[must_use]
    pub fn path(&self, home: &Path, environment: &Environment) -> Option<PathBuf> {
        match self.place {
            SettingsPlace::Home(below) => Some(home.join(below)),
            SettingsPlace::Environment(find) => find(environment),
        }
    }
}

/// How hooks are written into an agent's settings.
#[derive(Debug, Clone, Copy)]
pub enum SettingsForm {
    /// `{"hooks": {EVENT: [{"hooks": [{"type": "command", "command": …}]}]}}`
    JsonGroups,
    /// The same without the outer `hooks`.
    JsonGroupsAtRoot,
    /// `[[hooks]]` with `event` and `command`
    TomlTables,
    /// `[[hooks]]` with `name`, `type` and `command`
    NamedTomlTables,
    /// A file of only this hook: the text for a command.
    OwnFile(fn(&HookCommand) -> String),
}

/// The command that hooks run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookCommand {
    /// The program.
    pub program: String,
    /// The agent, as the program names it.
    pub agent: &'static str,
}

impl HookCommand {
    /// The command as a line of shell.
    #[must_use]
    pub fn line(&self) -> String {
        format!("{} hook {}", self.quoted_program(), self.agent)
    }

    /// The program of a line of shell that runs this command, with any program: it was installed
    /// by a `whosup` at another path. `None` if the line is something else.
    #[must_use]
    pub fn program_in(&self, line: &str) -> Option<String> {
        let ending = format!(" hook {}", self.agent);
        let program = line.strip_suffix(&ending)?;
        let quoted = |quote| program.strip_prefix(quote)?.strip_suffix(quote);
        let program = match (quoted('\''), quoted('"')) {
            (Some(program), _) => program.replace(r"'\''", "'"),
            (None, Some(program)) => program.to_owned(),
            (None, None) => program.to_owned(),
        };
        (program == "whosup" || program.ends_with("/whosup")).then_some(program)
    }

    fn quoted_program(&self) -> String {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
        if !self.program.is_empty() && self.program.chars().all(is_plain) {
            self.program.clone()
        } else {
            format!("'{}'", self.program.replace('\'', r"'\''"))
        }
    }
}

impl Hooks {
    /// Parses the payload of an event. The command line may name the event.
    ///
    /// # Errors
    ///
    /// [`HookError`] if the payload is invalid.
    pub fn parse(
        &'static self,
        payload: &[u8],
        event_named: Option<&str>,
    ) -> Result<HookEvent, HookError> {
        let object = StrictObject::parse(payload)?;
        let payload = HookPayload::new(&object, &self.keys, event_named);
        let kind = (self.meaning)(payload.name()?, &payload)?;
        payload.event(kind)
    }
}

/// The meaning of `source` in a start event.
pub(crate) fn started(payload: &HookPayload<'_>) -> Result<EventKind, HookError> {
    let source = payload.text("source")?.unwrap_or_default();
    // Only a supervisor reports this source.
    let source = StartSource::from_name(source).filter(|source| *source != StartSource::Run);
    let source = source.unwrap_or(StartSource::Other);
    Ok(EventKind::SessionStarted(source))
}

/// For transcripts named `SESSION.jsonl`.
pub(crate) fn session_by_file_stem(path: &Path) -> Option<SessionId> {
    SessionId::parse(path.file_stem()?.to_str()?).ok()
}

/// For agents whose payloads name no transcript, or whose transcripts are not named after
/// the session.
pub(crate) fn no_session_by_path(_path: &Path) -> Option<SessionId> {
    None
}

#[cfg(test)]
mod tests {
    use super::HookCommand;

    #[test]
    fn a_command_of_a_whosup_elsewhere_is_known_again() {
        let command = HookCommand {
            program: "/opt/whosup".to_owned(),
            agent: "codex",
        };
        assert_eq!(command.line(), "/opt/whosup hook codex");
        for (line, program) in [
            ("/opt/whosup hook codex", Some("/opt/whosup")),
            ("whosup hook codex", Some("whosup")),
            ("'/old tools/whosup' hook codex", Some("/old tools/whosup")),
            (r"'/it'\''s/whosup' hook codex", Some("/it's/whosup")),
            (
                "\"/old tools/whosup\" hook codex",
                Some("/old tools/whosup"),
            ),
            ("/opt/whosup hook claude-code", None),
            ("/opt/not-whosup hook codex", None),
            ("say hook codex", None),
        ] {
            assert_eq!(command.program_in(line).as_deref(), program, "{line}");
        }
    }
}
