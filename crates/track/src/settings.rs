//! Adds hooks to an agent's settings, and takes them out again.
//!
//! Adding only ever inserts: every byte that was there stays, comments, order and
//! blanks included. The inserted text is noted, so that removing it restores the
//! original bytes. Where the agent has rewritten the settings since, the hooks are found
//! by their command.

mod json;
mod json_text;
mod own_file;
mod toml_text;

use std::collections::{BTreeMap, BTreeSet};

use whosup_core::adapter::{HookCommand, SettingsForm};

use self::json::Place;

/// Text that is inserted, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Insertion {
    /// The offset in the original text, in bytes.
    pub(crate) at: usize,
    /// What is inserted.
    pub(crate) text: String,
}

/// Why settings can't be changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct SettingsError(pub(crate) String);

/// The events for which the settings already have whosup's hooks.
pub(crate) fn present(
    form: SettingsForm,
    text: &str,
    events: &[&str],
    command: &HookCommand,
) -> Result<Vec<String>, SettingsError> {
    let line = command.line();
    match form {
        SettingsForm::JsonGroups => json::present(text, Place::BelowHooks, events, &line),
        SettingsForm::JsonGroupsAtRoot => json::present(text, Place::Root, events, &line),
        SettingsForm::TomlTables => Ok(toml_text::EVENT_TABLES.present(text, events, &line)),
        SettingsForm::NamedTomlTables => Ok(toml_text::NAMED_TABLES.present(text, events, &line)),
        SettingsForm::OwnFile(write) if text == write(command) => {
            Ok(events.iter().map(|event| (*event).to_owned()).collect())
        }
        SettingsForm::OwnFile(_) => Ok(Vec::new()),
    }
}

/// The programs that whosup's hooks run: this program, or a `whosup` elsewhere.
pub(crate) fn programs(
    form: SettingsForm,
    text: &str,
    command: &HookCommand,
) -> Result<BTreeSet<String>, SettingsError> {
    let lines = match form {
        SettingsForm::JsonGroups => json::commands(text, Place::BelowHooks)?,
        SettingsForm::JsonGroupsAtRoot => json::commands(text, Place::Root)?,
        SettingsForm::TomlTables | SettingsForm::NamedTomlTables => toml_text::commands(text),
        SettingsForm::OwnFile(write) => {
            return Ok(own_file::program(text, write, command)
                .into_iter()
                .collect());
        }
    };
    let programs = lines.iter().filter_map(|line| command.program_in(line));
    Ok(programs.collect())
}

/// What has to be inserted for hooks of `events` that run `command`.
pub(crate) fn insertions(
    form: SettingsForm,
    text: &str,
    events: &[&str],
    command: &HookCommand,
) -> Result<Vec<Insertion>, SettingsError> {
    if events.is_empty() {
        return Ok(Vec::new());
    }
    let line = command.line();
    match form {
        SettingsForm::JsonGroups => json::insertions(text, Place::BelowHooks, events, &line),
        SettingsForm::JsonGroupsAtRoot => json::insertions(text, Place::Root, events, &line),
        SettingsForm::TomlTables => toml_text::EVENT_TABLES.insertions(text, events, &line),
        SettingsForm::NamedTomlTables => toml_text::NAMED_TABLES.insertions(text, events, &line),
        SettingsForm::OwnFile(write) if text.is_empty() => Ok(vec![Insertion {
            at: 0,
            text: write(command),
        }]),
        SettingsForm::OwnFile(_) => Err(SettingsError(
            "it is not as this program writes it: remove it first".to_owned(),
        )),
    }
}

/// The text with everything inserted.
pub(crate) fn apply(text: &str, insertions: &[Insertion]) -> String {
    let mut sorted: Vec<&Insertion> = insertions.iter().collect();
    sorted.sort_by_key(|insertion| insertion.at);
    let mut whole = String::with_capacity(text.len());
    let mut from = 0;
    for insertion in sorted {
        whole.push_str(&text[from..insertion.at]);
        whole.push_str(&insertion.text);
        from = insertion.at;
    }
    whole.push_str(&text[from..]);
    whole
}

/// Where each insertion is once all are made.
pub(crate) fn places(insertions: &[Insertion]) -> Vec<Insertion> {
    let mut sorted = insertions.to_vec();
    sorted.sort_by_key(|insertion| insertion.at);
    let mut before = 0;
    for insertion in &mut sorted {
        insertion.at += before;
        before += insertion.text.len();
    }
    sorted
}

/// The text without what was inserted: found by offset if `len` shows that the text is
/// unchanged, else by content. `None` if some of it is missing or ambiguous.
pub(crate) fn without(text: &str, inserted: &[Insertion], len: usize) -> Option<String> {
    let is_in_place = |one: &Insertion| {
        let there = text.get(one.at..one.at.saturating_add(one.text.len()));
        there == Some(one.text.as_str())
    };
    let mut text = text.to_owned();
    if text.len() == len && inserted.iter().all(is_in_place) {
        let mut inserted: Vec<&Insertion> = inserted.iter().collect();
        inserted.sort_by_key(|one| std::cmp::Reverse(one.at));
        for one in inserted {
            text.replace_range(one.at..one.at + one.text.len(), "");
        }
        return Some(text);
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for one in inserted.iter().filter(|one| !one.text.is_empty()) {
        *counts.entry(&one.text).or_default() += 1;
    }
    // The longest first: a shorter text may be a part of a longer text.
    let mut chunks: Vec<_> = counts.into_iter().collect();
    chunks.sort_by_key(|(chunk, _)| std::cmp::Reverse(chunk.len()));
    for (chunk, count) in chunks {
        if text.matches(chunk).count() != count {
            return None;
        }
        text = text.replace(chunk, "");
    }
    Some(text)
}

/// The text without the hooks that run `command`, wherever they stand.
pub(crate) fn without_command(
    form: SettingsForm,
    text: &str,
    command: &HookCommand,
) -> Result<String, SettingsError> {
    let line = command.line();
    match form {
        SettingsForm::JsonGroups => json::without_command(text, Place::BelowHooks, &line),
        SettingsForm::JsonGroupsAtRoot => json::without_command(text, Place::Root, &line),
        SettingsForm::TomlTables => toml_text::EVENT_TABLES.without_command(text, &line),
        SettingsForm::NamedTomlTables => toml_text::NAMED_TABLES.without_command(text, &line),
        SettingsForm::OwnFile(write) if text.is_empty() || text == write(command) => {
            Ok(String::new())
        }
        SettingsForm::OwnFile(_) => Err(SettingsError(
            "it is not as this program writes it: remove it by hand".to_owned(),
        )),
    }
}
