//! Processes that have begun after everything.

use super::*;

/// Options that take up a session, and the arguments that they have.
fn without_sessions(argv: &Value) -> Value {
    const OPTIONS: &[&str] = &[
        "--resume",
        "--continue",
        "--session",
        "--session-id",
        "--fork-session",
        "--fork",
        "--id",
        "--chat",
        "-r",
        "-c",
        "-C",
        "-s",
        "resume",
        "fork",
        "attach",
        "--acp",
        "--experimental-acp",
        "--list-sessions",
    ];
    let is_option = |argument: &str| {
        let name = argument.split('=').next().unwrap_or_default();
        OPTIONS.contains(&name)
    };
    let Some(arguments) = argv.as_array() else {
        return argv.clone();
    };
    let kept = arguments
        .iter()
        .take_while(|argument| !is_option(argument.as_str().unwrap()));
    kept.cloned().collect()
}

/// A new session was shown with the transcript of the session before it in the
/// same directory (agent-deck#959, herdr#454, herdr#4104).
#[test]
fn processes_that_have_just_begun_have_no_session_of_those_before_them() {
    const LATER_S: i64 = 2 * 60 * 60;
    let change = |world: &mut Value| {
        let then_ms = time_ms(world["now"].as_str().unwrap());
        shift(&mut world["now"], LATER_S);
        world["panes"] = json!([]);
        each_process(world, |process| {
            let began_ms = time_ms(process["began"].as_str().unwrap());
            let later_s = (then_ms - began_ms) / 1000 + LATER_S - 60;
            let start = process["start"].as_i64().unwrap();
            process["start"] = json!(start + later_s * 100);
            shift(&mut process["began"], later_s);
            process["holds"] = json!([]);
            if process.get("argv").is_some() {
                process["argv"] = without_sessions(&process["argv"]);
            }
        });
    };
    check_all(change, |answers| {
        let live = answers.after.iter().filter(|(_, row)| row.is_live());
        live.map(|(key, row)| format!("{key}: {row:?}")).collect()
    });
}
