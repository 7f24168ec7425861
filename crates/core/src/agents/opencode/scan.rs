//! One home: its databases, the runs of its log, and what they claim.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use whosup_process::Pid;
use whosup_sidecar::SessionId;

use super::database::SessionDb;
use super::fit::{RealPaths, continued, is_named, is_since};
use super::log::{self, Log};
use super::run::Runs;
use super::session::Row;
use super::{AGENT, databases_of, is_database, process};
use crate::agents::{AgentProcess, AgentScan, Depth, Home, Look, PairingRule, Role, Sketch};
use crate::claim::{
    Claim, ClaimedScope, Evidence, EvidenceKind, Exclusivity, Placement, Serving, SessionKey,
    Subject, Trust,
};
use crate::problem::{Found, Problem};
use crate::trust::trust_of;

/// How many entries of a home are read.
pub(super) const HOME_ENTRIES_MAX: usize = 100_000;
/// How many databases of a home are read.
pub(super) const DATABASES_MAX: usize = 16;
/// How many sessions without a title get their first prompt for one.
const PROMPTS_MAX: usize = 10_000;
/// How many generations of sub-agents are followed.
const GENERATIONS_MAX: usize = 16;

/// Reads the claims and sketches of one home.
pub(super) fn scan(look: &Look<'_>, home: &Home) -> Found<AgentScan> {
    let processes: Vec<&AgentProcess> = look.processes_of(home).collect();
    let matters =
        |its: &&AgentProcess| matches!(its.role, Role::Session | Role::Host | Role::Client);
    if *look.depth == Depth::Live && !processes.iter().any(matters) {
        return Found::default();
    }
    let mut scanning = Scanning {
        look,
        home,
        processes,
        runs: None,
        databases: Vec::new(),
        is_all_read: true,
        rows: Vec::new(),
        claims: Vec::new(),
        real_paths: RealPaths::default(),
        problems: Vec::new(),
    };
    scanning.read_log();
    scanning.read_databases();
    scanning.claim_by_runs();
    scanning.claim_for_unknown_hosts();
    let sketches = scanning.sketches();
    Found {
        found: AgentScan {
            claims: scanning.claims,
            sketches,
        },
        problems: scanning.problems,
    }
}

struct Scanning<'a> {
    look: &'a Look<'a>,
    home: &'a Home,
    processes: Vec<&'a AgentProcess>,
    /// The runs of the log; `None` if there is no log, or nobody to match.
    runs: Option<Runs>,
    databases: Vec<SessionDb>,
    /// Every database could be read.
    is_all_read: bool,
    rows: Vec<Row>,
    claims: Vec<Claim>,
    real_paths: RealPaths,
    problems: Vec<Problem>,
}

/// Which processes may be serving a session, beside those that claim it.
enum Owners {
    /// Whoever fits by directory and dates.
    Any,
    /// These, as the log tells.
    These(BTreeSet<Pid>),
    /// Nobody that could be told from others.
    Nobody,
}

impl<'a> Scanning<'a> {
    fn read_log(&mut self) {
        let began = self
            .processes
            .iter()
            .map(|its| its.process.began_at_ms.clone().ok());
        let Some(Some(since_ms)) = began.min() else {
            return;
        };
        // Of a process whose start is not known, no run can be told.
        let root = &self.home.root;
        let directory = if is_database(root) {
            root.parent().unwrap_or(root)
        } else {
            root
        };
        let path = directory.join("log").join("opencode.log");
        match log::read(&path, since_ms.saturating_sub(1_000)) {
            Ok(read) => self.runs = read.map(|log| Runs::new(log, &self.processes)),
            Err(error) => self.problem(&path, error.reason()),
        }
    }

    fn read_databases(&mut self) {
        for path in databases_of(&self.home.root, &mut self.problems) {
            let read = SessionDb::read(&path).and_then(|database| {
                let sessions = database.sessions()?;
                Ok((database, sessions))
            });
            match read {
                Ok((database, sessions)) => {
                    for message in sessions.wrong {
                        self.problem(&path, message);
                    }
                    let at = self.databases.len();
                    let rows = sessions.rows.into_iter().map(|row| Row {
                        database: at,
                        ..row
                    });
                    self.rows.extend(rows);
                    self.databases.push(database);
                }
                Err(reason) => {
                    self.is_all_read = false;
                    self.problem(&path, reason);
                }
            }
        }
        // A session that was moved to another database is told of once.
        self.rows
            .sort_by(|a, b| a.id.cmp(&b.id).then(b.updated_at_ms.cmp(&a.updated_at_ms)));
        self.rows.dedup_by(|later, first| later.id == first.id);
        self.read_dates();
    }

    /// When something was last said: in every session, or in those that a
    /// process may be serving.
    fn read_dates(&mut self) {
        let is_every = *self.look.depth == Depth::All || self.unknown_hosts().next().is_some();
        let seeking: Vec<&AgentProcess> = self.of_role(Role::Session).collect();
        let mut wanted: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (at, row) in self.rows.iter().enumerate() {
            let is_wanted = is_every
                || self.is_worked_on(row.id.as_str())
                || seeking
                    .iter()
                    .any(|its| self.real_paths.are_beside(its, row) || is_named(its, row));
            if is_wanted {
                wanted.entry(row.database).or_default().push(at);
            }
        }
        for (database, places) in wanted {
            let ids: Vec<&str> = places
                .iter()
                .filter_map(|at| Some(self.rows.get(*at)?.id.as_str()))
                .collect();
            let Some(Ok(dates)) = self
                .databases
                .get(database)
                .map(|its| its.last_messages(&ids))
            else {
                continue;
            };
            for at in places {
                if let Some(row) = self.rows.get_mut(at) {
                    row.last_message_at_ms = dates.get(row.id.as_str()).copied();
                }
            }
        }
    }

    fn problem(&mut self, path: &Path, message: impl std::fmt::Display) {
        self.problems.push(Problem::at(&AGENT, path, message));
    }

    fn of_role(&self, role: Role) -> impl Iterator<Item = &'a AgentProcess> + use<'a, '_> {
        self.processes
            .iter()
            .copied()
            .filter(move |its| its.role == role)
    }

    /// Some run that was read worked on it.
    fn is_worked_on(&self, session: &str) -> bool {
        let runs = self.runs.as_ref();
        runs.is_some_and(|runs| runs.last_on(session).is_some())
    }

    fn unknown_hosts(&self) -> impl Iterator<Item = &'a AgentProcess> + use<'a, '_> {
        let is_known = |pid| {
            self.runs
                .as_ref()
                .is_some_and(|runs| runs.of(pid).is_some())
        };
        self.of_role(Role::Host)
            .filter(move |its| !is_known(its.process.pid))
    }

    fn row(&self, session: &str) -> Option<&Row> {
        let at = self
            .rows
            .binary_search_by(|row| row.id.as_str().cmp(session))
            .ok()?;
        self.rows.get(at)
    }

    /// What the processes whose runs are known worked on, and what they were
    /// started for.
    fn claim_by_runs(&mut self) {
        let Some(runs) = &self.runs else { return };
        let mut claims = Vec::new();
        for process in &self.processes {
            let pid = process.process.pid;
            let Some((name, run)) = runs.of(pid) else {
                continue;
            };
            for (session, at_ms) in &run.worked_on {
                let row = self.row(session);
                let is_sub_agent = runs.log.sub_agents.contains(session)
                    || row.is_some_and(|row| row.parent.is_some());
                // One that is in no database was deleted, or is another home's.
                if is_sub_agent || (row.is_none() && self.is_all_read) {
                    continue;
                }
                let Ok(session) = SessionId::parse(session) else {
                    continue;
                };
                let says =
                    format!("run {name}, which can only be process {pid}, last worked on it then");
                let evidence = (EvidenceKind::Pairing, says);
                claims.push(self.claim(&runs.log, session, process, Some(*at_ms), evidence));
            }
            claims.extend(self.claim_by_arguments(&runs.log, process));
        }
        self.claims.extend(claims);
    }

    /// The session that a process was started for.
    fn claim_by_arguments(&self, log: &Log, process: &AgentProcess) -> Option<Claim> {
        if process.role != Role::Session {
            return None;
        }
        let named = self.rows.iter().find(|row| is_named(process, row));
        let pid = process.process.pid;
        let (row, says) = match named {
            Some(row) => (row, format!("the arguments of process {pid} name it")),
            None => {
                let row = continued(process, &self.rows)?;
                let says =
                    format!("process {pid} was told to go on with the last one, which this was");
                (row, says)
            }
        };
        let began = process.process.began_at_ms.clone().ok();
        let evidence = (EvidenceKind::Arguments, says);
        let mut claim = self.claim(log, row.id.clone(), process, began, evidence);
        claim.trust = Trust::Trusted;
        claim.evidence.path = None;
        Some(claim)
    }

    /// A server that no run is known of may be serving whatever was used since.
    fn claim_for_unknown_hosts(&mut self) {
        let mut claims = Vec::new();
        for host in self.unknown_hosts() {
            let pid = host.process.pid;
            for row in self
                .rows
                .iter()
                .filter(|row| row.parent.is_none() && is_since(host, row))
            {
                let says = format!("process {pid} is a server and may be serving it");
                claims.push(Claim {
                    placement: self.look.machine.mounts().placement_of(&self.home.root),
                    ..bare_claim(self.key(&row.id), host, (EvidenceKind::Pairing, says))
                });
            }
        }
        self.claims.extend(claims);
    }

    fn claim(
        &self,
        log: &Log,
        session: SessionId,
        process: &AgentProcess,
        dated_at_ms: Option<i64>,
        evidence: (EvidenceKind, String),
    ) -> Claim {
        let mut claim = bare_claim(self.key(&session), process, evidence);
        claim.dated_at_ms = dated_at_ms;
        claim.modified_at_ms = log.facts.modified_ms;
        claim.work_dir = self
            .row(session.as_str())
            .and_then(|row| row.directory.clone());
        claim.trust = trust_of(&log.facts, self.home, self.look.machine);
        claim.placement = self.look.machine.mounts().placement_of(&log.path);
        claim.evidence.path = Some(log.path.clone());
        claim
    }

    fn key(&self, session: &SessionId) -> SessionKey {
        SessionKey {
            agent: AGENT,
            session: session.clone(),
            home: self.home.root.clone(),
        }
    }

    /// The processes that claim a session.
    fn claimants(&self, session: &SessionId) -> Vec<&'a AgentProcess> {
        let pids = self
            .claims
            .iter()
            .filter(|claim| claim.key.session == *session);
        let pids: BTreeSet<Pid> = pids.filter_map(|claim| claim.subject.pid()).collect();
        let processes = self.processes.iter().copied();
        processes
            .filter(|its| pids.contains(&its.process.pid))
            .collect()
    }

    /// The terminals whose runs are not known.
    fn open_terminals(&self) -> Vec<&'a AgentProcess> {
        let is_known = |pid| {
            self.runs
                .as_ref()
                .is_some_and(|runs| runs.of(pid).is_some())
        };
        self.of_role(Role::Session)
            .filter(|its| !is_known(its.process.pid))
            .collect()
    }

    fn owners(&mut self, row: &Row) -> Owners {
        let open = self.open_terminals();
        let these = |its: Vec<&AgentProcess>| {
            Owners::These(its.iter().map(|its| its.process.pid).collect())
        };
        let Some(runs) = &self.runs else {
            return Owners::Any;
        };
        match runs.last_on(row.id.as_str()) {
            Some((name, _)) if runs.is_placed(name) => these(Vec::new()),
            // Whichever process that run is, it went on to another one.
            Some((_, run)) if runs.log.last_session_of(run) != Some(row.id.as_str()) => {
                these(Vec::new())
            }
            Some((_, run)) => runs.owners(run, &open).map_or(Owners::Nobody, these),
            // Whoever is known would have said so.
            None if !runs.is_empty() => {
                let fitting = open
                    .into_iter()
                    .filter(|its| is_since(its, row) && self.real_paths.are_beside(its, row));
                these(fitting.collect())
            }
            None => Owners::Any,
        }
    }

    fn sketches(&mut self) -> Vec<Sketch> {
        let rows = std::mem::take(&mut self.rows);
        let is_all = *self.look.depth == Depth::All;
        let mut sketches = BTreeMap::new();
        let mut prompts_left = PROMPTS_MAX;
        for row in rows.iter().filter(|row| row.parent.is_none()) {
            let claimants = self.claimants(&row.id);
            let owners = self.owners(row);
            let possible = self.possible(row, &owners);
            if is_all || !claimants.is_empty() || !possible.is_empty() {
                let mut sketch = self.sketch(row, &mut prompts_left);
                self.put_owners(&mut sketch, owners, &claimants, &possible);
                self.put_clients(&mut sketch, row, &claimants);
                self.put_phase(&mut sketch, row, &claimants, &possible);
                sketches.insert(row.id.clone(), sketch);
            }
        }
        // Sub-agents come and go with their parents.
        for _ in 0..GENERATIONS_MAX {
            let is_next = |row: &&Row| {
                let has_parent = row
                    .parent
                    .as_ref()
                    .is_some_and(|its| sketches.contains_key(its));
                (has_parent || (is_all && row.parent.is_some())) && !sketches.contains_key(&row.id)
            };
            let next: Vec<&Row> = rows.iter().filter(is_next).collect();
            if next.is_empty() {
                break;
            }
            for row in next {
                let sketch = self.sketch(row, &mut prompts_left);
                sketches.insert(row.id.clone(), sketch);
            }
        }
        // A session that is claimed and whose row could not be read.
        let claimed = self.claims.iter().map(|claim| &claim.key);
        let unread = claimed.filter(|key| !sketches.contains_key(&key.session));
        let unread: Vec<_> = unread.cloned().map(Sketch::new).collect();
        sketches.into_values().chain(unread).collect()
    }

    /// The terminals that a session may be paired with.
    fn possible(&mut self, row: &Row, owners: &Owners) -> Vec<&'a AgentProcess> {
        let terminals: Vec<&AgentProcess> = self.open_terminals();
        let fits = |its: &&AgentProcess| match owners {
            Owners::These(pids) => pids.contains(&its.process.pid),
            Owners::Any => is_since(its, row) && self.real_paths.are_beside(its, row),
            Owners::Nobody => false,
        };
        let mut possible: Vec<&AgentProcess> = terminals.iter().copied().filter(fits).collect();
        let named = terminals.into_iter().filter(|its| is_named(its, row));
        possible.extend(named);
        possible
    }

    fn sketch(&self, row: &Row, prompts_left: &mut usize) -> Sketch {
        let mut described = row.description();
        if described.title.is_none() && *prompts_left > 0 {
            *prompts_left -= 1;
            let database = self.databases.get(row.database);
            let prompt = database.and_then(|its| its.first_prompt(row.id.as_str()).ok()?);
            described.title = prompt.as_deref().and_then(crate::agents::title::one_line);
            described.is_title_a_prompt = described.title.is_some();
        }
        Sketch {
            parent: row.parent.clone(),
            work_dir: row.directory.clone(),
            born_at_ms: row.created_at_ms,
            last_record_at_ms: row.last_message_at_ms,
            title: row.title.clone(),
            terminal_title: row.terminal_title(),
            agent_version: row.version.clone(),
            started_at_ms: row.created_at_ms,
            described: Some(described),
            ..Sketch::new(self.key(&row.id))
        }
    }

    fn put_owners(
        &self,
        sketch: &mut Sketch,
        owners: Owners,
        claimants: &[&AgentProcess],
        possible: &[&AgentProcess],
    ) {
        sketch.pairing = match owners {
            Owners::Nobody => PairingRule::Never,
            Owners::Any | Owners::These(_) => PairingRule::Owner,
        };
        if let Owners::These(pids) = owners {
            sketch.possible_owners = Some(pids);
        }
        let serving: Vec<_> = if claimants.is_empty() {
            possible
        } else {
            claimants
        }
        .to_vec();
        let is_headless = |its: &&AgentProcess| process::is_headless(&its.program());
        if !serving.is_empty() && serving.iter().all(is_headless) {
            sketch.is_headless = Some(true);
        }
        if let [only] = serving.as_slice() {
            sketch.endpoint = process::endpoint(&only.program());
        }
    }

    /// What a server works on may be shown by the clients of that server.
    fn put_clients(&mut self, sketch: &mut Sketch, row: &Row, claimants: &[&AgentProcess]) {
        let servers: Vec<_> = claimants
            .iter()
            .filter(|its| its.role == Role::Host)
            .collect();
        if servers.is_empty() {
            return;
        }
        let clients: Vec<&AgentProcess> = self.of_role(Role::Client).collect();
        let may_show = clients.into_iter().filter(|client| {
            let program = client.program();
            let is_its = servers
                .iter()
                .any(|server| process::may_be_server_of(&server.program(), &program));
            let is_beside = process::is_client_without_directory(&program)
                || self.real_paths.are_beside(client, row);
            is_its && (is_named(client, row) || (is_beside && is_since(client, row)))
        });
        sketch.possible_owners = Some(may_show.map(|client| client.process.pid).collect());
        sketch.pairing = PairingRule::Client;
    }

    fn put_phase(
        &self,
        sketch: &mut Sketch,
        row: &Row,
        claimants: &[&AgentProcess],
        possible: &[&AgentProcess],
    ) {
        let serving = || claimants.iter().chain(possible);
        let began = serving()
            .filter_map(|its| its.process.began_at_ms.clone().ok())
            .min();
        let Some(database) = self.databases.get(row.database).filter(|_| began.is_some()) else {
            return;
        };
        let asked = serving()
            .filter_map(|its| self.runs.as_ref()?.of(its.process.pid)?.1.asked_at_ms)
            .max();
        if let (Ok(turn), Some(described)) = (database.turn(row.id.as_str()), &mut sketch.described)
        {
            let (phase, waiting_for) = turn.phase(began, asked);
            described.phase = Some(phase);
            described.waiting_for = waiting_for;
        }
    }
}

/// A claim that names a process and nothing else.
fn bare_claim(
    key: SessionKey,
    process: &AgentProcess,
    (kind, says): (EvidenceKind, String),
) -> Claim {
    Claim {
        key,
        subject: Subject::Process(process.process.pid),
        scope: ClaimedScope::default(),
        stamp: None,
        dated_at_ms: None,
        modified_at_ms: None,
        executable: None,
        work_dir: None,
        exclusivity: Exclusivity::Shared,
        serving: match process.role {
            Role::Host => Serving::Many,
            _ => Serving::One,
        },
        trust: Trust::Trusted,
        placement: Placement::Local,
        evidence: Evidence {
            kind,
            path: None,
            says,
        },
    }
}
