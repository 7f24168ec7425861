//! The session directories: `sessions/wd_SLUG_HASH/session_UUID/`.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use whosup_sidecar::SessionId;

use super::AGENT;
use super::state::{self, State};
use super::wire::{self, Dates};
use crate::adapter::{AgentProcess, AgentScan, Clue, ClueKind, Home, Look, Sketch, Unclaimed};
use crate::machine::problem::Found;
use crate::sources::agents::kit::folder::metadata;
use crate::sources::agents::kit::hex::hex;
use crate::sources::agents::kit::kimi_wire;
use crate::sources::agents::kit::one_per_session::OnePerSession;
use crate::sources::agents::kit::scan::Scan;
use crate::sources::transcript::TranscriptFile;

/// How many folders are looked at.
const FOLDERS_MAX: usize = 100_000;
/// How many sessions of one folder are looked at.
const SESSIONS_MAX: usize = 100_000;

/// The transcript in a session's directory.
pub(super) const WIRE: &str = "agents/main/wire.jsonl";

/// How a folder of sessions is called.
const FOLDER_PREFIX: &str = "wd_";
/// How much of a directory's own name is in the folder name.
const SLUG_CHARACTERS_MAX: usize = 40;
/// How many bytes of the path's hash are in the folder name.
const HASH_BYTES: usize = 6;
/// How much of a session's title a terminal shows, in UTF-16 units.
const TERMINAL_TITLE_UNITS_MAX: usize = 32;
/// How long after its start a run with `--prompt` has made its session, on a
/// slow machine.
const RUN_START_MS_MAX: i64 = 15_000;

/// How long after its first prompt a session has got its title in a terminal.
const TITLE_MS_MAX: i64 = 10_000;

/// The name of a directory's folder; `None` if its path is not UTF-8.
pub(super) fn folder_of(work_dir: &Path) -> Option<String> {
    let path = work_dir.to_str()?.trim_end_matches('/');
    let name = path.rsplit('/').next().unwrap_or_default().to_lowercase();
    let is_kept = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c);
    // One hyphen for a row of other characters.
    let words = name.split(|c| !is_kept(c)).filter(|word| !word.is_empty());
    let slug = words.collect::<Vec<_>>().join("-");
    let cut: String = slug
        .trim_matches('-')
        .chars()
        .take(SLUG_CHARACTERS_MAX)
        .collect();
    let slug = match cut.trim_matches('-') {
        "" | "." | ".." => "workspace",
        slug => slug,
    };
    let hash = hex(Sha256::digest(path).into_iter().take(HASH_BYTES));
    Some(format!("{FOLDER_PREFIX}{slug}_{hash}"))
}

/// One home's scan while it grows.
pub(super) struct Reading<'a> {
    scan: Scan<'a>,
    sketches: OnePerSession,
}

/// A session, as recorded in its own files.
struct StoredSession {
    id: SessionId,
    path: PathBuf,
    /// `None` where it can't be read.
    state: Option<State>,
    dates: Dates,
    has_wire: bool,
}

impl StoredSession {
    fn born_at_ms(&self) -> Option<i64> {
        let state = self.state.as_ref();
        let created_at_ms = state.and_then(|state| state.created_at_ms);
        created_at_ms.or(self.dates.created_at_ms)
    }

    fn last_at_ms(&self) -> Option<i64> {
        self.dates.last_at_ms.or(self.born_at_ms())
    }

    /// The latest possible date of use.
    fn latest_ms(&self) -> Option<i64> {
        self.last_at_ms().max(self.dates.perhaps_until_ms)
    }

    /// `/new` made the session, and it has no prompt yet.
    fn is_unprompted(&self) -> bool {
        self.has_wire && self.dates.prompted_at_ms.is_none()
    }

    /// A run with `--prompt` made the session, and it has had no prompt in a terminal since:
    /// that would have given it a title.
    fn is_of_a_run(&self) -> bool {
        let has_no_title = |state: &State| state.title.is_none();
        self.dates.prompted_at_ms.is_some() && self.state.as_ref().is_some_and(has_no_title)
    }

    /// The terminal title of this session.
    fn terminal_title(&self) -> Option<String> {
        let title = self.state.as_ref()?.title.as_deref()?.trim();
        let units: Vec<u16> = title
            .encode_utf16()
            .take(TERMINAL_TITLE_UNITS_MAX)
            .collect();
        // A character that the cut went through shows as something else.
        let title = String::from_utf16(&units).ok()?;
        (!title.contains(char::is_control)).then_some(title)
    }
}

impl<'a> Reading<'a> {
    pub(super) fn new(look: &'a Look<'a>, home: &'a Home) -> Self {
        Self {
            scan: Scan::new(AGENT, look, home),
            sketches: OnePerSession::new(|path| wire::DIALECT.said(path)),
        }
    }

    /// Reads the folders in which processes work, or all folders.
    pub(super) fn walk(mut self) -> Found<AgentScan> {
        let seekers_of = self.scan.seekers_by(folder_of);
        let is_all = self.scan.look.depth.is_walk();
        let mut folders: BTreeSet<String> = seekers_of.keys().cloned().collect();
        if is_all {
            let names = self.scan.names(&self.sessions(), FOLDERS_MAX);
            // Names with a dot are caches.
            let visible = names.texts().filter(|name| !name.starts_with('.'));
            folders.extend(visible.map(str::to_owned));
        }
        for folder in &folders {
            let seekers = seekers_of
                .get(folder)
                .map(Vec::as_slice)
                .unwrap_or_default();
            self.read_folder(folder, seekers, is_all);
        }
        self.scan.finish(self.sketches)
    }

    fn sessions(&self) -> PathBuf {
        self.scan.home.root.join("sessions")
    }

    fn read_folder(&mut self, folder: &str, seekers: &[&AgentProcess], is_all: bool) {
        let mut sessions = Vec::new();
        for (id, path) in self.sessions_in(folder) {
            sessions.push(self.read_session(id, path, !seekers.is_empty()));
        }
        for session in &sessions {
            if is_all || seekers.iter().any(|seeker| fits(seeker, session)) {
                self.sketch(session, seekers, &sessions);
            }
        }
    }

    fn sketch(
        &mut self,
        session: &StoredSession,
        seekers: &[&AgentProcess],
        sessions: &[StoredSession],
    ) {
        let mut sketch = Sketch::new(self.scan.key(&session.id));
        sketch.unclaimed = Unclaimed::Owner;
        let folder = session.path.parent().and_then(Path::file_name);
        let is_of_folder =
            |dir: &&Path| folder_of(dir).is_some_and(|name| Some(name.as_ref()) == folder);
        let beside = || seekers.first()?.work_dirs().find(is_of_folder);
        let state = session.state.as_ref();
        let named = state.and_then(|state| state.work_dir.clone());
        sketch.work_dir = named.or_else(|| beside().map(Path::to_owned));
        sketch.born_at_ms = session.born_at_ms();
        sketch.last_record_at_ms = session.dates.last_at_ms;
        sketch.perhaps_until_ms = session.dates.perhaps_until_ms;
        sketch.transcript = session.has_wire.then(|| session.path.join(WIRE));
        if seekers.is_empty() {
            self.sketches.add(sketch, []);
            return;
        }
        // A process that moved to an unprompted session still shows the title of the
        // previous session.
        let unprompted_born = sessions.iter().filter(|one| one.is_unprompted());
        let unprompted_at_ms = unprompted_born.filter_map(StoredSession::born_at_ms).max();
        let may_be_left = unprompted_at_ms > session.last_at_ms();
        if !may_be_left {
            sketch.terminal_title = session.terminal_title();
        }
        let now_ms = self.scan.look.machine.now_ms();
        add_run(&mut sketch, session, seekers, now_ms);
        let open_to = seekers.iter().filter(|seeker| fits(seeker, session));
        self.sketches
            .add(sketch, open_to.map(|process| process.process.pid));
    }

    fn sessions_in(&mut self, folder: &str) -> Vec<(SessionId, PathBuf)> {
        if !folder.starts_with(FOLDER_PREFIX) {
            // Something else, which some release may have put here.
            return Vec::new();
        }
        let directory = self.sessions().join(folder);
        let names = self.scan.names(&directory, SESSIONS_MAX);
        let mut sessions = Vec::new();
        for name in names.texts() {
            let Ok(id) = SessionId::parse(name) else {
                continue;
            };
            let path = directory.join(name);
            match metadata(&path) {
                Ok(metadata) if metadata.is_dir() => sessions.push((id, path)),
                // A file of another kind.
                Ok(_) => {}
                // It went since the list was made.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => self.scan.problem(&path, error),
            }
        }
        sessions
    }

    /// Reads one session. The dates of its records are read only if a process may serve it.
    fn read_session(&mut self, id: SessionId, path: PathBuf, may_be_served: bool) -> StoredSession {
        let file = path.join(kimi_wire::STATE);
        let state = state::read(&file, id.as_str()).unwrap_or_else(|message| {
            self.scan.problem(&file, message);
            None
        });
        let file = path.join(WIRE);
        let read = TranscriptFile::open(&file).and_then(|file| match may_be_served {
            true => wire::read_dates(&file),
            false => Ok(Dates::default()),
        });
        let dates = self.scan.read_or_report(&file, read);
        StoredSession {
            id,
            path,
            state,
            has_wire: dates.is_some(),
            dates: dates.unwrap_or_default(),
        }
    }
}

/// The session may belong to this process: the arguments name the session, or it was born or
/// used after the process began.
fn fits(seeker: &AgentProcess, session: &StoredSession) -> bool {
    seeker.names(&session.id)
        || seeker.had_begun_at_one_of([session.born_at_ms(), session.latest_ms()])
}

/// Adds the clues of a run with `--prompt`, if one made the session.
fn add_run(sketch: &mut Sketch, session: &StoredSession, seekers: &[&AgentProcess], now_ms: i64) {
    if !session.is_of_a_run() {
        return;
    }
    sketch.is_headless = Some(true);
    sketch.launched_at_ms.extend(session.born_at_ms());
    let seekers = seekers.iter();
    let older = seekers.filter(|seeker| is_no_run_of(seeker, session, now_ms));
    sketch.clues.extend(older.map(|seeker| {
        let pid = seeker.process.pid;
        let says = format!("a run made it at its launch, later than that of process {pid}");
        Clue::new(pid, ClueKind::Untouched, says)
    }));
}

/// A session without a title was made by a run at its start, if there was time to set a
/// title. This process had begun long before, so it is not that run.
fn is_no_run_of(seeker: &AgentProcess, session: &StoredSession, now_ms: i64) -> bool {
    let prompted = session.dates.prompted_at_ms;
    let is_settled = prompted.is_some_and(|at| now_ms.saturating_sub(at) > TITLE_MS_MAX);
    let born = session.born_at_ms();
    let is_of_launch = |born: i64| {
        let began = seeker.process.began_ms();
        began.is_none_or(|began| born <= began.saturating_add(RUN_START_MS_MAX))
    };
    is_settled && born.is_some_and(|born| !is_of_launch(born))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::folder_of;

    #[track_caller]
    fn check(path: &str, right: &str) {
        assert_eq!(folder_of(Path::new(path)).as_deref(), Some(right), "{path}");
    }

    #[test]
    fn a_folder_has_the_directorys_name_and_the_hash_of_its_path() {
        check("/home/dev/my_app.v1", "wd_my_app.v1_4f82a09910ea");
        check("/home/dev/my_app.v1/", "wd_my_app.v1_4f82a09910ea");
        check("/", "wd_workspace_e3b0c44298fc");
    }

    #[test]
    fn a_name_is_cut_and_its_other_characters_are_hyphens() {
        let folder = |path: &str| folder_of(Path::new(path)).expect("a folder");
        assert!(folder("/w/My  App (2)").starts_with("wd_my-app-2_"));
        assert!(folder("/w/é..").starts_with("wd_workspace_"));
        let long = folder(&format!("/w/{}", "a".repeat(100)));
        assert!(long.starts_with(&format!("wd_{}_", "a".repeat(40))));
    }
}
