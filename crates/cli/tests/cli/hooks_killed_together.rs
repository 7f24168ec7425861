//! Hooks that are killed while others report the same session, or while a long log is
//! shortened.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use whosup_core::sources::record::{StoredRecord, read_records};

use super::chance::Chance;
use super::shell_agent::{event, file_of, record_of};
use super::world::{WHOSUP, World, wait_for};

/// How many hooks are killed; `WHOSUP_KILLS` overrides it.
const KILLS: usize = 250;
/// How many hooks run at once at most.
const AT_ONCE: usize = 3;
/// How many sessions they report.
const SESSIONS: usize = 8;
/// How many rounds are run between two checks.
const ROUNDS_BETWEEN_CHECKS: usize = 4;
/// After how many kills hooks meet at another session.
const MEETINGS: usize = 50;
/// How many hooks run to their end, to measure the time.
const MEASURED: usize = 5;
/// In one of so many rounds, a log is so long that the next hook shortens it.
const LONG_ONE_IN: usize = 8;
/// A log that is longer, in bytes, is shortened.
const LONG_BYTES: usize = 1 << 20;
/// The length of each line that makes a log long.
const LONG_LINE_BYTES: usize = 16 * 1024;
/// The start of such a line.
const PASSED_OVER: &str = "{\"passed over\":\"";
/// How many hooks are started for each kill.
const TRIES_EACH: usize = 20;
const SIGKILL: i32 = 9;

/// What became of the hooks.
#[derive(Debug, Default)]
struct Tally {
    /// Ended by the kill.
    killed: usize,
    /// Of these, had written their event, as far as that can be known.
    killed_late: usize,
    /// Had exited before.
    ended: usize,
    /// How often a log was made long.
    long: usize,
}

struct Stage<'w> {
    world: &'w World,
    sessions: Vec<String>,
    payloads: Vec<PathBuf>,
    /// The turns of each session, at the last read.
    turns: Vec<u64>,
    /// The torn lines of each log, at the last count.
    cut_off: Vec<usize>,
}

#[test]
fn killed_hooks_lose_no_events_of_other_hooks() {
    let world = World::new();
    let mut stage = Stage::new(&world);
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse().unwrap());
    let kills: usize = number("WHOSUP_KILLS").unwrap_or(KILLS);
    let seed = number("WHOSUP_SEED").unwrap_or_else(|| std::process::id() as usize);
    eprintln!("WHOSUP_SEED={seed}");
    let mut chance = Chance::of_seed(seed.try_into().unwrap());
    let mut span = stage.span();
    let mut tally = Tally::default();
    let began = Instant::now();
    while tally.killed < kills {
        let tries = tally.killed + tally.ended;
        assert!(tries < kills * TRIES_EACH, "{tally:?} within {span:?}");
        let killed_before = tally.killed;
        let ended: Vec<_> = (0..ROUNDS_BETWEEN_CHECKS)
            .flat_map(|_| stage.round(&mut chance, span, &mut tally))
            .collect();
        stage.check(&ended, &mut tally);
        // The machine may be faster or slower now.
        let are_most_killed = (tally.killed - killed_before) * 3 > ended.len() * 2;
        span = span * if are_most_killed { 103 } else { 97 } / 100;
    }
    eprintln!(
        "{tally:?} in {:?}, last within {span:?} of their start",
        began.elapsed()
    );
    // Before and after the critical time.
    assert!(tally.killed_late > kills / 50, "{tally:?}");
    assert!(tally.killed - tally.killed_late > kills / 50, "{tally:?}");
    stage.check_at_the_end();
}

impl<'w> Stage<'w> {
    fn new(world: &'w World) -> Self {
        let sessions: Vec<String> = (0..SESSIONS)
            .map(|number| format!("{number:02x}{}", &world.s1[2..]))
            .collect();
        let payloads = sessions.iter().map(|session| {
            let hook_event = event(world, session, "UserPromptSubmit", json!({"prompt": "p"}));
            world.write(&format!("event-{session}"), hook_event.to_string())
        });
        Self {
            world,
            payloads: payloads.collect(),
            turns: vec![0; sessions.len()],
            cut_off: vec![0; sessions.len()],
            sessions,
        }
    }

    /// How long an undisturbed hook takes: the longest of several.
    fn span(&mut self) -> Duration {
        let mut longest = Duration::ZERO;
        for _ in 0..MEASURED {
            let began = Instant::now();
            let status = self.start(0).wait().unwrap();
            assert!(status.success());
            longest = longest.max(began.elapsed());
            self.turns[0] += 1;
        }
        longest
    }

    fn start(&self, session: usize) -> Child {
        Command::new(WHOSUP)
            .args(["hook", "claude-code"])
            .env_clear()
            .env("HOME", self.world.home())
            .current_dir(self.world.work_dir())
            .stdin(File::open(&self.payloads[session]).unwrap())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// Starts some hooks, and kills each within `span`. Returns the session that each reported, and
    /// how it ended.
    fn round(
        &self,
        chance: &mut Chance,
        span: Duration,
        tally: &mut Tally,
    ) -> Vec<(usize, ExitStatus)> {
        // The next hooks shorten it, until one runs to its end.
        let mut long = (0..SESSIONS).find(|session| self.is_long(*session));
        if long.is_none() && chance.index(LONG_ONE_IN) == 0 {
            long = Some(chance.index(SESSIONS)).filter(|session| self.make_long(*session));
            tally.long += usize::from(long.is_some());
        }
        let meeting = tally.killed / MEETINGS % SESSIONS;
        let micros = usize::try_from(span.as_micros()).unwrap().max(1);
        let mut hooks: Vec<_> = (0..=chance.index(AT_ONCE))
            .map(|_| {
                let any = chance.index(SESSIONS * 2);
                // Half of them meet at one session.
                let session = if any < SESSIONS { any } else { meeting };
                let session = long.take().unwrap_or(session);
                let hook = self.start(session);
                let after = u64::try_from(chance.index(micros)).unwrap();
                (Instant::now() + Duration::from_micros(after), session, hook)
            })
            .collect();
        hooks.sort_by_key(|(at, ..)| *at);
        hooks
            .into_iter()
            .map(|(at, session, mut hook)| {
                std::thread::sleep(at.saturating_duration_since(Instant::now()));
                hook.kill().unwrap();
                (session, hook.wait().unwrap())
            })
            .collect()
    }

    fn log_of(&self, session: usize) -> PathBuf {
        file_of(self.world, &self.sessions[session], "jsonl")
    }

    fn is_long(&self, session: usize) -> bool {
        let log = std::fs::metadata(self.log_of(session));
        log.is_ok_and(|log| log.len() > u64::try_from(LONG_BYTES).unwrap())
    }

    /// Makes a log so long that the next hook of the session shortens it.
    fn make_long(&self, session: usize) -> bool {
        let Ok(mut log) = File::options().append(true).open(self.log_of(session)) else {
            return false;
        };
        let line = format!("{PASSED_OVER}{}\"}}\n", "x".repeat(LONG_LINE_BYTES));
        let lines = line.repeat(LONG_BYTES / LONG_LINE_BYTES);
        std::io::Write::write_all(&mut log, lines.as_bytes()).unwrap();
        true
    }

    /// No event of a hook that finished is lost or counted twice.
    fn check(&mut self, ended: &[(usize, ExitStatus)], tally: &mut Tally) {
        let is_killed = |status: &ExitStatus| status.signal() == Some(SIGKILL);
        let now = self.turns_now();
        for (at, turns) in now.into_iter().enumerate() {
            let of_it = ended.iter().filter(|(session, _)| *session == at);
            let (killed, lived): (Vec<_>, Vec<_>) = of_it.partition(|(_, how)| is_killed(how));
            assert!(lived.iter().all(|(_, how)| how.success()), "{lived:?}");
            let least = self.turns[at] + u64::try_from(lived.len()).unwrap();
            let most = least + u64::try_from(killed.len()).unwrap();
            let session = &self.sessions[at];
            assert!(
                (least..=most).contains(&turns),
                "{session}: {turns} turns, not {least} to {most}: {tally:?}"
            );
            tally.killed += killed.len();
            tally.ended += lived.len();
            tally.killed_late += usize::try_from(turns - least).unwrap();
            self.turns[at] = turns;
            if !killed.is_empty() {
                let cut_off = check_files(self.world, session);
                let cut_off_at_most = self.cut_off[at] + killed.len();
                assert!(
                    cut_off <= cut_off_at_most,
                    "{session}: {cut_off} lines cut off"
                );
                self.cut_off[at] = cut_off;
            }
        }
    }

    /// What a reader sees, without any repair.
    fn turns_now(&self) -> Vec<u64> {
        let read = read_records(&root(self.world), |_| true);
        assert_eq!(read.problems, []);
        let turns = |stored: StoredRecord| {
            let session = stored.record.session.as_str().to_owned();
            (session, stored.record.heard.turns)
        };
        let turns: BTreeMap<String, u64> = read.found.into_iter().map(turns).collect();
        let of = |session: &String| turns.get(session).copied().unwrap_or_default();
        self.sessions.iter().map(of).collect()
    }

    /// One more hook repairs each record.
    fn check_at_the_end(&mut self) {
        for (session, turns) in self.sessions.iter().zip(&self.turns) {
            let stop = event(self.world, session, "Stop", json!({}));
            let mut hook = self.world.whosup();
            let hook = hook.args(["hook", "claude-code"]);
            hook.write_stdin(stop.to_string()).assert().success();
            let record = record_of(self.world, session);
            assert_eq!(record["turns"], *turns, "{record}");
            assert_eq!(record["phase"], "idle", "{record}");
            let log = std::fs::metadata(file_of(self.world, session, "jsonl")).unwrap();
            assert_eq!(record["log_bytes"], log.len(), "{record}");
            assert!(!file_of(self.world, session, "old").exists());
            let lock = File::open(file_of(self.world, session, "lock")).unwrap();
            wait_for("the lock", || lock.try_lock().ok());
        }
        let problems = self.world.home().join(".local/state/whosup/hook.log");
        assert!(
            !problems.exists(),
            "{}",
            std::fs::read_to_string(problems).unwrap()
        );
    }
}

fn root(world: &World) -> PathBuf {
    world.home().join(".local/state/whosup/sessions")
}

/// The record is intact, and so is every line of the log except those counted: a kill can end a
/// write between two pages, which leaves a line of its own.
fn check_files(world: &World, session: &str) -> usize {
    let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    let is_whole = |text: &str| serde_json::from_str::<Value>(text).is_ok();
    let record = read(&file_of(world, session, "json"));
    assert!(
        record.is_empty() || is_whole(&record),
        "{session}: {record}"
    );
    let log = read(&file_of(world, session, "jsonl"));
    let is_event = |line: &&str| !line.is_empty() && !line.starts_with(PASSED_OVER);
    let cut_off = log.lines().filter(is_event).filter(|line| !is_whole(line));
    cut_off
        .inspect(|line| assert!(line.starts_with('{'), "{session}: {line}"))
        .count()
}
