//! What an agent's hooks report, in the words that all agents share.
//!
//! Each agent's own `hooks.rs` maps its payloads to these.

use std::path::PathBuf;

use whosup_sidecar::{FieldError, JsonError, SessionId, SessionIdError, StrictObject};

use crate::adapter::names::names;
use crate::adapter::phase::WaitingFor;

/// How long a payload may be, in bytes.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 20;
/// How many parts of a prompt are read.
const PROMPT_PARTS_MAX: usize = 64;

/// One event of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookEvent {
    /// The session.
    pub session: SessionId,
    /// What happened.
    pub kind: EventKind,
    /// Where the session works.
    pub work_dir: Option<PathBuf>,
    /// Its transcript, which need not exist yet.
    pub transcript: Option<PathBuf>,
    /// The prompt, where a turn started.
    pub prompt: Option<String>,
    /// Why the session ended, in the agent's own word.
    pub reason: Option<String>,
    /// The sub-agent that it is about.
    pub sub_agent: Option<String>,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// A process began to serve the session.
    SessionStarted(StartSource),
    /// A person or a program prompted.
    TurnStarted,
    /// A tool began to run.
    ToolStarted,
    /// A tool has run, or failed.
    ToolEnded,
    /// The agent stopped until a person answers.
    InputRequested(WaitingFor),
    /// The agent has ended its turn.
    TurnEnded,
    /// The agent has ended its turn, and sub-agents that it started still work: it resumes
    /// by itself once they are done.
    TurnEndedInBackground,
    /// The conversation was made shorter.
    Compacted,
    /// The session ended.
    SessionEnded,
    /// A sub-agent began.
    SubAgentStarted,
    /// A sub-agent has ended.
    SubAgentEnded,
    /// The agent is running; nothing else is known.
    Heartbeat,
}

/// What a session started from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StartSource {
    /// Nothing: a new session.
    Startup,
    /// An earlier conversation.
    Resume,
    /// The session that the process served until now.
    Clear,
    /// A compaction, in the middle of the session.
    Compact,
    /// A supervisor (`whosup run`), which does not know what the program does.
    Run,
    /// Another source, or an unknown source.
    Other,
}

names!(StartSource {
    Startup => "startup",
    Resume => "resume",
    Clear => "clear",
    Compact => "compact",
    Run => "run",
    Other => "other",
});

impl EventKind {
    /// Returns whether the reporting process takes up the session with this event, and so
    /// leaves the session that it served before. No other event shows this: other events of
    /// a session that was left come late.
    #[must_use]
    pub const fn is_claim(self) -> bool {
        match self {
            Self::SessionStarted(StartSource::Compact) => false,
            Self::SessionStarted(_) => true,
            _ => false,
        }
    }

    /// Returns whether the session continues with this event, even after a reported end. An
    /// event that only ends something begun earlier may come late.
    #[must_use]
    pub const fn starts_work(self) -> bool {
        self.is_claim()
            || matches!(
                self,
                Self::TurnStarted | Self::ToolStarted | Self::InputRequested(_)
            )
    }
}

names!(EventKind {
    SessionStarted(StartSource::Startup) => "session-started:startup",
    SessionStarted(StartSource::Resume) => "session-started:resume",
    SessionStarted(StartSource::Clear) => "session-started:clear",
    SessionStarted(StartSource::Compact) => "session-started:compact",
    SessionStarted(StartSource::Run) => "session-started:run",
    SessionStarted(StartSource::Other) => "session-started:other",
    TurnStarted => "turn-started",
    ToolStarted => "tool-started",
    ToolEnded => "tool-ended",
    InputRequested(WaitingFor::Permission) => "input-requested:permission",
    InputRequested(WaitingFor::Question) => "input-requested:question",
    InputRequested(WaitingFor::Auth) => "input-requested:auth",
    InputRequested(WaitingFor::Prompt) => "input-requested:prompt",
    TurnEnded => "turn-ended",
    TurnEndedInBackground => "turn-ended:background",
    Compacted => "compacted",
    SessionEnded => "session-ended",
    SubAgentStarted => "sub-agent-started",
    SubAgentEnded => "sub-agent-ended",
    Heartbeat => "heartbeat",
});

/// Why a payload contains no event.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum HookError {
    /// It is no JSON object.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// A field is missing or wrong.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// Neither the payload nor the command line names the event.
    #[error("nothing names the event")]
    NoEvent,
    /// The session ID is invalid.
    #[error("`session_id` is no session id: {0}")]
    SessionId(#[from] SessionIdError),
}

/// How an agent names the parts of a payload. Where several names are given the
/// first one that is there counts.
#[derive(Debug, Clone, Copy)]
pub struct PayloadKeys {
    /// The agent's name of the event; none where the command line has it.
    pub event: Option<&'static str>,
    /// The session. A sub-agent's events are its parent's.
    pub session: &'static [&'static str],
    /// Where it works.
    pub work_dir: &'static str,
    /// Its transcript.
    pub transcript: &'static str,
    /// The prompt: a text, or a list of parts with a `text` each.
    pub prompt: &'static str,
    /// Why it ended.
    pub reason: &'static str,
    /// The sub-agent that it is about.
    pub sub_agent: &'static str,
}

impl PayloadKeys {
    /// As most agents name them.
    pub const SNAKE_CASE: Self = Self {
        event: Some("hook_event_name"),
        session: &["session_id"],
        work_dir: "cwd",
        transcript: "transcript_path",
        prompt: "prompt",
        reason: "reason",
        sub_agent: "agent_id",
    };
}

/// A payload: a JSON object.
#[derive(Debug)]
pub struct HookPayload<'a> {
    object: &'a StrictObject<'a>,
    keys: &'static PayloadKeys,
    event_named: Option<&'a str>,
}

impl<'a> HookPayload<'a> {
    /// Reads a payload out of its object, with the event that the command line
    /// names.
    #[must_use]
    pub const fn new(
        object: &'a StrictObject<'a>,
        keys: &'static PayloadKeys,
        event_named: Option<&'a str>,
    ) -> Self {
        Self {
            object,
            keys,
            event_named,
        }
    }

    /// The agent's name of the event.
    ///
    /// # Errors
    ///
    /// [`HookError`] if it has none.
    pub fn name(&self) -> Result<&'a str, HookError> {
        match (self.keys.event, self.event_named) {
            (Some(key), _) => Ok(self.object.string(key)?),
            (None, Some(named)) => Ok(named),
            (None, None) => Err(HookError::NoEvent),
        }
    }

    /// A text that may be there.
    ///
    /// # Errors
    ///
    /// [`HookError`] if it is there and no text.
    pub fn text(&self, key: &str) -> Result<Option<&'a str>, HookError> {
        Ok(self.object.opt_string(key)?)
    }

    /// An optional list; a value of another type counts as no list.
    #[must_use]
    pub fn list(&self, key: &str) -> Vec<serde_json::Value> {
        match self.object.opt_value(key) {
            Ok(Some(value)) => value.as_array().cloned().unwrap_or_default(),
            Ok(None) | Err(_) => Vec::new(),
        }
    }

    /// The event that this payload is about. Empty texts are none.
    ///
    /// # Errors
    ///
    /// [`HookError`] if a field is missing or wrong.
    pub fn event(&self, kind: EventKind) -> Result<HookEvent, HookError> {
        let text = |key| -> Result<Option<&str>, HookError> {
            Ok(self.text(key)?.filter(|text| !text.is_empty()))
        };
        let only_if = |wanted: bool, key| if wanted { text(key) } else { Ok(None) };
        let is_about_sub_agent =
            matches!(kind, EventKind::SubAgentStarted | EventKind::SubAgentEnded);
        let is_prompt = kind == EventKind::TurnStarted;
        Ok(HookEvent {
            session: self.session()?,
            kind,
            work_dir: text(self.keys.work_dir)?.map(PathBuf::from),
            transcript: text(self.keys.transcript)?.map(PathBuf::from),
            prompt: if is_prompt { self.prompt()? } else { None },
            reason: only_if(kind == EventKind::SessionEnded, self.keys.reason)?.map(str::to_owned),
            sub_agent: only_if(is_about_sub_agent, self.keys.sub_agent)?.map(str::to_owned),
        })
    }

    fn session(&self) -> Result<SessionId, HookError> {
        let mut keys = self.keys.session.iter();
        let is_there = |key: &&&str| matches!(self.object.opt_value(key), Ok(Some(_)));
        let last = self.keys.session.last().copied().unwrap_or("session_id");
        let key = keys.find(is_there).copied().unwrap_or(last);
        Ok(SessionId::parse(self.object.string(key)?)?)
    }

    fn prompt(&self) -> Result<Option<String>, HookError> {
        let key = self.keys.prompt;
        let value = self.object.opt_value(key)?;
        let Some(serde_json::Value::Array(parts)) = value.as_deref() else {
            let text = self.text(key)?.filter(|text| !text.is_empty());
            return Ok(text.map(str::to_owned));
        };
        let texts = parts.iter().filter_map(|part| part.get("text")?.as_str());
        let text = texts.take(PROMPT_PARTS_MAX).collect::<Vec<_>>().join("\n");
        Ok(Some(text).filter(|text| !text.is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use super::EventKind;

    #[test]
    fn every_kind_is_found_by_its_name() {
        for kind in EventKind::ALL {
            assert_eq!(EventKind::from_name(kind.name()), Some(kind));
        }
        assert_eq!(EventKind::from_name("session-started"), None);
    }
}
