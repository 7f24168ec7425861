//! Lists the directories of sessions and dates them.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use whosup_sidecar::SessionId;
use whosup_sidecar::file::{Directory, Links, ReadFileError};

use super::super::wire;
use super::{Reading, WIRE};
use crate::sources::agents::kit::folder::{Names, list_or_report};
use crate::sources::transcript::{TranscriptError, TranscriptFile};

/// How many sessions of one folder are looked at.
const SESSIONS_MAX: usize = 100_000;

/// One session's directory.
pub(super) struct SessionDir {
    pub(super) id: SessionId,
    /// The folder that it lies in, under its id.
    pub(super) folder: Rc<Directory>,
    /// The creation date, where the file system keeps it. (The modification date is useless:
    /// housekeeping changes it.)
    pub(super) made_at_ms: Option<i64>,
}

impl SessionDir {
    pub(super) fn path(&self) -> PathBuf {
        self.folder.path_of(self.id.as_str().as_ref())
    }

    /// The path of a file in it, below its folder.
    pub(super) fn below_folder(&self, name: &str) -> String {
        below(self.id.as_str(), name)
    }

    /// Its transcript, if it has one, and whether it is certain that it has none.
    pub(super) fn transcript(&self) -> (Option<PathBuf>, bool) {
        let name = self.below_folder(WIRE);
        match self.folder.facts(name.as_ref(), Links::Follow) {
            Ok(facts) if facts.is_file => (Some(self.folder.path_of(name.as_ref())), false),
            // The reader of the file reports another file type, or why it cannot be read.
            Ok(_) => (None, false),
            Err(error) => (None, error.kind() == ErrorKind::NotFound),
        }
    }
}

/// The path of a file in a session's directory, below the folder.
pub(in super::super) fn below(id: &str, name: &str) -> String {
    let mut path = String::with_capacity(id.len() + name.len() + 1);
    path.extend([id, "/", name]);
    path
}

/// When a session was.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Dates {
    pub(in super::super) born_at_ms: Option<i64>,
    pub(in super::super) last_record_at_ms: Option<i64>,
    /// The latest possible date of a record, if the end of the transcript is missing.
    pub(in super::super) perhaps_until_ms: Option<i64>,
}

impl Dates {
    pub(super) const fn of_directory(session: &SessionDir) -> Self {
        Self {
            born_at_ms: session.made_at_ms,
            last_record_at_ms: None,
            perhaps_until_ms: None,
        }
    }
}

impl Reading<'_> {
    pub(super) fn names(&mut self, directory: &Path, entries_max: usize) -> Names {
        list_or_report(directory, entries_max, |message| {
            self.problem(directory, message)
        })
    }

    /// The names of the sessions of a folder.
    pub(super) fn names_in(&mut self, folder: &str) -> Vec<OsString> {
        let directory = self.sessions().join(folder);
        self.names(&directory, SESSIONS_MAX).names
    }

    /// The sessions of a folder.
    pub(super) fn sessions_in(&mut self, folder: &str) -> Vec<SessionDir> {
        let names = self.names_in(folder);
        self.sessions_named(folder, &names)
    }

    /// Those of a folder's sessions that are there, by the names of their directories.
    pub(super) fn sessions_named(&mut self, folder: &str, names: &[OsString]) -> Vec<SessionDir> {
        if names.is_empty() {
            return Vec::new();
        }
        let directory = self.sessions().join(folder);
        let opened = Directory::open(&directory).map(Rc::new);
        let mut sessions = Vec::new();
        for name in names {
            let path = || directory.join(name);
            // Sessions of old versions are files. They are moved when they are resumed, and
            // no process serves such a file.
            if name.as_encoded_bytes().ends_with(b".jsonl") {
                continue;
            }
            let Some(Ok(id)) = name.to_str().map(SessionId::parse) else {
                continue;
            };
            let facts = match &opened {
                Ok(opened) => opened
                    .facts(name.as_ref(), Links::Follow)
                    .map(|facts| (opened, facts)),
                Err(error) => Err(error.kind().into()),
            };
            match facts {
                Ok((opened, facts)) if facts.is_directory => sessions.push(SessionDir {
                    id,
                    folder: Rc::clone(opened),
                    made_at_ms: facts.born_ms,
                }),
                // A file of another kind.
                Ok(_) => {}
                // It was empty, and its session was left since the list was made.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => self.problem(&path(), error),
            }
        }
        sessions
    }

    pub(super) fn read_dates(&mut self, session: &SessionDir) -> Dates {
        let mut dates = Dates::of_directory(session);
        let path = session.path().join(WIRE);
        match TranscriptFile::open(&path).and_then(|file| wire::read_dates(&file)) {
            Ok(read) => {
                let first = read.first_at_ms;
                // A directory that was copied or restored is younger than what
                // is in it.
                dates.born_at_ms = match (dates.born_at_ms, first) {
                    (Some(born), Some(first)) => Some(born.min(first)),
                    (born, first) => born.or(first),
                };
                dates.last_record_at_ms = read.last_at_ms;
                dates.perhaps_until_ms = read.perhaps_until_ms;
            }
            // There is none before the first prompt.
            Err(TranscriptError::File(ReadFileError::NotFound { .. })) => {}
            Err(error) => self.problem(&path, error.reason()),
        }
        dates
    }
}
