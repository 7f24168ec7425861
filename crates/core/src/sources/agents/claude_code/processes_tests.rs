use std::path::PathBuf;

use super::*;
use crate::sources::agents::kit::program_tests::{
    check_commands, described, program_of, started_by,
};
use crate::sources::recognize::look_through;

const NPM: &str = "/n/@anthropic-ai/claude-code/bin/claude.exe";

#[test]
fn programs() {
    check_commands(
        &PROGRAMS,
        "
        node [claude]                                                     => session
        perl [claude]                                                     => none
        /n/@anthropic-ai/claude-code/bin/claude.exe                       => session
        /n/@anthropic-ai/claude-code-linux-x64/claude                     => session
        /home/dev/.local/share/claude/versions/2.1.197                    => session
        /home/dev/.local/share/claude/versions/2.2.0-beta.1               => session
        /home/dev/.local/share/other/versions/2.1.197                     => none
        /home/x/claude/versions/notes                                     => none
        /home/dev/.claude/remote/ccd-cli/2.1.332                          => session
        /home/dev/.claude/remote/ccd-cli/notes                            => none
        /opt/ccd-cli/2.1.332                                              => none
        /opt/homebrew/Caskroom/claude-code/2.1.197/claude                 => session
        node /opt/npm/bin/claude -c                                       => session continues
        /usr/bin/node24 --no-warnings /n/@anthropic-ai/claude-code/cli.js => session
        /opt/bun /n/@anthropic-ai/claude-code/cli.js mcp serve            => auxiliary
        node /n/@anthropic-ai/claude-code/cli-wrapper.cjs                 => launcher
        node /n/@anthropic-ai/claude-code/cli-wrapper.cjs --resume {id}   => launcher continues names {id}
        /home/dev/bin/claude-squad                                        => none
        /home/x/claude/bin/server                                         => none
        node my/claude.js                                                 => none
        node cli.js                                                       => none
        python3 /home/dev/claude                                          => none
        bash -c claude                                                    => none
        vim claude                                                        => none
        /usr/lib/claude-desktop/claude                                    => none
        /opt/Claude/claude --type=renderer                                => none
        /n/@anthropic-ai/claude-code/vendor/ripgrep/x64-linux/rg          => none
        ",
    );
}

#[test]
fn commands() {
    check_commands(
        &PROGRAMS,
        "
        claude -p say_hello                              => session
        claude update_the_readme                         => session
        claude --session-id x daemon                     => session
        claude daemon run --origin transient             => auxiliary
        claude --bg-pty-host /run/s 200 50 -- claude.exe => auxiliary
        claude --bg-spare /run/spare                     => auxiliary
        claude mcp list                                  => auxiliary
        claude agents                                    => auxiliary
        claude --version                                 => auxiliary
        claude mcp --resume {id}                         => auxiliary continues
        claude attach 65a50973                           => client names 65a50973
        claude attach fix                                => client
        claude --resume {id}                             => session continues names {id}
        claude -r {id}                                   => session continues names {id}
        claude --resume={id}                             => session continues names {id}
        claude --session-id {id} prompt                  => session names {id}
        claude --resume {id} --fork-session              => session continues forks {id}
        claude --resume deadbeef                         => session continues
        claude --resume                                  => session continues
        claude --resume=fix                              => session continues
        claude -r{id}                                    => session continues names {id}
        claude -cr {id}                                  => session continues names {id}
        # The filter of `--debug`.
        claude -dr {id}                                  => session
        claude --resume a/{id}.jsonl                     => session continues names {id}
        claude --resume a/fix.jsonl                      => session continues
        claude --resume {id} --resume fix                => session continues
        claude --resume fix -r {id}                      => session continues names {id}
        claude --session-id {id} -- --resume fix         => session names {id}
        claude --resume {id} --fork-session --session-id x => session continues forks {id}
        claude --from-pr 12                              => session continues
        claude -c go_on                                  => session continues
        claude please_--continue                         => session
        ",
    );
    let unnamed = |command| continues_unnamed(&program_of(&started_by(command)));
    assert!(unnamed("claude -c") && unnamed("claude --resume=fix"));
    assert!(!unnamed("claude --resume {id}") && !unnamed("claude"));
}

#[track_caller]
fn check_named(comm: &str, exe: &str, argv: &[&str], right: &str) {
    let mut process = started_by(exe).comm(comm).argv(argv);
    if let Some(seen) = look_through(&process.details) {
        process.details = seen;
    }
    assert_eq!(described(&PROGRAMS, &process), right, "{comm} {argv:?}");
}

/// `cc -> claude`: the kernel calls the process `cc`. A tool has its name in the
/// arguments alone.
#[test]
fn argument_0_tells_the_agent_from_the_tools_in_it() {
    check_named("claude", NPM, &["claude"], "session");
    check_named("cc", NPM, &["/home/dev/bin/cc", "-p", "hello"], "session");
    check_named("my-claude-of-to", NPM, &["my-claude-of-today"], "session");
    check_named("claude", NPM, &["cc"], "none");
    check_named("claude", NPM, &["rg", "needle"], "none");
    check_named("rg", NPM, &["rg", "needle"], "none");
    check_named("claude", NPM, &["/usr/bin/ugrep", "needle"], "none");
    check_named(
        ".claude-wrapped",
        "/nix/x/.claude-wrapped",
        &["claude"],
        "session",
    );
    // As 2.1.332 calls the parts of `--bg`.
    check_named(
        "claude",
        NPM,
        &["claude bg-spare", "--bg-spare", "/s"],
        "auxiliary",
    );
}

#[test]
fn an_executable_that_an_update_has_removed_is_still_recognized() {
    let mut process = started_by("/home/dev/.local/share/claude/versions/2.1.196").exe_deleted();
    assert_eq!(described(&PROGRAMS, &process), "session");
    process.details.exe = Ok(PathBuf::from("/home/dev/other/versions/2.1.196"));
    assert_eq!(described(&PROGRAMS, &process), "none");
}
