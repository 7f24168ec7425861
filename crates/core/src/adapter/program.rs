//! How a process looks to an adapter that has to recognize it.

use std::ffi::OsString;
use std::path::Path;

use whosup_process::{Details, Process};

use crate::sources::recognize::is_name_of_layer;

/// How many arguments are looked at for a subcommand.
const ARGUMENTS_MAX: usize = 256;

/// The longest name that the kernel keeps of a process, in bytes
/// (`TASK_COMM_LEN` less its NUL).
const COMM_BYTES_MAX: usize = 15;

/// How a process looks, for recognition: of what it runs, as
/// [`what_it_runs`](crate::sources::recognize::what_it_runs) shows it.
#[derive(Debug, Clone, Copy)]
pub struct Program<'a> {
    /// Its `stat`.
    pub process: &'a Process,
    /// The rest.
    pub details: &'a Details,
}

impl<'a> Program<'a> {
    /// The arguments, empty where they can't be read.
    #[must_use]
    pub fn argv(&self) -> &'a [OsString] {
        self.details.argv.as_deref().unwrap_or_default()
    }

    /// The executable's path, where it can be read.
    #[must_use]
    pub fn exe(&self) -> Option<&'a Path> {
        self.details.exe.as_deref().ok()
    }

    /// The file name of the executable, where it can be read.
    #[must_use]
    pub fn exe_name(&self) -> Option<&'a str> {
        self.exe()?.file_name()?.to_str()
    }

    /// The text that the process put over its arguments, trimmed.
    #[must_use]
    pub fn title(&self) -> Option<&'a str> {
        self.details.title.as_ref().ok()?.as_ref()?.to_str()
    }

    /// `comm`, where it is UTF-8.
    #[must_use]
    pub fn comm(&self) -> Option<&'a str> {
        std::str::from_utf8(&self.process.comm).ok()
    }

    /// Tells whether it was executed by a file of this name: the kernel calls a process
    /// after that, cut after 15 bytes. One that a loader runs has the loader's name, and
    /// nothing contradicts.
    #[must_use]
    pub fn was_executed_as(&self, name: &str) -> bool {
        let bytes = name.as_bytes();
        let cut = bytes.get(..COMM_BYTES_MAX).unwrap_or(bytes);
        !cut.is_empty() && (self.process.comm == cut || self.comm().is_some_and(is_name_of_layer))
    }

    /// The executable is a language runtime that runs scripts.
    #[must_use]
    pub fn is_runtime(&self) -> bool {
        self.exe_name().is_some_and(crate::adapter::is_runtime_name)
    }

    /// The script that a runtime runs: its first argument that is no option.
    #[must_use]
    pub fn script(&self) -> Option<&'a Path> {
        if !self.is_runtime() {
            return None;
        }
        self.argv()
            .iter()
            .skip(1)
            .map(Path::new)
            .find(|arg| !arg.as_os_str().as_encoded_bytes().starts_with(b"-"))
    }

    /// The value of an option in the arguments: `--name value` or `--name=value`.
    #[must_use]
    pub fn option(&self, name: &str) -> Option<&'a str> {
        let mut args = self.argv().iter().skip(1);
        while let Some(arg) = args.next() {
            let Some(arg) = arg.to_str() else { continue };
            if arg == name {
                return args.next().and_then(|value| value.to_str());
            }
            if let Some(value) = arg
                .strip_prefix(name)
                .and_then(|rest| rest.strip_prefix('='))
            {
                return Some(value);
            }
        }
        None
    }

    /// Tells whether it executes a file called `name`. Of a process that is not
    /// ours to look at, what it was started as must say so, and the kernel's name
    /// for it agree.
    #[must_use]
    pub fn executes(&self, name: &str) -> bool {
        let is_called = |found: &str| found.strip_suffix(".exe").unwrap_or(found) == name;
        if self.exe().is_some() {
            return self.exe_name().is_some_and(is_called);
        }
        let started_as = self.argv().first().map(Path::new);
        let started_as = started_as.and_then(|path| path.file_name()?.to_str());
        started_as == Some(name) && self.comm() == Some(name)
    }

    /// Tells whether it runs the script of an npm package: one in `package`, or
    /// the link `command` to it in a directory of commands.
    #[must_use]
    pub fn runs_script_of(&self, package: &str, command: &str) -> bool {
        let Some(script) = self.script() else {
            return false;
        };
        let mut parents = script.ancestors();
        let folder = script.parent().and_then(Path::file_name);
        let is_in_bin = folder.is_some_and(|folder| folder == "bin" || folder == ".bin");
        let is_command = script.file_name().is_some_and(|name| name == command);
        parents.any(|parent| parent.ends_with(package)) || (is_in_bin && is_command)
    }

    /// The first argument that is neither an option nor the value of one, and
    /// its place. `takes_next` says of an option whether the next argument,
    /// which it is given too, is its value.
    #[must_use]
    pub fn subcommand(
        &self,
        takes_next: impl Fn(&str, Option<&str>) -> bool,
    ) -> Option<(usize, &'a str)> {
        let argv = self.argv();
        let mut at = 1;
        while at < ARGUMENTS_MAX {
            let argument = argv.get(at)?.to_str()?;
            if !argument.starts_with('-') {
                return Some((at, argument));
            }
            let next = argv.get(at + 1).and_then(|next| next.to_str());
            at += if takes_next(argument, next) { 2 } else { 1 };
        }
        None
    }

    /// Tells whether an argument is exactly `word`.
    #[must_use]
    pub fn has_argument(&self, word: &str) -> bool {
        self.argv().iter().skip(1).any(|arg| arg == word)
    }
}
