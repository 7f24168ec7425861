//! Language runtimes, which run agents as scripts.

use std::ffi::OsString;

/// How many arguments are searched for the program of a runtime.
const ARGUMENTS_MAX: usize = 256;

/// The name that Node gives to its main thread since version 24, also inside of an
/// executable that Node was packed into.
pub(crate) const NODE_MAIN_THREAD: &str = "MainThread";

/// A family of language runtimes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Runtime {
    /// Node and what runs programs for it.
    JavaScript,
    /// Python.
    Python,
}

/// What a runtime was started to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Run {
    /// The script at this place among the arguments.
    Script(usize),
    /// The module whose name is at this place (`python -m NAME`).
    Module(usize),
}

impl Runtime {
    /// The runtime with an executable of this name, version suffixes aside
    /// (`python3.13`, `node24`).
    pub(crate) fn named(name: &str) -> Option<Self> {
        let name = name.strip_suffix(".exe").unwrap_or(name);
        match name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.') {
            "node" | "nodejs" | "bun" | "deno" => Some(Self::JavaScript),
            "python" | "pypy" => Some(Self::Python),
            _ => None,
        }
    }

    /// The options that take the next argument as their value.
    const fn options_with_value(self) -> &'static [&'static str] {
        match self {
            Self::JavaScript => &[
                "-C",
                "--conditions",
                "--env-file",
                "--experimental-loader",
                "--import",
                "--loader",
                "-r",
                "--require",
            ],
            Self::Python => &["-W", "-X"],
        }
    }

    /// The options with which the next argument is code.
    const fn code_options(self) -> &'static [&'static str] {
        match self {
            Self::JavaScript => &["-e", "--eval", "-p", "--print"],
            Self::Python => &["-c"],
        }
    }

    /// Finds the program that a process of this runtime runs, by its arguments.
    pub(crate) fn run_by(self, argv: &[OsString]) -> Option<Run> {
        let mut at = 1;
        while at < ARGUMENTS_MAX {
            let argument = argv.get(at)?;
            let is_one_of = |options: &[&str]| options.iter().any(|option| argument == option);
            if !argument.as_encoded_bytes().starts_with(b"-") {
                return Some(Run::Script(at));
            } else if is_one_of(self.code_options()) {
                return None;
            } else if self == Self::Python && argument == "-m" {
                return Some(Run::Module(at + 1));
            }
            let takes_next = is_one_of(self.options_with_value());
            at += if takes_next { 2 } else { 1 };
        }
        None
    }
}

/// Whether an executable of this name is a language runtime.
#[must_use]
pub fn is_runtime_name(name: &str) -> bool {
    Runtime::named(name).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_is_known_by_its_name_without_a_version() {
        for name in ["node", "node24", "nodejs", "bun", "deno", "node.exe"] {
            assert_eq!(Runtime::named(name), Some(Runtime::JavaScript), "{name}");
        }
        for name in ["python", "python3.13", "pypy3"] {
            assert_eq!(Runtime::named(name), Some(Runtime::Python), "{name}");
        }
        for name in ["nodemon", "bunx", "python-config", "vim", "3.13", ""] {
            assert_eq!(Runtime::named(name), None, "{name}");
        }
    }

    #[test]
    fn what_a_runtime_runs_is_found_behind_its_own_options() {
        let check = |command: &str, right: Option<Run>| {
            let argv: Vec<OsString> = command.split(' ').map(OsString::from).collect();
            let runtime = Runtime::named(command.split(' ').next().unwrap()).unwrap();
            assert_eq!(runtime.run_by(&argv), right, "{command}");
        };
        check("node cli.js", Some(Run::Script(1)));
        check(
            "node --expose-gc -r hook.js cli.js -p x",
            Some(Run::Script(4)),
        );
        check("node --import=hook.js cli.js", Some(Run::Script(2)));
        check("node -e code cli.js", None);
        check("node", None);
        check("node --test", None);
        check("python3 -u -X dev tool.py -m x", Some(Run::Script(4)));
        check("python3.13 -I -m package.cli --print", Some(Run::Module(3)));
        check("python3 -c code tool.py", None);
    }
}
