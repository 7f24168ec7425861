//! Judges what was found: each home's settled sessions at once, and the rest together at the
//! end.

use std::cell::LazyCell;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use whosup_process::Pid;
use whosup_sidecar::{AgentId, SessionId};

use super::batches::Batches;
use super::may_be_in_a_pane;
use crate::adapter::claim::{Placement, SessionKey};
use crate::adapter::{Adapter, AgentProcess, AgentScan, Home, Sketch};
use crate::judging::attribution::Places;
use crate::judging::observe::{JudgedClaim, Probes, judge_all, judge_unserved};
use crate::judging::unseen::who_may_use;
use crate::judging::verdict::is_initial;
use crate::machine::Machine;
use crate::sessions::merge::{Parts, Surroundings, settle};
use crate::sessions::session::Session;
use crate::sources::agents::AGENTS;
use crate::sources::panes::Panes;
use crate::sources::recognize::PossibleProcess;

/// The surroundings of the homes.
pub(super) fn surroundings<'a>(
    machine: &'a Machine,
    asked: &'a [(&'static dyn Adapter, Home)],
    (processes, possible): (&'a [AgentProcess], &'a [PossibleProcess]),
    other_sources: [&AgentScan; 2],
    named_by_others: HashMap<(AgentId, SessionId), Pid>,
) -> Surroundings<'a> {
    let roots_of = move |is_wanted: &dyn Fn(&Home) -> bool| {
        let homes = asked.iter().map(|(_, home)| home);
        let homes = homes.filter(|home| is_wanted(home));
        homes
            .map(|home| home.root.to_path_buf())
            .collect::<HashSet<_>>()
    };
    let keys = other_sources.iter().flat_map(|source| source.keys());
    let names = keys.map(|key| (key.agent.clone(), key.session.clone()));
    let names = names.chain(named_by_others.keys().cloned());
    let sketches = other_sources.iter().flat_map(|source| &source.sketches);
    let parents = sketches.filter_map(|sketch| {
        let parent = sketch.parent.clone()?;
        Some((sketch.key.agent.clone(), parent))
    });
    let mut around = Surroundings::of(processes, possible);
    around.default_homes = roots_of(&|home| home.is_default);
    around.homes_there = roots_of(&|home| home.owner_uid.is_some());
    let find = move || roots_of(&|home| is_fully_seen(machine, home));
    around.fully_seen_homes = LazyCell::new(Box::new(find));
    around.unseen = who_may_use(machine, asked, processes);
    around.adapters = AGENTS;
    around.known_elsewhere = names.chain(parents).collect();
    around.named_by_others = named_by_others;
    around
}

/// Judges, and collects what is needed for it.
pub(super) struct Settling<'a, 's> {
    machine: &'a Machine,
    around: &'a Surroundings<'s>,
    /// Where sessions and processes work.
    places: Places,
    probes: Probes,
    /// Claims of sessions that are not settled, which nothing found later can change.
    judged: Vec<JudgedClaim>,
}

impl<'a, 's> Settling<'a, 's> {
    pub(super) fn new(
        machine: &'a Machine,
        around: &'a Surroundings<'s>,
        (processes, possible): (&[AgentProcess], &[PossibleProcess]),
    ) -> Self {
        let mut places = Places::default();
        places.find_processes(machine.mounts(), &processes.iter().collect::<Vec<_>>());
        for its in possible {
            places.find_details(machine.mounts(), &its.process, &its.details);
        }
        Self {
            machine,
            around,
            places,
            probes: Probes::beside(processes),
            judged: Vec::new(),
        }
    }

    /// The sessions whose claims were judged and that are not settled.
    pub(super) fn judged_keys(&self) -> impl Iterator<Item = &SessionKey> {
        self.judged.iter().map(|judged| &judged.claim.key)
    }

    /// Passes on the settled sessions of one home, and returns what is not judged yet of the
    /// rest.
    pub(super) fn settle(
        &mut self,
        agent: &AgentId,
        found: AgentScan,
        settled: &mut dyn FnMut(Session),
    ) -> AgentScan {
        if self.around.has_process_of(agent) {
            self.find_places(&found.sketches);
        }
        let mut rest = AgentScan::default();
        for mut batch in Batches::of(found) {
            let places = &self.places;
            let judged = judge_unserved(self.machine, &mut batch.claims, places, &mut self.probes);
            let named = batch.claims.iter().map(|claim| claim.key.clone()).collect();
            let found = (batch.sketches, judged);
            let (sketches, judged) = settle(found, &named, self.around, places, settled);
            self.judged.extend(judged);
            rest.sketches.extend(sketches);
            rest.claims.extend(batch.claims);
        }
        rest
    }

    /// Judges the rest of all sources, and returns what is merged.
    pub(super) fn judge(
        mut self,
        found: AgentScan,
        homes_besides: &[Home],
        (processes, possible): (&[AgentProcess], &[PossibleProcess]),
        panes: &Panes,
    ) -> Parts {
        let AgentScan { claims, sketches } = found;
        if !processes.is_empty() || !possible.is_empty() {
            self.find_places(&sketches);
        }
        let terminal_titles = processes
            .iter()
            .filter(|process| may_be_in_a_pane(process))
            .filter_map(|process| {
                let pane = panes.of(&process.process, self.machine.table())?;
                let name = process.adapter.name_in_title(&pane.title);
                Some((process.process.pid, name.to_owned()))
            })
            .collect();
        let roots_of = |known: &HashSet<PathBuf>, is_wanted: &dyn Fn(&Home) -> bool| {
            let besides = homes_besides.iter().filter(|home| is_wanted(home));
            let besides = besides.map(|home| home.root.to_path_buf());
            known.iter().cloned().chain(besides).collect()
        };
        let around = self.around;
        // Without sessions it makes no difference which homes are fully visible.
        let mut judged = std::mem::take(&mut self.judged);
        judged.extend(judge_all(
            self.machine,
            claims,
            &self.places,
            &mut self.probes,
        ));
        let fully_seen_homes = if judged.is_empty() && sketches.is_empty() {
            HashSet::new()
        } else {
            roots_of(&around.fully_seen_homes, &|home| {
                is_fully_seen(self.machine, home)
            })
        };
        Parts {
            claims: judged,
            sketches,
            processes: processes.to_vec(),
            terminal_titles,
            default_homes: roots_of(&around.default_homes, &|home| home.is_default),
            homes_there: around.homes_there.clone(),
            fully_seen_homes,
            unseen: around.unseen.clone(),
            named_by_others: around.named_by_others.clone(),
            places: self.places,
            possible: possible.to_vec(),
            now_ms: self.machine.now_ms(),
            adapters: around.adapters,
        }
    }

    fn find_places(&mut self, sketches: &[Box<Sketch>]) {
        let directories = sketches.iter().filter_map(|one| one.work_dir.as_deref());
        for directory in directories {
            self.places.find(self.machine.mounts(), directory);
        }
    }
}

/// Every process that could serve a session of this home is visible from here.
fn is_fully_seen(machine: &Machine, home: &Home) -> bool {
    let view = machine.table().view();
    let placement = machine.mounts().placement_of(&home.root);
    machine.table().processes().is_ok()
        && matches!(view.is_everything_shown, Ok(true))
        && match placement {
            Placement::SharedByMachines => false,
            Placement::ThisContainer => true,
            Placement::Local => is_initial(&view.is_initial_pid_namespace),
        }
}
