//! The machine that the engine looks at.

use std::path::PathBuf;

use whosup_core::machine::{Environment, Machine};
use whosup_core::sources::config::{Config, ConfigError, ConfigFile, Wrong};

/// Provides the machine for each look.
pub trait World: Send {
    /// A new look at the machine, and the configuration.
    ///
    /// # Errors
    ///
    /// [`WorldError`] if the configuration can't be used; after the first look, the last
    /// configuration stays in use.
    fn now(&mut self) -> (Machine, Result<Config, WorldError>);
}

/// Why a look can't be taken.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct WorldError(#[from] pub ConfigError);

/// This computer, with the user's configuration or another file.
#[derive(Debug, Clone)]
pub struct ThisMachine {
    /// The file, if not the default.
    pub config_file: Option<PathBuf>,
    /// Parses it, and may refuse more than [`Config::parse`].
    pub parse_config: ParseConfig,
}

/// Parses a configuration file.
pub type ParseConfig = fn(&[u8], &Environment) -> Result<Config, Wrong>;

impl Default for ThisMachine {
    fn default() -> Self {
        Self {
            config_file: None,
            parse_config: Config::parse,
        }
    }
}

impl World for ThisMachine {
    fn now(&mut self) -> (Machine, Result<Config, WorldError>) {
        let machine = Machine::here();
        let environment = machine.environment();
        let file = match &self.config_file {
            None => ConfigFile::read_default(environment),
            Some(path) => ConfigFile::read(path),
        };
        let config = file.and_then(|file| file.understood(self.parse_config, environment));
        (machine, config.map_err(WorldError))
    }
}

impl std::fmt::Debug for dyn World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").finish_non_exhaustive()
    }
}
