//! Reads one folder: the sessions of one directory.

use std::collections::HashSet;
use std::ffi::OsString;

use whosup_process::{Pid, Process};

use super::super::history::History;
use super::super::untouched::Untouched;
use super::super::wire::Dates;
use super::directory::SessionDir;
use super::{ReadSidecar, Reading, fits};
use crate::adapter::claim::{Placement, Trust};
use crate::adapter::{AgentProcess, Clue, ClueKind};
use crate::sources::agents::kit::sidecar_facts;

/// A folder, and its sessions with sidecars that have been read.
pub(super) struct Folder<'a, 'f> {
    name: &'f str,
    /// The processes that may serve a session of it.
    seekers: &'f [&'a AgentProcess],
    sessions: Vec<Claimed>,
    /// The names of the other sessions, and which of these need not be read.
    left: Option<(Vec<OsString>, Untouched<'a>)>,
}

/// A session, and what its sidecar shows, if it has one.
struct Claimed {
    session: SessionDir,
    sidecar: Option<ReadSidecar>,
}

impl<'a> Reading<'a> {
    /// Reads the sidecars of all sessions of a folder.
    pub(super) fn read_folder<'f>(
        &mut self,
        name: &'f str,
        seekers: &'f [&'a AgentProcess],
    ) -> Folder<'a, 'f> {
        let sessions = self.sessions_in(name);
        Folder {
            name,
            seekers,
            sessions: self.claimed(sessions),
            left: None,
        }
    }

    /// Reads only the sessions that the log or arguments name.
    pub(super) fn read_named<'f>(
        &mut self,
        name: &'f str,
        seekers: &'f [&'a AgentProcess],
    ) -> Folder<'a, 'f> {
        let log = self.log().unwrap_or_default();
        // Those too that may have been started for this directory from others.
        let all: Vec<&AgentProcess> = self.scan.processes().collect();
        let untouched = Untouched::new(&self.sessions().join(name), &all, &log.events);
        let Some(untouched) = untouched else {
            return self.read_folder(name, seekers);
        };
        let is_named = |name: &OsString| name.to_str().is_none_or(|id| untouched.is_named(id));
        let names = self.names_in(name).into_iter();
        let (named, left): (Vec<_>, Vec<_>) = names.partition(is_named);
        let sessions = self.sessions_named(name, &named);
        Folder {
            name,
            seekers,
            sessions: self.claimed(sessions),
            left: Some((left, untouched)),
        }
    }

    /// Reads the sidecars of the other sessions too, except for untouched sessions.
    pub(super) fn read_touched(&mut self, folder: &mut Folder<'_, '_>) {
        let Some((mut names, untouched)) = folder.left.take() else {
            return;
        };
        names.retain(|name| name.to_str().is_none_or(|id| !untouched.has(id)));
        let sessions = self.sessions_named(folder.name, &names);
        folder.sessions.extend(self.claimed(sessions));
        folder
            .sessions
            .sort_by(|one, other| one.session.id.cmp(&other.session.id));
    }

    fn claimed(&mut self, sessions: Vec<SessionDir>) -> Vec<Claimed> {
        let sessions = sessions.into_iter();
        let claimed = sessions.map(|session| Claimed {
            sidecar: self.read_sidecar(&session, None),
            session,
        });
        claimed.collect()
    }

    /// Sidecars that were read name every process of the home, and the log, which lacks
    /// nothing, records that session.
    ///
    /// Then no other session can belong to these processes, whatever was written to it. A
    /// process that moves to another session logs the resume. It also removes the sidecar of
    /// the previous session, and then writes the sidecar of the new one (kimi-cli#2082).
    pub(super) fn are_all_accounted_for(&mut self) -> bool {
        let Some(log) = self.log().filter(|log| !log.has_hole) else {
            return false;
        };
        let sessions = log.events.iter().map(|event| event.session.as_str());
        let in_log: HashSet<&str> = sessions.collect();
        let is_host_known = self.scan.look.machine.table().scope().host.is_ok();
        let is_accounted_for = |process: &Process| {
            self.scan.claims_of(process).any(|claim| {
                claim.trust == Trust::Trusted
                    && claim.placement != Placement::SharedByMachines
                    && claim.scope.host.is_some()
                    && in_log.contains(claim.key.session.as_str())
            })
        };
        let mut seekers = self.scan.seekers();
        seekers.all(|seeker| is_host_known && is_accounted_for(&seeker.process))
    }

    /// Dates the sessions of a folder and adds clues about their owners. Returns the
    /// processes of the folder that no sidecar names.
    pub(super) fn date_folder(&mut self, folder: Folder<'a, '_>) -> Vec<&'a AgentProcess> {
        let Folder {
            name,
            seekers,
            sessions,
            ..
        } = folder;
        if seekers.is_empty() {
            for Claimed { session, sidecar } in sessions {
                let named = self.running(sidecar.as_ref());
                let sketch = self.sketch(name, &session, sidecar, session.dates());
                self.sketches.add(sketch, named);
            }
            return Vec::new();
        }
        let mut dated = Vec::with_capacity(sessions.len());
        let mut born = Vec::with_capacity(sessions.len());
        for claimed in sessions {
            let dates = self.read_dates(&claimed.session);
            let born_at_ms = self.unless_ahead(dates.born_at_ms);
            born.push((claimed.session.id.clone(), born_at_ms));
            dated.push((claimed, dates));
        }
        let log = self.log().unwrap_or_default();
        let began = self.scan.seekers();
        let began = began.filter_map(|seeker| seeker.process.began_ms());
        let history = History::new(log, born, began.collect());
        for (claimed, dates) in dated {
            self.sketch_sought(name, seekers, claimed, dates, &history);
        }
        let is_named =
            |seeker: &AgentProcess| self.scan.claims_of(&seeker.process).next().is_some();
        let seekers = seekers.iter().copied();
        seekers.filter(|seeker| !is_named(seeker)).collect()
    }

    /// Sketches a session if all are wanted, if it has a sidecar, or if one of `seekers` may
    /// have it.
    fn sketch_sought(
        &mut self,
        folder: &str,
        seekers: &[&AgentProcess],
        Claimed { session, sidecar }: Claimed,
        dates: Dates,
        history: &History,
    ) {
        let dates = history.corrected(&session.id, dates);
        let of_its_time: Vec<&AgentProcess> = seekers
            .iter()
            .copied()
            .filter(|seeker| fits(seeker, &session.id, dates))
            .collect();
        let events = history.events_of(&session.id);
        let is_doubtful = history.has_hole || history.is_unlogged(&session.id, dates.born_at_ms);
        let is_excluded = |process: &&&AgentProcess| {
            let began = process.process.began_ms();
            !is_doubtful && history.has_launch_of(began) && events.exclude(began)
        };
        let possible = of_its_time.iter().filter(|seeker| !is_excluded(seeker));
        let mut open_to: Vec<Pid> = possible.map(|process| process.process.pid).collect();
        let is_possible = !open_to.is_empty();
        let excluded: Vec<Pid> = seekers
            .iter()
            .filter(is_excluded)
            .map(|seeker| seeker.process.pid)
            .collect();
        let is_wanted = self.scan.look.depth.is_walk() || sidecar.is_some();
        // Another source may report the session.
        if !is_wanted && !is_possible && excluded.is_empty() {
            return;
        }
        open_to.extend(self.running(sidecar.as_ref()));
        let mut sketch = self.sketch(folder, &session, sidecar, dates);
        sketch.matters_only_if_shown = !is_wanted && !is_possible;
        // It ends with its terminal, so a process that has none is a run.
        let is_run = |process: &&AgentProcess| process.process.tty.is_none();
        if is_possible && of_its_time.iter().all(is_run) {
            sketch.is_headless = Some(true);
        }
        sketch.clues.extend(excluded.into_iter().map(|pid| {
            let says =
                format!("by the log another process than {pid} made it, and none took it up");
            Clue::new(pid, ClueKind::Excludes, says)
        }));
        if is_doubtful {
            let gaps = of_its_time.iter().map(|process| process.process.pid);
            let says = "the log lacks a part that may be about it";
            sketch.clues.extend(gaps.map(|pid| Clue::gap(pid, says)));
        }
        sketch.launched_at_ms = events.launches_ms;
        sketch.switched = events.switched;
        // The log begins later than it.
        if history.is_origin_unknown(&session.id, dates.born_at_ms) {
            sketch.launched_at_ms.extend(dates.born_at_ms);
        }
        self.sketches.add(sketch, open_to);
    }

    /// The process that a sidecar names, if a process of this home has that PID.
    fn running(&self, sidecar: Option<&ReadSidecar>) -> Option<Pid> {
        let named = sidecar_facts::pid(&sidecar?.0)?;
        let mut pids = self.scan.processes().map(|process| process.process.pid);
        pids.find(|pid| *pid == named)
    }
}
