//! What sessions used, summed up.

use serde_json::{Value, json};

use super::world::{WHOSUP, World, said};

/// All of the past.
const ALWAYS: [&str; 3] = ["--utc", "--since", "2000-01-01T00:00:00Z"];

struct Replies<'a> {
    world: &'a World,
}

impl Replies<'_> {
    /// Adds a reply to the transcript of a session or of its sub-agent.
    fn add(&self, file: &str, at: &str, model: &str, counts: [u64; 4]) {
        let [input, cached, written, output] = counts;
        let line = json!({
            "type": "assistant", "timestamp": at, "cwd": self.world.work_dir(), "gitBranch": "main",
            "isSidechain": file.contains("subagents"), "version": "2.1.197",
            "message": { "id": format!("{at}{file}"), "role": "assistant", "model": model,
                "content": [{ "type": "text", "text": "done" }], "stop_reason": "end_turn",
                "usage": { "input_tokens": input, "cache_read_input_tokens": cached,
                    "cache_creation_input_tokens": written, "output_tokens": output } },
        });
        let path = self.world.home().join(".claude/projects/-p").join(file);
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        let name = format!(".claude/projects/-p/{file}");
        self.world.write(&name, format!("{before}{line}\n"));
    }
}

/// Two sessions, one with a sub-agent; two days, two models, of which one has no price.
fn used() -> World {
    let world = World::new();
    let replies = Replies { world: &world };
    let (s1, s2) = (&world.s1, &world.s2);
    let opus = "claude-opus-4-8";
    replies.add(
        &format!("{s1}.jsonl"),
        "2026-11-26T23:50:00Z",
        opus,
        [10, 100, 20, 5],
    );
    replies.add(
        &format!("{s1}.jsonl"),
        "2026-11-27T00:10:00Z",
        opus,
        [20, 200, 0, 7],
    );
    replies.add(
        &format!("{s1}/subagents/agent-a1.jsonl"),
        "2026-11-27T00:11:00Z",
        opus,
        [1, 0, 0, 2],
    );
    replies.add(
        &format!("{s2}.jsonl"),
        "2026-11-27T09:00:00Z",
        "nobody-knows",
        [3, 0, 0, 4],
    );
    world
}

fn usage(world: &World, more: &[&str]) -> Value {
    let arguments = ["usage", "--json"].iter().chain(&ALWAYS).chain(more);
    world.run(arguments).json()
}

/// Input, cached input, cache writes and output.
fn counts(row: &Value) -> [u64; 4] {
    [
        "input_tokens",
        "cached_input_tokens",
        "cache_write_tokens",
        "output_tokens",
    ]
    .map(|name| row[name].as_u64().unwrap())
}

#[test]
fn sums_agree_however_they_are_grouped() {
    let world = used();
    let by_day = usage(&world, &[]);
    let days: Vec<(&str, [u64; 4])> = by_day["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["day"].as_str().unwrap(), counts(row)))
        .collect();
    assert_eq!(
        days,
        [
            ("2026-11-26", [10, 100, 20, 5]),
            ("2026-11-27", [24, 200, 0, 13])
        ]
    );
    for by in [
        "session",
        "project",
        "agent",
        "model",
        "branch",
        "day,model",
    ] {
        let answer = usage(&world, &["--by", by]);
        assert_eq!(answer["total"], by_day["total"], "{by}");
        let rows = answer["rows"].as_array().unwrap().iter().map(counts);
        let sum = rows.reduce(|one, other| std::array::from_fn(|at| one[at] + other[at]));
        assert_eq!(sum, Some(counts(&by_day["total"])), "{by}");
    }
    // The sub-agent is counted with its session.
    let by_session = usage(&world, &["--by", "session"]);
    let first = &by_session["rows"][0];
    assert_eq!(first["session"], format!("claude-code:{}", world.s1));
    assert_eq!(counts(first), [31, 300, 20, 14]);
}

#[test]
fn a_directory_is_the_same_however_it_is_written() {
    let world = used();
    let real = world.work_dir().to_owned();
    std::fs::create_dir(real.join("sub")).unwrap();
    let link = world.home().join("link");
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let path = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    // One session was started by way of the link.
    let name = format!(".claude/projects/-p/{}.jsonl", world.s2);
    let text = std::fs::read_to_string(world.home().join(&name)).unwrap();
    world.write(&name, text.replace(&path(&real), &path(&link)));
    let all = usage(&world, &[])["total"].clone();
    for written in [&real, &link, &real.join("sub/.."), &link.join("sub/..")] {
        let answer = usage(&world, &["--cwd", &path(written)]);
        assert_eq!(answer["total"], all, "{}", written.display());
    }
    let none = usage(&world, &["--cwd", &path(&real.join("sub"))]);
    assert_eq!(none["rows"], json!([]));
    let missing = path(&real.join("missing"));
    let said = ["usage", "list"].map(|command| world.run([command, "--cwd", &missing]));
    let [usage, list] = said.map(|said| (said.status, said.err));
    assert_eq!(usage, list);
    assert_eq!(usage.0, 2);
}

#[test]
fn a_model_without_a_price_is_named_and_costs_nothing_that_is_known() {
    let world = used();
    let answer = usage(&world, &["--by", "model"]);
    assert_eq!(answer["without_price"], json!(["nobody-knows"]));
    let [known, unknown] = answer["rows"].as_array().unwrap().as_slice() else {
        panic!("{answer:#}");
    };
    assert_eq!(
        (&unknown["cost"], &unknown["tokens_without_price"]),
        (&json!(null), &json!(7))
    );
    // 31 * 5 + 300 * 0.5 + 20 * 6.25 + 14 * 25, in millionths of a dollar.
    assert_eq!(
        known["cost"],
        json!({ "amount": 0.00078, "currency": "USD", "source": "prices" })
    );
    assert_eq!(answer["total"]["cost"], known["cost"]);
    world.write(
        ".config/whosup/prices.toml",
        "[model.\"nobody-*\"]\ninput = 1\noutput = 2\n",
    );
    let answer = usage(&world, &["--by", "model"]);
    assert_eq!(answer["without_price"], json!([]));
    assert_eq!(answer["rows"][1]["cost"]["amount"], json!(0.000_011));
    world.write(".config/whosup/prices.toml", "\n[model.x]\ninput = -1\n");
    let said = world.run(["usage"]);
    assert_eq!(said.status, 2);
    assert!(said.err.contains("prices.toml`, line 2"), "{}", said.err);
}

#[test]
fn what_is_shown_of_one_session_is_its_own() {
    let world = used();
    let shown = world.run(["show", &world.s1, "--json"]).json();
    let session = &shown["sessions"][0];
    assert_eq!(counts(&session["usage"]), [30, 300, 20, 12]);
    assert_eq!(counts(&shown["usage_with_sub_agents"]), [31, 300, 20, 14]);
    assert_eq!(session["context"]["tokens"], json!(220));
    let shown = world.run(["show", &world.s1]).out;
    assert!(
        shown.contains("362 (30 input, 300 cached, 20 cache writes, 12 output)"),
        "{shown}"
    );
    let line = "(tokens with them: 365 (31 input, 300 cached, 20 cache writes, 14 output), $0.00";
    assert!(shown.contains(line), "{shown}");
    let without = world.run(["show", &world.s2, "--json"]).json();
    assert_eq!(without["usage_with_sub_agents"], json!(null));
    // In a list only on request.
    let listed = |more: &[&str]| {
        let arguments = ["list", "--all", "--json"].iter().chain(more);
        let sessions = world.run(arguments).sessions();
        let first = sessions
            .iter()
            .find(|session| session["session_id"] == world.s1.as_str());
        first.unwrap()["usage"].clone()
    };
    assert_eq!(listed(&[]), json!(null));
    assert_eq!(listed(&["--usage"]), session["usage"]);
    let table = world
        .run(["list", "--all", "--columns", "tokens,cost,context"])
        .out;
    assert!(table.contains("362  $0.0007  220 0%?"), "{table}");
}

#[test]
fn a_person_sees_a_table_and_a_program_values() {
    let world = used();
    let arguments = ["usage"].iter().chain(&ALWAYS);
    let said = world.run(arguments.clone());
    assert_eq!(said.status, 0);
    insta::assert_snapshot!("usage_table", said.out);
    // Other programs of this machine may cause warnings.
    let hint = "no price is known for nobody-knows; you can add prices";
    assert!(said.err.contains(hint), "{}", said.err);
    let csv = world
        .run(arguments.chain(&["--csv", "--by", "day,model"]))
        .out;
    insta::assert_snapshot!("usage_csv", csv);
}

#[test]
fn nothing_to_count_is_said_before_what_to_try() {
    let world = World::new();
    let line = format!("'{WHOSUP}' usage --since 2026-11-27T09:05:00Z 2>&1");
    let mut shell = assert_cmd::Command::new("sh");
    shell
        .args(["-c", &line])
        .env("HOME", world.home())
        .env("TZ", "UTC");
    let said = said(&mut shell);
    assert_eq!(said.status, 0);
    let expected = "no tokens were counted since 2026-11-27 09:05:00\nhint: `--since 30d` counts";
    assert!(said.out.starts_with(expected), "{}", said.out);
}

#[test]
fn limits_that_an_agent_recorded_are_shown_until_use_begins_anew() {
    let world = World::new();
    let now = jiff::Timestamp::now();
    let window = |minutes: u64, used: f64, ends: i64| json!({ "used_percent": used, "window_minutes": minutes, "resets_at": now.as_second() + ends });
    let limits = json!({ "limit_id": "codex", "primary": window(300, 34.4, 7_100),
        "secondary": window(10_080, 7.0, -1) });
    let tokens = json!({ "input_tokens": 10, "cached_input_tokens": 4, "output_tokens": 5,
        "reasoning_output_tokens": 0, "total_tokens": 15 });
    let id = "01a21ec8-c5bb-78f0-959a-e72776985ddc";
    let meta = json!({ "timestamp": now.to_string(), "type": "session_meta",
        "payload": { "id": id, "cwd": world.work_dir(), "cli_version": "0.171.0" } });
    let count = json!({ "timestamp": now.to_string(), "type": "event_msg", "payload": {
        "type": "token_count", "rate_limits": limits,
        "info": { "total_token_usage": tokens, "last_token_usage": tokens } } });
    let name = format!(".codex/sessions/2026/11/27/rollout-2026-11-27T20-53-24-{id}.jsonl");
    world.write(&name, format!("{meta}\n{count}\n"));
    let answer = usage(&world, &["--agent", "codex"]);
    let [limit] = answer["limits"].as_array().unwrap().as_slice() else {
        panic!("{answer:#}");
    };
    assert_eq!(
        (&limit["window_minutes"], &limit["used_percent"]),
        (&json!(300), &json!(34.4))
    );
    let shown = world.run(["usage", "--agent", "codex"]);
    let line = "codex: 34% of the 5h limit used, resets in 1h (recorded ";
    assert!(shown.err.contains(line), "{}", shown.err);
}

#[test]
fn what_a_document_counts_is_on_the_last_day_of_its_session() {
    let world = World::new();
    let id = "0a022b20-e8f2-410e-9552-000000000001";
    let usage_of_reply = json!({ "model": "nobody-knows", "prompt_tokens": 40, "completion_tokens": 5,
        "prompt_tokens_details": { "cached_tokens": 30 } });
    let mut document = json!({ "sessionId": id, "title": "x", "workspaceDirectory": world.work_dir(),
        "history": [{ "message": { "role": "assistant", "content": "x", "usage": usage_of_reply } }],
        "usage": { "promptTokens": 40, "completionTokens": 5 } });
    let name = format!(".continue/sessions/{id}.json");
    world.write(&name, document.to_string());
    let answer = usage(&world, &["--agent", "continue"]);
    let [row] = answer["rows"].as_array().unwrap().as_slice() else {
        panic!("{answer:#}");
    };
    assert_eq!(
        (counts(row), &row["day_assumed"]),
        ([10, 30, 0, 5], &json!(true))
    );
    assert_eq!(
        (&row["hours_live"], &row["cpu_seconds"]),
        (&json!(null), &json!(null))
    );

    // Once it has rested, its counts are kept, and nothing else answers the next time.
    let rest = || {
        let path = world.home().join(&name);
        let file = std::fs::File::options().write(true).open(path).unwrap();
        let an_hour = std::time::Duration::from_secs(3_600);
        file.set_modified(std::time::SystemTime::now() - an_hour)
            .unwrap();
    };
    rest();
    let counted = usage(&world, &["--agent", "continue"]);
    assert_eq!(counts(&counted["rows"][0]), [10, 30, 0, 5]);
    let cache = world.home().join(".cache/whosup/usage");
    let kept = std::fs::read_dir(cache).unwrap().next().unwrap().unwrap();
    let text = std::fs::read_to_string(kept.path()).unwrap();
    assert!(text.contains(id), "{text}");
    std::fs::write(kept.path(), text.replace("[10,30,", "[11,30,")).unwrap();
    let again = usage(&world, &["--agent", "continue"]);
    assert_eq!(counts(&again["rows"][0]), [11, 30, 0, 5]);
    document["history"][0]["message"]["usage"]["prompt_tokens"] = 50.into();
    document["usage"]["promptTokens"] = 50.into();
    world.write(&name, document.to_string());
    rest();
    let changed = usage(&world, &["--agent", "continue"]);
    assert_eq!(counts(&changed["rows"][0]), [20, 30, 0, 5]);

    // What has no records gives the same answer by what is kept.
    document["history"] = json!([]);
    document.as_object_mut().unwrap().remove("usage");
    world.write(&name, document.to_string());
    rest();
    let none = || usage(&world, &["--agent", "continue"])["rows"].clone();
    assert_eq!(none(), none());
}
