//! Collects the sessions of one home: claims from the registry, and sketches of sessions
//! that a claim, a process or a transcript names.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use whosup_process::Pid;
use whosup_sidecar::SessionId;

use super::AGENT;
use super::processes::continues_unnamed;
use super::projects::{ProjectFolder, Projects, list, modified_ms};
use super::record::{Kind, Record};
use super::registry::{self, Entry};
use super::subagents::{SubAgent, beside_sessions, of_session};
use super::transcript::{read_end, read_last, read_opening};
use crate::adapter::claim::{
    Claim, ClaimedScope, Evidence, EvidenceKind, Exclusivity, Subject, TakenUp,
};
use crate::adapter::{
    AgentProcess, AgentScan, Clue, Home, LaunchedIn, Look, Role, Sketch, Unclaimed,
};
use crate::machine::problem::Found;
use crate::sources::agents::kit::folder::is_there;
use crate::sources::agents::kit::scan::Scan;
use crate::sources::transcript::TranscriptError;

/// How many transcripts are opened that a process without a record may be
/// writing: those written last.
const BESIDE_MAX: usize = 200;

/// The sessions of one home, as far as they have been found.
pub(super) struct Sessions<'a> {
    scan: Scan<'a>,
    projects: Projects,
    /// Sessions that a record names.
    claimed: HashSet<SessionId>,
    sketches: BTreeMap<SessionId, Box<Sketch>>,
    /// The records that claim a session.
    registered: Vec<Record>,
    folders: HashMap<PathBuf, ProjectFolder>,
}

impl<'a> Sessions<'a> {
    /// No session yet.
    pub(super) fn new(look: &'a Look<'a>, home: &'a Home) -> Self {
        Self {
            scan: Scan::new(AGENT, look, home),
            projects: Projects::new(&home.root),
            claimed: HashSet::new(),
            sketches: BTreeMap::new(),
            registered: Vec::new(),
            folders: HashMap::new(),
        }
    }

    /// Returns everything found.
    pub(super) fn finish(mut self) -> Found<AgentScan> {
        let unread = self.with_unread_records();
        let says = "its record in the registry cannot be read";
        for sketch in self.sketches.values_mut() {
            let gaps = unread.iter().map(|pid| Clue::gap(*pid, says));
            sketch.clues.extend(gaps);
        }
        self.scan.finish_with(self.sketches.into_values())
    }

    /// Adds the claims of the registry.
    pub(super) fn add_registered(&mut self) {
        let mut entries = registry::read(self.scan.home).take(&mut self.scan.problems);
        // Of two records of one session, the record of a running process has the published
        // phase, and of several such records the newest.
        entries.sort_by_key(|entry| {
            let is_there = self.process_of(entry.record.pid).is_some();
            let at = entry.record.published.as_ref().and_then(|fact| fact.at_ms);
            Reverse((is_there, at))
        });
        for entry in entries {
            // A spare that waits for a session serves none.
            if entry.record.kind != Kind::Daemon && !entry.record.is_spare {
                self.add_entry(entry);
            }
        }
    }

    fn add_entry(&mut self, entry: Entry) {
        let record = &entry.record;
        let work_dir = record.work_dir.as_deref();
        let found = self.projects.find(&record.session, work_dir);
        let is_looked_for = found.problems.is_empty();
        let transcript = found.take(&mut self.scan.problems);
        let has_words = match &transcript {
            Some(path) => {
                let opening = self.read(path, read_opening);
                // An unreadable file may name anything.
                opening.is_none_or(|one| !one.is_without_words())
            }
            None => !is_looked_for,
        };
        let is_unsettled = record.is_silent_terminal() && transcript.is_none() && is_looked_for;
        let process = self.process_of(record.pid);
        if is_unsettled && process.is_some_and(|process| continues_unnamed(&process.program())) {
            // The process has not found the session to continue yet: it serves nothing.
            return;
        }
        self.claimed.insert(record.session.clone());
        self.scan.claim(self.claim(&entry));
        let mut sketch = Sketch::new(self.scan.key(&record.session));
        sketch.work_dir.clone_from(&record.work_dir);
        // A session without messages loses nothing, and the agent refuses to resume it.
        sketch.is_orphan_when_stale = has_words;
        sketch.is_resumable = has_words;
        sketch.transcript = transcript;
        sketch.facts.extend(record.published.clone());
        if record.kind == Kind::Background && self.may_be_shown(&record.session) {
            sketch.unclaimed = Unclaimed::Client;
        }
        sketch.is_headless = record.is_headless();
        // In 2.1.332 the agent makes a terminal for it, in 2.1.197 it had none.
        sketch.is_terminal_hosted = record.kind == Kind::Background;
        sketch.is_provisional = is_unsettled;
        sketch.title.clone_from(&record.name);
        sketch.agent_version.clone_from(&record.version);
        sketch.endpoint.clone_from(&record.endpoint);
        sketch.started_at_ms = record.started_at_ms;
        let place = self.sketches.entry(record.session.clone());
        place.or_insert(Box::new(sketch));
        self.registered.push(entry.record);
    }

    fn claim(&self, entry: &Entry) -> Claim {
        let record = &entry.record;
        let evidence = Evidence::new(EvidenceKind::Registry, entry.path.clone(), record.says());
        let subject = Subject::Process(record.pid);
        let scan = &self.scan;
        Claim {
            // It names neither host nor boot.
            scope: ClaimedScope {
                pid_namespace: record.pid_namespace,
                ..ClaimedScope::default()
            },
            stamp: record.stamp.clone(),
            dated_at_ms: record.dated_at_ms,
            taken_up: TakenUp::Current,
            work_dir: record.work_dir.clone(),
            exclusivity: Exclusivity::Exclusive,
            ..scan.claim_by_file(&record.session, subject, evidence, &entry.facts)
        }
    }

    /// Some `claude attach` may show this session. No other process does.
    fn may_be_shown(&self, session: &SessionId) -> bool {
        self.scan.processes().any(|process| {
            let names_it = || process.named_session().is_none() || process.names(session);
            process.role == Role::Client && names_it()
        })
    }

    /// The process of this home that knows itself by `pid`.
    fn process_of(&self, pid: Pid) -> Option<&'a AgentProcess> {
        let mut processes = self.scan.processes();
        processes.find(|process| own_pid(process) == pid || process.process.pid == pid)
    }

    /// Adds the sessions that a process without a record may be serving: a process that is
    /// just starting, whose record was removed, or of an old version.
    pub(super) fn add_beside_unregistered(&mut self) {
        for process in self.scan.seekers() {
            if !self.is_registered(process) {
                self.add_named_by(process);
                self.add_beside(process);
            }
        }
    }

    /// The processes whose own record cannot be read, which a problem reports. Each may be
    /// in any session.
    fn with_unread_records(&self) -> BTreeSet<Pid> {
        let folder = registry::folder(self.scan.home);
        let is_unread = |process: &&AgentProcess| {
            let record = folder.join(format!("{}.json", own_pid(process)));
            let problems = self.scan.problems.iter();
            let mut paths = problems.filter_map(|one| one.path.as_ref());
            matches!(process.role, Role::Session | Role::Auxiliary)
                && !self.is_registered(process)
                && paths.any(|path| *path == record || *path == folder)
        };
        let unread = self.scan.processes().filter(is_unread);
        unread.map(|process| process.process.pid).collect()
    }

    /// A record belongs to this process: it has the same PID and start, or was written
    /// since.
    fn is_registered(&self, process: &AgentProcess) -> bool {
        let pids = [own_pid(process), process.process.pid];
        self.registered.iter().any(|record| {
            let stamp = record.stamp.as_ref();
            let is_same = stamp.and_then(|stamp| stamp.is_same_as(&process.process.stamp));
            let had_begun = |at_ms| process.had_begun_at(at_ms);
            let is_since = || record.dated_at_ms.and_then(had_begun) != Some(false);
            pids.contains(&record.pid) && is_same.unwrap_or_else(is_since)
        })
    }

    fn add_named_by(&mut self, process: &AgentProcess) {
        let named = process.named_session();
        let named = named.and_then(|named| SessionId::parse(named).ok());
        let new = named.filter(|session| !self.sketches.contains_key(session));
        let Some(session) = new else { return };
        let found = self.projects.find(&session, process.work_dir());
        if let Some(transcript) = found.take(&mut self.scan.problems) {
            self.add_pairable(session, transcript);
        }
    }

    /// Adds the sessions of a process's directory that have a record made since
    /// it began. It may be in one that other processes left behind, too.
    fn add_beside(&mut self, process: &AgentProcess) {
        let Some(began_ms) = process.process.began_ms() else {
            return;
        };
        let look = self.scan.look;
        let mut directories: BTreeSet<PathBuf> = process.work_dirs().map(Path::to_owned).collect();
        if process.launched_in == LaunchedIn::NotKnown {
            let claimed = self.claimed.iter().filter_map(|id| self.sketches.get(id));
            let recorded = claimed.filter_map(|sketch| sketch.work_dir.as_deref());
            let former = recorded.filter(|directory| look.is_gone_since(directory, began_ms));
            directories.extend(former.map(Path::to_owned));
        }
        for directory in directories {
            let found = self
                .projects
                .of_directory(&directory, look.machine.mounts());
            for folder in found.take(&mut self.scan.problems) {
                self.add_of_folder(process, &directory, &folder);
            }
        }
    }

    /// Adds those in the folder of a directory.
    fn add_of_folder(&mut self, process: &AgentProcess, directory: &Path, folder: &Path) {
        let mut sessions = self.listed(folder).transcripts();
        sessions.retain(|(session, _)| {
            !self.sketches.contains_key(session) || self.claimed.contains(session)
        });
        sessions.sort_by_cached_key(|(_, path)| Reverse((modified_ms(path), path.clone())));
        sessions.truncate(BESIDE_MAX);
        for (session, transcript) in sessions {
            let last = self.read(&transcript, read_last).unwrap_or_default();
            if !process.had_begun_at_one_of([last.record_at_ms, last.perhaps_until_ms]) {
                continue;
            }
            if let Some(claimed) = self.sketches.get_mut(&session) {
                let gap = Clue::gap(process.process.pid, "it has no record in the registry");
                claimed.clues.push(gap);
            } else if let Some(sketch) = self.add_pairable(session, transcript)
                && sketch.perhaps_until_ms.is_some()
            {
                // A transcript that has lost the lines with its directory has the
                // directory of its folder.
                sketch.work_dir.get_or_insert_with(|| directory.to_owned());
            }
        }
    }

    /// Adds a session that any process of the agent may be serving.
    fn add_pairable(&mut self, session: SessionId, transcript: PathBuf) -> Option<&mut Sketch> {
        let last = self.read(&transcript, read_last).unwrap_or_default();
        self.add_found(session.clone(), transcript);
        let sketch = self.sketches.get_mut(&session)?;
        sketch.unclaimed = Unclaimed::Owner;
        sketch.last_record_at_ms = last.record_at_ms;
        sketch.perhaps_until_ms = last.perhaps_until_ms;
        Some(sketch)
    }

    /// Adds every session on disk.
    pub(super) fn add_all(&mut self) {
        for folder in self.projects.all(&mut self.scan.problems).to_vec() {
            let listed = list(&folder).take(&mut self.scan.problems);
            let transcripts = listed.transcripts();
            let depth = self.scan.look.depth;
            let mut is_any_placeless = false;
            for (session, transcript) in &transcripts {
                if depth.reaches(session) {
                    self.add_found(session.clone(), transcript.clone());
                    let sketch = self.sketches.get(session);
                    is_any_placeless |= sketch.is_none_or(|sketch| sketch.work_dir.is_none());
                }
            }
            if is_any_placeless {
                // The other transcripts in the folder name the directory.
                for (session, transcript) in transcripts {
                    self.add_found(session, transcript);
                }
            }
            self.share_directory(&listed);
            self.folders.insert(folder, listed);
        }
    }

    /// A transcript without a directory gets the directory that the other transcripts in its
    /// folder name.
    fn share_directory(&mut self, folder: &ProjectFolder) {
        let mut sessions = folder.sessions.iter();
        let directory = sessions.find_map(|session| self.sketches.get(session)?.work_dir.clone());
        for session in &folder.sessions {
            if let Some(sketch) = self.sketches.get_mut(session)
                && sketch.work_dir.is_none()
                && sketch.unclaimed == Unclaimed::NoProcess
                && !self.claimed.contains(session)
            {
                sketch.work_dir.clone_from(&directory);
            }
        }
    }

    /// Adds a session that has a transcript, unless more is known. Of two transcripts the
    /// one with messages counts, and of two with messages the one written last.
    fn add_found(&mut self, session: SessionId, transcript: PathBuf) {
        let known = self.sketches.get(&session);
        let rank_of_known = known.map(|known| {
            let written = known.transcript.as_deref().and_then(modified_ms);
            (!known.is_provisional, written)
        });
        let is_better_known = known.is_some_and(|known| {
            self.claimed.contains(&session) || known.unclaimed != Unclaimed::NoProcess
        });
        let written = modified_ms(&transcript);
        if is_better_known || rank_of_known >= Some((true, written)) {
            return;
        }
        let opening = self.read(&transcript, read_opening).unwrap_or_default();
        let has_words = !opening.is_without_words();
        if opening.is_sidechain || rank_of_known >= Some((has_words, written)) {
            return;
        }
        let mut sketch = Sketch::new(self.scan.key(&session));
        sketch.is_provisional = !has_words;
        sketch.is_resumable = has_words;
        sketch.work_dir = opening.work_dir;
        sketch.born_at_ms = opening.born_at_ms;
        sketch.transcript = Some(transcript);
        self.sketches.insert(session, Box::new(sketch));
    }

    /// Reads a part of a transcript; a transcript that was removed meanwhile is no problem.
    fn read<T>(
        &mut self,
        transcript: &Path,
        read: impl FnOnce(&Path) -> Result<T, TranscriptError>,
    ) -> Option<T> {
        let read = read(transcript);
        if let Err(error) = &read
            && is_there(transcript)
        {
            self.scan.problem(transcript, error.reason());
        }
        read.ok()
    }

    fn listed(&mut self, folder: &Path) -> &ProjectFolder {
        let problems = &mut self.scan.problems;
        let place = self.folders.entry(folder.to_owned());
        place.or_insert_with(|| list(folder).take(problems))
    }

    /// Adds the sub-agents of the sessions found so far.
    ///
    /// Versions that have a registry keep them in a folder below the session's;
    /// for those the project folder, which may be large, is not listed.
    pub(super) fn add_sub_agents(&mut self) {
        let transcripts = self.sketches.iter().filter_map(|(session, sketch)| {
            let transcript = sketch.transcript.clone()?;
            Some((session.clone(), transcript))
        });
        let parents: Vec<(SessionId, PathBuf)> = transcripts.collect();
        // Where sub-agents lie beside sessions: first those of worktrees.
        let mut folders: BTreeSet<(bool, PathBuf)> = BTreeSet::new();
        for (parent, transcript) in &parents {
            let folder = transcript.parent().unwrap_or(transcript);
            let listed = self.folders.get(folder);
            let mut below = Vec::new();
            if listed.is_none_or(|listed| listed.has_folder_of(parent)) {
                below.push(transcript.with_extension(""));
            }
            // Those that are isolated have the folder of their worktree.
            for worktree in self.projects.of_worktrees(folder) {
                below.push(worktree.join(parent.as_str()));
                folders.insert((false, worktree));
            }
            for place in below {
                for sub_agent in of_session(&place).take(&mut self.scan.problems) {
                    self.add_sub_agent(parent, sub_agent);
                }
            }
            if !self.claimed.contains(parent) {
                folders.insert((true, folder.to_owned()));
            }
        }
        for (is_of_sessions, folder) in folders {
            for (parent, sub_agent) in beside_sessions(&self.listed(&folder).sub_agents) {
                // Outside of worktrees, a session with a record keeps its own below.
                let is_elsewhere = is_of_sessions && self.claimed.contains(&parent);
                if !is_elsewhere && self.sketches.contains_key(&parent) {
                    self.add_sub_agent(&parent, sub_agent);
                }
            }
        }
    }

    fn add_sub_agent(&mut self, parent: &SessionId, sub_agent: SubAgent) {
        if self.sketches.contains_key(&sub_agent.id) {
            return;
        }
        let transcript = sub_agent.transcript;
        // A sub-agent has one turn, and with it ends.
        if let Some(ended_at_ms) = self.read(&transcript, read_end).flatten() {
            let says = "its last record ended its turn";
            let evidence = Evidence::new(EvidenceKind::Transcript, transcript.clone(), says);
            let (id, at_ms) = (&sub_agent.id, Some(ended_at_ms));
            let ended = self.scan.ended(id, evidence, None, at_ms);
            self.scan.claim(ended);
        }
        let mut sketch = Sketch::new(self.scan.key(&sub_agent.id));
        sketch.parent = Some(parent.clone());
        sketch.transcript = Some(transcript);
        let parent = self.sketches.get(parent);
        sketch.work_dir = parent.and_then(|parent| parent.work_dir.clone());
        self.sketches.insert(sub_agent.id, Box::new(sketch));
    }
}

/// The PID of a process in its own PID namespace.
fn own_pid(process: &AgentProcess) -> Pid {
    let innermost = process.details.innermost_pid();
    innermost.unwrap_or(process.process.pid)
}
