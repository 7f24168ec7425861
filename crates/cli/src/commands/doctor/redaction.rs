//! Removes personal details for bug reports.

use whosup_core::machine::Machine;

/// Replaces the home directory.
const HOME: &str = "~";
/// Replaces the user's name.
const USER: &str = "USER";
/// Replaces the computer's name.
const HOST: &str = "HOST";
/// Accounts of every system, which say nothing about a person.
const IMPERSONAL: &[&str] = &["root"];
/// A shorter name would occur in too many words.
const NAME_BYTES_MIN: usize = 2;

/// Pairs of a text and its replacement; empty by default.
#[derive(Debug, Default)]
pub(super) struct Redaction {
    replaced: Vec<(String, &'static str)>,
}

impl Redaction {
    /// The personal details of this machine's user.
    pub(super) fn of(machine: &Machine) -> Self {
        let environment = machine.environment();
        let home = environment.home();
        let mut replaced = Vec::new();
        replaced.extend(home.map(|home| (home.to_string_lossy().into_owned(), HOME)));
        let users = ["USER", "LOGNAME"].map(|name| environment.variable(name));
        let users = users
            .into_iter()
            .chain([home.and_then(|home| home.file_name())]);
        let users = users
            .flatten()
            .map(|name| name.to_string_lossy().into_owned());
        replaced.extend(users.map(|name| (name, USER)));
        if let Ok(host) = &machine.table().scope().host {
            let host = host.0.as_str();
            let first = host.split('.').next().unwrap_or_default();
            replaced.extend([host, first].map(|name| (name.to_owned(), HOST)));
        }
        replaced.retain(|(name, _)| {
            name.len() >= NAME_BYTES_MIN && !IMPERSONAL.contains(&name.as_str())
        });
        Self { replaced }
    }

    /// The text without personal details.
    pub(super) fn apply(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, instead) in &self.replaced {
            text = replace_word(&text, name, instead);
        }
        text
    }
}

/// Replaces each occurrence of `word` that is not part of a longer word.
fn replace_word(text: &str, word: &str, instead: &str) -> String {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    let mut replaced = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let (before, after) = (&rest[..at], &rest[at + word.len()..]);
        let last = before.chars().next_back().or(replaced.chars().next_back());
        // A path may follow a separator.
        let is_alone =
            (word.starts_with('/') || !last.is_some_and(is_part)) && !after.starts_with(is_part);
        replaced.push_str(before);
        replaced.push_str(if is_alone { instead } else { word });
        rest = after;
    }
    replaced + rest
}

#[cfg(test)]
mod tests {
    use super::replace_word;

    #[test]
    fn words_are_replaced_and_parts_of_words_are_not() {
        for (text, expected) in [
            ("alice's box", "USER's box"),
            ("alice-box and /home/alice/x", "USER-box and /home/USER/x"),
            ("malice, alices, alice_2", "malice, alices, alice_2"),
            ("alicealice alice", "alicealice USER"),
        ] {
            assert_eq!(replace_word(text, "alice", "USER"), expected);
        }
        let text = "in /home/alice/src, /home/alice2";
        assert_eq!(
            replace_word(text, "/home/alice", "~"),
            "in ~/src, /home/alice2"
        );
    }
}
