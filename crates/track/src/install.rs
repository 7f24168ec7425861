//! Sets hooks in agents' settings, and takes them out: the one place where a file
//! of an agent's is written, and only when a person asks for it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use whosup_core::agents::{self, Adapter, Hooks};
use whosup_core::sidecar::StrictObject;
use whosup_core::sidecar::file::{Links, ReadFileError, read_regular};

use crate::disk::{make_directory, open_own};
use crate::settings::{
    Insertion, SettingsError, apply, insertions, places, present, without, without_command,
};
use crate::{Store, TrackError};

/// How long settings may be, in bytes.
const SETTINGS_BYTES_MAX: u64 = 4 << 20;
/// How long the note of what was inserted may be, in bytes.
const NOTE_BYTES_MAX: u64 = 4 << 20;

/// A change of one agent's settings that is not made yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The agent's name for people.
    pub agent: &'static str,
    /// The settings, as they are named.
    pub path: PathBuf,
    /// What is there; `None` if there is no such file.
    pub before: Option<String>,
    /// What is to be there; `None` if the file goes.
    pub after: Option<String>,
    /// A person has to trust the hooks in the agent.
    pub must_be_trusted: bool,
    inserted: Vec<Insertion>,
    note: PathBuf,
}

/// What is set in one agent's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// The settings.
    pub path: PathBuf,
    /// The events that are told of.
    pub present: Vec<String>,
    /// Those that are not.
    pub missing: Vec<String>,
}

/// Plans to set the hooks of an agent in one of its homes; `None` if all are set.
///
/// # Errors
///
/// [`TrackError`] if its settings can't be read or understood.
pub fn plan_install(
    adapter: &dyn Adapter,
    home: &Path,
    program: &Path,
    store: &Store,
) -> Result<Option<Change>, TrackError> {
    let hooks = hooks_of(adapter)?;
    let path = home.join(hooks.settings_file);
    let before = read(&path)?;
    let text = before.clone().unwrap_or_default();
    let command = command(adapter, program);
    let wrong = |error: SettingsError| wrong_settings(&path, error);
    let set = present(hooks.form, &text, hooks.events, &command).map_err(wrong)?;
    let missing: Vec<&str> = hooks
        .events
        .iter()
        .copied()
        .filter(|event| !set.iter().any(|set| set == event))
        .collect();
    let added = insertions(hooks.form, &text, &missing, &command).map_err(wrong)?;
    if added.is_empty() {
        return Ok(None);
    }
    let after = apply(&text, &added);
    // What we make must be what it was meant to be.
    let set = present(hooks.form, &after, hooks.events, &command).map_err(wrong)?;
    if set.len() != hooks.events.len() {
        let reason = "its form leaves no place for hooks".to_owned();
        return Err(wrong(SettingsError(reason)));
    }
    Ok(Some(Change {
        agent: adapter.profile().name,
        note: note_of(store, adapter, &path),
        path,
        before,
        after: Some(after),
        must_be_trusted: hooks.must_be_trusted,
        inserted: places(&added),
    }))
}

/// Plans to take the hooks of an agent out of one of its homes; `None` if there
/// are none.
///
/// # Errors
///
/// [`TrackError`] if its settings can't be read or understood.
pub fn plan_uninstall(
    adapter: &dyn Adapter,
    home: &Path,
    program: &Path,
    store: &Store,
) -> Result<Option<Change>, TrackError> {
    let hooks = hooks_of(adapter)?;
    let path = home.join(hooks.settings_file);
    let Some(text) = read(&path)? else {
        return Ok(None);
    };
    let note = note_of(store, adapter, &path);
    let noted = read_note(&note);
    let as_before = noted
        .as_ref()
        .and_then(|noted| Some((without(&text, &noted.inserted, noted.len)?, noted.was_there)));
    let (after, was_there) = match as_before {
        Some(found) => found,
        None => {
            let command = command(adapter, program);
            let after = without_command(hooks.form, &text, &command)
                .map_err(|error| wrong_settings(&path, error))?;
            (after, true)
        }
    };
    if after == text {
        return Ok(None);
    }
    let is_gone = !was_there && after.is_empty();
    Ok(Some(Change {
        agent: adapter.profile().name,
        path,
        before: Some(text),
        after: (!is_gone).then_some(after),
        must_be_trusted: false,
        inserted: Vec::new(),
        note,
    }))
}

/// What of an agent's hooks is set in one of its homes.
///
/// # Errors
///
/// [`TrackError`] if its settings can't be read or understood.
pub fn installed(
    adapter: &dyn Adapter,
    home: &Path,
    program: &Path,
) -> Result<Installed, TrackError> {
    let hooks = hooks_of(adapter)?;
    let path = home.join(hooks.settings_file);
    let text = read(&path)?.unwrap_or_default();
    let command = command(adapter, program);
    let present = present(hooks.form, &text, hooks.events, &command)
        .map_err(|error| wrong_settings(&path, error))?;
    let missing = hooks
        .events
        .iter()
        .filter(|event| !present.iter().any(|set| set == *event));
    Ok(Installed {
        missing: missing.map(|event| (*event).to_owned()).collect(),
        present,
        path,
    })
}

/// Makes a change. A link stays a link, and a mode stays as it is.
///
/// # Errors
///
/// [`TrackError`] if the settings are not as they were when the change was
/// planned, or can't be written. What was there before is still there then.
pub fn make(change: &Change) -> Result<(), TrackError> {
    if read(&change.path)? != change.before {
        let reason = "it has changed meanwhile".to_owned();
        return Err(wrong_settings(&change.path, SettingsError(reason)));
    }
    if change.inserted.is_empty() {
        write_settings(change)?;
        // Without the note the hooks are found by their command.
        std::fs::remove_file(&change.note).ok();
        return Ok(());
    }
    let note = noted(change, read_note(&change.note));
    if let Some(directory) = change.note.parent() {
        make_directory(directory).map_err(TrackError::at("make", directory))?;
    }
    replace(&change.note, note.to_string().as_bytes())
        .map_err(TrackError::at("write", &change.note))?;
    write_settings(change)
}

/// What is to be remembered: what was inserted earlier, where it is now, and what
/// is inserted now.
fn noted(change: &Change, earlier: Option<Note>) -> serde_json::Value {
    let before_len = change.before.as_ref().map_or(0, String::len);
    let was_there = earlier
        .as_ref()
        .map_or(change.before.is_some(), |note| note.was_there);
    let mut inserted = change.inserted.clone();
    let mut len = change.after.as_ref().map_or(0, String::len);
    if let Some(earlier) = earlier {
        if earlier.len != before_len {
            // It is no longer where it was: its words have to do.
            len = 0;
        }
        let moved = earlier.inserted.into_iter().map(|mut one| {
            for new in &change.inserted {
                if new.at <= one.at {
                    one.at += new.text.len();
                }
            }
            one
        });
        inserted.extend(moved);
    }
    let inserted: Vec<_> = inserted
        .iter()
        .map(|one| serde_json::json!({ "at": one.at, "text": one.text }))
        .collect();
    serde_json::json!({
        "schema_version": 1,
        "path": change.path.to_string_lossy(),
        "was_there": was_there,
        "length": len,
        "inserted": inserted,
    })
}

fn write_settings(change: &Change) -> Result<(), TrackError> {
    let path = std::fs::canonicalize(&change.path).unwrap_or_else(|_| change.path.clone());
    match &change.after {
        Some(text) => replace(&path, text.as_bytes()).map_err(TrackError::at("write", &path)),
        None => std::fs::remove_file(&path).map_err(TrackError::at("remove", &path)),
    }
}

/// Puts bytes at a path: all of them, or what was there stays.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".whosup-new");
    let temporary = path.with_file_name(name);
    let write = || {
        let mut file = open_own(&temporary, OpenOptions::new().write(true).truncate(true))?;
        file.write_all(bytes)?;
        if let Ok(old) = File::open(path) {
            file.set_permissions(old.metadata()?.permissions())?;
        }
        file.sync_all()?;
        std::fs::rename(&temporary, path)
    };
    let result = write();
    if result.is_err() {
        // It may not have come to be.
        std::fs::remove_file(&temporary).ok();
    }
    result
}

/// The command that a hook runs.
fn command(adapter: &dyn Adapter, program: &Path) -> String {
    let program = program.to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    let program = if program.chars().all(is_plain) {
        program.into_owned()
    } else {
        format!("'{}'", program.replace('\'', r"'\''"))
    };
    format!("{program} hook {}", agents::id_of(adapter))
}

fn hooks_of(adapter: &dyn Adapter) -> Result<&'static Hooks, TrackError> {
    adapter.hooks().ok_or_else(|| TrackError::UnknownAgent {
        agent: agents::id_of(adapter).to_string(),
    })
}

fn read(path: &Path) -> Result<Option<String>, TrackError> {
    let unreadable = |reason: String| wrong_settings(path, SettingsError(reason));
    match read_regular(path, SETTINGS_BYTES_MAX, Links::Follow) {
        Ok(file) => String::from_utf8(file.bytes)
            .map(Some)
            .map_err(|_| unreadable("it is not valid UTF-8".to_owned())),
        Err(ReadFileError::NotFound { .. }) => Ok(None),
        Err(error) => Err(unreadable(error.reason())),
    }
}

fn wrong_settings(path: &Path, error: SettingsError) -> TrackError {
    TrackError::Settings {
        path: path.to_owned(),
        reason: error.0,
    }
}

/// What was inserted earlier.
struct Note {
    inserted: Vec<Insertion>,
    len: usize,
    was_there: bool,
}

/// One note for each file of settings, named by agent and path.
fn note_of(store: &Store, adapter: &dyn Adapter, settings: &Path) -> PathBuf {
    let is_plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let name: String = settings
        .to_string_lossy()
        .chars()
        .rev()
        .take(100)
        .map(is_plain)
        .collect();
    let name: String = name.chars().rev().collect();
    let file = format!("{}{name}.json", agents::id_of(adapter));
    let state = store.root().parent().unwrap_or(store.root());
    state.join("hooks").join(file)
}

fn read_note(path: &Path) -> Option<Note> {
    let file = read_regular(path, NOTE_BYTES_MAX, Links::Refuse).ok()?;
    let object = StrictObject::parse(&file.bytes).ok()?;
    let insertion = |value| {
        let one = StrictObject::from_value(value).ok()?;
        Some(Insertion {
            at: usize::try_from(one.integer("at").ok()?).ok()?,
            text: one.string("text").ok()?.to_owned(),
        })
    };
    let inserted = object.array("inserted").ok()?.iter().map(insertion);
    Some(Note {
        inserted: inserted.collect::<Option<_>>()?,
        len: usize::try_from(object.integer("length").ok()?).ok()?,
        was_there: object.bool("was_there").ok()?,
    })
}
