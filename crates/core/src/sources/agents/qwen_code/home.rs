//! Where a qwen-code process keeps its things.
//!
//! Its home (`QWEN_HOME`, else `~/.qwen`) has the settings and the registry.
//! Sessions lie in its runtime directory: `QWEN_RUNTIME_DIR`, else the setting
//! `advanced.runtimeOutputDir`, else the home. Both variables may also stand in
//! `~/.qwen/.env` or `~/.env`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;
use whosup_process::Pid;
use whosup_sidecar::file::{Links, read_regular};
use whosup_sidecar::parse_json;

use crate::adapter::{Home, Look, Sketch};
use crate::machine::Environment;
use crate::sources::agents::kit::scan::Scan;

/// The variable that moves the home.
pub(super) const HOME_VARIABLE: &str = "QWEN_HOME";
/// The variable that moves the sessions.
pub(super) const RUNTIME_VARIABLE: &str = "QWEN_RUNTIME_DIR";
/// Where the home is by default, below the user's.
pub(super) const DEFAULT_HOME: &str = ".qwen";

/// How long a `.env` or a settings file may be.
const SETTINGS_BYTES_MAX: u64 = 1 << 20;
/// How many lines of a `.env` are read.
const DOT_ENV_LINES_MAX: usize = 10_000;

/// The homes that a program started with `environment` may use. More than one
/// where a `.env` names one: it may be younger than the program.
pub(super) fn homes(environment: &Environment) -> Vec<PathBuf> {
    if let Some(home) = environment.directory(HOME_VARIABLE) {
        return vec![home];
    }
    let default = environment.home().map(|home| home.join(DEFAULT_HOME));
    let named = from_dot_env(environment, HOME_VARIABLE);
    let mut homes: Vec<PathBuf> = named.into_iter().chain(default).collect();
    homes.dedup();
    homes
}

/// The directories that the sessions of a home may lie in: its own, and the directories in
/// variables and settings, if they can be touched.
pub(super) fn runtime_directories(look: &Look<'_>, home: &Home) -> Vec<Runtime> {
    let users = users_of(look);
    let mut directories = BTreeSet::from([home.root.to_path_buf()]);
    for user in &users {
        if user.homes.iter().any(|root| **root == *home.root) {
            directories.extend(user.runtime.clone());
        }
    }
    directories.extend(from_settings(look, home));
    let is_home = |path: &PathBuf| users.iter().any(|user| user.homes.contains(path));
    directories.retain(|path| {
        **path == *home.root || (!is_home(path) && look.machine.mounts().touchable(path).is_ok())
    });
    let with_sharers = directories.into_iter().map(|path| {
        let users = users.iter();
        let sharers = users.filter(|user| user.runtime.as_ref() == Some(&path));
        Runtime {
            sharers: sharers
                .flat_map(|user| user.homes.iter().cloned())
                .collect(),
            path,
        }
    });
    with_sharers.collect()
}

/// The runtime directory of a session if it differs from the home. It may have been set for
/// one process only, so a resume command must name it.
pub(super) fn runtime_that_needs_naming(sketch: &Sketch) -> Option<&Path> {
    // `projects/PROJECT/chats/ID.jsonl` in it.
    let directory = sketch.transcript.as_deref()?.ancestors().nth(4)?;
    (*directory != *sketch.key.home).then_some(directory)
}

/// One directory that has sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Runtime {
    /// Where it is.
    pub(super) path: PathBuf,
    /// The homes whose programs keep their sessions in it.
    sharers: BTreeSet<PathBuf>,
}

impl Runtime {
    /// Returns whether a session in it belongs to the scanned home. If several homes share the
    /// directory, the session belongs to the home of the process that serves it, or to the
    /// first home if no known process does: so each session is found once.
    pub(super) fn is_for(&self, scan: &Scan<'_>, served_by: Option<Pid>) -> bool {
        if self.sharers.len() < 2 {
            return true;
        }
        let home = &scan.home.root;
        let mut processes = scan.look.processes.iter();
        let server = processes
            .find(|process| Some(process.process.pid) == served_by && !process.homes.is_empty());
        match server {
            Some(server) => server.may_use(home),
            None => self.sharers.first().is_some_and(|first| **first == **home),
        }
    }
}

/// A user of qwen-code's files: this scan, or a qwen-code process.
struct User {
    homes: Vec<PathBuf>,
    /// The session directory in its variables.
    runtime: Option<PathBuf>,
}

fn users_of(look: &Look<'_>) -> Vec<User> {
    let own = look.machine.environment();
    let runtime = runtime_directory(own);
    if let Some(runtime) = &runtime {
        look.machine.mounts().rely_on(runtime);
    }
    let homes = homes(own);
    let mut users = vec![User { homes, runtime }];
    users.extend(look.processes.iter().map(|process| {
        let names = [HOME_VARIABLE, RUNTIME_VARIABLE];
        let environment = look.machine.environment_of(&process.process, &names);
        User {
            homes: process.homes.clone(),
            runtime: environment.as_ref().and_then(runtime_directory),
        }
    }));
    users
}

fn runtime_directory(environment: &Environment) -> Option<PathBuf> {
    environment
        .directory(RUNTIME_VARIABLE)
        .or_else(|| from_dot_env(environment, RUNTIME_VARIABLE))
}

fn from_dot_env(environment: &Environment, name: &str) -> Option<PathBuf> {
    let home = environment.touchable_home()?;
    let value = [home.join(DEFAULT_HOME).join(".env"), home.join(".env")]
        .iter()
        .find_map(|path| {
            let file = read_regular(path, SETTINGS_BYTES_MAX, Links::Follow).ok()?;
            dot_env_value(&String::from_utf8_lossy(&file.bytes), name)
        })?;
    environment.resolve(Path::new(&value))
}

/// The value that the last line of a `.env` gives to `name`; empty is none.
fn dot_env_value(text: &str, name: &str) -> Option<String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let value_in = |line: &str| {
        let line = line.trim();
        let line = line.strip_prefix("export ").unwrap_or(line).trim_start();
        let rest = line.strip_prefix(name)?.trim_start();
        let value = rest.strip_prefix(['=', ':'])?.trim();
        Some(unquoted(value).to_owned())
    };
    text.lines()
        .take(DOT_ENV_LINES_MAX)
        .filter_map(value_in)
        .last()
        .filter(|value| !value.is_empty())
}

/// A value without its quotes, or without the comment behind it.
fn unquoted(value: &str) -> &str {
    for quote in ['"', '\'', '`'] {
        if let Some((inside, _)) = value
            .strip_prefix(quote)
            .and_then(|rest| rest.split_once(quote))
        {
            return inside;
        }
    }
    value.split('#').next().unwrap_or_default().trim_end()
}

/// The session directories in the settings of a home, or of the projects in which its
/// processes work. A relative directory is relative to each of these.
fn from_settings(look: &Look<'_>, home: &Home) -> BTreeSet<PathBuf> {
    let work_dirs: BTreeSet<&Path> = look
        .processes_of(home)
        .filter_map(|process| process.work_dir())
        .collect();
    let of_home = runtime_setting(&home.root.join("settings.json"));
    let value = of_home.as_deref();
    let directory = value.and_then(|value| resolved(look, value, None));
    let mut directories: BTreeSet<PathBuf> = directory.into_iter().collect();
    for work_dir in work_dirs {
        let settings = work_dir.join(DEFAULT_HOME).join("settings.json");
        let is_touchable = look.machine.mounts().touchable(&settings).is_ok();
        let of_project = is_touchable.then(|| runtime_setting(&settings)).flatten();
        let values = of_home.iter().chain(&of_project);
        directories.extend(values.filter_map(|value| resolved(look, value, Some(work_dir))));
    }
    directories
}

fn resolved(look: &Look<'_>, value: &str, work_dir: Option<&Path>) -> Option<PathBuf> {
    let user_home = look.machine.environment().home().map(Path::to_owned);
    let from = Environment::new(user_home, work_dir.map(Path::to_owned), []);
    from.resolve(Path::new(value))
}

fn runtime_setting(path: &Path) -> Option<String> {
    // Settings that can't be read are for qwen-code to complain about.
    let file = read_regular(path, SETTINGS_BYTES_MAX, Links::Follow).ok()?;
    let text = String::from_utf8(file.bytes).ok()?;
    let settings: Value = parse_json(without_comments(&text).as_bytes()).ok()?;
    let value = settings.pointer("/advanced/runtimeOutputDir")?.as_str()?;
    Some(value.trim().to_owned()).filter(|value| !value.is_empty())
}

/// Puts blanks in the place of `//` and `/* */` comments, which settings may
/// have and JSON may not.
fn without_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let comment = if rest.starts_with("//") {
            Some(rest.find('\n').unwrap_or(rest.len()))
        } else if rest.starts_with("/*") {
            Some(rest.find("*/").map_or(rest.len(), |end| end + 2))
        } else {
            None
        };
        let length = comment.unwrap_or_else(|| match first {
            '"' => string_length(rest),
            _ => first.len_utf8(),
        });
        let (part, others) = rest.split_at_checked(length).unwrap_or((rest, ""));
        plain.push_str(if comment.is_some() { " " } else { part });
        rest = others;
    }
    plain
}

/// How long the JSON string is that a text begins with, in bytes.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    let mut characters = text.char_indices().skip(1);
    let end = characters.find(|(_, character)| {
        let is_end = *character == '"' && !is_escaped;
        is_escaped = *character == '\\' && !is_escaped;
        is_end
    });
    end.map_or(text.len(), |(at, _)| at + 1)
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests {
    use std::ffi::OsString;

    use super::*;

    fn environment(home: &Path, variables: &[(&str, &str)]) -> Environment {
        let variables = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), OsString::from(value)));
        Environment::new(Some(home.to_owned()), Some(PathBuf::from("/w")), variables)
    }

    #[test]
    fn the_home_is_a_variable_else_below_the_users() {
        let home = Path::new("/nonexistent/dev");
        let check = |value: &str, right: &str| {
            let homes = homes(&environment(home, &[(HOME_VARIABLE, value)]));
            assert_eq!(homes, [PathBuf::from(right)], "{value}");
        };
        check("/q", "/q");
        check("/q/", "/q");
        check("~/q", "/nonexistent/dev/q");
        check("q", "/w/q");
        check("", "/nonexistent/dev/.qwen");
    }

    #[test]
    fn a_dot_env_moves_the_home_unless_a_variable_does() -> std::io::Result<()> {
        let home = tempfile::tempdir()?;
        std::fs::write(home.path().join(".env"), "QWEN_HOME=\"/from-env\"\n")?;
        let default = home.path().join(".qwen");
        let both = homes(&environment(home.path(), &[]));
        assert_eq!(both, [PathBuf::from("/from-env"), default.clone()]);
        let own = homes(&environment(home.path(), &[(HOME_VARIABLE, "/q")]));
        assert_eq!(own, [PathBuf::from("/q")]);
        std::fs::create_dir(&default)?;
        std::fs::write(default.join(".env"), "QWEN_HOME=~/first\n")?;
        let both = homes(&environment(home.path(), &[]));
        assert_eq!(both, [home.path().join("first"), default]);
        Ok(())
    }

    #[test]
    fn a_dot_env_line_may_be_quoted_exported_or_commented() {
        for (text, right) in [
            ("QWEN_HOME=/a", Some("/a")),
            ("\u{feff}export QWEN_HOME = '/a b' # c", Some("/a b")),
            ("QWEN_HOME: /a", Some("/a")),
            ("QWEN_HOME=/a # c\r\n", Some("/a")),
            ("QWEN_HOME=/a\nQWEN_HOME=/b", Some("/b")),
            ("QWEN_HOME=", None),
            ("# QWEN_HOME=/a", None),
            ("QWEN_HOMES=/a", None),
            ("NOT_QWEN_HOME=/a", None),
        ] {
            assert_eq!(dot_env_value(text, "QWEN_HOME").as_deref(), right, "{text}");
        }
    }

    #[test]
    fn settings_may_have_comments() -> std::io::Result<()> {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("settings.json");
        let text = "{ // \"advanced\": 1\n \"a\": \"x // y \\\" /* z\", /* b\n */ \
            \"advanced\": { \"runtimeOutputDir\": \" ~/out \" } }";
        std::fs::write(&path, text)?;
        assert_eq!(runtime_setting(&path).as_deref(), Some("~/out"));
        std::fs::write(&path, "{ \"advanced\": { \"runtimeOutputDir\": 7 } }")?;
        assert_eq!(runtime_setting(&path), None);
        assert_eq!(runtime_setting(&directory.path().join("none")), None);
        Ok(())
    }
}
