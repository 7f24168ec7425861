//! The context of a command: the machine and configuration, and the output streams.

use std::cell::OnceCell;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use jiff::tz::TimeZone;
use whosup_core::adapter::{Adapter, AgentProcess, Home};
use whosup_core::machine::{Environment, Machine};
use whosup_core::reader::{Reach, Reader};
use whosup_core::sessions::scan::Scanned;
use whosup_core::sessions::session::Session;
use whosup_core::sources::recognize::homes;

use crate::config::{Config, ConfigError};
use crate::text;
use crate::verbose;

/// The context of a command.
pub(crate) struct App<'io> {
    pub(crate) world: World,
    /// Standard output: data.
    pub(crate) out: &'io mut dyn Write,
    /// Standard error: messages.
    pub(crate) err: &'io mut dyn Write,
    /// How `out` is formatted.
    pub(crate) face: Face,
    /// `--verbose` was given.
    pub(crate) is_verbose: bool,
}

impl App<'_> {
    /// The same streams, with another machine.
    pub(crate) fn on(&mut self, look: impl Fn() -> Machine + 'static) -> App<'_> {
        App {
            world: World::of(look, self.world.zone.clone()),
            out: &mut *self.out,
            err: &mut *self.err,
            face: self.face,
            is_verbose: self.is_verbose,
        }
    }
}

/// Prints a message to standard error for the person at the terminal. A failed write is
/// ignored: there is no other place to report it.
pub(crate) fn say(err: &mut dyn Write, words: &str) {
    // In one piece: standard error is not buffered.
    err.write_all(format!("{words}\n").as_bytes()).ok();
}

/// How output is formatted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Face {
    /// With colours.
    pub(crate) is_coloured: bool,
    /// The width in columns; `None`, and nothing is cut, if it is no terminal.
    pub(crate) width: Option<usize>,
}

/// The machine and the configuration, each read on first use.
pub(crate) struct World {
    look: Rc<dyn Fn() -> Machine>,
    machine: OnceCell<Machine>,
    config: OnceCell<Config>,
    config_file: Option<PathBuf>,
    zone: OnceCell<TimeZone>,
}

impl World {
    /// This computer, with the user's configuration or another file.
    pub(crate) fn here(config_file: Option<PathBuf>) -> Self {
        Self {
            look: Rc::new(Machine::here),
            machine: OnceCell::new(),
            config: OnceCell::new(),
            config_file,
            zone: OnceCell::new(),
        }
    }

    /// Another machine, with the configuration in its home. An empty `zone` means this
    /// computer's time zone.
    pub(crate) fn of(look: impl Fn() -> Machine + 'static, zone: OnceCell<TimeZone>) -> Self {
        Self {
            look: Rc::new(look),
            zone,
            ..Self::here(None)
        }
    }

    /// The same configuration, with a new look at the machine.
    pub(crate) fn again(&self) -> Self {
        Self {
            look: Rc::clone(&self.look),
            zone: self.zone.clone(),
            ..Self::here(self.config_file.clone())
        }
    }

    /// Takes a new look at the machine.
    pub(crate) fn look(&self) -> Machine {
        verbose::look(&*self.look)
    }

    /// The configuration file that the command line names.
    pub(crate) fn config_file(&self) -> Option<&Path> {
        self.config_file.as_deref()
    }

    /// The machine. The first call looks at the process table.
    pub(crate) fn machine(&self) -> &Machine {
        self.machine.get_or_init(|| self.look())
    }

    /// The user's home directory.
    pub(crate) fn home(&self) -> Option<&Path> {
        self.machine().environment().home()
    }

    /// The time zone in which a person reads times.
    pub(crate) fn zone(&self) -> &TimeZone {
        self.zone.get_or_init(TimeZone::system)
    }

    /// An instant as a person reads it.
    pub(crate) fn local_time(&self, at_ms: i64) -> Option<String> {
        text::local_time(at_ms, self.zone())
    }

    /// The configuration. The first call reads it.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if there is one and it can't be understood.
    pub(crate) fn config(&self) -> Result<&Config, ConfigError> {
        if let Some(config) = self.config.get() {
            return Ok(config);
        }
        let config = self.config_in(self.machine().environment())?;
        Ok(self.config.get_or_init(|| config))
    }

    /// The configuration, without reading the machine.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if there is one and it can't be understood.
    pub(crate) fn config_in(&self, environment: &Environment) -> Result<Config, ConfigError> {
        let read = || match &self.config_file {
            Some(path) => Config::read(path, environment),
            None => Config::read_default(environment),
        };
        verbose::timed("configuration", read)
    }

    /// A reader for this machine and configuration.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the configuration can't be understood.
    pub(crate) fn reader(&self) -> Result<Reader<'_>, ConfigError> {
        Ok(Reader::new(self.machine(), &self.config()?.reading))
    }

    /// Scans once.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the configuration can't be understood.
    pub(crate) fn scan(&self, reach: &Reach) -> Result<Scanned<'_>, ConfigError> {
        Ok(self.reader()?.scan(reach))
    }

    /// Describes the sessions that pass `wanted` from their own files, except those that
    /// the configuration excludes.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the configuration can't be understood.
    pub(crate) fn describe(
        &self,
        scanned: &mut Scanned<'_>,
        wanted: impl Fn(&Session) -> bool,
    ) -> Result<(), ConfigError> {
        self.reader()?.describe(scanned, wanted);
        Ok(())
    }

    /// The homes of an agent, from environments and from the configuration.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the configuration can't be understood.
    pub(crate) fn homes_of(
        &self,
        adapter: &dyn Adapter,
        processes: &[AgentProcess],
    ) -> Result<Vec<Home>, ConfigError> {
        let extra = &self.config()?.reading.homes;
        Ok(homes(
            self.machine(),
            adapter,
            extra,
            &mut processes.to_vec(),
            &mut Vec::new(),
        ))
    }
}
