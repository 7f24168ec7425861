//! Unusual surroundings of the program: name, clock, directory, a full disk.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::commands::conformance::arena::Arena;
use crate::commands::conformance::check::{Kit, Outcome};
use crate::commands::conformance::stage::process_of;
use crate::commands::conformance::subject::{Answer, Subject};

/// A name with the characters that `/proc/PID/stat` puts around names.
const ODD_NAME: &str = "a) b (c) R 1";
/// Starts a program with another clock since boot (unshare(1)).
const OTHER_CLOCK: [&str; 4] = ["unshare", "--time", "--boottime", "100000"];
/// Starts a program that gets errors instead of a signal when a file is too large.
const WITHOUT_SIGXFSZ: [&str; 2] = ["env", "--ignore-signal=XFSZ"];

/// A program with an odd name has the right start stamp.
pub(super) fn odd_name(kit: &Kit) -> Result<Outcome, String> {
    let arena = kit.arena()?;
    let mut launch = kit.launch(&[], &arena);
    let program = launch.words.first().cloned().unwrap_or_default();
    let link = arena.root().join(ODD_NAME);
    let Some(program) = found(&program) else {
        return Ok(Outcome::Skipped("its program is not found".to_owned()));
    };
    symlink(&program, &link).map_err(|error| format!("cannot make a link: {error}"))?;
    launch.named = Some(link);
    let mut subject = match launch.start() {
        Ok(subject) => subject,
        Err(why) => return Ok(Outcome::Skipped(why)),
    };
    if let Err(why) = subject.must("start s-odd-name") {
        // A script may depend on its name, like the shims of version managers.
        if is_script(&program) {
            let why = "its program is a script that does not run under another name";
            return Ok(Outcome::Skipped(why.to_owned()));
        }
        return Err(why);
    }
    let (_, claim) = arena.only_claim()?;
    let stamp = process_of(&subject)?.stamp;
    match &claim.sidecar.process_start {
        Some(said) if *said != stamp => Err(format!(
            "of a program named `{ODD_NAME}` it writes `process_start` {said}, not {stamp}"
        )),
        Some(_) => Ok(Outcome::Passed),
        None => Ok(Outcome::Noted("it writes no `process_start`".to_owned())),
    }
}

fn is_script(program: &Path) -> bool {
    let mut start = [0; 2];
    let read = File::open(program).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start == *b"#!"
}

/// The file of a program, as a shell finds it.
fn found(program: &OsStr) -> Option<PathBuf> {
    let path = Path::new(program);
    if path.components().count() > 1 {
        return std::path::absolute(path).ok();
    }
    let directories = std::env::var_os("PATH")?;
    let mut places = std::env::split_paths(&directories).map(|at| at.join(path));
    places.find(|at| at.is_file())
}

/// A program in a time namespace of its own.
pub(super) fn other_clock(kit: &Kit) -> Result<Outcome, String> {
    let arena = kit.arena()?;
    let cannot = || {
        Ok(Outcome::Skipped(
            "no time namespace can be made here".to_owned(),
        ))
    };
    let Ok(mut subject) = kit.launch(&OTHER_CLOCK, &arena).start() else {
        return cannot();
    };
    let started = subject.ask("start s-clock");
    let its_clock = std::fs::read_link(format!("/proc/{}/ns/time", subject.pid()));
    let ours = std::fs::read_link("/proc/self/ns/time");
    if its_clock.map_or(true, |clock| ours.is_ok_and(|ours| ours == clock)) {
        return cannot();
    }
    if started? != Answer::Ok {
        return Err("it does not start in a time namespace of its own".to_owned());
    }
    let (_, claim) = arena.only_claim()?;
    match claim.sidecar.process_start {
        Some(said) => Err(format!(
            "it writes `process_start` {said} in a time namespace of its own, where others \
             read another number"
        )),
        None => Ok(Outcome::Passed),
    }
}

/// A directory whose name is not Unicode.
pub(super) fn no_unicode(kit: &Kit) -> Result<Outcome, String> {
    let arena = kit.arena()?;
    let work_dir = arena.root().join(OsStr::from_bytes(b"caf\xe9"));
    if std::fs::create_dir(&work_dir).is_err() {
        let why = "such a directory can't be made here";
        return Ok(Outcome::Skipped(why.to_owned()));
    }
    let mut launch = kit.launch(&[], &arena);
    launch.work_dir = work_dir;
    let mut subject = launch.start()?;
    match subject.ask("start s-no-unicode")? {
        Answer::Error(_) if arena.claims()?.is_empty() => Ok(Outcome::Passed),
        Answer::Error(_) => Err("it reported an error and left a file".to_owned()),
        other => {
            let shown = arena.only_claim().map(|(_, claim)| claim.sidecar.work_dir);
            Err(format!(
                "it answered {other:?} in a directory that JSON cannot name, and wrote {shown:?}"
            ))
        }
    }
}

/// A disk that is full: files can be removed, not written.
pub(super) fn full_disk(kit: &Kit) -> Result<Outcome, String> {
    let arena = kit.arena()?;
    let cannot = || {
        Ok(Outcome::Skipped(
            "`env --ignore-signal` is not here".to_owned(),
        ))
    };
    let Ok(mut subject) = kit.launch(&WITHOUT_SIGXFSZ, &arena).start() else {
        return cannot();
    };
    if subject.must("start s-before").is_err() {
        return cannot();
    }
    let (path, claim) = arena.only_claim()?;
    let before = match limit_files(&subject, Some(0)) {
        Ok(before) => before,
        Err(why) => return Ok(Outcome::Skipped(why)),
    };
    let answer = subject.ask("switch s-full")?;
    limit_files(&subject, before)?;
    if !matches!(answer, Answer::Error(_)) {
        return Err(format!(
            "it answered {answer:?} when nothing could be written"
        ));
    }
    let strays = arena.strays(path.parent().unwrap_or(&path), &claim);
    if !strays.is_empty() {
        return Err(format!("it leaves {}", strays.join(", ")));
    }
    if let Some(left) = arena.claims()?.keys().next() {
        let left = arena.shown(left);
        return Err(format!(
            "`{left}` is left, which is about a session that it has left"
        ));
    }
    catches_up(&arena, &mut subject)?;
    subject.must("switch s-after")?;
    let (_, claim) = arena.only_claim()?;
    if claim.session() == "s-after" {
        return Ok(Outcome::Passed);
    }
    Err("it does not write once it may again".to_owned())
}

/// The next call writes what could not be written.
fn catches_up(arena: &Arena, subject: &mut Subject) -> Result<(), String> {
    if subject.ask("phase working")? == Answer::Unsupported {
        return Ok(());
    }
    let (_, claim) = arena.only_claim()?;
    if claim.session() == "s-full" {
        return Ok(());
    }
    Err(format!(
        "it writes about `{}` after a failed switch",
        claim.session()
    ))
}

/// Sets the maximum size of the files that the program writes; returns the old limit.
#[cfg(target_os = "linux")]
fn limit_files(subject: &Subject, bytes: Option<u64>) -> Result<Option<u64>, String> {
    use rustix::process::{Resource, Rlimit, getrlimit, prlimit};

    let before = getrlimit(Resource::Fsize);
    let limit = Rlimit {
        current: bytes,
        ..before
    };
    let limited = prlimit(subject.process(), Resource::Fsize, limit);
    limited.map_err(|errno| format!("cannot limit the size of its files: {errno}"))?;
    Ok(before.current)
}

#[cfg(not(target_os = "linux"))]
fn limit_files(_: &Subject, _: Option<u64>) -> Result<Option<u64>, String> {
    Err("the size of another process's files can't be limited here".to_owned())
}
