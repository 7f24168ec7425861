//! Programs that tests run under an agent's name, and recorded processes.

use std::path::Path;
use std::process::Command;

use whosup_process::RecordedProcess;

use crate::adapter::{CommandLine, Program};

/// A recorded process as adapters are shown it.
pub(crate) const fn program_of(process: &RecordedProcess) -> Program<'_> {
    Program {
        process: &process.process,
        details: &process.details,
    }
}

/// The id that `{id}` stands for in what is checked.
pub(crate) const ID: &str = "01a21ec8-c5bb-78f0-959a-e72776985ddc";

/// A process in `/w/app` that was started by a command, with blanks between the words.
/// A first word without a folder is a program in `/usr/bin`; `node [pi]` has put `pi` over
/// the arguments.
pub(crate) fn started_by(command: &str) -> RecordedProcess {
    let command = command.replace("{id}", ID);
    let titled = command.strip_suffix(']').and_then(|it| it.split_once(" ["));
    let (command, title) = titled.map_or((&*command, None), |(exe, title)| (exe, Some(title)));
    let argv: Vec<&str> = command.split(' ').collect();
    let exe = Path::new("/usr/bin").join(argv[0]);
    let name = exe.file_name().unwrap().to_str().unwrap().to_owned();
    let process = RecordedProcess::new(7, 1, 0).comm(name).exe(exe);
    let process = process.argv(&argv).cwd("/w/app");
    match title {
        Some(title) => process.title(title),
        None => process,
    }
}

/// How an agent sees a process, and the meaning of its arguments, in words such as `session
/// headless continues names ID in /w/lib`; `none` for other programs.
pub(crate) fn described(programs: &CommandLine, process: &RecordedProcess) -> String {
    let program = program_of(process);
    let Some(role) = programs.recognize(&program) else {
        return "none".to_owned();
    };
    let mut words = format!("{role:?}").to_lowercase();
    for (is_so, word) in [
        (programs.is_headless(&program), " headless"),
        (programs.continues(&program), " continues"),
    ] {
        words += if is_so { word } else { "" };
    }
    let directory = programs.directory(&program);
    for (word, value) in [
        (" names ", programs.session(&program)),
        (" forks ", programs.forked_session(&program)),
        (" in ", directory.as_deref().and_then(Path::to_str)),
    ] {
        words += &value.map_or_else(String::new, |value| format!("{word}{value}"));
    }
    words
}

/// Checks what commands mean to an agent. Each line of a table has a command and what
/// it is by [`described`], with `=>` between; `#` begins a remark.
#[track_caller]
pub(crate) fn check_commands(programs: &CommandLine, table: &str) {
    let lines = table.lines().map(str::trim);
    let rows = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut wrong = Vec::new();
    for row in rows {
        let (command, right) = row.split_once("=>").expect(row);
        let right = right.trim().replace("{id}", ID);
        let found = described(programs, &started_by(command.trim()));
        if found != right {
            wrong.push(format!("{}: {found}, not {right}", command.trim()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Copies a program by a process of its own.
///
/// Where this process writes it, another test's child that is forked meanwhile
/// holds it open for writing, and it can't be executed (`ETXTBSY`).
#[expect(clippy::disallowed_methods, reason = "a test makes its own programs")]
pub(crate) fn copy_program(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    let status = Command::new("cp")
        .arg(from.as_ref())
        .arg(to.as_ref())
        .status();
    assert!(status.unwrap().success());
}
