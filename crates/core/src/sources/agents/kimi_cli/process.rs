//! How kimi-cli's processes look.
//!
//! A Python process that puts `Kimi Code` over its arguments and blanks its
//! environment within a second of its start; before that its arguments show.
//! Seen in kimi-cli 1.50.0, 2026-11.

use crate::adapter::{CommandLine, Form, Is, Named, Role, Runtime};

/// kimi-cli's programs.
pub(super) static PROGRAMS: CommandLine = CommandLine {
    runtime: Runtime::Python,
    programs: &[
        (
            Is::ByArguments,
            &[
                // A web server or an ACP server has the same title and looks the same.
                Form::Title("Kimi Code"),
                // A process of the web interface that serves one session.
                Form::Title("kimi-code-worker"),
                Form::Script("kimi"),
                Form::Script("kimi-cli"),
                Form::Module("kimi_cli"),
                Form::Module("kimi_cli.cli"),
                Form::Module("kimi_cli.__main__"),
            ],
        ),
        // Runs background commands.
        (Is::Auxiliary, &[Form::Title("kimi-code-bg-worker")]),
    ],
    packed: &["kimi", "kimi-cli", "kimi-exe"],
    commands: &[
        (Role::Host, &["acp", "web"]),
        (
            Role::Auxiliary,
            &[
                "export", "info", "login", "logout", "mcp", "plugin", "term", "vis",
            ],
        ),
    ],
    options: &[(Role::Host, &["--acp"])],
    options_with_value: &["-c", "-m", "-p", "-w"],
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
            python3.13 [Kimi Code]                                         => session
            python3.13 [kimi-code-worker]                                  => session
            python3.13 [kimi-code-bg-worker]                               => auxiliary
            /opt/kimi/kimi-exe [Kimi Code]                                 => session
            node [Kimi Code]                                               => none
            python3.13 [kimi-code]                                         => none
            python3.13 [vibe-app-server]                                   => none
            python3 /home/dev/.local/bin/kimi                              => session
            /uv/tools/kimi-cli/bin/python /home/dev/.local/bin/kimi --yolo => session
            python -u -X dev /venv/bin/kimi-cli                            => session
            python3.13 -m kimi_cli                                         => session
            python3.13 -m kimi_cli.cli --print                             => session
            python3 /venv/bin/kimi --session s-1                           => session names s-1
            python3 /venv/bin/kimi --resume=s-1                            => session names s-1
            python3 /venv/bin/kimi -r --yolo                               => session
            python3 /venv/bin/kimi -yrs-1 -mr1                             => session names s-1
            python3 /venv/bin/kimi web                                     => host
            python3 -m kimi_cli.cli acp                                    => host
            python3 /venv/bin/kimi export                                  => auxiliary
            python3 /home/dev/kimi.py                                      => none
            python3 -c print() /venv/bin/kimi                              => none
            python3 -m http.server kimi                                    => none
            node /usr/bin/kimi                                             => none
            kimi                                                           => none
            ",
        );
    }
}
