//! Hooks in TOML: `[[hooks]]` with `event` and `command`.

use super::{Insertion, SettingsError};

/// `[[hooks]]` with `event` and `command`.
pub(super) const EVENT_TABLES: Tables = Tables {
    event_key: "event",
    has_names: false,
};

/// `[[hooks]]` with `name`, `type` and `command`.
pub(super) const NAMED_TABLES: Tables = Tables {
    event_key: "type",
    has_names: true,
};

/// How the table of one hook looks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tables {
    event_key: &'static str,
    has_names: bool,
}

impl Tables {
    /// The lines of one hook.
    fn fields(self, event: &str, command: &str) -> Vec<String> {
        let name = format!("name = \"whosup-{event}\"");
        let event = format!("{} = \"{event}\"", self.event_key);
        let command = format!("command = {}", quoted(command));
        let name = self.has_names.then_some(name);
        name.into_iter().chain([event, command]).collect()
    }

    /// What an event's table looks like.
    fn table(self, event: &str, command: &str) -> String {
        format!("[[hooks]]\n{}\n", self.fields(event, command).join("\n"))
    }

    /// What it looks like in an array that is written in one piece.
    fn entry(self, event: &str, command: &str) -> String {
        format!("\n  {{ {} }},", self.fields(event, command).join(", "))
    }

    pub(super) fn present(self, text: &str, events: &[&str], command: &str) -> Vec<String> {
        let parsed: toml::Table = text.parse().unwrap_or_default();
        let hooks = parsed.get("hooks").and_then(toml::Value::as_array);
        let has = |event: &str| {
            hooks.into_iter().flatten().any(|hook| {
                let is = |key: &str, value: &str| {
                    hook.get(key).and_then(toml::Value::as_str) == Some(value)
                };
                is(self.event_key, event) && is("command", command)
            })
        };
        events
            .iter()
            .filter(|event| has(event))
            .map(|event| (*event).to_owned())
            .collect()
    }

    pub(super) fn insertions(
        self,
        text: &str,
        events: &[&str],
        command: &str,
    ) -> Result<Vec<Insertion>, SettingsError> {
        let parsed: toml::Table = text
            .parse()
            .map_err(|error: toml::de::Error| SettingsError(error.message().to_owned()))?;
        let insertion = match (parsed.get("hooks"), inline_hooks(text)) {
            (Some(_), Some(at)) => {
                let entry = |event: &&str| self.entry(event, command);
                Insertion {
                    at,
                    text: events.iter().map(entry).collect(),
                }
            }
            _ => {
                let tables: Vec<String> = events
                    .iter()
                    .map(|event| self.table(event, command))
                    .collect();
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

    pub(super) fn without_command(
        self,
        text: &str,
        command: &str,
    ) -> Result<String, SettingsError> {
        let mut text = text.to_owned();
        for event in self.events_in(&text, command) {
            let table = self.table(&event, command);
            let written = [format!("\n{table}"), table, self.entry(&event, command)];
            for form in written {
                if let Some(at) = text.find(&form) {
                    text.replace_range(at..at + form.len(), "");
                    break;
                }
            }
        }
        let left = self.events_in(&text, command);
        if left.is_empty() {
            Ok(text)
        } else {
            let left = left.join("`, `");
            Err(SettingsError(format!(
                "its hooks of `{left}` were written anew: take them out by hand"
            )))
        }
    }

    fn events_in(self, text: &str, command: &str) -> Vec<String> {
        let parsed: toml::Table = text.parse().unwrap_or_default();
        let hooks = parsed.get("hooks").and_then(toml::Value::as_array);
        hooks
            .into_iter()
            .flatten()
            .filter(|hook| hook.get("command").and_then(toml::Value::as_str) == Some(command))
            .filter_map(|hook| hook.get(self.event_key)?.as_str().map(str::to_owned))
            .collect()
    }
}

/// A text as a TOML basic string: JSON's escapes are among TOML's.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
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

/// Every command that hooks run.
pub(super) fn commands(text: &str) -> Vec<String> {
    let parsed: toml::Table = text.parse().unwrap_or_default();
    let hooks = parsed.get("hooks").and_then(toml::Value::as_array);
    let command = |hook: &toml::Value| Some(hook.get("command")?.as_str()?.to_owned());
    hooks.into_iter().flatten().filter_map(command).collect()
}
