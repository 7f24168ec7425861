//! Looks through what stands between a process and its program: a loader, an emulator, or the
//! name that a wrapper gave to the executable.
//!
//! Adapters use the executable and the arguments. If the kernel shows a loader
//! (`ld-linux-x86-64.so.2 ./claude`), the program is among the arguments. If Nix has wrapped
//! a program, the executable is called `.claude-wrapped`. Adapters get the executable and
//! the arguments of the program itself.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use whosup_process::Details;

use crate::adapter::{Run, Runtime, is_cut};

/// How many loaders and emulators may stand before one program. An emulator that runs a loader
/// counts as two.
const LAYERS_MAX: usize = 4;
/// How many arguments are looked at.
const ARGUMENTS_MAX: usize = 256;

/// Options of glibc's loader that take the next argument as their value (ld.so(8)).
const LOADER_OPTIONS_WITH_VALUE: &[&str] = &[
    "--argv0",
    "--audit",
    "--glibc-hwcaps-mask",
    "--glibc-hwcaps-prepend",
    "--inhibit-rpath",
    "--library-path",
    "--preload",
];
/// Options with which the loader runs nothing.
const LOADER_OPTIONS_ALONE: &[&str] = &[
    "--help",
    "--list",
    "--list-diagnostics",
    "--list-tunables",
    "--verify",
    "--version",
];
/// Options of QEMU's user mode that take the next argument as their value (`qemu-x86_64 -h`).
const QEMU_OPTIONS_WITH_VALUE: &[&str] = &[
    "-0", "-B", "-D", "-E", "-L", "-R", "-U", "-cpu", "-d", "-dfilter", "-g", "-p", "-plugin",
    "-r", "-s", "-seed",
];
/// What the name of a file begins with that PRoot makes for its loader.
const PROOT_FILE: &str = "prooted-";
/// Emulators that have these names whatever they run.
const EMULATORS: &[&str] = &[
    "FEX",
    "FEXInterpreter",
    "FEXLoader",
    "box32",
    "box64",
    "box86",
    "rosetta",
];

/// What wrappers put before and behind the name of an executable. Nix's `wrapProgram` makes
/// `.NAME-wrapped` (with a `_` for each further wrapping), some packages `NAME-raw` and
/// `.NAME-unwrapped`.
const WRAPPER_NAMES: &[(&str, &str)] = &[
    (".", "-wrapped"),
    (".", "-unwrapped"),
    ("", "-unwrapped"),
    ("", "-raw"),
];

/// What stands between a process and its program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layer {
    Loader,
    Emulator,
}

impl Layer {
    fn of(name: &str) -> Option<Self> {
        if is_loader_name(name) {
            Some(Self::Loader)
        } else if is_emulator_name(name) {
            Some(Self::Emulator)
        } else {
            None
        }
    }
}

/// Returns whether an executable or process of this name is a loader or an emulator.
pub(crate) fn is_name_of_layer(name: &str) -> bool {
    Layer::of(name).is_some() || name.starts_with(PROOT_FILE)
}

/// `ld-linux-x86-64.so.2` (which the kernel shortens in a process's name), `ld64.so.2`,
/// `ld-musl-aarch64.so.1`, `ld-2.31.so`, `ld.so`; `libc.so`, which is musl's loader too
fn is_loader_name(name: &str) -> bool {
    let rest = name.strip_prefix("ld").unwrap_or_default();
    let is_so = rest.ends_with(".so") || rest.contains(".so.");
    let is_so = is_so && rest.starts_with(['-', '.', '6', '3']);
    let is_musl = || name == "libc.so" || name.starts_with("libc.musl-");
    is_so || rest.starts_with("-linux-") || rest.starts_with("-musl-") || is_musl()
}

/// PRoot's loader, in a file of its own (`prooted-PID-XXXXXX`) or below `libexec`. The process
/// has the name and the arguments of its program, and the path of neither.
fn is_proot_loader(exe: &Path) -> bool {
    let name_of = |path: &Path| Some(path.file_name()?.to_str()?.to_owned());
    let is_below_proot = || exe.parent().and_then(name_of).as_deref() == Some("proot");
    name_of(exe).is_some_and(|name| {
        name.starts_with(PROOT_FILE) || (name.starts_with("loader") && is_below_proot())
    })
}

fn is_emulator_name(name: &str) -> bool {
    EMULATORS.contains(&name)
        || name
            .strip_prefix("qemu-")
            .is_some_and(|rest| !rest.starts_with("system-") && !rest.contains("img"))
}

/// The name of a program without the parts of a wrapper; `None` if there are none. The kernel
/// may have cut the name (`.copilot-wrappe`).
pub(crate) fn unwrapped_name(name: &str) -> Option<&str> {
    let whole = name.trim_end_matches('_');
    let mut wrappers = WRAPPER_NAMES.iter();
    let inner = wrappers.find_map(|(before, behind)| {
        let inner = whole.strip_prefix(before)?;
        inner.strip_suffix(behind).or_else(|| {
            let at = inner
                .rfind('-')
                .filter(|_| is_cut(name) && !before.is_empty())?;
            let (inner, rest) = inner.split_at_checked(at)?;
            behind.starts_with(rest).then_some(inner)
        })
    });
    inner.filter(|inner| !inner.is_empty())
}

/// The details of a process with the executable and the arguments of the program that
/// it runs; `None` where they show that already.
#[must_use]
pub fn look_through(details: &Details) -> Option<Details> {
    let mut seen: Option<Details> = None;
    for _ in 0..LAYERS_MAX {
        let current = seen.as_ref().unwrap_or(details);
        match below_layer(current) {
            Some(below) => seen = Some(below),
            None => break,
        }
    }
    let current = seen.as_ref().unwrap_or(details);
    without_wrapper(current).or(seen)
}

/// The program that a loader or an emulator runs; `None` if it is neither, or if the program
/// is unknown.
fn below_layer(details: &Details) -> Option<Details> {
    let exe = details.exe.as_deref().ok()?;
    let argv = details.argv.as_deref().ok()?;
    if is_proot_loader(exe) {
        let mut below = details.clone();
        below.exe = Ok(in_directory_of(details, Path::new(argv.first()?)));
        below.is_exe_deleted = false;
        return Some(below);
    }
    let layer = Layer::of(exe.file_name()?.to_str()?)?;
    let (at, argument_0) = match layer {
        Layer::Loader => program_of_loader(argv)?,
        Layer::Emulator => program_of_emulator(argv)?,
    };
    let program = Path::new(argv.get(at)?);
    let mut argv: Vec<OsString> = argv.get(at..)?.to_vec();
    // With binfmt_misc's flag `P`, the name that the program was started by follows the path.
    let is_named_again = layer == Layer::Emulator
        && argv
            .get(1)
            .is_some_and(|next| Path::new(next).file_name() == program.file_name());
    if is_named_again {
        argv.remove(0);
    }
    if let (Some(name), Some(first)) = (argument_0, argv.first_mut()) {
        *first = name;
    }
    let mut below = details.clone();
    below.exe = Ok(in_directory_of(details, program));
    below.argv = Ok(argv);
    below.is_exe_deleted = false;
    Some(below)
}

/// The index of the program in a loader's arguments, and its name by `--argv0`.
fn program_of_loader(argv: &[OsString]) -> Option<(usize, Option<OsString>)> {
    let mut argument_0 = None;
    let mut at = 1;
    while at < ARGUMENTS_MAX {
        let argument = argv.get(at)?;
        if !argument.as_encoded_bytes().starts_with(b"--") {
            return Some((at, argument_0));
        }
        let is_one_of = |options: &[&str]| options.iter().any(|option| argument == option);
        if is_one_of(LOADER_OPTIONS_ALONE) {
            return None;
        }
        if argument == "--argv0" {
            argument_0 = argv.get(at + 1).cloned();
        }
        let takes_next = is_one_of(LOADER_OPTIONS_WITH_VALUE);
        at += if takes_next { 2 } else { 1 };
    }
    None
}

fn program_of_emulator(argv: &[OsString]) -> Option<(usize, Option<OsString>)> {
    let mut at = 1;
    while at < ARGUMENTS_MAX {
        let argument = argv.get(at)?;
        if !argument.as_encoded_bytes().starts_with(b"-") {
            return Some((at, None));
        }
        let mut options = QEMU_OPTIONS_WITH_VALUE.iter();
        at += if options.any(|option| argument == option) {
            2
        } else {
            1
        };
    }
    None
}

/// A path of the arguments, relative to the process's directory if that is known.
fn in_directory_of(details: &Details, path: &Path) -> PathBuf {
    match &details.cwd {
        Ok(cwd) => cwd.join(path).components().collect(),
        Err(_) => path.to_owned(),
    }
}

/// The same without the name that a wrapper gave to the executable, or to the script
/// that a runtime runs.
fn without_wrapper(details: &Details) -> Option<Details> {
    let exe = details.exe.as_deref().ok()?;
    if let Some(name) = exe.file_name()?.to_str().and_then(unwrapped_name) {
        let mut plain = details.clone();
        plain.exe = Ok(exe.with_file_name(name));
        return Some(plain);
    }
    let at = script_at(details)?;
    let script = Path::new(details.argv.as_deref().ok()?.get(at)?);
    let name = unwrapped_name(script.file_name()?.to_str()?)?;
    with_script(details, at, &script.with_file_name(name))
}

/// Where the script of a runtime stands among its arguments.
pub(super) fn script_at(details: &Details) -> Option<usize> {
    let name = details.exe.as_deref().ok()?.file_name()?.to_str()?;
    let runtime = Runtime::named(name).filter(|_| matches!(details.title, Ok(None)))?;
    match runtime.run_by(details.argv.as_deref().ok()?)? {
        Run::Script(at) => Some(at),
        Run::Module(_) => None,
    }
}

/// The same with another path of the script that a runtime runs.
pub(super) fn with_script(details: &Details, at: usize, script: &Path) -> Option<Details> {
    let mut other = details.clone();
    *other.argv.as_mut().ok()?.get_mut(at)? = script.as_os_str().to_owned();
    Some(other)
}

#[cfg(test)]
mod tests {
    use whosup_process::{Absent, RecordedProcess};

    use super::*;

    fn process(exe: &str, argv: &[&str]) -> RecordedProcess {
        RecordedProcess::new(7, 1, 0)
            .exe(exe)
            .argv(argv)
            .cwd("/home/dev/app")
    }

    #[track_caller]
    fn check(exe: &str, argv: &[&str], right: Option<(&str, &[&str])>) {
        let seen = look_through(&process(exe, argv).details);
        let seen = seen.map(|seen| {
            let argv = seen.argv.unwrap().into_iter();
            let argv: Vec<String> = argv.map(|arg| arg.into_string().unwrap()).collect();
            (seen.exe.unwrap().to_str().unwrap().to_owned(), argv)
        });
        let right = right.map(|(exe, argv)| {
            let argv: Vec<String> = argv.iter().map(|arg| (*arg).to_owned()).collect();
            (exe.to_owned(), argv)
        });
        assert_eq!(seen, right, "{exe} {argv:?}");
    }

    #[test]
    fn a_loader_shows_the_program_that_it_was_given() {
        let loader = "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2";
        check(
            loader,
            &["/lib64/ld-linux-x86-64.so.2", "./claude", "-p", "hello"],
            Some(("/home/dev/app/claude", &["./claude", "-p", "hello"])),
        );
        check(
            loader,
            &[
                "ld.so",
                "--library-path",
                "/opt/lib",
                "--inhibit-cache",
                "/opt/codex",
                "resume",
            ],
            Some(("/opt/codex", &["/opt/codex", "resume"])),
        );
        check(
            loader,
            &["ld.so", "--argv0", "cc", "/opt/claude/claude"],
            Some(("/opt/claude/claude", &["cc"])),
        );
        check(
            "/lib/ld-musl-aarch64.so.1",
            &["ld-musl-aarch64.so.1", "/opt/opencode"],
            Some(("/opt/opencode", &["/opt/opencode"])),
        );
        check(
            "/usr/lib/libc.so",
            &["/lib/ld-musl-x86_64.so.1", "/opt/claude", "-c"],
            Some(("/opt/claude", &["/opt/claude", "-c"])),
        );
        for proot in ["/tmp/prooted-4711-Ab12Cd", "/usr/libexec/proot/loader32"] {
            let argv: &[&str] = &["/usr/bin/claude", "-c"];
            check(proot, argv, Some(("/usr/bin/claude", argv)));
        }
        check("/usr/libexec/loader", &["/usr/bin/claude"], None);
        check(loader, &["ld.so", "--list", "/opt/claude"], None);
        check(loader, &["ld.so", "--library-path", "/opt"], None);
        check(loader, &["ld.so"], None);
    }

    #[test]
    fn an_emulator_shows_the_program_that_it_was_given() {
        check(
            "/usr/bin/qemu-x86_64-static",
            &[
                "/usr/bin/qemu-x86_64-static",
                "-L",
                "/opt/root",
                "/opt/codex",
                "exec",
            ],
            Some(("/opt/codex", &["/opt/codex", "exec"])),
        );
        // As binfmt_misc starts it with the flag `P`.
        check(
            "/usr/bin/qemu-aarch64",
            &[
                "/usr/bin/qemu-aarch64",
                "/opt/claude",
                "claude",
                "--resume",
                "x",
            ],
            Some(("/opt/claude", &["claude", "--resume", "x"])),
        );
        for emulator in [
            "/usr/bin/box64",
            "/run/rosetta/rosetta",
            "/usr/bin/FEXInterpreter",
        ] {
            check(
                emulator,
                &[emulator, "/opt/claude"],
                Some(("/opt/claude", &["/opt/claude"])),
            );
        }
        check(
            "/usr/bin/qemu-system-x86_64",
            &["qemu-system-x86_64", "disk"],
            None,
        );
        check("/usr/bin/qemu-img", &["qemu-img", "info", "disk"], None);
    }

    #[test]
    fn an_emulator_that_runs_a_loader_that_runs_a_wrapped_program_is_looked_through() {
        check(
            "/usr/bin/qemu-x86_64",
            &[
                "qemu-x86_64",
                "/lib64/ld-linux-x86-64.so.2",
                "/nix/store/x/bin/.codex-wrapped",
                "-c",
            ],
            Some((
                "/nix/store/x/bin/codex",
                &["/nix/store/x/bin/.codex-wrapped", "-c"],
            )),
        );
    }

    #[test]
    fn what_a_wrapper_has_put_around_a_name_is_taken_off() {
        for (name, right) in [
            (".codex-wrapped", Some("codex")),
            (".codex-wrapped_", Some("codex")),
            (".claude-unwrapped", Some("claude")),
            ("opencode-unwrapped", Some("opencode")),
            ("codex-raw", Some("codex")),
            (".copilot-wrappe", Some("copilot")),
            (".opencode-unwra", Some("opencode")),
            (".opencode-next-", Some("opencode-next")),
            (".opencode-tools", None),
            ("codex", None),
            (".cline", None),
            (".-wrapped", None),
            ("-raw", None),
        ] {
            assert_eq!(unwrapped_name(name), right, "{name}");
        }
        check(
            "/nix/store/x/bin/.opencode-wrapped",
            &["opencode", "serve"],
            Some(("/nix/store/x/bin/opencode", &["opencode", "serve"])),
        );
        check(
            "/usr/bin/python3.13",
            &["python3", "-I", "/nix/store/x/bin/.kimi-wrapped", "--yolo"],
            Some((
                "/usr/bin/python3.13",
                &["python3", "-I", "/nix/store/x/bin/kimi", "--yolo"],
            )),
        );
        check("/usr/bin/bash", &["bash", "/x/.kimi-wrapped"], None);
        check("/usr/bin/node", &["node", "/usr/bin/qwen"], None);
    }

    #[test]
    fn what_cannot_be_read_is_looked_through_no_further() {
        let mut hidden = process("/lib/ld.so", &["ld.so", "/opt/claude"]);
        hidden.details.argv = Err(Absent::PermissionDenied);
        assert_eq!(look_through(&hidden.details), None);
        hidden.details.exe = Err(Absent::PermissionDenied);
        assert_eq!(look_through(&hidden.details), None);
    }
}
