//! One record of a transcript, as Claude Code writes it.

use serde_json::Value;

use super::hooks::QUESTION_TOOLS;
use crate::adapter::phase::Phase;
use crate::sources::agents::kit::prompt::Wrapping;

/// How long a title is at most, in characters.
pub(super) const TITLE_CHARS_MAX: usize = 200;

/// What only Claude Code puts where a prompt stands.
pub(super) const WRAPPING: Wrapping = Wrapping {
    elements: &[
        "agent-message",
        "channel",
        "cross-session-message",
        "fork-boilerplate",
    ],
    notices: &["Stop hook feedback:"],
};

/// What stands where a prompt does once a person has interrupted a turn.
const INTERRUPTED: &str = "[Request interrupted";

/// The model's name on what Claude Code itself wrote in its place.
const SYNTHETIC_MODEL: &str = "<synthetic>";

/// One record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record<'a>(pub(super) &'a Value);

impl<'a> Record<'a> {
    /// A text at the top of the record; an empty one is none.
    pub(super) fn text(self, key: &str) -> Option<&'a str> {
        self.0.get(key)?.as_str().filter(|text| !text.is_empty())
    }

    fn is(self, key: &str) -> bool {
        self.0.get(key).and_then(Value::as_bool) == Some(true)
    }

    /// Its kind.
    pub(super) fn kind(self) -> &'a str {
        self.text("type").unwrap_or_default()
    }

    /// It belongs to a sub-agent's conversation; `None` if it does not say.
    pub(super) fn is_sidechain(self) -> Option<bool> {
        self.0.get("isSidechain")?.as_bool()
    }

    /// When it was made, in milliseconds since 1970.
    pub(super) fn at_ms(self) -> Option<i64> {
        let at: jiff::Timestamp = self.text("timestamp")?.parse().ok()?;
        Some(at.as_millisecond())
    }

    /// The model that wrote it.
    pub(super) fn model(self) -> Option<&'a str> {
        let model = self.0.get("message")?.get("model")?.as_str()?;
        (self.kind() == "assistant" && model != SYNTHETIC_MODEL).then_some(model)
    }

    /// The parts of its message; a plain text is one part of type `text`.
    pub(super) fn parts(self) -> impl Iterator<Item = Part<'a>> {
        let content = self
            .0
            .get("message")
            .and_then(|message| message.get("content"));
        let plain = content.and_then(Value::as_str).map(Part::Text);
        let parts = content.and_then(Value::as_array).into_iter().flatten();
        plain.into_iter().chain(parts.filter_map(Part::of))
    }

    /// The prompt that a person typed.
    pub(super) fn prompt(self) -> Option<&'a str> {
        self.texts_of_person().find_map(|text| WRAPPING.typed(text))
    }

    /// The texts that stand where prompts do.
    pub(super) fn texts_of_person(self) -> impl Iterator<Item = &'a str> {
        let is_of_person =
            self.kind() == "user" && !self.is("isMeta") && !self.is("isCompactSummary");
        let parts = self.parts().filter(move |_| is_of_person);
        parts.filter_map(|part| match part {
            Part::Text(text) => Some(text),
            _ => None,
        })
    }

    /// What the conversation is doing once this record is the last one; the
    /// outer `None` if the record says nothing about that, the inner one if it
    /// can't be told.
    ///
    /// A tool call without an answer is one that runs, or one that a person is
    /// asked about: only where nobody is there to be asked it is the former.
    pub(super) fn phase(self, is_headless: bool) -> Option<Option<Phase>> {
        match self.kind() {
            "system" => matches!(
                self.text("subtype"),
                Some("turn_duration" | "stop_hook_summary")
            )
            .then_some(Some(Phase::Idle)),
            "assistant" if !is_headless && self.asks_question() => Some(Some(Phase::Waiting)),
            "assistant" if self.parts().any(|part| matches!(part, Part::ToolCall(_))) => {
                Some(is_headless.then_some(Phase::Working))
            }
            "assistant" => {
                let stop = self
                    .0
                    .get("message")
                    .and_then(|message| message.get("stop_reason"));
                let is_end = matches!(
                    stop.and_then(Value::as_str),
                    Some("end_turn" | "stop_sequence")
                );
                Some(is_end.then_some(Phase::Idle))
            }
            "user" if self.parts().any(|part| matches!(part, Part::ToolResult)) => {
                Some(Some(Phase::Working))
            }
            "user" if self.is_interruption() => Some(Some(Phase::Idle)),
            "user" => self.prompt().map(|_| Some(Phase::Working)),
            _ => None,
        }
    }

    /// It puts a question to the person.
    fn asks_question(self) -> bool {
        self.parts()
            .any(|part| matches!(part, Part::ToolCall(tool) if QUESTION_TOOLS.contains(&tool)))
    }

    fn is_interruption(self) -> bool {
        self.parts()
            .any(|part| matches!(part, Part::Text(text) if text.starts_with(INTERRUPTED)))
    }
}

/// A part of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part<'a> {
    /// What somebody said.
    Text(&'a str),
    /// A call of the tool with this name.
    ToolCall(&'a str),
    /// What a tool answered.
    ToolResult,
}

impl<'a> Part<'a> {
    fn of(part: &'a Value) -> Option<Self> {
        let text = |key: &str| part.get(key).and_then(Value::as_str);
        match text("type")? {
            "text" => text("text").map(Self::Text),
            "tool_use" | "server_tool_use" => {
                Some(Self::ToolCall(text("name").unwrap_or_default()))
            }
            "tool_result" => Some(Self::ToolResult),
            _ => None,
        }
    }
}

/// Makes a title of a text: on one line, not too long; `None` if there is
/// nothing to see in it.
pub(super) fn title_of(text: &str) -> Option<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let title: String = words.join(" ").chars().take(TITLE_CHARS_MAX).collect();
    (!title.is_empty()).then_some(title)
}
