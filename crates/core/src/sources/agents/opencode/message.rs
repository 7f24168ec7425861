//! The JSON in the columns `message.data` and `part.data`.

use serde_json::Value;
use whosup_sidecar::parse_json;

use super::session::{RunningTool, Turn};
use crate::adapter::MessageRole;
use crate::sources::agents::kit::dialect::{text_at, value_at};

/// The errors of a call that a person refused without a reason: the turn is over then, and
/// the model is not asked again. After a refusal with a reason the turn continues.
const REFUSALS: &[&str] = &[
    "The user dismissed this question",
    "The user rejected permission to use this specific tool call.",
];

/// A message, as far as it is needed here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) role: MessageRole,
    /// The model is done with it, or gave it up.
    is_complete: bool,
    /// It ended with tool calls, whose results the next message contains.
    calls_tools: bool,
}

impl Head {
    pub(super) fn parse(json: &str) -> Option<Self> {
        let value: Value = parse_json(json.as_bytes()).ok()?;
        let role = match value.get("role")?.as_str()? {
            "user" => MessageRole::User,
            "assistant" => MessageRole::Assistant,
            _ => return None,
        };
        let is_given = |place: &str| value_at(&value, place).is_some_and(|field| !field.is_null());
        Some(Self {
            role,
            is_complete: is_given("/time/completed") || is_given("/error"),
            calls_tools: text_at(&value, "/finish") == Some("tool-calls"),
        })
    }

    /// Where the conversation is, if this is its last message, begun at
    /// `begun_at_ms` and with these parts.
    pub(super) fn turn(&self, begun_at_ms: i64, parts: &[(i64, String)]) -> Turn {
        let is_refused = || parts.iter().any(|(_, json)| is_refused(json));
        let is_done = self.role == MessageRole::Assistant && self.is_complete;
        if is_done && (!self.calls_tools || is_refused()) {
            return Turn::Ended;
        }
        let mut newest_first = parts.iter().rev();
        let tool = newest_first.find_map(|(at_ms, json)| running_tool(json, *at_ms));
        Turn::GoesOn {
            since_ms: begun_at_ms,
            tool: tool.filter(|_| !self.is_complete),
        }
    }
}

/// A part of a message that a person would read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Text(String),
    /// A call, by the tool's name.
    Tool(String),
}

impl Part {
    /// Parses a part; `None` for parts that neither a person nor a model wrote: steps,
    /// snapshots, and texts that opencode adds to a prompt.
    pub(super) fn parse(json: &str) -> Option<Self> {
        let value: Value = parse_json(json.as_bytes()).ok()?;
        let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let is_added = value.get("synthetic").and_then(Value::as_bool) == Some(true);
        match value.get("type")?.as_str()? {
            "text" if !is_added => text("text").map(Self::Text),
            "tool" => text("tool").map(Self::Tool),
            _ => None,
        }
    }
}

fn running_tool(json: &str, called_at_ms: i64) -> Option<RunningTool> {
    let value: Value = parse_json(json.as_bytes()).ok()?;
    let is_tool = text_at(&value, "/type") == Some("tool");
    let is_running = matches!(text_at(&value, "/state/status")?, "pending" | "running");
    let name = value.get("tool")?.as_str()?;
    let metadata = value_at(&value, "/state/metadata");
    (is_tool && is_running).then(|| RunningTool {
        name: name.to_owned(),
        called_at_ms,
        has_begun: metadata.is_some_and(|metadata| !metadata.is_null()),
    })
}

fn is_refused(json: &str) -> bool {
    let value: Value = parse_json(json.as_bytes()).unwrap_or_default();
    let error = text_at(&value, "/state/error");
    let said = error.map(|error| error.strip_prefix("Error: ").unwrap_or(error));
    text_at(&value, "/type") == Some("tool") && said.is_some_and(|said| REFUSALS.contains(&said))
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: &str = r#"{"role":"user","time":{"created":1}}"#;
    const BEGUN: &str = r#"{"role":"assistant","time":{"created":1}}"#;
    const DONE: &str = r#"{"role":"assistant","time":{"created":1,"completed":2},"finish":"stop"}"#;
    const CALLED: &str =
        r#"{"role":"assistant","time":{"created":1,"completed":2},"finish":"tool-calls"}"#;
    const STOPPED: &str =
        r#"{"role":"assistant","time":{"created":1},"error":{"name":"MessageAbortedError"}}"#;
    const ASKS: &str = r#"{"type":"tool","tool":"bash","state":{"status":"running","input":{},"time":{"start":5}}}"#;
    const RUNS: &str =
        r#"{"type":"tool","tool":"bash","state":{"status":"running","metadata":{"output":""}}}"#;
    const RAN: &str = r#"{"type":"tool","tool":"bash","state":{"status":"completed"}}"#;

    fn turn(message: &str, parts: &[&str]) -> Turn {
        let parts: Vec<_> = parts.iter().map(|part| (5, (*part).to_owned())).collect();
        Head::parse(message).expect("a message").turn(1, &parts)
    }

    fn going_on(has_begun: Option<bool>) -> Turn {
        Turn::GoesOn {
            since_ms: 1,
            tool: has_begun.map(|has_begun| RunningTool {
                name: "bash".to_owned(),
                called_at_ms: 5,
                has_begun,
            }),
        }
    }

    #[test]
    fn a_turn_ends_with_an_answer_that_calls_no_tool() {
        assert_eq!(turn(USER, &[]), going_on(None));
        assert_eq!(turn(BEGUN, &[]), going_on(None));
        assert_eq!(turn(CALLED, &[RAN]), going_on(None));
        assert_eq!(turn(DONE, &[RAN]), Turn::Ended);
        assert_eq!(turn(STOPPED, &[RUNS]), Turn::Ended);
    }

    #[test]
    fn a_turn_ends_with_a_refusal_that_has_no_words() {
        let refused = |error: &str| {
            let state = format!(r#"{{"status":"error","error":"{error}"}}"#);
            turn(
                CALLED,
                &[&format!(
                    r#"{{"type":"tool","tool":"bash","state":{state}}}"#
                )],
            )
        };
        for refusal in REFUSALS {
            assert_eq!(refused(refusal), Turn::Ended);
            assert_eq!(refused(&format!("Error: {refusal}")), Turn::Ended);
        }
        for other in [
            "The user rejected permission to use this specific tool call with the following feedback: no",
            "command not found",
        ] {
            assert_eq!(refused(other), going_on(None), "{other}");
        }
    }

    #[test]
    fn a_tool_that_runs_has_said_something() {
        assert_eq!(turn(BEGUN, &[ASKS]), going_on(Some(false)));
        assert_eq!(turn(BEGUN, &[ASKS, RUNS]), going_on(Some(true)));
        assert_eq!(turn(BEGUN, &[RAN]), going_on(None));
        assert_eq!(turn(BEGUN, &["{", "[]", "{\"type\":7}"]), going_on(None));
    }

    #[test]
    fn what_opencode_adds_to_a_prompt_is_no_part_of_it() {
        let text = |json| Part::parse(json);
        assert_eq!(
            text(r#"{"type":"text","text":"hello"}"#),
            Some(Part::Text("hello".to_owned()))
        );
        let half_an_emoji = text(r#"{"type":"text","text":"\ud83d"}"#);
        assert_eq!(half_an_emoji, Some(Part::Text("\u{fffd}".to_owned())));
        assert_eq!(text(r#"{"type":"text","text":"x","synthetic":true}"#), None);
        assert_eq!(text(RAN), Some(Part::Tool("bash".to_owned())));
        assert_eq!(text(r#"{"type":"step-start"}"#), None);
        assert_eq!(Head::parse(r#"{"role":"system"}"#), None);
    }
}
