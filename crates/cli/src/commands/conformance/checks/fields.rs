//! One session, one process: what the file says and how it lies there.

use std::time::{SystemTime, UNIX_EPOCH};

use whosup_core::process::{Absent, Pid, Process, system_backend};
use whosup_core::sidecar::{Serves, StrictObject};

use crate::commands::conformance::arena::{Arena, Claim};
use crate::commands::conformance::check::{Kit, Outcome};
use crate::commands::conformance::subject::Subject;

/// How far two clocks may be apart, in milliseconds.
const SLACK_MS: i64 = 2_000;

fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(now.unwrap_or_default().as_millis()).unwrap_or(i64::MAX)
}

fn process(subject: &Subject) -> Result<Process, String> {
    let pid = Pid::new(i64::from(subject.pid())).map_err(|error| error.to_string())?;
    let probed = system_backend().probe(pid);
    let process = probed.map_err(|error| error.to_string())?;
    process.ok_or_else(|| "the process has gone".to_owned())
}

/// Every field that must be there, and that it is true.
pub(super) fn fields(kit: &Kit) -> Result<Outcome, String> {
    let arena = kit.arena()?;
    let before = now_ms();
    let subject = kit.start_session(&arena, "s-fields")?;
    let (_, claim) = arena.only_claim()?;
    check_fields(&arena, &subject, &claim, before)?;
    if claim.sidecar.agent_name.is_none() {
        return Err("there is not exactly one key `NAME_version`".to_owned());
    }
    Ok(Outcome::Passed)
}

fn check_fields(
    arena: &Arena,
    subject: &Subject,
    claim: &Claim,
    before: i64,
) -> Result<(), String> {
    let sidecar = &claim.sidecar;
    if claim.pid() != subject.pid() {
        return Err(format!(
            "`pid` is {}, and the process that was started is {}",
            claim.pid(),
            subject.pid()
        ));
    }
    if claim.session() != "s-fields" {
        return Err(format!(
            "`session_id` is `{}`, not `s-fields`",
            claim.session()
        ));
    }
    let work_dir = arena.work_dir();
    if sidecar.work_dir != work_dir
        && sidecar.work_dir.canonicalize().ok() != work_dir.canonicalize().ok()
    {
        return Err(format!(
            "`work_dir` is `{}`, and it was started in `{}`",
            sidecar.work_dir.display(),
            work_dir.display()
        ));
    }
    if let Ok(host) = system_backend().scope().host
        && !host.is_same_host(&sidecar.hostname)
    {
        return Err(format!(
            "`hostname` is `{}`, not `{host}`",
            sidecar.hostname
        ));
    }
    let began = process(subject)?.began_at_ms.unwrap_or(before);
    let span = began.max(before - SLACK_MS) - SLACK_MS..=now_ms() + SLACK_MS;
    if !span.contains(&sidecar.started_at_ms) {
        return Err("`started_at` is not when it took up the session".to_owned());
    }
    check_serves(claim)
}

/// A reader takes a word that it does not know for none, so that a misspelled one would
/// go unnoticed.
fn check_serves(claim: &Claim) -> Result<(), String> {
    let object = StrictObject::parse(&claim.bytes).map_err(|error| error.to_string())?;
    let word = object.opt_string("serves");
    match word.map_err(|error| error.to_string())? {
        Some(word) if Serves::from_name(word).is_none() => {
            Err(format!("`serves` is `{word}`, neither `one` nor `many`"))
        }
        Some(_) | None => Ok(()),
    }
}

/// The optional fields that prove which process is meant.
pub(super) fn identity(kit: &Kit) -> Result<Outcome, String> {
    let arena = kit.arena()?;
    let subject = kit.start_session(&arena, "s-identity")?;
    let (_, claim) = arena.only_claim()?;
    let sidecar = claim.sidecar;
    let backend = system_backend();
    let (scope, view) = (backend.scope(), backend.view());
    let stamp = process(&subject)?.stamp;
    let mut missing = Vec::new();
    match &sidecar.process_start {
        Some(said) if *said != stamp => {
            return Err(format!("`process_start` is `{said}`, not `{stamp}`"));
        }
        Some(_) => {}
        None if sidecar.process_start_text.is_some() => {
            return Err("`process_start` and `process_start_kind` do not fit".to_owned());
        }
        // Others read another number of a process in a time namespace.
        None if view.is_initial_time_namespace == Ok(false) => {}
        None => missing.push("process_start"),
    }
    match (&sidecar.boot_id, &scope.boot) {
        (Some(said), Ok(boot)) if said != boot => {
            return Err(format!("`boot_id` is `{said}`, not `{boot}`"));
        }
        (None, Ok(_)) => missing.push("boot_id"),
        _ => {}
    }
    match (sidecar.pid_namespace, &scope.pid_namespace) {
        (Some(said), Ok(namespace)) if said != *namespace => {
            return Err(format!("`pid_namespace` is {said}, not {namespace}"));
        }
        (None, Ok(_)) => missing.push("pid_namespace"),
        _ => {}
    }
    let details = backend.details(&process(&subject)?);
    if let (Some(said), Ok(exe)) = (&sidecar.executable, &details.exe)
        && said != exe
    {
        return Err(format!(
            "`executable` is `{}`, not `{}`",
            said.display(),
            exe.display()
        ));
    }
    if missing.is_empty() {
        return Ok(Outcome::Passed);
    }
    let missing = missing.join(", ");
    Ok(Outcome::Noted(format!(
        "without {missing} readers can't prove which process is meant"
    )))
}

/// The name of the file.
pub(super) fn name(kit: &Kit) -> Result<Outcome, String> {
    let arena = kit.arena()?;
    let _subject = kit.start_session(&arena, "s-name")?;
    let (path, _) = arena.only_claim()?;
    let name = path.file_name().and_then(|name| name.to_str());
    if matches!(name, Some("s-name.runtime.json" | "runtime.json")) {
        return Ok(Outcome::Passed);
    }
    Err(format!("it is `{}`", arena.shown(&path)))
}

/// The modes of the file and of the directory that was made for it.
pub(super) fn mode(kit: &Kit) -> Result<Outcome, String> {
    let arena = kit.arena()?;
    let _subject = kit.start_session(&arena, "s-mode")?;
    let (path, _) = arena.only_claim()?;
    let read = whosup_core::sidecar::read_sidecar(&path);
    let (_, facts) = read.map_err(|error| error.to_string())?;
    let Some(mode) = facts.mode else {
        return Ok(Outcome::Skipped(Absent::Unsupported.to_string()));
    };
    if mode & 0o7777 != 0o600 {
        return Err(format!(
            "the file's mode is {:04o}, not 0600",
            mode & 0o7777
        ));
    }
    Ok(Outcome::Passed)
}

/// A switch to another session.
pub(super) fn switch(kit: &Kit) -> Result<Outcome, String> {
    let arena = kit.arena()?;
    let mut subject = kit.start_session(&arena, "s-one")?;
    let (_, first) = arena.only_claim()?;
    subject.must("switch s-two")?;
    let (_, second) = arena.only_claim()?;
    if second.session() != "s-two" || second.pid() != subject.pid() {
        return Err(format!(
            "the file that is left is about `{}`",
            second.session()
        ));
    }
    if second.sidecar.started_at_ms < first.sidecar.started_at_ms {
        return Err("`started_at` went back".to_owned());
    }
    subject.must("switch s-one")?;
    let (_, third) = arena.only_claim()?;
    if third.session() != "s-one" {
        return Err("it does not switch back".to_owned());
    }
    Ok(Outcome::Passed)
}
