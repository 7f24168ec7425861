//! Looks for processes in the folders of other directories than their own.

use std::collections::BTreeSet;
use std::rc::Rc;

use whosup_sidecar::SessionId;
use whosup_sidecar::file::Directory;

use super::super::work_dir::FolderKind;
use super::directory::SessionDir;
use super::{FOLDERS_MAX, Reading};
use crate::adapter::AgentProcess;
use crate::sources::agents::kit::folder::is_modified_since;
use crate::sources::agents::kit::scan::may_have_written_since;
use crate::sources::agents::kit::sidecar_facts;

impl Reading<'_> {
    /// A process that no sidecar in the folder of its directory names may have been started
    /// for another directory (`--work-dir`): the folders to which it can have written are
    /// searched for its PID.
    pub(super) fn search_for(&mut self, silent: &[&AgentProcess], read: &[String]) {
        if silent.is_empty() {
            return;
        }
        let since_ms = may_have_written_since(silent.iter().copied());
        let folders = self.scan.names(&self.sessions(), FOLDERS_MAX);
        for folder in folders.texts() {
            let is_local = FolderKind::of(folder) == Some(FolderKind::Local);
            if !is_local || read.iter().any(|already| already == folder) {
                continue;
            }
            for session in self.sessions_written_since(folder, since_ms) {
                let Some(sidecar) = self.read_sidecar(&session, Some(silent)) else {
                    continue;
                };
                let dates = self.read_dates(&session);
                let named = sidecar_facts::pid(&sidecar.0);
                let sketch = self.sketch(folder, &session, Some(sidecar), dates);
                self.sketches.add(sketch, named);
            }
        }
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
        let named = log.events.iter();
        let named: BTreeSet<SessionId> = named
            .filter_map(|event| SessionId::parse(&event.session).ok())
            .collect();
        let found = named.into_iter().map(|id| SessionDir::find(&opened, id));
        found.filter_map(|found| found.ok().flatten()).collect()
    }
}
