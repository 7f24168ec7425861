//! Configured defaults of `notify`.

use std::path::PathBuf;

use serde::Deserialize;
use toml::Spanned;
use whosup_core::machine::Environment;
use whosup_core::sidecar::AgentId;
use whosup_core::sources::config::{Wrong, unknown_key};

use super::tracking::command_of;
use crate::commands::notify::{Dollars, On, Quiet};

/// The table `[notify]`.
#[derive(Debug, Clone, Default)]
pub(crate) struct NotifyDefaults {
    /// `--on`
    pub(crate) on: Vec<On>,
    /// `--budget`
    pub(crate) budget: Option<Dollars>,
    /// The command instead of a desktop notification: a program and its arguments.
    pub(crate) exec: Option<Vec<String>>,
    /// When no notifications are sent.
    pub(crate) quiet: Option<Quiet>,
    /// `--agent`
    pub(crate) agent: Vec<AgentId>,
    /// `--cwd`
    pub(crate) cwd: Option<PathBuf>,
}

/// The table as in the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NotifyKeys {
    #[serde(default)]
    on: Vec<Spanned<String>>,
    budget: Option<Spanned<f64>>,
    exec: Option<Spanned<Vec<String>>>,
    quiet: Option<Spanned<String>>,
    #[serde(default)]
    agent: Vec<Spanned<String>>,
    cwd: Option<Spanned<PathBuf>>,
}

impl NotifyDefaults {
    /// Parses the table.
    pub(super) fn of(keys: NotifyKeys, environment: &Environment) -> Result<Self, Wrong> {
        let kind = |name: Spanned<String>| {
            let known = On::ALL.map(On::name);
            let wrong = || unknown_key(&name, "something to notify of", &known);
            On::from_name(name.get_ref()).ok_or_else(wrong)
        };
        let budget = |amount: Spanned<f64>| {
            let checked = Dollars::new(*amount.get_ref());
            checked.map_err(|reason| wrong(&amount, reason))
        };
        let agent = |name: Spanned<String>| {
            AgentId::parse(name.get_ref()).map_err(|error| wrong(&name, &error.to_string()))
        };
        let quiet = |span: Spanned<String>| {
            let parsed = span.get_ref().parse();
            parsed.map_err(|reason: &str| wrong(&span, reason))
        };
        let directory = |path: Spanned<PathBuf>| {
            let resolved = environment.resolve(path.get_ref());
            let is_anchored = path.get_ref().is_absolute() || path.get_ref().starts_with("~");
            let expected = "must be absolute or begin with `~/`";
            let resolved = resolved.filter(|_| is_anchored);
            resolved.ok_or_else(|| wrong(&path, expected))
        };
        let command = |words| command_of("notify.exec", words, environment);
        Ok(Self {
            on: keys.on.into_iter().map(kind).collect::<Result<_, _>>()?,
            budget: keys.budget.map(budget).transpose()?,
            exec: keys.exec.map(command).transpose()?,
            quiet: keys.quiet.map(quiet).transpose()?,
            agent: keys
                .agent
                .into_iter()
                .map(agent)
                .collect::<Result<_, _>>()?,
            cwd: keys.cwd.map(directory).transpose()?,
        })
    }
}

fn wrong<T: std::fmt::Debug>(value: &Spanned<T>, reason: &str) -> Wrong {
    Wrong {
        at: value.span().start,
        reason: format!("{:?}: {reason}", value.get_ref()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::super::parse;
    use super::{Dollars, Environment, NotifyDefaults, On, Wrong};

    fn read(text: &str) -> Result<NotifyDefaults, Wrong> {
        let home = Some(PathBuf::from("/home/dev"));
        let environment = Environment::new(home.clone(), home, []);
        let text = format!("[notify]\n{text}\n");
        parse(text.as_bytes(), &environment).map(|config| config.notify)
    }

    #[test]
    fn what_notify_does_can_be_set() {
        let notify = read(
            "on = [\"budget\"]\nbudget = 7.5\nexec = [\"~/bin/say\", \"x\"]\nquiet = \"22:00-07:00\"\n\
             agent = [\"codex\"]\ncwd = \"~/src\"",
        )
        .unwrap();
        assert_eq!(notify.on, [On::Budget]);
        assert_eq!(notify.budget, Dollars::new(7.5).ok());
        assert_eq!(notify.exec.unwrap(), ["/home/dev/bin/say", "x"]);
        assert_eq!(notify.quiet, "22:00-07:00".parse().ok());
        assert_eq!(notify.agent[0].as_str(), "codex");
        assert_eq!(notify.cwd.as_deref(), Some(Path::new("/home/dev/src")));
    }

    #[test]
    fn what_is_wrong_is_named_with_what_is_expected() {
        for (text, said) in [
            ("on = [\"idle\"]", ["`idle`", "`turn-ended`"]),
            ("budget = -1.0", ["-1.0", "US dollars"]),
            ("exec = []", ["`notify.exec`", "program"]),
            ("quiet = \"at night\"", ["at night", "`22:00-07:00`"]),
            ("agent = [\"Codex\"]", ["Codex", "lower-case"]),
            ("cwd = \"src\"", ["src", "absolute"]),
            ("quite = \"22:00-07:00\"", ["`quite`", "`quiet`"]),
        ] {
            let wrong = read(text).unwrap_err();
            assert!(wrong.at >= "[notify]\n".len(), "{text}: {}", wrong.at);
            for word in said {
                assert!(wrong.reason.contains(word), "{word}: {}", wrong.reason);
            }
        }
    }
}
