//! The running server of this user: it announces itself by a sidecar, which is judged like that
//! of any agent.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use whosup_core::adapter::Home;
use whosup_core::adapter::claim::{
    Claim, ClaimedScope, Evidence, EvidenceKind, Exclusivity, SessionKey, Subject,
};
use whosup_core::judging::observe::Observer;
use whosup_core::judging::verdict::Verdict;
use whosup_core::machine::Machine;
use whosup_core::machine::problem::{Found, Problem};
use whosup_core::process::{Pid, StampKind};
use whosup_core::sidecar::file::{FileFacts, owner_of};
use whosup_core::sidecar::{
    Agent, AgentId, Owner, Place, Session, Sidecar, SidecarPid, read_sidecar,
};
use whosup_core::sources::trust::trust_of;

use crate::ServeError;

/// The name of the server's session.
const SESSION: &str = "server";
/// The suffix of sidecars.
const SUFFIX: &str = ".runtime.json";
/// How many files of servers are read.
const SERVERS_MAX: usize = 64;

/// An announced server.
#[derive(Debug, Clone)]
pub struct Running {
    /// The endpoint: a URL, or the path of a socket.
    pub endpoint: String,
    /// Its process.
    pub pid: Option<Pid>,
    /// The verdict on its process.
    pub verdict: Verdict,
    /// The file.
    pub path: PathBuf,
}

/// A server's announcement; [`Announced::end`] removes it.
#[derive(Debug)]
pub struct Announced(Owner);

/// Every server that is announced in `directory`, with a verdict of now. An announcement that can't
/// be read is a problem: its server may be running.
#[must_use]
pub fn find_running(machine: &Machine, directory: &Path) -> Found<Vec<Running>> {
    let mut known = Found::default();
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) => {
            if error.kind() != ErrorKind::NotFound {
                known.problems.push(Problem::at(None, directory, error));
            }
            return known;
        }
    };
    let paths = entries.flatten().map(|entry| entry.path());
    let is_sidecar = |path: &PathBuf| path.to_string_lossy().ends_with(SUFFIX);
    let mut paths: Vec<PathBuf> = paths.filter(is_sidecar).take(SERVERS_MAX).collect();
    paths.sort();
    for path in paths {
        match read_sidecar(&path) {
            Ok((sidecar, facts)) => {
                let running = running(machine, directory, path, (&sidecar, &facts));
                known.found.push(running);
            }
            Err(error) => known
                .problems
                .push(Problem::at(None, &path, error.reason())),
        }
    }
    known
}

fn running(
    machine: &Machine,
    directory: &Path,
    path: PathBuf,
    (sidecar, facts): (&Sidecar, &FileFacts),
) -> Running {
    let claim = claim(machine, directory, &path, (sidecar, facts));
    let judged = Observer::new(machine, [&claim]).judge(&claim);
    Running {
        endpoint: sidecar.endpoint.clone().unwrap_or_default(),
        pid: claim.subject.pid(),
        verdict: judged.verdict,
        path,
    }
}

fn claim(
    machine: &Machine,
    directory: &Path,
    path: &Path,
    (sidecar, facts): (&Sidecar, &FileFacts),
) -> Claim {
    let subject = match sidecar.pid {
        SidecarPid::Process(pid) => Subject::Process(pid),
        SidecarPid::Released => Subject::Released,
    };
    let key = SessionKey {
        agent: AgentId::from_static("whosup"),
        session: sidecar.session_id.clone(),
        home: directory.into(),
    };
    let home = Home {
        root: directory.into(),
        is_default: true,
        owner_uid: owner_of(directory),
    };
    Claim {
        scope: ClaimedScope {
            host: Some(sidecar.hostname.clone()).filter(|host| !host.is_empty()),
            boot: sidecar.boot_id.clone(),
            pid_namespace: sidecar.pid_namespace,
            platform: sidecar.process_start_kind.map(StampKind::platform),
        },
        stamp: sidecar.process_start.clone(),
        dated_at_ms: Some(sidecar.started_at_ms),
        modified_at_ms: facts.modified_ms,
        executable: sidecar.executable.clone(),
        work_dir: Some(sidecar.work_dir.clone()),
        exclusivity: Exclusivity::Exclusive,
        trust: trust_of(facts, &home, machine),
        placement: machine.mounts().placement_of(path),
        ..Claim::new(
            key,
            subject,
            Evidence {
                kind: EvidenceKind::Sidecar,
                path: Some(path.to_owned()),
                says: String::new(),
            },
        )
    }
}

/// Announces that this process serves at `endpoint`.
///
/// A server that is live, or may be, keeps its announcement: this server's file stands beside it.
///
/// # Errors
///
/// [`ServeError::Announce`] if it can't be written.
pub fn announce(directory: &Path, endpoint: &str) -> Result<Announced, ServeError> {
    let agent = Agent::new("whosup")?.version(env!("CARGO_PKG_VERSION"));
    let session = Session::new(SESSION, directory)?
        .place(Place::Directory(directory.to_owned()))?
        .endpoint(endpoint);
    Ok(Announced(Owner::establish(agent, session)?))
}

impl Announced {
    /// Whether another server announced itself since the search for one: then this one's file
    /// stands beside the other's.
    #[must_use]
    pub fn is_beside_another(&self) -> bool {
        let path = self.0.path();
        let name = path.as_deref().and_then(Path::file_name);
        name.is_none_or(|name| name != format!("{SESSION}{SUFFIX}").as_str())
    }

    /// Removes it.
    ///
    /// # Errors
    ///
    /// [`ServeError::Announce`] if the file can't be removed.
    pub fn end(self) -> Result<(), ServeError> {
        Ok(self.0.release()?)
    }
}
