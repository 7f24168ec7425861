//! How an agent's hooks talk, and where they are set.

use std::path::Path;

use whosup_sidecar::{SessionId, StrictObject};

use crate::hook_event::{EventKind, HookError, HookEvent, HookPayload, StartSource};

/// How an agent's hooks talk, and where they are set.
#[derive(Debug)]
pub struct Hooks {
    /// What the agent's name of an event means, with the payload for the rest.
    ///
    /// A name that isn't known only shows that the agent is there.
    pub meaning: fn(&str, &HookPayload<'_>) -> Result<EventKind, HookError>,
    /// The session whose transcript has this path, by its name.
    pub session_of_transcript: fn(&Path) -> Option<SessionId>,
    /// The file below the agent's home that the hooks are set in.
    pub settings_file: &'static str,
    /// How they are written there.
    pub form: SettingsForm,
    /// The events that are asked for, by the agent's names.
    pub events: &'static [&'static str],
    /// A person has to trust them in the agent before they run.
    pub must_be_trusted: bool,
}

/// How hooks are written into an agent's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingsForm {
    /// `{"hooks": {EVENT: [{"hooks": [{"type": "command", "command": …}]}]}}`
    JsonGroups,
    /// `[[hooks]]` with `event` and `command`
    TomlTables,
}

impl Hooks {
    /// Parses the payload of one event.
    ///
    /// # Errors
    ///
    /// [`HookError`] if it is none.
    pub fn parse(&self, payload: &[u8]) -> Result<HookEvent, HookError> {
        let object = StrictObject::parse(payload)?;
        let payload = HookPayload::new(&object);
        let kind = (self.meaning)(payload.name()?, &payload)?;
        payload.event(kind)
    }
}

/// What `source` says of a start.
pub(super) fn started(payload: &HookPayload<'_>) -> Result<EventKind, HookError> {
    let source = payload.text("source")?.unwrap_or_default();
    Ok(EventKind::SessionStarted(StartSource::from_name(source)))
}

/// For transcripts named `SESSION.jsonl`.
pub(super) fn session_by_file_stem(path: &Path) -> Option<SessionId> {
    SessionId::parse(path.file_stem()?.to_str()?).ok()
}

/// For agents whose payloads name no transcript, or whose transcripts are not
/// named by the session.
pub(super) fn no_session_by_path(_path: &Path) -> Option<SessionId> {
    None
}
