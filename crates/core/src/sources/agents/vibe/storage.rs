//! Where a home's sessions are.

use std::path::{Path, PathBuf};

use whosup_sidecar::file::{Links, facts_of_any};

use super::AGENT;
use crate::machine::mounts::Mounts;
use crate::machine::problem::Problem;
use crate::sources::agents::kit::reading::{found_or_problem, read_if_there};

/// How long the configuration may be, in bytes.
const CONFIG_BYTES_MAX: u64 = 1 << 20;

/// The directories that sessions of a home may be in: the usual directory, and the directory
/// in `config.toml`, if there is one.
pub(super) fn roots(home: &Path, mounts: &Mounts, problems: &mut Vec<Problem>) -> Vec<PathBuf> {
    let mut roots = vec![home.join("logs/session")];
    let path = home.join("config.toml");
    let config = read_if_there(&path, CONFIG_BYTES_MAX, Links::Follow);
    let config = config.map_err(|why| Problem::at(&AGENT, &path, why));
    let config = found_or_problem(config).take(problems);
    let named = config.and_then(|file| named_in(&String::from_utf8_lossy(&file.bytes)));
    if let Some(named) = named.filter(|named| !roots.contains(named)) {
        match mounts.touchable(&named) {
            Ok(_) if roots.iter().any(|usual| is_same(usual, &named)) => {}
            Ok(_) => roots.push(named),
            Err(why) => problems.push(Problem::at(&AGENT, &named, why)),
        }
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

/// The directory for sessions in the configuration, if it is an absolute path.
fn named_in(config: &str) -> Option<PathBuf> {
    let config: toml::Table = config.parse().ok()?;
    let path = Path::new(config.get("session_logging")?.get("save_dir")?.as_str()?);
    path.is_absolute().then(|| path.components().collect())
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
        check("session_logging.save_dir = \"/a\\u0041\"", Some("/aA"));
        check("[session_logging]\nsave_dir = 7", None);
        check("", None);
    }
}
