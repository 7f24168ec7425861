//! Many switches at once, watched by a reader that never pauses.

use std::path::PathBuf;

use super::arena::{Arena, is_sidecar};
use super::check::{Kit, Outcome};
use super::follower::{Follower, Seen};
use super::subject::{Answer, Subject};

/// How many switches are asked for without waiting for one.
const SWITCHES: usize = 300;
/// How many switches are sent before an answer is read: a pipe holds 64 KiB.
const AHEAD: usize = 100;

/// Makes it switch over and over; a reader looks at everything meanwhile.
pub(super) fn burst(kit: &Kit) -> Result<(Arena, Subject, Seen), String> {
    let arena = kit.arena()?;
    let mut subject = kit.start_session(&arena, "burst-first")?;
    let (path, _) = arena.only_claim()?;
    let directory = path.parent().map(PathBuf::from).unwrap_or_default();
    let names = arena.files().into_iter().filter(|path| is_sidecar(path));
    let names = names.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()));
    let mut follower = Follower::of(&directory, names)?;
    let mut sent = 0;
    for answered in 0..SWITCHES {
        while sent < SWITCHES && sent < answered + AHEAD {
            subject.send(&format!("switch burst-{sent}"))?;
            sent += 1;
        }
        arena.claims()?;
        follower.follow();
        match subject.answer()? {
            Answer::Ok => {}
            other => return Err(format!("it answered {other:?} to a switch")),
        }
    }
    let (last, claim) = arena.only_claim()?;
    let right = format!("burst-{}", SWITCHES - 1);
    if claim.session() != right {
        return Err(format!("it ends with `{}`, not `{right}`", claim.session()));
    }
    let mut seen = follower.seen();
    seen.is_incomplete |= last.parent() != Some(directory.as_path());
    Ok((arena, subject, seen))
}

/// What a reader saw during a burst of switches.
pub(super) fn whole_and_never_missing(kit: &Kit) -> Result<Outcome, String> {
    let (_arena, _subject, seen) = burst(kit)?;
    if let Some(name) = seen.written_in_place {
        return Err(format!(
            "`{name}` was written in place: readers see half of it"
        ));
    }
    if seen.is_incomplete {
        let why = "each session has a directory of its own, or this system reports no events: \
                   every file that was seen was whole";
        return Ok(Outcome::Noted(why.to_owned()));
    }
    if seen.was_missing {
        let why =
            "at some moment there was no sidecar: the new one must come before the old one goes";
        return Err(why.to_owned());
    }
    if seen.most > 2 {
        let most = seen.most;
        return Err(format!(
            "at some moment there were {most} sidecars of one process"
        ));
    }
    Ok(Outcome::Passed)
}

/// What is left after a burst of switches.
pub(super) fn no_stray_files(kit: &Kit) -> Result<Outcome, String> {
    let (arena, _subject, _) = burst(kit)?;
    let (path, claim) = arena.only_claim()?;
    let strays = arena.strays(path.parent().unwrap_or(&path), &claim);
    if strays.is_empty() {
        return Ok(Outcome::Passed);
    }
    Err(format!("it leaves {}", strays.join(", ")))
}
