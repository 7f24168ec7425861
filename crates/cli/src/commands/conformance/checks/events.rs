//! What the program does in its directory, event by event; and what it does if the
//! directory changes between two events, while it is stopped with SIGSTOP.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::inotify::ReadFlags;
use rustix::fs::{FlockOperation, flock};
use rustix::process::Signal;

use crate::commands::conformance::arena::is_sidecar_name;
use crate::commands::conformance::check::{Kit, Outcome};
use crate::commands::conformance::stage::{PLANTED, Stage, bytes_of};
use crate::commands::conformance::subject::Answer;
use crate::commands::conformance::watch::{Happened, Watch};

/// How often to try to stop the program at the right moment.
const TRIES_MAX: usize = 40;
/// How often the program must be seen to do wrong, where that would also be seen of one that
/// was stopped a moment too late.
const WRONG_MIN: usize = 3;
/// How long to wait for a step of the program.
const STEP_MAX: Duration = Duration::from_secs(10);

/// The result of an attempt.
enum Attempt {
    /// The program was stopped in time, and acted correctly.
    Right,
    /// It was not stopped in time.
    Missed,
    /// The program does not take that step.
    Never,
    /// It acted wrongly, or was stopped after it had looked for the last time.
    Wrong(String),
}

/// Repeats until the program was stopped in time.
fn attempts(
    kit: &Kit,
    never: &str,
    attempt: fn(&mut Stage) -> Result<Attempt, String>,
) -> Result<Outcome, String> {
    let mut stage = Stage::new(kit)?;
    let mut wrong = 0;
    for _ in 0..TRIES_MAX {
        match attempt(&mut stage)? {
            Attempt::Right => return Ok(Outcome::Passed),
            Attempt::Missed => {}
            // On a loaded machine a program runs on for a moment: a right one is seen to act
            // rightly in another attempt, a wrong one never.
            Attempt::Wrong(why) => {
                wrong += 1;
                if wrong == WRONG_MIN {
                    return Err(why);
                }
            }
            Attempt::Never => return Ok(Outcome::Noted(never.to_owned())),
        }
        stage.subject.must("switch s-base")?;
        fs::remove_file(&stage.path).ok();
    }
    let why = format!("in {TRIES_MAX} tries it could not be stopped at the right moment");
    Ok(Outcome::Skipped(why))
}

/// A dead claim is replaced by a live one after the program has judged it.
pub(super) fn taken_over(kit: &Kit) -> Result<Outcome, String> {
    attempts(kit, "it does not read what is there", take_over)
}

fn take_over(stage: &mut Stage) -> Result<Attempt, String> {
    let name = file_name(&stage.path);
    stage.plant(&stage.dead()?)?;
    let living = living_aside(stage)?;
    // A writer that locks the directory waits here.
    let lock = locked(stage.directory())?;
    let mut watch = Watch::with_reads(stage.directory())?;
    stage.subject.send(&format!("switch {PLANTED}"))?;
    let is_read = |it: &Happened| it.flags.contains(ReadFlags::CLOSE_NOWRITE) && it.name == name;
    let was_read = stop_at(stage, &mut watch, is_read)?;
    let since = watch.happened();
    let is_in_time = was_read && !since.iter().any(|it| it.name == name);
    if is_in_time {
        let swapped = fs::rename(&living, &stage.path);
        swapped.map_err(|error| format!("cannot swap `{name}`: {error}"))?;
        watch.happened();
    }
    let before = stage.look();
    drop(lock);
    go_on(stage)?;
    fs::remove_file(&living).ok();
    if !is_in_time {
        return Ok(if was_read {
            Attempt::Missed
        } else {
            Attempt::Never
        });
    }
    if stage.look() != before {
        return Err("it took over a claim that had become another process's".to_owned());
    }
    let leaves = ReadFlags::MOVED_FROM | ReadFlags::DELETE;
    let mut since = watch.happened().into_iter();
    if since.any(|it| it.name == name && it.flags.intersects(leaves)) {
        let why = "it moved another process's claim: it did not look again";
        return Ok(Attempt::Wrong(why.to_owned()));
    }
    Ok(Attempt::Right)
}

/// Another process takes the name while the program writes its temporary file.
pub(super) fn name_taken(kit: &Kit) -> Result<Outcome, String> {
    let never = "its files have no name before they are whole, so that none can be put before one";
    attempts(kit, never, take_name)
}

fn take_name(stage: &mut Stage) -> Result<Attempt, String> {
    let living = living_aside(stage)?;
    let mut watch = Watch::of(stage.directory())?;
    stage.subject.send(&format!("switch {PLANTED}"))?;
    let is_temporary =
        |it: &Happened| it.flags.contains(ReadFlags::CREATE) && !is_sidecar_name(&it.name);
    let has_begun = stop_at(stage, &mut watch, is_temporary)?;
    let is_in_time = has_begun && fs::hard_link(&living, &stage.path).is_ok();
    let before = stage.look();
    go_on(stage)?;
    fs::remove_file(&living).ok();
    if !is_in_time {
        return Ok(if has_begun {
            Attempt::Missed
        } else {
            Attempt::Never
        });
    }
    if stage.look() != before {
        return Err("it replaced a claim that another process had made meanwhile".to_owned());
    }
    Ok(Attempt::Right)
}

/// Stops the program at the first event of a kind. `false` if its claim comes first.
fn stop_at(
    stage: &Stage,
    watch: &mut Watch,
    is_it: impl Fn(&Happened) -> bool,
) -> Result<bool, String> {
    let began = Instant::now();
    let appears = ReadFlags::CREATE | ReadFlags::MOVED_TO;
    while let Some(left) = STEP_MAX.checked_sub(began.elapsed()) {
        let Some(happened) = watch.next(left) else {
            break;
        };
        if is_it(&happened) {
            stage.subject.stop()?;
            return Ok(true);
        }
        if happened.flags.intersects(appears) && is_sidecar_name(&happened.name) {
            return Ok(false);
        }
    }
    Err("it does nothing in the directory of its claim".to_owned())
}

/// Continues the program, and waits for its answer.
fn go_on(stage: &mut Stage) -> Result<(), String> {
    stage.subject.signal(Signal::CONT)?;
    match stage.subject.answer()? {
        Answer::Ok => Ok(()),
        other => Err(format!("it answered {other:?} to a switch")),
    }
}

/// A live process's claim in another directory, ready to be moved in.
fn living_aside(stage: &Stage) -> Result<PathBuf, String> {
    let path = stage.arena.root().join("aside");
    stage.plant_file(&path, &bytes_of(&stage.living()?))?;
    Ok(path)
}

fn locked(directory: &Path) -> Result<File, String> {
    let failed = |error: std::io::Error| format!("cannot lock `{}`: {error}", directory.display());
    let file = File::open(directory).map_err(failed)?;
    let lock = flock(&file, FlockOperation::NonBlockingLockExclusive);
    lock.map_err(|errno| failed(errno.into()))?;
    Ok(file)
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// How new files get their names: by rename of a temporary file.
pub(super) fn temporary(kit: &Kit) -> Result<Outcome, String> {
    let arena = kit.arena()?;
    let mut subject = kit.start_session(&arena, "s-first")?;
    let longest = "l".repeat(128);
    subject.must(&format!("switch {longest}"))?;
    subject.must("switch s-first")?;
    let (path, _) = arena.only_claim()?;
    let directory = path.parent().unwrap_or(&path).to_owned();
    let mut watch = Watch::of(&directory)?;
    subject.must(&format!("switch {longest}"))?;
    subject.ask("phase working")?;
    let (now, _) = arena.only_claim()?;
    if now.parent() != Some(&directory) {
        let why = "each session has a directory of its own";
        return Ok(Outcome::Skipped(why.to_owned()));
    }
    check_names(&watch.happened())?;
    Ok(Outcome::Passed)
}

fn check_names(events: &[Happened]) -> Result<(), String> {
    for event in events {
        if !event.flags.contains(ReadFlags::MOVED_TO) || !is_sidecar_name(&event.name) {
            continue;
        }
        let is_source =
            |it: &&Happened| it.cookie == event.cookie && it.flags.contains(ReadFlags::MOVED_FROM);
        let Some(source) = events.iter().find(is_source) else {
            return Err("its temporary file lies in another directory".to_owned());
        };
        require_temporary(&source.name)?;
    }
    let created = events
        .iter()
        .filter(|it| it.flags.contains(ReadFlags::CREATE));
    for name in created
        .map(|it| &it.name)
        .filter(|name| !is_sidecar_name(name))
    {
        let is_gone = |it: &Happened| it.name == *name && it.flags.contains(ReadFlags::DELETE);
        if events.iter().any(is_gone) {
            require_temporary(name)?;
        }
    }
    Ok(())
}

/// Other writers recognize a dead writer's temporary file by its name, and remove it.
fn require_temporary(name: &str) -> Result<(), String> {
    let digits = name
        .strip_prefix(".sidecar-")
        .and_then(|rest| rest.strip_suffix(".tmp"));
    let is_right = digits.is_some_and(|digits| {
        digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    });
    if is_right {
        return Ok(());
    }
    Err(format!(
        "its temporary file is `{name}`, not `.sidecar-HEX.tmp` with 16 digits"
    ))
}
