//! The sample outputs in the documents are what the demo prints.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The prompt of a command in a sample.
const PROMPT: &str = "$ ";
/// What precedes a number that differs between runs: PIDs and start stamps.
const BEFORE_NUMBERS: &[&str] = &["pid ", "process ", "start ", "PID ", "/sessions/"];
/// A printed date, with all digits as `0`.
const DATE: &str = "0000-00-00T00:00:00.000Z";

/// A command in a document, with the output below it.
#[derive(Debug)]
struct Sample {
    command: String,
    output: String,
}

/// The samples of a document: blocks of the language `console`.
fn samples(document: &str) -> Vec<Sample> {
    let mut samples: Vec<Sample> = Vec::new();
    let blocks = document.split("```console\n").skip(1);
    for line in blocks.flat_map(|block| block.split("```").next().unwrap().lines()) {
        match (line.strip_prefix(PROMPT), samples.last_mut()) {
            (Some(command), _) => samples.push(Sample {
                command: command.to_owned(),
                output: String::new(),
            }),
            (None, Some(sample)) => sample.output += &format!("{line}\n"),
            (None, None) => panic!("no command before: {line}"),
        }
    }
    samples
}

/// The text with placeholders for dates and numbers that differ between runs.
fn steady(text: &str) -> String {
    let mut steady = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let zeroed: String = rest.chars().take(DATE.len()).map(zero).collect();
        let is_number = BEFORE_NUMBERS.iter().any(|words| steady.ends_with(words));
        if zeroed == DATE {
            steady.push_str("DATE");
            rest = &rest[DATE.len()..];
        } else if is_number && first.is_ascii_digit() {
            steady.push('N');
            rest = rest.trim_start_matches(|one: char| one.is_ascii_digit());
        } else {
            steady.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    steady
}

fn zero(character: char) -> char {
    if character.is_ascii_digit() {
        '0'
    } else {
        character
    }
}

fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let entries = root.join("docs").read_dir().unwrap();
    let pages = entries.map(|entry| entry.unwrap().path());
    let is_page = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md");
    let mut documents: Vec<PathBuf> = pages.filter(is_page).collect();
    documents.push(root.join("README.md"));
    documents
}

#[test]
fn samples_are_what_the_demo_prints() {
    let home = tempfile::tempdir().unwrap();
    let mut checked = 0;
    for path in documents() {
        let document = std::fs::read_to_string(&path).unwrap();
        for Sample { command, output } in samples(&document) {
            let Some(words) = command.strip_prefix("whosup demo") else {
                // Its output depends on the machine, so no README shows it.
                assert!(!path.ends_with("README.md"), "{command}");
                continue;
            };
            let answer = Command::new(env!("CARGO_BIN_EXE_whosup"))
                .arg("demo")
                .args(words.split_whitespace())
                .env("HOME", home.path())
                .stdin(Stdio::null())
                .output()
                .unwrap();
            let printed = String::from_utf8(answer.stdout).unwrap();
            assert_eq!(steady(&printed), steady(&output), "{path:?}: {command}");
            checked += 1;
        }
    }
    assert!(checked >= 2, "{checked} samples");
}

#[test]
fn only_dates_and_numbers_of_processes_may_differ() {
    let text = "pid 12, start 3456, 2026-11-27T23:09:47.390Z in ~/.claude/sessions/9.json: 3 of 4";
    let expected = "pid N, start N, DATE in ~/.claude/sessions/N.json: 3 of 4";
    assert_eq!(steady(text), expected);
}
