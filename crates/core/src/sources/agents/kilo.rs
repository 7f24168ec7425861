//! Kilo CLI (`kilo`, npm `@kilocode/cli`), which was made from opencode.
//!
//! Its files are those of [opencode](super::opencode) in `XDG_DATA_HOME/kilo`: `kilo.db`,
//! and the log still as `log/opencode.log`. Seen in Kilo CLI 7.7.7, 2026-11; what differs:
//!
//! | What | Kilo CLI |
//! |---|---|
//! | processes | a launcher in Node above the native executable |
//! | runs in the log | two for a terminal: one only loads the configuration, the other opens the directory. `kilo run` has one, which does both |
//! | the terminal's title | `Kilo CLI \| TITLE`, once the session has a title; a sign of the phase before it, if the configuration enables it (read, not seen) |
//! | other databases | `kilo-CHANNEL.db`, or `opencode-CHANNEL.db` where there is only that one |
//! | `kilo daemon start` | runs `kilo serve`; terminals that are opened later show sessions of that server, with the same arguments as without it |
//!
//! Plugins run as in opencode, by its documents. They were not seen running, so there are
//! no hooks here.

use std::path::Path;

use super::opencode::{OpenCode, PROFILE, Relative, process};
use crate::adapter::{CommandLine, Form, Is, Profile, Program, Role};

/// Kilo CLI.
pub const KILO: OpenCode = OpenCode(&Relative {
    profile: Profile {
        id: "kilo",
        name: "Kilo CLI",
        default_home: ".local/share/kilo",
        home_variables: &["XDG_DATA_HOME", "KILO_DB"],
        checked_against: "7.7.7, 2026-11",
        programs: &PROGRAMS,
        ..PROFILE
    },
    database_variable: "KILO_DB",
    other_databases: &["kilo-", "opencode-"],
    terminal_title: ("Kilo CLI | ", "..."),
    loads_first: true,
    terminals_join_server: true,
});

static PROGRAMS: CommandLine = CommandLine {
    programs: &[
        (
            Is::Launcher,
            &[Form::Script("bin/kilo"), Form::Script("bin/kilocode")],
        ),
        // The install script links it as `.kilo`.
        (
            Is::ByArguments,
            &[Form::Executable("kilo"), Form::Executable(".kilo")],
        ),
    ],
    is_another,
    commands: &[
        (Role::Host, &["acp", "remote", "serve"]),
        (Role::Client, &["attach"]),
        (Role::Auxiliary, process::AUXILIARY),
        (
            Role::Auxiliary,
            &[
                "cloud",
                "config",
                "console",
                "daemon",
                "help",
                "profile",
                "roll-call",
                "worktree",
            ],
        ),
    ],
    forks: &["--cloud-fork", "--fork"],
    ..process::PROGRAMS
};

/// A script that the executable runs as Bun would; or the text editor `kilo`, which takes
/// one file and nothing else.
fn is_another(program: &Program<'_>) -> bool {
    let [_, file] = program.argv() else {
        return false;
    };
    let is_of_package = program.exe().is_some_and(|exe| {
        let mut folders = exe.components();
        folders.any(|folder| folder.as_os_str() == "@kilocode")
    });
    let end = Path::new(file).extension();
    end.is_some_and(|end| end == "js" || !is_of_package)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::Adapter as _;
    use crate::sources::agents::kit::program_tests::check_commands;

    #[test]
    fn a_sign_before_the_title_of_a_terminal_is_no_part_of_the_name() {
        for title in ["Kilo CLI | Fix it", "\u{25d4} Kilo CLI | Fix it"] {
            assert_eq!(KILO.name_in_title(title), "Kilo CLI | Fix it");
        }
        assert_eq!(KILO.name_in_title("vim Kilo CLI"), "vim Kilo CLI");
    }

    #[test]
    fn commands() {
        check_commands(
            &PROGRAMS,
            "
            /n/@kilocode/cli/bin/.kilo                           => session
            /n/@kilocode/cli-linux-x64/bin/kilo my_app.v1        => session
            kilo -s ses_1                                        => session names ses_1
            kilo -s ses_1 --fork                                 => session forks ses_1
            kilo --cloud-fork --session ses_1                    => session forks ses_1
            kilo --worktree serve                                => session
            kilo -c                                              => session continues
            kilo run hello                                       => session headless
            kilo run --attach http://localhost:4097 hello        => client headless
            kilo attach http://localhost:4097                    => client
            kilo serve --hostname 127.0.0.1 --port 4097          => host
            kilo acp                                             => host
            kilo daemon start                                    => auxiliary
            kilo worktree list                                   => auxiliary
            node /n/.bin/kilo -s ses_1                           => launcher names ses_1
            node /n/@kilocode/cli/bin/kilo                       => launcher
            /usr/bin/kilo notes.txt                              => none
            /n/@kilocode/cli-linux-x64/bin/kilo /n/worker.js     => none
            node /home/dev/kilo.js                               => none
            opencode                                             => none
            ",
        );
    }
}
