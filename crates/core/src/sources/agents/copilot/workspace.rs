//! A session's `workspace.yaml`, as far as it is flat.
//!
//! Copilot writes one `key: value` a line there. What is read: plain, single-
//! and double-quoted values of keys that begin a line. What is not: nested
//! values, values of several lines, anchors, tags and malformed values. These are left out.
//! Seen in Copilot CLI 1.0.102, 2026-11.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use whosup_sidecar::file::Links;
use whosup_sidecar::parse_json;

use crate::sources::agents::kit::dialect::date_of;
use crate::sources::agents::kit::reading::read_if_there;

/// How long the file may be: it has a name, three paths and some numbers.
const BYTES_MAX: u64 = 256 * 1024;
/// How many lines of it are read.
const LINES_MAX: usize = 1_000;

/// Facts in a `workspace.yaml`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Workspace {
    pub(super) id: Option<String>,
    pub(super) work_dir: Option<PathBuf>,
    pub(super) branch: Option<String>,
    pub(super) name: Option<String>,
    /// A person gave the name. Otherwise Copilot made it up.
    pub(super) is_name_given: bool,
    pub(super) created_at_ms: Option<i64>,
}

impl Workspace {
    /// Reads the file; `None` if there is none (yet).
    ///
    /// # Errors
    ///
    /// Why not, in a few words.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, String> {
        let Some(file) = read_if_there(path, BYTES_MAX, Links::Follow)? else {
            return Ok(None);
        };
        let text =
            std::str::from_utf8(&file.bytes).map_err(|_| "it is not valid UTF-8".to_owned())?;
        let workspace = Self::parse(text);
        if workspace == Self::default() && !text.trim().is_empty() {
            return Err("nothing in it can be read as `key: value`".to_owned());
        }
        Ok(Some(workspace))
    }

    pub(super) fn parse(text: &str) -> Self {
        let values = parse_flat(text);
        let text = |key: &str| values.get(key).cloned();
        let work_dir = text("cwd").map(PathBuf::from);
        Self {
            id: text("id"),
            work_dir: work_dir.filter(|path| path.is_absolute()),
            branch: text("branch"),
            name: text("name"),
            is_name_given: text("user_named").as_deref() == Some("true"),
            created_at_ms: text("created_at").as_deref().and_then(date_of),
        }
    }
}

/// The flat values of a YAML mapping. If a key occurs twice, the first counts.
fn parse_flat(text: &str) -> BTreeMap<&str, String> {
    let mut values = BTreeMap::new();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for line in text.lines().take(LINES_MAX) {
        let Some((key, value)) = line.split_once(':') else {
            continue;
        };
        let is_of_key = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let is_key = !key.is_empty() && key.chars().all(is_of_key);
        let is_separated = value.is_empty() || value.starts_with([' ', '\t']);
        let value = scalar(value.trim()).filter(|_| is_key && is_separated);
        if let Some(value) = value {
            values.entry(key).or_insert(value);
        }
    }
    values
}

/// A value on a single line; `None` if it is absent or longer.
fn scalar(value: &str) -> Option<String> {
    let text = match value.chars().next()? {
        '\'' => single_quoted(value)?,
        '"' => double_quoted(value)?,
        // Values of several lines, nested values, and values that need a YAML parser.
        '|' | '>' | '[' | '{' | '&' | '*' | '!' | '%' | '@' | '`' => return None,
        _ => {
            let plain = value.split(" #").next()?.trim_end();
            let is_nothing = matches!(plain, "~" | "null" | "Null" | "NULL");
            (!is_nothing && !plain.starts_with('#')).then(|| plain.to_owned())?
        }
    };
    (!text.is_empty()).then_some(text)
}

/// `'it''s'`: the quote itself stands twice.
fn single_quoted(value: &str) -> Option<String> {
    let mut text = String::new();
    let mut rest = value.strip_prefix('\'')?;
    loop {
        let (part, after) = rest.split_once('\'')?;
        text.push_str(part);
        match after.strip_prefix('\'') {
            Some(more) => {
                text.push('\'');
                rest = more;
            }
            None => return is_nothing_after(after).then_some(text),
        }
    }
}

/// `"a \"b\""`: the escapes of JSON.
fn double_quoted(value: &str) -> Option<String> {
    let mut escaped = false;
    let (end, _) = value.char_indices().skip(1).find(|(_, c)| {
        let is_end = *c == '"' && !escaped;
        escaped = *c == '\\' && !escaped;
        is_end
    })?;
    let (quoted, after) = value.split_at(end + 1);
    is_nothing_after(after).then_some(())?;
    parse_json(quoted.as_bytes()).ok()
}

fn is_nothing_after(rest: &str) -> bool {
    let rest = rest.trim();
    rest.is_empty() || rest.starts_with('#')
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_is_read() {
        let workspace = Workspace::parse(
            "id: a9c5f362-cae3-4d58-9f45-8142cae164af\ncwd: /home/dev/app\nbranch: main\n\
             client_name: github/cli\nname: 'HANG: 5'\nuser_named: true\nsummary_count: 0\n\
             created_at: 2026-11-27T21:01:43.742Z\n",
        );
        assert_eq!(
            workspace.work_dir.as_deref(),
            Some(Path::new("/home/dev/app"))
        );
        assert_eq!(workspace.branch.as_deref(), Some("main"));
        assert_eq!(workspace.name.as_deref(), Some("HANG: 5"));
        assert!(workspace.is_name_given);
        assert_eq!(workspace.created_at_ms, Some(1_795_813_303_742));
    }

    #[test]
    fn values_may_be_quoted_or_plain() {
        for (line, right) in [
            ("name: after clear", Some("after clear")),
            ("name: 'it''s'", Some("it's")),
            ("name: 'a' # b", Some("a")),
            (r#"name: "a \"b\" \u00e9\n""#, Some("a \"b\" é\n")),
            (r#"name: "a\\""#, Some("a\\")),
            ("name: a # b", Some("a")),
            ("name: a#b: c", Some("a#b: c")),
            ("name: \u{1F980}", Some("\u{1F980}")),
            ("\u{feff}name: a\r", Some("a")),
        ] {
            assert_eq!(Workspace::parse(line).name.as_deref(), right, "{line}");
        }
    }

    #[test]
    fn what_is_not_flat_or_not_whole_is_left_out() {
        for text in [
            "name:",
            "name: ~",
            "name: null",
            "name: ''",
            "name: 'a",
            "name: \"a",
            "name: 'a' b",
            "name: |-\n  a\n  b",
            "name: [a]",
            "  name: a",
            "name:a",
            "# name: a",
            "---",
            "",
        ] {
            assert_eq!(Workspace::parse(text), Workspace::default(), "{text:?}");
        }
        assert_eq!(Workspace::parse("cwd: relative").work_dir, None);
        assert_eq!(Workspace::parse("created_at: soon").created_at_ms, None);
    }

    #[test]
    fn of_a_key_that_comes_twice_the_first_counts() {
        assert_eq!(
            Workspace::parse("name: a\nname: b").name.as_deref(),
            Some("a")
        );
    }

    #[test]
    fn a_file_of_another_kind_is_reported() -> std::io::Result<()> {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("workspace.yaml");
        assert_eq!(Workspace::read(&path), Ok(None));
        std::fs::write(&path, [0xff, 0xfe])?;
        assert!(Workspace::read(&path).is_err());
        std::fs::write(&path, "{\"json\": 1}")?;
        assert!(Workspace::read(&path).is_err());
        std::fs::write(&path, "")?;
        assert_eq!(Workspace::read(&path), Ok(Some(Workspace::default())));
        std::fs::write(&path, "name: a\n".repeat(100_000))?;
        assert!(Workspace::read(&path).is_err());
        Ok(())
    }
}
