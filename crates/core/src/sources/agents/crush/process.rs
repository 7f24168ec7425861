//! How Crush's processes look.
//!
//! One native executable, which keeps its arguments. The script of the npm package
//! starts the executable that it fetched. Read in the sources of Crush, 2026-08.

use std::path::PathBuf;

use crate::adapter::{CommandLine, Form, Is, Named, Program, Role};

/// Crush's programs.
pub(super) static PROGRAMS: CommandLine = CommandLine {
    programs: &[
        (
            Is::Launcher,
            &[
                Form::Script("@charmland/crush/**"),
                Form::Script("bin/crush"),
            ],
        ),
        (Is::ByArguments, &[Form::Executable("crush")]),
    ],
    commands_follow_options: true,
    options_with_value: &[
        "--channels",
        "--cwd",
        "--data-dir",
        "--host",
        "--model",
        "--session",
        "--small-model",
        "-D",
        "-H",
        "-c",
        "-m",
        "-s",
    ],
    role_of_other_command: Some(Role::Auxiliary),
    commands: &[(Role::Session, &["run", "r"]), (Role::Host, &["server"])],
    options: &[(Role::Auxiliary, &["--help", "--version", "-h", "-v"])],
    session: &[Named::Option(&["--session", "-s"])],
    headless: &["run", "r"],
    ..CommandLine::NONE
};

/// The directory for a project's data that the arguments name.
pub(super) fn named_data_dir(program: &Program<'_>) -> Option<PathBuf> {
    let named = PROGRAMS.option(program, &["--data-dir", "-D"])?;
    program.resolve(named)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::agents::kit::program_tests::{check_commands, program_of, started_by};

    #[test]
    fn commands() {
        check_commands(
            &PROGRAMS,
            "
            crush                                => session
            crush --yolo -D run                  => session
            crush --session=x                    => session names x
            crush -s --yolo                      => session
            crush run --session=x hello          => session headless names x
            crush -ys x                          => session names x
            crush run -qsx hello                 => session headless names x
            crush -dc /w -yD x                   => session
            crush -s x -s y                      => session names y
            crush -c /w -D x r hello             => session headless
            crush --debug server -H unix:///s    => host
            crush logs --follow                  => auxiliary
            crush --version                      => auxiliary
            node /home/dev/.npm-global/bin/crush => launcher
            node /n/@charmland/crush/run.js      => launcher
            node /home/dev/crush.js              => none
            node /home/dev/crush                 => none
            /usr/bin/pngcrush                    => none
            ",
        );
    }

    #[test]
    fn arguments_name_a_directory_for_data() {
        for (command, right) in [
            ("crush -D data/", Some("/w/app/data")),
            ("crush --data-dir=/d/./x", Some("/d/x")),
            ("crush -D ../x/y/..", Some("/w/x")),
            ("crush -yD data", Some("/w/app/data")),
            ("crush --data-dir=", None),
            ("crush", None),
        ] {
            let found = named_data_dir(&program_of(&started_by(command)));
            assert_eq!(found, right.map(PathBuf::from), "{command}");
        }
    }
}
