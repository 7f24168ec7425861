//! Odd ids, and directories that may not be written.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::commands::conformance::arena::Arena;
use crate::commands::conformance::check::{Kit, Outcome, WITHOUT_RIGHTS};
use crate::commands::conformance::subject::{Answer, Subject};

/// Ids that are good, and odd.
pub(super) fn odd_ids(kit: &Kit) -> Result<Outcome, String> {
    let arena = kit.arena()?;
    let mut subject = kit.start_session(&arena, "s-first")?;
    let longest = "x".repeat(128);
    for id in [
        "séance-会話-разговор",
        "a b",
        "v1..v2",
        ".hidden-id",
        "1795813652966_5ypul",
        &longest,
    ] {
        subject.must(&format!("switch {id}"))?;
        let claims = arena.claims()?;
        let is_there = claims.values().any(|claim| claim.session() == id);
        if !is_there {
            return Err(format!("there is no sidecar about `{id}`"));
        }
    }
    Ok(Outcome::Passed)
}

/// Ids that could leave their directory, or be no file's name somewhere.
pub(super) fn refused_ids(kit: &Kit) -> Result<Outcome, String> {
    let arena = kit.arena()?;
    let mut subject = kit.start_session(&arena, "s-good")?;
    let before = arena.files();
    let too_long = "x".repeat(129);
    for id in [
        "../escaped",
        "../../escaped",
        "/escaped",
        "a/b",
        "a\\b",
        "..",
        ".",
        "con",
        "a:b",
        &too_long,
    ] {
        match subject.ask(&format!("switch {id}"))? {
            Answer::Error(_) => {}
            other => return Err(format!("it answered {other:?} to `switch {id}`")),
        }
        if arena.files() != before {
            return Err(format!("`switch {id}` changed files"));
        }
    }
    subject.must("switch s-better")?;
    Ok(Outcome::Passed)
}

/// A directory that may not be written: nothing changes, and the agent goes on.
pub(super) fn read_only(kit: &Kit) -> Result<Outcome, String> {
    // What it can't do with all rights is another check's.
    kit.start_session(&kit.arena()?, "s-writable")?;
    let arena = kit.arena()?;
    let is_root = rustix::process::geteuid().is_root();
    let wrapper: &[&str] = if is_root { &WITHOUT_RIGHTS } else { &[] };
    if is_root {
        for directory in [arena.root(), &arena.home(), &arena.work_dir()] {
            set_mode(directory, 0o777)?;
        }
    }
    let mut subject = match kit.launch(wrapper, &arena).start() {
        Ok(subject) => subject,
        Err(error) if is_root => return Ok(Outcome::Skipped(error)),
        Err(error) => return Err(error),
    };
    let first = subject.ask("start s-writable");
    if is_root && first != Ok(Answer::Ok) {
        let why = "the program can't be started as another user, and root may write everywhere";
        return Ok(Outcome::Skipped(why.to_owned()));
    }
    let (path, _) = arena.only_claim()?;
    let directory = path.parent().unwrap_or(&path).to_owned();
    set_mode(&directory, 0o555)?;
    let survived = survives(&arena, &mut subject);
    set_mode(&directory, 0o755)?;
    survived?;
    subject.must("switch s-after")?;
    let claims = arena.claims()?;
    if claims.values().any(|claim| claim.session() == "s-after") {
        return Ok(Outcome::Passed);
    }
    Err("it does not write once it may again".to_owned())
}

fn survives(arena: &Arena, subject: &mut Subject) -> Result<(), String> {
    let before = arena.files();
    match subject.ask("switch s-refused")? {
        Answer::Error(_) | Answer::Ok => {}
        Answer::Unsupported => return Err("`switch` is not supported".to_owned()),
    }
    // An agent whose sessions have directories of their own may have made one.
    let is_changed = arena
        .files()
        .iter()
        .any(|path| !before.contains(path) && path.to_string_lossy().ends_with(".tmp"));
    if is_changed {
        return Err("it left a temporary file".to_owned());
    }
    Ok(())
}

fn set_mode(path: &Path, mode: u32) -> Result<(), String> {
    std::fs::set_permissions(path, Permissions::from_mode(mode))
        .map_err(|error| format!("cannot set the mode of `{}`: {error}", path.display()))
}
