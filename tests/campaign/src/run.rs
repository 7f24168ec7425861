//! Runs worlds: one in this process, or many in processes of their own.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};

use crate::agents::{AGENTS, Agent};
use crate::apart;
use crate::chance::Chance;
use crate::looks::{Moment, look};
use crate::options::Options;
use crate::report::Tally;
use crate::steps::{Cast, take};
use crate::world::World;

/// How many agents live in one world.
const AGENTS_MAX: usize = 3;
/// How long one world may take.
const WORLD_TIME_MAX: Duration = Duration::from_secs(300);
/// How many worlds may fail before the campaign is given up.
const FAILURES_MAX: usize = 5;
/// How many worlds there are if nothing else ends the campaign.
const WORLDS: u64 = 40;
/// How many times a world is made again to leave out steps.
const SHRINKS_MAX: usize = 60;
/// The report of a world, in its directory.
const TALLY: &str = "tally.json";
/// What a world keeps.
const KEPT: &str = "kept";

/// Runs what the options say. True if nothing was wrong.
pub(crate) fn run(options: &Options) -> anyhow::Result<bool> {
    if let Some(directory) = &options.inside {
        let tally = inside(options, directory)?;
        return Ok(tally.wrong() == 0);
    }
    let whosup = options.whosup.canonicalize().with_context(|| {
        format!(
            "there is no `{}`; name a whosup with --whosup",
            options.whosup.display()
        )
    })?;
    let options = &Options {
        whosup,
        ..options.clone()
    };
    let namespace = apart::options();
    if namespace.is_none() {
        eprintln!(
            "no PID namespace can be made here: worlds share the machine's processes, and \
             reused PIDs and nested namespaces are skipped"
        );
    }
    let tally = match options.world {
        Some(world) if options.shrink => shrink(options, world, namespace.as_deref())?,
        Some(world) => one(options, world, namespace.as_deref())?,
        None => many(options, namespace.as_deref())?,
    };
    publish(options, &tally)?;
    if let Some(first) = tally.failed.first() {
        bail!(
            "{} worlds could not be made; the first one: {first}",
            tally.failed.len()
        );
    }
    Ok(tally.is_right())
}

fn publish(options: &Options, tally: &Tally) -> anyhow::Result<()> {
    if let Some(path) = &options.json {
        fs::write(path, serde_json::to_string_pretty(tally)?)?;
    }
    let text = tally.markdown();
    if let Some(path) = &options.markdown {
        fs::write(path, &text)?;
    }
    println!("{text}");
    if options.world.is_some() {
        for wrong in tally
            .wrongs
            .iter()
            .filter(|wrong| wrong.class.is_wrong())
            .take(1)
        {
            println!("{}", wrong.printout);
        }
    }
    Ok(())
}

/// Many worlds, some at once, until there is enough.
fn many(options: &Options, namespace: Option<&[&str]>) -> anyhow::Result<Tally> {
    let began = Instant::now();
    let next = AtomicU64::new(0);
    let total = Mutex::new(Tally {
        seed: options.seed,
        agents: options.agents.clone(),
        ..Tally::default()
    });
    let bounds = (options.looks, options.minutes, options.worlds);
    let worlds_max = match bounds {
        (None, None, None) => WORLDS,
        (_, _, worlds) => worlds.unwrap_or(u64::MAX),
    };
    let is_enough = |total: &Tally| {
        options.looks.is_some_and(|looks| total.looks >= looks)
            || options
                .minutes
                .is_some_and(|minutes| began.elapsed().as_secs() >= minutes * 60)
    };
    std::thread::scope(|scope| {
        for _ in 0..options.jobs.max(1) {
            scope.spawn(|| {
                while !total.lock().is_ok_and(|total| is_enough(&total)) {
                    let world = next.fetch_add(1, Ordering::Relaxed);
                    if world >= worlds_max {
                        break;
                    }
                    let came_to = one(options, world, namespace);
                    let Ok(mut total) = total.lock() else {
                        break;
                    };
                    match came_to {
                        Ok(tally) => total.add(tally),
                        Err(error) => total.failed.push(format!("{error:#}")),
                    }
                    if total.failed.len() > FAILURES_MAX {
                        break;
                    }
                }
            });
        }
    });
    let mut total = total
        .into_inner()
        .map_err(|_| anyhow!("a world ended in a panic"))?;
    total.wall_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(0);
    Ok(total)
}

/// One world, in a process and a PID namespace of its own.
fn one(options: &Options, world: u64, namespace: Option<&[&str]>) -> anyhow::Result<Tally> {
    let directory = tempfile::Builder::new()
        .prefix("whosup-campaign-")
        .tempdir()?;
    let root = directory.path();
    let log = File::create(root.join("log"))?;
    let mut command = match namespace {
        Some(namespace) => apart::command(namespace)?,
        None => Command::new(std::env::current_exe()?),
    };
    command.arg("--inside").arg(root);
    if namespace.is_some() {
        command.arg("--apart");
    }
    command.args([
        "--seed",
        &options.seed.to_string(),
        "--world",
        &world.to_string(),
    ]);
    command.args(["--steps", &options.steps.to_string()]);
    if options.keep {
        command.arg("--keep");
    }
    for (name, values) in [
        (
            "--without",
            options
                .without
                .iter()
                .map(usize::to_string)
                .collect::<Vec<_>>(),
        ),
        ("--agents", options.agents.clone()),
    ] {
        if !values.is_empty() {
            command.args([name, &values.join(",")]);
        }
    }
    command.arg("--whosup").arg(&options.whosup);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()?;
    let deadline = Instant::now() + WORLD_TIME_MAX;
    while child.try_wait()?.is_none() {
        if Instant::now() >= deadline {
            child.kill()?;
            child.wait()?;
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let log = fs::read_to_string(root.join("log")).unwrap_or_default();
    if options.keep {
        println!("{log}");
        let kept = directory.keep().join(KEPT);
        println!("kept in {}", kept.display());
        return read(&kept.with_file_name(TALLY));
    }
    read(&root.join(TALLY))
        .with_context(|| format!("world {world} of seed {} failed:\n{log}", options.seed))
}

fn read(path: &Path) -> anyhow::Result<Tally> {
    let text = fs::read_to_string(path).context("it left no report")?;
    Ok(serde_json::from_str(&text)?)
}

/// Leaves out steps of a world as long as its first wrong answer stays.
fn shrink(options: &Options, world: u64, namespace: Option<&[&str]>) -> anyhow::Result<Tally> {
    let mut tally = one(options, world, namespace)?;
    let is_wrong = |tally: &Tally| {
        let mut wrongs = tally.wrongs.iter();
        wrongs.find(|wrong| wrong.class.is_wrong()).cloned()
    };
    let Some(first) = is_wrong(&tally) else {
        bail!("nothing is wrong in world {world} of seed {}", options.seed);
    };
    let mut options = Options {
        steps: first.step + 1,
        keep: false,
        ..options.clone()
    };
    for step in (0..first.step).rev().take(SHRINKS_MAX) {
        let mut fewer = options.clone();
        fewer.without.push(step);
        let Ok(shrunk) = one(&fewer, world, namespace) else {
            continue;
        };
        let is_same = |wrong: &crate::report::Wrong| {
            wrong.class == first.class && wrong.agent == first.agent && wrong.answer == first.answer
        };
        if shrunk.wrongs.iter().any(is_same) {
            options = fewer;
            tally = shrunk;
        }
    }
    println!(
        "enough: --seed {} --world {world} --steps {} --without {:?}\n",
        options.seed, options.steps, options.without
    );
    Ok(tally)
}

/// Makes one world, takes its steps, and looks after each.
fn inside(options: &Options, directory: &Path) -> anyhow::Result<Tally> {
    let number = options.world.unwrap_or_default();
    let root = directory.join("world");
    fs::create_dir(&root)?;
    if options.apart {
        apart::mount_memory(&root)?;
    }
    let mut world = World::make(&root, &options.whosup)?;
    let cast = cast(options, number, &mut world);
    let mut tally = Tally {
        seed: options.seed,
        agents: options.agents.clone(),
        worlds: 1,
        ..Tally::default()
    };
    for step in 0..options.steps {
        if options.without.contains(&step) {
            continue;
        }
        world.chance = Chance::new(&[options.seed, number, u64::try_from(step)?]);
        let (kind, what) = take(&mut world, &cast)?;
        let line = format!("{step:3} {kind}: {what}");
        if options.keep {
            println!("{line}");
        }
        world.story.push(line);
        tally.steps += 1;
        let moment = Moment {
            seed: options.seed,
            world: number,
            step,
            step_kind: kind,
        };
        look(&mut world, &mut tally, moment)?;
        if options.keep {
            print_new(&tally, step);
        }
    }
    if !cast.is_apart {
        tally
            .skipped
            .insert("reused PIDs and nested namespaces".to_owned(), 1);
    }
    fs::write(directory.join(TALLY), serde_json::to_string(&tally)?)?;
    if options.keep {
        keep(&root, &directory.join(KEPT))?;
    }
    Ok(tally)
}

fn print_new(tally: &Tally, step: usize) {
    for wrong in tally.wrongs.iter().filter(|wrong| wrong.step == step) {
        let mark = if wrong.class.is_wrong() {
            "WRONG"
        } else {
            "note"
        };
        println!(
            "    {mark}: {}: {} {}: {} ({})",
            wrong.class.title(),
            wrong.agent,
            wrong.session,
            wrong.answer,
            wrong.truth
        );
    }
}

/// The agents of a world, and which of them have hooks.
fn cast(options: &Options, number: u64, world: &mut World) -> Cast {
    let mut chance = Chance::new(&[options.seed, number]);
    let is_asked = |agent: &&&'static dyn Agent| {
        options.agents.is_empty() || options.agents.iter().any(|id| id == agent.id())
    };
    let mut asked: Vec<&'static dyn Agent> = AGENTS.iter().filter(is_asked).copied().collect();
    let count = 1 + chance.below(AGENTS_MAX);
    let mut agents = Vec::new();
    while agents.len() < count && !asked.is_empty() {
        let agent = asked.swap_remove(chance.below(asked.len()));
        if agent.habits().has_hooks && chance.percent(50) {
            world.hooked.push(agent.id());
        }
        agents.push(agent);
    }
    Cast {
        agents,
        is_apart: options.apart,
    }
}

/// Copies a world, but for its programs.
fn keep(root: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to)?;
    for name in ["home", "home-moved", "work"] {
        let from = root.join(name);
        if from.is_dir() && !from.is_symlink() {
            let status = Command::new("cp").arg("-a").arg(&from).arg(to).status()?;
            anyhow::ensure!(status.success(), "cannot copy {}", from.display());
        }
    }
    Ok(())
}
