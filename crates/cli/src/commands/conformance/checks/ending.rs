//! Every kind of end, and the phase before it.

use std::time::Duration;

use crate::commands::conformance::check::{Kit, Outcome};
use crate::commands::conformance::subject::Answer;

/// How often a process is killed.
const KILLS: u64 = 12;
/// How many switches it makes before it is killed.
const SWITCHES: usize = 60;

/// The program exits.
pub(super) fn exit(kit: &Kit) -> Result<Outcome, String> {
    let arena = kit.arena()?;
    let mut subject = kit.start_session(&arena, "s-exit")?;
    subject.send("exit")?;
    let status = subject.wait()?;
    if !status.success() {
        return Err(format!("it ended with {status}"));
    }
    let claims = arena.claims()?;
    if claims.len() > 1 {
        return Err(format!("it leaves {} sidecars", claims.len()));
    }
    Ok(Outcome::Passed)
}

/// The program crashes.
pub(super) fn crash(kit: &Kit) -> Result<Outcome, String> {
    let arena = kit.arena()?;
    let mut subject = kit.start_session(&arena, "s-crash")?;
    subject.send("crash")?;
    let status = subject.wait()?;
    if status.success() {
        return Err("a crash is no success: it ended with status 0".to_owned());
    }
    arena.claims()?;
    kit.start_session(&arena, "s-crash")?;
    Ok(Outcome::Passed)
}

/// The program is killed at random moments.
pub(super) fn killed(kit: &Kit) -> Result<Outcome, String> {
    let arena = kit.arena()?;
    for round in 0..KILLS {
        let mut subject = kit.start_session(&arena, "s-killed")?;
        for at in 0..SWITCHES {
            subject.send(&format!("switch s-{at}"))?;
        }
        std::thread::sleep(Duration::from_micros(round * round * 130));
        subject.kill()?;
        let left = arena.claims()?;
        let of_it = left.values().filter(|claim| claim.pid() == subject.pid());
        let count = of_it.count();
        if count > 2 {
            return Err(format!("a kill left {count} sidecars of one process"));
        }
        let mut next = kit.start_session(&arena, "s-next")?;
        let claims = arena.claims()?;
        let own = claims.iter().find(|(_, claim)| claim.pid() == next.pid());
        let (path, _) = own.ok_or("the next process has no file")?;
        let strays = arena.whole_strays(path.parent().unwrap_or(path));
        if !strays.is_empty() {
            return Err(format!(
                "after the next process began there is {}",
                strays.join(", ")
            ));
        }
        next.send("exit")?;
        next.wait()?;
        for path in claims.into_keys() {
            std::fs::remove_file(path).ok();
        }
    }
    Ok(Outcome::Passed)
}

/// The program reports its phase.
pub(super) fn phase(kit: &Kit) -> Result<Outcome, String> {
    let arena = kit.arena()?;
    let mut subject = kit.start_session(&arena, "s-phase")?;
    let (path, before) = arena.only_claim()?;
    for (word, waiting_for) in [
        ("working", None),
        ("waiting", Some("permission")),
        ("idle", None),
    ] {
        match subject.ask(&format!("phase {word}"))? {
            Answer::Ok => {}
            Answer::Unsupported => {
                return Ok(Outcome::Skipped("it does not report phases".to_owned()));
            }
            Answer::Error(error) => return Err(error),
        }
        let (now, claim) = arena.only_claim()?;
        require_word("phase", claim.sidecar.phase.as_deref(), Some(word), word)?;
        let said = claim.sidecar.waiting_for.as_deref();
        require_word("waiting_for", said, waiting_for, word)?;
        if now != path || claim.sidecar.started_at_ms != before.sidecar.started_at_ms {
            return Err("a phase changed the file's place or its `started_at`".to_owned());
        }
    }
    subject.must("switch s-without-phase")?;
    let (_, claim) = arena.only_claim()?;
    match claim.sidecar.phase {
        None => Ok(Outcome::Passed),
        Some(phase) => Err(format!("after a switch `phase` is still `{phase}`")),
    }
}

fn require_word(
    field: &str,
    said: Option<&str>,
    right: Option<&str>,
    phase: &str,
) -> Result<(), String> {
    if said == right {
        return Ok(());
    }
    let said = said.map_or_else(|| "missing".to_owned(), |word| format!("`{word}`"));
    Err(format!("`{field}` is {said} after `phase {phase}`"))
}

/// A forked child has no part in the session.
pub(super) fn fork(kit: &Kit) -> Result<Outcome, String> {
    let arena = kit.arena()?;
    let mut subject = kit.start_session(&arena, "s-parent")?;
    let (path, before) = arena.only_claim()?;
    let answer = subject.ask("fork s-child")?;
    if answer == Answer::Unsupported {
        return Ok(Outcome::Skipped("it forks no child".to_owned()));
    }
    let (now, after) = arena.only_claim()?;
    if now != path || after.bytes != before.bytes {
        return Err("a forked child changed its parent's file".to_owned());
    }
    if answer == Answer::Ok {
        return Err("a forked child could use its parent's handle".to_owned());
    }
    Ok(Outcome::Passed)
}

/// The program releases the session.
pub(super) fn release(kit: &Kit) -> Result<Outcome, String> {
    let arena = kit.arena()?;
    let mut subject = kit.start_session(&arena, "s-release")?;
    match subject.ask("release")? {
        Answer::Ok => {}
        Answer::Unsupported => return Ok(Outcome::Skipped("it releases nothing".to_owned())),
        Answer::Error(error) => return Err(error),
    }
    if !arena.claims()?.is_empty() {
        return Err("the file is there still".to_owned());
    }
    // From here on nothing is written, whatever the input says.
    for line in ["phase working", "switch s-after"] {
        let answer = subject.ask(line)?;
        if !arena.claims()?.is_empty() {
            return Err(format!("`{line}` writes a file after its release"));
        }
        if answer == Answer::Ok {
            return Err(format!("it answered `ok` to `{line}` after its release"));
        }
    }
    Ok(Outcome::Passed)
}
