//! What has befallen the ways to agents' homes, and into their directories.

use super::*;

/// The variables that move a home, or a part of one.
const VARIABLES: &[&str] = &[
    "CLAUDE_CONFIG_DIR",
    "CLINE_DATA_DIR",
    "CLINE_DIR",
    "CODEX_HOME",
    "COPILOT_HOME",
    "CRUSH_GLOBAL_DATA",
    "FACTORY_HOME_OVERRIDE",
    "GEMINI_CLI_HOME",
    "KILO_DB",
    "KIMI_CODE_HOME",
    "KIMI_SHARE_DIR",
    "OPENCODE_DB",
    "PI_CODING_AGENT_DIR",
    "PI_CODING_AGENT_SESSION_DIR",
    "QWEN_HOME",
    "QWEN_RUNTIME_DIR",
    "VIBE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
];

/// Changes the environments of a world that can be read: ours, and those of its
/// processes.
fn each_environment(
    world: &mut Value,
    change: impl Fn(&mut serde_json::Map<String, Value>) + Copy,
) {
    let change_of = |of: &mut Value| {
        let of = of.as_object_mut().unwrap();
        if let Some(variables) = of.entry("env").or_insert(json!({})).as_object_mut() {
            change(variables);
        }
    };
    change_of(world);
    each_process(world, change_of);
}

/// Nothing has changed.
fn nothing_else(answers: &Answers) -> Vec<String> {
    let keys = answers.before.keys().chain(answers.after.keys());
    let keys: std::collections::BTreeSet<_> = keys.collect();
    let changed = keys.into_iter().filter_map(|key| {
        let (before, after) = (answers.before.get(key), answers.after.get(key));
        (before != after).then(|| format!("{key}: {before:?} became {after:?}"))
    });
    changed.collect()
}

/// An override with a slash at its end hid sessions, or showed them twice
/// (notebook-intelligence#171, notebook-intelligence#374, orca#22243).
#[test]
fn slashes_at_the_end_of_a_variable_make_no_other_home() {
    let change = |world: &mut Value| {
        each_environment(world, |variables| {
            for (_, value) in variables {
                let path = value.as_str().unwrap();
                if path.starts_with("@HOME@/") {
                    *value = json!(format!("{path}//"));
                }
            }
        });
    };
    check_all(change, nothing_else);
}

/// An empty override was taken for a directory (getspecstory#136, cmux#4049,
/// notebook-intelligence#374).
#[test]
fn empty_variables_are_as_if_they_were_not_set() {
    let change = |world: &mut Value| {
        each_environment(world, |variables| {
            for name in VARIABLES {
                variables.entry(*name).or_insert(json!(""));
            }
        });
    };
    check_all(change, nothing_else);
}

/// The name that an agent makes up from a long directory was too long for a file
/// system, and the error hid the rest (claude-remember#157, claude-code-trace#239,
/// pi#9836).
#[test]
fn a_process_in_a_very_long_directory_is_no_error() {
    let change = |world: &mut Value| {
        each_process(world, |process| {
            if let Some(directory) = process.get("cwd").and_then(Value::as_str) {
                let below = "/a-directory-with-a-long-name".repeat(12);
                process["cwd"] = json!(format!("{directory}{below}"));
            }
        });
    };
    check_all(change, |answers| {
        let problems = answers.answer["problems"].as_array().unwrap().iter();
        let mut faults = lost(answers);
        let too_long = problems.filter(|one| one["message"].as_str().unwrap().contains("too long"));
        faults.extend(too_long.map(ToString::to_string));
        faults
    });
}
