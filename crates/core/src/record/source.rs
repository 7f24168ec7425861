//! Session records as a source of claims.

use std::path::{Path, PathBuf};

use whosup_sidecar::file::{FileFacts, Links, read_regular};
use whosup_sidecar::{AgentId, SessionId};

use super::{RECORD_BYTES_MAX, RecordedOwner, SessionRecord, parse_record};
use crate::agents::{AgentScan, Depth, Home, Published, Sketch, names_in};
use crate::claim::{
    Claim, ClaimedScope, Evidence, EvidenceKind, Exclusivity, Serving, SessionKey, Subject,
};
use crate::machine::Machine;
use crate::phase::Phase;
use crate::problem::{Found, Problem};
use crate::trust::trust_of;

/// How many agents' records are read.
const AGENTS_MAX: usize = 256;
/// How many records of one agent are read.
const RECORDS_MAX: usize = 100_000;

/// Where session records are.
#[must_use]
pub fn records_root(machine: &Machine) -> Option<PathBuf> {
    let state = machine
        .environment()
        .xdg_directory("XDG_STATE_HOME", ".local/state")?;
    Some(state.join("whosup/sessions"))
}

/// Reads every session record. At [`Depth::Live`] those of ended sessions are
/// left out.
#[must_use]
pub fn scan_records(
    machine: &Machine,
    depth: &Depth,
    is_wanted: impl Fn(&AgentId) -> bool,
) -> Found<AgentScan> {
    let mut found: Found<AgentScan> = Found::default();
    let Some(root) = records_root(machine) else {
        return found;
    };
    // The directory is ours; whoever owns it may write what is in it.
    let facts = whosup_sidecar::file::facts(&root, Links::Follow);
    let home = Home {
        owner_uid: facts.ok().and_then(|facts| facts.uid),
        is_default: true,
        root: root.clone(),
    };
    for name in list(&root, AGENTS_MAX, &mut found.problems) {
        let Ok(agent) = AgentId::parse(&name) else {
            let message = "the name of this directory is no agent's";
            found.problems.push(problem(&root.join(&name), message));
            continue;
        };
        if !is_wanted(&agent) {
            continue;
        }
        let directory = root.join(&name);
        for name in list(&directory, RECORDS_MAX, &mut found.problems) {
            if !name.ends_with(".json") {
                continue;
            }
            let path = directory.join(&name);
            match read_record(&path, &agent, &name) {
                Ok((record, _)) if record.phase == Phase::Ended && *depth == Depth::Live => {}
                Ok((record, facts)) => add(&mut found.found, record, &path, &facts, &home, machine),
                Err(message) => found.problems.push(problem(&path, message)),
            }
        }
    }
    found
}

fn list(directory: &Path, entries_max: usize, problems: &mut Vec<Problem>) -> Vec<String> {
    match names_in(directory, entries_max) {
        Ok(names) => {
            if names.is_cut {
                let message = format!("more than {entries_max} entries: the rest is left out");
                problems.push(problem(directory, message));
            }
            names.texts().map(str::to_owned).collect()
        }
        Err(error) => {
            problems.push(problem(directory, format!("cannot list it: {error}")));
            Vec::new()
        }
    }
}

fn problem(path: &Path, message: impl ToString) -> Problem {
    Problem {
        agent: None,
        path: Some(path.to_owned()),
        message: message.to_string(),
    }
}

fn read_record(
    path: &Path,
    agent: &AgentId,
    name: &str,
) -> Result<(SessionRecord, FileFacts), String> {
    let file =
        read_regular(path, RECORD_BYTES_MAX, Links::Refuse).map_err(|error| error.reason())?;
    let record = parse_record(&file.bytes).map_err(|error| error.to_string())?;
    let is_named_so = name.strip_suffix(".json").map(SessionId::parse);
    if record.agent != *agent || !matches!(is_named_so, Some(Ok(id)) if id == record.session) {
        return Err(format!(
            "it is about {} session `{}`, which its name does not say",
            record.agent, record.session
        ));
    }
    Ok((record, file.facts))
}

fn add(
    found: &mut AgentScan,
    record: SessionRecord,
    path: &Path,
    facts: &FileFacts,
    home: &Home,
    machine: &Machine,
) {
    let key = SessionKey {
        agent: record.agent.clone(),
        session: record.session.clone(),
        home: record.home.clone(),
    };
    let claim = |subject, scope, owner: Option<&RecordedOwner>, says| Claim {
        key: key.clone(),
        subject,
        scope,
        stamp: owner.and_then(|owner| owner.stamp.clone()),
        dated_at_ms: Some(record.last_event_at_ms),
        modified_at_ms: facts.modified_ms,
        executable: owner.and_then(|owner| owner.executable.clone()),
        work_dir: record.work_dir.clone(),
        // Some agents tell of a new process only at its first prompt.
        exclusivity: Exclusivity::Shared,
        serving: match owner {
            Some(owner) if owner.is_shared => Serving::Many,
            _ => Serving::One,
        },
        trust: trust_of(facts, home, machine),
        placement: machine.mounts().placement_of(path),
        evidence: Evidence {
            kind: EvidenceKind::Record,
            path: Some(path.to_owned()),
            says,
        },
    };
    if record.phase == Phase::Ended {
        let says = "the session has ended".to_owned();
        let ended = claim(Subject::Released, ClaimedScope::default(), None, says);
        found.claims.push(ended);
    } else if let Some(owner) = &record.owner {
        let scope = ClaimedScope {
            host: owner.host.clone(),
            boot: owner.boot.clone(),
            pid_namespace: owner.pid_namespace,
        };
        let start = owner.stamp.as_ref().map(ToString::to_string);
        let says = format!(
            "pid {}, start {}",
            owner.pid,
            start.as_deref().unwrap_or("not told")
        );
        found
            .claims
            .push(claim(Subject::Process(owner.pid), scope, Some(owner), says));
    }
    let mut sketch = Sketch::new(key.clone());
    sketch.parent.clone_from(&record.parent);
    sketch.work_dir.clone_from(&record.work_dir);
    sketch.transcript.clone_from(&record.transcript);
    sketch.started_at_ms = record.started_at_ms;
    sketch.ended_at_ms = record.ended_at_ms;
    sketch.is_orphan_when_stale = true;
    sketch.published = Some(Published {
        phase: Some(record.phase),
        waiting_for: record.waiting_for,
        word: record.phase.name().to_owned(),
        at_ms: Some(record.last_event_at_ms),
    });
    found.sketches.push(sketch);
}
