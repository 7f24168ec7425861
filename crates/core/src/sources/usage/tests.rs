//! What is counted, and that it is counted once, wherever counting stops.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use proptest::prelude::*;
use serde_json::{Value, json};
use whosup_sidecar::AgentId;

use super::*;
use crate::sources::agents::adapter;
use crate::sources::transcript::TranscriptFile;

fn counting(agent: &str) -> &'static Counting {
    let agent = AgentId::parse(agent).unwrap();
    adapter(&agent).unwrap().profile().counting.unwrap()
}

struct Made {
    directory: tempfile::TempDir,
    agent: &'static str,
}

impl Made {
    fn new(agent: &'static str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self { directory, agent }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("transcript.jsonl")
    }

    fn append(&self, bytes: &[u8]) {
        let mut options = fs::OpenOptions::new();
        let mut file = options.append(true).create(true).open(self.path()).unwrap();
        file.write_all(bytes).unwrap();
    }

    fn count(&self, before: Option<Counted>) -> Counted {
        let file = TranscriptFile::open(&self.path()).unwrap();
        let counting = counting(self.agent);
        let counted = counting.count(&file, before.clone()).unwrap();
        // It needs no more than the keys that its agent declares.
        let whole = Counting {
            keys: &[],
            ..*counting
        };
        assert_eq!(counted, whole.count(&file, before).unwrap());
        counted
    }
}

fn count(agent: &'static str, records: &[Value]) -> Tally {
    let made = Made::new(agent);
    for record in records {
        made.append(format!("{record}\n").as_bytes());
    }
    made.count(None).tally
}

/// Input, cached input, cache writes, output, requests.
fn numbers(tally: &Tally) -> [u64; 5] {
    let sums = tally.total();
    [
        sums.input,
        sums.cached_input,
        sums.cache_writes,
        sums.output,
        sums.requests,
    ]
}

fn reply(id: &str, output: u64) -> Value {
    json!({"type": "assistant", "timestamp": "2026-11-27T20:53:24.000Z", "sessionId": "s",
        "cwd": "/w", "gitBranch": "main",
        "message": {"id": id, "model": "claude-opus-4-8", "content": [], "usage": {
            "input_tokens": 3, "cache_read_input_tokens": 100,
            "cache_creation_input_tokens": 20, "output_tokens": output,
            "cache_creation": {"ephemeral_1h_input_tokens": 20, "ephemeral_5m_input_tokens": 0}}}})
}

#[test]
fn the_snapshots_of_a_message_count_once_as_they_were_last() {
    let noise = json!({"type": "user", "message": {"content": "\"usage\""}});
    let records = [reply("a", 1), noise, reply("a", 56), reply("b", 7)];
    let tally = count("claude-code", &records);
    assert_eq!(numbers(&tally), [6, 200, 40, 63, 2]);
    let (slot, sums) = tally.sums.first_key_value().unwrap();
    assert_eq!(sums.long_cache_writes, 40);
    assert_eq!(slot.model.as_deref(), Some("claude-opus-4-8"));
    assert_eq!(slot.branch.as_deref(), Some("main"));
    assert_eq!(slot.directory.as_deref(), Some("/w"));
    assert_eq!(slot.starts_at_ms(), Some(1_795_812_300_000));
}

#[test]
fn what_a_fork_copied_is_of_the_other_session() {
    let mut copied = reply("a", 56);
    copied["session_id"] = json!("other");
    let mut marked = reply("b", 56);
    marked["forkedFrom"] = json!({"sessionId": "other"});
    let mut own = reply("c", 7);
    own["session_id"] = json!("s");
    let tally = count("claude-code", &[copied, marked, own]);
    assert_eq!(numbers(&tally), [3, 100, 20, 7, 1]);
}

#[test]
fn what_no_model_wrote_counts_nothing_and_odd_counts_are_none() {
    let mut synthetic = reply("a", 56);
    synthetic["message"]["model"] = json!("<synthetic>");
    let mut odd = reply("b", 0);
    odd["message"]["usage"] = json!({"input_tokens": -5, "output_tokens": 7,
        "cache_read_input_tokens": "many", "cache_creation_input_tokens": 1.5});
    let mut huge = reply("c", u64::MAX);
    huge["message"]["usage"]["input_tokens"] = json!(u64::MAX);
    let tally = count("claude-code", &[synthetic, odd.clone()]);
    assert_eq!(numbers(&tally), [0, 0, 0, 7, 1]);
    let tally = count("claude-code", &[odd, huge]);
    assert_eq!(numbers(&tally), [u64::MAX, 100, 20, u64::MAX, 2]);
    assert_eq!(tally.total().tokens(), u64::MAX);
}

fn codex_line(at: &str, kind: &str, payload: Value) -> Value {
    json!({"timestamp": format!("2026-11-27T{at}Z"), "type": kind, "payload": payload})
}

fn codex_count(at: &str, total: u64, last: u64) -> Value {
    let tokens = |count: u64| {
        json!({"input_tokens": count * 10, "cached_input_tokens": count * 4,
            "output_tokens": count, "reasoning_output_tokens": 0, "total_tokens": count * 11})
    };
    let info = json!({"total_token_usage": tokens(total), "last_token_usage": tokens(last),
        "model_context_window": 258_400});
    codex_line(
        at,
        "event_msg",
        json!({"type": "token_count", "info": info}),
    )
}

fn codex_meta(extra: Value) -> Value {
    let mut payload = json!({"id": "t", "cwd": "/w", "git": {"branch": "main"}});
    let fields = extra.as_object().unwrap().clone();
    payload.as_object_mut().unwrap().extend(fields);
    codex_line("20:00:00.000", "session_meta", payload)
}

#[test]
fn totals_are_differences_also_after_a_reset() {
    let turn = codex_line(
        "20:00:01.000",
        "turn_context",
        json!({"model": "gpt-5-codex", "cwd": "/w"}),
    );
    let records = [
        codex_meta(json!({})),
        turn,
        codex_count("20:00:05.000", 2, 2),
        // Limits alone changed.
        codex_count("20:00:05.500", 2, 2),
        codex_count("20:00:06.000", 5, 3),
        // A request that no event counted.
        codex_count("20:00:07.000", 9, 2),
        // It began anew.
        codex_count("20:00:08.000", 1, 1),
        codex_count("20:00:09.000", 3, 2),
    ];
    let tally = count("codex", &records);
    assert_eq!(numbers(&tally), [12 * 6, 12 * 4, 0, 12, 5]);
    let (slot, _) = tally.sums.first_key_value().unwrap();
    assert_eq!(slot.model.as_deref(), Some("gpt-5-codex"));
    assert_eq!(slot.branch.as_deref(), Some("main"));
}

#[test]
fn the_first_total_of_a_fork_begins_with_its_parents() {
    let base = json!({"forked_from_id": "p", "history_base": {"thread_id": "p"}});
    let tally = count(
        "codex",
        &[codex_meta(base), codex_count("20:00:00.500", 102, 2)],
    );
    assert_eq!(numbers(&tally), [12, 8, 0, 2, 1]);
    // Earlier releases copied the parent's records at once.
    let records = [
        codex_meta(json!({"forked_from_id": "p"})),
        codex_count("20:00:00.100", 40, 40),
        codex_count("20:00:00.200", 100, 60),
        codex_count("20:00:04.000", 102, 2),
    ];
    assert_eq!(numbers(&count("codex", &records)), [12, 8, 0, 2, 1]);
}

#[test]
fn other_agents_count_each_request_once() {
    let metadata = json!({"promptTokenCount": 1234, "candidatesTokenCount": 48,
        "cachedContentTokenCount": 1000, "thoughtsTokenCount": 8, "totalTokenCount": 1290});
    let qwen = [
        json!({"type": "assistant", "uuid": "a", "model": "m", "usageMetadata": metadata}),
        json!({"type": "system", "subtype": "ui_telemetry", "systemPayload": {"usageMetadata": metadata}}),
    ];
    assert_eq!(numbers(&count("qwen-code", &qwen)), [234, 1000, 0, 56, 1]);
    let tokens = json!({"input": 1234, "output": 48, "cached": 1000, "thoughts": 8, "tool": 0, "total": 1290});
    let message = json!({"id": "m", "type": "gemini", "content": "x", "tokens": tokens});
    let gemini = [message.clone(), json!({"$set": {"messages": [message]}})];
    assert_eq!(numbers(&count("gemini", &gemini)), [234, 1000, 0, 56, 1]);
    let usage = json!({"type": "session.usage_record", "data": {"usage": {
        "model": "gpt-5", "inputTokens": 1234, "outputTokens": 56, "cacheReadTokens": 1000,
        "accounting": {"sourceSessionId": "transcript", "sequence": 1, "usageId": "u"}}}});
    let total = json!({"inputTokens": 1234, "outputTokens": 56, "cacheReadTokens": 1000});
    let shutdown = json!({"type": "session.shutdown", "data": {"modelMetrics": {
        "gpt-5": {"requests": {"count": 1}, "usage": total}}}});
    let tally = count("copilot", &[usage.clone(), usage, shutdown]);
    assert_eq!(numbers(&tally), [234, 1000, 0, 56, 1]);
    let step = json!({"type": "context.append_loop_event", "time": 1, "event": {"type": "step.end",
        "usage": {"inputOther": 234, "inputCacheRead": 1000, "inputCacheCreation": 0, "output": 56}}});
    assert_eq!(numbers(&count("kimi-code", &[step])), [234, 1000, 0, 56, 1]);
    let usage = json!({"input_other": 234, "output": 56, "input_cache_read": 1000, "input_cache_creation": 0});
    let status = json!({"timestamp": 1.5, "message": {"type": "StatusUpdate", "payload": {"token_usage": usage}}});
    assert_eq!(
        numbers(&count("kimi-cli", &[status])),
        [234, 1000, 0, 56, 1]
    );
}

#[test]
fn what_a_fork_copied_counts_in_the_other_session_alone() {
    let step = |at: i64| {
        json!({"type": "context.append_loop_event", "time": at, "event": {"type": "step.end",
            "usage": {"inputOther": 234, "inputCacheRead": 1000, "inputCacheCreation": 0, "output": 56}}})
    };
    let forked = json!({"type": "forked", "agentId": "main", "time": 5});
    let kimi = [step(1), forked.clone(), step(2), step(3), forked, step(6)];
    assert_eq!(numbers(&count("kimi-code", &kimi)), [234, 1000, 0, 56, 1]);
    // Kept between the records, it is the same.
    let made = Made::new("kimi-code");
    let mut counted = None;
    for record in &kimi {
        made.append(format!("{record}\n").as_bytes());
        counted = Some(made.count(counted));
    }
    let tally = counted.unwrap().tally;
    assert_eq!(numbers(&tally), [234, 1000, 0, 56, 1]);
    // Copilot's sub-agents are sessions of their own there.
    let usage = |id: &str, session: &str, agent: Option<&str>| {
        json!({"type": "session.usage_record", "agentId": agent, "data": {"usage": {
            "inputTokens": 1234, "outputTokens": 56, "cacheReadTokens": 1000,
            "accounting": {"sourceSessionId": session, "usageId": id}}}})
    };
    let copilot = [
        usage("a", "other", None),
        usage("b", "transcript", None),
        usage("c", "sub", Some("agent")),
    ];
    assert_eq!(numbers(&count("copilot", &copilot)), [468, 2000, 0, 112, 2]);
}

fn count_whole(agent: &str, records: &[Value], born_at_ms: i64) -> Tally {
    counting(agent).count_records(records, Some(born_at_ms))
}

#[test]
fn records_that_are_read_as_a_whole_count_each_request_once() {
    let reply = |at: i64, output: u64| {
        json!({"message": {"role": "assistant", "modelID": "m", "cost": 0.25,
            "time": {"created": at}, "path": {"cwd": "/w"},
            "tokens": {"total": 0, "input": 234, "output": output, "reasoning": 8,
                "cache": {"read": 1000, "write": 7}}}})
    };
    let asked =
        json!({"message": {"role": "user", "time": {"created": 8}}, "typed": {"text": "x"}});
    // The first one was copied; another one has just begun.
    let mut begun = reply(12, 0);
    begun["message"]["tokens"] = json!({"input": 0, "output": 0, "reasoning": 0,
        "cache": {"read": 0, "write": 0}});
    begun["message"]["cost"] = json!(0);
    let records = [reply(9, 48), asked, reply(11, 48), begun];
    for agent in ["opencode", "kilo"] {
        let tally = count_whole(agent, &records, 10);
        assert_eq!(numbers(&tally), [234, 1000, 7, 56, 1], "{agent}");
        assert_eq!(tally.total().cost_nano, 250_000_000);
        assert_eq!(tally.total().reasoning, Some(8));
    }
    let metrics = json!({"inputTokens": 1234, "outputTokens": 56, "cacheReadTokens": 1000,
        "cacheWriteTokens": 0, "cost": 0.5});
    let replied = json!({"id": "a", "role": "assistant", "ts": 11, "metrics": metrics});
    let summary = json!({"id": "b", "role": "user", "ts": 12,
        "metadata": {"kind": "compaction", "usageBefore": metrics}});
    let tally = count_whole("cline", &[replied.clone(), replied, summary], 10);
    assert_eq!(numbers(&tally), [2 * 234, 2000, 0, 112, 2]);
    let state = json!({"total": {"inputTokens": 1234, "cachedInputTokens": 1000,
        "outputTokens": 56, "totalTokens": 1290}, "last": {}, "model": "m"});
    let tally = count_whole("vibe", &[state], 10);
    assert_eq!(numbers(&tally), [234, 1000, 0, 56, 1]);
    assert_eq!(tally.sums.keys().next().unwrap().quarter, None);
}

#[test]
fn of_an_agent_that_records_a_cost_alone_the_tokens_are_not_known() {
    let row = |cost: f64| json!({"prompt_tokens": 500, "completion_tokens": 20, "cost": cost});
    let sums = count_whole("crush", &[row(0.5)], 10).total();
    assert_eq!(
        (sums.cost_nano, sums.are_tokens_known()),
        (500_000_000, false)
    );
    // A flat price, and one that is less than its sub-agents' so far.
    for nothing in [0.0, -0.5] {
        let tally = count_whole("crush", &[row(nothing)], 10);
        assert!(tally.sums.is_empty());
    }
    let mut without_price = std::collections::BTreeSet::new();
    let tally = count_whole("crush", &[row(0.5)], 10);
    let usage = Usage::of(&tally, &Prices::shipped(), &mut without_price);
    assert_eq!(usage.cost.dollars(), Some(0.5));
    assert!(usage.cost.is_by_agent() && without_price.is_empty());
}

#[test]
fn entries_that_are_older_than_a_session_of_pi_were_copied_and_its_own_cost_is_kept() {
    let usage = json!({"input": 5, "output": 6, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 11,
        "cost": {"total": 0.25}});
    let entry = |id: &str, at: &str| {
        json!({"type": "message", "id": id, "timestamp": at,
            "message": {"role": "assistant", "model": "m", "usage": usage}})
    };
    let records = [
        json!({"type": "session", "version": 3, "id": "s", "timestamp": "2026-11-27T20:00:00Z", "cwd": "/w"}),
        entry("a", "2026-11-27T19:00:00Z"),
        entry("b", "2026-11-27T20:00:01Z"),
    ];
    let tally = count("pi", &records);
    assert_eq!(numbers(&tally), [5, 0, 0, 6, 1]);
    assert_eq!(tally.total().cost_nano, 250_000_000);
}

#[test]
fn a_long_line_counts_and_a_torn_one_only_when_it_has_an_end() {
    let made = Made::new("claude-code");
    let mut long = reply("a", 56);
    long["message"]["content"] = json!([{"type": "text", "text": "x".repeat(64 << 20)}]);
    made.append(format!("{long}\n").as_bytes());
    let torn = reply("b", 7).to_string();
    let (first, second) = torn.split_at(torn.len() / 2);
    made.append(first.as_bytes());
    let counted = made.count(None);
    assert_eq!(numbers(&counted.tally), [3, 100, 20, 56, 1]);
    made.append(second.as_bytes());
    let counted = made.count(Some(counted));
    assert_eq!(numbers(&counted.tally)[4], 1);
    made.append(b"\n");
    let counted = made.count(Some(counted));
    assert_eq!(numbers(&counted.tally), [6, 200, 40, 63, 2]);
}

#[test]
fn a_file_that_is_another_one_now_is_counted_anew() {
    let made = Made::new("claude-code");
    let line = |record: Value| format!("{record}\n");
    made.append(line(reply("a", 1)).as_bytes());
    made.append(line(reply("b", 2)).as_bytes());
    let counted = made.count(None);
    // Shorter, rewritten in place, replaced.
    fs::write(made.path(), line(reply("c", 3))).unwrap();
    let shorter = made.count(Some(counted.clone()));
    assert_eq!(numbers(&shorter.tally)[3], 3);
    let rewritten = line(reply("d", 4)) + &line(reply("e", 5)) + &line(reply("f", 6));
    fs::write(made.path(), rewritten).unwrap();
    assert_eq!(numbers(&made.count(Some(counted.clone())).tally)[3], 15);
    let other = made.directory.path().join("other");
    fs::write(&other, line(reply("a", 1)) + &line(reply("b", 9))).unwrap();
    fs::rename(other, made.path()).unwrap();
    assert_eq!(numbers(&made.count(Some(counted)).tally)[3], 10);
}

#[test]
fn what_a_cache_kept_is_read_as_it_was_and_what_is_damaged_is_nothing() {
    let made = Made::new("claude-code");
    made.append(format!("{}\n{}\n", reply("a", 1), reply("b", 2)).as_bytes());
    let kept = Kept {
        len: 7,
        modified_ms: Some(5),
        counted: made.count(None),
    };
    let whole = KeptSession {
        file: "a.json".to_owned(),
        state: 9,
        tally: kept.counted.tally.sums_alone(),
    };
    let shelf = Shelf {
        transcripts: [("a".to_owned(), kept)].into(),
        sessions: [("s".to_owned(), whole)].into(),
    };
    let bytes = shelf.to_bytes();
    assert_eq!(Shelf::parse(&bytes), shelf);
    for cut in 0..bytes.len() {
        assert_eq!(Shelf::parse(&bytes[..cut]), Shelf::default());
    }
    let other = String::from_utf8(bytes)
        .unwrap()
        .replacen("\"version\":3", "\"version\":0", 1);
    assert_eq!(Shelf::parse(other.as_bytes()), Shelf::default());
}

/// Lines as two agents write them, sound and unsound.
fn lines(agent: &'static str) -> impl Strategy<Value = Vec<u8>> {
    let record =
        (0..6_u8, 0..300_u64, 0..5_u64).prop_map(move |(kind, id, count)| match (kind, agent) {
            (0, _) => "{\"usage\":\n\n[1]\n".to_owned(),
            (1, _) => format!("{{\"usage\":\"{}\"}}\n", "x".repeat(9_000)),
            (_, "codex") => format!("{}\n", codex_count("20:00:05.000", id, count)),
            _ => format!("{}\n", reply(&format!("m{}", id % 90), count)),
        });
    prop::collection::vec(record, 0..120).prop_map(|lines| lines.concat().into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_cut_of_the_appends_gives_the_same_sums(
        claude in lines("claude-code"),
        codex in lines("codex"),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        for (agent, bytes) in [("claude-code", claude), ("codex", codex)] {
            let whole = Made::new(agent);
            whole.append(&bytes);
            let right = whole.count(None).tally;
            let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            ends.push(bytes.len());
            ends.sort_unstable();
            let made = Made::new(agent);
            let (mut start, mut counted) = (0, None);
            for end in ends {
                made.append(&bytes[start..end]);
                let now = made.count(counted);
                // Each time as a cache gives it back.
                let kept = Kept { len: 0, modified_ms: None, counted: now };
                let transcripts = [("t".to_owned(), kept)].into();
                let shelf = Shelf { transcripts, ..Shelf::default() };
                let kept = Shelf::parse(&shelf.to_bytes()).transcripts.remove("t");
                counted = kept.map(|kept| kept.counted);
                prop_assert!(counted.is_some());
                start = end;
            }
            prop_assert_eq!(&counted.unwrap().tally, &right);
            // And what is counted is what each message was last.
            prop_assert!(right.total().requests <= 120);
        }
    }
}
