//! Installs hooks in agents' settings, and removes them: the only place that writes a
//! file of an agent, and only on a person's request.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use whosup_core::adapter::{Adapter, HookCommand, Hooks, SettingsForm};

use whosup_core::machine::Environment;
use whosup_core::sidecar::StrictObject;
use whosup_core::sidecar::file::{Links, ReadFileError, owner_of, read_regular};
use whosup_core::sidecar::own_directory::{Access, Durable, OwnDirectory, split};
use whosup_core::sources::agents;

use crate::disk::{IN_FOLDER, remove, replace};
use crate::settings::{
    Insertion, SettingsError, apply, insertions, places, present, programs, without,
    without_command,
};
use crate::{Store, TrackError};

/// How long settings may be, in bytes.
const SETTINGS_BYTES_MAX: u64 = 4 << 20;
/// How long the note of the inserted text may be, in bytes.
const NOTE_BYTES_MAX: u64 = 4 << 20;

/// Where an agent's hooks are to be set, and what they run.
#[derive(Clone, Copy)]
pub struct HookSite<'a> {
    /// The agent.
    pub adapter: &'a dyn Adapter,
    /// One of its homes.
    pub home: &'a Path,
    /// What else determines where its settings are.
    pub environment: &'a Environment,
    /// The program that hooks run.
    pub program: &'a Path,
}

/// A planned change of one agent's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The agent's name for people.
    pub agent: &'static str,
    /// The settings, as they are named.
    pub path: PathBuf,
    /// The current text; `None` if the file is missing.
    pub before: Option<String>,
    /// The new text; `None` if the file is to be removed.
    pub after: Option<String>,
    /// A person has to trust the hooks in the agent.
    pub must_be_trusted: bool,
    inserted: Vec<Insertion>,
    /// What was inserted earlier is no longer there.
    replaces_earlier: bool,
    note: PathBuf,
    /// The user whose home it is.
    home_owner: Option<u32>,
}

/// What is set in one agent's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// The settings.
    pub path: PathBuf,
    /// The events that the installed hooks report.
    pub present: Vec<String>,
    /// The events that no installed hook reports.
    pub missing: Vec<String>,
    /// The programs that whosup's hooks run: this program, or a `whosup` elsewhere.
    pub programs: BTreeSet<String>,
    /// How many hooks of these settings a person trusts in the agent; `None` for an
    /// agent that needs no trust.
    pub trusted: Option<usize>,
    /// When they were installed, in milliseconds since 1970, if that was noted.
    pub set_at_ms: Option<i64>,
}

/// The settings of one site, read.
struct Settings {
    hooks: &'static Hooks,
    path: PathBuf,
    form: SettingsForm,
    command: HookCommand,
    before: Option<String>,
}

impl Settings {
    fn read(site: &HookSite<'_>) -> Result<Self, TrackError> {
        let unknown = || TrackError::UnknownAgent {
            agent: agents::id_of(site.adapter).to_string(),
        };
        let hooks = site.adapter.profile().hooks.ok_or_else(unknown)?;
        let mut last = None;
        for file in hooks.settings {
            let Some(path) = file.path(site.home, site.environment) else {
                continue;
            };
            let before = read(&path)?;
            let is_there = before.is_some();
            last = Some((path, file.form, before));
            if is_there {
                break;
            }
        }
        let (path, form, before) = last.ok_or(TrackError::NoPlace)?;
        let command = HookCommand {
            program: site.program.to_string_lossy().into_owned(),
            agent: site.adapter.profile().id,
        };
        Ok(Self {
            hooks,
            path,
            form,
            command,
            before,
        })
    }

    fn text(&self) -> &str {
        self.before.as_deref().unwrap_or_default()
    }

    fn wrong(&self, error: SettingsError) -> TrackError {
        wrong_settings(&self.path, error)
    }

    /// The text without those of whosup's hooks that run another program: found by the note
    /// of the installation, else by their commands. `None` if there are none.
    fn without_others(&self, note: Option<&Note>) -> Result<Option<String>, SettingsError> {
        let mut others = programs(self.form, self.text(), &self.command)?;
        let is_set = others.remove(&self.command.program);
        let is_own_file = matches!(self.form, SettingsForm::OwnFile(_));
        let is_outdated = is_own_file && !is_set && !self.text().is_empty();
        if others.is_empty() && !is_outdated {
            return Ok(None);
        }
        if let Some(before) = note.and_then(|note| note.taken_out_of(self.text())) {
            return Ok(Some(before));
        }
        let mut text = self.text().to_owned();
        for program in others {
            let command = HookCommand {
                program,
                ..self.command.clone()
            };
            text = without_command(self.form, &text, &command)?;
        }
        Ok(Some(text))
    }
}

/// Plans to install the hooks of an agent in one of its homes; `None` if all are there.
/// Hooks that run a `whosup` elsewhere are replaced.
///
/// # Errors
///
/// [`TrackError`] if its settings can't be read or understood.
pub fn plan_install(site: &HookSite<'_>, store: &Store) -> Result<Option<Change>, TrackError> {
    let settings = Settings::read(site)?;
    let (form, events, command) = (settings.form, settings.hooks.events, &settings.command);
    let wrong = |error| settings.wrong(error);
    let note = note_of(store, site.adapter, &settings.path);
    let without_others = settings
        .without_others(read_note(&note).as_ref())
        .map_err(wrong)?;
    let replaces_earlier = without_others.is_some();
    let text = without_others.unwrap_or_else(|| settings.text().to_owned());
    let set = present(form, &text, events, command).map_err(wrong)?;
    let is_missing = |event: &&str| !set.iter().any(|set| set == event);
    let missing: Vec<&str> = events.iter().copied().filter(is_missing).collect();
    let added = insertions(form, &text, &missing, command).map_err(wrong)?;
    if added.is_empty() && !replaces_earlier {
        return Ok(None);
    }
    let after = apply(&text, &added);
    // The result is read again, to be sure that the hooks are found in it.
    let set = present(form, &after, events, command).map_err(wrong)?;
    if set.len() != events.len() {
        let reason = "its form leaves no place for hooks".to_owned();
        return Err(wrong(SettingsError(reason)));
    }
    Ok(Some(Change {
        agent: site.adapter.profile().name,
        note,
        after: Some(after),
        must_be_trusted: settings.hooks.trust.is_some(),
        inserted: places(&added),
        replaces_earlier,
        home_owner: owner_of_home(site),
        path: settings.path,
        before: settings.before,
    }))
}

/// Plans to remove the hooks of an agent from one of its homes; `None` if there are
/// none.
///
/// # Errors
///
/// [`TrackError`] if its settings can't be read or understood.
pub fn plan_uninstall(site: &HookSite<'_>, store: &Store) -> Result<Option<Change>, TrackError> {
    let settings = Settings::read(site)?;
    let Some(text) = &settings.before else {
        return Ok(None);
    };
    let note = note_of(store, site.adapter, &settings.path);
    let noted = read_note(&note);
    let as_before = noted
        .as_ref()
        .and_then(|noted| Some((noted.taken_out_of(text)?, noted.was_there)));
    let (after, was_there) = match as_before {
        Some(found) => found,
        None => {
            let wrong = |error| settings.wrong(error);
            let others = settings.without_others(None).map_err(wrong)?;
            let text = others.as_deref().unwrap_or(text);
            let after = without_command(settings.form, text, &settings.command).map_err(wrong)?;
            let is_own_file = matches!(settings.form, SettingsForm::OwnFile(_));
            (after, !is_own_file)
        }
    };
    if after == *text {
        return Ok(None);
    }
    let is_gone = !was_there && after.is_empty();
    Ok(Some(Change {
        agent: site.adapter.profile().name,
        after: (!is_gone).then_some(after),
        must_be_trusted: false,
        inserted: Vec::new(),
        replaces_earlier: true,
        note,
        home_owner: owner_of_home(site),
        path: settings.path,
        before: settings.before,
    }))
}

/// The owner of the home, or of its nearest existing parent if it is missing.
fn owner_of_home(site: &HookSite<'_>) -> Option<u32> {
    site.home.ancestors().find_map(owner_of)
}

/// The hooks of an agent that are installed in one of its homes.
///
/// # Errors
///
/// [`TrackError`] if its settings can't be read or understood.
pub fn installed(site: &HookSite<'_>, store: &Store) -> Result<Installed, TrackError> {
    let settings = Settings::read(site)?;
    let (form, events) = (settings.form, settings.hooks.events);
    let wrong = |error| settings.wrong(error);
    let present = present(form, settings.text(), events, &settings.command).map_err(wrong)?;
    let programs = programs(form, settings.text(), &settings.command).map_err(wrong)?;
    let missing = events
        .iter()
        .filter(|event| !present.iter().any(|set| set == *event));
    let trust = settings.hooks.trust.map(|trust| {
        // Hooks in an unreadable file count as not trusted.
        let text = read(&site.home.join(trust.file)).ok().flatten();
        (trust.count)(&text.unwrap_or_default(), &settings.path)
    });
    let note = note_of(store, site.adapter, &settings.path);
    let note = whosup_core::sidecar::file::facts(&note, Links::Refuse);
    Ok(Installed {
        trusted: trust,
        set_at_ms: note.ok().and_then(|note| note.modified_ms),
        missing: missing.map(|event| (*event).to_owned()).collect(),
        present,
        programs,
        path: settings.path,
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
        let earlier = read_note(&change.note);
        write_settings(change)?;
        if change.after.is_none() && earlier.is_some_and(|note| note.made_directory) {
            // The directory stays while it contains other files.
            remove_empty_directory(change).ok();
        }
        // Without the note the hooks are found by their command.
        remove(&change.note, IN_FOLDER).ok();
        return Ok(());
    }
    let directory = change.path.parent().filter(|directory| !directory.exists());
    if let Some(directory) = directory {
        OwnDirectory::make(directory, 1).map_err(TrackError::at("make", directory))?;
    }
    let earlier = read_note(&change.note);
    let note = noted(change, earlier, directory.is_some());
    let note = note.to_string();
    replace(&change.note, IN_FOLDER, note.as_bytes(), Durable::Now)
        .map_err(TrackError::at("write", &change.note))?;
    write_settings(change)
}

/// The new note: the text that was inserted earlier, with its place now, and the text
/// that is inserted now.
fn noted(change: &Change, earlier: Option<Note>, makes_directory: bool) -> serde_json::Value {
    let before_len = change.before.as_ref().map_or(0, String::len);
    let was_there = earlier
        .as_ref()
        .map_or(change.before.is_some(), |note| note.was_there);
    let made_directory =
        makes_directory || earlier.as_ref().is_some_and(|note| note.made_directory);
    let mut inserted = change.inserted.clone();
    let mut len = change.after.as_ref().map_or(0, String::len);
    if let Some(earlier) = earlier.filter(|_| !change.replaces_earlier) {
        if earlier.len != before_len {
            // It has moved: it must be found by its text.
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
        "made_directory": made_directory,
        "length": len,
        "inserted": inserted,
    })
}

fn write_settings(change: &Change) -> Result<(), TrackError> {
    let path = &change.path;
    let (directory, name) =
        OwnDirectory::of_linked(path, change.home_owner).map_err(TrackError::at("write", path))?;
    let Some(text) = &change.after else {
        return directory
            .remove(&name)
            .map_err(TrackError::at("remove", path));
    };
    let write = || {
        let old = match directory.open_file(&name, Access::Read) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            opened => Some(opened?),
        };
        directory.replace(&name, text.as_bytes(), Durable::Now, old.as_ref())
    };
    write().map_err(TrackError::at("write", path))
}

/// Removes the directory of settings, if nothing is in it.
fn remove_empty_directory(change: &Change) -> std::io::Result<()> {
    let (directory, _) = split(&change.path)?;
    let (above, name) = OwnDirectory::of_linked(directory, change.home_owner)?;
    above.remove_empty_directory(&name)
}

fn read(path: &Path) -> Result<Option<String>, TrackError> {
    let unreadable = |reason: String| wrong_settings(path, SettingsError(reason));
    if path.is_symlink() && !path.exists() {
        // A replacement would replace the link instead of its target.
        return Err(unreadable("it is a link to nothing".to_owned()));
    }
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
    made_directory: bool,
}

impl Note {
    /// The text without what was inserted, if that is still there.
    fn taken_out_of(&self, text: &str) -> Option<String> {
        without(text, &self.inserted, self.len)
    }
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
        made_directory: object.opt_bool("made_directory").ok()?.unwrap_or(false),
    })
}
