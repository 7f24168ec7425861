//! How Kimi Code's processes look.
//!
//! A Node process that puts `kimi-code` over its arguments first thing; its
//! environment stays. The native build is one executable. Seen in Kimi Code
//! 2.1.0, 2026-11; the native build was only read of.

use crate::adapter::{CommandLine, Form, Is, Named, Role};

/// Kimi Code's programs.
pub(super) static PROGRAMS: CommandLine = CommandLine {
    programs: &[(
        Is::ByArguments,
        &[
            // A server has the same title and looks the same.
            Form::Title("kimi-code"),
            Form::Script("@moonshot-ai/kimi-code/**"),
            Form::Script("bin/kimi"),
            Form::Script("bin/kimi-code"),
        ],
    )],
    packed: &["kimi", "kimi-code"],
    commands: &[
        (Role::Host, &["acp", "web", "rc", "remote", "server"]),
        (
            Role::Auxiliary,
            &[
                "__plugin_run_node",
                "__update_download",
                "doctor",
                "export",
                "fork",
                "install-app",
                "install-desktop",
                "login",
                "migrate",
                "provider",
                "session",
                "update",
                "upgrade",
                "vis",
            ],
        ),
    ],
    options_with_value: &["-m", "-p"],
    session: &[Named::Option(&["--session", "--resume", "-S", "-r"])],
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
            node [kimi-code]                             => session
            /home/dev/.kimi-code/bin/kimi [kimi-code]    => session
            python3.13 [kimi-code]                       => none
            node [Kimi Code]                             => none
            node /usr/local/bin/kimi                     => session
            node /w/node_modules/.bin/kimi --continue    => session
            node /n/@moonshot-ai/kimi-code/dist/main.mjs => session
            node /usr/bin/kimi -S session_1              => session names session_1
            node /usr/bin/kimi --resume=session_1        => session names session_1
            node /usr/bin/kimi -r --yolo                 => session
            node /usr/local/bin/kimi web                 => host
            node /usr/local/bin/kimi login               => auxiliary
            node /home/dev/kimi                          => none
            node /home/dev/kimi-code/main.js             => none
            python3 /usr/local/bin/kimi                  => none
            ",
        );
    }
}
