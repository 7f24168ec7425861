//! Hooks that are killed at any point of their work.

use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::time::{Duration, Instant};

use serde_json::json;

use super::chance::Chance;
use super::hooks_input::hook_of;
use super::shell_agent::{event, file_of, record_of};
use super::world::{World, said};

/// How many hooks are killed while they work; `WHOSUP_KILLS` overrides it.
const KILLED: u64 = 1_000;
/// How many hooks may be started for each kill: some finish before.
const TRIES_EACH_MAX: u64 = 20;
/// The sessions that they report, in turn.
const SESSIONS: u64 = 20;
/// How many hooks are timed.
const MEASURED: u32 = 9;
/// The signal that can't be caught.
const SIGKILL: i32 = 9;

/// A number that the environment may set.
fn number(variable: &str, otherwise: u64) -> u64 {
    let set = std::env::var(variable).ok();
    set.map_or(otherwise, |text| text.parse().unwrap())
}

/// Starts a hook, and writes to it the whole event of a turn of a session.
fn start_hook(world: &World, session: &str) -> std::process::Child {
    let mut hook = hook_of(world);
    let hook_event = event(world, session, "UserPromptSubmit", json!({"prompt": "p"}));
    let mut stdin = hook.stdin.take().unwrap();
    stdin.write_all(hook_event.to_string().as_bytes()).unwrap();
    hook
}

/// The usual time of a hook: the second longest of several.
fn usual_time(world: &World) -> Duration {
    let mut times: Vec<Duration> = (0..MEASURED)
        .map(|_| {
            let began = Instant::now();
            assert!(start_hook(world, &world.s2).wait().unwrap().success());
            began.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[times.len() - 2]
}

/// How many lines of a session's log are whole, and how many are torn: SIGKILL may cut a write
/// at the border of a page. The rest is the start of an event, on a line of its own.
fn lines_of(world: &World, session: &str) -> (usize, usize) {
    let text = std::fs::read_to_string(file_of(world, session, "jsonl")).unwrap();
    let lines = text.lines().filter(|line| !line.is_empty());
    let is_whole = |line: &&str| serde_json::from_str::<serde_json::Value>(line).is_ok();
    let (whole, torn): (Vec<&str>, Vec<&str>) = lines.partition(is_whole);
    for line in &torn {
        let error = serde_json::from_str::<serde_json::Value>(line).unwrap_err();
        assert!(line.starts_with('{') && error.is_eof(), "{error}: {line}");
    }
    (whole.len(), torn.len())
}

#[test]
fn hooks_that_are_killed_leave_whole_lines_right_records_and_no_stuck_lock() {
    let world = World::new();
    let wanted = number("WHOSUP_KILLS", KILLED);
    let seed = number("WHOSUP_SEED", u64::from(std::process::id()));
    eprintln!("WHOSUP_SEED={seed}");
    let mut chance = Chance::of_seed(seed);
    let session = |number: u64| format!("0a{:06x}{}", number % SESSIONS, &world.s1[8..]);
    let longest = u64::try_from(usual_time(&world).as_micros()).unwrap();
    let (mut killed, mut done) = (0, 0);
    let began = Instant::now();
    while killed < wanted {
        assert!(
            killed + done < wanted * TRIES_EACH_MAX,
            "{done} were done before"
        );
        let mut hook = start_hook(&world, &session(killed + done));
        let until = Instant::now() + Duration::from_micros(chance.below(longest));
        while Instant::now() < until {
            std::thread::yield_now();
        }
        hook.kill().unwrap();
        let status = hook.wait().unwrap();
        if status.signal() == Some(SIGKILL) {
            killed += 1;
        } else {
            assert!(status.success(), "{status}");
            done += 1;
        }
    }
    let took = began.elapsed();

    // The next reader repairs what it reads, and the next hook what is on disk.
    let answer = world.run(["list", "--all", "--json"]);
    assert_eq!(answer.status, 0, "{}", answer.err);
    let home = world.home();
    let is_ours =
        |problem: &serde_json::Value| problem.to_string().contains(home.to_str().unwrap());
    let problems = answer.json()["problems"].as_array().unwrap().clone();
    let problems: Vec<_> = problems.into_iter().filter(is_ours).collect();
    assert_eq!(problems, [json!(null); 0]);
    let listed = answer.sessions();
    let (mut lines, mut torn, mut behind) = (0, 0, 0);
    for number in 0..SESSIONS.min(killed + done) {
        let session = session(number);
        let log = file_of(&world, &session, "jsonl");
        if log.exists() {
            let (whole, cut) = lines_of(&world, &session);
            lines += whole;
            torn += cut;
            let record = std::fs::read(file_of(&world, &session, "json")).ok();
            let record = record.and_then(|text| serde_json::from_slice(&text).ok());
            let turns = record.map_or(json!(0), |record: serde_json::Value| {
                record["turns"].clone()
            });
            behind += usize::from(turns != whole);
            let row = listed.iter().find(|row| row["session_id"] == *session);
            // It may have been killed before it wrote to its new log.
            assert_eq!(row.is_some(), whole > 0, "{session}");
        }
        let stop = event(&world, &session, "Stop", json!({})).to_string();
        let mut last = world.whosup();
        let answer = said(last.args(["hook", "claude-code"]).write_stdin(stop));
        assert_eq!((answer.status, answer.err.as_str()), (0, ""));
        let (whole, _) = lines_of(&world, &session);
        let record = record_of(&world, &session);
        assert_eq!(record["turns"], whole - 1, "{session}");
        assert_eq!(record["phase"], "idle");
        let size = std::fs::metadata(&log).unwrap().len();
        assert_eq!(record["log_bytes"], size);
    }
    eprintln!(
        "{killed} killed, {done} done before, in {took:?}; {lines} lines, {torn} torn, {behind} records behind"
    );
    let started = usize::try_from(killed + done).unwrap();
    assert!(torn <= usize::try_from(killed).unwrap());
    assert!(lines + torn <= started && lines >= usize::try_from(done).unwrap());
}
