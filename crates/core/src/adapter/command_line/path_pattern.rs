//! Patterns for the ends of paths.

use std::path::{Component, Path};

/// Any number of folders, and their files.
const ANY_FOLDERS: &str = "**";

/// Whether the end of a path matches a pattern: names with `/` between. `*` at the end of a name
/// stands for any text, `#` for a version number, `**` for any number of folders and what
/// is in them, and `bin` for `.bin` too. `.exe` at the end of the path does not matter.
pub(super) fn matches(pattern: &str, path: &Path) -> bool {
    let mut names: Vec<&str> = path
        .components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_str().unwrap_or_default()),
            _ => None,
        })
        .collect();
    if let Some(last) = names.last_mut() {
        *last = last.strip_suffix(".exe").unwrap_or(last);
    }
    let pattern: Vec<&str> = pattern.split('/').collect();
    ends_as(&pattern, &names)
}

/// The last name of a pattern.
pub(super) fn name_of(pattern: &'static str) -> &'static str {
    pattern.rsplit('/').next().unwrap_or_default()
}

/// Whether one name matches the pattern of one name.
pub(super) fn is_name(pattern: &str, name: &str) -> bool {
    match pattern {
        ANY_FOLDERS => false,
        "#" => is_version(name),
        "bin" => name == "bin" || name == ".bin",
        _ => match pattern.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == pattern,
        },
    }
}

fn ends_as(pattern: &[&str], names: &[&str]) -> bool {
    match pattern.split_last() {
        None => true,
        Some((&ANY_FOLDERS, above)) => {
            let mut ends = (0..=names.len()).filter_map(|end| names.get(..end));
            ends.any(|names| ends_as(above, names))
        }
        Some((last, above)) => names
            .split_last()
            .is_some_and(|(name, names)| is_name(last, name) && ends_as(above, names)),
    }
}

/// `2.1.197`, `2.2.0-beta.1`
fn is_version(name: &str) -> bool {
    let mut numbers = name.split('-').next().unwrap_or_default().split('.');
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    numbers.clone().count() == 3 && numbers.all(is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_compared_from_the_end_of_a_path() {
        for (pattern, path, right) in [
            ("codex", "/usr/bin/codex", true),
            ("codex", "codex.exe", true),
            ("codex", "/opt/codex/server", false),
            ("codex", "/usr/bin/codexd", false),
            ("codex-*", "/opt/codex-x86_64", true),
            ("bin/pi", "/w/node_modules/.bin/pi", true),
            ("bin/pi", "bin/pi", true),
            ("bin/pi", "/home/dev/pi", false),
            ("claude/#", "/opt/claude/2.1.197", true),
            ("claude/#", "/opt/claude/2.2.0-beta.1", true),
            ("claude/#", "/opt/claude/notes", false),
            ("@charmland/crush/**", "/n/@charmland/crush/a/run.js", true),
            ("@charmland/crush/**", "/n/@charmland/crush/run.js", true),
            ("@charmland/crush/**", "/n/@charmland/other/run.js", false),
            ("pi/**/cli.js", "/n/pi/dist/lib/cli.js", true),
            ("pi/**/cli.js", "/n/pi/cli.js", true),
            ("pi/**/cli.js", "/n/pip/cli.js", false),
            (
                "qwen-code/dist/cli.js",
                "/qwen-code/n/tsx/dist/cli.js",
                false,
            ),
        ] {
            assert_eq!(matches(pattern, Path::new(path)), right, "{pattern} {path}");
        }
    }

    #[test]
    fn versions_have_three_numbers() {
        assert!(is_version("2.1.197") && is_version("2.2.0-beta.1"));
        for other in ["", "2.1", "2.1.x", "notes", "1.2.3.4", "..", "2..1"] {
            assert!(!is_version(other), "{other}");
        }
    }
}
