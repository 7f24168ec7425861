//! How Gemini CLI's processes look.
//!
//! ```text
//! node …/bin/gemini [args]                                   launcher
//!   └ node --max-old-space-size=N …/bin/gemini [args]        session
//! ```
//!
//! The script always starts itself again, and gives Node more memory and itself
//! a variable that keeps it from doing so once more. Both processes are
//! recognized alike; which is the launcher shows in that variable, also once the
//! launcher has outlived what it started. (Inside of a sandbox, which has a
//! variable of its own, there is no launcher.) They never change their
//! arguments or titles. Seen in Gemini CLI 0.61.0, 2026-11.

use crate::adapter::{CommandLine, Form, Is, Named, Role};

/// Gemini CLI's programs: the link that npm makes, its target in the published package, and
/// a checkout of the sources.
pub(super) static PROGRAMS: CommandLine = CommandLine {
    programs: &[(
        Is::ByArguments,
        &[
            Form::Script("bin/gemini"),
            Form::Script("gemini-cli/bundle/gemini.js"),
            Form::Script("gemini-cli/dist/index.js"),
            Form::Script("gemini-cli/packages/cli/dist/index.js"),
        ],
    )],
    commands: &[(
        Role::Auxiliary,
        &[
            "extension",
            "extensions",
            "gemma",
            "hook",
            "hooks",
            "mcp",
            "skill",
            "skills",
        ],
    )],
    options: &[
        (
            Role::Auxiliary,
            &[
                "--delete-session",
                "--help",
                "--list-extensions",
                "--list-sessions",
                "--version",
                "-h",
                "-l",
                "-v",
            ],
        ),
        // An editor has as many sessions as it asks for.
        (Role::Host, &["--acp", "--experimental-acp"]),
    ],
    // `--resume` takes numbers and `latest` too, which are no ids.
    session: &[
        Named::Option(&["--session-id"]),
        Named::Option(&["--resume", "-r"]),
    ],
    id_in: |by, word| {
        let is_of_id = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let is_number = word.chars().all(|c| c.is_ascii_digit());
        let is_id = by == "--session-id" || !(word == "latest" || is_number);
        (is_id && word.chars().all(is_of_id)).then_some(word)
    },
    headless: &["--prompt", "-p"],
    variables_of_launched: &["GEMINI_CLI_NO_RELAUNCH", "SANDBOX"],
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
            node /x/node_modules/.bin/gemini --model gemini-2.5-pro        => session
            /usr/bin/node --max-old-space-size=12052 /usr/local/bin/gemini => session
            node /n/@google/gemini-cli/bundle/gemini.js                    => session
            node /n/@google/gemini-cli/dist/index.js -p mcp                => session headless
            node -r /x/hook.js /src/gemini-cli/bundle/gemini.js            => session
            node /usr/bin/gemini --prompt=fix_it                           => session headless
            node /usr/bin/gemini -i fix_it                                 => session
            node /usr/bin/gemini --session-id {id}                         => session names {id}
            node /usr/bin/gemini --session-id 2026                         => session names 2026
            node /usr/bin/gemini -r {id}                                   => session names {id}
            node /usr/bin/gemini --resume={id}                             => session names {id}
            node /usr/bin/gemini -yr {id}                                  => session names {id}
            node /usr/bin/gemini --resume latest                           => session
            node /usr/bin/gemini --resume 3                                => session
            node /usr/bin/gemini --resume --yolo                           => session
            node /usr/bin/gemini --resume ../../x                          => session
            node /usr/bin/gemini mcp list                                  => auxiliary
            node /usr/bin/gemini --list-sessions                           => auxiliary
            node /usr/bin/gemini --acp                                     => host
            node /usr/bin/gemini --model x --experimental-acp              => host
            node /home/dev/gemini.js                                       => none
            node /home/dev/gemini                                          => none
            node /home/dev/gemini-cli/server.js                            => none
            node /src/gemini-cli/node_modules/tsx/dist/index.js            => none
            node --test /home/dev/gemini-agent/bundle/gemini.js            => none
            /usr/local/bin/gemini                                          => none
            ",
        );
    }
}
