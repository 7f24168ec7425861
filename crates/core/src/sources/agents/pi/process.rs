//! How pi's processes look.
//!
//! A Node process that puts `pi` over its arguments as soon as its modules are loaded; its
//! environment stays. Seen in pi 0.73.1, 2026-11. The build as a single executable is not
//! recognized, because another program has the name `pi` too.

use crate::adapter::{CommandLine, Form, Is, Named, Role};

/// pi's programs.
pub(super) static PROGRAMS: CommandLine = CommandLine {
    programs: &[(
        Is::ByArguments,
        &[
            Form::CommonTitle("pi"),
            Form::Script("bin/pi"),
            Form::Script("pi-coding-agent/**/cli.js"),
        ],
    )],
    commands: &[(
        Role::Auxiliary,
        &["config", "install", "list", "remove", "uninstall", "update"],
    )],
    session: &[Named::Option(&["--session"])],
    // A path of a transcript is left alone.
    id_in: |_, word| {
        let is_path = word.contains(['/', '\\']) || word.ends_with(".jsonl");
        (!is_path).then_some(word)
    },
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
            node [pi]                                         => session
            python3.13 [pi]                                   => none
            node [pip]                                        => none
            node /usr/local/bin/pi                            => session
            node /w/node_modules/.bin/pi --print x            => session
            node /n/@mariozechner/pi-coding-agent/dist/cli.js => session
            node /usr/bin/pi --session 01a2                   => session names 01a2
            node /usr/bin/pi --session /w/x.jsonl             => session
            node /usr/bin/pi -c                               => session
            node /usr/local/bin/pi list                       => auxiliary
            node /home/dev/pi                                 => none
            node /home/dev/dist/cli.js                        => none
            node /usr/local/bin/pip                           => none
            pi 1000                                           => none
            ",
        );
    }

    #[test]
    fn titles() {}
}
