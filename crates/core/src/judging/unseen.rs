//! Processes that may be an agent's and do not let themselves be looked into.
//!
//! A sandbox, or a process that is not dumpable, leaves the name and refuses
//! the rest, with `EPERM` or `EACCES`. That was taken for "no agent" before,
//! and their sessions for dead (claude-code#74566).

use std::collections::HashMap;
use std::path::PathBuf;

use whosup_process::{Absent, Field, Pid, Process};

use crate::adapter::{Adapter, AgentProcess, Home, NODE_MAIN_THREAD, Program, is_runtime_name};

use crate::machine::Machine;
use crate::sources::recognize::{is_below_ours, is_by_another, is_name_of_layer};

/// For each home the first process that may use it and may also be another
/// program.
pub(crate) fn who_may_use(
    machine: &Machine,
    asked: &[(&'static dyn Adapter, Home)],
    recognized: &[AgentProcess],
) -> HashMap<PathBuf, Pid> {
    let mut found = HashMap::new();
    let Ok(processes) = machine.table().processes() else {
        return found;
    };
    for process in processes {
        let is_known = || {
            recognized
                .iter()
                .any(|known| known.process.pid == process.pid)
        };
        if process.is_kernel_thread || process.is_exited {
            continue;
        }
        let Ok(comm) = std::str::from_utf8(&process.comm) else {
            continue;
        };
        // The arguments of a runtime or a loader may show more than its name.
        let runs_another =
            comm == NODE_MAIN_THREAD || is_runtime_name(comm) || is_name_of_layer(comm);
        let of_that_name = asked
            .iter()
            .filter(|(adapter, _)| runs_another || adapter.profile().programs.may_be_called(comm));
        for (adapter, home) in of_that_name {
            if !found.contains_key(&*home.root)
                && may_be_agent(machine, *adapter, home, process)
                && !is_known()
            {
                found.insert(home.root.to_path_buf(), process.pid);
            }
        }
    }
    found
}

/// Processes of other users can rarely be looked into, and have homes of their own.
fn may_be_agent(machine: &Machine, adapter: &dyn Adapter, home: &Home, process: &Process) -> bool {
    let details = machine.table().details(process);
    if !is_refused(&details.exe) {
        return false;
    }
    let is_by_another = is_by_another(machine, &details)
        && details.uid.as_ref().ok().copied() != home.owner_uid
        && !is_below_ours(machine, process);
    let program = Program {
        process,
        details: &details,
    };
    !is_by_another
        && (is_refused(&details.argv) || adapter.profile().programs.are_mentioned_by(&program))
}

/// It could not be read, although the process may have it.
pub(crate) const fn is_refused<T>(field: &Field<T>) -> bool {
    !matches!(
        field,
        Ok(_) | Err(Absent::Vanished | Absent::Exited | Absent::KernelThread)
    )
}
