//! Claims of other processes at the place where the program wants to put its own.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};
use whosup_core::machine::now_ms;
use whosup_core::process::{Pid, system_backend};

use crate::commands::conformance::arena::set_mode;
use crate::commands::conformance::check::{Kit, Outcome};
use crate::commands::conformance::stage::{
    Fields, PLANTED, Stage, bytes_of, is_provably_gone, seconds,
};

const OTHER_HOST: &str = "another-host";
const OTHER_BOOT: &str = "29c1d8ff-a55f-47c0-82a1-b0f1bc43623b";
const OTHER_NAMESPACE: u64 = 4_025_999_999;
/// How long before this boot the claim of an earlier boot was made, in milliseconds.
const BEFORE_BOOT_MS: i64 = 86_400_000;

/// A description of a changed claim, and the changes.
type Planted = (&'static str, &'static [(&'static str, Change)]);

/// The change of a field.
enum Change {
    Remove,
    Text(&'static str),
    Number(u64),
}

use Change::{Number, Remove, Text};

/// Claims of a live process.
const LIVING: &[Planted] = &[
    ("a living process's claim", &[]),
    (
        "a living process's claim without a boot id",
        &[("boot_id", Remove)],
    ),
    (
        "a living process's claim without any stamp",
        &[
            ("process_start", Remove),
            ("process_start_kind", Remove),
            ("boot_id", Remove),
            ("pid_namespace", Remove),
        ],
    ),
    (
        "the claim of a living process whose host was renamed",
        &[("hostname", Text(OTHER_HOST))],
    ),
];

/// Claims whose PID no process here has, which proves nothing.
const FOREIGN: &[Planted] = &[
    (
        "a claim of another host",
        &[("hostname", Text(OTHER_HOST)), ("boot_id", Remove)],
    ),
    (
        "a claim of another boot, made just now",
        &[("boot_id", Text(OTHER_BOOT))],
    ),
    (
        "a claim of another PID namespace",
        &[("pid_namespace", Number(OTHER_NAMESPACE))],
    ),
    (
        "a claim with another platform's stamp",
        &[
            ("process_start", Text("1795812879.123456")),
            ("process_start_kind", Text("darwin-tv")),
            ("boot_id", Remove),
            ("pid_namespace", Remove),
        ],
    ),
];

fn changed(mut fields: Fields, changes: &[(&str, Change)]) -> Fields {
    for (key, change) in changes {
        let value = match change {
            Remove => None,
            Text(text) => Some(json!(text)),
            Number(number) => Some(json!(number)),
        };
        match value {
            Some(value) => drop(fields.insert((*key).to_owned(), value)),
            None => drop(fields.remove(*key)),
        }
    }
    fields
}

fn with(mut fields: Fields, key: &str, value: Value) -> Fields {
    fields.insert(key.to_owned(), value);
    fields
}

/// Claims of processes that live, or that can't be looked at from here.
pub(super) fn left(kit: &Kit) -> Result<Outcome, String> {
    let mut stage = Stage::new(kit)?;
    let (living, dead) = (stage.living()?, stage.dead()?);
    let of_living = LIVING.iter().map(|planted| (planted, &living));
    let foreign = FOREIGN.iter().map(|planted| (planted, &dead));
    for ((what, changes), fields) in of_living.chain(foreign) {
        stage.plant(&changed(fields.clone(), changes))?;
        stage.expect_left(what)?;
    }
    // In a directory of the session's own, the file name does not name the session.
    if stage
        .path
        .file_name()
        .is_some_and(|name| name != "runtime.json")
    {
        for id in ["s-another", "S-Planted"] {
            stage.plant(&with(dead.clone(), "session_id", json!(id)))?;
            stage.expect_left("a claim to another session")?;
        }
    }
    Ok(Outcome::Passed)
}

/// Claims in files that another user may have written.
pub(super) fn planted(kit: &Kit) -> Result<Outcome, String> {
    let mut stage = Stage::new(kit)?;
    let dead = stage.dead()?;
    stage.plant(&dead)?;
    set_mode(&stage.path, 0o666)?;
    stage.expect_left("a claim that everybody may write")?;
    if !rustix::process::geteuid().is_root() {
        let why = "only root can give a file to another user";
        return Ok(Outcome::Noted(why.to_owned()));
    }
    stage.plant(&dead)?;
    let given = std::os::unix::fs::chown(&stage.path, Some(65_533), None);
    given.map_err(|error| format!("cannot give a file to another user: {error}"))?;
    stage.expect_left("a claim in another user's file")?;
    Ok(Outcome::Passed)
}

/// Claims whose process is provably gone.
pub(super) fn gone(kit: &Kit) -> Result<Outcome, String> {
    let mut stage = Stage::new(kit)?;
    let zombie = kit.start(&stage.arena)?;
    let of_zombie = stage.naming(&zombie)?;
    zombie.kill_only()?;
    let (living, dead) = (stage.living()?, stage.dead()?);
    let booted = system_backend()
        .view()
        .booted_at_ms
        .unwrap_or_else(|_| now_ms());
    let earlier = with(dead.clone(), "boot_id", json!(OTHER_BOOT));
    let earlier = with(earlier, "started_at", seconds(booted - BEFORE_BOOT_MS));
    let own = stage.naming(&stage.subject)?;
    let mut cases = vec![
        ("a dead process's claim", dead.clone()),
        (
            "a claim that was given back (`pid` 0)",
            with(dead, "pid", json!(0)),
        ),
        (
            "a claim whose PID another process has by now",
            reused(living)?,
        ),
        ("a zombie's claim", of_zombie),
        ("a claim from before the last boot", earlier),
        ("a claim whose PID this process has by now", reused(own)?),
    ];
    cases.extend(a_thread(&stage)?.map(|fields| ("a claim that names a thread", fields)));
    cases.extend(a_kernel_thread(&stage)?.map(|fields| ("a kernel thread's claim", fields)));
    let mut unproven = Vec::new();
    for (what, fields) in cases {
        if !is_provably_gone(&fields) {
            unproven.push(what);
            continue;
        }
        stage.plant(&fields)?;
        stage.expect_taken(what)?;
    }
    if unproven.is_empty() {
        return Ok(Outcome::Passed);
    }
    let unproven = unproven.join(", ");
    Ok(Outcome::Noted(format!(
        "nothing proves here that these are gone: {unproven}"
    )))
}

/// The claim of a former process with this PID.
fn reused(fields: Fields) -> Result<Fields, String> {
    let stamp = fields.get("process_start").and_then(Value::as_str);
    let ticks = stamp.and_then(|stamp| stamp.parse::<u64>().ok());
    let before = ticks.ok_or("the start of a process is no number here")? - 1;
    Ok(with(fields, "process_start", json!(before.to_string())))
}

/// A claim that names another thread of this process: there is a thread per run.
fn a_thread(stage: &Stage) -> Result<Option<Fields>, String> {
    let own = std::process::id().to_string();
    let Ok(threads) = fs::read_dir("/proc/self/task") else {
        return Ok(None);
    };
    let mut names = threads
        .flatten()
        .filter_map(|it| it.file_name().into_string().ok());
    let Some(thread) = names.find(|name| *name != own) else {
        return Ok(None);
    };
    let stat = fs::read_to_string(format!("/proc/self/task/{thread}/stat"));
    let stat = stat.map_err(|error| error.to_string())?;
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    // Field 22, counted from the third.
    let start = after_name.split_whitespace().nth(19).unwrap_or_default();
    let fields = with(stage.living()?, "process_start", json!(start));
    let number: i32 = thread.parse().map_err(|_| "a thread has no number")?;
    Ok(Some(with(fields, "pid", json!(number))))
}

/// A claim that names a kernel thread, if kernel threads are visible.
fn a_kernel_thread(stage: &Stage) -> Result<Option<Fields>, String> {
    let pid = Pid::new(2).map_err(|error| error.to_string())?;
    let probed = system_backend().probe(pid).ok().flatten();
    let Some(process) = probed.filter(|process| process.is_kernel_thread) else {
        return Ok(None);
    };
    let fields = with(stage.living()?, "pid", json!(2));
    Ok(Some(with(
        fields,
        "process_start",
        json!(process.stamp.to_string()),
    )))
}

/// Claims of the checked process itself.
pub(super) fn own(kit: &Kit) -> Result<Outcome, String> {
    let mut stage = Stage::new(kit)?;
    let own = stage.naming(&stage.subject)?;
    for (what, changes) in [
        (
            "a claim of its own PID from another boot",
            &[("boot_id", Text(OTHER_BOOT))],
        ),
        (
            "a claim of its own PID from another namespace",
            &[("pid_namespace", Number(OTHER_NAMESPACE))],
        ),
    ] {
        stage.plant(&changed(own.clone(), changes))?;
        stage.expect_left(what)?;
    }
    let written: Fields =
        serde_json::from_slice(&stage.own.bytes).map_err(|error| error.to_string())?;
    let is_whole = ["process_start", "boot_id", "pid_namespace"]
        .iter()
        .all(|key| written.contains_key(*key));
    if !is_whole {
        let why = "without its stamps it cannot know its own claim";
        return Ok(Outcome::Noted(why.to_owned()));
    }
    stage.plant(&written)?;
    stage.expect_taken("a claim of its own, left from before an `exec`")?;
    Ok(Outcome::Passed)
}

/// Claims that name another user's process, which is visible and can't be signalled.
pub(super) fn other_user(kit: &Kit) -> Result<Outcome, String> {
    let Some(mut stage) = Stage::without_rights(kit)? else {
        let why = "the program can't be started as another user, and root may signal everybody";
        return Ok(Outcome::Skipped(why.to_owned()));
    };
    let of_another = if rustix::process::geteuid().is_root() {
        stage.living()?
    } else {
        of_init(&stage)?
    };
    stage.plant(&of_another)?;
    stage.expect_left("the claim of another user's process")?;
    stage.plant(&stage.dead()?)?;
    set_mode(&stage.path, 0)?;
    stage.expect_left("a claim that it may not read")?;
    Ok(Outcome::Passed)
}

/// A claim of process 1, which is root's.
fn of_init(stage: &Stage) -> Result<Fields, String> {
    let pid = Pid::new(1).map_err(|error| error.to_string())?;
    let process = system_backend().probe(pid).ok().flatten();
    let stamp = process.ok_or("process 1 can't be seen")?.stamp;
    let fields = with(stage.living()?, "pid", json!(1));
    Ok(with(fields, "process_start", json!(stamp.to_string())))
}

/// Files that are no sidecars, or sidecars of a later schema.
pub(super) fn no_sidecar(kit: &Kit) -> Result<Outcome, String> {
    let mut stage = Stage::new(kit)?;
    let dead = stage.dead()?;
    let half = bytes_of(&dead);
    let half = half.get(..half.len() / 2).unwrap_or_default();
    let later = bytes_of(&with(dead.clone(), "schema_version", json!(2)));
    let inexact = bytes_of(&with(dead.clone(), "pid", json!("7")));
    for (what, bytes) in [
        ("half a file", half),
        ("an empty file", &[][..]),
        ("a sidecar of schema 2", &later),
        ("a file whose `pid` is a string", &inexact),
    ] {
        stage.plant_file(&stage.path, bytes)?;
        stage.expect_left(what)?;
    }
    // A writer that follows the link finds a dead claim, or nothing.
    let target = stage.arena.root().join("target of a link");
    fs::write(&target, bytes_of(&dead)).map_err(|error| error.to_string())?;
    for (what, target) in [
        ("a link to a dead claim", target.as_path()),
        (
            "a link that leads nowhere",
            &stage.arena.root().join("nowhere"),
        ),
    ] {
        symlink(target, &stage.path).map_err(|error| error.to_string())?;
        stage.expect_left(what)?;
    }
    if plant_fifo(&stage.path)? {
        stage.expect_left("a FIFO")?;
    }
    Ok(Outcome::Passed)
}

/// Makes a FIFO. `false` if that is not possible.
#[cfg(not(target_vendor = "apple"))]
fn plant_fifo(path: &Path) -> Result<bool, String> {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    let made = mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0);
    made.map_err(|error| format!("cannot make a FIFO: {error}"))?;
    Ok(true)
}

#[cfg(target_vendor = "apple")]
fn plant_fifo(_: &Path) -> Result<bool, String> {
    Ok(false)
}

/// Another file takes the place of the program's own.
pub(super) fn swapped(kit: &Kit) -> Result<Outcome, String> {
    for line in [
        "switch s-next",
        "switch s-planted",
        "phase working",
        "release",
    ] {
        for is_same_process in [false, true] {
            let mut stage = Stage::new(kit)?;
            stage.subject.must(&format!("switch {PLANTED}"))?;
            let fields = if is_same_process {
                // Of another handle, or of the program before it called exec.
                with(
                    stage.naming(&stage.subject)?,
                    "started_at",
                    seconds(now_ms() - 60_000),
                )
            } else {
                stage.living()?
            };
            stage.plant(&fields)?;
            let before = stage.look();
            // An unsupported or refused line must change nothing either.
            stage.subject.ask(line)?;
            if stage.look() != before {
                let whose = if is_same_process {
                    "another handle"
                } else {
                    "another process"
                };
                return Err(format!("`{line}` replaced or removed the file of {whose}"));
            }
        }
    }
    Ok(Outcome::Passed)
}
