//! The sessions of one home, each a file, and the index of them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use whosup_sidecar::SessionId;
use whosup_sidecar::file::{Links, facts};

use super::AGENT;
use super::document::{BYTES_MAX, title_in};
use super::process::PROGRAMS;
use crate::adapter::claim::{Claim, Evidence, EvidenceKind, Subject};
use crate::adapter::{AgentProcess, AgentScan, Clue, ClueKind, Home, Look, Sketch, Unclaimed};
use crate::machine::problem::Found;
use crate::sources::agents::kit::dialect::text_at;
use crate::sources::agents::kit::document::read_document;
use crate::sources::agents::kit::scan::Scan;

/// How many sessions are looked at.
const SESSIONS_MAX: usize = 100_000;
/// The index, which lies beside the sessions.
const INDEX: &str = "sessions.json";

/// Reads the claims and sketches of one home.
pub(super) fn scan(look: &Look<'_>, home: &Home) -> Found<AgentScan> {
    let mut scanning = Scanning {
        scan: Scan::new(AGENT, look, home),
        index: HashMap::new(),
        sketches: Vec::new(),
    };
    if look.depth.is_walk() || scanning.scan.seekers().next().is_some() {
        scanning.walk(&home.root.join("sessions"));
    }
    scanning.scan.finish_with(scanning.sketches)
}

struct Scanning<'a> {
    scan: Scan<'a>,
    /// The entries of the index, by the ids in them.
    index: HashMap<String, Value>,
    sketches: Vec<Box<Sketch>>,
}

impl Scanning<'_> {
    fn walk(&mut self, directory: &Path) {
        let index = directory.join(INDEX);
        match read_document(&index, BYTES_MAX) {
            Ok(Some(Value::Array(entries))) => {
                let id_of = |entry: &Value| text_at(entry, "/sessionId").map(str::to_owned);
                let by_id = entries
                    .into_iter()
                    .filter_map(|one| Some((id_of(&one)?, one)));
                self.index = by_id.take(SESSIONS_MAX).collect();
            }
            Ok(None) => {}
            Ok(_) => self.scan.problem(&index, "it is no JSON array"),
            Err(reason) => self.scan.problem(&index, reason),
        }
        let names = self.scan.names(directory, SESSIONS_MAX);
        for name in names.texts().filter(|name| *name != INDEX) {
            let id = name.strip_suffix(".json").map(SessionId::parse);
            if let Some(Ok(id)) = id {
                self.read_session(id, directory.join(name));
            }
        }
    }

    /// Reads one session, if it is looked for or a process may have used it.
    fn read_session(&mut self, id: SessionId, path: PathBuf) {
        let facts = facts(&path, Links::Follow);
        let Some(facts) = self.scan.read_or_report(&path, facts) else {
            return;
        };
        let modified_at_ms = facts.modified_ms;
        let indexed = self.index.remove(id.as_str());
        let born_at_ms = indexed.as_ref().and_then(born_at_ms);
        let may_use = |process: &AgentProcess| {
            is_after(process, modified_at_ms)
                || (born_at_ms.is_some() && is_after(process, born_at_ms))
                || process.names(&id)
        };
        if !self.scan.seekers().any(may_use) && !self.scan.look.depth.reaches(&id) {
            return;
        }
        let Some(entry) = indexed.or_else(|| self.document_of(&id, &path)) else {
            return;
        };
        let directory = entry.get("workspaceDirectory").and_then(Value::as_str);
        let directory = directory.map(Path::new);
        let work_dir = directory.filter(|directory| directory.is_absolute());
        let key = self.scan.key(&id);
        if work_dir.is_none() && directory.is_some() {
            let says = "an editor made it, and nothing records which editor has it open";
            let evidence = Evidence::new(EvidenceKind::Transcript, path.clone(), says);
            let claim = Claim::new(key.clone(), Subject::Unreadable, evidence);
            self.scan.claim(claim);
        }
        let named = self.scan.seekers().find(|process| process.names(&id));
        let sketch = Sketch {
            work_dir: work_dir.map(Path::to_owned),
            born_at_ms,
            started_at_ms: born_at_ms,
            // Nothing in the document has a date. If the index does not show when the
            // session began either, the date of the file shows only a possible use.
            last_record_at_ms: modified_at_ms.filter(|_| born_at_ms.is_some()),
            perhaps_until_ms: modified_at_ms.filter(|_| born_at_ms.is_none()),
            title: title_in(&entry),
            transcript: Some(path),
            unclaimed: Unclaimed::Owner,
            is_headless: named.map(|process| PROGRAMS.is_headless(&process.program())),
            clues: (self.scan.seekers())
                .flat_map(|process| clues_of(process, born_at_ms, modified_at_ms))
                .collect(),
            ..Sketch::new(key)
        };
        self.sketches.push(Box::new(sketch));
    }

    /// The document itself, which has the facts of the index, except for the date.
    fn document_of(&mut self, id: &SessionId, path: &Path) -> Option<Value> {
        match read_document(path, BYTES_MAX) {
            Ok(Some(one)) if text_at(&one, "/sessionId") == Some(id.as_str()) => return Some(one),
            Ok(_) => self
                .scan
                .problem(path, "it does not have the session id that is its name"),
            Err(reason) => self.scan.problem(path, reason),
        }
        None
    }
}

fn born_at_ms(entry: &Value) -> Option<i64> {
    let date: i64 = text_at(entry, "/dateCreated")?.parse().ok()?;
    (date > 0).then_some(date)
}

/// The clues in arguments and dates about one process and one session. A session that a
/// process resumes is older than the process, and may belong to any directory.
fn clues_of(process: &AgentProcess, born: Option<i64>, modified: Option<i64>) -> Vec<Clue> {
    let pid = process.process.pid;
    let is_used = is_after(process, modified);
    let is_younger = born.is_some() && is_after(process, born);
    if PROGRAMS.continues(&process.program()) {
        let gap = Clue::gap(pid, "it resumed a session, and nothing records which one");
        let says = "it was used since the process began, which resumed some session";
        let touched = (is_used && !is_younger).then(|| Clue::new(pid, ClueKind::Touched, says));
        return touched.into_iter().chain([gap]).collect();
    }
    let is_older = born.is_some() && !is_younger;
    let says = "the session is older than the process";
    let untouched = || Clue::new(pid, ClueKind::Untouched, says);
    (is_used && is_older).then(untouched).into_iter().collect()
}

/// Whether a date may lie behind the start of a process. A missing date may.
fn is_after(process: &AgentProcess, at_ms: Option<i64>) -> bool {
    at_ms.and_then(|at_ms| process.had_begun_at(at_ms)) != Some(false)
}
