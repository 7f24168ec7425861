//! Hooks in TOML: `[[hooks]]` with `event` and `command`.

use super::{Insertion, SettingsError};

/// What an event's table looks like.
fn table(event: &str, command: &str) -> String {
    format!(
        "[[hooks]]\nevent = \"{event}\"\ncommand = {}\n",
        quoted(command)
    )
}

/// A text as a TOML basic string: JSON's escapes are among TOML's.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

pub(super) fn present(text: &str, events: &[&str], command: &str) -> Vec<String> {
    let parsed: toml::Table = text.parse().unwrap_or_default();
    let hooks = parsed.get("hooks").and_then(toml::Value::as_array);
    let has = |event: &str| {
        hooks.into_iter().flatten().any(|hook| {
            let is =
                |key: &str, value: &str| hook.get(key).and_then(toml::Value::as_str) == Some(value);
            is("event", event) && is("command", command)
        })
    };
    events
        .iter()
        .filter(|event| has(event))
        .map(|event| (*event).to_owned())
        .collect()
}

pub(super) fn insertions(
    text: &str,
    events: &[&str],
    command: &str,
) -> Result<Vec<Insertion>, SettingsError> {
    let parsed: toml::Table = text
        .parse()
        .map_err(|error: toml::de::Error| SettingsError(error.message().to_owned()))?;
    let insertion = match (parsed.get("hooks"), inline_hooks(text)) {
        (Some(_), Some(at)) => {
            let entry = |event: &&str| {
                format!(
                    "\n  {{ event = \"{event}\", command = {} }},",
                    quoted(command)
                )
            };
            Insertion {
                at,
                text: events.iter().map(entry).collect(),
            }
        }
        _ => {
            let tables: Vec<String> = events.iter().map(|event| table(event, command)).collect();
            let first = if text.is_empty() || text.ends_with('\n') {
                ""
            } else {
                "\n"
            };
            let blank = if text.is_empty() { "" } else { "\n" };
            Insertion {
                at: text.len(),
                text: format!("{first}{blank}{}", tables.join("\n")),
            }
        }
    };
    Ok(vec![insertion])
}

/// Where the values of `hooks = [` begin, if it is written that way: before the
/// first table, for it is a key of the root.
fn inline_hooks(text: &str) -> Option<usize> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim_start();
        if trimmed.starts_with('[') {
            return None;
        }
        if let Some(value) = trimmed.strip_prefix("hooks")
            && let Some(value) = value.trim_start().strip_prefix('=')
            && value.trim_start().starts_with('[')
        {
            return Some(at + line.find('[')? + 1);
        }
        at += line.len();
    }
    None
}

pub(super) fn without_command(text: &str, command: &str) -> Result<String, SettingsError> {
    let mut text = text.to_owned();
    for event in events_in(&text, command) {
        let written = [
            format!("\n{}", table(&event, command)),
            table(&event, command),
            format!(
                "\n  {{ event = \"{event}\", command = {} }},",
                quoted(command)
            ),
        ];
        for form in written {
            if let Some(at) = text.find(&form) {
                text.replace_range(at..at + form.len(), "");
                break;
            }
        }
    }
    let left = events_in(&text, command);
    if left.is_empty() {
        Ok(text)
    } else {
        let left = left.join("`, `");
        Err(SettingsError(format!(
            "its hooks of `{left}` were written anew: take them out by hand"
        )))
    }
}

fn events_in(text: &str, command: &str) -> Vec<String> {
    let parsed: toml::Table = text.parse().unwrap_or_default();
    let hooks = parsed.get("hooks").and_then(toml::Value::as_array);
    hooks
        .into_iter()
        .flatten()
        .filter(|hook| hook.get("command").and_then(toml::Value::as_str) == Some(command))
        .filter_map(|hook| hook.get("event")?.as_str().map(str::to_owned))
        .collect()
}
