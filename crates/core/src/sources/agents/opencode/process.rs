//! How opencode's processes look.
//!
//! One native executable (Bun inside), which keeps its arguments; npm links it as
//! `opencode`, so that the kernel calls it that. Older packages had a script for
//! Node above it. Seen in opencode 1.18.33, 2026-11.

use crate::adapter::{CommandLine, Form, Is, Named, Program, Role};

/// Commands that run no session, with which the agents made from it have others too.
pub(in super::super) const AUXILIARY: &[&str] = &[
    "agent",
    "auth",
    "completion",
    "db",
    "debug",
    "export",
    "import",
    "mcp",
    "models",
    "plug",
    "plugin",
    "pr",
    "providers",
    "session",
    "stats",
    "uninstall",
    "upgrade",
];

/// opencode's programs.
pub(in super::super) static PROGRAMS: CommandLine = CommandLine {
    programs: &[
        // Of older packages.
        (Is::Launcher, &[Form::Script("opencode-ai/bin/opencode")]),
        (Is::ByArguments, &[Form::Executable("opencode")]),
    ],
    commands_follow_options: true,
    options_with_value: &[
        "--agent",
        "--attach",
        "--command",
        "--cors",
        "--cwd",
        "--dir",
        "--file",
        "--format",
        "--hostname",
        "--log-level",
        "--mdns-domain",
        "--model",
        "--password",
        "--port",
        "--prompt",
        "--replay-limit",
        "--session",
        "--title",
        "--username",
        "--variant",
        // Of Kilo CLI.
        "--worktree",
        "-f",
        "-m",
        "-p",
        "-s",
        "-u",
    ],
    commands: &[
        (Role::Host, &["acp", "serve", "web"]),
        (Role::Client, &["attach"]),
        (Role::Auxiliary, AUXILIARY),
    ],
    options: &[(Role::Client, &["--attach"])],
    session: &[Named::Option(&["--session", "-s"])],
    forks: &["--fork"],
    continues: &["--continue", "-c"],
    headless: &["github", "run"],
    attended: &["--interactive", "--mini", "-i"],
    ..CommandLine::NONE
};

/// The arguments ask for the session that was used last, whichever that is.
pub(super) fn continues_last(programs: &CommandLine, program: &Program<'_>) -> bool {
    programs.continues(program) && !programs.has(program, programs.forks)
}

/// It shows a session of a server, in the server's own directory.
pub(super) fn is_client_without_directory(programs: &CommandLine, program: &Program<'_>) -> bool {
    programs.recognize(program) == Some(Role::Client) && program.option("--dir").is_none()
}

/// The address in the arguments at which it listens. A port that opencode chooses itself is
/// unknown.
pub(super) fn endpoint(program: &Program<'_>) -> Option<String> {
    let port = port(program)?;
    let host = program.option("--hostname").unwrap_or("127.0.0.1");
    Some(format!("http://{host}:{port}"))
}

/// The server that a client is connected to may be this one.
pub(super) fn may_be_server_of(
    programs: &CommandLine,
    server: &Program<'_>,
    client: &Program<'_>,
) -> bool {
    let url = client
        .option("--attach")
        .or_else(|| programs.word_after(client, "attach"));
    let asked = url.and_then(port_of_url);
    let ports = port(server).zip(asked);
    ports.is_none_or(|(listening, asked)| listening == asked)
}

fn port(program: &Program<'_>) -> Option<u16> {
    let port: u16 = program.option("--port")?.parse().ok()?;
    (port != 0).then_some(port)
}

fn port_of_url(url: &str) -> Option<u16> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next()?;
    authority.rsplit_once(':')?.1.parse().ok()
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
            /usr/lib/node_modules/opencode-ai/bin/opencode.exe => session
            opencode /home/dev/app                             => session
            opencode -s ses_1                                  => session names ses_1
            opencode -s --continue                             => session continues
            opencode --session ses_1 --fork                    => session forks ses_1
            opencode --model mock/serve                        => session
            opencode --prompt run                              => session
            opencode -- serve-me                               => session
            opencode run attach_this                           => session headless
            opencode --log-level DEBUG run serve               => session headless
            opencode run --session=ses_1 hello                 => session headless names ses_1
            opencode run -cs ses_1 hello                       => session headless continues names ses_1
            opencode run -- explain -s ses_1                   => session headless
            opencode run --continue hello                      => session headless continues
            opencode run -i hello                              => session
            opencode github run                                => session headless
            opencode serve                                     => host
            opencode --port 4096 web                           => host
            opencode acp                                       => host
            opencode attach http://localhost:4096              => client
            opencode run --attach=http://localhost:4096 hello  => client headless
            opencode models                                    => auxiliary
            opencode session list                              => auxiliary
            opencode db path                                   => auxiliary
            node /n/opencode-ai/bin/opencode                   => launcher
            node /home/dev/opencode.js                         => none
            /opt/opencode/bin/prog                             => none
            ",
        );
        let continues = |command| continues_last(&PROGRAMS, &program_of(&started_by(command)));
        assert!(continues("opencode -c") && !continues("opencode -c --fork"));
    }

    #[test]
    fn a_port_tells_servers_and_their_clients_apart() {
        let serve = started_by("opencode serve --port 4321");
        let right = Some("http://127.0.0.1:4321");
        assert_eq!(endpoint(&program_of(&serve)).as_deref(), right);
        let any = started_by("opencode serve --hostname 0.0.0.0 --port 0");
        assert_eq!(endpoint(&program_of(&any)), None);
        for (server, client, right) in [
            (&serve, "opencode attach http://127.0.0.1:4321", true),
            (
                &serve,
                "opencode run --attach http://127.0.0.1:4321/x hi",
                true,
            ),
            (&serve, "opencode attach http://127.0.0.1:4322/", false),
            (&serve, "opencode attach http://opencode.local", true),
            (&any, "opencode attach http://127.0.0.1:4322", true),
        ] {
            let client = started_by(client);
            let found = may_be_server_of(&PROGRAMS, &program_of(server), &program_of(&client));
            assert_eq!(found, right, "{client:?}");
        }
    }

    #[test]
    fn a_client_works_in_the_directory_of_its_server() {
        for (command, right) in [
            ("opencode attach http://127.0.0.1:4321", true),
            ("opencode attach http://127.0.0.1:4321 --dir /w", false),
            ("opencode serve", false),
        ] {
            let found = is_client_without_directory(&PROGRAMS, &program_of(&started_by(command)));
            assert_eq!(found, right, "{command}");
        }
    }
}
