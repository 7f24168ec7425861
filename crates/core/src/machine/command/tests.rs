use super::*;

/// How long a run may take on a busy machine; must be less than the minute that its child
/// takes.
const SOON: Duration = Duration::from_secs(30);

fn run(line: &str, time_max: Duration) -> Result<CommandOutput, CommandError> {
    let args = ["-c", line].map(OsString::from);
    SystemCommands.run("sh", &args, Instant::now() + time_max)
}

#[test]
fn a_process_that_holds_the_output_of_an_ended_command_is_not_waited_for() {
    let began = Instant::now();
    let output = run("sleep 60 & echo $! >&2; echo written", SOON).unwrap();
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    assert!(output.is_success);
    assert_eq!(output.stdout, b"written\n");
    // Only the command itself is killed, so the test ends this process.
    let child = String::from_utf8(output.stderr).unwrap();
    let child = child.trim();
    assert!(
        std::path::Path::new(&format!("/proc/{child}")).exists() || cfg!(not(target_os = "linux"))
    );
    let ended = Command::new("kill").arg(child).status().unwrap();
    assert!(ended.success());
}

#[test]
fn a_command_that_does_not_end_is_stopped_in_time() {
    let began = Instant::now();
    let time_max = Duration::from_millis(200);
    let error = run("exec sleep 60", time_max).unwrap_err();
    assert!(matches!(error, CommandError::TimedOut { .. }), "{error}");
    assert!(began.elapsed() >= time_max && began.elapsed() < SOON);
}

#[test]
fn all_output_is_read_up_to_the_bound() {
    let output = run(
        "head -c 300000 /dev/zero; head -c 70000 /dev/zero >&2",
        SOON,
    )
    .unwrap();
    assert_eq!(
        (output.stdout.len(), output.stderr.len()),
        (300_000, 70_000)
    );
    // A program that writes without end finds the pipe closed.
    let output = run("yes 2>/dev/null; echo over >&2", SOON).unwrap();
    assert_eq!(output.stdout.len(), COMMAND_OUTPUT_BYTES_MAX);
    assert_eq!(output.stderr, b"over\n");
}

#[test]
fn a_program_that_is_not_there_is_not_installed() {
    let error = SystemCommands.run("no-such-program", &[], Instant::now() + SOON);
    assert!(matches!(error, Err(CommandError::NotFound { .. })));
}
