//! One session, one process: the contents and the place of the file.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use whosup_core::machine::now_ms;
use whosup_core::process::system_backend;
use whosup_core::sidecar::{Serves, StrictObject};

use crate::commands::conformance::arena::{Arena, Claim};
use crate::commands::conformance::check::{Kit, Outcome};
use crate::commands::conformance::stage::process_of;
use crate::commands::conformance::subject::Subject;

/// The tolerance for dates that a process writes, in milliseconds.
const SLACK_MS: i64 = 20;
/// The time between the start of a process or session and the next, so that their dates
/// differ.
const PAUSE: Duration = Duration::from_millis(200);

/// Every required field is there and true.
pub(super) fn fields(kit: &Kit) -> Result<Outcome, String> {
    let arena = kit.arena()?;
    let mut subject = kit.start(&arena)?;
    // Once it answers, with whatever, it has started: the session's start is later.
    subject.ask("anything")?;
    std::thread::sleep(PAUSE);
    let before = now_ms();
    subject.must("start s-fields")?;
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
        && host.0 != sidecar.hostname
    {
        return Err(format!(
            "`hostname` is `{}`, not `{host}`",
            sidecar.hostname
        ));
    }
    require_now(claim, before)?;
    check_serves(claim)?;
    require_keys_once(claim)
}

/// The session started between `before` and now.
fn require_now(claim: &Claim, before: i64) -> Result<(), String> {
    let span = before - SLACK_MS..=now_ms() + SLACK_MS;
    let said = claim.sidecar.started_at_ms;
    if span.contains(&said) {
        return Ok(());
    }
    Err(format!(
        "`started_at` is {said} ms, and it took up the session between {} and {}",
        span.start(),
        span.end()
    ))
}

/// Readers disagree about the value of a duplicate key.
fn require_keys_once(claim: &Claim) -> Result<(), String> {
    let object = StrictObject::parse(&claim.bytes).map_err(|error| error.to_string())?;
    for key in object.keys() {
        object.opt_value(key).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Readers ignore an unknown word, so that a misspelled word would go unnoticed.
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

/// The optional fields that identify the process.
pub(super) fn identity(kit: &Kit) -> Result<Outcome, String> {
    let arena = kit.arena()?;
    let subject = kit.start_session(&arena, "s-identity")?;
    let (_, claim) = arena.only_claim()?;
    let sidecar = claim.sidecar;
    let backend = system_backend();
    let (scope, view) = (backend.scope(), backend.view());
    let stamp = process_of(&subject)?.stamp;
    let mut missing = Vec::new();
    match &sidecar.process_start {
        Some(said) if said.kind() != stamp.kind() => {
            return Err(format!(
                "`process_start_kind` is `{}`, not `{}`",
                said.kind().name(),
                stamp.kind().name()
            ));
        }
        Some(said) if *said != stamp => {
            return Err(format!("`process_start` is `{said}`, not `{stamp}`"));
        }
        Some(_) => {}
        None if sidecar.process_start_text.is_some() => {
            return Err("`process_start` and `process_start_kind` do not fit".to_owned());
        }
        // In a time namespace, other processes read another start stamp.
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
    let details = backend.details(&process_of(&subject)?);
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

/// A switch to another session.
pub(super) fn switch(kit: &Kit) -> Result<Outcome, String> {
    let arena = kit.arena()?;
    let mut subject = kit.start_session(&arena, "s-one")?;
    let (_, first) = arena.only_claim()?;
    std::thread::sleep(PAUSE);
    let before = now_ms();
    subject.must("switch s-two")?;
    let (_, second) = arena.only_claim()?;
    if second.session() != "s-two" || second.pid() != subject.pid() {
        return Err(format!(
            "the file that is left is about `{}`",
            second.session()
        ));
    }
    require_now(&second, before)?;
    let (one, two) = (unchanging(&first)?, unchanging(&second)?);
    if let Some(key) = one
        .keys()
        .chain(two.keys())
        .find(|key| one.get(*key) != two.get(*key))
    {
        return Err(format!("`{key}` changed with the session"));
    }
    subject.must("switch s-one")?;
    let (_, third) = arena.only_claim()?;
    if third.session() != "s-one" {
        return Err("it does not switch back".to_owned());
    }
    let dates = [&first, &second, &third].map(|claim| claim.sidecar.started_at_ms);
    if dates.iter().all(|date| date % 1_000 == 0) {
        return Err("`started_at` has no fractions of seconds".to_owned());
    }
    Ok(Outcome::Passed)
}

/// The fields that do not depend on the session.
fn unchanging(claim: &Claim) -> Result<BTreeMap<String, Value>, String> {
    let parsed = serde_json::from_slice(&claim.bytes);
    let mut fields: BTreeMap<String, Value> = parsed.map_err(|error| error.to_string())?;
    let of_process = |key: &str| {
        key.ends_with("_version")
            || [
                "pid",
                "hostname",
                "serves",
                "process_start",
                "process_start_kind",
                "boot_id",
                "pid_namespace",
                "executable",
            ]
            .contains(&key)
    };
    fields.retain(|key, _| of_process(key));
    Ok(fields)
}

/// A switch to the current session.
pub(super) fn same(kit: &Kit) -> Result<Outcome, String> {
    let arena = kit.arena()?;
    let mut subject = kit.start_session(&arena, "s-same")?;
    let (path, _) = arena.only_claim()?;
    std::thread::sleep(PAUSE);
    let before = now_ms();
    subject.must("switch s-same")?;
    let (now, claim) = arena.only_claim()?;
    if now != path || claim.session() != "s-same" {
        return Err(format!("the file is `{}` after that", arena.shown(&now)));
    }
    require_now(&claim, before)?;
    Ok(Outcome::Passed)
}
