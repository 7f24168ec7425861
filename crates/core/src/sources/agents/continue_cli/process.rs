//! How the processes of Continue look.
//!
//! One Node process, which keeps its arguments and sets no title. Seen in Continue CLI
//! 1.5.47, 2026-11. The subcommands were read in its bundle.

use crate::adapter::{CommandLine, Form, Is, Named, Role};

/// Continue's programs.
pub(super) static PROGRAMS: CommandLine = CommandLine {
    programs: &[(
        Is::ByArguments,
        &[Form::Script("bin/cn"), Form::Script("@continuedev/cli/**")],
    )],
    commands: &[(Role::Auxiliary, &["checks", "help", "review"])],
    options: &[(
        Role::Auxiliary,
        &["--help", "--internal-review-worker", "--version"],
    )],
    session: &[
        Named::OptionOf("serve", &["--id"]),
        Named::Option(&["--fork"]),
    ],
    forks: &["--fork"],
    // `ls` lets a person choose one, and resumes that.
    continues: &["--resume", "ls"],
    headless: &["--print", "-p", "serve"],
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
            node /usr/local/bin/cn                            => session
            node /w/node_modules/.bin/cn fix_it               => session
            node /n/@continuedev/cli/dist/cn.js --resume      => session continues
            node /usr/bin/cn ls                               => session continues
            node /usr/bin/cn --fork {id}                      => session forks {id}
            node /usr/bin/cn -p fix_it                        => session headless
            node /usr/bin/cn serve --port 1 --id {id}         => session headless names {id}
            node /usr/bin/cn review                           => auxiliary
            node /usr/bin/cn --internal-review-worker         => auxiliary
            node /home/dev/cn                                 => none
            node /home/dev/bin/cn.js                          => none
            /usr/bin/cn                                       => none
            ",
        );
    }
}
