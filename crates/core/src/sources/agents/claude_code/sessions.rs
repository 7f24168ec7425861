//! Collects the sessions of one home: claims from the registry, and sketches of sessions
//! that a claim, a process or a transcript names.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use whosup_process::{Pid, StartStamp};
use whosup_sidecar::SessionId;

use super::AGENT;
use super::processes::{PROGRAMS, continues_unnamed};
use super::projects::{ProjectFolder, Projects, list, modified_ms};
use super::record::Kind;
use super::registry::{self, Entry};
use super::subagents::{SubAgent, beside_sessions, of_session};
use super::transcript::{read_end, read_last, read_opening};
use crate::adapter::claim::{
    CLOCK_SLACK_MS, Claim, ClaimedScope, Evidence, EvidenceKind, Exclusivity, SessionKey, Subject,
    TakenUp,
};
use crate::adapter::{AgentProcess, AgentScan, Clue, Home, Look, Role, Sketch, Unclaimed};
use crate::machine::problem::{Found, Problem};
use crate::sources::agents::kit::folder::is_there;
use crate::sources::transcript::TranscriptError;
use crate::sources::trust::trust_of;

/// How many transcripts are opened that a process without a record may be
/// writing: those written last.
const BESIDE_MAX: usize = 200;

/// The sessions of one home, as far as they have been found.
#[derive(Debug)]
pub(super) struct Sessions<'a> {
    look: &'a Look<'a>,
    home: &'a Home,
    projects: Projects,
    claims: Vec<Box<Claim>>,
    /// Sessions that a record names.
    claimed: HashSet<SessionId>,
    sketches: BTreeMap<SessionId, Box<Sketch>>,
    /// The processes that have a record.
    registered: Vec<Registered>,
    folders: HashMap<PathBuf, ProjectFolder>,
    problems: Vec<Problem>,
}

/// A process, as named in a record of the registry.
#[derive(Debug)]
struct Registered {
    pid: Pid,
    stamp: Option<StartStamp>,
    dated_at_ms: Option<i64>,
}

impl<'a> Sessions<'a> {
    /// No session yet.
    pub(super) fn new(look: &'a Look<'a>, home: &'a Home) -> Self {
        Self {
            look,
            home,
            projects: Projects::new(&home.root),
            claims: Vec::new(),
            claimed: HashSet::new(),
            sketches: BTreeMap::new(),
            registered: Vec::new(),
            folders: HashMap::new(),
            problems: Vec::new(),
        }
    }

    /// Returns everything found.
    pub(super) fn finish(mut self) -> Found<AgentScan> {
        let unread = self.with_unread_records();
        for sketch in self.sketches.values_mut() {
            let says = "its record in the registry cannot be read";
            sketch
                .clues
                .extend(unread.iter().map(|pid| Clue::gap(*pid, says)));
        }
        Found {
            found: AgentScan::of(self.claims, self.sketches.into_values()),
            problems: self.problems,
        }
    }

    fn key(&self, session: &SessionId) -> SessionKey {
        SessionKey {
            agent: AGENT,
            session: session.clone(),
            home: self.home.root.clone(),
        }
    }

    /// Adds the claims of the registry.
    pub(super) fn add_registered(&mut self) {
        let mut entries = registry::read(self.home).take(&mut self.problems);
        // Of two records of one session, the record of a running process has the published
        // phase, and of several such records the newest.
        entries.sort_by_key(|entry| {
            let is_there = self.process_of(entry.record.pid).is_some();
            let at = entry.record.published.as_ref().and_then(|fact| fact.at_ms);
            std::cmp::Reverse((is_there, at))
        });
        for entry in &entries {
            // A spare that waits for a session serves none.
            if entry.record.kind != Kind::Daemon && !entry.record.is_spare {
                self.add_entry(entry);
            }
        }
    }

    fn add_entry(&mut self, entry: &Entry) {
        let record = &entry.record;
        let found = self
            .projects
            .find(&record.session, record.work_dir.as_deref());
        let is_looked_for = found.problems.is_empty();
        let transcript = found.take(&mut self.problems);
        let has_words = match &transcript {
            // An unreadable file may name anything.
            Some(path) => self
                .read(path, read_opening)
                .is_none_or(|one| !one.is_without_words()),
            None => !is_looked_for,
        };
        let is_unsettled = record.is_silent_terminal() && transcript.is_none() && is_looked_for;
        let process = self.process_of(record.pid);
        if is_unsettled && process.is_some_and(|process| continues_unnamed(&process.program())) {
            // The process has not found the session to continue yet: it serves nothing.
            return;
        }
        self.registered.push(Registered {
            pid: record.pid,
            stamp: record.stamp.clone(),
            dated_at_ms: record.dated_at_ms,
        });
        self.claimed.insert(record.session.clone());
        self.claims.push(Box::new(self.claim(entry)));
        let mut sketch = Sketch::new(self.key(&record.session));
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
        self.sketches
            .entry(record.session.clone())
            .or_insert(Box::new(sketch));
    }

    fn claim(&self, entry: &Entry) -> Claim {
        let record = &entry.record;
        let machine = self.look.machine;
        Claim {
            // It names neither host nor boot.
            scope: ClaimedScope {
                pid_namespace: record.pid_namespace,
                ..ClaimedScope::default()
            },
            stamp: record.stamp.clone(),
            dated_at_ms: record.dated_at_ms,
            modified_at_ms: entry.facts.modified_ms,
            taken_up: TakenUp::Current,
            work_dir: record.work_dir.clone(),
            exclusivity: Exclusivity::Exclusive,
            trust: trust_of(&entry.facts, self.home, machine),
            placement: machine.mounts().placement_of(&entry.path),
            ..Claim::new(
                self.key(&record.session),
                Subject::Process(record.pid),
                Evidence::new(
                    EvidenceKind::Registry,
                    Some(entry.path.clone()),
                    record.says(),
                ),
            )
        }
    }

    /// Some `claude attach` may show this session. No other process does.
    fn may_be_shown(&self, session: &SessionId) -> bool {
        let look = self.look;
        let mut clients = look
            .processes_of(self.home)
            .filter(|process| process.role == Role::Client);
        clients.any(|client| {
            PROGRAMS
                .session(&client.program())
                .is_none_or(|named| session.as_str().starts_with(named))
        })
    }

    /// The process of this home that knows itself by `pid`.
    fn process_of(&self, pid: Pid) -> Option<&'a AgentProcess> {
        let look = self.look;
        look.processes_of(self.home)
            .find(|process| own_pid(process) == pid || process.process.pid == pid)
    }

    /// Adds the sessions that a process without a record may be serving: a process that is
    /// just starting, whose record was removed, or of an old version.
    pub(super) fn add_beside_unregistered(&mut self) {
        let look = self.look;
        for process in look.processes_of(self.home) {
            if process.role == Role::Session && !self.is_registered(process) {
                self.add_named_by(process);
                self.add_beside(process);
            }
        }
    }

    /// The processes whose own record cannot be read, which a problem reports. Each may be
    /// in any session.
    fn with_unread_records(&self) -> BTreeSet<Pid> {
        let folder = registry::folder(self.home);
        let is_unread = |process: &&AgentProcess| {
            let record = folder.join(format!("{}.json", own_pid(process)));
            let mut paths = self.problems.iter().filter_map(|one| one.path.as_ref());
            paths.any(|path| *path == record || *path == folder)
        };
        let look = self.look;
        look.processes_of(self.home)
            .filter(|process| matches!(process.role, Role::Session | Role::Auxiliary))
            .filter(|process| !self.is_registered(process))
            .filter(is_unread)
            .map(|process| process.process.pid)
            .collect()
    }

    /// A record belongs to this process: it has the same PID and start, or was written
    /// since.
    fn is_registered(&self, process: &AgentProcess) -> bool {
        let pids = [own_pid(process), process.process.pid];
        let began_at_ms = process.process.began_at_ms.as_ref().ok();
        self.registered.iter().any(|record| {
            let stamp = record.stamp.as_ref();
            let is_same = stamp.and_then(|stamp| stamp.is_same_as(&process.process.stamp));
            let is_since = || {
                let dates = record.dated_at_ms.zip(began_at_ms);
                dates.is_none_or(|(dated, began)| dated.saturating_add(CLOCK_SLACK_MS) >= *began)
            };
            pids.contains(&record.pid) && is_same.unwrap_or_else(is_since)
        })
    }

    fn add_named_by(&mut self, process: &AgentProcess) {
        let named = PROGRAMS.session(&process.program());
        let Some(session) = named.and_then(|named| SessionId::parse(named).ok()) else {
            return;
        };
        if self.sketches.contains_key(&session) {
            return;
        }
        let found = self.projects.find(&session, process.work_dir());
        if let Some(transcript) = found.take(&mut self.problems) {
            self.add_pairable(session, transcript);
        }
    }

    /// Adds the sessions of a process's directory that have a record made since
    /// it began. It may be in one that other processes left behind, too.
    fn add_beside(&mut self, process: &AgentProcess) {
        let Ok(began) = process.process.began_at_ms else {
            return;
        };
        let mounts = self.look.machine.mounts();
        let mut folders = Vec::new();
        for directory in process.work_dirs() {
            let found = self.projects.of_directory(directory, mounts);
            let found = found.take(&mut self.problems).into_iter();
            folders.extend(found.map(|folder| (folder, directory)));
        }
        for (folder, directory) in folders {
            let listed = self.listed(&folder);
            let transcripts = listed
                .sessions
                .iter()
                .map(|session| listed.transcript(session));
            let sessions: Vec<_> = listed.sessions.iter().cloned().zip(transcripts).collect();
            let is_new = |session: &SessionId| {
                !self.sketches.contains_key(session) || self.claimed.contains(session)
            };
            let mut sessions: Vec<_> = sessions
                .into_iter()
                .filter(|(session, _)| is_new(session))
                .map(|(session, path)| (modified_ms(&path), session, path))
                .collect();
            sessions.sort_by(|a, b| b.cmp(a));
            sessions.truncate(BESIDE_MAX);
            for (_, session, transcript) in sessions {
                let last = self.read(&transcript, read_last).unwrap_or_default();
                let last = last.record_at_ms.max(last.perhaps_until_ms);
                if last.is_none_or(|last| last < began.saturating_sub(CLOCK_SLACK_MS)) {
                    continue;
                }
                if let Some(claimed) = self.sketches.get_mut(&session) {
                    let gap = Clue::gap(process.process.pid, "it has no record in the registry");
                    claimed.clues.push(gap);
                } else {
                    self.add_pairable(session.clone(), transcript);
                    self.place(&session, directory);
                }
            }
        }
    }

    /// A transcript that has lost the lines with its directory has the directory of its
    /// folder.
    fn place(&mut self, session: &SessionId, directory: &Path) {
        if let Some(sketch) = self.sketches.get_mut(session)
            && sketch.perhaps_until_ms.is_some()
            && sketch.work_dir.is_none()
        {
            sketch.work_dir = Some(directory.to_owned());
        }
    }

    fn add_pairable(&mut self, session: SessionId, transcript: PathBuf) {
        let last = self.read(&transcript, read_last).unwrap_or_default();
        self.add_found(session.clone(), transcript);
        if let Some(sketch) = self.sketches.get_mut(&session) {
            sketch.unclaimed = Unclaimed::Owner;
            sketch.last_record_at_ms = last.record_at_ms;
            sketch.perhaps_until_ms = last.perhaps_until_ms;
        }
    }

    /// Adds every session on disk.
    pub(super) fn add_all(&mut self) {
        for folder in self.projects.all().take(&mut self.problems) {
            let listed = list(&folder).take(&mut self.problems);
            let depth = self.look.depth;
            let mut is_any_placeless = false;
            for session in listed.sessions.iter().filter(|one| depth.reaches(one)) {
                self.add_found(session.clone(), listed.transcript(session));
                let sketch = self.sketches.get(session);
                is_any_placeless |= sketch.is_none_or(|sketch| sketch.work_dir.is_none());
            }
            if is_any_placeless {
                // The other transcripts in the folder name the directory.
                for session in &listed.sessions {
                    self.add_found(session.clone(), listed.transcript(session));
                }
            }
            self.share_directory(&listed);
            self.folders.insert(folder, listed);
        }
    }

    /// A transcript without a directory gets the directory that the other transcripts in its
    /// folder name.
    fn share_directory(&mut self, folder: &ProjectFolder) {
        let directory = folder
            .sessions
            .iter()
            .find_map(|session| self.sketches.get(session)?.work_dir.clone());
        for session in &folder.sessions {
            if let Some(sketch) = self.sketches.get_mut(session)
                && sketch.work_dir.is_none()
                && sketch.unclaimed == Unclaimed::Nobody
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
        let is_better_known = known.is_some_and(|known| {
            let is_newer =
                known.transcript.as_deref().and_then(modified_ms) >= modified_ms(&transcript);
            self.claimed.contains(&session)
                || known.unclaimed != Unclaimed::Nobody
                || (is_newer && !known.is_provisional)
        });
        if is_better_known {
            return;
        }
        let rank_of_known = known.map(|known| {
            let written = known.transcript.as_deref().and_then(modified_ms);
            (!known.is_provisional, written)
        });
        let mut sketch = Sketch::new(self.key(&session));
        let opening = self.read(&transcript, read_opening).unwrap_or_default();
        let rank = (!opening.is_without_words(), modified_ms(&transcript));
        if opening.is_sidechain || rank_of_known.is_some_and(|known| known >= rank) {
            return;
        }
        sketch.is_provisional = opening.is_without_words();
        sketch.is_resumable = !opening.is_without_words();
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
        match read(transcript) {
            Ok(value) => Some(value),
            Err(error) => {
                if is_there(transcript) {
                    let problem = Problem::at(&AGENT, transcript, error.reason());
                    self.problems.push(problem);
                }
                None
            }
        }
    }

    fn listed(&mut self, folder: &Path) -> &ProjectFolder {
        let problems = &mut self.problems;
        self.folders
            .entry(folder.to_owned())
            .or_insert_with(|| list(folder).take(problems))
    }

    /// Adds the sub-agents of the sessions found so far.
    ///
    /// Versions that have a registry keep them in a folder below the session's;
    /// for those the project folder, which may be large, is not listed.
    pub(super) fn add_sub_agents(&mut self) {
        let parents: Vec<(SessionId, PathBuf)> = self
            .sketches
            .iter()
            .filter_map(|(session, sketch)| Some((session.clone(), sketch.transcript.clone()?)))
            .collect();
        let mut folders = BTreeSet::new();
        let mut in_worktrees = BTreeSet::new();
        for (parent, transcript) in &parents {
            let folder = transcript.parent().unwrap_or(transcript);
            let listed = self.folders.get(folder);
            if listed.is_none_or(|listed| listed.has_folder_of(parent)) {
                for sub_agent in of_session(&transcript.with_extension("")).take(&mut self.problems)
                {
                    self.add_sub_agent(parent, sub_agent);
                }
            }
            // Those that are isolated have the folder of their worktree.
            for worktree in self.projects.of_worktrees(folder) {
                let below = worktree.join(parent.as_str());
                for sub_agent in of_session(&below).take(&mut self.problems) {
                    self.add_sub_agent(parent, sub_agent);
                }
                in_worktrees.insert(worktree);
            }
            if !self.claimed.contains(parent) {
                folders.insert(folder.to_owned());
            }
        }
        for worktree in in_worktrees {
            let beside = beside_sessions(&self.listed(&worktree).sub_agents);
            for (parent, sub_agent) in beside {
                if self.sketches.contains_key(&parent) {
                    self.add_sub_agent(&parent, sub_agent);
                }
            }
        }
        for folder in folders {
            let beside = beside_sessions(&self.listed(&folder).sub_agents);
            for (parent, sub_agent) in beside {
                if self.sketches.contains_key(&parent) && !self.claimed.contains(&parent) {
                    self.add_sub_agent(&parent, sub_agent);
                }
            }
        }
    }

    /// A sub-agent has one turn, and with it ends.
    fn claim_of_ended(&self, sub_agent: &SubAgent, at_ms: i64) -> Claim {
        Claim {
            dated_at_ms: Some(at_ms),
            exclusivity: Exclusivity::Exclusive,
            placement: self
                .look
                .machine
                .mounts()
                .placement_of(&sub_agent.transcript),
            ..Claim::new(
                self.key(&sub_agent.id),
                Subject::Released,
                Evidence::new(
                    EvidenceKind::Transcript,
                    Some(sub_agent.transcript.clone()),
                    "its last record ended its turn".to_owned(),
                ),
            )
        }
    }

    fn add_sub_agent(&mut self, parent: &SessionId, sub_agent: SubAgent) {
        if self.sketches.contains_key(&sub_agent.id) {
            return;
        }
        let mut sketch = Sketch::new(self.key(&sub_agent.id));
        sketch.parent = Some(parent.clone());
        if let Some(at_ms) = self.read(&sub_agent.transcript, read_end).flatten() {
            self.claims
                .push(Box::new(self.claim_of_ended(&sub_agent, at_ms)));
        }
        sketch.transcript = Some(sub_agent.transcript);
        sketch.work_dir = self
            .sketches
            .get(parent)
            .and_then(|parent| parent.work_dir.clone());
        let place = self.sketches.entry(sub_agent.id);
        place.or_insert(Box::new(sketch));
    }
}

/// The PID of a process in its own PID namespace.
fn own_pid(process: &AgentProcess) -> Pid {
    process
        .details
        .innermost_pid()
        .unwrap_or(process.process.pid)
}
