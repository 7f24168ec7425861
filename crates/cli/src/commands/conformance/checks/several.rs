//! Several processes on one session.

use std::collections::BTreeSet;

use crate::commands::conformance::arena::Arena;
use crate::commands::conformance::check::{Kit, Outcome};
use crate::commands::conformance::subject::{Answer, Subject};

/// How many processes take over one session at once.
const AT_ONCE: usize = 4;

fn pids(arena: &Arena) -> Result<BTreeSet<i32>, String> {
    Ok(arena.claims()?.values().map(|claim| claim.pid()).collect())
}

fn require_pids(arena: &Arena, right: &[&Subject], when: &str) -> Result<(), String> {
    let right: BTreeSet<i32> = right.iter().map(|subject| subject.pid()).collect();
    let claims = arena.claims()?;
    let found: BTreeSet<i32> = claims.values().map(|claim| claim.pid()).collect();
    if found != right {
        return Err(format!(
            "{when} the sidecars name processes {found:?}, not {right:?}"
        ));
    }
    if claims.len() != right.len() {
        let files = claims.len();
        return Err(format!(
            "{when} there are {files} sidecars of {} processes",
            right.len()
        ));
    }
    Ok(())
}

fn two(kit: &Kit, arena: &Arena) -> Result<(Subject, Subject), String> {
    let first = kit.start_session(arena, "s-shared")?;
    let (path, claim) = arena.only_claim()?;
    let second = kit.start_session(arena, "s-shared")?;
    match std::fs::read(&path) {
        Ok(bytes) if bytes == claim.bytes => Ok((first, second)),
        Ok(_) => Err("the second process wrote over the first one's file".to_owned()),
        Err(_) => Err("the second process removed the first one's file".to_owned()),
    }
}

/// Two processes on one session: each has its own claim.
pub(super) fn second_process(kit: &Kit) -> Result<Outcome, String> {
    let arena = kit.arena()?;
    let (first, second) = two(kit, &arena)?;
    require_pids(
        &arena,
        &[&first, &second],
        "with two processes on a session",
    )?;
    for (path, claim) in arena.claims()? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if claim.pid() == second.pid() && !is_sibling_of(&name, "s-shared") {
            return Err(format!(
                "the second claim is `{name}`, not `s-shared.claim-HEX.runtime.json` with 16 digits"
            ));
        }
    }
    Ok(Outcome::Passed)
}

fn is_sibling_of(name: &str, id: &str) -> bool {
    let rest = name
        .strip_prefix(id)
        .and_then(|rest| rest.strip_prefix(".claim-"));
    let digits = rest.and_then(|rest| rest.strip_suffix(".runtime.json"));
    digits.is_some_and(|digits| {
        digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// The second process leaves: the first one's claim stays as it is.
pub(super) fn second_ends(kit: &Kit) -> Result<Outcome, String> {
    let arena = kit.arena()?;
    let (mut first, mut second) = two(kit, &arena)?;
    second.must("switch s-other")?;
    require_pids(&arena, &[&first, &second], "after the second one's switch")?;
    second.must("switch s-shared")?;
    require_pids(&arena, &[&first, &second], "after it came back")?;
    second.send("exit")?;
    second.wait()?;
    if !pids(&arena)?.contains(&first.pid()) {
        return Err("the second process's end removed the first one's file".to_owned());
    }
    first.must("switch s-last")?;
    let left = arena.claims()?;
    let is_there = left
        .values()
        .any(|claim| claim.pid() == first.pid() && claim.session() == "s-last");
    if is_there {
        return Ok(Outcome::Passed);
    }
    Err("the first process has no file after its switch".to_owned())
}

/// A process resumes the session of a killed process.
pub(super) fn taken_over(kit: &Kit) -> Result<Outcome, String> {
    let arena = kit.arena()?;
    let mut dead = kit.start_session(&arena, "s-dead")?;
    dead.kill()?;
    let next = kit.start_session(&arena, "s-dead")?;
    require_pids(&arena, &[&next], "after a dead claim was taken over")?;
    Ok(Outcome::Passed)
}

/// Several processes resume the session of a killed process at once.
pub(super) fn taken_over_at_once(kit: &Kit) -> Result<Outcome, String> {
    let arena = kit.arena()?;
    let mut dead = kit.start_session(&arena, "s-dead")?;
    dead.kill()?;
    let mut subjects = Vec::new();
    for at in 0..AT_ONCE {
        // They have started, and have made the files that they make once.
        subjects.push(kit.start_session(&arena, &format!("s-{at}"))?);
    }
    for subject in &mut subjects {
        subject.send("switch s-dead")?;
    }
    for subject in &mut subjects {
        if subject.answer()? != Answer::Ok {
            return Err("one could not take it over".to_owned());
        }
    }
    let all: Vec<&Subject> = subjects.iter().collect();
    let found = pids(&arena)?;
    for subject in all {
        if !found.contains(&subject.pid()) {
            return Err(format!("process {} has no file", subject.pid()));
        }
    }
    Ok(Outcome::Passed)
}
