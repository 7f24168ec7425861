//! The JSON is what its schema says.

use serde_json::Value;

use super::world::World;

const SCHEMA: &str = include_str!("../../../../schema/whosup.v1.schema.json");

#[track_caller]
fn check(document: &Value) {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(document)
        .map(|error| format!("{error} at {}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}\n{document:#}");
}

#[test]
fn every_json_document_of_sessions_fits_the_schema() {
    let world = World::new();
    let posing = world.pose_as_claude();
    let codex = world.pose("codex/bin/codex", |_| {});
    world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    world.write_claude_transcript(".claude", &world.s1);
    world.write_claude_transcript(".claude", &world.s2);
    world.write(".claude/sessions/9.json", "");
    check(&world.run(["list", "--json"]).json());
    check(&world.run(["list", "--json", "--all"]).json());
    check(&world.run(["show", world.s1.as_str(), "--json"]).json());
    // These say more, beside what the schema describes.
    let pid = codex.pid().to_string();
    for (arguments, more) in [
        (
            &["show", world.s2.as_str(), "--json", "--tail", "3"][..],
            &["messages"][..],
        ),
        (&["why", world.s1.as_str(), "--json"], &["explanation"]),
        (&["why", "--pid", &pid, "--json"], &["explanation", "pid"]),
    ] {
        let mut document = world.run(arguments).json();
        for key in more {
            let fields = document.as_object_mut().unwrap();
            assert!(fields.remove(*key).is_some(), "{arguments:?}: {key}");
        }
        check(&document);
    }
}
