//! Lists the directories of sessions and dates them.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::rc::Rc;

use whosup_sidecar::SessionId;
use whosup_sidecar::file::{Directory, Links};

use super::super::wire::{self, Dates};
use super::{Reading, WIRE};
use crate::sources::transcript::TranscriptFile;

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
    /// The directory of a session in a folder; `None` for a file of another kind.
    pub(super) fn find(folder: &Rc<Directory>, id: SessionId) -> io::Result<Option<Self>> {
        let facts = folder.facts(id.as_str().as_ref(), Links::Follow)?;
        Ok(facts.is_directory.then(|| Self {
            id,
            folder: Rc::clone(folder),
            made_at_ms: facts.born_ms,
        }))
    }

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

    /// The dates that the directory alone shows.
    pub(super) fn dates(&self) -> Dates {
        Dates {
            born_at_ms: self.made_at_ms,
            ..Dates::default()
        }
    }
}

/// The path of a file in a session's directory, below the folder.
pub(in super::super) fn below(id: &str, name: &str) -> String {
    [id, name].join("/")
}

impl Reading<'_> {
    /// The names of the sessions of a folder.
    pub(super) fn names_in(&mut self, folder: &str) -> Vec<OsString> {
        let directory = self.sessions().join(folder);
        self.scan.names(&directory, SESSIONS_MAX).names
    }

    /// The sessions of a folder.
    pub(super) fn sessions_in(&mut self, folder: &str) -> Vec<SessionDir> {
        let names = self.names_in(folder);
        self.sessions_named(folder, &names)
    }

    /// Those of a folder's sessions that are there, by the names of their directories.
    pub(super) fn sessions_named(&mut self, folder: &str, names: &[OsString]) -> Vec<SessionDir> {
        let directory = self.sessions().join(folder);
        let opened = Directory::open(&directory).map(Rc::new);
        let mut sessions = Vec::new();
        for name in names.iter().filter_map(|name| name.to_str()) {
            // Sessions of old versions are files. They are moved when they are resumed, and
            // no process serves such a file.
            let id = Some(name).filter(|name| !name.ends_with(".jsonl"));
            let Some(Ok(id)) = id.map(SessionId::parse) else {
                continue;
            };
            let found = match &opened {
                Ok(opened) => SessionDir::find(opened, id),
                Err(error) => Err(error.kind().into()),
            };
            match found {
                Ok(session) => sessions.extend(session),
                // It was empty, and its session was left since the list was made.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => self.scan.problem(&directory.join(name), error),
            }
        }
        sessions
    }

    /// The dates of a session. It has no transcript before the first prompt.
    pub(super) fn read_dates(&mut self, session: &SessionDir) -> Dates {
        let path = session.path().join(WIRE);
        let read = TranscriptFile::open(&path).and_then(|file| wire::read_dates(&file));
        let Some(dates) = self.scan.read_or_report(&path, read) else {
            return session.dates();
        };
        // A directory that was copied or restored is younger than what is in it.
        let born = session.made_at_ms.into_iter().chain(dates.born_at_ms);
        Dates {
            born_at_ms: born.min(),
            ..dates
        }
    }
}
