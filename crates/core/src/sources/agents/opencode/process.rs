//! How opencode's processes look.
//!
//! One native executable (Bun inside), which keeps its arguments; npm links it as
//! `opencode`, so that the kernel calls it that. Older packages had a script for
//! Node above it. Seen in opencode 1.18.33, 2026-11.

use std::path::Path;

use crate::adapter::{Program, Role};

/// The names that its processes have as `comm`.
pub(super) const COMMS: &[&str] = &["opencode", "opencode.exe"];

/// The names of its executable: the npm package calls it `.exe` everywhere.
const EXECUTABLES: &[&str] = &["opencode", "opencode.exe"];

/// Subcommands that serve sessions of many directories.
const HOST_COMMANDS: &[&str] = &["acp", "serve", "web"];
/// Subcommands that serve no session.
const OTHER_COMMANDS: &[&str] = &[
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

/// Options that take the next argument as their value.
const OPTIONS_WITH_VALUE: &[&str] = &[
    "--agent",
    "--attach",
    "--command",
    "--cors",
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
    "-f",
    "-m",
    "-p",
    "-s",
    "-u",
];
/// How many arguments are looked at.
const ARGUMENTS_MAX: usize = 256;

pub(super) fn recognize(program: &Program<'_>) -> Option<Role> {
    if is_launcher(program) {
        return Some(Role::Launcher);
    }
    if !is_native(program) {
        return None;
    }
    Some(match command(program) {
        Some(word) if HOST_COMMANDS.contains(&word) => Role::Host,
        Some("attach") => Role::Client,
        Some("run") if program.option("--attach").is_some() => Role::Client,
        Some(word) if OTHER_COMMANDS.contains(&word) => Role::Auxiliary,
        _ => Role::Session,
    })
}

/// The session that the arguments name. With `--fork` it is another one that
/// the process works in.
pub(super) fn session_named_by<'a>(program: &Program<'a>) -> Option<&'a str> {
    let named = ["--session", "-s"]
        .into_iter()
        .find_map(|option| program.option(option))?;
    let is_named = !named.is_empty() && !named.starts_with('-') && !program.has_argument("--fork");
    is_named.then_some(named)
}

/// The arguments ask for the session that was used last, whichever that is.
pub(super) fn continues_last(program: &Program<'_>) -> bool {
    let asks = program.has_argument("--continue") || program.has_argument("-c");
    asks && !program.has_argument("--fork")
}

/// It runs without a person at a terminal.
pub(super) fn is_headless(program: &Program<'_>) -> bool {
    let is_interactive = ["--interactive", "-i", "--mini"]
        .iter()
        .any(|option| program.has_argument(option));
    matches!(command(program), Some("run" | "github")) && !is_interactive
}

/// It shows a session of a server, in the server's own directory.
pub(super) fn is_client_without_directory(program: &Program<'_>) -> bool {
    recognize(program) == Some(Role::Client) && program.option("--dir").is_none()
}

/// Where it listens, by its arguments. The port that it takes without being
/// told is not known.
pub(super) fn endpoint(program: &Program<'_>) -> Option<String> {
    let port = port(program)?;
    let host = program.option("--hostname").unwrap_or("127.0.0.1");
    Some(format!("http://{host}:{port}"))
}

/// The server that a client is connected to may be this one.
pub(super) fn may_be_server_of(server: &Program<'_>, client: &Program<'_>) -> bool {
    let url = client
        .option("--attach")
        .or_else(|| word_after(client, "attach"));
    let asked = url.and_then(port_of_url);
    match (port(server), asked) {
        (Some(its), Some(asked)) => its == asked,
        _ => true,
    }
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

/// The script that older npm packages put above the executable.
fn is_launcher(program: &Program<'_>) -> bool {
    let script = program.script();
    script.is_some_and(|script| script.ends_with("opencode-ai/bin/opencode"))
}

fn is_native(program: &Program<'_>) -> bool {
    let is_its = |name: &str| EXECUTABLES.contains(&name);
    match program.exe() {
        Some(_) => program.exe_name().is_some_and(is_its),
        // Not ours to look at: what it was started as must do, if the kernel's
        // name for it agrees.
        None => {
            let first = program.argv().first();
            let started_as = first.and_then(|first| Path::new(first).file_name()?.to_str());
            started_as.is_some_and(is_its) && program.comm().is_some_and(is_its)
        }
    }
}

/// The first argument that is neither an option nor the value of one: a
/// subcommand, or a directory.
fn command<'a>(program: &Program<'a>) -> Option<&'a str> {
    words(program).next()
}

fn word_after<'a>(program: &Program<'a>, command: &str) -> Option<&'a str> {
    let mut words = words(program);
    words.next().filter(|first| *first == command)?;
    words.next()
}

fn words<'a>(program: &Program<'a>) -> impl Iterator<Item = &'a str> {
    let mut args = program.argv().iter().skip(1).take(ARGUMENTS_MAX);
    let mut is_at_end = false;
    std::iter::from_fn(move || {
        while let Some(arg) = args.next() {
            let arg = arg.to_str().unwrap_or_default();
            if is_at_end || !arg.starts_with('-') {
                return Some(arg);
            }
            if arg == "--" {
                is_at_end = true;
            } else if OPTIONS_WITH_VALUE.contains(&arg) {
                args.next();
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use whosup_process::{Absent, RecordedProcess};

    use super::*;
    use crate::sources::agents::kit::program_tests::{check_recognized, program_of};

    const EXE: &str = "/usr/lib/node_modules/opencode-ai/bin/opencode.exe";

    fn opencode(args: &[&str]) -> RecordedProcess {
        let argv: Vec<&str> = std::iter::once("opencode")
            .chain(args.iter().copied())
            .collect();
        RecordedProcess::new(7, 1, 0)
            .comm("opencode")
            .exe(EXE)
            .argv(&argv)
    }

    #[track_caller]
    fn check_role(process: &RecordedProcess, right: Option<Role>) {
        check_recognized(recognize, process, right);
    }

    #[test]
    fn the_subcommand_tells_what_a_process_is() {
        for args in [
            &[][..],
            &["/home/dev/app"],
            &["-s", "ses_1"],
            &["--log-level", "DEBUG", "run", "serve"],
            &["--model", "mock/serve"],
            &["run", "attach this"],
            &["github", "run"],
            &["--", "serve-me"],
        ] {
            check_role(&opencode(args), Some(Role::Session));
        }
        for args in [&["serve"][..], &["--port", "4096", "web"], &["acp"]] {
            check_role(&opencode(args), Some(Role::Host));
        }
        for args in [
            &["attach", "http://localhost:4096"][..],
            &["run", "--attach=http://localhost:4096", "hello"],
        ] {
            check_role(&opencode(args), Some(Role::Client));
        }
        for args in [&["models"][..], &["session", "list"], &["db", "path"]] {
            check_role(&opencode(args), Some(Role::Auxiliary));
        }
    }

    #[test]
    fn the_executable_or_the_script_of_its_package_is_recognized() {
        let script = "/usr/lib/node_modules/opencode-ai/bin/opencode";
        check_role(
            &opencode(&[]).exe("/usr/bin/node").argv(&["node", script]),
            Some(Role::Launcher),
        );
        check_role(
            &opencode(&[]).exe("/home/dev/.opencode/bin/opencode"),
            Some(Role::Session),
        );
        let mut foreign = opencode(&[]);
        foreign.details.exe = Err(Absent::PermissionDenied);
        check_role(&foreign, Some(Role::Session));
        check_role(&foreign.clone().argv(&["prog"]), None);
        check_role(&foreign.comm("prog"), None);
        check_role(&opencode(&[]).exe("/opt/opencode/bin/prog"), None);
        let node = opencode(&[]).exe("/usr/bin/node");
        check_role(&node.argv(&["node", "/home/dev/opencode.js"]), None);
    }

    #[track_caller]
    fn check_named(args: &[&str], right: Option<&str>) {
        let process = opencode(args);
        assert_eq!(session_named_by(&program_of(&process)), right, "{args:?}");
    }

    #[test]
    fn a_fork_does_not_work_in_the_session_that_is_named() {
        check_named(&["-s", "ses_1"], Some("ses_1"));
        check_named(&["run", "--session=ses_1", "hello"], Some("ses_1"));
        check_named(&["--session", "ses_1", "--fork"], None);
        check_named(&["-s", "--continue"], None);
        check_named(&["-c"], None);
        let continues = |args: &[&str]| continues_last(&program_of(&opencode(args)));
        assert!(continues(&["-c"]) && continues(&["run", "--continue", "hello"]));
        assert!(!continues(&["-c", "--fork"]) && !continues(&["run", "go on"]));
    }

    #[test]
    fn run_has_no_person_at_a_terminal() {
        let is_headless = |args: &[&str]| is_headless(&program_of(&opencode(args)));
        assert!(is_headless(&["run", "hello"]));
        assert!(is_headless(&["--print-logs", "run", "hello"]));
        assert!(!is_headless(&["run", "-i", "hello"]));
        assert!(!is_headless(&[]));
        assert!(!is_headless(&["--prompt", "run"]));
    }

    #[test]
    fn a_port_tells_servers_and_their_clients_apart() {
        let serve = opencode(&["serve", "--port", "4321"]);
        assert_eq!(
            endpoint(&program_of(&serve)).as_deref(),
            Some("http://127.0.0.1:4321")
        );
        let any = opencode(&["serve", "--hostname", "0.0.0.0", "--port", "0"]);
        assert_eq!(endpoint(&program_of(&any)), None);
        let may_be = |server: &RecordedProcess, args: &[&str]| {
            may_be_server_of(&program_of(server), &program_of(&opencode(args)))
        };
        assert!(may_be(&serve, &["attach", "http://127.0.0.1:4321"]));
        assert!(may_be(
            &serve,
            &["run", "--attach", "http://127.0.0.1:4321/x", "hi"]
        ));
        assert!(!may_be(&serve, &["attach", "http://127.0.0.1:4322/"]));
        assert!(may_be(&serve, &["attach", "http://opencode.local"]));
        assert!(may_be(&any, &["attach", "http://127.0.0.1:4322"]));
    }

    #[test]
    fn a_client_works_in_the_directory_of_its_server() {
        let without = |args: &[&str]| is_client_without_directory(&program_of(&opencode(args)));
        assert!(without(&["attach", "http://127.0.0.1:4321"]));
        assert!(!without(&[
            "attach",
            "http://127.0.0.1:4321",
            "--dir",
            "/w"
        ]));
        assert!(!without(&["serve"]));
    }
}
