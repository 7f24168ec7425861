//! Looks for processes in the folders of other directories than their own.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::rc::Rc;

use whosup_process::Pid;
use whosup_sidecar::SessionId;
use whosup_sidecar::file::{Directory, Links};

use super::super::untouched::BEGAN_SLACK_MS;
use super::super::work_dir::{self, FolderKind};
use super::directory::{Dates, SessionDir};
use super::{FOLDERS_MAX, Keep, Reading};
use crate::adapter::{AgentProcess, LaunchedIn};
use crate::sources::agents::kit::folder::is_modified_since;

impl Reading<'_> {
    /// A process that no sidecar in the folder of its directory names may have been started
    /// for another directory (`--work-dir`): the folders to which it can have written are
    /// searched for its PID.
    pub(super) fn search_for(&mut self, silent: &[Pid], read: &[String]) {
        if silent.is_empty() {
            return;
        }
        let began = self
            .look
            .processes_of(self.home)
            .filter(|process| silent.contains(&process.process.pid))
            .map(|process| process.process.began_at_ms.clone().ok());
        // None, if one of them is of unknown age.
        let since_ms = began.min().flatten().map(|began| began - BEGAN_SLACK_MS);
        let displaced = self.displaced(silent);
        self.work_dirs.extend(displaced.clone());
        let folders = self.names(&self.sessions(), FOLDERS_MAX);
        for folder in folders.texts() {
            let is_local = FolderKind::of(folder) == Some(FolderKind::Local);
            if !is_local || read.iter().any(|already| already == folder) {
                continue;
            }
            for session in self.sessions_written_since(folder, since_ms) {
                if let Some(sidecar) = self.read_sidecar(&session, Keep::Naming(silent)) {
                    let dates = self.read_dates(&session);
                    let named = sidecar.pid;
                    let sketch = self.sketch(folder, &session, Some(sidecar), dates);
                    self.sketches.add(sketch, named);
                } else if displaced.contains_key(folder) && session.made_at_ms >= since_ms {
                    let dates = Dates::of_directory(&session);
                    let sketch = self.sketch(folder, &session, None, dates);
                    self.sketches.add(sketch, []);
                }
            }
        }
    }

    /// The missing directories, by their folders: a process whose environment lacks the
    /// start directory may have been started in one of them.
    fn displaced(&mut self, silent: &[Pid]) -> HashMap<String, PathBuf> {
        let mut processes = self.look.processes_of(self.home);
        let is_displaced = |process: &AgentProcess| {
            silent.contains(&process.process.pid) && process.launched_in == LaunchedIn::NotKnown
        };
        if !processes.any(is_displaced) {
            return HashMap::new();
        }
        let mut work_dirs = work_dir::read(&self.home.root).unwrap_or_else(|error| {
            self.problem(&self.home.root.join("kimi.json"), error);
            HashMap::new()
        });
        work_dirs.retain(|_, path| self.look.may_be_gone(path));
        work_dirs
    }

    /// The sessions of a folder that were made or resumed since then.
    ///
    /// A new session changes the folder; a resumed session is named in the log.
    fn sessions_written_since(&mut self, folder: &str, since_ms: Option<i64>) -> Vec<SessionDir> {
        let path = self.sessions().join(folder);
        if since_ms.is_none_or(|since_ms| is_modified_since(&path, since_ms)) {
            return self.sessions_in(folder);
        }
        let (Some(log), Ok(opened)) = (self.log(), Directory::open(&path)) else {
            return self.sessions_in(folder);
        };
        let opened = Rc::new(opened);
        let named: BTreeSet<SessionId> = log
            .events
            .iter()
            .filter_map(|event| SessionId::parse(&event.session).ok())
            .collect();
        named
            .into_iter()
            .filter_map(|id| {
                let facts = opened.facts(id.as_str().as_ref(), Links::Follow).ok()?;
                facts.is_directory.then(|| SessionDir {
                    id,
                    folder: Rc::clone(&opened),
                    made_at_ms: facts.born_ms,
                })
            })
            .collect()
    }
}
