//! The server: how soon it says what happened, and what it costs while nothing does.

mod client;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use self::client::{Server, Stream};
use crate::measure::{Measure, Sample, Series, milliseconds};
use crate::outcome::{Bound, Goal, Outcome};
use crate::setting::{Setting, peers};
use crate::world::{Plan, World};

const DEAD: usize = 1_000;
const VERY_MANY_DEAD: usize = 100_000;
const LIVE: [usize; 4] = [14, 12, 12, 12];
const FEW_LIVE: [usize; 4] = [5, 5, 5, 5];
/// How long a client waits for an event that must come.
const EVENT_TIME_MAX: Duration = Duration::from_secs(10);
/// How long nothing happens before something does: what came before is over then.
const REST: Duration = Duration::from_millis(300);
/// How long it takes until all launches have been looked at.
const SETTLE: Duration = Duration::from_secs(5);
const RENAMES: usize = 100;
const CLIENTS: usize = 200;
const CHANGES_A_SECOND: usize = 100;
const STATES: usize = 500;

fn world(setting: &Setting, dead: usize, live: [usize; 4]) -> anyhow::Result<World> {
    let quarter = setting.count(dead).div_ceil(4);
    let plan = Plan {
        sizes: vec![[quarter; 4]],
        live,
        has_transcripts: true,
        is_beside: true,
    };
    World::make(setting, plan)
}

fn sample(took: Duration) -> Sample {
    Sample {
        wall_ms: milliseconds(took),
        cpu_ms: 0.0,
        peak_kib: 0,
    }
}

fn at_most(text: impl Into<String>, measured: f64, bound: f64, unit: &'static str) -> Goal {
    Goal {
        text: text.into(),
        measured,
        bound: Bound::AtMost(bound),
        unit,
    }
}

/// How soon a client reads that a process was killed.
pub(crate) fn death(setting: &Setting) -> anyhow::Result<Outcome> {
    let mut world = world(setting, DEAD, LIVE)?;
    let server = Server::start(setting, &world.home())?;
    let mut stream = Stream::open(&server)?;
    stream.until(EVENT_TIME_MAX, |line| {
        line.contains("\"kind\":\"snapshot\"")
    })?;
    std::thread::sleep(SETTLE);
    let mut series = Series::new("SIGKILL of an owner to the byte at the client");
    let sessions: BTreeMap<i32, String> = world
        .live()
        .iter()
        .map(|(id, pid)| (*pid, id.clone()))
        .collect();
    let mut alone =
        Series::new("SIGKILL to the line of a Python that waits for that process alone");
    let mut poses = world.take_processes();
    let mut unseen = 0_u32;
    for process in &mut poses.0 {
        setting.go_on()?;
        alone.samples.push(sample(death_alone(setting)?));
        let id = &sessions[&i32::try_from(process.id())?];
        stream.rest(REST)?;
        let began = Instant::now();
        process.kill()?;
        let seen = stream.until(EVENT_TIME_MAX, |line| {
            line.contains(id.as_str()) && line.contains("exited")
        });
        match seen {
            Ok(at) => series
                .samples
                .push(sample(at.saturating_duration_since(began))),
            Err(_) => unseen += 1,
        }
        process.wait()?;
    }
    let goals = vec![
        at_most(
            "death to the byte, median",
            series.median(Measure::Wall),
            1.0,
            "ms",
        ),
        at_most(
            "death to the byte, 99 %",
            series.percentile(Measure::Wall, 99),
            10.0,
            "ms",
        ),
        at_most(
            "deaths that were not seen in time",
            f64::from(unseen),
            0.0,
            "deaths",
        ),
    ];
    Ok(Outcome {
        name: "death",
        about: format!(
            "{} sessions are live and {} dead ones on disk. Each owner is killed in turn, a client \
             reads the stream of `whosup serve`. Before each, a Python reports the death of a single \
             process that it waits for.",
            LIVE.iter().sum::<usize>(),
            setting.count(DEAD)
        ),
        series: vec![series, alone],
        goals,
        ..Outcome::default()
    })
}

/// How soon a Python that waits for one process, which it need not find, reports its death.
fn death_alone(setting: &Setting) -> anyhow::Result<Duration> {
    let mut sleeper = Ended(Command::new("sleep").arg("600").spawn()?);
    let mut peer = python(setting);
    peer.arg(peers().join("waiting.py"));
    peer.arg(sleeper.0.id().to_string());
    peer.stdin(Stdio::null()).stdout(Stdio::piped());
    let peer = peer.spawn().context("cannot start Python: see `--python`");
    let mut peer = Ended(peer?);
    let mut lines = BufReader::new(peer.0.stdout.take().context("no output")?).lines();
    let mut expect = |expected: &str| match lines.next() {
        Some(Ok(line)) if line == expected => Ok(Instant::now()),
        other => bail!("`waiting.py` printed {other:?}, not `{expected}`"),
    };
    expect("waiting")?;
    std::thread::sleep(REST);
    let began = Instant::now();
    sleeper.0.kill()?;
    Ok(expect("exited")?.saturating_duration_since(began))
}

fn python(setting: &Setting) -> Command {
    let python = setting.python.clone();
    Command::new(python.unwrap_or_else(|| "python3".into()))
}

/// How soon a client reads that a record was renamed into place.
pub(crate) fn rename(setting: &Setting) -> anyhow::Result<Outcome> {
    let world = world(setting, DEAD, LIVE)?;
    let server = Server::start(setting, &world.home())?;
    let mut stream = Stream::open(&server)?;
    stream.until(EVENT_TIME_MAX, |line| {
        line.contains("\"kind\":\"snapshot\"")
    })?;
    std::thread::sleep(SETTLE);
    let mut series = Series::new("rename of a record to the byte at the client");
    let records = world.claude_records()?;
    for round in 0..setting.rounds(RENAMES) {
        setting.go_on()?;
        let (id, path) = &records[round % records.len()];
        let status = ["busy", "idle"][round / records.len() % 2];
        let phase = ["working", "idle"][round / records.len() % 2];
        stream.rest(REST)?;
        let began = turn(path, status)?;
        let at = stream.until(EVENT_TIME_MAX, |line| {
            line.contains(id.as_str()) && line.contains(&format!("\"new\":\"{phase}\""))
        })?;
        series
            .samples
            .push(sample(at.saturating_duration_since(began)));
    }
    let goals = vec![
        at_most(
            "rename to the byte, median",
            series.median(Measure::Wall),
            15.0,
            "ms",
        ),
        at_most(
            "rename to the byte, 99 %",
            series.percentile(Measure::Wall, 99),
            15.0,
            "ms",
        ),
    ];
    Ok(Outcome {
        name: "rename",
        about: "As `death`; a record of Claude Code with another status is renamed into place."
            .to_owned(),
        series: vec![series],
        goals,
        ..Outcome::default()
    })
}

/// Renames a record with another status into place; returns when.
fn turn(path: &Path, status: &str) -> anyhow::Result<Instant> {
    let mut fields: serde_json::Value = serde_json::from_slice(&std::fs::read(path)?)?;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    let now_ms = u64::try_from(now.as_millis())?;
    fields["status"] = status.into();
    fields["statusUpdatedAt"] = now_ms.into();
    fields["updatedAt"] = now_ms.into();
    let other = path.with_extension("new");
    std::fs::write(&other, fields.to_string())?;
    let began = Instant::now();
    std::fs::rename(&other, path)?;
    Ok(began)
}

/// What it costs while nothing happens and nobody watches.
pub(crate) fn idle(setting: &Setting, seconds: u64) -> anyhow::Result<Outcome> {
    let world = world(setting, DEAD, LIVE)?;
    let server = Server::start(setting, &world.home())?;
    let mut outcome = Outcome {
        name: "idle",
        about: format!(
            "{} sessions are live, nothing happens for {seconds} s and no client is there; beside a \
             Python that polls the same files and processes every 2 s. What other programs of this \
             machine do (agents that start, files in /tmp) wakes the server too, and so does the disk, \
             when the one look a minute reads what is not in memory any more.",
            LIVE.iter().sum::<usize>()
        ),
        ..Outcome::default()
    };
    let mut peer = python(setting);
    peer.arg(peers().join("polling.py")).arg(world.home());
    peer.stdin(Stdio::null()).stdout(Stdio::null());
    let peer = Ended(peer.spawn()?);
    // After the launches nothing is due.
    std::thread::sleep(SETTLE * 2);
    let processes = [
        ("`whosup serve`", server.pid()),
        ("polling Python", peer.0.id()),
    ];
    let before = [Spent::of(server.pid())?, Spent::of(peer.0.id())?];
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(seconds) {
        setting.go_on()?;
        std::thread::sleep(Duration::from_millis(500));
    }
    let minutes = began.elapsed().as_secs_f64() / 60.0;
    for ((name, pid), before) in processes.into_iter().zip(before) {
        let after = Spent::of(pid)?;
        let wakes = after.switches.saturating_sub(before.switches) as f64 / minutes;
        let share = (after.cpu_s - before.cpu_s) / (minutes * 60.0) * 100.0;
        outcome.notes.push(format!(
            "{name}: {wakes:.1} wake-ups a minute, {share:.3} % of a core"
        ));
        if name.contains("whosup") {
            outcome.goals.push(at_most(
                "wake-ups while nothing happens",
                wakes,
                5.0,
                "a minute",
            ));
            outcome.goals.push(at_most(
                "processor while nothing happens",
                share,
                0.05,
                "% of a core",
            ));
        }
    }
    Ok(outcome)
}

/// A process that is ended with this.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // One that has ended already is none to end.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// What a process has used so far, with its children and all of its threads.
#[derive(Debug, Clone, Copy)]
struct Spent {
    /// How often one of its threads has waited for something.
    switches: u64,
    cpu_s: f64,
    peak_kib: u64,
}

impl Spent {
    fn of(pid: u32) -> anyhow::Result<Self> {
        let mut switches = 0;
        for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
            let status = std::fs::read_to_string(task?.path().join("status"))?;
            switches += field(&status, "voluntary_ctxt_switches:");
        }
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let (_, fields) = stat.rsplit_once(')').context("no fields")?;
        // utime, stime, cutime and cstime: fields 14 to 17, in ticks of 10 ms.
        let ticks = fields.split_whitespace().skip(11).take(4);
        let ticks: u64 = ticks.filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
        Ok(Self {
            switches,
            cpu_s: ticks as f64 / 100.0,
            peak_kib: field(&status, "VmHWM:"),
        })
    }
}

fn field(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|rest| rest.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Very many clients while very much changes.
pub(crate) fn clients(setting: &Setting, seconds: u64) -> anyhow::Result<Outcome> {
    let world = world(setting, DEAD, LIVE)?;
    let server = Server::start(setting, &world.home())?;
    let count = setting.count(CLIENTS);
    let crowd = client::Crowd::open(&server, count)?;
    std::thread::sleep(SETTLE);
    let records = world.claude_records()?;
    let before = Spent::of(server.pid())?;
    let began = Instant::now();
    let every = Duration::from_secs(1) / u32::try_from(CHANGES_A_SECOND)?;
    let mut changes = 0_u32;
    while began.elapsed() < Duration::from_secs(seconds) {
        setting.go_on()?;
        let at = usize::try_from(changes)?;
        let status = ["busy", "idle"][at / records.len() % 2];
        turn(&records[at % records.len()].1, status)?;
        changes += 1;
        let next = every * changes;
        std::thread::sleep(next.saturating_sub(began.elapsed()));
    }
    let took = began.elapsed().as_secs_f64();
    let after = Spent::of(server.pid())?;
    std::thread::sleep(Duration::from_secs(1));
    let lags = crowd.end();
    let mut series = Series::new("look to the byte, at each client");
    series.samples = lags.samples.into_iter().map(sample).collect();
    if series.samples.is_empty() {
        bail!("no client has read a change");
    }
    let share = (after.cpu_s - before.cpu_s) / took * 100.0;
    let goals = vec![
        at_most(
            "the slowest client",
            series.percentile(Measure::Wall, 100),
            1_000.0,
            "ms behind",
        ),
        at_most(
            "clients without the last change a second later",
            f64::from(lags.behind),
            0.0,
            "clients",
        ),
        at_most("memory", after.peak_kib as f64 / 1024.0, 100.0, "MiB"),
        at_most("processor", share, 25.0, "% of a core"),
    ];
    Ok(Outcome {
        name: "clients",
        about: format!(
            "{count} clients read the stream while {changes} records are renamed into place within \
             {took:.0} s. What comes together is one look."
        ),
        series: vec![series],
        goals,
        notes: vec![format!("{} events a client", lags.events / count.max(1))],
        ..Outcome::default()
    })
}

/// How soon the state is answered with very many sessions on disk.
pub(crate) fn state(setting: &Setting) -> anyhow::Result<Outcome> {
    let world = world(setting, VERY_MANY_DEAD, FEW_LIVE)?;
    let server = Server::start(setting, &world.home())?;
    std::thread::sleep(SETTLE);
    let mut series = Series::new("`GET /api/v1/state`");
    for _ in 0..setting.rounds(STATES) {
        setting.go_on()?;
        let began = Instant::now();
        let answer = server.get("/api/v1/state")?;
        series.samples.push(sample(began.elapsed()));
        if !answer.contains("\"sessions\"") {
            bail!("the server answers no state");
        }
    }
    Ok(Outcome {
        name: "state",
        about: format!(
            "The default view over HTTP, each time in a connection of its own, with {} dead \
             sessions on disk.",
            setting.count(VERY_MANY_DEAD)
        ),
        goals: vec![at_most(
            "the state, 99 %",
            series.percentile(Measure::Wall, 99),
            20.0,
            "ms",
        )],
        series: vec![series],
        ..Outcome::default()
    })
}
