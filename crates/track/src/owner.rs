//! Who runs a session: the nearest of a hook's ancestors that is its agent.

use whosup_core::agents::{self, AGENTS, Adapter, Program, Role};
use whosup_core::claim::CLOCK_SLACK_MS;
use whosup_core::process::{Backend, Pid, Process};
use whosup_core::recognize::look_through;
use whosup_core::record::RecordedOwner;

/// How many parents are followed.
const ANCESTORS_MAX: usize = 64;

/// Who was found above a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundOwner {
    /// This process of the agent runs the session.
    Owner {
        /// Its identity.
        owner: RecordedOwner,
        /// The processor time that it has used, in milliseconds, where that can be
        /// read.
        cpu_ms: Option<u64>,
    },
    /// Nobody, and why.
    Nobody(String),
}

/// Finds the owner of a session above the process `hook`.
///
/// The nearest ancestor that any agent's adapter recognizes decides. Shells,
/// package runners, multiplexers and the like are no agent's and are passed over,
/// as are launchers. If it is another agent's, the hook is not this agent's to tell
/// of; if it runs many sessions at once, it is marked shared.
#[must_use]
pub fn find_owner(backend: &dyn Backend, adapter: &dyn Adapter, hook: Pid) -> FoundOwner {
    let agent = agents::id_of(adapter);
    let mut child = match backend.probe(hook) {
        Ok(Some(process)) => process,
        Ok(None) => return FoundOwner::Nobody("the hook itself is gone".to_owned()),
        Err(error) => return FoundOwner::Nobody(error.to_string()),
    };
    for _ in 0..ANCESTORS_MAX {
        let parent = match parent_of(backend, &child) {
            Ok(Some(parent)) => parent,
            Ok(None) => break,
            Err(reason) => return FoundOwner::Nobody(reason),
        };
        match recognized(backend, &parent) {
            Some((found, _)) if found != agent => {
                let pid = parent.pid;
                return FoundOwner::Nobody(format!("the nearest agent is {found}, process {pid}"));
            }
            Some((_, role @ (Role::Session | Role::Host))) => {
                return FoundOwner::Owner {
                    owner: identity_of(backend, &parent, role == Role::Host),
                    cpu_ms: parent.cpu_ms.ok(),
                };
            }
            Some((_, Role::Client | Role::Launcher | Role::Auxiliary)) | None => child = parent,
        }
    }
    FoundOwner::Nobody("no ancestor is a process of the agent".to_owned())
}

/// The parent, unless its PID was reused since: then it began after its child.
/// Dates of two looks differ by what the clock did in between, hence the slack.
fn parent_of(backend: &dyn Backend, child: &Process) -> Result<Option<Process>, String> {
    let Some(ppid) = child.ppid else {
        return Ok(None);
    };
    let parent = backend.probe(ppid).map_err(|error| error.to_string())?;
    Ok(parent.filter(|parent| {
        let began = parent.began_at_ms.as_ref().ok();
        let child_began = child.began_at_ms.as_ref().ok();
        began
            .zip(child_began)
            .is_none_or(|(one, other)| *one <= other.saturating_add(CLOCK_SLACK_MS))
    }))
}

fn recognized(
    backend: &dyn Backend,
    process: &Process,
) -> Option<(whosup_core::sidecar::AgentId, Role)> {
    if process.is_kernel_thread {
        return None;
    }
    let details = backend.details(process);
    let details = look_through(&details).unwrap_or(details);
    let program = Program {
        process,
        details: &details,
    };
    AGENTS
        .iter()
        .find_map(|adapter| Some((agents::id_of(*adapter), adapter.recognize(&program)?)))
}

fn identity_of(backend: &dyn Backend, process: &Process, is_shared: bool) -> RecordedOwner {
    let scope = backend.scope();
    RecordedOwner {
        pid: process.pid,
        stamp: Some(process.stamp.clone()),
        host: scope.host.ok().map(|host| host.0),
        boot: scope.boot.ok(),
        pid_namespace: scope.pid_namespace.ok(),
        executable: backend.details(process).exe.ok(),
        is_shared,
    }
}
