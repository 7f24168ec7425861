//! The view of a process for adapters that have to recognize it.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use whosup_process::{Details, Process};

use super::options;
use super::runtime::{Run, Runtime};
use crate::sources::recognize::is_name_of_layer;

/// The longest process name of the kernel, in bytes (`TASK_COMM_LEN` without the NUL).
const COMM_BYTES_MAX: usize = 15;

/// A name as the kernel cuts it.
pub(super) fn cut(name: &str) -> &[u8] {
    let bytes = name.as_bytes();
    bytes.get(..COMM_BYTES_MAX).unwrap_or(bytes)
}

/// Whether the kernel may have cut this name.
pub(crate) const fn is_cut(name: &str) -> bool {
    name.len() == COMM_BYTES_MAX
}

/// A process for recognition: what it runs, as
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

    /// Whether it was started from a file of this name: the kernel names a process after the
    /// file, cut after 15 bytes. A process that a loader runs has the loader's name, which does
    /// not contradict.
    #[must_use]
    pub fn was_executed_as(&self, name: &str) -> bool {
        let cut = cut(name);
        !cut.is_empty() && (self.process.comm == cut || self.comm().is_some_and(is_name_of_layer))
    }

    /// The executable is a language runtime that runs scripts.
    #[must_use]
    pub fn is_runtime(&self) -> bool {
        self.exe_name().is_some_and(crate::adapter::is_runtime_name)
    }

    /// The executable, or argument 0 if it can't be read: a process of another user shows only
    /// its arguments.
    pub(super) fn exe_or_argument_0(&self) -> Option<&'a Path> {
        self.exe()
            .or_else(|| Some(Path::new(self.argv().first()?.as_os_str())))
    }

    /// The language runtime that the process is, and what it runs; `None` for other
    /// programs, and where a title covers the arguments.
    fn run(&self) -> Option<(Runtime, Run)> {
        let name = self.exe_or_argument_0()?.file_name()?.to_str()?;
        let runtime = Runtime::named(name).filter(|_| self.title().is_none())?;
        Some((runtime, runtime.run_by(self.argv())?))
    }

    /// What the process runs, if it is this runtime.
    pub(super) fn run_of(&self, wanted: Runtime) -> Option<Run> {
        let (runtime, run) = self.run()?;
        (runtime == wanted).then_some(run)
    }

    /// The place of a runtime's script among the arguments.
    #[must_use]
    pub fn script_at(&self) -> Option<usize> {
        match self.run()?.1 {
            Run::Script(at) => Some(at),
            Run::Module(_) => None,
        }
    }

    /// The value of the last option of this name in the arguments: `--name value` or
    /// `--name=value`.
    #[must_use]
    pub fn option(&self, name: &str) -> Option<&'a str> {
        let arguments = self.argv().get(1..).unwrap_or_default();
        let given = options::read(arguments, |option| option.is(name));
        Some(options::value_of(&given, &[name])?.1)
    }

    /// The absolute path that a relative one in the arguments means, without `.` and `..`;
    /// `None` where the process's directory can't be read.
    #[must_use]
    pub fn resolve(&self, path: &str) -> Option<PathBuf> {
        let path = match self.details.cwd.as_deref() {
            Ok(cwd) => cwd.join(path),
            Err(_) => PathBuf::from(path),
        };
        let mut plain = PathBuf::new();
        for component in path.is_absolute().then(|| path.components())? {
            match component {
                Component::ParentDir => {
                    plain.pop();
                }
                other => plain.push(other),
            }
        }
        Some(plain)
    }

    /// Returns whether an argument is exactly `word`.
    #[must_use]
    pub fn has_argument(&self, word: &str) -> bool {
        self.argv().iter().skip(1).any(|arg| arg == word)
    }
}
