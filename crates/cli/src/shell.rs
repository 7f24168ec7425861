//! Commands in the form that a person can type into a shell.

use std::io::{self, IsTerminal as _};
use std::path::Path;

use crate::text::visible;

/// A word, quoted if a shell would split or interpret it.
pub(crate) fn quoted(word: &str) -> String {
    if is_plain(word) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// The same for people: paths below the home with `~`, and steering characters as
/// escapes.
pub(crate) fn readable(word: &str, home: Option<&Path>) -> String {
    let below_home = home.and_then(|home| Path::new(word).strip_prefix(home).ok());
    match below_home.and_then(Path::to_str) {
        Some("") => "~".to_owned(),
        Some(rest) if is_plain(rest) => format!("~/{rest}"),
        _ => visible(&quoted(word)),
    }
}

/// A command with its directory and variables, each word formatted by `quote`.
pub(crate) fn line<'a>(
    argv: impl IntoIterator<Item = &'a str>,
    directory: Option<&str>,
    environment: impl IntoIterator<Item = (&'a str, &'a str)>,
    quote: impl Fn(&str) -> String,
) -> String {
    let directory = directory.map(|directory| format!("cd {} &&", quote(directory)));
    let variables = environment
        .into_iter()
        .map(|(name, value)| format!("{name}={}", quote(value)));
    let mut words: Vec<String> = directory.into_iter().chain(variables).collect();
    words.extend(argv.into_iter().map(quote));
    words.join(" ")
}

/// A command for standard output: as a shell needs it. On a terminal, steering characters
/// become escapes: they could hide what the command does.
pub(crate) fn printed(line: String) -> String {
    if io::stdout().is_terminal() {
        visible(&line)
    } else {
        line
    }
}

fn is_plain(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%^".contains(c);
    !text.is_empty() && text.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{line, quoted, readable};

    #[test]
    fn a_word_is_quoted_where_a_shell_would_take_it_apart() {
        for (word, expected) in [
            ("claude", "claude"),
            ("", "''"),
            ("two words", "'two words'"),
            ("it's", "'it'\\''s'"),
            ("$(rm -r x)", "'$(rm -r x)'"),
            ("~", "'~'"),
        ] {
            assert_eq!(quoted(word), expected);
        }
        let home = Some(Path::new("/home/dev"));
        assert_eq!(readable("/home/dev/src", home), "~/src");
        assert_eq!(readable("/home/dev/my src", home), "'/home/dev/my src'");
    }

    #[test]
    fn a_command_says_where_and_with_what() {
        let argv = ["codex", "resume", "01a2"];
        let said = line(argv, Some("/w/my app"), [("CODEX_HOME", "/h")], quoted);
        assert_eq!(said, "cd '/w/my app' && CODEX_HOME=/h codex resume 01a2");
    }
}
