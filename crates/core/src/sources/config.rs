//! The parts of the user's configuration that concern reading sessions.
//!
//! `docs/config.md` describes the file. The command line reads the rest, such as colours.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Spanned;
use whosup_sidecar::AgentId;
use whosup_sidecar::file::{Links, ReadFileError, read_regular};

use crate::machine::Environment;
use crate::machine::problem::Problem;
use crate::sources::agents::{AGENTS, id_of};

/// How long a configuration may be, in bytes.
const CONFIG_BYTES_MAX: u64 = 1 << 20;

/// User settings for reading sessions.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Config {
    /// Homes beyond those in environments.
    pub homes: Vec<(AgentId, PathBuf)>,
    /// What becomes of prompts in titles.
    pub prompts: Prompts,
    /// The default file could not be read, so the defaults apply.
    pub problem: Option<Problem>,
}

/// What becomes of titles that are prompts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Prompts {
    /// They are shown.
    #[default]
    Show,
    /// They are hidden.
    Hide,
}

/// Why a configuration can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// It can't be read.
    #[error("cannot use the configuration `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: ReadFileError,
    },
    /// It can't be understood.
    #[error("cannot use the configuration `{}`, line {line}: {reason}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Where.
        line: usize,
        /// Why.
        reason: String,
    },
}

/// What is wrong in a configuration, and at which byte.
#[derive(Debug)]
pub struct Wrong {
    /// The byte.
    pub at: usize,
    /// What is wrong.
    pub reason: String,
}

/// A configuration file.
#[derive(Debug)]
pub enum ConfigFile {
    /// There is none.
    Absent,
    /// It belongs to another user; sessions are still shown.
    Unreadable(Problem),
    /// It was read.
    Read {
        /// The file.
        path: PathBuf,
        /// All of it.
        bytes: Vec<u8>,
    },
}

/// The keys of the file that are read here.
#[derive(Debug, Default, Deserialize)]
struct Keys {
    #[serde(default)]
    homes: BTreeMap<Spanned<String>, Vec<Spanned<PathBuf>>>,
    #[serde(default)]
    prompts: Prompts,
}

impl Config {
    /// Reads `whosup/config.toml` in the user's configuration directory; returns the defaults if
    /// there is none.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if it exists and can't be read or understood.
    pub fn read_default(environment: &Environment) -> Result<Self, ConfigError> {
        ConfigFile::read_default(environment)?.understood(Self::parse, environment)
    }

    /// Parses the settings for reading sessions.
    ///
    /// # Errors
    ///
    /// [`Wrong`] with the first entry that cannot be parsed.
    pub fn parse(bytes: &[u8], environment: &Environment) -> Result<Self, Wrong> {
        let keys: Keys = parse_toml(bytes)?;
        Ok(Self {
            homes: homes(keys.homes, environment)?,
            prompts: keys.prompts,
            problem: None,
        })
    }
}

impl From<Problem> for Config {
    fn from(problem: Problem) -> Self {
        Self {
            problem: Some(problem),
            ..Self::default()
        }
    }
}

impl ConfigFile {
    /// Reads the usual file.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if it exists and can't be read.
    pub fn read_default(environment: &Environment) -> Result<Self, ConfigError> {
        let directory = environment.xdg_directory("XDG_CONFIG_HOME", ".config");
        let Some(path) = directory.map(|directory| directory.join("whosup/config.toml")) else {
            return Ok(Self::Absent);
        };
        match Self::read(&path) {
            Err(ConfigError::Read {
                source: ReadFileError::NotFound { .. },
                ..
            }) => Ok(Self::Absent),
            Err(ConfigError::Read {
                source: ReadFileError::PermissionDenied { .. },
                ..
            }) => Ok(Self::Unreadable(Problem::at(
                None,
                &path,
                "permission denied; the configuration is not used",
            ))),
            result => result,
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if it can't be read.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let path = path.to_owned();
        match read_regular(&path, CONFIG_BYTES_MAX, Links::Follow) {
            Ok(file) => Ok(Self::Read {
                path,
                bytes: file.bytes,
            }),
            Err(source) => Err(ConfigError::Read { path, source }),
        }
    }

    /// Applies `parse` to the file.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if it can't be understood.
    pub fn understood<T: Default + From<Problem>>(
        self,
        parse: impl FnOnce(&[u8], &Environment) -> Result<T, Wrong>,
        environment: &Environment,
    ) -> Result<T, ConfigError> {
        match self {
            Self::Absent => Ok(T::default()),
            Self::Unreadable(problem) => Ok(T::from(problem)),
            Self::Read { path, bytes } => {
                parse(&bytes, environment).map_err(|wrong| ConfigError::Parse {
                    line: line_of(&bytes, wrong.at),
                    path,
                    reason: wrong.reason,
                })
            }
        }
    }
}

/// Parses TOML into `T`.
///
/// # Errors
///
/// [`Wrong`] with the first error.
pub fn parse_toml<T: for<'de> Deserialize<'de>>(bytes: &[u8]) -> Result<T, Wrong> {
    let text = std::str::from_utf8(bytes).map_err(|error| Wrong {
        at: error.valid_up_to(),
        reason: "it is not UTF-8".to_owned(),
    })?;
    toml::from_str(text).map_err(|error| Wrong {
        at: error.span().map_or(0, |span| span.start),
        reason: error.message().trim().replace('\n', "; "),
    })
}

/// Which line a byte is in, from 1.
#[must_use]
pub fn line_of(bytes: &[u8], at: usize) -> usize {
    let before = bytes.get(..at).unwrap_or(bytes);
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}

/// The message for an unknown key, with the known keys.
#[must_use]
pub fn unknown_key(key: &Spanned<String>, what: &str, known: &[&str]) -> Wrong {
    let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
    Wrong {
        at: key.span().start,
        reason: format!(
            "`{}` does not name {what}, expected one of {}",
            key.get_ref(),
            known.join(", ")
        ),
    }
}

fn homes(
    named: BTreeMap<Spanned<String>, Vec<Spanned<PathBuf>>>,
    environment: &Environment,
) -> Result<Vec<(AgentId, PathBuf)>, Wrong> {
    let mut homes = Vec::new();
    for (agent, paths) in named {
        let adapter = AGENTS
            .iter()
            .find(|adapter| adapter.profile().id == agent.get_ref().as_str());
        let Some(adapter) = adapter else {
            let known: Vec<&str> = AGENTS.iter().map(|adapter| adapter.profile().id).collect();
            return Err(unknown_key(&agent, "an agent", &known));
        };
        for path in paths {
            let resolved = environment.resolve(path.get_ref());
            let is_anchored = path.get_ref().is_absolute() || path.get_ref().starts_with("~");
            let root = resolved.filter(|_| is_anchored).ok_or_else(|| Wrong {
                at: path.span().start,
                reason: format!(
                    "a home must be an absolute path or begin with `~/`: `{}`",
                    path.get_ref().display()
                ),
            })?;
            homes.push((id_of(*adapter), root));
        }
    }
    Ok(homes)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{Config, Environment, Prompts, line_of};

    fn environment() -> Environment {
        let home = PathBuf::from("/home/dev");
        Environment::new(Some(home.clone()), Some(home), [])
    }

    #[track_caller]
    fn check_wrong(text: &str, line: usize, said: &[&str]) {
        let Err(wrong) = Config::parse(text.as_bytes(), &environment()) else {
            panic!("accepted: {text}");
        };
        assert_eq!(line_of(text.as_bytes(), wrong.at), line, "{}", wrong.reason);
        for word in said {
            assert!(wrong.reason.contains(word), "{word}: {}", wrong.reason);
        }
    }

    #[test]
    fn homes_may_begin_with_a_tilde() {
        let text = "[homes]\nclaude-code = [\"~/work/.claude\", \"/srv/claude/\"]\n";
        let config = Config::parse(text.as_bytes(), &environment()).unwrap();
        let homes = config.homes.into_iter();
        let homes: Vec<_> = homes
            .map(|(agent, root)| (agent.to_string(), root))
            .collect();
        let claude = |root: &str| ("claude-code".to_owned(), PathBuf::from(root));
        assert_eq!(
            homes,
            [claude("/home/dev/work/.claude"), claude("/srv/claude")]
        );
    }

    #[test]
    fn keys_of_others_are_theirs() {
        let text = "prompts = \"hide\"\nkeep_ended = 1\n[colour]\nidle = \"plaid\"";
        let config = Config::parse(text.as_bytes(), &environment()).unwrap();
        assert_eq!(config.prompts, Prompts::Hide);
    }

    #[test]
    fn what_makes_no_sense_is_named_with_its_line() {
        check_wrong("[homes]\ncodex = [\"x\"]", 2, &["absolute", "`x`"]);
        check_wrong("[homes]\nclaude = []", 2, &["`claude`", "`claude-code`"]);
        check_wrong("prompts = \"no\"", 1, &["`no`", "`show`", "`hide`"]);
        check_wrong("prompts = \"hide\"\n[homes\n", 2, &[]);
    }
}
