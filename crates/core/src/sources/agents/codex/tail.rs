//! What the last records of a rollout say that the thread was doing.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::record::{Kind, Record};
use crate::adapter::phase::{Phase, WaitingFor};
use crate::sources::agents::kit::bad_lines::BadLines;
use crate::sources::transcript::{TailBounds, TranscriptError, TranscriptFile};

/// How far back a rollout is read, in bytes. A turn that wrote more than this
/// leaves its phase open.
const TAIL_BYTES_MAX: u64 = 1 << 20;

/// What the last records of a rollout say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tail {
    /// The time of the last record that is no bookkeeping, in milliseconds
    /// since 1970.
    pub(super) last_record_at_ms: Option<i64>,
    /// There is a record that is no bookkeeping, with a date or without one.
    pub(super) has_records: bool,
    /// Until when something may have been recorded that is missing at its end.
    pub(super) perhaps_until_ms: Option<i64>,
    /// The model of the last turn.
    pub(super) model: Option<String>,
    /// The directory of the last turn.
    pub(super) work_dir: Option<PathBuf>,
    /// Whether the last turn has ended.
    pub(super) phase: Option<Phase>,
    /// What it waits for, where that was recorded.
    pub(super) waiting_for: Option<WaitingFor>,
    /// The date of the record that shows this phase last.
    pub(super) phase_at_ms: Option<i64>,
    /// The date of the record that began it.
    pub(super) phase_since_ms: Option<i64>,
}

impl Tail {
    /// Reads the end of the rollout at `path`. Lines that can't be read are
    /// counted; a long one carries an image or the like and is passed over.
    pub(super) fn read(path: &Path, bad_lines: &mut BadLines) -> Result<Self, TranscriptError> {
        let file = TranscriptFile::open(path)?;
        let mut fold = Fold::default();
        let bounds = TailBounds {
            bytes_max: TAIL_BYTES_MAX,
        };
        for line in file.backwards(bounds)? {
            let line = line?;
            if line.is_too_long() {
                continue;
            }
            let values = bad_lines.values(&line);
            // Of several values on a line the last was written last.
            for record in values.iter().rev().filter_map(Record::of) {
                fold.add(record);
            }
            if fold.is_complete() {
                break;
            }
        }
        let mut tail = fold.finish();
        let date_of = |record: &Value| Record::of(record)?.at_ms;
        let missing = file.missing_end(tail.last_record_at_ms, date_of)?;
        tail.perhaps_until_ms = missing.map(|end| end.until_ms);
        Ok(tail)
    }
}

/// Takes records from the last towards the first.
#[derive(Debug, Default)]
struct Fold {
    tail: Tail,
    /// Turns that were seen to end.
    ended: HashSet<String>,
    /// A turn ended that is not named.
    has_unnamed_end: bool,
    /// Calls that were seen to be answered.
    answered: HashSet<String>,
    /// What the last call that only a person can answer asks for.
    asks_for: Option<WaitingFor>,
    is_phase_known: bool,
    ended_at_ms: Option<i64>,
    answered_at_ms: Option<i64>,
    /// The newest call without an answer: a person may be asked about it, which is not
    /// recorded.
    open_at_ms: Option<i64>,
}

impl Fold {
    fn add(&mut self, record: Record) {
        if record.kind != Kind::Bookkeeping {
            self.tail.has_records = true;
            self.tail.last_record_at_ms = self.tail.last_record_at_ms.or(record.at_ms);
        }
        match record.kind {
            Kind::TurnContext { model, work_dir } => {
                self.tail.model = self.tail.model.take().or(model);
                self.tail.work_dir = self.tail.work_dir.take().or(work_dir);
            }
            Kind::TurnEnded { turn } => {
                self.ended_at_ms = self.ended_at_ms.or(record.at_ms);
                match turn {
                    Some(turn) => {
                        self.ended.insert(turn);
                    }
                    None => self.has_unnamed_end = true,
                }
            }
            Kind::Answer { id: Some(id) } => {
                self.answered_at_ms = self.answered_at_ms.or(record.at_ms);
                self.answered.insert(id);
            }
            Kind::Call { id, asks_for, .. } => {
                let is_answered = id.is_some_and(|id| self.answered.contains(&id));
                if !is_answered {
                    self.open_at_ms = self.open_at_ms.or(record.at_ms);
                    self.asks_for = self.asks_for.or(asks_for);
                }
            }
            Kind::TurnStarted { turn, root } if !self.is_phase_known => {
                self.started(turn.as_deref(), root.as_deref(), record.at_ms);
            }
            _ => {}
        }
    }

    fn started(&mut self, turn: Option<&str>, root: Option<&str>, at_ms: Option<i64>) {
        let has_ended = self.has_unnamed_end
            || match turn {
                Some(turn) => self.ended.contains(turn),
                None => !self.ended.is_empty(),
            };
        if !has_ended {
            self.tail.waiting_for = self.asks_for;
            self.tail.phase_at_ms = self.open_at_ms.or(self.answered_at_ms).or(at_ms);
            self.tail.phase_since_ms = match self.asks_for {
                Some(_) => self.open_at_ms,
                None => at_ms,
            };
            self.tail.phase = Some(match self.asks_for {
                Some(_) => Phase::Waiting,
                None => Phase::Working,
            });
            self.is_phase_known = true;
        } else if root.is_none()
            || root == turn
            || root.is_some_and(|root| self.ended.contains(root))
        {
            self.tail.phase = Some(Phase::Idle);
            self.tail.phase_at_ms = self.ended_at_ms;
            self.is_phase_known = true;
        } else {
            // A part of a turn that began earlier; what it asked for has passed.
            self.asks_for = None;
        }
    }

    fn is_complete(&self) -> bool {
        self.is_phase_known && self.tail.model.is_some() && self.tail.last_record_at_ms.is_some()
    }

    fn finish(mut self) -> Tail {
        // The last turn ended; where it began is out of reach.
        if !self.is_phase_known && (self.has_unnamed_end || !self.ended.is_empty()) {
            self.tail.phase = Some(Phase::Idle);
            self.tail.phase_at_ms = self.ended_at_ms;
        }
        self.tail
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
        assert_eq!((tail.phase, tail.waiting_for), (phase, waiting_for));
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
        assert_eq!(tail.last_record_at_ms, Some(1_795_812_842_000));
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
        assert_eq!(tail.model.as_deref(), Some("new"));
        assert_eq!(tail.work_dir.as_deref(), Some(Path::new("/b")));
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
        assert_eq!(tail.phase, Some(Phase::Working));
        let message = bad_lines.message().unwrap();
        assert!(message.starts_with("3 of its lines"), "{message}");
    }
}
