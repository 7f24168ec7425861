//! Directories that were reached by links, or are written in another form.

use super::*;

/// Agents that may write what their shell called the directory, which can be a
/// link, and do not make up a folder's name from its real path.
const BY_WHAT_IS_WRITTEN: &[&str] = &[
    "cline/",
    "codex/",
    "copilot/",
    "kilo/",
    "opencode/",
    "vibe/",
];

/// Copies a fixture, with a link in place of every directory `/home/dev/...`
/// that a file names, and what that leads to in place of every process's own.
fn copy_with_links(case: &Path, to: &Path) {
    let text = std::fs::read_to_string(case.join("world.json")).unwrap();
    let mut world: Value = serde_json::from_str(&text).unwrap();
    let mut directories = std::collections::BTreeSet::new();
    each_process(&mut world, |process| {
        let Some(cwd) = process["cwd"].as_str() else {
            return;
        };
        if let Some(below) = cwd.strip_prefix("/home/dev/") {
            process["cwd"] = json!(format!("@HOME@/real/{below}"));
        }
    });
    directories.extend(each_string(&world).filter_map(|text| {
        let below = text.strip_prefix("@HOME@/real/")?;
        Some(below.to_owned())
    }));
    let mut made = world["make"].as_array().cloned().unwrap_or_default();
    made.push(json!({"path": "@HOME@/link", "kind": {"symlink": "@HOME@/real"}}));
    made.extend(
        directories
            .iter()
            .map(|below| json!({"path": format!("@HOME@/real/{below}"), "kind": "directory"})),
    );
    world["make"] = Value::Array(made);
    std::fs::write(to.join("world.json"), world.to_string()).unwrap();
    copy_folder(&case.join("home"), &to.join("home"), &|text| {
        text.replace("/home/dev/", "@HOME@/link/")
    });
}

fn each_string(value: &Value) -> Box<dyn Iterator<Item = &str> + '_> {
    match value {
        Value::String(text) => Box::new(std::iter::once(text.as_str())),
        Value::Array(items) => Box::new(items.iter().flat_map(each_string)),
        Value::Object(fields) => Box::new(fields.values().flat_map(each_string)),
        _ => Box::new(std::iter::empty()),
    }
}

fn copy_folder(from: &Path, to: &Path, change: &dyn Fn(String) -> String) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).into_iter().flatten() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target, change);
        } else {
            let bytes = std::fs::read(entry.path()).unwrap();
            let bytes = match String::from_utf8(bytes) {
                Ok(text) => change(text).into_bytes(),
                Err(error) => error.into_bytes(),
            };
            std::fs::write(target, bytes).unwrap();
        }
    }
}

/// Copies a fixture, with directories that the kernel names in the decomposed form
/// and that files name in the composed one.
fn copy_with_forms(case: &Path, to: &Path) {
    let text = std::fs::read_to_string(case.join("world.json")).unwrap();
    let mut world: Value = serde_json::from_str(&text).unwrap();
    each_process(&mut world, |process| {
        if let Some(below) = process["cwd"].as_str() {
            let decomposed = below.replace("/home/dev/", "/home/dev/cafe\u{301}/");
            process["cwd"] = json!(decomposed);
        }
    });
    std::fs::write(to.join("world.json"), world.to_string()).unwrap();
    copy_folder(&case.join("home"), &to.join("home"), &|text| {
        text.replace("/home/dev/", "/home/dev/caf\u{e9}/")
    });
}

/// Looks at the fixtures of some agents before and after `copy_to` has changed their
/// directories: what was live is so still.
#[track_caller]
fn check_copies(copy_to: fn(&Path, &Path)) {
    let wanted = std::env::var("WHOSUP_FIXTURES").unwrap_or_default();
    let mut report = String::new();
    let mut checked = 0;
    for (name, case) in cases() {
        let is_of_interest = BY_WHAT_IS_WRITTEN
            .iter()
            .any(|agent| name.starts_with(agent));
        if !is_of_interest || !name.contains(&wanted) {
            continue;
        }
        let before = rows_of(&case);
        if !before.values().any(Row::is_live) {
            continue;
        }
        let copy = tempfile::tempdir().unwrap();
        copy_to(&case, copy.path());
        let answer = World::of_fixture(copy.path()).look(DepthName::All);
        let answers = Answers {
            has_own_environment: false,
            before,
            after: rows(&answer),
            answer,
        };
        checked += 1;
        for fault in all_live_on(&answers) {
            let _ = writeln!(report, "{name}: {fault}");
        }
    }
    assert!(checked > 0);
    assert!(report.is_empty(), "of {checked} fixtures\n{report}");
}

/// A directory that was reached by a link hid its sessions
/// (notebook-intelligence#171, claude-code#16103, orca#10841).
#[test]
fn sessions_of_a_directory_that_was_reached_by_a_link_are_found() {
    check_copies(copy_with_links);
}

/// A directory that is written in another Unicode form than it is stored in hid its
/// sessions (notebook-intelligence#171, notebook-intelligence#374).
#[test]
fn sessions_of_a_directory_in_another_unicode_form_are_found() {
    check_copies(copy_with_forms);
}
