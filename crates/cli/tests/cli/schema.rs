//! Each JSON output matches its schema exactly.

#[allow(unreachable_pub, reason = "tests of several crates use this module")]
#[path = "../../../core/tests/world/wire_schema.rs"]
mod wire_schema;

use serde_json::Value;

use super::world::World;
use wire_schema::{bundled, strict};

/// Checks a document against the schema that is checked in and against its strict copy.
#[track_caller]
pub(crate) fn check(output: &str, absent: &[&str], document: &Value) {
    for schema in [bundled(output), strict(output, absent)] {
        let validator = jsonschema::validator_for(&schema).unwrap();
        let errors: Vec<String> = validator
            .iter_errors(document)
            .map(|error| format!("{error} at {}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{output}: {errors:#?}\n{document:#}");
    }
}

#[test]
fn every_json_output_fits_its_schema() {
    let world = World::new();
    let posing = world.pose_as_claude();
    let codex = world.pose("codex/bin/codex", |_| {});
    world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    world.write_claude_transcript(".claude", &world.s1);
    world.write_claude_transcript(".claude", &world.s2);
    world.write(".claude/sessions/9.json", "");
    let pid = codex.pid().to_string();
    for (output, absent, arguments) in [
        ("list", &[][..], &["list", "--json"][..]),
        ("list", &[], &["list", "--json", "--all"]),
        ("status", &[], &["status", "--json"]),
        ("orphans", &[], &["orphans", "--json"]),
        ("agents", &[], &["agents", "--json"]),
        (
            "show",
            &["messages", "usage_with_sub_agents"],
            &["show", world.s1.as_str(), "--json"],
        ),
        (
            "show",
            &["usage_with_sub_agents"],
            &["show", world.s2.as_str(), "--json", "--tail", "3"],
        ),
        ("check", &[], &["check", world.s1.as_str(), "--json"]),
        ("pid", &[], &["pid", world.s2.as_str(), "--json"]),
        ("sweep", &[], &["sweep", "--json"]),
        ("hooks-status", &[], &["hooks", "status", "--json"]),
        ("doctor", &[], &["doctor", "--json"]),
        ("why", &[], &["why", world.s1.as_str(), "--json"]),
        ("why-pid", &[], &["why", "--pid", &pid, "--json"]),
        ("list", &[], &["list", "--json", "--all", "--usage"]),
        (
            "usage",
            &["session", "project", "agent", "model", "branch"],
            &["usage", "--since", "2000-01-01T00:00:00Z", "--json"],
        ),
        (
            "usage",
            &["project", "agent", "day", "branch"],
            &[
                "usage",
                "--by",
                "session,model",
                "--since",
                "9999w",
                "--json",
            ],
        ),
    ] {
        check(output, absent, &world.run(arguments).json());
    }
    let lines = world.run(["list", "--ndjson", "--all"]).out;
    let lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for line in &lines {
        check("list-line", &[], line);
    }
    for kind in ["snapshot", "session", "unattributed", "problem"] {
        assert!(lines.iter().any(|line| line["kind"] == kind), "no {kind}");
    }
}
