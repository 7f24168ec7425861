//! How Droid's processes look.
//!
//! One native executable, which keeps its arguments. Its command line was seen
//! in Droid 0.225.2, 2026-11; the rest is read in that executable.

use crate::adapter::{CommandLine, Form, Is, Named, Role};

/// Droid's programs.
pub(super) static PROGRAMS: CommandLine = CommandLine {
    programs: &[
        // The script of the npm package starts the executable of the platform.
        (
            Is::Launcher,
            &[Form::Script("@factory/cli/**"), Form::Script("bin/droid")],
        ),
        (Is::ByArguments, &[Form::Executable("droid")]),
    ],
    commands_follow_options: true,
    options_with_value: &[
        "--append-system-prompt",
        "--append-system-prompt-file",
        "--auto",
        "--cwd",
        "--fork",
        "--resume",
        "--settings",
        "--worktree",
        "--worktree-dir",
        "-r",
        "-w",
    ],
    commands: &[
        (Role::Host, &["daemon"]),
        (
            Role::Auxiliary,
            &[
                "computer", "doctor", "find", "help", "mcp", "plugin", "search", "update",
            ],
        ),
    ],
    options: &[
        (Role::Auxiliary, &["--help", "--version", "-h", "-v"]),
        // The worker of another session.
        (Role::Auxiliary, &["--calling-session-id"]),
    ],
    // `-r` of `exec` is another option, and `--fork` names the session that it is not.
    session: &[
        Named::OptionOf("exec", &["--session-id", "-s"]),
        Named::WordAfter("resume"),
        Named::Option(&["--resume", "-r"]),
    ],
    headless: &["exec"],
    // Another program talks to the session on behalf of a person: an editor, the
    // desktop application.
    attended: &[
        "--input-format=acp",
        "--input-format=stream-jsonrpc",
        "--output-format=acp",
        "--output-format=stream-jsonrpc",
        "-o=acp",
        "-o=stream-jsonrpc",
    ],
    directory: &["--cwd"],
    may_change_directory: true,
    ..CommandLine::NONE
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::agents::kit::program_tests::check_commands;

    #[test]
    fn commands() {
        check_commands(
            &PROGRAMS,
            "
            droid                                             => session
            droid review_app.tsx                              => session
            droid --cwd daemon --auto low                     => session
            droid --cwd /w/lib/                               => session in /w/lib
            droid -r 0a02                                     => session names 0a02
            droid -r0a02                                      => session names 0a02
            droid --resume=0a02 go_on                         => session names 0a02
            droid --resume --last                             => session
            droid resume                                      => session
            droid resume 0a02                                 => session names 0a02
            droid resume --last                               => session
            droid --fork 0a02                                 => session
            droid exec -m x fix_it                            => session headless
            droid exec -s 0a02 go_on                          => session headless names 0a02
            droid exec -r high go_on                          => session headless
            droid exec -o json fix_it                         => session headless
            droid exec --output-format acp                    => session
            droid exec --input-format=stream-jsonrpc          => session
            droid daemon --port 1                             => host
            droid --settings s.json update                    => auxiliary
            droid --version                                   => auxiliary
            droid exec -o acp --calling-session-id x          => auxiliary
            node /home/dev/.npm-global/bin/droid              => launcher
            node /usr/lib/node_modules/@factory/cli/bin/droid => launcher
            node /home/dev/droid.js                           => none
            /usr/bin/android                                  => none
            ",
        );
    }
}
