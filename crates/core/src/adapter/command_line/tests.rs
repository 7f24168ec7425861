//! A made-up agent with all features, which no real agent has.

use whosup_process::{Absent, RecordedProcess};

use super::*;
use crate::sources::agents::kit::program_tests::{
    ID, check_commands, described, program_of, started_by,
};

static AGENT: CommandLine = CommandLine {
    programs: &[
        (Is::Launcher, &[Form::Script("@maker/agent/start.js")]),
        (
            Is::ByArguments,
            &[
                Form::Executable("agent"),
                Form::Executable("agent-x86_64-*"),
                Form::Executable("agent/versions/#"),
                Form::NodeExecutable("agent-in-node"),
                Form::Script("bin/agent"),
                Form::Title("The Agent"),
                Form::CommonTitle("ag"),
            ],
        ),
        (Is::Host, &[Form::Executable("agent-server")]),
        (Is::Auxiliary, &[Form::Title("agent-worker")]),
    ],
    packed: &["agent-exe"],
    is_another: |program| program.has_argument("--as-tool"),
    commands_follow_options: true,
    options_with_value: &["--model", "--cd", "-s", "-C"],
    commands: &[
        (Role::Auxiliary, &["login", "serve stop"]),
        (Role::Host, &["serve"]),
    ],
    options: &[
        (Role::Auxiliary, &["--version"]),
        (Role::Client, &["--attach", "--as=client"]),
    ],
    session: &[
        Named::WordAfter("resume"),
        Named::WordAfter("run resume"),
        Named::OptionOf("run", &["-s"]),
        Named::Option(&["--resume", "-r"]),
    ],
    id_in: |by, word| (by != "resume" || word == ID).then_some(word),
    forks: &["--fork"],
    continues: &["--continue", "-c"],
    headless: &["run", "-p"],
    attended: &["--form=editor"],
    directory: &["--cd", "-C"],
    ..CommandLine::NONE
};

#[test]
fn forms() {
    check_commands(
        &AGENT,
        "
        node [The Agent]                                            => session
        agent-exe [The Agent]                                       => session
        node [agent-worker]                                         => auxiliary
        node [Another]                                              => none
        python3 [The Agent]                                         => none
        node [ag]                                                   => session
        agent-exe [ag]                                              => session
        python3 [ag]                                                => none
        agent                                                       => session
        /opt/agent.exe                                              => session
        /opt/agent-x86_64-linux                                     => session
        /opt/agent/versions/2.1.197                                 => session
        /opt/agent/versions/notes                                   => none
        agent --as-tool x                                           => none
        agent-in-node                                               => none
        agent-server                                                => host
        agent-server -p x                                           => host headless
        agent-server --version                                      => auxiliary
        agent-exe                                                   => none
        node /w/node_modules/.bin/agent                             => session
        /opt/node24/bin/node24 --max=1 -r /x/hook.js /usr/bin/agent => session
        node /n/@maker/agent/start.js login                         => launcher
        node -e /usr/bin/agent                                      => none
        python3 /usr/bin/agent                                      => none
        /usr/bin/vim agent                                          => none
        ",
    );
    let in_node = started_by("agent-in-node").comm(NODE_MAIN_THREAD);
    assert_eq!(described(&AGENT, &in_node), "session");
}

#[test]
fn forms_of_python() {
    let programs: &[(Is, &[Form])] = &[(
        Is::ByArguments,
        &[
            Form::Script("bin/agent"),
            Form::Module("agent_cli"),
            Form::Title("The Agent"),
        ],
    )];
    let agent = CommandLine {
        runtime: Runtime::Python,
        programs,
        session: &[Named::Option(&["-r"])],
        ..CommandLine::NONE
    };
    check_commands(
        &agent,
        "
        python3 [The Agent]                    => session
        node [The Agent]                       => none
        python3 -u -X dev /usr/bin/agent       => session
        python3.13 -I -m agent_cli -r x        => session names x
        python3 -m http.server /usr/bin/agent  => none
        python3 -c print() /usr/bin/agent      => none
        node /usr/bin/agent                    => none
        ",
    );
}

#[test]
fn arguments() {
    check_commands(
        &AGENT,
        "
        agent fix_it login                => session
        agent --model login               => session
        agent --model x login             => auxiliary
        agent --resume --model x login    => auxiliary
        agent --resume login              => session names login
        agent -- login --version --attach => session
        agent serve --attach=url          => client
        agent login --attach              => auxiliary
        agent --as client                 => client
        agent --as server                 => session
        agent serve                       => host
        agent serve stop                  => auxiliary
        agent -c                          => session continues
        agent run x                       => session headless
        agent run --form editor x         => session
        agent resume {id}                 => session names {id}
        agent resume -C lib/../x {id}     => session names {id} in /w/app/x
        agent resume other -r x           => session
        agent resume --last               => session
        agent run resume x                => session headless names x
        agent run -s x -r y               => session headless names x
        agent run -r y                    => session headless
        agent -s x                        => session
        agent -r x --cd=/y/.              => session names x in /y
        agent -r x --fork                 => session forks x
        agent -rx                         => session names x
        agent -cr x --fork                => session continues forks x
        agent -vcrx login                 => auxiliary continues
        agent -sr login                   => auxiliary
        agent -pC lib                     => session headless in /w/app/lib
        agent -r x --resume y             => session names y
        agent --resume x -ry              => session names y
        agent -r x --resume               => session
        agent -r x -- -r y -c             => session names x
        agent -- -r y                     => session
        agent resume -- {id}              => session names {id}
        agent -- resume {id}              => session
        agent run -- resume x             => session headless
        agent -r -x                       => session
        agent login -r x                  => auxiliary
        agent-server -r x                 => host
        node -r hook /usr/bin/agent       => session
        node /usr/bin/agent serve         => host
        ",
    );
}

#[test]
fn where_options_and_values_look_alike_only_the_first_argument_is_a_subcommand() {
    let programs: &[(Is, &[Form])] = &[(Is::ByArguments, &[Form::Executable("agent")])];
    let agent = CommandLine {
        programs,
        commands: &[
            (Role::Auxiliary, &["login", "--tool"]),
            (Role::Host, &["serve"]),
        ],
        role_of_other_command: Some(Role::Client),
        ..CommandLine::NONE
    };
    check_commands(
        &agent,
        "
        agent login           => auxiliary
        agent --tool x        => auxiliary
        agent --model x login => client
        agent serve --tool    => host
        agent                 => session
        ",
    );
}

fn hidden(mut process: RecordedProcess) -> RecordedProcess {
    process.details.exe = Err(Absent::PermissionDenied);
    process
}

#[test]
fn without_an_executable_the_kernels_name_has_to_agree_with_the_arguments() {
    let check = |process: RecordedProcess, right: &str| {
        assert_eq!(described(&AGENT, &hidden(process)), right);
    };
    check(started_by("agent login"), "auxiliary");
    check(started_by("agent").comm("agent-x86_64-li"), "session");
    check(started_by("agent").comm(NODE_MAIN_THREAD), "session");
    check(started_by("agent").comm(".agent-wrapped"), "session");
    check(started_by("agent").comm("bash"), "none");
    check(started_by("prog").comm("agent"), "none");
    check(started_by("node /usr/bin/agent"), "session");
    check(started_by("node /usr/bin/other").comm("agent"), "none");
    check(started_by("node").title("The Agent"), "session");
    check(started_by("node").title("ag"), "none");
}

#[test]
fn without_arguments_it_is_what_keeps_all_that_it_holds() {
    let mut process = started_by("agent");
    process.details.argv = Err(Absent::PermissionDenied);
    assert_eq!(described(&AGENT, &process), "host");
    assert_eq!(described(&AGENT, &hidden(process)), "none");
}

#[test]
fn arguments_that_are_not_utf_8_are_values_like_others() {
    use std::os::unix::ffi::OsStringExt as _;
    let mut process = started_by("agent -C x run");
    process.details.argv.as_mut().unwrap()[2] = OsString::from_vec(vec![0xff]);
    assert_eq!(described(&AGENT, &process), "session headless");
}

#[test]
fn a_relative_directory_is_unknown_where_the_process_may_have_gone_there() {
    let agent = CommandLine {
        may_change_directory: true,
        directory: &["--cd"],
        programs: AGENT.programs,
        ..CommandLine::NONE
    };
    check_commands(
        &agent,
        "
        agent --cd lib     => session
        agent --cd /w/lib/ => session in /w/lib
        ",
    );
    let mut lost = started_by("agent --cd lib -r x");
    lost.details.cwd = Err(Absent::PermissionDenied);
    assert_eq!(AGENT.directory(&program_of(&lost)), None);
}

#[test]
fn names_are_those_of_executables_scripts_and_titles() {
    let names: Vec<&str> = AGENT.names().collect();
    let right = [
        "agent",
        "agent-in-node",
        "agent",
        "The Agent",
        "ag",
        "agent-server",
        "agent-worker",
        "agent-exe",
    ];
    assert_eq!(names, right);
    for name in [
        "agent",
        "agent.exe",
        "2.1.197",
        "agent-x86_64-li",
        ".agent-wrapped",
        ".agent-in-node-",
        "The Agent",
    ] {
        assert!(AGENT.may_be_called(name), "{name}");
    }
    for name in ["node", "start.js", "agent-", "2.1", ""] {
        assert!(!AGENT.may_be_called(name), "{name}");
    }
}

/// An option that was not read may follow: a fork serves another session than the one it names.
#[test]
fn what_follows_in_arguments_that_were_cut_may_be_a_fork() {
    let mut process = started_by("agent --model m -r {id}");
    assert_eq!(AGENT.session(&program_of(&process)), Some(ID));
    process.details.is_argv_cut = true;
    assert_eq!(AGENT.session(&program_of(&process)), None);
    assert_eq!(AGENT.recognize(&program_of(&process)), Some(Role::Session));
    let mut forking = started_by("agent -r {id} --fork");
    forking.details.is_argv_cut = true;
    assert_eq!(AGENT.forked_session(&program_of(&forking)), Some(ID));
}
