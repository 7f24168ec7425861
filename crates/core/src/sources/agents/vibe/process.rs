//! How Vibe's processes look.
//!
//! Seen in mistral-vibe 3.0.2, 2026-11, below a shell in a terminal:
//!
//! ```text
//! …/vibe/_bin/vibe-rs …                 interface: the terminal and the arguments
//! └ python …/bin/vibe-app-server        runs the session, holds its lease
//! ```
//!
//! The `vibe` script only executes `vibe-rs`. The server keeps its arguments
//! while it imports its modules, some seconds, and then puts `vibe-app-server`
//! over them and its environment. Its terminal is that of the interface, which
//! is its parent.

use crate::adapter::{CommandLine, Form, Is, Named, Role, Runtime};

/// The options with which the interface runs one prompt and exits.
const HEADLESS_OPTIONS: &[&str] = &["--prompt", "--prompt-file", "-p"];

/// Vibe's programs. The arguments belong to the interface, which is the client of the server
/// that it starts, or only the launcher of a server that runs a prompt.
pub(super) static PROGRAMS: CommandLine = CommandLine {
    runtime: Runtime::Python,
    programs: &[
        (Is::ByArguments, &[Form::Executable("vibe-rs")]),
        (
            Is::Host,
            &[
                Form::Title("vibe-app-server"),
                Form::Script("vibe-app-server"),
                Form::Script("vibe-acp"),
                // Packed with their Python.
                Form::Executable("vibe-app-server"),
                Form::Executable("vibe-acp"),
            ],
        ),
        (Is::Launcher, &[Form::Script("bin/vibe")]),
    ],
    role: Role::Client,
    commands: &[(Role::Auxiliary, &["help", "mcp", "update"])],
    options: &[
        (
            Role::Auxiliary,
            &[
                "--check-upgrade",
                "--help",
                "--setup",
                "--version",
                "-h",
                "-v",
            ],
        ),
        (Role::Auxiliary, &["--internal-posix-pty-helper"]),
        (Role::Launcher, HEADLESS_OPTIONS),
    ],
    session: &[Named::Option(&["--resume"])],
    // The server begins another session first, and leaves it.
    continues: &["--resume", "--continue", "-c"],
    headless: HEADLESS_OPTIONS,
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
            python3.13 [vibe-app-server]                                  => host
            node [vibe-app-server]                                        => none
            python3.13 [vibe]                                             => none
            /lib/python3.13/site-packages/vibe/_bin/vibe-rs               => client
            vibe-rs --trust fix_it                                        => client
            vibe-rs --resume f49b                                         => client continues names f49b
            vibe-rs --resume=f49b --trust                                 => client continues names f49b
            vibe-rs --resume --trust                                      => client continues
            vibe-rs -c                                                    => client continues
            vibe-rs -p hello                                              => launcher headless
            vibe-rs --prompt-file=p.txt                                   => launcher headless
            vibe-rs mcp list                                              => auxiliary
            vibe-rs --setup                                               => auxiliary
            python3 /venv/bin/vibe-app-server                             => host
            python3 /venv/bin/vibe-app-server --resume x                  => host continues
            python3 /venv/bin/vibe-app-server --internal-posix-pty-helper => auxiliary
            python3 /venv/bin/vibe-acp                                    => host
            /opt/vibe/vibe-app-server                                     => host
            python3 /venv/bin/vibe --trust                                => launcher
            python3 /home/dev/vibe                                        => none
            python3 vibe.py                                               => none
            node /venv/bin/vibe                                           => none
            ",
        );
    }
}
