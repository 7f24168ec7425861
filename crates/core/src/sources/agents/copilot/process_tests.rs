//! Which processes are Copilot's, and what they are to it.

use whosup_process::{Absent, RecordedProcess};

use super::*;
use crate::sources::agents::kit::program_tests::{check_recognized, program_of};

const NATIVE: &str = "/home/dev/lib/node_modules/@github/copilot-linux-x64/copilot";

fn native(argv: &[&str]) -> RecordedProcess {
    let argv: Vec<&str> = [NATIVE].iter().chain(argv).copied().collect();
    RecordedProcess::new(7, 1, 0)
        .comm("MainThread")
        .exe(NATIVE)
        .argv(&argv)
}

fn node(argv: &[&str]) -> RecordedProcess {
    RecordedProcess::new(7, 1, 0)
        .comm("node")
        .exe("/usr/bin/node")
        .argv(argv)
}

#[track_caller]
fn check_role(process: &RecordedProcess, right: Option<Role>) {
    check_recognized(recognize, process, right);
}

#[test]
fn the_loader_is_a_launcher_and_the_native_program_serves() {
    check_role(
        &node(&["node", "/home/dev/bin/copilot"]),
        Some(Role::Launcher),
    );
    check_role(
        &node(&["node", "/x/node_modules/.bin/copilot", "--continue"]),
        Some(Role::Launcher),
    );
    check_role(
        &node(&["node", "/x/node_modules/@github/copilot/npm-loader.js"]),
        Some(Role::Launcher),
    );
    check_role(&native(&[]), Some(Role::Session));
    check_role(
        &native(&["--model", "gpt-5", "-p", "update"]),
        Some(Role::Session),
    );
    check_role(
        &native(&["copilot"]).exe("/home/dev/.local/bin/copilot"),
        Some(Role::Session),
    );
}

#[test]
fn earlier_versions_are_scripts() {
    for script in [
        "/usr/lib/node_modules/@github/copilot/index.js",
        "/home/dev/.copilot/pkg/universal/0.0.399/index.js",
    ] {
        check_role(&node(&["node", script]), Some(Role::Session));
    }
}

#[test]
fn commands_and_editors_make_it_something_else() {
    check_role(&native(&["mcp", "list"]), Some(Role::Auxiliary));
    check_role(
        &native(&["--log-level", "all", "update"]),
        Some(Role::Auxiliary),
    );
    check_role(&native(&["--version"]), Some(Role::Auxiliary));
    check_role(&native(&["--acp"]), Some(Role::Host));
    check_role(&native(&["-i", "login"]), Some(Role::Session));
}

#[test]
fn another_copilot_is_not_recognized() {
    let ecs = native(&["svc", "deploy"])
        .comm("copilot")
        .exe("/usr/local/bin/copilot");
    check_role(&ecs, None);
    for argv in [
        &["node", "/home/dev/copilot.js"][..],
        &["node", "/home/dev/copilot/index.js"],
        &["node", "/home/dev/copilot/server.js"],
        &["node"],
    ] {
        check_role(&node(argv), None);
    }
    check_role(
        &native(&[]).exe("/opt/copilot-squad/bin/copilot-squad"),
        None,
    );
    check_role(
        &node(&["python3", "/usr/bin/copilot"]).exe("/usr/bin/vim"),
        None,
    );
}

#[test]
fn an_unreadable_executable_leaves_the_arguments_to_go_by() {
    let mut loader = node(&["/usr/bin/node", "/usr/bin/copilot"]);
    loader.details.exe = Err(Absent::PermissionDenied);
    check_role(&loader, Some(Role::Launcher));
    let mut native = native(&[]);
    native.details.exe = Err(Absent::PermissionDenied);
    check_role(&native, Some(Role::Session));
    native.details.argv = Err(Absent::PermissionDenied);
    check_role(&native, None);
}

#[test]
fn only_ids_in_the_arguments_name_a_session() {
    let check = |argv: &[&str], right: Option<&str>| {
        let process = native(argv);
        let program = program_of(&process);
        assert_eq!(session_named_by(&program), right, "{argv:?}");
    };
    const ID: &str = "aad07f38-3e3e-4ead-962e-2a290c169afe";
    check(&["--resume=aad07f38-3e3e-4ead-962e-2a290c169afe"], Some(ID));
    check(&["-r", ID], Some(ID));
    check(&["--session-id", ID], Some(ID));
    check(&["--resume", "aad07f"], Some("aad07f"));
    check(&["--resume=after clear"], None);
    check(&["--resume"], None);
    check(&["--resume", "--yolo"], None);
    check(&["--continue"], None);
    check(&[], None);
}
