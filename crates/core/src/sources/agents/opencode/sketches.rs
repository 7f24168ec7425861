//! What is known of sessions, and which processes may be serving them.

use std::collections::{BTreeMap, BTreeSet};

use whosup_process::Pid;
use whosup_sidecar::SessionId;

use super::fit::{is_named, is_since};
use super::scan::Scanning;
use super::session::{Row, Turn};
use super::{process, tokens};
use crate::adapter::phase::Phase;
use crate::adapter::{AgentProcess, Clue, ClueKind, Role, Sketch, Unclaimed};
use crate::sources::agents::kit::title::one_line;

/// How many sessions without a title get their first prompt for one.
const PROMPTS_MAX: usize = 10_000;
/// Of how many sessions without a process the last counts are read.
const COUNTED_MAX: usize = 1_000;
/// How many of the last messages are read for the context and the turn.
const LAST_MESSAGES: usize = 200;
/// How many generations of sub-agents are followed.
const GENERATIONS_MAX: usize = 16;

/// For how many more sessions something is read.
struct Left {
    prompts: usize,
    counted: usize,
}

impl<'a> Scanning<'a> {
    /// The processes that claim a session.
    fn claimants(&self, session: &SessionId) -> Vec<&'a AgentProcess> {
        let claims = self.scan.claims.iter();
        let claims = claims.filter(|claim| claim.key.session == *session);
        let pids: BTreeSet<Pid> = claims.filter_map(|claim| claim.subject.pid()).collect();
        let mut claimants: Vec<&AgentProcess> = self.processes().collect();
        claimants.retain(|its| pids.contains(&its.process.pid));
        claimants
    }

    /// The processes that may be serving a session, beside those that claim it, by the log;
    /// `None` if the log does not show it: then whoever fits by directory and dates.
    fn owners(&self, row: &Row) -> Option<BTreeSet<Pid>> {
        let mut owners = self.owners_by_log(row)?;
        owners.extend(self.gaps(&row.id).iter().map(|gap| gap.pid));
        if self.is_untold(row) {
            owners.extend(self.open_beside(row));
        }
        Some(owners)
    }

    /// The terminals whose runs are not known and that fit by directory and dates.
    fn open_beside(&self, row: &Row) -> BTreeSet<Pid> {
        let terminals = self.scan.of_role(Role::Session);
        let fitting = terminals.filter(|its| !self.is_known(its) && self.was_used_beside(its, row));
        fitting.map(|its| its.process.pid).collect()
    }

    fn owners_by_log(&self, row: &Row) -> Option<BTreeSet<Pid>> {
        let runs = self.runs.as_ref()?;
        let id = row.id.as_str();
        match runs.last_on(id) {
            Some((name, _)) if runs.process_of(name).is_some() => Some(BTreeSet::new()),
            // Whichever process that run is, it went on to another one.
            Some((_, run)) if runs.log.last_session_of(run) != Some(id) => Some(BTreeSet::new()),
            Some((name, _)) => Some(runs.owners(name)),
            // Whoever is known would have said so.
            None if !runs.is_empty() => Some(self.open_beside(row)),
            None => None,
        }
    }

    pub(super) fn sketches(&mut self) -> Vec<Sketch> {
        let is_all = self.scan.look.depth.is_walk();
        let mut sketches = BTreeMap::new();
        // Sessions that a process may be serving, and their sub-agents.
        let mut open = BTreeSet::new();
        let mut ended = Vec::new();
        let mut left = Left {
            prompts: PROMPTS_MAX,
            counted: COUNTED_MAX,
        };
        for row in self.rows.iter().filter(|row| row.parent.is_none()) {
            let claimants = self.claimants(&row.id);
            let owners = self.owners(row);
            let possible = self.possible(row, owners.as_ref());
            let is_open = !claimants.is_empty() || !possible.is_empty();
            if is_open {
                open.insert(&row.id);
            }
            let may_be_shown = !is_open && row.title.is_some() && self.may_be_shown(row);
            if is_all || is_open || may_be_shown {
                let mut sketch = self.sketch(row, is_open, &mut left);
                sketch.matters_only_if_shown = !is_all && !is_open;
                self.put_owners(&mut sketch, owners, &claimants, &possible);
                sketch.clues.extend(self.gaps(&row.id));
                self.put_clients(&mut sketch, row, &claimants);
                self.put_phase(&mut sketch, row, &claimants, &possible);
                sketches.insert(row.id.clone(), sketch);
            }
        }
        // Sub-agents come and go with their parents.
        for _ in 0..GENERATIONS_MAX {
            let is_next = |row: &&Row| {
                let parent = row.parent.as_ref();
                parent.is_some_and(|its| is_all || sketches.contains_key(its))
                    && !sketches.contains_key(&row.id)
            };
            let next: Vec<&Row> = self.rows.iter().filter(is_next).collect();
            if next.is_empty() {
                break;
            }
            for row in next {
                sketches.insert(row.id.clone(), self.sketch(row, false, &mut left));
                if row.parent.as_ref().is_some_and(|its| open.contains(its)) {
                    open.insert(&row.id);
                    ended.extend(self.claim_of_ended(row));
                }
            }
        }
        self.scan.claims.extend(ended.into_iter().map(Box::new));
        // A session that is claimed and whose row could not be read.
        let claimed = self.scan.claims.iter().map(|claim| &claim.key);
        let unread = claimed.filter(|key| !sketches.contains_key(&key.session));
        let unread: Vec<_> = unread.cloned().map(Sketch::new).collect();
        sketches.into_values().chain(unread).collect()
    }

    /// A person may have chosen it from the list in a terminal of its directory: that
    /// leaves no trace but the title there.
    fn may_be_shown(&self, row: &Row) -> bool {
        let mut terminals = self.scan.of_role(Role::Session);
        terminals.any(|its| its.process.tty.is_some() && self.real_paths.are_beside(its, row))
    }

    /// The terminals that may serve a session.
    fn possible(&self, row: &Row, owners: Option<&BTreeSet<Pid>>) -> Vec<&'a AgentProcess> {
        let terminals = || {
            let terminals = self.scan.of_role(Role::Session);
            terminals.filter(|its| !self.is_known(its) || self.strayed.has(its.process.pid))
        };
        let fitting = terminals().filter(|its| match owners {
            Some(pids) => pids.contains(&its.process.pid),
            None => self.was_used_beside(its, row),
        });
        let named = terminals().filter(|its| is_named(its, row));
        fitting.chain(named).collect()
    }

    fn sketch(&self, row: &Row, is_open: bool, left: &mut Left) -> Sketch {
        let mut described = row.description();
        let database = self.databases.get(row.database);
        let database = database.map(|(_, database)| database);
        if described.title.is_none() && left.prompts > 0 {
            left.prompts -= 1;
            let prompt = database.and_then(|its| its.first_prompt(row.id.as_str()).ok()?);
            described.title = prompt.as_deref().and_then(one_line);
            described.is_title_a_prompt = described.title.is_some();
        }
        if let Some(database) = database.filter(|_| is_open || left.counted > 0) {
            left.counted = left.counted.saturating_sub(1);
            // The scan has reported a database that can't be read.
            let records = database.records(row.id.as_str(), Some(LAST_MESSAGES));
            let last = tokens::DIALECT.tail_of(&records.unwrap_or_default());
            described.context = last.context;
            described.turn = last.turn;
        }
        Sketch {
            parent: row.parent.clone(),
            work_dir: row.directory.clone(),
            born_at_ms: row.created_at_ms,
            last_record_at_ms: row.last_message_at_ms,
            title: row.title.clone(),
            terminal_title: row.terminal_title(self.agent),
            agent_version: row.version.clone(),
            started_at_ms: row.created_at_ms,
            described: Some(Box::new(described)),
            ..Sketch::new(self.scan.key(&row.id))
        }
    }

    fn put_owners(
        &self,
        sketch: &mut Sketch,
        owners: Option<BTreeSet<Pid>>,
        claimants: &[&AgentProcess],
        possible: &[&AgentProcess],
    ) {
        sketch.unclaimed = Unclaimed::Owner;
        if let Some(pids) = owners {
            let others = self.scan.of_role(Role::Session);
            let is_served = claimants.iter().any(|its| its.role == Role::Host);
            // It may show what a server of the home works on.
            let is_client = |its: &AgentProcess| {
                self.agent.terminals_join_server && is_served && !self.is_known(its)
            };
            let others = others.filter(|its| !pids.contains(&its.process.pid) && !is_client(its));
            sketch.clues.extend(others.map(|its| {
                let says = "by the log another process worked on it";
                Clue::new(its.process.pid, ClueKind::Untouched, says)
            }));
        }
        let serving = match claimants.is_empty() {
            true => possible,
            false => claimants,
        };
        let programs = self.agent.profile.programs;
        let is_headless = |its: &&AgentProcess| programs.is_headless(&its.program());
        if !serving.is_empty() && serving.iter().all(is_headless) {
            sketch.is_headless = Some(true);
        }
        if let [only] = serving {
            sketch.endpoint = process::endpoint(&only.program());
        }
    }

    /// What a server works on may be shown by the clients of that server.
    fn put_clients(&self, sketch: &mut Sketch, row: &Row, claimants: &[&AgentProcess]) {
        let mut servers = claimants.to_vec();
        servers.retain(|its| its.role == Role::Host);
        if servers.is_empty() {
            return;
        }
        let programs = self.agent.profile.programs;
        let may_show = self.scan.of_role(Role::Client).filter(|client| {
            let program = client.program();
            let mut servers = servers.iter().map(|server| server.program());
            let is_its =
                servers.any(|server| process::may_be_server_of(programs, &server, &program));
            let is_beside = process::is_client_without_directory(programs, &program)
                || self.real_paths.are_beside(client, row);
            is_its && (is_named(client, row) || (is_beside && is_since(client, row)))
        });
        let says = "it is connected to the server";
        let clues = may_show.map(|client| Clue::new(client.process.pid, ClueKind::Touched, says));
        sketch.clues.extend(clues);
        sketch.unclaimed = Unclaimed::Client;
    }

    fn put_phase(
        &self,
        sketch: &mut Sketch,
        row: &Row,
        claimants: &[&AgentProcess],
        possible: &[&AgentProcess],
    ) {
        let serving = || claimants.iter().chain(possible);
        let began = serving().filter_map(|its| its.process.began_ms());
        let began = began.min();
        let database = self.databases.get(row.database);
        let Some((_, database)) = database.filter(|_| began.is_some()) else {
            return;
        };
        let asked = serving().filter_map(|its| self.run_of(its)?.asked_at_ms);
        let asked = asked.max();
        if let Some(described) = &mut sketch.described
            && let Ok(turn) = database.turn(row.id.as_str())
        {
            let turn = turn.unwrap_or(Turn::Ended);
            let (phase, waiting_for) = turn.phase(began, asked);
            described.phase = Some(phase);
            described.waiting_for = waiting_for;
            described.phase_at_ms = match &turn {
                Turn::Ended => row.last_message_at_ms.max(row.updated_at_ms),
                Turn::GoesOn { since_ms, tool } => {
                    let called_at_ms = tool.as_ref().map(|tool| tool.called_at_ms);
                    let asked = asked.filter(|_| phase == Phase::Waiting);
                    called_at_ms.max(Some(*since_ms)).max(asked)
                }
            };
        }
    }
}
