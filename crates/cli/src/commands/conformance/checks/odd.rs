//! Odd IDs, and directories without write permission.

use crate::commands::conformance::arena::{Arena, set_mode};
use crate::commands::conformance::check::{Kit, Outcome, WITHOUT_RIGHTS};
use crate::commands::conformance::subject::{Answer, Subject};

/// Valid but odd IDs.
pub(super) fn odd_ids(kit: &Kit) -> Result<Outcome, String> {
    let arena = kit.arena()?;
    let mut subject = kit.start_session(&arena, "s-first")?;
    let longest = "x".repeat(128);
    let longest_of_script = "é".repeat(64);
    for id in [
        "séance-会話-разговор",
        "a b",
        "v1..v2",
        ".hidden-id",
        "1795813652966_5ypul",
        "MiXed-Case",
        // One letter as one character and as two: two IDs.
        "caf\u{e9}",
        "cafe\u{301}",
        "console",
        "com10",
        "a-",
        "it's 100% #1 & [more]",
        &longest,
        &longest_of_script,
    ] {
        subject.must(&format!("switch {id}"))?;
        let (path, claim) = arena.only_claim()?;
        if claim.session() != id {
            return Err(format!("it wrote `{}` for `{id}`", claim.session()));
        }
        let name = path.file_name().unwrap_or_default();
        if name != "runtime.json" && name != format!("{id}.runtime.json").as_str() {
            return Err(format!("the file of `{id}` is `{}`", arena.shown(&path)));
        }
    }
    Ok(Outcome::Passed)
}

/// IDs that could leave their directory, are no file name on some system, look like another
/// ID, or are an option.
const REFUSED: &[&str] = &[
    "",
    "../escaped",
    "../../escaped",
    "/escaped",
    "a/b",
    "a\\b",
    "a<b",
    "a>b",
    "a:b",
    "a\"b",
    "a|b",
    "a?b",
    "a*b",
    ".",
    "..",
    "...",
    "ends.",
    " begins",
    "ends ",
    "-begins",
    "--help",
    "a\tb",
    "a\u{1b}[31mb",
    "a\u{7f}b",
    "a\u{85}b",
    "a\u{200b}b",
    "a\u{202e}b",
    "a\u{2066}b",
    "a\u{ad}b",
    "\u{feff}a",
    "con",
    "CON",
    "prn",
    "aux.txt",
    "nul",
    "Nul.a.b",
    "com0",
    "COM1",
    "lpt9.log",
    "conin$",
    "CONOUT$",
];

/// IDs that could leave their directory, or are no file name on some system.
pub(super) fn refused_ids(kit: &Kit) -> Result<Outcome, String> {
    let arena = kit.arena()?;
    let mut subject = kit.start_session(&arena, "s-good")?;
    let before = arena.files();
    for id in REFUSED.iter().copied().chain([
        "x".repeat(129).as_str(),
        // At most 128 characters, but more than 128 bytes.
        "é".repeat(65).as_str(),
    ]) {
        match subject.ask(&format!("switch {id}"))? {
            Answer::Error(_) => {}
            other => return Err(format!("it answered {other:?} to the id {id:?}")),
        }
        if arena.files() != before {
            return Err(format!("`switch {id}` changed files"));
        }
    }
    subject.must("switch s-better")?;
    Ok(Outcome::Passed)
}

/// A directory without write permission: nothing changes, and the agent continues.
pub(super) fn read_only(kit: &Kit) -> Result<Outcome, String> {
    // A program that fails with write permission is for another check.
    kit.start_session(&kit.arena()?, "s-writable")?;
    let arena = kit.arena()?;
    let is_root = rustix::process::geteuid().is_root();
    let wrapper: &[&str] = if is_root { &WITHOUT_RIGHTS } else { &[] };
    if is_root {
        arena.open_to_all()?;
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
    if has_claim_to(&arena, "s-after")? {
        return Ok(Outcome::Passed);
    }
    Err("it does not write once it may again".to_owned())
}

fn has_claim_to(arena: &Arena, id: &str) -> Result<bool, String> {
    let claims = arena.claims()?;
    Ok(claims.values().any(|claim| claim.session() == id))
}

fn survives(arena: &Arena, subject: &mut Subject) -> Result<(), String> {
    let before = arena.files();
    match subject.ask("switch s-refused")? {
        Answer::Error(_) => {}
        // An agent with one directory per session may have written there.
        Answer::Ok if has_claim_to(arena, "s-refused")? => {}
        other => return Err(format!("it answered {other:?}, and wrote nothing")),
    }
    // An agent with one directory per session may have made a directory.
    let is_changed = arena
        .files()
        .iter()
        .any(|path| !before.contains(path) && path.to_string_lossy().ends_with(".tmp"));
    if is_changed {
        return Err("it left a temporary file".to_owned());
    }
    Ok(())
}
