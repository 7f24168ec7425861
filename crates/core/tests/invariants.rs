//! Rules about the source itself, which ARCHITECTURE.md lists.

use std::path::{Path, PathBuf};

/// Every Rust file of the workspace's crates, tests and benches left out.
fn sources() -> Vec<(PathBuf, String)> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = std::fs::read_dir(&crates)
        .unwrap()
        .map(|entry| entry.unwrap().path().join("src"))
        .filter(|path| path.is_dir())
        .collect();
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                if name != "tests" {
                    open.push(path);
                }
            } else if name.ends_with(".rs") && !name.ends_with("tests.rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let shown = path.strip_prefix(&crates).unwrap().to_owned();
                found.push((shown, without_tests(&text)));
            }
        }
    }
    assert!(found.len() > 40, "only {} sources found", found.len());
    found
}

/// A file's text up to its test module.
fn without_tests(text: &str) -> String {
    let starts = ["#[cfg(test)]", "#[cfg(all(test,"];
    let ends = starts.iter().filter_map(|start| text.find(start));
    let end = ends.min().unwrap_or(text.len());
    text[..end].to_owned()
}

/// Lines outside of comments that contain one of `words`, outside of `allowed`.
fn lines_with(words: &[&str], allowed: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in sources() {
        let name = path.to_string_lossy().into_owned();
        if allowed.iter().any(|place| name.starts_with(place)) {
            continue;
        }
        for (number, line) in text.lines().enumerate() {
            let is_comment = line.trim_start().starts_with("//");
            if !is_comment && words.iter().any(|word| line.contains(word)) {
                found.push(format!("{name}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    found
}

#[track_caller]
fn check_none(words: &[&str], allowed: &[&str]) {
    let found = lines_with(words, allowed);
    assert!(found.is_empty(), "{found:#?}");
    // The check itself can find what it looks for.
    let anywhere = lines_with(words, &[]);
    assert!(
        !anywhere.is_empty(),
        "none of {words:?} is anywhere: the check checks nothing"
    );
}

#[test]
fn only_the_judge_the_solver_and_the_merge_make_verdicts() {
    check_none(
        &["LiveBecause::", "ExitedBecause::", "UnknownBecause::"],
        &[
            "core/src/judging/verdict/",
            "core/src/judging/attribution/",
            "core/src/sessions/merge",
            // They read verdicts: they say them, or ask which one it is.
            "core/src/views/explain.rs",
            "core/src/views/reader/filter.rs",
            "core/src/sessions/session.rs",
            "track/src/sweep/conditions.rs",
            "track/src/sweep/finish.rs",
            "cli/src/",
        ],
    );
}

#[test]
fn only_formats_are_serialize() {
    check_none(
        &["Serialize"],
        &[
            "core/src/views/wire",
            "core/src/sources/record",
            "core/src/sources/usage/kept.rs",
            "cli/src/json",
            "cli/src/commands/agents.rs",
            "cli/src/commands/conformance/report.rs",
            "cli/src/commands/list/json.rs",
        ],
    );
}

#[test]
fn platform_code_stays_in_its_places() {
    check_none(
        &[
            "std::os::unix",
            "std::os::linux",
            "std::os::windows",
            "cfg(unix)",
            "target_os",
            "rustix::",
        ],
        &[
            "process/src/",
            "sidecar/src/file",
            // Locked directories, and file systems.
            "sidecar/src/owner/disk",
            // Descriptors, owners and modes of directories.
            "sidecar/src/own_directory",
            // Mounts, which pane hosts there are, device numbers of terminals, SQLite's files.
            "core/src/machine/mounts.rs",
            // Pipes of commands that are asked what they have.
            "core/src/machine/command",
            "core/src/sources/panes/mod.rs",
            "core/src/sources/panes/tmux",
            "core/src/sources/sqlite",
            "core/src/sources/transcript",
            // The demo's own processes and signals.
            "cli/src/pose.rs",
            "cli/src/commands/demo",
            // Terminals, signals and how a child ended.
            "cli/src/commands/run",
            // Standard input that is asked whether it has something.
            "cli/src/commands/hook",
            // Events of a directory, and users.
            "cli/src/commands/conformance",
            // A process that outlives the terminal of whoever started it.
            "cli/src/commands/after_end.rs",
            // Events of processes and files.
            "live/src/signals",
            // Standard input and output beside the events.
            "cli/src/commands/watch",
            // What a picker draws.
            "cli/src/commands/attach",
            // A child that has the terminal and stops itself.
            "cli/src/pane_command.rs",
            // Signals by pidfd, and what has the foreground of a terminal.
            "cli/src/commands/stop.rs",
            "cli/src/commands/send",
            // A command that takes the place of this program.
            "cli/src/commands/resume.rs",
            // Who shows notifications, and who keeps services running.
            "cli/src/commands/notify/desktop.rs",
            "cli/src/commands/service/unit.rs",
            // Modes of files, and which file is at a path.
            "track/src/disk.rs",
            // Sockets, peers, limits and random bytes.
            "serve/src/",
        ],
    );
}

#[test]
fn only_the_tracker_and_the_sidecar_s_owner_write() {
    check_none(
        &[
            "fs::write",
            "File::create",
            "OpenOptions",
            "DirBuilder",
            "fs::rename",
            "remove_file",
            "remove_dir",
            "create_dir",
            "set_permissions",
            "set_len",
        ],
        &[
            // Opens for reading.
            "sidecar/src/file",
            // The one way in which the tracker and a sidecar's owner write.
            "sidecar/src/own_directory",
            // The demo's own home, and the pages that a person asked for.
            "cli/src/pose.rs",
            "cli/src/commands/demo",
            // Opens terminals.
            "cli/src/commands/run",
            // The homes that it makes for the program that it checks.
            "cli/src/commands/conformance",
            "cli/src/commands/man.rs",
            "cli/src/tests/",
            "core/src/sources/agents/kit/dialect/testing.rs",
        ],
    );
}

#[test]
fn nothing_is_signalled() {
    let signalling = ["kill_process", "pidfd_send_signal", "libc::kill", ".kill()"];
    let found = lines_with(
        &signalling,
        &[
            // Ends a pane host's listing command that does not answer: its own child.
            "core/src/machine/command.rs",
            // Ends what is run at the end of a session and takes too long: its own child.
            "cli/src/commands/after_end.rs",
            // Ends the demo's own children.
            "cli/src/commands/demo",
            // Passes on to its own child what it was sent itself.
            "cli/src/commands/run",
            // Ends the runs of the program that it checks: its own children.
            "cli/src/commands/conformance",
            // Ends a pane host's command that does not end: its own child; and stops itself.
            "cli/src/pane_command.rs",
            // The explicit command to end a session's process.
            "cli/src/commands/stop.rs",
        ],
    );
    // Asking whether a process exists sends nothing.
    let found: Vec<_> = found
        .into_iter()
        .filter(|line| !line.contains("test_kill_process"))
        .collect();
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn every_path_that_the_documents_name_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut missing = Vec::new();
    for document in [
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "PLATFORM.md",
        "README.md",
    ] {
        let text = std::fs::read_to_string(root.join(document))
            .unwrap_or_else(|error| panic!("{document}: {error}"));
        for quoted in text.split('`').skip(1).step_by(2) {
            let is_path = ["crates/", "docs/", "schema/", "tests/", "bench/", ".ci/"]
                .iter()
                .any(|start| quoted.starts_with(start));
            let is_pattern = quoted.contains(['*', ' '])
                || quoted
                    .chars()
                    .any(|c| c.is_ascii_uppercase() && quoted.contains("AGENT"));
            let is_placeholder = quoted.contains("AGENT")
                || quoted.contains("COMMAND")
                || quoted.contains("HOST")
                || quoted.contains("PLATFORM");
            if is_path && !is_pattern && !is_placeholder && !root.join(quoted).exists() {
                missing.push(format!("{document}: {quoted}"));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn the_readme_has_the_table_of_agents() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = std::fs::read_to_string(&path).unwrap();
    let rows = whosup_core::sources::agents::AGENTS.iter().map(|adapter| {
        let profile = adapter.profile();
        format!(
            "| {} | `{}` | {} | {} |\n",
            profile.name, profile.id, profile.detection, profile.checked_against
        )
    });
    let right: String = rows.collect();
    let head = "| Agent | Name here | Found by | Checked against |\n|---|---|---|---|\n";
    let start = readme.find(head).expect("the table's head") + head.len();
    let end = start + readme[start..].find("\n\n").expect("the table's end") + 1;
    if std::env::var_os("WHOSUP_BLESS").is_some_and(|value| value == "1") {
        let written = format!("{}{right}{}", &readme[..start], &readme[end..]);
        std::fs::write(&path, written).unwrap();
        return;
    }
    assert_eq!(
        &readme[start..end],
        right,
        "WHOSUP_BLESS=1 writes the right one"
    );
}
