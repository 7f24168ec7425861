//! Finds the owner process of a session: the process that the agent itself names, or else
//! the nearest ancestor of a hook that is neither a shell nor a launcher.

mod passed_over;

use std::fmt;
use std::path::{Path, PathBuf};

use whosup_core::adapter::{Adapter, Program, Role};

use whosup_core::adapter::claim::CLOCK_SLACK_MS;
use whosup_core::machine::Environment;
use whosup_core::process::{Backend, Details, Pid, Process};
use whosup_core::sidecar::{AgentId, SessionId};
use whosup_core::sources::agents::{self, AGENTS};
use whosup_core::sources::recognize::look_through;
use whosup_core::sources::record::{Ancestor, CHAIN_MAX, RecordedOwner};

use self::passed_over::{Kind, kind_of};

/// How many parents are followed.
const ANCESTORS_MAX: usize = 64;
/// How long the recorded path of an ancestor's program may be.
const EXECUTABLE_BYTES_MAX: usize = 200;

/// The owner that was found above a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundOwner {
    /// This process runs the session.
    Owner {
        /// Its identity.
        owner: RecordedOwner,
        /// The processor time that it has used, in milliseconds, where that can be
        /// read.
        cpu_ms: Option<u64>,
        /// The processes from the hook up to it, and some beyond it.
        chain: Vec<Ancestor>,
    },
    /// No owner was found, for this reason.
    NotFound(String),
}

/// The agent, home and session that a hook belongs to.
#[derive(Clone, Copy)]
pub struct HookOf<'a> {
    /// The agent.
    pub adapter: &'a dyn Adapter,
    /// The agent's home.
    pub home: &'a Path,
    /// The session that it reports on.
    pub session: &'a SessionId,
    /// Its environment.
    pub environment: &'a Environment,
}

impl fmt::Debug for HookOf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let agent = agents::id_of(self.adapter);
        write!(
            f,
            "{agent} session {} in {}",
            self.session,
            self.home.display()
        )
    }
}

/// A process above a hook.
struct Above {
    process: Process,
    details: Details,
    what: What,
}

/// The kind of a process above a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    /// An adapter recognizes it.
    Agent(AgentId, Role),
    /// It launches other programs and serves no session.
    PassedOver,
    /// Nothing above it has to do with the hook.
    Boundary,
    /// Something else.
    Unrecognized,
}

/// Finds the owner of a session above the process `hook`.
///
/// The nearest ancestor that is neither a shell nor a launcher decides. If it is a process
/// of another agent, no owner is found. If it runs many sessions at once, it is marked
/// shared. If no adapter recognizes it, it is marked unrecognized: it may be an agent that
/// was started by another name, or a program, and then an agent further up must not be
/// taken for the owner.
///
/// What the agent itself reports decides before that: a process further up counts if its
/// registry names this very session, or if the hook's environment names it and nothing
/// that could be an agent is between.
#[must_use]
pub fn find_owner(backend: &dyn Backend, of: &HookOf<'_>, hook: Pid) -> FoundOwner {
    let agent = agents::id_of(of.adapter);
    let above = match ancestors(backend, hook) {
        Ok(above) => above,
        Err(reason) => return FoundOwner::NotFound(reason),
    };
    let found = |at: usize, role: Option<Role>| found(backend, &above, at, role);
    if let Some(at) = published(&above, of) {
        return found(at, Some(Role::Session));
    }
    let is_named = |above: &Above| named(of) == Some(above.process.pid);
    for (at, one) in above.iter().enumerate() {
        match &one.what {
            // The agent's variable names this process, whatever it looks like.
            What::Unrecognized | What::PassedOver | What::Boundary if is_named(one) => {
                return found(at, Some(Role::Session));
            }
            // The kernel makes PID 1 the parent of a hook that has lost its own, whatever
            // agent that is.
            What::Agent(..) if is_first(&one.process) && named(of).is_some() && !is_named(one) => {
                break;
            }
            What::Agent(other, _) if *other != agent => {
                let pid = one.process.pid;
                return FoundOwner::NotFound(format!(
                    "the nearest agent is {other}, process {pid}"
                ));
            }
            What::Agent(_, role @ (Role::Session | Role::Host)) => return found(at, Some(*role)),
            What::Unrecognized => return found(at, None),
            What::Boundary => break,
            What::Agent(_, Role::Client | Role::Launcher | Role::Auxiliary) | What::PassedOver => {}
        }
    }
    // The last hook of an agent that is about to go may have lost its parent.
    if let Some(one) = named(of).and_then(|pid| look_at(backend, pid))
        && one.what == What::Agent(agent, Role::Session)
    {
        return self::found(backend, &[one], 0, Some(Role::Session));
    }
    FoundOwner::NotFound("no ancestor is a process of the agent".to_owned())
}

fn look_at(backend: &dyn Backend, pid: Pid) -> Option<Above> {
    let process = backend.probe(pid).ok().flatten()?;
    let details = backend.details(&process);
    Some(Above {
        what: what_is(&process, &details),
        process,
        details,
    })
}

/// The PID of the agent in the environment of its children.
fn named(of: &HookOf<'_>) -> Option<Pid> {
    let value = of
        .environment
        .variable(of.adapter.profile().pid_variable?)?;
    Pid::new(value.to_str()?.parse().ok()?).ok()
}

/// The ancestor that the agent's own registry records for this session.
fn published(above: &[Above], of: &HookOf<'_>) -> Option<usize> {
    above.iter().position(|one| {
        let process = &one.process;
        let published = of
            .adapter
            .published_session(of.home, process.pid, &process.stamp);
        published.as_ref() == Some(of.session)
    })
}

/// The ancestors of a process, nearest first.
fn ancestors(backend: &dyn Backend, hook: Pid) -> Result<Vec<Above>, String> {
    let mut child = match backend.probe(hook) {
        Ok(Some(process)) => process,
        Ok(None) => return Err("the hook itself is gone".to_owned()),
        Err(error) => return Err(error.to_string()),
    };
    let mut above: Vec<Above> = Vec::new();
    for _ in 0..ANCESTORS_MAX {
        let Some(parent) = parent_of(backend, &child)? else {
            break;
        };
        let details = backend.details(&parent);
        let what = what_is(&parent, &details);
        let is_boundary = what == What::Boundary;
        child = parent.clone();
        above.push(Above {
            process: parent,
            details,
            what,
        });
        if is_boundary {
            break;
        }
    }
    Ok(above)
}

fn what_is(process: &Process, details: &Details) -> What {
    if process.is_kernel_thread {
        return What::Boundary;
    }
    let looked_through = look_through(details);
    let program = Program {
        process,
        details: looked_through.as_ref().unwrap_or(details),
    };
    let mut adapters = AGENTS.iter();
    let recognized = adapters.find_map(|adapter| {
        Some((
            agents::id_of(*adapter),
            adapter.profile().programs.recognize(&program)?,
        ))
    });
    if let Some((agent, role)) = recognized {
        return What::Agent(agent, role);
    }
    if is_first(process) {
        return What::Boundary;
    }
    match kind_of(&program) {
        Kind::PassedOver => What::PassedOver,
        Kind::Boundary => What::Boundary,
        Kind::Other => What::Unrecognized,
    }
}

/// It is the init process, or what a container was started for.
const fn is_first(process: &Process) -> bool {
    process.pid.get() == 1
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

/// `role`: `None` if no adapter recognizes it.
fn found(backend: &dyn Backend, above: &[Above], at: usize, role: Option<Role>) -> FoundOwner {
    let Some(one) = above.get(at) else {
        return FoundOwner::NotFound("the owner is gone".to_owned());
    };
    let scope = backend.scope();
    FoundOwner::Owner {
        owner: RecordedOwner {
            pid: one.process.pid,
            stamp: Some(one.process.stamp.clone()),
            host: scope.host.ok().map(|host| host.0),
            boot: scope.boot.ok(),
            pid_namespace: scope.pid_namespace.ok(),
            executable: one.details.exe.clone().ok(),
            is_shared: role == Some(Role::Host),
            is_unrecognized: role.is_none(),
        },
        cpu_ms: one.process.cpu_ms.clone().ok(),
        chain: above.iter().take(CHAIN_MAX).map(ancestor).collect(),
    }
}

fn ancestor(above: &Above) -> Ancestor {
    let executable = above.details.exe.as_ref().ok();
    let is_short = |path: &&PathBuf| path.as_os_str().len() <= EXECUTABLE_BYTES_MAX;
    Ancestor {
        pid: above.process.pid,
        stamp: Some(above.process.stamp.clone()),
        executable: executable.filter(is_short).cloned(),
    }
}
