//! Language runtimes, which run agents as scripts.

use std::ffi::OsString;

/// How many arguments are searched for the program of a runtime.
const ARGUMENTS_MAX: usize = 256;

/// The name that Node gives to its main thread since version 24, also inside of an
/// executable that Node was packed into.
pub(crate) const NODE_MAIN_THREAD: &str = "MainThread";

/// What the names of runtimes begin with.
const NAMES: &[(&str, Runtime)] = &[
    ("node", Runtime::JavaScript),
    ("nodejs", Runtime::JavaScript),
    ("bun", Runtime::JavaScript),
    ("deno", Runtime::JavaScript),
    ("python", Runtime::Python),
    ("Python", Runtime::Python),
    ("pypy", Runtime::Python),
];

/// Variants of a runtime, which its names have behind `-`.
const VARIANTS: &[&str] = &["arm64", "c", "dbg", "debug", "intel64", "profile", "x86_64"];

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
    /// The runtime with an executable of this name, versions and variants aside (`node-22` in
    /// Fedora, `python3.13t` without a global lock, `Python` in a framework of macOS).
    pub(crate) fn named(name: &str) -> Option<Self> {
        let name = name.strip_suffix(".exe").unwrap_or(name);
        let mut names = NAMES.iter();
        let (_, runtime) = names.find(|(base, _)| {
            let rest = name.strip_prefix(base);
            rest.is_some_and(|rest| {
                let mut parts = rest.split('-');
                let version = parts.next().unwrap_or_default();
                (version.is_empty() || is_version(version))
                    && parts.all(|part| is_version(part) || VARIANTS.contains(&part))
            })
        })?;
        Some(*runtime)
    }

    /// The options that take the next argument as their value (`node --help` of 24.21).
    const fn options_with_value(self) -> &'static [&'static str] {
        match self {
            Self::JavaScript => &[
                "-C",
                "-r",
                "--conditions",
                "--cpu-prof-dir",
                "--cpu-prof-interval",
                "--cpu-prof-name",
                "--diagnostic-dir",
                "--disable-proto",
                "--disable-warning",
                "--dns-result-order",
                "--env-file",
                "--env-file-if-exists",
                "--experimental-loader",
                "--heapsnapshot-signal",
                "--icu-data-dir",
                "--import",
                "--input-type",
                "--inspect-port",
                "--loader",
                "--localstorage-file",
                "--max-http-header-size",
                "--openssl-config",
                "--redirect-warnings",
                "--report-dir",
                "--report-directory",
                "--report-filename",
                "--report-signal",
                "--require",
                "--stack-trace-limit",
                "--title",
                "--tls-cipher-list",
                "--tls-keylog",
                "--unhandled-rejections",
                "--use-largepages",
                "--watch-path",
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
        let mut is_command_left = self == Self::JavaScript;
        while at < ARGUMENTS_MAX {
            let argument = argv.get(at)?;
            let is_one_of = |options: &[&str]| options.iter().any(|option| argument == option);
            if argument == "run" && is_command_left {
                // `bun run SCRIPT`, `deno run -A SCRIPT`
                is_command_left = false;
            } else if !argument.as_encoded_bytes().starts_with(b"-") {
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

/// `22`, `v22.1`, `3.13t` (one letter for a variant)
fn is_version(text: &str) -> bool {
    let text = text.strip_prefix('v').unwrap_or(text);
    let text = text.strip_prefix('.').unwrap_or(text);
    let numbers = text.strip_suffix(|c: char| c.is_ascii_lowercase());
    let mut parts = numbers.unwrap_or(text).split('.');
    parts.all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
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
        for name in [
            "node",
            "node24",
            "node-22",
            "node-v22.1.0",
            "nodejs",
            "nodejs20",
            "bun",
            "bun-profile",
            "deno",
            "node.exe",
        ] {
            assert_eq!(Runtime::named(name), Some(Runtime::JavaScript), "{name}");
        }
        for name in [
            "python",
            "Python",
            "python3.13",
            "python3.13t",
            "python3.13d",
            "python-3.13",
            "python3-intel64",
            "python3-dbg",
            "pypy3",
            "pypy3.10-c",
        ] {
            assert_eq!(Runtime::named(name), Some(Runtime::Python), "{name}");
        }
        for name in [
            "nodemon",
            "node-",
            "node-gyp",
            "nodejs-tool",
            "node22-tool",
            "bunx",
            "denox",
            "python-config",
            "python3-config",
            "python3.13tt",
            "pythonista",
            "vim",
            "3.13",
            "",
        ] {
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
        check(
            "node --env-file-if-exists .env --disable-warning W cli.js",
            Some(Run::Script(5)),
        );
        check("bun run cli.js", Some(Run::Script(2)));
        check("deno run -A cli.js run", Some(Run::Script(3)));
        check("bun run run", Some(Run::Script(2)));
        check("node -e code cli.js", None);
        check("node", None);
        check("node --test", None);
        check("python3 -u -X dev tool.py -m x", Some(Run::Script(4)));
        check("python3.13 -I -m package.cli --print", Some(Run::Module(3)));
        check("python3 -c code tool.py", None);
    }
}
