//! Problems with hooks.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use whosup_core::adapter::{Adapter, Home};

use whosup_core::sessions::session::Session;
use whosup_core::sidecar::file::mode_of;
use whosup_core::sources::agents::{AGENTS, id_of};
use whosup_core::sources::record::StoredRecord;
use whosup_track::{HookSite, Installed, Store, installed};

use super::finding::{Finding, Remedy};
use crate::app::App;
use crate::text;

/// How long an agent that was started before the hooks were installed may be silent, in
/// milliseconds.
const STARTED_BEFORE_MS: i64 = 60 * 60 * 1_000;
/// Everyone may write (`S_IWOTH`, inode(7)).
const WORLD_WRITABLE: u32 = 0o002;
/// Only its owner removes or renames an entry (`S_ISVTX`, inode(7)).
const STICKY: u32 = 0o1000;
/// This program's version.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Hooks that are incomplete, run a missing or older program, or are silent.
pub(super) fn findings(
    app: &App<'_>,
    sessions: &[Session],
    records: &[StoredRecord],
) -> anyhow::Result<Vec<Finding>> {
    let machine = app.world.machine();
    let store = Store::of(machine.environment())?;
    let program = std::env::current_exe()?;
    let mut findings = Vec::new();
    for adapter in AGENTS
        .iter()
        .copied()
        .filter(|one| one.profile().hooks.is_some())
    {
        for home in app.world.homes_of(adapter, &[])? {
            let site = HookSite {
                adapter,
                home: &home.root,
                environment: machine.environment(),
                program: &program,
            };
            let set = match installed(&site, &store) {
                Ok(set) => set,
                Err(error) => {
                    findings.push(Finding::new(
                        error.to_string(),
                        format!(
                            "correct that file, then whosup hooks status {}",
                            id_of(adapter)
                        ),
                    ));
                    continue;
                }
            };
            findings.extend(of_settings(app, adapter, &home, &set, &program));
            findings.extend(of_silence(adapter, &home, &set, sessions, records));
        }
    }
    Ok(findings)
}

fn of_settings(
    app: &App<'_>,
    adapter: &'static dyn Adapter,
    home: &Home,
    set: &Installed,
    own: &Path,
) -> Vec<Finding> {
    let agent = id_of(adapter);
    let command = format!("whosup hooks install {agent}");
    let remedy = || Remedy::SetHooks {
        adapter,
        home: home.root.to_path_buf(),
    };
    let mut findings = Vec::new();
    if !set.present.is_empty() && !set.missing.is_empty() {
        let missing = set.missing.join(", ");
        let what = format!("hooks of {agent} are installed in part: {missing} are missing");
        findings.push(Finding::new(what, &command).with(remedy()));
    }
    for program in &set.programs {
        let wrong = match condition_of(app, program, own) {
            Ok(()) => continue,
            Err(wrong) => wrong,
        };
        let what = format!(
            "hooks of {agent} run `{}`, which {wrong}",
            text::visible(program)
        );
        findings.push(Finding::new(what, &command).with(remedy()));
    }
    findings
}

/// What is wrong with the program that hooks run.
fn condition_of(app: &App<'_>, program: &str, own: &Path) -> Result<(), String> {
    let path = found(app, program)?;
    let mounts = app.world.machine().mounts();
    match mounts.touchable(&path) {
        Err(why) => return Err(format!("can't be looked at: {why}")),
        Ok(path) if !path.is_file() => return Err("is not there".to_owned()),
        Ok(_) if mounts.real_path(&path) == mounts.real_path(own) => return Ok(()),
        Ok(_) => {}
    }
    check_safe(&path)?;
    let commands = app.world.machine().commands();
    let arguments = [OsString::from("--version")];
    let output = commands.run(&path.to_string_lossy(), &arguments, commands.deadline());
    let output = output.map_err(|error| format!("does not answer: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = said.trim().strip_prefix("whosup ").map(str::to_owned);
    match version {
        None => Err("is no whosup".to_owned()),
        Some(version) if is_older(&version, VERSION) => Err(format!(
            "is older: {} and not {VERSION}",
            text::one_line(&version)
        )),
        Some(_) => Ok(()),
    }
}

/// Finds the program that settings name: at its path, or on the search path.
///
/// A relative path means a different program in each directory that an agent works in,
/// and the author of that directory's files chose it: it is never run.
fn found(app: &App<'_>, program: &str) -> Result<PathBuf, String> {
    let path = Path::new(program);
    if path.is_absolute() {
        return Ok(path.to_owned());
    }
    if path.components().count() != 1 || program.contains('/') {
        return Err("is not looked at: a relative path leads elsewhere in each directory".into());
    }
    let environment = app.world.machine().environment();
    let search = environment.variable("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(search)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(path));
    let found = places.find(|place| place.is_file());
    found.ok_or_else(|| "is not on `PATH`".to_owned())
}

/// Refuses a program that another user may have put there: it is not even run to ask for
/// its version.
fn check_safe(program: &Path) -> Result<(), String> {
    let real = program.canonicalize().map_err(|error| error.to_string())?;
    // Without modes, no file is known to be world-writable.
    let is_open = |path: &Path| mode_of(path).unwrap_or(0) & WORLD_WRITABLE != 0;
    let is_sticky = |path: &Path| mode_of(path).unwrap_or(0) & STICKY != 0;
    let unsafe_at = |place: &Path| {
        let place = text::visible(&place.to_string_lossy());
        Err(format!("is not run: everybody may write `{place}`"))
    };
    if is_open(&real) {
        return unsafe_at(&real);
    }
    for path in [program, &real] {
        for (above, directory) in path.ancestors().skip(1).enumerate() {
            // In a directory with the sticky bit no user can replace another user's file, but any
            // user may have created it first.
            let is_kept = above > 0 && is_sticky(directory);
            if is_open(directory) && !is_kept {
                return unsafe_at(directory);
            }
        }
    }
    Ok(())
}

/// Whether a version is older than another; false if either is no version.
fn is_older(version: &str, than: &str) -> bool {
    let numbers = |text: &str| -> Option<Vec<u64>> {
        let numbers = text.split(['-', '+']).next()?.split('.');
        numbers.map(|number| number.parse().ok()).collect()
    };
    match (numbers(version), numbers(than)) {
        (Some(version), Some(than)) => version < than,
        _ => false,
    }
}

/// Hooks that are installed, but reported nothing though the agent was used.
fn of_silence(
    adapter: &'static dyn Adapter,
    home: &Home,
    set: &Installed,
    sessions: &[Session],
    records: &[StoredRecord],
) -> Option<Finding> {
    let agent = id_of(adapter);
    if set.present.is_empty() {
        return None;
    }
    let heard = records
        .iter()
        .filter(|stored| stored.record.agent == agent && *stored.record.home == *home.root)
        .map(|stored| stored.record.last_event_at_ms)
        .max();
    let is_untrusted = set.trusted == Some(0);
    let since = set.set_at_ms?;
    let is_heard = heard.is_some_and(|at_ms| at_ms >= since);
    let used = sessions
        .iter()
        .filter(|one| one.key.agent == agent && one.key.home == home.root)
        .filter_map(Session::last_activity_at_ms)
        .max();
    // A process that started before may not have read the settings.
    let is_used = used.is_some_and(|at_ms| at_ms.saturating_sub(since) > STARTED_BEFORE_MS);
    if is_heard || !(is_used || is_untrusted) {
        return None;
    }
    let what = format!("hooks of {agent} are installed, but have reported nothing since");
    Some(if is_untrusted {
        Finding::new(
            format!("{what}: they are not trusted in {}", adapter.profile().name),
            "start the agent, and trust the hooks that it asks about",
        )
    } else {
        Finding::new(
            what,
            format!(
                "whosup hooks status {agent}, then restart the agent; errors are in ~/.local/state/whosup/hook.log"
            ),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::is_older;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        assert!(is_older("0.9.0", "0.10.0") && is_older("1.2.3", "1.2.4-dev"));
        assert!(!is_older("0.10.0", "0.9.9") && !is_older("1.0.0", "1.0.0"));
        assert!(!is_older("unknown", "1.0.0"));
    }
}
