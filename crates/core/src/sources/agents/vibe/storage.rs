//! Where a home's sessions are.

use std::path::{Path, PathBuf};

use whosup_sidecar::file::{Links, ReadFileError, facts_of_any, read_regular};

use super::AGENT;
use crate::machine::mounts::Mounts;
use crate::machine::problem::Problem;

/// How long the configuration may be, in bytes.
const CONFIG_BYTES_MAX: u64 = 1 << 20;
/// The configuration table with the place of the sessions.
const TABLE: &str = "[session_logging]";
/// Its key.
const KEY: &str = "save_dir";

/// The directories that sessions of a home may be in: the usual directory, and the directory
/// in `config.toml`, if there is one.
pub(super) fn roots(home: &Path, mounts: &Mounts, problems: &mut Vec<Problem>) -> Vec<PathBuf> {
    let mut roots = vec![home.join("logs/session")];
    let path = home.join("config.toml");
    match read_regular(&path, CONFIG_BYTES_MAX, Links::Follow) {
        Ok(file) => {
            let text = String::from_utf8_lossy(&file.bytes);
            if let Some(named) = named_in(&text).filter(|named| *named != roots[0]) {
                match mounts.touchable(&named) {
                    Ok(_) if is_same(&roots[0], &named) => {}
                    Ok(_) => roots.push(named),
                    Err(why) => problems.push(Problem::at(&AGENT, &named, why)),
                }
            }
        }
        Err(ReadFileError::NotFound { .. }) => {}
        Err(error) => problems.push(Problem::at(&AGENT, &path, error.reason())),
    }
    roots
}

/// Both paths name one directory.
fn is_same(one: &Path, other: &Path) -> bool {
    let inode = |path: &Path| {
        let facts = facts_of_any(path, Links::Follow).ok()?;
        Some((facts.device, facts.inode))
    };
    inode(one).is_some_and(|own| Some(own) == inode(other))
}

/// The value of `save_dir = "…"` in its table, if it is an absolute path. That
/// much of the configuration's language is read, and no more.
fn named_in(config: &str) -> Option<PathBuf> {
    let lines = config.lines().map(str::trim);
    let entries = lines
        .skip_while(|line| !line.starts_with(TABLE))
        .skip(1)
        .take_while(|line| !line.starts_with('['));
    let value = entries
        .filter_map(|line| line.strip_prefix(KEY)?.trim_start().strip_prefix('='))
        .map(str::trim)
        .next()?;
    let quote = value
        .chars()
        .next()
        .filter(|quote| matches!(quote, '"' | '\''))?;
    let (path, _) = value.get(1..)?.split_once(quote)?;
    let is_plain = !path.contains('\\') && Path::new(path).is_absolute();
    is_plain.then(|| Path::new(path).components().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_for_sessions_is_read_from_its_table_alone() {
        let check = |config: &str, right: Option<&str>| {
            assert_eq!(named_in(config), right.map(PathBuf::from), "{config}");
        };
        check(
            "[session_logging]\nsave_dir = \"/data/vibe\" # here\n",
            Some("/data/vibe"),
        );
        check(
            "a = 1\n[session_logging]\nenabled = true\n  save_dir='/d/v/'",
            Some("/d/v"),
        );
        check("save_dir = \"/data\"\n[other]\nsave_dir = \"/data\"", None);
        check("[session_logging]\n[other]\nsave_dir = \"/data\"", None);
        check("[session_logging]\nsave_dir = \"\"", None);
        check("[session_logging]\nsave_dir = \"relative\"", None);
        check("[session_logging]\nsave_dir = \"/a\\u0041\"", None);
        check("[session_logging]\nsave_dir = 7", None);
        check("", None);
    }
}
