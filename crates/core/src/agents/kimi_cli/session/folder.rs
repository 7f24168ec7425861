//! Reads one folder: the sessions of one directory.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsString;

use whosup_process::{Pid, Process};
use whosup_sidecar::SessionId;

use super::super::history::{History, Makers};
use super::super::untouched::Untouched;
use super::directory::{Dates, SessionDir};
use super::{Keep, Reading, fits};
use crate::agents::terminal_use::{was_begun_elsewhere, was_hardly_begun_here};
use crate::agents::{AgentProcess, PairingRule, Role};
use crate::claim::{Placement, Trust};

/// A folder, and those of its sessions whose sidecars have been read.
pub(super) struct Folder<'a, 'f> {
    name: &'f str,
    /// The processes that may serve a session of it.
    seekers: &'f [&'a AgentProcess],
    sessions: Vec<Claimed>,
    /// The names of the other ones, and which of these need not be read.
    left: Option<(Vec<OsString>, Untouched<'a>)>,
}

/// A session, and the process that its sidecar names.
struct Claimed {
    session: SessionDir,
    by: Option<Pid>,
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

    /// The same, of those that the log or arguments tell of.
    pub(super) fn read_told_of<'f>(
        &mut self,
        name: &'f str,
        seekers: &'f [&'a AgentProcess],
    ) -> Folder<'a, 'f> {
        let log = self.log().unwrap_or_default();
        // Those too that may have been started for this directory from others.
        let all: Vec<&AgentProcess> = self.look.processes_of(self.home).collect();
        let untouched = Untouched::new(&self.sessions().join(name), &all, &log.events);
        let Some(untouched) = untouched else {
            return self.read_folder(name, seekers);
        };
        let is_told_of = |name: &OsString| name.to_str().is_none_or(|id| untouched.is_told_of(id));
        let names = self.names_in(name).into_iter();
        let (told_of, left): (Vec<_>, Vec<_>) = names.partition(is_told_of);
        let sessions = self.sessions_named(name, &told_of);
        Folder {
            name,
            seekers,
            sessions: self.claimed(sessions),
            left: Some((left, untouched)),
        }
    }

    /// Reads the sidecars of the other ones too, but of those that are untouched.
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
            by: self.read_sidecar(&session, Keep::All),
            session,
        });
        claimed.collect()
    }

    /// A sidecar that was read names each process of the home, and the log, which
    /// lacks nothing, tells of that session.
    ///
    /// Then no other session can be one of theirs, whatever was written to it. Who goes
    /// on to another one logs that it takes it up; it also removes the sidecar of the
    /// one that it leaves, and then writes the other's (kimi-cli#2082).
    pub(super) fn are_all_accounted_for(&mut self) -> bool {
        let Some(log) = self.log().filter(|log| !log.is_torn && !log.has_hole) else {
            return false;
        };
        let sessions = log.events.iter().map(|event| event.session.as_str());
        let in_log: HashSet<&str> = sessions.collect();
        let ours = self.look.machine.table().scope();
        let is_accounted_for = |process: &Process| {
            self.claims.iter().any(|claim| {
                claim.trust == Trust::Trusted
                    && claim.placement != Placement::SharedByMachines
                    && claim.scope.host.is_some()
                    && ours.host.is_ok()
                    && claim.may_be_about(process, ours)
                    && in_log.contains(claim.key.session.as_str())
            })
        };
        let mut processes = self.look.processes_of(self.home);
        processes.all(|its| its.role != Role::Session || is_accounted_for(&its.process))
    }

    /// Dates the sessions of a folder, and tells whose they can be. Returns the
    /// processes of it that no sidecar names.
    pub(super) fn date_folder(&mut self, folder: Folder<'_, '_>, is_all: bool) -> Vec<Pid> {
        let Folder {
            name,
            seekers,
            sessions,
            ..
        } = folder;
        if seekers.is_empty() {
            for Claimed { session, .. } in &sessions {
                self.sketch(name, session, Dates::of_directory(session));
            }
            return Vec::new();
        }
        let dated: Vec<(Claimed, Dates)> = sessions
            .into_iter()
            .map(|claimed| {
                let dates = self.read_dates(&claimed.session);
                (claimed, dates)
            })
            .collect();
        let born = dated.iter();
        let born = born.map(|(its, dates)| (its.session.id.clone(), dates.born_at_ms));
        let history = self.history(born);
        for (claimed, dates) in &dated {
            let is_wanted = is_all || claimed.by.is_some();
            self.sketch_sought(
                name,
                seekers,
                &claimed.session,
                (*dates, &history),
                is_wanted,
            );
        }
        let ours = self.look.machine.table().scope();
        let is_named = |its: &Process| self.claims.iter().any(|all| all.may_be_about(its, ours));
        let of_seekers = seekers.iter().map(|its| &its.process);
        let silent = of_seekers.filter(|its| !is_named(its));
        silent.map(|its| its.pid).collect()
    }

    /// Sketches a session if it is wanted, or one of those who seek one may have it.
    fn sketch_sought(
        &mut self,
        folder: &str,
        seekers: &[&AgentProcess],
        session: &SessionDir,
        (dates, history): (Dates, &History),
        is_wanted: bool,
    ) {
        let dates = history.corrected(&session.id, dates);
        let makers = history.makers_of(&session.id, dates);
        let of_its_time: Vec<&AgentProcess> = seekers
            .iter()
            .copied()
            .filter(|seeker| fits(seeker, &session.id, dates))
            .collect();
        let can_have_made_it = |its: &&AgentProcess| {
            let makers = makers.as_ref();
            makers.is_none_or(|makers| makers.possible.contains(&its.process.pid))
        };
        let fitting: Vec<&AgentProcess> = of_its_time
            .iter()
            .copied()
            .filter(can_have_made_it)
            .collect();
        // Who has taken it up can't be told where the log lacks something.
        let is_doubtful = history.is_torn
            || history.is_beyond(&session.id, dates.born_at_ms)
            || (history.has_hole && fitting.is_empty());
        let perhaps = if fitting.is_empty() && is_doubtful {
            &of_its_time
        } else {
            &fitting
        };
        if !is_wanted && perhaps.is_empty() {
            return;
        }
        // Then nothing says that `/clear` made it, and no other process.
        let is_untold = history.is_untold(&session.id, dates.born_at_ms);
        let is_of_none = !seekers.iter().any(can_have_made_it);
        self.sketch(folder, session, dates);
        if is_of_none {
            self.sketch_of_none(&session.id);
        } else {
            self.tell_apart(&session.id, makers, &fitting);
        }
        if is_doubtful {
            self.doubt(&session.id, perhaps);
        }
        if let Some(sketch) = self.sketches.get_mut(&session.id) {
            sketch.is_first_of_a_process |= is_untold;
        }
    }

    /// Adds what tells more closely which of the processes that fit has it.
    fn tell_apart(&mut self, id: &SessionId, makers: Option<Makers>, fitting: &[&AgentProcess]) {
        let Some(sketch) = self.sketches.get_mut(id) else {
            return;
        };
        // It ends with its terminal, so one that has none is a run.
        let is_run = |its: &&AgentProcess| its.process.tty.is_none();
        if !fitting.is_empty() && fitting.iter().all(is_run) {
            sketch.is_headless = Some(true);
        }
        let pids: BTreeSet<Pid> = fitting.iter().map(|its| its.process.pid).collect();
        match makers {
            Some(makers) => {
                if makers.are_doubtful {
                    sketch.doubtful_owners.clone_from(&pids);
                }
                if !pids.is_empty() {
                    sketch.possible_owners = Some(pids);
                }
            }
            None => {
                // Made by `/clear`, in the terminal where that was typed.
                let dates = (sketch.born_at_ms, sketch.last_record_at_ms);
                let is_cleared_elsewhere =
                    |its: &&&AgentProcess| was_begun_elsewhere(its, dates.0, dates.1);
                let left = fitting.iter().filter(|its| !is_cleared_elsewhere(its));
                let left: BTreeSet<Pid> = left.map(|its| its.process.pid).collect();
                let latest = dates.1.max(sketch.perhaps_until_ms);
                let doubtful = fitting.iter().filter(|its| {
                    left.contains(&its.process.pid) && was_hardly_begun_here(its, dates.0, latest)
                });
                sketch
                    .doubtful_owners
                    .extend(doubtful.map(|its| its.process.pid));
                if left.len() < pids.len() {
                    sketch.possible_owners = Some(left);
                }
            }
        }
    }

    /// None of the processes that are there made it, and nobody has taken it up.
    fn sketch_of_none(&mut self, id: &SessionId) {
        if let Some(sketch) = self.sketches.get_mut(id) {
            sketch.pairing = PairingRule::Never;
        }
    }

    /// Any of these may have it, or somebody who has ended.
    fn doubt(&mut self, id: &SessionId, perhaps: &[&AgentProcess]) {
        let sketch = self.sketches.get_mut(id);
        let Some(sketch) = sketch.filter(|_| !perhaps.is_empty()) else {
            return;
        };
        let pids: BTreeSet<Pid> = perhaps.iter().map(|its| its.process.pid).collect();
        if sketch.pairing == PairingRule::Never {
            sketch.pairing = PairingRule::Owner;
            sketch.possible_owners = Some(BTreeSet::new());
        }
        if let Some(possible) = &mut sketch.possible_owners {
            possible.extend(&pids);
        }
        sketch.doubtful_owners.extend(pids);
    }
}
