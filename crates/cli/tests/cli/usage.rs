//! What sessions used, summed up.

use serde_json::{Value, json};

use super::world::{WHOSUP, World, said};

/// Everything, whenever it was.
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
    let none = usage(&world, &["--cwd", "/nowhere"]);
    assert_eq!(none["rows"], json!([]));
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
    assert_eq!(session["context"]["tokens"], json!(220));
    let told = world.run(["show", &world.s1]).out;
    assert!(
        told.contains("362 (30 input, 300 cached, 20 cache writes, 12 output)"),
        "{told}"
    );
    // In a list only where that is asked for.
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
    // Other programs of this machine may have something to warn of.
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
    let expected = "no tokens were counted since 2026-11-27 09:05\nhint: `--since 30d` counts";
    assert!(said.out.starts_with(expected), "{}", said.out);
}
