//! What a thread was doing, by the last records of its rollout.

use std::collections::HashSet;
use std::path::Path;

use serde_json::Value;

use super::record::{DIALECT, TurnEvent, turn_event};
use crate::adapter::Description;
use crate::adapter::phase::{Phase, WaitingFor};
use crate::sources::agents::kit::bad_lines::{BadLines, LineReader};
use crate::sources::agents::kit::dialect::date_at;
use crate::sources::transcript::{Line, TranscriptError, TranscriptFile};

/// Facts in the last records of a rollout.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tail {
    /// The facts about the session.
    pub(super) found: Description,
    /// There is a record that is no bookkeeping, with a date or without one.
    pub(super) has_records: bool,
    /// The latest possible date of a record, if the end of the file is missing.
    pub(super) perhaps_until_ms: Option<i64>,
}

impl Tail {
    /// Reads the end of the rollout at `path`. Lines that can't be read are
    /// counted; a long one carries an image or the like and is passed over.
    pub(super) fn read(path: &Path, bad_lines: &mut BadLines) -> Result<Self, TranscriptError> {
        let file = TranscriptFile::open(path)?;
        let mut reader = Reader {
            bad_lines,
            turns: Turns::default(),
            has_records: false,
        };
        let mut found = DIALECT.tail(&file, &mut reader)?;
        let has_records = reader.has_records;
        reader.turns.finish(&mut found);
        let missing = DIALECT.missing_end(&file, found.last_activity_at_ms)?;
        Ok(Self {
            found,
            has_records,
            perhaps_until_ms: missing.map(|end| end.until_ms),
        })
    }
}

struct Reader<'b> {
    bad_lines: &'b mut BadLines,
    turns: Turns,
    has_records: bool,
}

impl LineReader for Reader<'_> {
    fn values(&mut self, line: &Line) -> Vec<Value> {
        if line.is_too_long() {
            return Vec::new();
        }
        let records = self.bad_lines.values(line);
        // If a line has several values, the last was written last.
        for record in records.iter().rev() {
            self.has_records |= !(DIALECT.record)(record).is_aside;
            if let Some(event) = turn_event(record) {
                self.turns.add(event, date_at(record, "/timestamp"));
            }
        }
        records
    }

    fn wants_more(&self) -> bool {
        !self.turns.is_known
    }
}

/// Takes the turns of a rollout from the last towards the first.
#[derive(Debug, Default)]
struct Turns {
    phase: Option<Phase>,
    waiting_for: Option<WaitingFor>,
    phase_at_ms: Option<i64>,
    phase_since_ms: Option<i64>,
    is_known: bool,
    /// Turns that were seen to end.
    ended: HashSet<String>,
    /// A turn ended that is not named.
    has_unnamed_end: bool,
    /// Calls that were seen to be answered.
    answered: HashSet<String>,
    /// The subject of the last call that only a person can answer.
    asks_for: Option<WaitingFor>,
    ended_at_ms: Option<i64>,
    answered_at_ms: Option<i64>,
    /// The newest call without an answer: a person may be asked about it, which is not
    /// recorded.
    open_at_ms: Option<i64>,
}

impl Turns {
    fn add(&mut self, event: TurnEvent<'_>, at_ms: Option<i64>) {
        match event {
            TurnEvent::Ended { turn } => {
                self.ended_at_ms = self.ended_at_ms.or(at_ms);
                self.has_unnamed_end |= turn.is_none();
                self.ended.extend(turn.map(str::to_owned));
            }
            TurnEvent::Answered { id } => {
                self.answered_at_ms = self.answered_at_ms.or(at_ms.filter(|_| id.is_some()));
                self.answered.extend(id.map(str::to_owned));
            }
            TurnEvent::Called { id, asks_for } => {
                if !id.is_some_and(|id| self.answered.contains(id)) {
                    self.open_at_ms = self.open_at_ms.or(at_ms);
                    self.asks_for = self.asks_for.or(asks_for);
                }
            }
            TurnEvent::Started { turn, root } if !self.is_known => self.started(turn, root, at_ms),
            TurnEvent::Started { .. } => {}
        }
    }

    fn started(&mut self, turn: Option<&str>, root: Option<&str>, at_ms: Option<i64>) {
        let has_ended = self.has_unnamed_end
            || match turn {
                Some(turn) => self.ended.contains(turn),
                None => !self.ended.is_empty(),
            };
        if !has_ended {
            let (phase, since_ms) = match self.asks_for {
                Some(_) => (Phase::Waiting, self.open_at_ms),
                None => (Phase::Working, at_ms),
            };
            self.phase = Some(phase);
            self.phase_since_ms = since_ms;
            self.waiting_for = self.asks_for;
            self.phase_at_ms = self.open_at_ms.or(self.answered_at_ms).or(at_ms);
            self.is_known = true;
        } else if root.is_none_or(|root| Some(root) == turn || self.ended.contains(root)) {
            self.phase = Some(Phase::Idle);
            self.phase_at_ms = self.ended_at_ms;
            self.is_known = true;
        } else {
            // A part of a turn that began earlier: its request is over.
            self.asks_for = None;
        }
    }

    fn finish(self, found: &mut Description) {
        found.phase = self.phase;
        found.waiting_for = self.waiting_for;
        found.phase_at_ms = self.phase_at_ms;
        found.phase_since_ms = self.phase_since_ms;
        // The last turn ended; where it began is out of reach.
        if !self.is_known && (self.has_unnamed_end || !self.ended.is_empty()) {
            found.phase = Some(Phase::Idle);
            found.phase_at_ms = self.ended_at_ms;
        }
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(fields: Value) -> Value {
        json!({"timestamp": "2026-11-27T20:54:00.000Z", "type": "event_msg", "payload": fields})
    }

    fn started(turn: &str, root: &str) -> Value {
        event(json!({"type": "task_started", "turn_id": turn, "root_turn_id": root}))
    }

    fn complete(turn: &str) -> Value {
        event(json!({"type": "task_complete", "turn_id": turn}))
    }

    fn call(name: &str, id: &str) -> Value {
        let payload = json!({"type": "function_call", "name": name, "call_id": id});
        json!({"timestamp": "2026-11-27T20:54:01.000Z", "type": "response_item", "payload": payload})
    }

    fn answer(id: &str) -> Value {
        let payload = json!({"type": "function_call_output", "call_id": id});
        json!({"timestamp": "2026-11-27T20:54:02.000Z", "type": "response_item", "payload": payload})
    }

    fn read(records: &[Value]) -> Tail {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.jsonl");
        let lines: Vec<String> = records.iter().map(Value::to_string).collect();
        std::fs::write(&path, lines.join("\n") + "\n").unwrap();
        Tail::read(&path, &mut BadLines::default()).unwrap()
    }

    #[track_caller]
    fn check(records: &[Value], phase: Option<Phase>, waiting_for: Option<WaitingFor>) {
        let tail = read(records);
        let found = tail.found;
        assert_eq!((found.phase, found.waiting_for), (phase, waiting_for));
    }

    #[test]
    fn a_turn_without_an_end_is_work() {
        let working = Some(Phase::Working);
        check(&[started("a", "a")], working, None);
        check(
            &[started("a", "a"), complete("a"), started("b", "b")],
            working,
            None,
        );
        check(
            &[started("a", "a"), call("exec_command", "c")],
            working,
            None,
        );
        // A part has ended, the turn has not.
        let parts = [started("a", "a"), started("b", "a"), complete("b")];
        check(&parts, working, None);
    }

    #[test]
    fn a_turn_that_ended_is_idleness() {
        let idle = Some(Phase::Idle);
        check(&[started("a", "a"), complete("a")], idle, None);
        let aborted = event(json!({"type": "turn_aborted", "reason": "interrupted"}));
        check(
            &[started("a", "a"), call("request_user_input", "c"), aborted],
            idle,
            None,
        );
        check(&[complete("a")], idle, None);
        let parts = [
            started("a", "a"),
            started("b", "a"),
            complete("b"),
            complete("a"),
        ];
        check(&parts, idle, None);
    }

    #[test]
    fn a_call_that_only_a_person_answers_is_waiting() {
        let question = call("request_user_input", "c");
        let waiting = Some(Phase::Waiting);
        let asked = [started("a", "a"), question.clone()];
        check(&asked, waiting, Some(WaitingFor::Question));
        let answered = [started("a", "a"), question, answer("c")];
        check(&answered, Some(Phase::Working), None);
        let approval = event(json!({"type": "exec_approval_request", "call_id": "d"}));
        let asked = [started("a", "a"), call("exec_command", "d"), approval];
        check(&asked, waiting, Some(WaitingFor::Permission));
    }

    #[test]
    fn without_turns_there_is_no_phase() {
        check(&[], None, None);
        check(&[call("exec_command", "c")], None, None);
    }

    #[test]
    fn bookkeeping_is_no_sign_of_life() {
        let mut settings = event(json!({"type": "thread_settings_applied"}));
        settings["timestamp"] = json!("2026-11-29T00:00:00Z");
        let tail = read(&[started("a", "a"), answer("c"), settings]);
        assert_eq!(tail.found.last_activity_at_ms, Some(1_795_812_842_000));
    }

    #[test]
    fn model_and_directory_are_those_of_the_last_turn() {
        let context = |model: &str, cwd: &str| {
            let payload = json!({"model": model, "cwd": cwd});
            json!({"timestamp": "2026-11-27T20:54:00Z", "type": "turn_context", "payload": payload})
        };
        let tail = read(&[
            context("old", "/a"),
            started("a", "a"),
            context("new", "/b"),
        ]);
        assert_eq!(tail.found.model.as_deref(), Some("new"));
        assert_eq!(tail.found.work_dir.as_deref(), Some(Path::new("/b")));
    }

    #[test]
    fn torn_fused_and_broken_lines_are_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.jsonl");
        let mut bytes = started("a", "a").to_string().into_bytes();
        bytes.extend(complete("a").to_string().bytes());
        bytes.extend(b"\n\0\0\0\0\n{\"type\":\n[1]\n\xff\xfe\n");
        bytes.extend(started("b", "b").to_string().bytes());
        bytes.extend(b"\n{\"timestamp\":\"2026-11");
        std::fs::write(&path, bytes).unwrap();
        let mut bad_lines = BadLines::default();
        let tail = Tail::read(&path, &mut bad_lines).unwrap();
        assert_eq!(tail.found.phase, Some(Phase::Working));
        let message = bad_lines.message().unwrap();
        assert!(message.starts_with("3 of its lines"), "{message}");
    }
}
