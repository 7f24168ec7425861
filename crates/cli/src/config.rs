//! The configuration file. `docs/config.md` describes it; every key is optional.

mod list;
mod notify;
mod tracking;

use std::collections::BTreeMap;
use std::path::Path;

use anstyle::Style;
use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::Spanned;
use whosup_core::machine::Environment;
use whosup_core::machine::problem::Problem;
use whosup_core::sources::config::{ConfigFile, Wrong, parse_toml, unknown_key};

use crate::colour::parse_style;
use crate::condition::{Condition, default_style};

pub(crate) use self::list::ListDefaults;
pub(crate) use self::notify::NotifyDefaults;
pub(crate) use self::tracking::Tracking;
pub(crate) use whosup_core::sources::config::{ConfigError, Prompts};

/// What a user has set.
#[derive(Debug, Clone, Default)]
pub(crate) struct Config {
    /// The part that sessions are read with.
    pub(crate) reading: whosup_core::sources::config::Config,
    /// Styles by the name of a condition.
    styles: BTreeMap<String, Style>,
    /// How session records are kept.
    pub(crate) tracking: Tracking,
    /// Defaults of `list` for people.
    pub(crate) list: ListDefaults,
    /// Defaults of `notify`.
    pub(crate) notify: NotifyDefaults,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    #[serde(default, rename = "homes")]
    _homes: IgnoredAny,
    #[serde(default)]
    colour: BTreeMap<Spanned<String>, Spanned<String>>,
    #[serde(default, rename = "prompts")]
    _prompts: IgnoredAny,
    keep_ended: Option<Spanned<String>>,
    end_unknown_after: Option<Spanned<String>>,
    #[serde(default)]
    list: BTreeMap<Spanned<String>, Spanned<toml::Value>>,
    #[serde(default)]
    notify: notify::NotifyKeys,
    #[serde(default)]
    on_end: Vec<Spanned<Vec<String>>>,
}

impl Config {
    /// Reads `whosup/config.toml` in the user's configuration directory; the
    /// defaults if there is none.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if it is there and can't be read or understood.
    pub(crate) fn read_default(environment: &Environment) -> Result<Self, ConfigError> {
        ConfigFile::read_default(environment)?.understood(parse, environment)
    }

    /// Reads a configuration file.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if it can't be read or understood.
    pub(crate) fn read(path: &Path, environment: &Environment) -> Result<Self, ConfigError> {
        ConfigFile::read(path)?.understood(parse, environment)
    }

    /// How a condition is shown.
    pub(crate) fn style(&self, condition: Condition) -> Style {
        self.styles
            .get(condition.name())
            .copied()
            .unwrap_or_else(|| default_style(condition))
    }
}

impl From<Problem> for Config {
    fn from(problem: Problem) -> Self {
        Self {
            reading: problem.into(),
            ..Self::default()
        }
    }
}

/// Parses the whole file, for a program that uses only the part that sessions are read with:
/// what is misspelled may be of that part.
pub(crate) fn parse_reading(
    bytes: &[u8],
    environment: &Environment,
) -> Result<whosup_core::sources::config::Config, Wrong> {
    Ok(parse(bytes, environment)?.reading)
}

fn parse(bytes: &[u8], environment: &Environment) -> Result<Config, Wrong> {
    // Knows every key, and says which ones there are.
    let file: Keys = parse_toml(bytes)?;
    Ok(Config {
        reading: whosup_core::sources::config::Config::parse(bytes, environment)?,
        styles: styles(file.colour)?,
        list: ListDefaults::of(file.list)?,
        notify: NotifyDefaults::of(file.notify, environment)?,
        tracking: Tracking::of(
            file.keep_ended.as_ref(),
            file.end_unknown_after.as_ref(),
            file.on_end,
            environment,
        )?,
    })
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

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::Duration;

    use whosup_core::adapter::phase::Phase;
    use whosup_core::judging::verdict::Liveness;
    use whosup_core::machine::Environment;

    use whosup_core::sources::config::line_of;

    use crate::column::Column;

    use super::{Config, Prompts, Tracking, parse};

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
        assert!(config.reading.homes.is_empty());
        assert_eq!(config.reading.prompts, Prompts::Show);
    }

    #[test]
    fn homes_may_begin_with_a_tilde() {
        let config = read("[homes]\nclaude-code = [\"~/work/.claude\", \"/srv/claude/\"]\n");
        let homes: Vec<(String, PathBuf)> = config
            .reading
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
    fn what_a_list_shows_can_be_set() {
        let list = read(
            "[list]\ncolumns = [\"id\", \"age\"]\nsort = \"age\"\nreverse = true\n\
             agent = \"codex\"\nliveness = [\"live\"]\nphase = [\"idle\"]\nsince = \"2 days\"\n\
             sub_agents = true",
        )
        .list;
        assert_eq!(list.columns, [Column::Id, Column::Age]);
        assert_eq!((list.sort, list.reverse), (Some(Column::Age), true));
        assert_eq!(list.agent[0].as_str(), "codex");
        assert_eq!(list.liveness, [Liveness::Live]);
        assert_eq!(list.phase, [Phase::Idle]);
        assert!(list.since.is_some() && list.sub_agents);
        for (wrong, said) in [
            (
                "columns = [\"id\", \"size\"]",
                ["`list.columns`", "`size`", "`tty`"],
            ),
            ("columns = 3", ["`list.columns`", "a string", "integer"]),
            ("sort = \"size\"", ["`list.sort`", "`size`", "`age`"]),
            ("reverse = \"yes\"", ["`list.reverse`", "`true`", "string"]),
            ("agent = \"Codex\"", ["`list.agent`", "Codex", "lower-case"]),
            (
                "liveness = \"dead\"",
                ["`list.liveness`", "`dead`", "`exited`"],
            ),
            (
                "phase = [\"busy\"]",
                ["`list.phase`", "`busy`", "`working`"],
            ),
            ("since = \"soon\"", ["`list.since`", "soon", "`90m`"]),
            ("all = true", ["`all`", "`[list]`", "`columns`"]),
        ] {
            check_wrong(&format!("[list]\n{wrong}"), 2, &said);
        }
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
