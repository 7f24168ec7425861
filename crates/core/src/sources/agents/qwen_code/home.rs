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

use crate::adapter::{Home, Look, Sketch};
use crate::machine::Environment;

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
    let known = Known::of(look);
    let mut directories = BTreeSet::from([home.root.to_path_buf()]);
    for user in &known.users {
        if user.homes.iter().any(|root| **root == *home.root) {
            directories.extend(user.runtime.clone());
        }
    }
    directories.extend(from_settings(look, home));
    directories
        .into_iter()
        .filter(|path| **path == *home.root || !known.is_home(path))
        .filter(|path| **path == *home.root || look.machine.mounts().touchable(path).is_ok())
        .map(|path| {
            let sharers = known.homes_that_use(&path);
            Runtime { path, sharers }
        })
        .collect()
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
    /// Returns whether a session in it belongs to `home`. If several homes share the
    /// directory, the session belongs to the home of the process that serves it, or to the
    /// first home if no known process does: so each session is found once.
    pub(super) fn is_for(&self, home: &Home, served_by: Option<Pid>, look: &Look<'_>) -> bool {
        if self.sharers.len() < 2 {
            return true;
        }
        let server = look
            .processes
            .iter()
            .find(|process| Some(process.process.pid) == served_by && !process.homes.is_empty());
        match server {
            Some(server) => server.may_use(&home.root),
            None => self
                .sharers
                .first()
                .is_some_and(|first| **first == *home.root),
        }
    }
}

/// The users of qwen-code's files: this scan and each qwen-code process.
struct Known {
    users: Vec<User>,
}

struct User {
    homes: Vec<PathBuf>,
    /// The session directory in its variables.
    runtime: Option<PathBuf>,
}

impl Known {
    fn of(look: &Look<'_>) -> Self {
        let own = look.machine.environment();
        let runtime = runtime_directory(own);
        if let Some(runtime) = &runtime {
            look.machine.mounts().rely_on(runtime);
        }
        let mut users = vec![User {
            homes: homes(own),
            runtime,
        }];
        let names = [HOME_VARIABLE, RUNTIME_VARIABLE];
        for process in look.processes {
            let environment = look.machine.environment_of(&process.process, &names);
            users.push(User {
                homes: process.homes.clone(),
                runtime: environment.and_then(|environment| runtime_directory(&environment)),
            });
        }
        Self { users }
    }

    fn is_home(&self, path: &Path) -> bool {
        let mut homes = self.users.iter().flat_map(|user| &user.homes);
        homes.any(|home| home == path)
    }

    fn homes_that_use(&self, runtime: &Path) -> BTreeSet<PathBuf> {
        self.users
            .iter()
            .filter(|user| user.runtime.as_deref() == Some(runtime))
            .flat_map(|user| user.homes.iter().cloned())
            .collect()
    }
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
    let mut directories = BTreeSet::new();
    if let Some(value) = runtime_setting(&home.root.join("settings.json")) {
        directories.extend(resolved(look, &value, None));
        for work_dir in &work_dirs {
            directories.extend(resolved(look, &value, Some(work_dir)));
        }
    }
    for work_dir in work_dirs {
        let settings = work_dir.join(DEFAULT_HOME).join("settings.json");
        if look.machine.mounts().touchable(&settings).is_ok()
            && let Some(value) = runtime_setting(&settings)
        {
            directories.extend(resolved(look, &value, Some(work_dir)));
        }
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
    let settings: Value = serde_json::from_str(&without_comments(&text)).ok()?;
    let value = settings.pointer("/advanced/runtimeOutputDir")?.as_str()?;
    Some(value.trim().to_owned()).filter(|value| !value.is_empty())
}

/// Puts blanks in the place of `//` and `/* */` comments, which settings may
/// have and JSON may not.
fn without_comments(text: &str) -> String {
    #[derive(Clone, Copy, PartialEq)]
    enum In {
        Json,
        String,
        Line,
        Block,
    }
    let mut place = In::Json;
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let next = characters.peek().copied();
        match (place, character, next) {
            (In::Json, '/', Some('/')) => place = In::Line,
            (In::Json, '/', Some('*')) => place = In::Block,
            (In::Json, '"', _) => {
                place = In::String;
                plain.push(character);
            }
            (In::String, '\\', Some(escaped)) => {
                plain.extend([character, escaped]);
                characters.next();
            }
            (In::String, '"', _) => {
                place = In::Json;
                plain.push(character);
            }
            (In::Line, '\n', _) => {
                place = In::Json;
                plain.push(character);
            }
            (In::Block, '*', Some('/')) => {
                characters.next();
                place = In::Json;
                plain.push(' ');
            }
            (In::Json | In::String, ..) => plain.push(character),
            (In::Line | In::Block, ..) => {}
        }
    }
    plain
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
