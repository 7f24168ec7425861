//! How qwen-code's processes look.
//!
//! Node runs the script that npm linked as `qwen`, which starts
//! `@qwen-code/qwen-code/cli.js`, which starts itself once more: the last of the
//! three runs the session (with `-p` there are two). All of them are
//! recognized alike; which of them is a launcher shows in who started whom.
//! Seen in qwen-code 0.24.4 on Node 20 and 24, 2026-11.

use crate::adapter::{CommandLine, Form, Is, Named, Program, Role};

/// The options that give a prompt, for one answer without a person at a terminal.
const PROMPT: &[&str] = &["--prompt", "-p"];

/// qwen-code's programs: the script as published, bundled, and in a checkout of its
/// sources.
pub(super) static PROGRAMS: CommandLine = CommandLine {
    programs: &[(
        Is::ByArguments,
        &[
            Form::Script("qwen"),
            Form::Script("qwen-code/bundle/cli.js"),
            Form::Script("qwen-code/cli-entry.js"),
            Form::Script("qwen-code/cli.js"),
            Form::Script("qwen-code/dist/cli-entry.js"),
            Form::Script("qwen-code/dist/cli.js"),
            Form::Script("qwen-code/dist/index.js"),
            Form::Script("qwen-code/lib/cli-entry.js"),
            Form::Script("qwen-code/lib/cli.js"),
            Form::Script("qwen-code/packages/cli/dist/index.js"),
        ],
    )],
    commands: &[
        (Role::Host, &["channel", "serve"]),
        (
            Role::Auxiliary,
            &[
                "auth",
                "board",
                "extensions",
                "hooks",
                "mcp",
                "review",
                "sandbox",
                "sessions",
                "update",
            ],
        ),
    ],
    // An editor has as many sessions as it asks for.
    options: &[(Role::Host, &["--acp", "--experimental-acp"])],
    session: &[
        Named::Option(&["--session-id"]),
        Named::Option(&["--resume", "-r"]),
    ],
    forks: &["--fork-session"],
    continues: &["--continue", "-c"],
    headless: PROMPT,
    ..CommandLine::NONE
};

/// The prompt in the arguments, if it reaches the transcript as it stands: a
/// command (`/…`) or a file (`@…`) does not.
pub(super) fn plain_prompt<'a>(program: &Program<'a>) -> Option<&'a str> {
    let prompt = PROGRAMS.option(program, PROMPT)?;
    let is_plain = !prompt.trim().is_empty() && !prompt.contains(['/', '@', '\\']);
    is_plain.then_some(prompt)
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
            node /home/dev/node_modules/.bin/qwen            => session
            bun /usr/bin/qwen                                => session
            node --expose-gc /n/@qwen-code/qwen-code/cli.js  => session
            node /n/@qwen-code/qwen-code/cli.js -p hello     => session headless
            node -r /x/hook.js /n/qwen-code/dist/cli.js      => session
            node /src/qwen-code/packages/cli/dist/index.js   => session
            node /usr/bin/qwen --resume s-1                  => session names s-1
            node /usr/bin/qwen --resume=s-1                  => session names s-1
            node /usr/bin/qwen -yr s-1                       => session names s-1
            node /usr/bin/qwen -p x --session-id s-2         => session headless names s-2
            node /usr/bin/qwen --resume --yolo               => session
            node /usr/bin/qwen --resume s-1 --fork-session   => session forks s-1
            node /usr/bin/qwen -c                            => session continues
            node /usr/bin/qwen serve                         => host
            node /usr/bin/qwen --acp                         => host
            node /usr/bin/qwen mcp list                      => auxiliary
            node /home/dev/my/qwen.js                        => none
            node /home/dev/qwen-code/server.js               => none
            node /src/qwen-code/node_modules/tsx/dist/cli.js => none
            node /n/@qwen-code/qwen-code/fzfWorker.js        => none
            node --test /home/dev/qwen-agent/cli.js          => none
            node --expose-gc                                 => none
            python3 /usr/bin/qwen                            => none
            qwen                                             => none
            ",
        );
    }

    #[test]
    fn only_a_plain_prompt_is_looked_for_in_transcripts() {
        for (command, right) in [
            ("node /usr/bin/qwen -p count_them", Some("count_them")),
            ("node /usr/bin/qwen --prompt=count_them", Some("count_them")),
            ("node /usr/bin/qwen -p /review", None),
            ("node /usr/bin/qwen -p see_@notes", None),
            ("node /usr/bin/qwen --prompt=", None),
            ("node /usr/bin/qwen", None),
        ] {
            let process = started_by(command);
            assert_eq!(plain_prompt(&program_of(&process)), right, "{command}");
        }
    }
}
