//! The configuration file. `docs/config.md` describes it; every key is optional.

mod tracking;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anstyle::Style;
use serde::Deserialize;
use toml::Spanned;
use whosup_core::agents::AGENTS;
use whosup_core::machine::Environment;
use whosup_core::problem::Problem;
use whosup_core::sidecar::AgentId;
use whosup_core::sidecar::file::{Links, ReadFileError, read_regular};

use crate::colour::parse_style;
use crate::condition::Condition;

pub(crate) use self::tracking::Tracking;

/// How long a configuration may be, in bytes.
const CONFIG_BYTES_MAX: u64 = 1 << 20;

/// What a user has set.
#[derive(Debug, Clone, Default)]
pub(crate) struct Config {
    /// Homes beyond those that environments lead to.
    pub(crate) homes: Vec<(AgentId, PathBuf)>,
    /// Styles by the name of a condition.
    styles: BTreeMap<String, Style>,
    /// What becomes of prompts in titles.
    pub(crate) prompts: Prompts,
    /// What becomes of session records.
    pub(crate) tracking: Tracking,
    /// The usual file could not be looked at, so the defaults stand.
    pub(crate) problem: Option<Problem>,
}

/// What becomes of titles that are prompts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Prompts {
    /// They are shown.
    #[default]
    Show,
    /// The directory is shown in their place.
    Hide,
}

/// Why a configuration can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ConfigError {
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

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfigFile {
    #[serde(default)]
    homes: BTreeMap<Spanned<String>, Vec<Spanned<PathBuf>>>,
    #[serde(default)]
    colour: BTreeMap<Spanned<String>, Spanned<String>>,
    #[serde(default)]
    prompts: Prompts,
    keep_ended: Option<Spanned<String>>,
    end_unknown_after: Option<Spanned<String>>,
    #[serde(default)]
    on_end: Vec<Spanned<Vec<String>>>,
}

/// What is wrong, and at which byte.
struct Wrong {
    at: usize,
    reason: String,
}

impl Config {
    /// Reads `whosup/config.toml` in the user's configuration directory; the
    /// defaults if there is none.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if it is there and can't be read or understood.
    pub(crate) fn read_default(environment: &Environment) -> Result<Self, ConfigError> {
        let directory = environment.xdg_directory("XDG_CONFIG_HOME", ".config");
        let Some(path) = directory.map(|directory| directory.join("whosup/config.toml")) else {
            return Ok(Self::default());
        };
        match Self::read(&path, environment) {
            Err(ConfigError::Read {
                source: ReadFileError::NotFound { .. },
                ..
            }) => Ok(Self::default()),
            // Somebody else's home: whatever else can be seen is still shown.
            Err(ConfigError::Read {
                source: ReadFileError::PermissionDenied { .. },
                ..
            }) => Ok(Self {
                problem: Some(Problem {
                    agent: None,
                    path: Some(path),
                    message: "permission denied; the configuration is not used".to_owned(),
                }),
                ..Self::default()
            }),
            result => result,
        }
    }

    /// Reads a configuration file.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if it can't be read or understood.
    pub(crate) fn read(path: &Path, environment: &Environment) -> Result<Self, ConfigError> {
        let file = read_regular(path, CONFIG_BYTES_MAX, Links::Follow).map_err(|source| {
            ConfigError::Read {
                path: path.to_owned(),
                source,
            }
        })?;
        parse(&file.bytes, environment).map_err(|wrong| ConfigError::Parse {
            path: path.to_owned(),
            line: line_of(&file.bytes, wrong.at),
            reason: wrong.reason,
        })
    }

    /// How a condition is shown.
    pub(crate) fn style(&self, condition: Condition) -> Style {
        self.styles
            .get(condition.name())
            .copied()
            .unwrap_or_else(|| condition.default_style())
    }
}

fn parse(bytes: &[u8], environment: &Environment) -> Result<Config, Wrong> {
    let text = std::str::from_utf8(bytes).map_err(|error| Wrong {
        at: error.valid_up_to(),
        reason: "it is not UTF-8".to_owned(),
    })?;
    let file: ConfigFile = toml::from_str(text).map_err(|error| Wrong {
        at: error.span().map_or(0, |span| span.start),
        reason: error.message().trim().replace('\n', "; "),
    })?;
    Ok(Config {
        homes: homes(file.homes, environment)?,
        styles: styles(file.colour)?,
        prompts: file.prompts,
        tracking: Tracking::of(
            file.keep_ended.as_ref(),
            file.end_unknown_after.as_ref(),
            file.on_end,
            environment,
        )?,
        problem: None,
    })
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
            homes.push((whosup_core::agents::id_of(*adapter), root));
        }
    }
    Ok(homes)
}

fn styles(
    named: BTreeMap<Spanned<String>, Spanned<String>>,
) -> Result<BTreeMap<String, Style>, Wrong> {
    let mut styles = BTreeMap::new();
    for (condition, style) in named {
        let known = Condition::ALL.map(Condition::name);
        if !known.contains(&condition.get_ref().as_str()) {
            return Err(unknown_key(&condition, "a state", &known));
        }
        let parsed = parse_style(style.get_ref()).map_err(|error| Wrong {
            at: style.span().start,
            reason: error.to_string(),
        })?;
        styles.insert(condition.into_inner(), parsed);
    }
    Ok(styles)
}

fn unknown_key(key: &Spanned<String>, what: &str, known: &[&str]) -> Wrong {
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

fn line_of(bytes: &[u8], at: usize) -> usize {
    let before = bytes.get(..at).unwrap_or(bytes);
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::Duration;

    use whosup_core::machine::Environment;

    use super::{Config, Prompts, Tracking, line_of, parse};

    fn environment() -> Environment {
        let home = PathBuf::from("/home/dev");
        Environment::new(Some(home.clone()), Some(home), [])
    }

    #[track_caller]
    fn read(text: &str) -> Config {
        match parse(text.as_bytes(), &environment()) {
            Ok(config) => config,
            Err(wrong) => panic!("{}", wrong.reason),
        }
    }

    #[track_caller]
    fn check_wrong(text: &str, line: usize, said: &[&str]) {
        let Err(wrong) = parse(text.as_bytes(), &environment()) else {
            panic!("accepted: {text}");
        };
        assert_eq!(line_of(text.as_bytes(), wrong.at), line, "{}", wrong.reason);
        for word in said {
            assert!(wrong.reason.contains(word), "{word}: {}", wrong.reason);
        }
    }

    #[test]
    fn every_key_is_optional() {
        let config = read("");
        assert!(config.homes.is_empty());
        assert_eq!(config.prompts, Prompts::Show);
    }

    #[test]
    fn homes_may_begin_with_a_tilde() {
        let config = read("[homes]\nclaude-code = [\"~/work/.claude\", \"/srv/claude/\"]\n");
        let homes: Vec<(String, PathBuf)> = config
            .homes
            .into_iter()
            .map(|(agent, root)| (agent.to_string(), root))
            .collect();
        assert_eq!(
            homes,
            [
                (
                    "claude-code".to_owned(),
                    PathBuf::from("/home/dev/work/.claude")
                ),
                ("claude-code".to_owned(), PathBuf::from("/srv/claude")),
            ]
        );
    }

    #[test]
    fn a_home_that_hangs_from_no_place_is_refused() {
        check_wrong("[homes]\ncodex = [\"x\"]", 2, &["absolute", "`x`"]);
    }

    #[test]
    fn what_becomes_of_records_can_be_set() {
        let tracking = |text| read(text).tracking;
        assert_eq!(tracking(""), Tracking::default());
        let day = Duration::from_secs(86_400);
        assert_eq!(Tracking::default().keep_ended, day * 30);
        assert_eq!(tracking("keep_ended = \"2w\"").keep_ended, day * 14);
        let after = |text| tracking(text).end_unknown_after;
        assert_eq!(after("end_unknown_after = \"never\""), None);
        assert_eq!(after("end_unknown_after = \"1d\""), Some(day));
        let on_end = "on_end = [[\"~/bin/keep\", \"~/x\"], [\"logger\"]]";
        let commands = [vec!["/home/dev/bin/keep", "~/x"], vec!["logger"]];
        assert_eq!(tracking(on_end).on_end, commands);
        check_wrong("keep_ended = \"soon\"", 1, &["`soon`", "30d"]);
        check_wrong("\nend_unknown_after = \"-1d\"", 2, &["`-1d`"]);
        check_wrong("on_end = [[]]", 1, &["program"]);
        check_wrong("on_end = [[\"\", \"x\"]]", 1, &["program"]);
        check_wrong(
            "on_end = [\n[\"x\"],\n[\"./x\"]]",
            3,
            &["`./x`", "absolute"],
        );
        let nine = format!("on_end = [{}]", "[\"x\"],".repeat(9));
        check_wrong(&nine, 1, &["more than 8"]);
    }

    #[test]
    fn unknown_keys_are_named_with_the_valid_ones() {
        check_wrong(
            "prompt = \"hide\"",
            1,
            &["`prompt`", "`homes`", "`colour`", "`prompts`"],
        );
        check_wrong(
            "\n[homes]\nclaude = []",
            3,
            &["`claude`", "`claude-code`", "`codex`"],
        );
        check_wrong(
            "[colour]\nbusy = \"red\"",
            2,
            &["`busy`", "`working`", "`no-session`"],
        );
        check_wrong("[colour]\nidle = \"purple\"", 2, &["`purple`", "magenta"]);
        check_wrong("prompts = \"no\"", 1, &["`no`", "`show`", "`hide`"]);
    }

    #[test]
    fn broken_toml_is_named_with_its_line() {
        check_wrong("prompts = \"hide\"\n[homes\n", 2, &[]);
        check_wrong("prompts = 1", 1, &[]);
    }
}
