//! Sub-agents: `chats/PARENT/ID.jsonl`.
//!
//! While one runs, its parent waits for it; what the parent records after that
//! shows that it has ended. Seen in Gemini CLI 0.61.0, 2026-11.

use std::path::Path;

use whosup_sidecar::SessionId;
use whosup_sidecar::file::{Links, facts};

use super::chat::{self, Chat};
use super::project::Project;
use super::scan::Scanning;
use crate::adapter::Sketch;
use crate::adapter::claim::{Evidence, EvidenceKind};

/// How many sub-agents of one session are looked at.
const SUBAGENTS_MAX: usize = 10_000;

/// Reads the sub-agents of a session.
pub(super) fn read(scanning: &mut Scanning<'_>, project: &Project, parent: &Chat) {
    let directory = project.chats().join(parent.id.as_str());
    let names = scanning.scan.names(&directory, SUBAGENTS_MAX);
    for file in names.texts() {
        let stem = file.strip_suffix(".jsonl");
        // What has another name is something else.
        let Some(id) = stem.and_then(|stem| SessionId::parse(stem).ok()) else {
            continue;
        };
        let path = directory.join(file);
        if id == parent.id {
            let message = "a session can't be its own sub-agent";
            scanning.scan.problem(&path, message);
        } else {
            read_one(scanning, project, parent, id, &path);
        }
    }
}

fn read_one(
    scanning: &mut Scanning<'_>,
    project: &Project,
    parent: &Chat,
    id: SessionId,
    path: &Path,
) {
    let read = match chat::read_facts(path) {
        Ok(read) => read,
        Err(message) => {
            scanning.scan.problem(path, message);
            return;
        }
    };
    let perhaps_until_ms = read.missing_end.map(|end| end.until_ms);
    let is_past = |last: Option<i64>, parent: Option<i64>| {
        last.zip(parent).is_some_and(|(last, parent)| parent > last)
    };
    let has_ended = is_past(read.last_at_ms.max(perhaps_until_ms), parent.last_at_ms);
    // The end of at least one of the two transcripts is missing.
    let is_unknown = parent.perhaps_until_ms.is_some() || perhaps_until_ms.is_some();
    let parents_latest = parent.last_at_ms.max(parent.perhaps_until_ms);
    let may_have_ended = !has_ended
        && is_unknown
        && (read.last_at_ms.is_none() || is_past(read.last_at_ms, parents_latest));
    let facts = facts(path, Links::Follow).ok().filter(|_| has_ended);
    let says = "its parent has gone on since its last record";
    let evidence = Evidence::new(EvidenceKind::Transcript, parent.path.clone(), says);
    let (scan, at_ms) = (&scanning.scan, parent.last_at_ms);
    let ended = facts.map(|facts| scan.ended(&id, evidence, Some(&facts), at_ms));
    let born_at_ms = read.header.and_then(|header| header.started_at_ms);
    let sketch = Sketch {
        parent: Some(parent.id.clone()),
        work_dir: project.root.clone(),
        born_at_ms,
        last_record_at_ms: read.last_at_ms,
        perhaps_until_ms,
        may_have_ended,
        transcript: Some(path.to_owned()),
        started_at_ms: born_at_ms,
        ..Sketch::new(scanning.scan.key(&id))
    };
    scanning.sketches.add_sub_agent(sketch, ended);
}
