use std::path::PathBuf;

use whosup_process::{Absent, Details, Process, RecordedProcess};

use super::*;
use crate::sources::recognize::look_through;

const NPM: &str = "/opt/npm/lib/node_modules/@anthropic-ai/claude-code/bin/claude.exe";

struct Made {
    process: Process,
    details: Details,
}

impl Made {
    fn program(&self) -> Program<'_> {
        Program {
            process: &self.process,
            details: &self.details,
        }
    }
}

fn made(comm: &str, exe: &str, argv: &[&str]) -> Made {
    let recorded = RecordedProcess::new(4711, 8123, 0)
        .comm(comm)
        .exe(exe)
        .argv(argv);
    let seen = look_through(&recorded.details);
    Made {
        process: recorded.process,
        details: seen.unwrap_or(recorded.details),
    }
}

#[track_caller]
fn check_role(exe: &str, argv: &[&str], right: Option<Role>) {
    let found = recognize(&made("claude", exe, argv).program());
    assert_eq!(found, right, "{exe} {argv:?}");
}

#[test]
fn every_way_to_install_it_is_recognized() {
    let session = Some(Role::Session);
    check_role(NPM, &["/usr/bin/claude"], session);
    check_role(NPM, &["claude", "-p", "say hello"], session);
    check_role(
        "/opt/n/@anthropic-ai/claude-code-linux-x64/claude",
        &["claude"],
        session,
    );
    check_role(
        "/home/dev/.local/share/claude/versions/2.1.197",
        &["claude"],
        session,
    );
    check_role(
        "/home/dev/.local/share/claude/versions/2.2.0-beta.1",
        &["claude"],
        session,
    );
    check_role(
        "/opt/homebrew/Caskroom/claude-code/2.1.197/claude",
        &["claude"],
        session,
    );
    check_role(
        "/nix/store/abc-claude-code/bin/.claude-wrapped",
        &["claude"],
        session,
    );
    check_role(
        "/home/dev/.bun/bin/claude",
        &["claude", "--resume"],
        session,
    );
    check_role(
        "/usr/bin/node",
        &["node", "/opt/npm/bin/claude", "-c"],
        session,
    );
    let cli = "/opt/npm/lib/node_modules/@anthropic-ai/claude-code/cli.js";
    check_role("/usr/bin/node24", &["node", "--no-warnings", cli], session);
    check_role(
        "/opt/bun",
        &["bun", cli, "mcp", "serve"],
        Some(Role::Auxiliary),
    );
    let wrapper = "/opt/n/@anthropic-ai/claude-code/cli-wrapper.cjs";
    check_role("/usr/bin/node", &["node", wrapper], Some(Role::Launcher));
}

#[test]
fn a_node_process_that_put_its_name_over_its_arguments_is_recognized_by_it() {
    let recorded = RecordedProcess::new(4711, 1, 0)
        .comm("claude")
        .exe("/usr/bin/node")
        .title("claude");
    let made = Made {
        process: recorded.process,
        details: recorded.details,
    };
    assert_eq!(recognize(&made.program()), Some(Role::Session));
    let recorded = RecordedProcess::new(4711, 1, 0)
        .comm("claude")
        .exe("/usr/bin/perl")
        .title("claude");
    let made = Made {
        process: recorded.process,
        details: recorded.details,
    };
    assert_eq!(recognize(&made.program()), None);
}

#[test]
fn background_parts_and_commands_are_no_sessions() {
    let auxiliary = Some(Role::Auxiliary);
    check_role(
        NPM,
        &["claude.exe", "daemon", "run", "--origin", "transient"],
        auxiliary,
    );
    check_role(
        NPM,
        &[
            "claude.exe",
            "--bg-pty-host",
            "/run/s",
            "200",
            "50",
            "--",
            "claude.exe",
        ],
        auxiliary,
    );
    check_role(NPM, &["claude.exe", "--bg-spare", "/run/spare"], auxiliary);
    // As 2.1.332 calls them.
    let spare = ["claude bg-spare", "--bg-spare", "/tmp/1.claim.sock"];
    check_role(NPM, &spare, auxiliary);
    let host = [
        "claude bg-pty-host",
        "--bg-pty-host",
        "/tmp/1.pty.sock",
        "200",
        "50",
        "--",
        NPM,
        "--bg-spare",
        "/tmp/1.claim.sock",
    ];
    check_role(NPM, &host, auxiliary);
    check_role(NPM, &["claude", "mcp", "list"], auxiliary);
    check_role(NPM, &["claude", "agents"], auxiliary);
    check_role(NPM, &["claude", "--version"], auxiliary);
    check_role(NPM, &["claude", "attach", "65a50973"], Some(Role::Client));
    check_role(
        NPM,
        &["claude.exe", "--session-id", "x", "daemon"],
        Some(Role::Session),
    );
    check_role(NPM, &["claude", "update the readme"], Some(Role::Session));
}

#[test]
fn its_tools_and_programs_with_similar_names_are_none_of_its_own() {
    check_role(NPM, &["rg", "--no-config", "needle"], None);
    check_role(NPM, &["/usr/bin/ugrep", "needle"], None);
    check_role("/home/dev/bin/claude-squad", &["claude-squad"], None);
    check_role("/home/x/claude/bin/server", &["server"], None);
    check_role("/home/x/claude/versions/notes", &["claude"], None);
    check_role("/usr/bin/node", &["node", "my/claude.js"], None);
    check_role("/usr/bin/node", &["node", "cli.js"], None);
    check_role("/usr/bin/python3", &["python3", "/home/dev/claude"], None);
    check_role("/bin/bash", &["bash", "-c", "claude"], None);
    check_role("/usr/bin/git", &["git", "commit"], None);
    check_role("/usr/bin/vim", &["vim", "claude"], None);
    check_role("/usr/lib/claude-desktop/claude", &["claude"], None);
    check_role("/opt/Claude/claude", &["claude", "--type=renderer"], None);
    let vendored = "/opt/n/@anthropic-ai/claude-code/vendor/ripgrep/x64-linux/rg";
    check_role(vendored, &["rg", "needle"], None);
}

/// `cc -> claude`: the kernel calls the process `cc`. A tool has its name in the
/// arguments alone.
#[test]
fn a_link_of_another_name_starts_it_all_the_same() {
    let of = |comm: &str, argv: &[&str]| recognize(&made(comm, NPM, argv).program());
    assert_eq!(of("cc", &["cc"]), Some(Role::Session));
    assert_eq!(
        of("cc", &["/home/dev/bin/cc", "-p", "hello"]),
        Some(Role::Session)
    );
    assert_eq!(of("cc", &["cc", "attach", "0a0cf238"]), Some(Role::Client));
    let long = "my-claude-of-today";
    assert_eq!(of("my-claude-of-to", &[long]), Some(Role::Session));
    assert_eq!(of("claude", &["cc"]), None);
    assert_eq!(of("rg", &["rg", "needle"]), None);
}

#[test]
fn what_runs_sessions_for_other_machines_is_named_by_its_version() {
    let exe = "/home/dev/.claude/remote/ccd-cli/2.1.332";
    check_role(exe, &[exe], Some(Role::Session));
    check_role("/opt/ccd-cli/2.1.332", &["/opt/ccd-cli/2.1.332"], None);
    check_role("/home/dev/.claude/remote/ccd-cli/notes", &["notes"], None);
}

#[test]
fn without_its_executable_name_and_argument_must_agree() {
    let of = |comm: &str, argument: &str| {
        let mut made = made(comm, NPM, &[argument]);
        made.details.exe = Err(Absent::PermissionDenied);
        recognize(&made.program())
    };
    assert_eq!(of("claude", "/usr/bin/claude"), Some(Role::Session));
    assert_eq!(of("claude", "rg"), None);
    assert_eq!(of("bash", "claude"), None);
}

#[test]
fn an_executable_that_an_update_has_removed_is_still_recognized() {
    let mut made = made(
        "claude",
        "/home/dev/.local/share/claude/versions/2.1.196",
        &["claude"],
    );
    made.details.is_exe_deleted = true;
    assert_eq!(recognize(&made.program()), Some(Role::Session));
    made.details.exe = Ok(PathBuf::from(
        "/home/dev/.local/share/other/versions/2.1.196",
    ));
    assert_eq!(recognize(&made.program()), None);
}

const ID: &str = "0a022b20-e8f2-410e-9552-8385582a8e8b";

#[test]
fn arguments_name_a_session_by_its_whole_id_only() {
    let named = |argv: &[&str]| {
        let made = made("claude", NPM, argv);
        session_named_by(&made.program()).map(str::to_owned)
    };
    let id = Some(ID.to_owned());
    assert_eq!(named(&["claude", "--resume", ID]), id);
    assert_eq!(named(&["claude", "-r", ID]), id);
    assert_eq!(named(&["claude", &format!("--resume={ID}")]), id);
    assert_eq!(named(&["claude.exe", "--session-id", ID, "prompt"]), id);
    assert_eq!(named(&["claude", "--resume", ID, "--fork-session"]), None);
    assert_eq!(named(&["claude", "--resume", "fix"]), None);
    assert_eq!(named(&["claude", "--resume"]), None);
    assert_eq!(named(&["claude", "--continue"]), None);
    assert_eq!(named(&["claude"]), None);
    assert_eq!(
        named(&["claude", "attach", "65a50973"]),
        Some("65a50973".to_owned())
    );
    assert_eq!(named(&["claude", "attach", "fix"]), None);
    assert_eq!(named(&["claude", "mcp", "--resume", ID]), None);
}

#[test]
fn what_is_continued_without_a_name_is_not_known_at_first() {
    let continues = |argv: &[&str]| continues_unnamed(&made("claude", NPM, argv).program());
    assert!(continues(&["claude", "--continue"]));
    assert!(continues(&["claude", "-c", "go on"]));
    assert!(continues(&["claude", "--resume"]));
    assert!(continues(&["claude", "--resume=fix"]));
    assert!(continues(&["claude", "--from-pr", "12"]));
    assert!(!continues(&["claude", "--resume", ID]));
    assert!(!continues(&["claude"]));
    assert!(!continues(&["claude", "please --continue"]));
}

#[test]
fn versions_are_told_from_other_names() {
    assert!(is_version("2.1.197") && is_version("2.2.0-beta.1"));
    for other in ["", "2.1", "2.1.x", "notes", "1.2.3.4", "..", "2..1"] {
        assert!(!is_version(other), "{other}");
    }
}
