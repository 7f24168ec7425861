//! The words behind `--` and `help`: a program for `run`, a command of whosup for the others.

use std::collections::BTreeSet;
use std::env;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter as _, complete};
use whosup_core::sidecar::file::mode_of;

use super::offered;

/// How many programs are offered.
const PROGRAMS_MAX: usize = 10_000;
/// Anyone may execute it (`S_IXUSR`, `S_IXGRP`, `S_IXOTH`, inode(7)).
const EXECUTABLE: u32 = 0o111;
/// The variable with the index of the completed word.
const INDEX: &str = "_CLAP_COMPLETE_INDEX";

/// The words of the command line up to the completed word.
fn words() -> Vec<OsString> {
    let words = env::args_os().skip_while(|word| word != "--").skip(1);
    let index = env::var(INDEX).ok().and_then(|index| index.parse().ok());
    words
        .take(index.map_or(usize::MAX, |index: usize| index + 1))
        .collect()
}

/// The words behind `mark`, ending with the completed word.
fn words_behind(mark: &str) -> Vec<OsString> {
    let words = words().into_iter().skip_while(|word| word != mark);
    words.skip(1).collect()
}

/// Whether a command of `demo` is completed.
pub(super) fn is_of_demo() -> bool {
    words().get(1).is_some_and(|word| word == "demo")
}

/// Completion for `run`: programs of the search path, then executable files; for their
/// arguments, paths.
pub(crate) fn program(current: &OsStr) -> Vec<CompletionCandidate> {
    if words_behind("--").len() > 1 {
        return PathCompleter::any().complete(current);
    }
    let is_path = current.as_encoded_bytes().contains(&b'/');
    let mut found = if is_path {
        Vec::new()
    } else {
        programs(current)
    };
    let paths = PathCompleter::any().filter(is_executable);
    found.extend(paths.complete(current));
    found
}

/// The programs of the search path whose names start with `prefix`.
fn programs(prefix: &OsStr) -> Vec<CompletionCandidate> {
    let search = env::var_os("PATH").unwrap_or_default();
    let directories = env::split_paths(&search).filter(|directory| directory.is_absolute());
    let entries = directories.filter_map(|directory| directory.read_dir().ok());
    let entries = entries.flatten().filter_map(Result::ok);
    let prefix = prefix.as_encoded_bytes();
    let fitting = entries.filter(|entry| {
        let name = entry.file_name();
        name.as_encoded_bytes().starts_with(prefix) && is_executable(&entry.path())
    });
    let names: BTreeSet<OsString> = fitting
        .take(PROGRAMS_MAX)
        .map(|entry| entry.file_name())
        .collect();
    names.into_iter().map(CompletionCandidate::new).collect()
}

fn is_executable(path: &Path) -> bool {
    // Without modes, each file may be a program.
    path.is_file() && mode_of(path).is_none_or(|mode| mode & EXECUTABLE != 0)
}

/// Completion for `demo`: a command line of whosup.
pub(crate) fn command_of_demo(_: &OsStr) -> Vec<CompletionCandidate> {
    let mut line = words_behind("--");
    line.insert(0, OsString::from("whosup"));
    let last = line.len() - 1;
    let directory = env::current_dir().ok();
    complete(&mut offered(), line, last, directory.as_deref()).unwrap_or_default()
}

/// Completion for `help`: the commands of whosup, or those of the command before.
pub(crate) fn command_of_help(typed: &OsStr) -> Vec<CompletionCandidate> {
    let mut words = words_behind("help");
    words.pop();
    let mut whosup = offered();
    whosup.build();
    let mut commands = words.iter();
    let found = commands.try_fold(&whosup, |command, word| command.find_subcommand(word));
    let visible = found.into_iter().flat_map(clap::Command::get_subcommands);
    let visible = visible.filter(|one| !one.is_hide_set());
    let typed = typed.as_encoded_bytes();
    let fitting = visible.filter(|one| one.get_name().as_bytes().starts_with(typed));
    let candidate = |command: &clap::Command| {
        CompletionCandidate::new(command.get_name()).help(command.get_about().cloned())
    };
    fitting.map(candidate).collect()
}
