//! One home: its log and its rows, and what they claim.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use whosup_process::Pid;
use whosup_sidecar::SessionId;
use whosup_sidecar::file::{FileFacts, Links, facts};

use super::beyond::was_ended_since;
use super::log::{self, Log, Said};
use super::row::{Row, born_at_ms};
use super::{AGENT, database, manifest, process};
use crate::adapter::claim::{Claim, Evidence, EvidenceKind, Exclusivity, Serving, Subject};
use crate::adapter::phase::Phase;
use crate::adapter::{
    AgentProcess, AgentScan, Depth, Description, Home, Look, Role, Sketch, Unclaimed,
};
use crate::machine::problem::Found;
use crate::sources::agents::kit::scan::Scan;
use crate::sources::agents::kit::unlogged::{Strayed, doubted};

/// How much earlier than its process a line may look, in milliseconds: for rounding.
const ROUNDING_MS: i64 = 250;
/// How many generations of sub-agents are followed.
const GENERATIONS_MAX: usize = 16;

/// Reads the claims and sketches of one home.
pub(super) fn scan(look: &Look<'_>, home: &Home) -> Found<AgentScan> {
    let matters = |process: &AgentProcess| matches!(process.role, Role::Session | Role::Host);
    if *look.depth == Depth::Live && !look.processes_of(home).any(matters) {
        return Found::default();
    }
    let mut scanning = Scanning {
        scan: Scan::new(AGENT, look, home),
        log: None,
        rows: BTreeMap::new(),
        rows_file: home.root.join("db").join("sessions.db"),
        rows_facts: None,
        strayed: Strayed::default(),
    };
    scanning.read_log();
    scanning.read_rows();
    scanning.find_strayed();
    scanning.claim_by_log();
    scanning.claim_by_rows();
    let sketches = scanning.sketches();
    scanning.scan.finish_with(sketches)
}

pub(super) struct Scanning<'a> {
    pub(super) scan: Scan<'a>,
    pub(super) log: Option<Log>,
    pub(super) rows: BTreeMap<SessionId, Row>,
    /// The database.
    rows_file: PathBuf,
    /// Size, dates and owner of the database; `None` if the rows come from other files.
    rows_facts: Option<FileFacts>,
    pub(super) strayed: Strayed,
}

impl Scanning<'_> {
    fn read_log(&mut self) {
        let terminals = self.scan.of_role(Role::Session);
        let began = terminals.map(|process| process.process.began_ms());
        let Some(since_ms) = began.min() else { return };
        let path = self.scan.home.root.join("logs").join("cline.log");
        let since_ms = since_ms.map_or(i64::MIN, |since_ms| since_ms.saturating_sub(ROUNDING_MS));
        match log::read(&path, since_ms) {
            Ok(log) => self.log = log,
            Err(error) => self.scan.problem(&path, error.reason()),
        }
    }

    /// The rows of the database; if it cannot be read or is not there, the rows from the
    /// files beside the messages.
    fn read_rows(&mut self) {
        let read = database::read(&self.rows_file).unwrap_or_else(|reason| {
            self.scan.problem(&self.rows_file, reason);
            None
        });
        let rows = match read {
            Some((read, facts)) => {
                for message in read.wrong {
                    self.scan.problem(&self.rows_file, message);
                }
                self.rows_facts = Some(facts);
                read.rows
            }
            None => manifest::read_all(&self.scan.home.root, &mut self.scan.problems),
        };
        self.rows = rows.into_iter().map(|row| (row.id.clone(), row)).collect();
    }

    /// Claims from the log lines of running terminals. A line that is older than the process
    /// which has its PID now belongs to an earlier process.
    fn claim_by_log(&mut self) {
        let Some(log) = &self.log else { return };
        for ((pid, session), said) in &log.said {
            let process = self.scan.process(*pid);
            let is_of_now = process.is_some_and(|process| {
                process.role == Role::Session && had_begun_at(process, said.at_ms)
            });
            let row = self.rows.get(session);
            let is_sub_agent = row.is_some_and(|row| row.parent.is_some());
            let is_ended = row.is_some_and(|row| was_ended_since(row, *pid, said));
            // Perhaps this process ended it, perhaps the process that had it before.
            let may_be_left =
                is_ended && row.is_some_and(|row| !row.is_ended() && row.pid != Some(*pid));
            let is_left = is_ended && !may_be_left;
            if !is_of_now || !said.is_open || is_left || is_sub_agent {
                continue;
            }
            let says = format!("process {pid} opened it");
            let evidence = Evidence::new(EvidenceKind::Log, log.path.clone(), says);
            let subject = Subject::Process(*pid);
            let scan = &self.scan;
            let mut claim = scan.claim_by_file(session, subject, evidence, &log.facts);
            claim.scope.host.clone_from(&said.host);
            claim.dated_at_ms = Some(said.at_ms);
            claim.work_dir = row.and_then(|row| row.work_dir.clone());
            if self.strayed.has(*pid) {
                claim = doubted(claim);
            } else if may_be_left {
                claim.subject = Subject::Released;
                claim.dated_at_ms = row.and_then(|row| row.ended_at_ms);
                claim.evidence.says += ", and it was ended since, there or elsewhere";
            }
            self.scan.claim(claim);
        }
    }

    /// Claims from the rows, where the named process may be the owner.
    fn claim_by_rows(&mut self) {
        let Some(facts) = self.rows_facts else { return };
        let opened = self.scan.claims.iter().map(|claim| &claim.key.session);
        let opened: BTreeSet<&SessionId> = opened.collect();
        let mut claims = Vec::new();
        for row in self.rows.values().filter(|row| row.parent.is_none()) {
            claims.extend(self.claim_of_row(row, &facts));
            if row.is_in_a_turn() && !opened.contains(&row.id) {
                claims.extend(self.claim_of_hub(row, &facts));
            }
        }
        let is_ended_sub_agent = |row: &&Row| row.parent.is_some() && row.is_finished();
        for sub_agent in self.rows.values().filter(is_ended_sub_agent) {
            let ended = self.claim_of_row(sub_agent, &facts);
            claims.extend(ended.map(|claim| Claim {
                exclusivity: Exclusivity::Exclusive,
                ..claim
            }));
        }
        self.scan.claims.extend(claims.into_iter().map(Box::new));
    }

    /// Claims that the PID in the row runs the session, unless that is the hub's PID.
    fn claim_of_row(&self, row: &Row, facts: &FileFacts) -> Option<Claim> {
        let pid = row.pid?;
        let process = self.scan.process(pid);
        let mut claim = self.claim(row, pid, format!("pid {pid}, {}", row.status), facts);
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
        let mut hosts = self.scan.of_role(Role::Host);
        let hub = hosts.find(|process| process::is_hub(&process.program()))?;
        let hub = hub.process.pid;
        let is_in_row = row.pid == Some(hub);
        let says = match is_in_row {
            true => format!("the hub, pid {hub}, {}", row.status),
            false => format!("{}, perhaps in the hub, pid {hub}", row.status),
        };
        Some(Claim {
            serving: Serving::Many,
            dated_at_ms: row.updated_at_ms.filter(|_| is_in_row),
            ..self.claim(row, hub, says, facts)
        })
    }

    fn claim(&self, row: &Row, pid: Pid, says: String, facts: &FileFacts) -> Claim {
        let evidence = Evidence::new(EvidenceKind::Database, self.rows_file.clone(), says);
        let subject = Subject::Process(pid);
        self.scan.claim_by_file(&row.id, subject, evidence, facts)
    }

    fn claims_to(&self, session: &SessionId) -> impl Iterator<Item = &Claim> {
        let claims = self.scan.claims.iter().map(|claim| &**claim);
        claims.filter(move |claim| claim.key.session == *session)
    }

    fn sketches(&mut self) -> Vec<Sketch> {
        let is_all = self.scan.look.depth.is_walk();
        let rows = self.rows.values();
        let live = rows.filter(|row| is_all || self.may_be_live(row));
        let mut shown: BTreeSet<SessionId> = live.map(|row| row.id.clone()).collect();
        // Sub-agents come and go with their parents.
        for _ in 0..GENERATIONS_MAX {
            let is_next = |row: &&Row| {
                let parent = row.parent.as_ref();
                parent.is_some_and(|parent| shown.contains(parent)) && !shown.contains(&row.id)
            };
            let next = self.rows.values().filter(is_next);
            let next: Vec<SessionId> = next.map(|row| row.id.clone()).collect();
            if next.is_empty() {
                break;
            }
            shown.extend(next);
        }
        let has_row = |session: &SessionId| self.rows.contains_key(session);
        self.scan
            .claims
            .retain(|claim| shown.contains(&claim.key.session) || !has_row(&claim.key.session));
        let claimed = self.scan.claims.iter().map(|claim| &claim.key.session);
        let unsaid: BTreeSet<&SessionId> = claimed.filter(|session| !has_row(session)).collect();
        let unsaid = unsaid.into_iter().map(|id| self.sketch_of_unsaid(id));
        let rows = shown.iter().filter_map(|id| self.rows.get(id));
        rows.map(|row| self.sketch(row)).chain(unsaid).collect()
    }

    /// Some process that is there may be serving it.
    fn may_be_live(&self, row: &Row) -> bool {
        if row.parent.is_some() {
            return false;
        }
        let is_claimed = self.claims_to(&row.id).any(|claim| {
            let pid = claim.subject.pid().or(claim.ended_by);
            pid.is_some_and(|pid| self.scan.process(pid).is_some())
        });
        let mut terminals = self.scan.of_role(Role::Session);
        is_claimed || terminals.any(|process| self.fits(process, row))
    }

    /// A terminal that the log does not name may have the session open: the arguments name
    /// it, or it was used in the terminal's directory since the terminal began.
    fn fits(&self, terminal: &AgentProcess, row: &Row) -> bool {
        let pid = terminal.process.pid;
        let is_known = self.scan.claims.iter().any(|claim| {
            claim.subject.pid() == Some(pid) && claim.evidence.kind == EvidenceKind::Log
        });
        let is_named = || terminal.named_session() == Some(row.id.as_str());
        !is_known && (is_named() || self.was_used_beside(terminal, row))
    }

    /// It was used in the directory of a terminal since that began.
    pub(super) fn was_used_beside(&self, terminal: &AgentProcess, row: &Row) -> bool {
        let directories = row.work_dir.as_deref().zip(terminal.named_or_own_dir());
        let mounts = self.scan.look.machine.mounts();
        let is_beside = directories.is_some_and(|(own, real)| mounts.leads_to(own, &real));
        let dates = [row.started_at_ms, row.last_use_at_ms()];
        let mut dates = dates.into_iter().flatten();
        is_beside && dates.any(|at_ms| had_begun_at(terminal, at_ms))
    }

    fn sketch(&self, row: &Row) -> Sketch {
        let mut described = row.description();
        // If the session was resumed, the log has the newer release.
        if let Some(said) = self.said_of(&row.id) {
            described.agent_version = said.version.clone().or(described.agent_version);
        }
        described.transcript = self.messages_of(row);
        let title = described.title.clone();
        Sketch {
            parent: row.parent.clone(),
            may_have_ended: row.parent.is_some() && row.is_ended(),
            work_dir: row.work_dir.clone(),
            born_at_ms: row.started_at_ms,
            last_record_at_ms: row.last_use_at_ms(),
            transcript: described.transcript.clone(),
            facts: match row.parent {
                Some(_) => Vec::new(),
                None => vec![row.fact()],
            },
            clues: self.clues_about(row),
            unclaimed: match row.parent {
                Some(_) => Unclaimed::NoProcess,
                None => Unclaimed::Owner,
            },
            is_headless: described.is_headless,
            title: title.filter(|_| !described.is_title_a_prompt),
            endpoint: self.endpoint(row),
            started_at_ms: row.started_at_ms,
            ended_at_ms: row.ended_at_ms,
            described: Some(Box::new(described)),
            ..Sketch::new(self.scan.key(&row.id))
        }
    }

    /// The file of the conversation. The rows of a home that was moved name its old place.
    fn messages_of(&self, row: &Row) -> Option<PathBuf> {
        let home = &self.scan.home.root;
        let named = row.messages.as_deref();
        if named.is_some_and(|named| named.starts_with(home)) {
            return row.messages.clone();
        }
        let own = home.join("sessions").join(row.id.as_str());
        let own = own.join(format!("{}.messages.json", row.id));
        let is_there = facts(&own, Links::Follow).is_ok();
        Some(own)
            .filter(|_| is_there)
            .or_else(|| row.messages.clone())
    }

    /// The address of the hub, for a session that only the hub serves.
    fn endpoint(&self, row: &Row) -> Option<String> {
        let mut claims = self.claims_to(&row.id);
        let (Some(claim), None) = (claims.next(), claims.next()) else {
            return None;
        };
        let pid = claim.subject.pid().filter(|pid| row.pid == Some(*pid))?;
        let hub = self.scan.process(pid)?.program();
        process::hub_endpoint(&hub).filter(|_| process::is_hub(&hub))
    }

    /// A session that a terminal has open and that has no messages yet. It is dropped when
    /// the terminal exits.
    fn sketch_of_unsaid(&self, id: &SessionId) -> Sketch {
        let said = self.said_of(id);
        let claim = self.claims_to(id).next();
        let terminal = claim.and_then(|claim| self.scan.process(claim.subject.pid()?));
        let work_dir = terminal.and_then(AgentProcess::named_or_own_dir);
        let born_at_ms = born_at_ms(id).or(said.map(|said| said.at_ms));
        Sketch {
            work_dir: work_dir.clone(),
            born_at_ms,
            started_at_ms: born_at_ms,
            is_resumable: false,
            lacks_transcript: true,
            is_provisional: self.rows_facts.is_some(),
            described: Some(Box::new(Description {
                model: said.and_then(|said| said.model.clone()),
                agent_version: said.and_then(|said| said.version.clone()),
                work_dir,
                started_at_ms: born_at_ms,
                phase: Some(Phase::Idle),
                ..Description::default()
            })),
            ..Sketch::new(self.scan.key(id))
        }
    }

    /// The last log line of any terminal about a session.
    pub(super) fn said_of(&self, session: &SessionId) -> Option<&Said> {
        let said = self.log.as_ref()?.said.iter();
        let about = said.filter(|((_, id), _)| id == session);
        about.map(|(_, said)| said).max_by_key(|said| said.at_ms)
    }
}

/// A process had begun at this time, as far as its begin is known.
fn had_begun_at(process: &AgentProcess, at_ms: i64) -> bool {
    let began = process.process.began_ms();
    began.is_some_and(|began| at_ms >= began.saturating_sub(ROUNDING_MS))
}
