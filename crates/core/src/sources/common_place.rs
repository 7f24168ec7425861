//! The common place: `$XDG_STATE_HOME/agent-sessions/AGENT/SESSION.runtime.json`. Any agent
//! may record there which process serves which session, even an agent without an adapter.
//!
//! Each file is a sidecar ([`whosup_sidecar`]), named after the session. While another live
//! process owns that file, a sibling claim `SESSION.claim-HEX.runtime.json` stands beside
//! it. Other names that begin with a dot are files that a process is still writing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use whosup_process::{Pid, PidNamespace, Process};
use whosup_sidecar::file::{FileFacts, ReadFileError};
use whosup_sidecar::{
    AgentId, ReadSidecarError, Resume, Serves, SessionId, Sidecar, file, is_sidecar_name,
    read_sidecar,
};

use crate::adapter::claim::{
    CLOCK_SLACK_MS, Claim, Evidence, EvidenceKind, Exclusivity, Serving, SessionKey, Subject,
};
use crate::adapter::{AgentScan, Home, Invocation, KnownClient, Sketch};
use crate::machine::problem::{Found, Problem};
use crate::machine::{Environment, Machine};
use crate::sources::agents;
use crate::sources::agents::kit::folder::is_directory;
use crate::sources::agents::kit::folder::list_outside_homes;
use crate::sources::agents::kit::sidecar_facts;
use crate::sources::trust::trust_of;

/// How many agents' directories are looked at.
const AGENTS_MAX: usize = 256;
/// How many files of one agent are read.
const SIDECARS_MAX: usize = 100_000;
/// How the names of sidecars end.
const SUFFIX: &str = ".runtime.json";

/// Sessions and claims from the common place.
#[derive(Debug, Clone, Default)]
pub struct CommonPlace {
    /// Claims and sketches.
    pub scan: AgentScan,
    /// The directories of agents without an adapter: their homes.
    pub homes: Vec<Home>,
}

/// Where the common place is.
#[must_use]
pub fn root(environment: &Environment) -> Option<PathBuf> {
    let state = environment.xdg_directory("XDG_STATE_HOME", ".local/state")?;
    Some(state.join("agent-sessions"))
}

/// Returns whether an agent has a directory in the common place.
#[must_use]
pub fn has_agent(environment: &Environment, agent: &AgentId) -> bool {
    root(environment).is_some_and(|root| is_directory(&root.join(agent.as_str())))
}

impl CommonPlace {
    /// Moves each session into the home in which the agent's own files record it, so that it
    /// is not listed twice.
    pub fn move_to_homes_of<'k>(&mut self, known: impl IntoIterator<Item = &'k SessionKey>) {
        let mut homes: BTreeMap<(AgentId, SessionId), Arc<Path>> = BTreeMap::new();
        let is_here: BTreeSet<AgentId> = self
            .scan
            .sketches
            .iter()
            .map(|sketch| sketch.key.agent.clone())
            .filter(|agent| agents::adapter(agent).is_some())
            .collect();
        let keys = known.into_iter();
        for key in keys.filter(|key| is_here.contains(&key.agent)) {
            homes
                .entry((key.agent.clone(), key.session.clone()))
                .or_insert_with(|| key.home.clone());
        }
        let move_home = |key: &mut SessionKey| {
            let name = (key.agent.clone(), key.session.clone());
            if let Some(home) = homes.get(&name) {
                key.home.clone_from(home);
            }
        };
        if homes.is_empty() {
            return;
        }
        for claim in &mut self.scan.claims {
            move_home(&mut claim.key);
        }
        for sketch in &mut self.scan.sketches {
            move_home(&mut sketch.key);
        }
    }
}

/// Reads the common place.
#[must_use]
pub fn scan_common_place(
    machine: &Machine,
    is_wanted: impl Fn(&AgentId) -> bool,
) -> Found<CommonPlace> {
    let mut found: Found<CommonPlace> = Found::default();
    let Some(root) = root(machine.environment()) else {
        return found;
    };
    let mut scan = AgentScan::default();
    for name in list_outside_homes(None, &root, AGENTS_MAX, &mut found.problems) {
        let directory = root.join(&name);
        let Ok(agent) = AgentId::parse(&name) else {
            let message = "the name of this directory is no agent's";
            found.problems.push(Problem::at(None, &directory, message));
            continue;
        };
        if !is_wanted(&agent) {
            continue;
        }
        let place = Place::of(machine, agent, directory);
        let names = list_outside_homes(
            Some(&place.agent),
            &place.directory,
            SIDECARS_MAX,
            &mut found.problems,
        );
        for name in names.iter().filter(|name| !is_being_written(name)) {
            place.read(name, &mut scan, &mut found.problems);
        }
        if !place.has_adapter {
            found.found.homes.push(place.home);
        }
    }
    found.found.scan = scan;
    found
}

/// One agent's directory in the common place.
struct Place<'a> {
    machine: &'a Machine,
    agent: AgentId,
    directory: PathBuf,
    has_adapter: bool,
    /// This directory, as the home of an agent without an adapter.
    home: Home,
    /// The home that its sessions are in, unless they are known to be in another.
    home_of_sessions: Arc<Path>,
}

impl<'a> Place<'a> {
    fn of(machine: &'a Machine, agent: AgentId, directory: PathBuf) -> Self {
        let adapter = agents::adapter(&agent);
        let own = adapter.and_then(|adapter| {
            let mut homes = adapter.homes(machine.environment()).into_iter();
            homes.next()
        });
        Self {
            home_of_sessions: own.map_or_else(|| directory.as_path().into(), Arc::from),
            home: Home {
                root: directory.as_path().into(),
                is_default: true,
                // The owner of the directory may write the files in it.
                owner_uid: file::owner_of(&directory),
            },
            has_adapter: adapter.is_some(),
            machine,
            agent,
            directory,
        }
    }

    fn read(&self, name: &str, scan: &mut AgentScan, problems: &mut Vec<Problem>) {
        let path = self.directory.join(name);
        let mut complain = |message: String| {
            problems.push(Problem::at(&self.agent, &path, message));
        };
        // Other files of an agent there are not our concern.
        if !name.ends_with(SUFFIX) {
            return;
        }
        match read_sidecar(&path) {
            Ok((sidecar, _)) if !is_sidecar_name(name, &sidecar.session_id) => complain(format!(
                "it is about session `{}`, which its name does not say",
                sidecar.session_id
            )),
            Ok((sidecar, facts)) => {
                let sketch = self.sketch(&sidecar, &path, &facts);
                let claim = self.claim(&sketch.key, &sidecar, &path, &facts);
                scan.claim(claim);
                scan.sketch(sketch);
            }
            // Its session was left since the directory was listed.
            Err(ReadSidecarError::File(ReadFileError::NotFound { .. })) => {}
            Err(error) => {
                let session = name.strip_suffix(SUFFIX).map(SessionId::parse);
                if let Some(Ok(session)) = session {
                    scan.claim(self.unread(&session, &path));
                }
                complain(error.reason());
            }
        }
    }

    /// What a sidecar claims that can't be read: it may name any process.
    fn unread(&self, session: &SessionId, path: &Path) -> Claim {
        let says = "it can't be read";
        let evidence = Evidence::new(EvidenceKind::Sidecar, Some(path.to_owned()), says);
        Claim {
            placement: self.machine.mounts().placement_of(path),
            ..Claim::new(self.key(session), Subject::Unreadable, evidence)
        }
    }

    fn key(&self, session: &SessionId) -> SessionKey {
        SessionKey {
            agent: self.agent.clone(),
            session: session.clone(),
            home: self.home_of_sessions.clone(),
        }
    }

    fn claim(&self, key: &SessionKey, sidecar: &Sidecar, path: &Path, facts: &FileFacts) -> Claim {
        let (subject, says) = sidecar_facts::subject(sidecar);
        let evidence = Evidence::new(EvidenceKind::Sidecar, Some(path.to_owned()), says);
        let claim = Claim {
            modified_at_ms: facts.modified_ms,
            // If the agent has an adapter, a release that writes no sidecar may have resumed the
            // session.
            exclusivity: if self.has_adapter {
                Exclusivity::Shared
            } else {
                Exclusivity::Exclusive
            },
            serving: match sidecar.serves {
                Some(Serves::One) => Serving::One,
                Some(Serves::Many) => Serving::Many,
                None => Serving::NotRecorded,
            },
            trust: trust_of(facts, &self.home, self.machine),
            placement: self.machine.mounts().placement_of(path),
            ..Claim::new(key.clone(), subject, evidence)
        };
        sidecar_facts::completed(claim, sidecar.clone())
    }

    fn sketch(&self, sidecar: &Sidecar, path: &Path, facts: &FileFacts) -> Sketch {
        let mut sketch = Sketch::new(self.key(&sidecar.session_id));
        sketch.work_dir = Some(sidecar.work_dir.clone());
        sketch.agent_version.clone_from(&sidecar.agent_version);
        sketch.started_at_ms = Some(sidecar.started_at_ms);
        sketch.endpoint = sidecar_facts::endpoint(sidecar);
        sketch
            .facts
            .extend(sidecar_facts::phase(sidecar, facts, self.machine));
        sketch.client = self.client(sidecar, path).map(Box::new);
        // An adapter knows these better, and never reads files that another program names.
        if !self.has_adapter {
            sketch.last_record_at_ms = Some(sidecar.started_at_ms);
            sketch.transcript.clone_from(&sidecar.transcript);
            let command = sidecar.resume.as_ref().map(invocation);
            let command = command.filter(|command| !command.argv.is_empty());
            sketch.resume = command.map(Box::new);
        }
        sketch
    }

    /// The client that a sidecar names, if its PID is in this scope and its process existed when
    /// the sidecar was written.
    fn client(&self, sidecar: &Sidecar, path: &Path) -> Option<KnownClient> {
        let pid = sidecar.client_pid?;
        let table = self.machine.table();
        let is_number_of_here = is_number_of_here(self.machine, sidecar.pid_namespace);
        let is_of_its_time = |process: &Process| {
            let latest = sidecar.started_at_ms.saturating_add(CLOCK_SLACK_MS);
            matches!(process.began_at_ms, Ok(began) if began <= latest)
        };
        let process = table.seen(pid)?;
        (is_number_of_here && is_of_its_time(process)).then(|| KnownClient {
            process: process.clone(),
            evidence: Evidence::new(
                EvidenceKind::Sidecar,
                Some(path.to_owned()),
                client_says(pid),
            ),
        })
    }
}

/// Returns whether the PID in a file belongs to our own PID namespace.
fn is_number_of_here(machine: &Machine, named: Option<PidNamespace>) -> bool {
    let table = machine.table();
    match (named, &table.scope().pid_namespace) {
        (Some(named), Ok(ours)) => named == *ours,
        (Some(_), Err(_)) => false,
        (None, _) => !table.has_nested_namespaces(),
    }
}

/// Returns whether a name belongs to a file that a process is still writing. An id that
/// begins with a dot gives such a name too.
fn is_being_written(name: &str) -> bool {
    name.starts_with('.') && !name.ends_with(SUFFIX)
}

fn client_says(pid: Pid) -> String {
    format!("client: process {pid}")
}

/// A command as it stands in a sidecar, to be shown.
fn invocation(resume: &Resume) -> Invocation {
    match resume {
        Resume::Argv(argv) => Invocation::new(argv),
        Resume::Line(line) => Invocation::new(["sh", "-c", line]),
    }
}

#[cfg(test)]
#[allow(
    clippy::disallowed_methods,
    reason = "tests make their own files and processes"
)]
mod tests;
