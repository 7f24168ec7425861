//! The transcript: `agents/main/wire.jsonl`, one record a line after a line of
//! metadata.

use std::collections::HashSet;

use serde_json::Value;

use crate::agents::bad_lines::BadLines;
use crate::agents::title::one_line;
use crate::agents::{Message, MessageRole};
use crate::phase::{Phase, WaitingFor};
use crate::transcript::{HeadBounds, TailBounds, TranscriptError, TranscriptFile};

/// How much of the beginning is read: the first prompt comes after a few lines,
/// one of which has the system prompt.
const HEAD_BOUNDS: HeadBounds = HeadBounds {
    bytes_max: 1024 * 1024,
    lines_max: 32,
};
/// How far back from the end is read for what was last.
const LAST_BOUNDS: TailBounds = TailBounds {
    bytes_max: 1024 * 1024,
};
/// How far back messages are looked for.
const MESSAGES_BOUNDS: TailBounds = TailBounds {
    bytes_max: 16 * 1024 * 1024,
};
/// How records of the conversation itself begin. The others say how the
/// session is set up, or count.
const CONVERSATION: &[&str] = &[
    "agent.message.",
    "agent.turn.",
    "context.append_",
    "interaction.",
    "prompt.",
    "turn.",
];
/// How soon after its birth a session has its first prompt when the prompt made
/// it: 0.1 to 0.4 s where this was seen. After `/new` a person types first.
const BIRTH_BY_PROMPT_MS_MAX: i64 = 1_500;

/// When things happened in a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Dates {
    /// By the line of metadata.
    pub(super) created_at_ms: Option<i64>,
    /// Its first prompt.
    pub(super) prompted_at_ms: Option<i64>,
    /// Its last record of the conversation.
    pub(super) last_at_ms: Option<i64>,
}

impl Dates {
    /// Its first prompt made it, and not `/new`.
    pub(super) fn is_made_by_a_prompt(self, created_at_ms: Option<i64>) -> bool {
        let took_ms = self.prompted_at_ms.zip(created_at_ms);
        took_ms.is_some_and(|(prompted, created)| {
            prompted.saturating_sub(created) <= BIRTH_BY_PROMPT_MS_MAX
        })
    }
}

/// What the records say of a session as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) created_at_ms: Option<i64>,
    pub(super) last_at_ms: Option<i64>,
    /// The first prompt, on one line.
    pub(super) prompt: Option<String>,
    /// The model that was asked last.
    pub(super) model: Option<String>,
    pub(super) phase: Option<Phase>,
    pub(super) waiting_for: Option<WaitingFor>,
    /// Why some lines told nothing.
    pub(super) problem: Option<String>,
}

/// Reads when it began, was prompted first, and had its last record.
pub(super) fn read_dates(file: &TranscriptFile) -> Result<Dates, TranscriptError> {
    let mut dates = Dates::default();
    for record in file
        .head(HEAD_BOUNDS)?
        .lines
        .iter()
        .flat_map(|line| line.json().values)
    {
        dates.created_at_ms = dates.created_at_ms.or_else(|| created_at_ms(&record));
        if kind(&record) == Some("turn.prompt") {
            dates.prompted_at_ms = at_ms(&record);
            break;
        }
    }
    for line in file.backwards(LAST_BOUNDS)? {
        let records = line?.json().values;
        let mut its = records
            .iter()
            .rev()
            .filter(|record| is_of_conversation(record));
        if let Some(at) = its.find_map(at_ms) {
            dates.last_at_ms = Some(at);
            break;
        }
    }
    Ok(dates)
}

/// Reads head and tail.
pub(super) fn read(file: &TranscriptFile) -> Result<Told, TranscriptError> {
    let mut bad_lines = BadLines::default();
    let mut told = Told::default();
    let mut fold = PhaseFold::default();
    for line in file.backwards(LAST_BOUNDS)? {
        let line = line?;
        if line.is_too_long() {
            fold.skip_one();
        }
        for record in bad_lines.values(&line).iter().rev() {
            if is_of_conversation(record) {
                told.last_at_ms = told.last_at_ms.or_else(|| at_ms(record));
            }
            if told.model.is_none() && kind(record) == Some("llm.request") {
                told.model = text(record, "/model").map(str::to_owned);
            }
            fold.add_backwards(record);
        }
        if told.last_at_ms.is_some() && told.model.is_some() && fold.answer.is_some() {
            break;
        }
    }
    (told.phase, told.waiting_for) = fold.finish();
    let head = file.head(HEAD_BOUNDS)?;
    for record in head.lines.iter().flat_map(|line| bad_lines.values(line)) {
        told.created_at_ms = told.created_at_ms.or_else(|| created_at_ms(&record));
        if told.prompt.is_none() && kind(&record) == Some("turn.prompt") {
            told.prompt = prompt_of(&record).and_then(|text| one_line(&text));
        }
    }
    told.problem = bad_lines.message();
    Ok(told)
}

/// Reads the last messages, oldest first.
pub(super) fn messages(
    file: &TranscriptFile,
    messages_max: usize,
) -> Result<(Vec<Message>, Option<String>), TranscriptError> {
    let mut bad_lines = BadLines::default();
    let mut newest_first = Vec::new();
    for line in file.backwards(MESSAGES_BOUNDS)? {
        if newest_first.len() >= messages_max {
            break;
        }
        let records = bad_lines.values(&line?);
        newest_first.extend(records.iter().rev().filter_map(message_of));
    }
    newest_first.truncate(messages_max);
    newest_first.reverse();
    Ok((newest_first, bad_lines.message()))
}

fn message_of(record: &Value) -> Option<Message> {
    let (role, text) = match kind(record)? {
        "turn.prompt" => (MessageRole::User, prompt_of(record)?),
        "context.append_loop_event" => match text(record, "/event/type")? {
            "content.part" => {
                let part = part_text(record.pointer("/event/part")?)?;
                (MessageRole::Assistant, part.to_owned())
            }
            "tool.call" => (MessageRole::Tool, text(record, "/event/name")?.to_owned()),
            _ => return None,
        },
        _ => return None,
    };
    let at_ms = at_ms(record);
    (!text.trim().is_empty()).then_some(Message { role, at_ms, text })
}

/// What a session is doing, from its last record backwards: it is in a turn
/// from `turn.prompt` to `turn.ended` (which is written after an interruption
/// too), and waits while an `interaction.request` of that turn has no answer.
#[derive(Default)]
struct PhaseFold {
    answered: HashSet<String>,
    is_in_turn: bool,
    answer: Option<(Option<Phase>, Option<WaitingFor>)>,
}

impl PhaseFold {
    fn add_backwards(&mut self, record: &Value) {
        if self.answer.is_some() {
            return;
        }
        let own = |pointer: &str| text(record, pointer).map(str::to_owned);
        match kind(record) {
            Some("turn.ended" | "agent.turn.ended" | "prompt.completed" | "prompt.aborted") => {
                let phase = if self.is_in_turn {
                    Phase::Working
                } else {
                    Phase::Idle
                };
                self.answer = Some((Some(phase), None));
            }
            Some("turn.prompt") => self.answer = Some((Some(Phase::Working), None)),
            Some("interaction.resolved") => {
                self.is_in_turn = true;
                self.answered.extend(own("/id"));
            }
            Some("interaction.request") => {
                self.is_in_turn = true;
                let names = [own("/id"), own("/toolCallId")];
                let is_answered = names
                    .iter()
                    .flatten()
                    .any(|name| self.answered.contains(name));
                if !is_answered {
                    let waiting_for = match text(record, "/kind") {
                        Some("approval") => Some(WaitingFor::Permission),
                        Some("question") => Some(WaitingFor::Question),
                        _ => None,
                    };
                    self.answer = Some((Some(Phase::Waiting), waiting_for));
                }
            }
            Some("context.append_loop_event") => {
                self.is_in_turn = true;
                if text(record, "/event/type") == Some("tool.result") {
                    self.answered.extend(own("/event/toolCallId"));
                }
            }
            Some("llm.request") => self.is_in_turn = true,
            Some(kind) if kind.starts_with("turn.") || kind == "agent.turn.started" => {
                self.is_in_turn = true;
            }
            // Also what is put into the context between two turns.
            _ => {}
        }
    }

    /// A record could not be read. If it is the last, nothing is certain.
    fn skip_one(&mut self) {
        if !self.is_in_turn && self.answer.is_none() {
            self.answer = Some((None, None));
        }
    }

    fn finish(self) -> (Option<Phase>, Option<WaitingFor>) {
        let phase = if self.is_in_turn {
            Phase::Working
        } else {
            Phase::Idle
        };
        self.answer.unwrap_or((Some(phase), None))
    }
}

fn kind(record: &Value) -> Option<&str> {
    record.get("type")?.as_str()
}

fn text<'a>(record: &'a Value, pointer: &str) -> Option<&'a str> {
    record.pointer(pointer)?.as_str()
}

fn is_of_conversation(record: &Value) -> bool {
    kind(record).is_some_and(|kind| CONVERSATION.iter().any(|its| kind.starts_with(its)))
}

/// The date of a record, in milliseconds since 1970.
fn at_ms(record: &Value) -> Option<i64> {
    record.get("time")?.as_i64().filter(|at| *at > 0)
}

fn created_at_ms(record: &Value) -> Option<i64> {
    if kind(record)? != "metadata" {
        return None;
    }
    record.get("created_at")?.as_i64().filter(|at| *at > 0)
}

/// What a person typed: parts, some of which are text.
fn prompt_of(record: &Value) -> Option<String> {
    let input = record.get("input")?;
    if let Some(text) = input.as_str() {
        return Some(text.to_owned());
    }
    let texts: Vec<&str> = input.as_array()?.iter().filter_map(part_text).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

fn part_text(part: &Value) -> Option<&str> {
    if part.get("type")?.as_str()? != "text" {
        return None;
    }
    part.get("text")?.as_str()
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
