//! The query of a request. Nothing in it is ignored: an unknown parameter may be a filter
//! that the client relies on.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use axum::extract::Query;
use whosup_core::adapter::phase::Phase;
use whosup_core::judging::verdict::Liveness;
use whosup_core::machine::Machine;
use whosup_core::reader::wants_exited;
use whosup_core::sidecar::AgentId;
use whosup_live::Filter;

use crate::answer::Failure;

/// The parameters of a request.
#[derive(Debug)]
pub(crate) struct Parameters(Vec<(String, String)>);

impl Parameters {
    pub(crate) fn new(query: Query<Vec<(String, String)>>) -> Self {
        Self(query.0)
    }

    /// Takes every value of a parameter.
    pub(crate) fn all(&mut self, name: &str) -> Vec<String> {
        let (taken, rest) = std::mem::take(&mut self.0)
            .into_iter()
            .partition(|(key, _)| key == name);
        self.0 = rest;
        taken.into_iter().map(|(_, value)| value).collect()
    }

    /// Takes a parameter that may occur once.
    pub(crate) fn one(&mut self, name: &str) -> Result<Option<String>, Failure> {
        let mut values = self.all(name);
        let value = values.pop();
        if values.is_empty() {
            return Ok(value);
        }
        Err(Failure::bad(format!("`{name}` is given more than once")))
    }

    /// Takes a parameter that is `1` or `0`.
    pub(crate) fn switch(&mut self, name: &str) -> Result<bool, Failure> {
        match self.one(name)?.as_deref() {
            None | Some("0" | "false") => Ok(false),
            Some("1" | "true") => Ok(true),
            Some(_) => Err(Failure::bad(format!("`{name}` is neither 1 nor 0"))),
        }
    }

    /// Takes a number of at least 1.
    pub(crate) fn number(&mut self, name: &str, max: u16) -> Result<Option<u16>, Failure> {
        let Some(text) = self.one(name)? else {
            return Ok(None);
        };
        let number = text
            .parse()
            .ok()
            .filter(|number| (1..=max).contains(number));
        let wrong = || Failure::bad(format!("`{name}` is no number from 1 to {max}"));
        number.map(Some).ok_or_else(wrong)
    }

    /// Takes the filters of `whosup list`.
    pub(crate) fn filter(&mut self) -> Result<WantedSessions, Failure> {
        let mut wanted = WantedSessions {
            agents: self.agents()?,
            ..WantedSessions::default()
        };
        for name in self.all("liveness") {
            let known = Liveness::from_name(&name);
            wanted.liveness.insert(known.ok_or_else(|| {
                Failure::bad(format!(
                    "`liveness` is one of {}",
                    Liveness::NAMES.join(", ")
                ))
            })?);
        }
        for name in self.all("phase") {
            let known = Phase::from_name(&name);
            wanted.phases.insert(known.ok_or_else(|| {
                Failure::bad(format!("`phase` is one of {}", Phase::NAMES.join(", ")))
            })?);
        }
        wanted.work_dir = self.directory()?;
        Ok(wanted)
    }

    /// Takes the agents.
    pub(crate) fn agents(&mut self) -> Result<BTreeSet<AgentId>, Failure> {
        let names = self.all("agent").into_iter();
        let agents = names.map(|name| {
            AgentId::parse(&name).map_err(|error| Failure::bad(format!("`agent`: {error}")))
        });
        agents.collect()
    }

    /// Takes the directory of the sessions.
    pub(crate) fn directory(&mut self) -> Result<Option<PathBuf>, Failure> {
        let directory = self.one("cwd")?.map(PathBuf::from);
        if directory.as_ref().is_some_and(|path| path.is_relative()) {
            return Err(Failure::bad("`cwd` is no absolute path"));
        }
        Ok(directory)
    }

    /// Checks that every parameter was taken.
    pub(crate) fn end(self) -> Result<(), Failure> {
        match self.0.first() {
            None => Ok(()),
            Some((name, _)) => {
                let name = name.escape_debug();
                Err(Failure::bad(format!("`{name}` is no parameter of this")))
            }
        }
    }
}

/// The requested sessions.
#[derive(Debug, Default)]
pub(crate) struct WantedSessions {
    pub(crate) agents: BTreeSet<AgentId>,
    pub(crate) work_dir: Option<PathBuf>,
    pub(crate) liveness: BTreeSet<Liveness>,
    pub(crate) phases: BTreeSet<Phase>,
}

impl WantedSessions {
    /// Whether only a walk over every session on disk finds them.
    pub(crate) fn wants_exited(&self) -> bool {
        wants_exited(&self.liveness, &self.phases)
    }

    /// The same for the engine, which compares directories with links followed.
    pub(crate) fn on(&self, machine: impl FnOnce() -> Machine) -> Filter {
        let real = |path: &Path| machine().mounts().real_path(path);
        Filter {
            agents: self.agents.iter().map(ToString::to_string).collect(),
            directory: self.work_dir.as_deref().map(real),
            liveness: self
                .liveness
                .iter()
                .map(|one| one.name().to_owned())
                .collect(),
            phases: self
                .phases
                .iter()
                .map(|one| one.name().to_owned())
                .collect(),
            ..Filter::default()
        }
    }
}
