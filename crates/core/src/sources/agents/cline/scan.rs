//! One home: its log and its rows, and what they claim.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use whosup_process::Pid;
use whosup_sidecar::SessionId;
use whosup_sidecar::file::FileFacts;

use super::beyond::was_ended_since;
use super::log::{self, Log, Said};
use super::row::{Row, born_at_ms};
use super::{AGENT, database, manifest, process};
use crate::adapter::claim::{
    Claim, Evidence, EvidenceKind, Exclusivity, Serving, SessionKey, Subject,
};
use crate::adapter::{
    AgentProcess, AgentScan, Depth, Description, Home, Look, Role, Sketch, Unclaimed,
};
use crate::machine::problem::{Found, Problem};
use crate::sources::trust::trust_of;

/// How much earlier than its process a line may look, in milliseconds: for rounding.
const ROUNDING_MS: i64 = 250;
/// How many generations of sub-agents are followed.
const GENERATIONS_MAX: usize = 16;

/// Reads the claims and sketches of one home.
pub(super) fn scan(look: &Look<'_>, home: &Home) -> Found<AgentScan> {
    let processes: Vec<&AgentProcess> = look.processes_of(home).collect();
    let matters = |process: &&AgentProcess| matches!(process.role, Role::Session | Role::Host);
    if *look.depth == Depth::Live && !processes.iter().any(matters) {
        return Found::default();
    }
    let mut scanning = Scanning {
        look,
        home,
        processes,
        log: None,
        rows: BTreeMap::new(),
        rows_file: home.root.join("db").join("sessions.db"),
        rows_facts: None,
        strayed: BTreeMap::new(),
        claims: Vec::new(),
        problems: Vec::new(),
    };
    scanning.read_log();
    scanning.read_rows();
    scanning.find_strayed();
    scanning.claim_by_log();
    scanning.claim_by_rows();
    let sketches = scanning.sketches();
    Found {
        found: AgentScan::of(scanning.claims, sketches),
        problems: scanning.problems,
    }
}

pub(super) struct Scanning<'a> {
    look: &'a Look<'a>,
    home: &'a Home,
    processes: Vec<&'a AgentProcess>,
    pub(super) log: Option<Log>,
    pub(super) rows: BTreeMap<SessionId, Row>,
    /// The database.
    rows_file: PathBuf,
    /// Size, dates and owner of the database; `None` if the rows come from other files.
    rows_facts: Option<FileFacts>,
    /// The terminals that may have moved to sessions outside of the log, with the candidate
    /// sessions.
    pub(super) strayed: BTreeMap<Pid, BTreeSet<SessionId>>,
    claims: Vec<Claim>,
    problems: Vec<Problem>,
}

impl<'a> Scanning<'a> {
    fn read_log(&mut self) {
        let began = self
            .of_role(Role::Session)
            .map(|process| process.process.began_at_ms.clone().ok());
        let Some(since_ms) = began.min() else { return };
        let path = self.home.root.join("logs").join("cline.log");
        let since_ms = since_ms.map_or(i64::MIN, |since_ms| since_ms.saturating_sub(ROUNDING_MS));
        match log::read(&path, since_ms) {
            Ok(log) => self.log = log,
            Err(error) => self.problem(&path, error.reason()),
        }
    }

    /// The rows of the database; if it cannot be read, the rows from the files beside the
    /// messages.
    fn read_rows(&mut self) {
        let path = self.rows_file.clone();
        let rows = match database::read(&path) {
            Ok(None) => Vec::new(),
            Ok(Some(read)) => {
                for message in read.wrong {
                    self.problem(&path, message);
                }
                self.rows_facts = Some(read.facts);
                read.rows
            }
            Err(reason) => {
                self.problem(&path, reason);
                manifest::read_all(&self.home.root, &mut self.problems)
            }
        };
        self.rows = rows.into_iter().map(|row| (row.id.clone(), row)).collect();
    }

    fn problem(&mut self, path: &Path, message: impl std::fmt::Display) {
        self.problems.push(Problem::at(&AGENT, path, message));
    }

    pub(super) fn of_role(
        &self,
        role: Role,
    ) -> impl Iterator<Item = &'a AgentProcess> + use<'a, '_> {
        self.processes
            .iter()
            .copied()
            .filter(move |process| process.role == role)
    }

    pub(super) fn process(&self, pid: Pid) -> Option<&'a AgentProcess> {
        self.processes
            .iter()
            .copied()
            .find(|process| process.process.pid == pid)
    }

    fn is_sub_agent(&self, session: &SessionId) -> bool {
        self.rows
            .get(session)
            .is_some_and(|row| row.parent.is_some())
    }

    /// Claims from the log lines of running terminals. A line that is older than the process
    /// which has its PID now belongs to an earlier process.
    fn claim_by_log(&mut self) {
        let Some(log) = &self.log else { return };
        let mut claims = Vec::new();
        for ((pid, session), said) in &log.said {
            let is_of_now = self.process(*pid).is_some_and(|process| {
                let began = process.process.began_at_ms.as_ref();
                process.role == Role::Session
                    && began.is_ok_and(|began| said.at_ms >= began.saturating_sub(ROUNDING_MS))
            });
            let row = self.rows.get(session);
            let is_ended = row.is_some_and(|row| was_ended_since(row, *pid, said));
            // Perhaps this process ended it, perhaps the process that had it before.
            let may_be_left =
                is_ended && row.is_some_and(|row| !row.is_ended() && row.pid != Some(*pid));
            let is_left = is_ended && !may_be_left;
            if !is_of_now || !said.is_open || is_left || self.is_sub_agent(session) {
                continue;
            }
            let mut claim = self.claim(session, *pid, &log.path, &log.facts);
            claim.scope.host.clone_from(&said.host);
            claim.dated_at_ms = Some(said.at_ms);
            claim.evidence.kind = EvidenceKind::Log;
            claim.work_dir = self.rows.get(session).and_then(|row| row.work_dir.clone());
            claim.evidence.says = format!("process {pid} opened it");
            if self.strayed.contains_key(pid) {
                claim.subject = Subject::Unreadable;
                claim.evidence.says += ", and the log lacks a part after that";
            } else if may_be_left {
                claim.subject = Subject::Released;
                claim.dated_at_ms = row.and_then(|row| row.ended_at_ms);
                claim.evidence.says += ", and it was ended since, there or elsewhere";
            }
            claims.push(claim);
        }
        self.claims.extend(claims);
    }

    /// Claims from the rows, where the named process may be the owner.
    fn claim_by_rows(&mut self) {
        let Some(facts) = self.rows_facts else { return };
        let opened = self.claims.iter().map(|claim| claim.key.session.clone());
        let opened: BTreeSet<SessionId> = opened.collect();
        let mut claims = Vec::new();
        for row in self.rows.values().filter(|row| row.parent.is_none()) {
            claims.extend(self.claim_of_row(row, &facts));
            if row.is_in_a_turn() && !opened.contains(&row.id) {
                claims.extend(self.claim_of_hub(row, &facts));
            }
        }
        for sub_agent in self.rows.values().filter(|row| row.parent.is_some()) {
            let ended = self.claim_of_row(sub_agent, &facts);
            claims.extend(
                ended
                    .filter(|_| sub_agent.is_finished())
                    .map(|claim| Claim {
                        exclusivity: Exclusivity::Exclusive,
                        ..claim
                    }),
            );
        }
        self.claims.extend(claims);
    }

    /// Claims that the PID in the row runs the session, unless that is the hub's PID.
    fn claim_of_row(&self, row: &Row, facts: &FileFacts) -> Option<Claim> {
        let pid = row.pid?;
        let process = self.process(pid);
        let mut claim = self.claim(&row.id, pid, &self.rows_file, facts);
        claim.evidence.kind = EvidenceKind::Database;
        claim.evidence.says = format!("pid {pid}, {}", row.status);
        claim.work_dir.clone_from(&row.work_dir);
        claim.dated_at_ms = row.started_at_ms;
        if process.is_some_and(|process| process.role == Role::Host) {
            claim.serving = Serving::Many;
        }
        if row.is_ended() {
            claim.subject = Subject::Released;
            claim.dated_at_ms = row.ended_at_ms.or(row.started_at_ms);
            claim.ended_by = Some(pid).filter(|_| row.is_finished() && row.parent.is_none());
        } else if row.ended_at_ms.is_some()
            || process.is_some_and(|process| process::is_hub(&process.program()))
        {
            // If a process resumed the session after its end, the PID belongs to an earlier
            // process.
            return None;
        }
        Some(claim)
    }

    /// The hub may continue a turn whose terminal has gone: if it is the hub in the row. A
    /// terminal that resumed the session under a hub left no trace in the row, so that the
    /// hub may do so in any case.
    fn claim_of_hub(&self, row: &Row, facts: &FileFacts) -> Option<Claim> {
        let mut hubs = self
            .of_role(Role::Host)
            .filter(|process| process::is_hub(&process.program()));
        let hub = hubs.next()?.process.pid;
        let mut claim = self.claim(&row.id, hub, &self.rows_file, facts);
        claim.evidence.kind = EvidenceKind::Database;
        claim.serving = Serving::Many;
        if row.pid == Some(hub) {
            claim.dated_at_ms = row.updated_at_ms;
            claim.evidence.says = format!("the hub, pid {hub}, {}", row.status);
        } else {
            claim.evidence.says = format!("{}, perhaps in the hub, pid {hub}", row.status);
        }
        Some(claim)
    }

    fn claim(&self, session: &SessionId, pid: Pid, path: &Path, facts: &FileFacts) -> Claim {
        Claim {
            modified_at_ms: facts.modified_ms,
            trust: trust_of(facts, self.home, self.look.machine),
            placement: self.look.machine.mounts().placement_of(path),
            ..Claim::new(
                self.key(session),
                Subject::Process(pid),
                Evidence::new(EvidenceKind::Log, Some(path.to_owned()), String::new()),
            )
        }
    }

    fn key(&self, session: &SessionId) -> SessionKey {
        SessionKey {
            agent: AGENT,
            session: session.clone(),
            home: self.home.root.clone(),
        }
    }

    fn sketches(&mut self) -> Vec<Sketch> {
        let is_all = self.look.depth.is_walk();
        let mut shown: BTreeSet<SessionId> = self
            .rows
            .values()
            .filter(|row| is_all || self.may_be_live(row))
            .map(|row| row.id.clone())
            .collect();
        // Sub-agents come and go with their parents.
        for _ in 0..GENERATIONS_MAX {
            let is_next = |row: &&Row| {
                row.parent
                    .as_ref()
                    .is_some_and(|parent| shown.contains(parent))
                    && !shown.contains(&row.id)
            };
            let next: Vec<SessionId> = self
                .rows
                .values()
                .filter(is_next)
                .map(|row| row.id.clone())
                .collect();
            if next.is_empty() {
                break;
            }
            shown.extend(next);
        }
        self.claims.retain(|claim| {
            shown.contains(&claim.key.session) || !self.rows.contains_key(&claim.key.session)
        });
        let rows = shown.iter().filter_map(|id| self.rows.get(id));
        let of_rows: Vec<Sketch> = rows.map(|row| self.sketch(row)).collect();
        let claimed: BTreeSet<&SessionId> =
            self.claims.iter().map(|claim| &claim.key.session).collect();
        let without_row = claimed
            .into_iter()
            .filter(|id| !self.rows.contains_key(*id));
        let unsaid: Vec<Sketch> = without_row.map(|id| self.sketch_of_unsaid(id)).collect();
        of_rows.into_iter().chain(unsaid).collect()
    }

    /// Some process that is there may be serving it.
    fn may_be_live(&self, row: &Row) -> bool {
        if row.parent.is_some() {
            return false;
        }
        let is_claimed = self.claims.iter().any(|claim| {
            claim.key.session == row.id
                && claim
                    .subject
                    .pid()
                    .or(claim.ended_by)
                    .is_some_and(|pid| self.process(pid).is_some())
        });
        is_claimed
            || self
                .of_role(Role::Session)
                .any(|process| self.fits(process, row))
    }

    /// A terminal that the log does not name may have the session open: the arguments name
    /// it, or it was used in the terminal's directory since the terminal began.
    fn fits(&self, terminal: &AgentProcess, row: &Row) -> bool {
        let pid = terminal.process.pid;
        let is_known = self.claims.iter().any(|claim| {
            claim.subject.pid() == Some(pid) && claim.evidence.kind == EvidenceKind::Log
        });
        if is_known {
            return false;
        }
        let program = terminal.program();
        let is_named = process::PROGRAMS.session(&program) == Some(row.id.as_str());
        is_named || self.was_used_beside(terminal, row)
    }

    /// It was used in the directory of a terminal since that began.
    pub(super) fn was_used_beside(&self, terminal: &AgentProcess, row: &Row) -> bool {
        let program = terminal.program();
        let work_dir = process::PROGRAMS.directory(&program);
        let work_dir = work_dir.as_deref().or(terminal.work_dir());
        let directories = row.work_dir.as_deref().zip(work_dir);
        let mounts = self.look.machine.mounts();
        let is_beside = directories.is_some_and(|(own, real)| mounts.leads_to(own, real));
        let is_since = terminal.process.began_at_ms.as_ref().is_ok_and(|began| {
            let earliest = began.saturating_sub(ROUNDING_MS);
            let dates = [row.started_at_ms, row.last_use_at_ms()];
            dates.into_iter().flatten().any(|at| at >= earliest)
        });
        is_beside && is_since
    }

    fn sketch(&self, row: &Row) -> Sketch {
        let mut described = row.description();
        // If the session was resumed, the log has the newer release.
        if let Some(said) = self.said_of(&row.id) {
            described.agent_version = said.version.clone().or(described.agent_version);
        }
        Sketch {
            parent: row.parent.clone(),
            may_have_ended: row.parent.is_some() && row.is_ended(),
            work_dir: row.work_dir.clone(),
            born_at_ms: row.started_at_ms,
            last_record_at_ms: row.last_use_at_ms(),
            transcript: row.messages.clone(),
            facts: row
                .parent
                .is_none()
                .then(|| row.fact())
                .into_iter()
                .collect(),
            clues: self.clues_about(row),
            unclaimed: match row.parent {
                Some(_) => Unclaimed::Nobody,
                None => Unclaimed::Owner,
            },
            is_headless: row.is_interactive.map(|is| !is),
            title: described
                .title
                .clone()
                .filter(|_| !described.is_title_a_prompt),
            endpoint: self.endpoint(row),
            started_at_ms: row.started_at_ms,
            ended_at_ms: row.ended_at_ms,
            described: Some(Box::new(described)),
            ..Sketch::new(self.key(&row.id))
        }
    }

    /// The address of the hub, for a session that only the hub serves.
    fn endpoint(&self, row: &Row) -> Option<String> {
        let claims = self.claims.iter();
        let mut matching = claims.filter(|claim| claim.key.session == row.id);
        let (Some(claim), None) = (matching.next(), matching.next()) else {
            return None;
        };
        let pid = claim.subject.pid().filter(|pid| row.pid == Some(*pid))?;
        let hub = self.process(pid)?.program();
        process::hub_endpoint(&hub).filter(|_| process::is_hub(&hub))
    }

    /// A session that a terminal has open and that has no messages yet. It is dropped when
    /// the terminal exits.
    fn sketch_of_unsaid(&self, id: &SessionId) -> Sketch {
        let said = self.said_of(id);
        let terminal = self.claims.iter().find(|claim| claim.key.session == *id);
        let terminal = terminal.and_then(|claim| self.process(claim.subject.pid()?));
        let work_dir = terminal.and_then(|process| {
            process::PROGRAMS
                .directory(&process.program())
                .or_else(|| process.work_dir().map(Path::to_owned))
        });
        let born_at_ms = born_at_ms(id).or(said.map(|said| said.at_ms));
        Sketch {
            work_dir: work_dir.clone(),
            born_at_ms,
            started_at_ms: born_at_ms,
            is_resumable: false,
            is_provisional: self.rows_facts.is_some(),
            described: Some(Box::new(Description {
                model: said.and_then(|said| said.model.clone()),
                agent_version: said.and_then(|said| said.version.clone()),
                work_dir,
                started_at_ms: born_at_ms,
                phase: Some(crate::adapter::phase::Phase::Idle),
                ..Description::default()
            })),
            ..Sketch::new(self.key(id))
        }
    }

    /// The last log line of any terminal about a session.
    fn said_of(&self, session: &SessionId) -> Option<&Said> {
        let said = self.log.as_ref()?.said.iter();
        let lines = said
            .filter(|((_, id), _)| id == session)
            .map(|(_, said)| said);
        lines.max_by_key(|said| said.at_ms)
    }
}
