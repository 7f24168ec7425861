//! Processes of other users that may serve sessions of our homes.
//!
//! The home that a process uses decides, not its user: root looks at the agents of a user, and
//! a user runs an agent as root. Where that home can't be read, something else must connect the
//! process with ours. Otherwise one user of a shared machine would raise doubt about the sessions
//! of all the others.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use whosup_process::{Details, Process};
use whosup_sidecar::file::owner_of;
use whosup_sidecar::{AgentId, SessionId};

use super::{AgentProcesses, PossibleProcess, name_of_missing, real_name};
use crate::adapter::AgentProcess;
use crate::machine::Machine;
use crate::sources::agents;

/// Removes processes of other users that use other homes. If their home can't be read, those
/// remain that were started by a process of ours or belong to the owner of a home; of the rest,
/// only the session counts that their arguments name.
pub(crate) fn leave_out_others(
    machine: &Machine,
    configured: &[(AgentId, PathBuf)],
    found: &mut AgentProcesses,
) {
    let homes = OurHomes::of(machine, configured, &found.recognized);
    let named = &mut found.named_by_others;
    found.recognized.retain_mut(|one| {
        if !is_by_another(machine, &one.details) {
            return true;
        }
        if !one.homes.is_empty() {
            return homes.include_one_of(one);
        }
        if is_below_ours(machine, &one.process) {
            return true;
        }
        one.homes = homes.owned_by_user_of(one);
        if one.homes.is_empty()
            && let Some(Ok(session)) = one.named_session().map(SessionId::parse)
        {
            named.insert((one.agent.clone(), session), one.process.pid);
        }
        !one.homes.is_empty()
    });
    found.possible.retain(|one| {
        !is_by_another(machine, &one.details)
            || uses_our_home(machine, one)
            || is_below_ours(machine, &one.process)
    });
}

/// Returns whether a process is known to belong to another user.
pub(crate) fn is_by_another(machine: &Machine, details: &Details) -> bool {
    matches!((&machine.table().view().uid, &details.uid), (Ok(us), Ok(uid)) if us != uid)
}

/// Returns whether a process of another user was started by one of ours, as `sudo` does.
///
/// That says nothing about root: its processes start those of everybody.
pub(crate) fn is_below_ours(machine: &Machine, process: &Process) -> bool {
    let table = machine.table();
    let Ok(us) = table.view().uid else {
        return false;
    };
    let mut above = table.ancestors(process);
    us != 0 && above.any(|ancestor| table.details(ancestor).uid == Ok(us))
}

/// It has our home directory, by its environment, or by its user if that can't be read.
fn uses_our_home(machine: &Machine, one: &PossibleProcess) -> bool {
    let Some(ours) = machine.environment().home() else {
        return false;
    };
    let ours = real(machine, ours);
    let environment = machine.environment_of(&one.process, &[]);
    match environment.as_ref().and_then(|its| its.home()) {
        Some(home) => real(machine, home) == ours,
        None => one.details.uid.as_ref().ok().copied() == owner_of(&ours),
    }
}

/// The homes of each agent that are looked at for ourselves, without links.
struct OurHomes<'a> {
    machine: &'a Machine,
    by_agent: HashMap<AgentId, Vec<PathBuf>>,
}

impl<'a> OurHomes<'a> {
    fn of(
        machine: &'a Machine,
        configured: &[(AgentId, PathBuf)],
        recognized: &[AgentProcess],
    ) -> Self {
        let others = |one: &&AgentProcess| is_by_another(machine, &one.details);
        let mut by_agent = HashMap::new();
        for other in recognized.iter().filter(others) {
            let agent = agents::id_of(other.adapter);
            by_agent.entry(agent.clone()).or_insert_with(|| {
                let by_environment = other.adapter.homes(machine.environment()).into_iter();
                let configured = configured.iter().filter(|(of, _)| *of == agent);
                let named = by_environment.chain(configured.map(|(_, root)| root.clone()));
                let named = named.inspect(|root| machine.mounts().rely_on(root));
                let own = recognized
                    .iter()
                    .filter(|one| one.agent == agent && !others(one));
                let used = own.flat_map(|one| one.homes.clone());
                named.chain(used).map(|root| real(machine, &root)).collect()
            });
        }
        Self { machine, by_agent }
    }

    fn of_agent(&self, process: &AgentProcess) -> &[PathBuf] {
        self.by_agent.get(&process.agent).map_or(&[], Vec::as_slice)
    }

    fn include_one_of(&self, process: &AgentProcess) -> bool {
        let ours = self.of_agent(process);
        let mut homes = process.homes.iter();
        homes.any(|home| ours.contains(&real(self.machine, home)))
    }

    fn owned_by_user_of(&self, process: &AgentProcess) -> Vec<PathBuf> {
        let Ok(uid) = process.details.uid else {
            return Vec::new();
        };
        let homes = self.of_agent(process).iter();
        let is_its = |home: &&PathBuf| {
            let touchable = self.machine.mounts().touchable(home).is_ok();
            touchable && owner_of(home) == Some(uid)
        };
        homes.filter(is_its).cloned().collect()
    }
}

fn real(machine: &Machine, root: &Path) -> PathBuf {
    real_name(machine, root).unwrap_or_else(|| name_of_missing(machine, root))
}
