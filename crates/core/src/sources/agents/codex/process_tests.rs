use std::ffi::OsString;
use std::path::PathBuf;

use whosup_process::{Absent, Details, Process, RecordedProcess};

use super::*;

const NPM: &str = "/home/dev/.npm-global/lib/node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex";
const ID: &str = "01a21ec8-c5bb-78f0-959a-e72776985ddc";

/// A process by its executable and its arguments.
fn process(exe: &str, argv: &[&str], comm: &str) -> (Process, Details) {
    let recorded = RecordedProcess::new(4711, 8123, 1_795_812_800_000)
        .comm(comm)
        .exe(exe)
        .argv(argv);
    (recorded.process, recorded.details)
}

#[track_caller]
fn check(exe: &str, argv: &[&str], right: Option<Role>) {
    let (process, details) = process(exe, argv, "codex");
    let program = Program {
        process: &process,
        details: &details,
    };
    assert_eq!(recognize(&program), right, "{exe} {argv:?}");
}

#[test]
fn every_way_to_install_it_is_recognized() {
    for exe in [
        NPM,
        "/home/dev/.codex/packages/app-server-daemon/releases/0.171.0-x86_64-unknown-linux-musl/bin/codex",
        "/home/dev/.local/share/pnpm/global/5/.pnpm/@openai+codex@0.171.0/node_modules/@openai/codex/vendor/aarch64-unknown-linux-musl/codex/codex",
        "/opt/homebrew/Caskroom/codex/0.171.0/codex-aarch64-apple-darwin",
        "/home/dev/.cargo/bin/codex",
        "/usr/local/bin/codex-x86_64-unknown-linux-gnu",
        "/home/dev/.vscode/extensions/openai.chatgpt-1.2.3/bin/linux-x86_64/codex",
        "/mnt/c/tools/codex.exe",
    ] {
        check(exe, &[exe], Some(Role::Session));
    }
}

#[test]
fn the_launchers_script_is_a_launcher_under_every_runtime() {
    for (exe, script) in [
        (
            "/usr/bin/node",
            "/home/dev/.npm-global/lib/node_modules/.bin/codex",
        ),
        ("/usr/bin/node", "/usr/local/bin/codex"),
        (
            "/home/dev/.nvm/versions/node/v24.1.0/bin/node",
            "/x/node_modules/@openai/codex/bin/codex.js",
        ),
        ("/home/dev/.bun/bin/bun", "/home/dev/.bun/bin/codex"),
    ] {
        check(exe, &["node", script, "resume", ID], Some(Role::Launcher));
    }
}

#[test]
fn what_it_was_told_to_do_decides_its_role() {
    let session = Some(Role::Session);
    for (arguments, right) in [
        (&[][..], session),
        (&["fix the bug"], session),
        (&["--model", "exec", "fix"], session),
        (&["-c", "a=b", "--", "exec"], session),
        (&["resume"], session),
        (&["-m", "gpt-5", "resume", ID], session),
        (&["fork", ID], session),
        (&["exec", "say hi"], session),
        (&["--disable", "daemon_auto_start", "e", "hi"], session),
        (&["review"], session),
        (&["app-server"], Some(Role::Host)),
        (
            &[
                "app-server",
                "--listen",
                "unix://",
                "--analytics-default-enabled",
                "--managed-daemon",
            ],
            Some(Role::Host),
        ),
        (
            &["-c", "x=1", "app-server", "--analytics-default-enabled"],
            Some(Role::Host),
        ),
        (&["mcp-server"], Some(Role::Host)),
        (
            &["app-server", "daemon", "pid-update-loop"],
            Some(Role::Auxiliary),
        ),
        (&["app-server", "proxy"], Some(Role::Auxiliary)),
        (&["login"], Some(Role::Auxiliary)),
        (&["mcp", "list"], Some(Role::Auxiliary)),
    ] {
        let argv: Vec<&str> = [NPM].iter().chain(arguments).copied().collect();
        check(NPM, &argv, right);
    }
}

#[test]
fn its_own_tools_and_programs_with_a_similar_name_are_not_it() {
    let tmp = "/home/dev/.codex/tmp/arg0-linux/codex-arg0AbCdEf";
    check(
        NPM,
        &[&format!("{tmp}/apply_patch"), "*** Begin Patch"],
        None,
    );
    check(
        NPM,
        &[&format!("{tmp}/codex-linux-sandbox"), "--", "ls"],
        None,
    );
    check(NPM, &[NPM, "--codex-run-as-apply-patch", "x"], None);
    check("/home/x/codex/bin/server", &["server"], None);
    check("/usr/bin/codex-squad", &["codex-squad"], None);
    check("/usr/bin/codexd", &["codexd"], None);
    check("/usr/bin/bash", &["codex"], None);
    check("/usr/bin/node", &["node", "/home/x/my/codex.js"], None);
    check("/usr/bin/node", &["node", "/home/x/codex/server.js"], None);
    check("/usr/bin/node", &["node", "/home/x/codex"], None);
    check("/usr/bin/python3", &["python3", "-m", "codex"], None);
}

#[test]
fn only_a_resumed_thread_is_named_by_the_arguments() {
    for (arguments, right) in [
        (&["resume", ID][..], Some(ID)),
        (&["-C", "/w", "resume", "--all", ID], Some(ID)),
        (&["resume", "-m", "gpt-5", ID], Some(ID)),
        (&["exec", "resume", ID, "go on"], Some(ID)),
        (&["exec", "--json", "resume", "--last"], None),
        (&["fork", ID], None),
        (&["resume"], None),
        (&["resume", "--last"], None),
        (&["resume", "my thread"], None),
        (&[ID], None),
        (&["app-server", ID], None),
    ] {
        let argv: Vec<&str> = [NPM].iter().chain(arguments).copied().collect();
        let (process, details) = process(NPM, &argv, "codex");
        let program = Program {
            process: &process,
            details: &details,
        };
        assert_eq!(resumed(&program), right, "{arguments:?}");
    }
}

#[test]
fn without_its_executable_name_and_first_argument_must_agree() {
    let (process, mut details) = process(NPM, &[NPM], "codex");
    details.exe = Err(Absent::PermissionDenied);
    let (other, _) = self::process(NPM, &[NPM], "vim");
    let program = |process| Program {
        process,
        details: &details,
    };
    assert_eq!(recognize(&program(&process)), Some(Role::Session));
    assert_eq!(recognize(&program(&other)), None);
}

#[test]
fn without_its_arguments_it_is_taken_for_what_keeps_all_it_holds() {
    let (process, mut details) = process(NPM, &[NPM], "codex");
    details.argv = Err(Absent::PermissionDenied);
    let program = Program {
        process: &process,
        details: &details,
    };
    assert_eq!(recognize(&program), Some(Role::Host));
}

#[test]
fn arguments_that_are_not_utf_8_are_skipped() {
    use std::os::unix::ffi::OsStringExt as _;
    let (process, mut details) = process(NPM, &[NPM], "codex");
    let odd = OsString::from_vec(vec![0xff, 0xfe]);
    details.argv = Ok(vec![
        OsString::from(NPM),
        OsString::from("-C"),
        odd,
        OsString::from("exec"),
    ]);
    details.exe = Ok(PathBuf::from(NPM));
    let program = Program {
        process: &process,
        details: &details,
    };
    assert!(is_headless(&program));
}

#[test]
fn the_forked_thread_and_the_directory_are_read_from_the_arguments() {
    let of = |arguments: &[&str]| {
        let argv: Vec<&str> = [NPM].iter().chain(arguments).copied().collect();
        let (process, mut details) = process(NPM, &argv, "codex");
        details.cwd = Ok(PathBuf::from("/w/app"));
        let program = Program {
            process: &process,
            details: &details,
        };
        (
            forked(&program).map(str::to_owned),
            named_work_dir(&program),
        )
    };
    assert_eq!(of(&["fork", ID]), (Some(ID.to_owned()), None));
    assert_eq!(of(&["fork", "--last"]), (None, None));
    assert_eq!(of(&["resume", ID]), (None, None));
    let other = Some(PathBuf::from("/w/app/sub"));
    assert_eq!(of(&["-C", "sub/"]), (None, other.clone()));
    assert_eq!(of(&["resume", "--cd=./sub", ID]), (None, other));
    assert_eq!(
        of(&["exec", "--cd", "/x", "hi"]),
        (None, Some(PathBuf::from("/x")))
    );
}

#[test]
fn a_host_tells_in_its_arguments_where_it_listens() {
    let home = Path::new("/home/dev/.codex");
    let socket = "/home/dev/.codex/app-server-control/app-server-control.sock";
    for (arguments, expected) in [
        (
            &["app-server", "--listen", "unix://", "--managed-daemon"][..],
            Some(socket),
        ),
        (
            &["app-server", "--listen=unix:///run/c.sock"],
            Some("/run/c.sock"),
        ),
        (
            &["app-server", "--listen", "ws://127.0.0.1:4500?token=x"],
            Some("ws://127.0.0.1:4500"),
        ),
        (&["app-server", "--listen", "stdio://"], None),
        (&["app-server"], None),
    ] {
        let argv = std::iter::once("codex").chain(arguments.iter().copied());
        let process = RecordedProcess::new(7, 1, 0).argv(&argv.collect::<Vec<_>>());
        let program = Program {
            process: &process.process,
            details: &process.details,
        };
        assert_eq!(
            endpoint(&program, home).as_deref(),
            expected,
            "{arguments:?}"
        );
    }
}
