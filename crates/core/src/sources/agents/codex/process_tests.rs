use super::*;
use crate::sources::agents::kit::program_tests::{check_commands, program_of, started_by};

const VENDOR: &str = "/n/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex";

#[test]
fn programs() {
    check_commands(
        &PROGRAMS,
        "
        /n/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex  => session
        /home/dev/.codex/packages/app-server-daemon/releases/0.171.0/bin/codex => session
        /opt/homebrew/Caskroom/codex/0.171.0/codex-aarch64-apple-darwin        => session
        /usr/local/bin/codex-x86_64-unknown-linux-gnu                          => session
        /mnt/c/tools/codex.exe                                                 => session
        node /n/node_modules/.bin/codex resume {id}                            => launcher names {id}
        node /usr/local/bin/codex                                              => launcher
        node /n/@openai/codex/bin/codex.js                                     => launcher
        /home/dev/.bun/bin/bun /home/dev/.bun/bin/codex                        => launcher
        codex --codex-run-as-apply-patch x                                     => none
        /home/x/codex/bin/server                                               => none
        codex-squad                                                            => none
        codexd                                                                 => none
        bash codex                                                             => none
        node /home/x/my/codex.js                                               => none
        node /home/x/codex/server.js                                           => none
        node /home/x/codex                                                     => none
        python3 -m codex                                                       => none
        ",
    );
    for tool in TOOL_NAMES {
        let argv = [&*format!("/home/dev/.codex/tmp/arg0/{tool}"), "x"];
        let tool = started_by(VENDOR).argv(&argv);
        assert_eq!(PROGRAMS.recognize(&program_of(&tool)), None, "{argv:?}");
    }
}

#[test]
fn commands() {
    check_commands(
        &PROGRAMS,
        "
        codex fix_the_bug                                   => session
        codex --model exec fix                              => session
        codex -c a=b -- exec                                => session
        codex resume                                        => session
        codex resume --last                                 => session
        codex resume my_thread                              => session
        codex -m gpt-5 resume --all {id}                    => session names {id}
        codex resume --cd=./sub {id}                        => session names {id} in /w/app/sub
        codex fork {id}                                     => session forks {id}
        codex fork --last                                   => session
        codex {id}                                          => session
        codex exec say_hi                                   => session headless
        codex exec --cd /x hi                               => session headless in /x
        codex exec resume {id} go_on                        => session headless names {id}
        codex resume -- {id}                                => session names {id}
        codex -- resume {id}                                => session
        codex exec --json resume --last                     => session headless
        codex --disable daemon_auto_start e hi              => session headless
        codex review                                        => session headless
        codex app-server {id}                               => host
        codex app-server --listen unix:// --managed-daemon  => host
        codex -c x=1 app-server --analytics-default-enabled => host
        codex mcp-server                                    => host headless
        codex app-server daemon pid-update-loop             => auxiliary
        codex app-server proxy                              => auxiliary
        codex login                                         => auxiliary
        codex mcp list                                      => auxiliary
        ",
    );
}

#[test]
fn the_arguments_of_a_host_have_the_place_where_it_listens() {
    let home = Path::new("/home/dev/.codex");
    let socket = "/home/dev/.codex/app-server-control/app-server-control.sock";
    for (command, right) in [
        (
            "codex app-server --listen unix:// --managed-daemon",
            Some(socket),
        ),
        (
            "codex app-server --listen=unix:///run/c.sock",
            Some("/run/c.sock"),
        ),
        (
            "codex app-server --listen ws://127.0.0.1:4500?token=x",
            Some("ws://127.0.0.1:4500"),
        ),
        ("codex app-server --listen stdio://", None),
        ("codex app-server", None),
    ] {
        let found = endpoint(&program_of(&started_by(command)), home);
        assert_eq!(found.as_deref(), right, "{command}");
    }
}
