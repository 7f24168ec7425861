//! The place of the file: directories, modes, locks.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, fcntl_lock, flock};
use whosup_core::sidecar::AgentId;

use crate::commands::conformance::arena::{Arena, Claim};
use crate::commands::conformance::check::{Kit, Outcome};
use crate::commands::conformance::subject::StateHome;

/// The directory of the common place, within the state directory.
const COMMON_PLACE: &str = "agent-sessions";
/// Umasks that easily give a file or directory a wrong mode.
const UMASKS: [&str; 4] = ["0022", "0000", "0177", "0777"];

/// The name of the file.
pub(super) fn name(kit: &Kit) -> Result<Outcome, String> {
    let arena = kit.arena()?;
    let _subject = kit.start_session(&arena, "S-name")?;
    let (path, _) = arena.only_claim()?;
    let name = path.file_name().and_then(|name| name.to_str());
    if matches!(name, Some("S-name.runtime.json" | "runtime.json")) {
        return Ok(Outcome::Passed);
    }
    Err(format!("it is `{}`", arena.shown(&path)))
}

/// The modes of the file and of the directories that were made for it.
pub(super) fn mode(kit: &Kit) -> Result<Outcome, String> {
    for umask in UMASKS {
        let arena = kit.arena()?;
        let script = format!("umask {umask}; exec \"$@\"");
        let mut subject = kit.launch(&["sh", "-c", &script, "sh"], &arena).start()?;
        for line in ["start s-mode", "switch s-mode", "switch s-mode-too"] {
            subject.must(line)?;
            let (path, _) = arena.only_claim()?;
            require_mode(&arena, &path, 0o600, umask)?;
        }
        // Not every program reports phases.
        subject.ask("phase working")?;
        let (path, _) = arena.only_claim()?;
        require_mode(&arena, &path, 0o600, umask)?;
        // The agent makes the directories of its own data itself.
        let ours = path.ancestors().skip(1);
        for directory in ours.take_while(|at| at.starts_with(arena.state())) {
            require_mode(&arena, directory, 0o700, umask)?;
        }
    }
    Ok(Outcome::Passed)
}

fn require_mode(arena: &Arena, path: &Path, right: u32, umask: &str) -> Result<(), String> {
    let facts = fs::metadata(path).map_err(|error| format!("`{}`: {error}", arena.shown(path)))?;
    let mode = facts.permissions().mode() & 0o7777;
    if mode == right {
        return Ok(());
    }
    Err(format!(
        "the mode of `{}` is {mode:04o}, not {right:04o}, under umask {umask}",
        arena.shown(path)
    ))
}

/// The name of the common place, and that it follows `XDG_STATE_HOME`.
pub(super) fn common_place(kit: &Kit) -> Result<Outcome, String> {
    for state_home in [StateHome::Elsewhere, StateHome::Relative, StateHome::Unset] {
        let arena = kit.arena()?;
        let mut launch = kit.launch(&[], &arena);
        launch.state_home = state_home;
        launch.start()?.must("start s-place")?;
        let (path, claim) = arena.only_claim()?;
        let is_common = path
            .components()
            .any(|part| part.as_os_str() == COMMON_PLACE);
        if !is_common {
            let why = "it keeps its sidecars beside its own data";
            return Ok(Outcome::Skipped(why.to_owned()));
        }
        let state = match state_home {
            StateHome::Elsewhere => arena.state(),
            StateHome::Relative | StateHome::Unset => arena.default_state(),
        };
        check_place(&arena, &path, &state, &claim)?;
    }
    Ok(Outcome::Passed)
}

fn check_place(arena: &Arena, path: &Path, state: &Path, claim: &Claim) -> Result<(), String> {
    let directory = path.parent().unwrap_or(path);
    let agent = directory.file_name().unwrap_or_default().to_string_lossy();
    let right: PathBuf = state.join(COMMON_PLACE).join(&*agent);
    if directory != right {
        return Err(format!(
            "it lies in `{}`, and the state directory is `{}`",
            arena.shown(directory),
            arena.shown(state)
        ));
    }
    AgentId::parse(&agent).map_err(|error| error.to_string())?;
    if agent == "schema" {
        return Err("an agent must not be named `schema`".to_owned());
    }
    let named = claim.sidecar.agent_name.as_deref();
    if named.map(|name| name.replace('_', "-")).as_deref() != Some(&*agent) {
        return Err(format!(
            "the directory is of agent `{agent}`, and the field `NAME_version` of {named:?}"
        ));
    }
    Ok(())
}

/// A call does not wait for a lock that is held for longer than the call lasts.
pub(super) fn unlocked(kit: &Kit) -> Result<Outcome, String> {
    let arena = kit.arena()?;
    kit.start_session(&arena, "s-locked")?.kill()?;
    let mut subject = kit.start_session(&arena, "s-locked")?;
    for line in ["switch s-locked-too", "switch s-locked"] {
        let (path, _) = arena.only_claim()?;
        for at in [path.as_path(), path.parent().unwrap_or(&path)] {
            if is_locked(at)? {
                return Err(format!("it holds a lock on `{}`", arena.shown(at)));
            }
        }
        subject.must(line)?;
    }
    Ok(Outcome::Passed)
}

fn is_locked(path: &Path) -> Result<bool, String> {
    let mut options = fs::File::options();
    options.read(true).write(path.is_file());
    let file = options
        .open(path)
        .map_err(|error| format!("`{}`: {error}", path.display()))?;
    let exclusive = FlockOperation::NonBlockingLockExclusive;
    let is_flocked = flock(&file, exclusive).is_err();
    // Directories have no locks of this kind.
    Ok(is_flocked || (path.is_file() && fcntl_lock(&file, exclusive).is_err()))
}
