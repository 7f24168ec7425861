//! The sessions that a watching command is about: the filters of `list`, within the default
//! view.

use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;
use whosup_core::adapter::phase::Phase;
use whosup_core::judging::verdict::Liveness;
use whosup_core::machine::Environment;
use whosup_core::reader::real_directory;
use whosup_core::sidecar::AgentId;
use whosup_live::{Filter, ThisMachine};

use crate::app::World;
use crate::cli::{agent_parser, name_parser};
use crate::config::{ConfigError, parse_reading};

// The filters.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct WatchedArgs {
    /// Only sessions of these agents
    #[arg(long, value_name = "AGENT", value_delimiter = ',', value_parser = agent_parser())]
    pub(crate) agent: Vec<AgentId>,
    /// Only sessions in this directory or below
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Only sessions with this answer
    #[arg(
        long,
        value_name = "LIVENESS",
        value_delimiter = ',',
        value_parser = name_parser(Liveness::ALL.map(Liveness::name), Liveness::from_name)
    )]
    pub(crate) liveness: Vec<Liveness>,
    /// Only sessions in this phase
    #[arg(
        long,
        value_name = "PHASE",
        value_delimiter = ',',
        value_parser = name_parser(Phase::ALL.map(Phase::name), Phase::from_name)
    )]
    pub(crate) phase: Vec<Phase>,
}

impl WatchedArgs {
    /// Whether there is no filter.
    pub(crate) fn is_empty(&self) -> bool {
        self.agent.is_empty()
            && self.cwd.is_none()
            && self.liveness.is_empty()
            && self.phase.is_empty()
    }

    /// The same as a filter.
    ///
    /// # Errors
    ///
    /// If the directory does not exist, or if the filter needs sessions outside of the default
    /// view.
    pub(crate) fn filter(&self) -> anyhow::Result<Filter> {
        if self.liveness.contains(&Liveness::Exited) || self.phase.contains(&Phase::Ended) {
            bail!(
                "cannot watch sessions that have exited or ended: that would read every session \
                 on disk at each change"
            );
        }
        let directory = self.cwd.as_deref().map(real_directory);
        Ok(Filter {
            agents: self.agent.iter().map(ToString::to_string).collect(),
            directory: directory.transpose()?,
            liveness: names(&self.liveness, Liveness::name),
            phases: names(&self.phase, Phase::name),
            ..Filter::default()
        })
    }
}

fn names<T: Copy, S: FromIterator<String>>(values: &[T], name: fn(T) -> &'static str) -> S {
    let values = values.iter();
    values.map(|value| name(*value).to_owned()).collect()
}

/// What an engine looks at for a command.
///
/// # Errors
///
/// [`ConfigError`] if the configuration can't be understood.
pub(crate) fn machine_of(world: &World) -> Result<ThisMachine, ConfigError> {
    world.config_in(&Environment::here())?;
    Ok(ThisMachine {
        config_file: world.config_file().map(Path::to_owned),
        parse_config: parse_reading,
    })
}
