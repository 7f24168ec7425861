//! What is known of sessions, and which processes may be serving them.

use std::collections::{BTreeMap, BTreeSet};

use whosup_process::Pid;
use whosup_sidecar::SessionId;

use super::fit::{is_named, is_since};
use super::process;
use super::scan::Scanning;
use super::session::{Row, Turn};
use super::tokens;
use crate::adapter::phase::Phase;
use crate::adapter::{AgentProcess, Clue, ClueKind, Role, Sketch, Unclaimed};

/// How many sessions without a title get their first prompt for one.
const PROMPTS_MAX: usize = 10_000;
/// Of how many sessions without a process the last counts are read.
const COUNTED_MAX: usize = 1_000;
/// How many of the last messages are read for the context and the turn.
const LAST_MESSAGES: usize = 200;
/// How many generations of sub-agents are followed.
const GENERATIONS_MAX: usize = 16;

/// Which processes may be serving a session, beside those that claim it.
enum Owners {
    /// Whoever fits by directory and dates.
    Any,
    /// These, as the log tells.
    These(BTreeSet<Pid>),
}

impl<'a> Scanning<'a> {
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
        self.of_role(Role::Session)
            .filter(|its| !self.is_known(its))
            .collect()
    }

    fn owners(&mut self, row: &Row) -> Owners {
        let mut strayed = self.strayed_about(&row.id);
        let told = self.owners_by_log(row);
        let is_untold = self.is_untold(row);
        if strayed.is_empty() && !is_untold {
            return told;
        }
        match told {
            Owners::Any => return Owners::Any,
            Owners::These(pids) => strayed.extend(pids),
        }
        if is_untold {
            strayed.extend(self.open_beside(row).iter().map(|its| its.process.pid));
        }
        Owners::These(strayed)
    }

    /// The terminals whose runs are not known and that fit by directory and dates.
    fn open_beside(&mut self, row: &Row) -> Vec<&'a AgentProcess> {
        let mut fitting = self.open_terminals();
        fitting.retain(|its| is_since(its, row) && self.real_paths.are_beside(its, row));
        fitting
    }

    fn owners_by_log(&mut self, row: &Row) -> Owners {
        let these = |its: Vec<&AgentProcess>| {
            Owners::These(its.iter().map(|its| its.process.pid).collect())
        };
        let Some(runs) = &self.runs else {
            return Owners::Any;
        };
        match runs.last_on(row.id.as_str()) {
            Some((name, _)) if runs.process_of(name).is_some() => these(Vec::new()),
            // Whichever process that run is, it went on to another one.
            Some((_, run)) if runs.log.last_session_of(run) != Some(row.id.as_str()) => {
                these(Vec::new())
            }
            Some((name, _)) => Owners::These(runs.owners(name)),
            // Whoever is known would have said so.
            None if !runs.is_empty() => these(self.open_beside(row)),
            None => Owners::Any,
        }
    }

    pub(super) fn sketches(&mut self) -> Vec<Sketch> {
        let rows = std::mem::take(&mut self.rows);
        let is_all = self.look.depth.is_walk();
        let mut sketches = BTreeMap::new();
        // Sessions that a process may be serving, and their sub-agents.
        let mut open = BTreeSet::new();
        let mut prompts_left = PROMPTS_MAX;
        let mut counted_left = COUNTED_MAX;
        for row in rows.iter().filter(|row| row.parent.is_none()) {
            let claimants = self.claimants(&row.id);
            let owners = self.owners(row);
            let possible = self.possible(row, &owners);
            let is_open = !claimants.is_empty() || !possible.is_empty();
            if is_open {
                open.insert(&row.id);
            }
            let may_be_shown = !is_open && row.title.is_some() && self.may_be_shown(row);
            if is_all || is_open || may_be_shown {
                let mut sketch = self.sketch(row, &mut prompts_left);
                sketch.matters_only_if_shown = !is_all && !is_open;
                self.put_owners(&mut sketch, owners, &claimants, &possible);
                let strayed = self.strayed_about(&row.id);
                let says = "the log lacks a part in which it may have gone on";
                sketch
                    .clues
                    .extend(strayed.iter().map(|pid| Clue::gap(*pid, says)));
                self.put_clients(&mut sketch, row, &claimants);
                self.put_phase(&mut sketch, row, &claimants, &possible);
                if is_open || counted_left > 0 {
                    counted_left = counted_left.saturating_sub(1);
                    self.put_tokens(&mut sketch, row);
                }
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
                let mut sketch = self.sketch(row, &mut prompts_left);
                if counted_left > 0 {
                    counted_left -= 1;
                    self.put_tokens(&mut sketch, row);
                }
                sketches.insert(row.id.clone(), sketch);
                if row.parent.as_ref().is_some_and(|its| open.contains(its)) {
                    open.insert(&row.id);
                    let ended = self.claim_of_ended(row);
                    self.claims.extend(ended);
                }
            }
        }
        // A session that is claimed and whose row could not be read.
        let claimed = self.claims.iter().map(|claim| &claim.key);
        let unread = claimed.filter(|key| !sketches.contains_key(&key.session));
        let unread: Vec<_> = unread.cloned().map(Sketch::new).collect();
        sketches.into_values().chain(unread).collect()
    }

    /// A person may have chosen it from the list in a terminal of its directory: that
    /// leaves no trace but the title there.
    fn may_be_shown(&self, row: &Row) -> bool {
        let mut terminals = self.of_role(Role::Session);
        terminals.any(|its| its.process.tty.is_some() && self.real_paths.are_beside(its, row))
    }

    /// The terminals that may serve a session.
    fn possible(&mut self, row: &Row, owners: &Owners) -> Vec<&'a AgentProcess> {
        let terminals: Vec<&AgentProcess> = self
            .of_role(Role::Session)
            .filter(|its| !self.is_known(its) || self.has_strayed(its))
            .collect();
        let fits = |its: &&AgentProcess| match owners {
            Owners::These(pids) => pids.contains(&its.process.pid),
            Owners::Any => is_since(its, row) && self.real_paths.are_beside(its, row),
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
            let prompt = database.and_then(|(_, its)| its.first_prompt(row.id.as_str()).ok()?);
            described.title = prompt
                .as_deref()
                .and_then(crate::sources::agents::kit::title::one_line);
            described.is_title_a_prompt = described.title.is_some();
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
        sketch.unclaimed = Unclaimed::Owner;
        if let Owners::These(pids) = owners {
            let others = self.of_role(Role::Session);
            let is_served = claimants.iter().any(|its| its.role == Role::Host);
            // It may show what a server of the home works on.
            let is_client = |its: &AgentProcess| {
                self.agent.terminals_join_server && is_served && !self.is_known(its)
            };
            let others = others.filter(|its| !pids.contains(&its.process.pid) && !is_client(its));
            sketch.clues.extend(others.map(|its| {
                Clue::untouched(its.process.pid, "by the log another process worked on it")
            }));
        }
        let serving: Vec<_> = if claimants.is_empty() {
            possible
        } else {
            claimants
        }
        .to_vec();
        let is_headless =
            |its: &&AgentProcess| self.agent.profile.programs.is_headless(&its.program());
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
        let programs = self.agent.profile.programs;
        let may_show = clients.into_iter().filter(|client| {
            let program = client.program();
            let is_its = servers
                .iter()
                .any(|server| process::may_be_server_of(programs, &server.program(), &program));
            let is_beside = process::is_client_without_directory(programs, &program)
                || self.real_paths.are_beside(client, row);
            is_its && (is_named(client, row) || (is_beside && is_since(client, row)))
        });
        sketch.clues.extend(may_show.map(|client| Clue {
            pid: client.process.pid,
            kind: ClueKind::Touched,
            says: "it is connected to the server".to_owned(),
        }));
        sketch.unclaimed = Unclaimed::Client;
    }

    /// Adds the context and the turn, by the last messages.
    fn put_tokens(&self, sketch: &mut Sketch, row: &Row) {
        let Some((_, database)) = self.databases.get(row.database) else {
            return;
        };
        // That the messages can't be read, the scan has told.
        let records = database.records(row.id.as_str(), Some(LAST_MESSAGES));
        let last = tokens::DIALECT.tail_of(&records.unwrap_or_default());
        if let Some(described) = &mut sketch.described {
            described.context = last.context;
            described.turn = last.turn;
        }
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
        let database = self.databases.get(row.database);
        let Some((_, database)) = database.filter(|_| began.is_some()) else {
            return;
        };
        let asked = serving()
            .filter_map(|its| self.runs.as_ref()?.of(its.process.pid)?.1.asked_at_ms)
            .max();
        if let (Ok(turn), Some(described)) = (database.turn(row.id.as_str()), &mut sketch.described)
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
