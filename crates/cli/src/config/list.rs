//! Configured defaults of `list` for people.

use std::collections::BTreeMap;

use toml::{Spanned, Value};
use whosup_core::adapter::phase::Phase;
use whosup_core::judging::verdict::Liveness;
use whosup_core::sidecar::AgentId;
use whosup_core::sources::config::{Wrong, unknown_key};

use crate::column::Column;
use crate::since::Since;

/// Defaults of options of `list`.
#[derive(Debug, Clone, Default)]
pub(crate) struct ListDefaults {
    /// `--columns`
    pub(crate) columns: Vec<Column>,
    /// `--sort`
    pub(crate) sort: Option<Column>,
    /// `--reverse`
    pub(crate) reverse: bool,
    /// `--agent`
    pub(crate) agent: Vec<AgentId>,
    /// `--liveness`
    pub(crate) liveness: Vec<Liveness>,
    /// `--phase`
    pub(crate) phase: Vec<Phase>,
    /// `--since`
    pub(crate) since: Option<Since>,
    /// `--sub-agents`
    pub(crate) sub_agents: bool,
}

const KEYS: [&str; 8] = [
    "columns",
    "sort",
    "reverse",
    "agent",
    "liveness",
    "phase",
    "since",
    "sub_agents",
];

impl ListDefaults {
    /// Parses the table `[list]`.
    pub(super) fn of(table: BTreeMap<Spanned<String>, Spanned<Value>>) -> Result<Self, Wrong> {
        let mut list = Self::default();
        for (key, value) in table {
            let entry = Entry {
                key: key.get_ref(),
                value: &value,
            };
            match entry.key {
                "columns" => {
                    list.columns =
                        entry.names(&Column::ALL.map(Column::name), Column::from_name)?;
                }
                "sort" => {
                    let known = Column::ALL.map(Column::name);
                    list.sort = Some(entry.name(&known, Column::from_sort_name)?);
                }
                "reverse" => list.reverse = entry.flag()?,
                "agent" => list.agent = entry.agents()?,
                "liveness" => {
                    list.liveness =
                        entry.names(&Liveness::ALL.map(Liveness::name), Liveness::from_name)?
                }
                "phase" => {
                    list.phase = entry.names(&Phase::ALL.map(Phase::name), Phase::from_name)?
                }
                "since" => {
                    let text = entry.text(value.get_ref())?;
                    let wrong = |expected| entry.wrong(&format!("found `{text}`, {expected}"));
                    list.since = Some(text.parse().map_err(wrong)?);
                }
                "sub_agents" => list.sub_agents = entry.flag()?,
                _ => return Err(unknown_key(&key, "a key of `[list]`", &KEYS)),
            }
        }
        Ok(list)
    }
}

/// One key of the table.
struct Entry<'a> {
    key: &'a str,
    value: &'a Spanned<Value>,
}

impl<'a> Entry<'a> {
    fn wrong(&self, expected: &str) -> Wrong {
        Wrong {
            at: self.value.span().start,
            reason: format!("`list.{}`: {expected}", self.key),
        }
    }

    fn text(&self, value: &'a Value) -> Result<&'a str, Wrong> {
        let wrong = || self.wrong(&format!("expected a string, found {}", value.type_str()));
        value.as_str().ok_or_else(wrong)
    }

    fn flag(&self) -> Result<bool, Wrong> {
        let flag = self.value.get_ref();
        let found = flag.type_str();
        let wrong = || self.wrong(&format!("expected `true` or `false`, found a {found}"));
        flag.as_bool().ok_or_else(wrong)
    }

    /// A list of texts, or a single text.
    fn texts(&self) -> Result<Vec<&'a str>, Wrong> {
        match self.value.get_ref() {
            Value::Array(values) => values.iter().map(|value| self.text(value)).collect(),
            value => Ok(vec![self.text(value)?]),
        }
    }

    fn find<T>(
        &self,
        name: &str,
        known: &[&str],
        find: impl Fn(&str) -> Option<T>,
    ) -> Result<T, Wrong> {
        let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
        let expected = || format!("`{name}` is none of {}", known.join(", "));
        find(name).ok_or_else(|| self.wrong(&expected()))
    }

    fn name<T>(&self, known: &[&str], find: impl Fn(&str) -> Option<T>) -> Result<T, Wrong> {
        self.find(self.text(self.value.get_ref())?, known, find)
    }

    fn names<T>(&self, known: &[&str], find: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, Wrong> {
        let names = self.texts()?.into_iter();
        names.map(|name| self.find(name, known, &find)).collect()
    }

    fn agents(&self) -> Result<Vec<AgentId>, Wrong> {
        let names = self.texts()?.into_iter();
        let agents = names.map(AgentId::parse).collect::<Result<_, _>>();
        agents.map_err(|error| self.wrong(&error.to_string()))
    }
}
