//! Makes a world of its description: files, and a recorded process table.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use tempfile::TempDir;
use whosup_core::adapter::Depth;
use whosup_core::adapter::claim::SessionKey;
use whosup_core::judging::verdict::Liveness;
use whosup_core::machine::command::NoCommands;
use whosup_core::machine::mounts::Mounts;
use whosup_core::machine::{Environment, Machine};
use whosup_core::sessions::scan::{Scope, scan, scan_at_once};
use whosup_core::sessions::session::Unattributed;
use whosup_process::{
    Access, FileId, LockKind, PidNamespace, ProcessTable, Recorded, RecordedProcess, View,
};

use crate::disk::{Claim, Session, codex_id, kimi_cli_logged, set_modified, uuid, write};
use crate::processes::recorded;
use crate::spec::{Agent, ClaimSpec, DIRECTORIES, Form, HOMES, Kind, ProcessSpec, SessionSpec};
use crate::spec::{Spec, Who};

pub const MINUTE_MS: i64 = 60_000;
/// How long before the look the kernel began.
pub const UPTIME_MS: i64 = 10_000 * MINUTE_MS;
/// How long a clock tick is.
pub const TICK_MS: i64 = 10;

/// A world. Its files go when it is dropped.
pub struct World {
    home: PathBuf,
    now_ms: i64,
    processes: Vec<RecordedProcess>,
    _directory: TempDir,
}

/// What is said of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    pub verdict: String,
    pub evidence: String,
    pub may_be_served_by: Vec<i32>,
}

/// A live session, as far as two looks must agree on it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LiveRow {
    pub agent: String,
    pub session: String,
    pub home: PathBuf,
    pub verdict: String,
    pub owner: Option<i32>,
}

impl World {
    pub fn new(spec: &Spec) -> Self {
        let directory = tempfile::Builder::new()
            .prefix("whosup-fast-path-")
            .tempdir()
            .unwrap();
        let home = directory.path().canonicalize().unwrap().join("dev");
        for number in 0..DIRECTORIES {
            std::fs::create_dir_all(work_dir(&home, number)).unwrap();
        }
        let now = std::time::SystemTime::now();
        let now = now.duration_since(std::time::UNIX_EPOCH).unwrap();
        let now_ms = i64::try_from(now.as_millis()).unwrap();
        let ids: Vec<String> = (0..spec.sessions.len())
            .map(|number| id(&spec.sessions[number], number, now_ms))
            .collect();
        let processes = spec.processes.iter().enumerate();
        let processes = processes
            .map(|(number, process)| {
                let named = named_by_arguments(spec, process, &ids);
                recorded(process, number, &home, now_ms, named)
            })
            .collect();
        let mut world = Self {
            home,
            now_ms,
            processes,
            _directory: directory,
        };
        for (number, session) in spec.sessions.iter().enumerate() {
            world.add(spec, session, &ids[number]);
        }
        for number in 0..HOMES {
            date_chats(&agent_home(&world.home, Agent::QwenCode, number));
            world.log_kimi_cli(spec, &ids, number);
        }
        world
    }

    /// kimi-cli's log of one home: what became of its sessions since the log was begun.
    fn log_kimi_cli(&self, spec: &Spec, ids: &[String], home: usize) {
        let Some(since) = spec.logs_since_minutes_ago[home] else {
            return;
        };
        let mut events = Vec::new();
        for (session, id) in spec.sessions.iter().zip(ids) {
            if session.agent != Agent::KimiCli || session.home != home {
                continue;
            }
            // The directory of one in which nothing was said was made only now.
            let minutes = session.spoken.map_or(0, |_| session.born_minutes_ago);
            let born_at_ms = self.now_ms - minutes * MINUTE_MS;
            events.push((born_at_ms, kimi_cli_logged(born_at_ms, "Created new", id)));
            for claim in &session.claims {
                let named = self.named(spec, session, claim);
                let process = named.map(|at| &self.processes[at].process);
                let at_ms = self.said_at_ms(claim, process);
                events.push((at_ms, kimi_cli_logged(at_ms, "Resuming", id)));
            }
        }
        events.retain(|(at_ms, _)| *at_ms >= self.now_ms - since * MINUTE_MS);
        events.sort();
        let lines: String = events.into_iter().map(|(_, line)| line).collect();
        let home = agent_home(&self.home, Agent::KimiCli, home);
        write(&home.join("logs/kimi.log"), &lines);
    }

    fn add(&mut self, spec: &Spec, session: &SessionSpec, id: &str) {
        let home = agent_home(&self.home, session.agent, session.home);
        let work_dir = work_dir(&self.home, session.directory);
        let born_at_ms = self.now_ms - session.born_minutes_ago * MINUTE_MS;
        let since_birth = session.born_minutes_ago * MINUTE_MS;
        let files = Session {
            home: &home,
            id,
            work_dir: &work_dir,
            born_at_ms,
            last_at_ms: born_at_ms + since_birth * session.spoken.unwrap_or(0) / 100,
        };
        let mut rollout = None;
        match (session.agent, session.spoken) {
            (Agent::ClaudeCode, Some(_)) => files.write_claude_code(),
            (Agent::Codex, Some(_)) => rollout = Some(files.write_codex()),
            (Agent::QwenCode, Some(_)) => files.write_qwen_code(),
            (Agent::KimiCli, Some(_)) => files.write_kimi_cli(),
            (Agent::KimiCli, None) => files.write_kimi_cli_silent(),
            (Agent::ClaudeCode | Agent::Codex | Agent::QwenCode, None) => {}
        }
        for claim in &session.claims {
            if session.agent == Agent::Codex {
                self.hold(spec, session, &files, claim, rollout.as_deref());
            } else {
                self.claim(spec, session, &files, claim);
            }
        }
    }

    /// The process that a claim to a session names, by its place in the world.
    ///
    /// Whoever lives writes into its own home, and what it keeps beside its
    /// sessions, into the folder of the one directory that it works in (its own
    /// or one that it was given); what had a PID before may have written
    /// anywhere.
    fn named(&self, spec: &Spec, session: &SessionSpec, claim: &ClaimSpec) -> Option<usize> {
        let is_beside_session = match session.agent {
            Agent::QwenCode => claim.form == Form::Sidecar,
            Agent::KimiCli => true,
            Agent::ClaudeCode | Agent::Codex => false,
        };
        // Only its terminal interface writes sidecars.
        let is_of_terminal = session.agent == Agent::QwenCode && claim.form == Form::Sidecar;
        let may_write = |process: &ProcessSpec| {
            process.home == session.home
                && (!is_of_terminal || process.kind == Kind::Interactive)
                && (!is_beside_session || process.works_in == session.directory)
        };
        let index = match &claim.who {
            Who::Process(index) | Who::Predecessor(index) => index,
            Who::Gone(_) => return None,
        };
        let its: Vec<usize> = (0..spec.processes.len())
            .filter(|at| {
                let process = &spec.processes[*at];
                let is_gone = matches!(claim.who, Who::Predecessor(_));
                process.agent == session.agent && (is_gone || may_write(process))
            })
            .collect();
        (!its.is_empty()).then(|| its[index.index(its.len())])
    }

    fn claim(&self, spec: &Spec, session: &SessionSpec, files: &Session<'_>, claim: &ClaimSpec) {
        let agent = session.agent;
        let named = self.named(spec, session, claim);
        let process = named.map(|at| &self.processes[at].process);
        let ticks_of = |process: &whosup_process::Process| process.stamp.to_string().parse();
        let (pid, ticks) = match (&claim.who, process) {
            (Who::Process(_), Some(process)) => (process.pid.get(), ticks_of(process).unwrap()),
            (Who::Predecessor(_), Some(process)) => {
                (process.pid.get(), ticks_of(process).unwrap() - 7)
            }
            (Who::Gone(pid), _) => (*pid, 12_345_u64),
            (_, None) => (39_999, 12_345),
        };
        let scope = Recorded::initial();
        let boot = whosup_process::Backend::scope(&scope).boot.unwrap();
        let said = Claim {
            pid,
            ticks: Some(ticks),
            boot: boot.as_str(),
            pid_namespace: PidNamespace::INITIAL.0,
            host: if claim.is_other_host {
                "elsewhere"
            } else {
                "devbox"
            },
            at_ms: self.said_at_ms(claim, process),
        };
        let kind = named.map_or(Kind::Interactive, |at| spec.processes[at].kind);
        match (agent, claim.form) {
            (Agent::ClaudeCode, Form::Registry) => files.claim_claude_code(&said, &json!({})),
            (Agent::ClaudeCode, Form::Sidecar) => {
                let silent = json!({ "status": null, "entrypoint": "sdk-cli" });
                let undated = Claim {
                    ticks: None,
                    ..said
                };
                files.claim_claude_code(&undated, &silent);
            }
            (Agent::ClaudeCode, Form::Lock) => {
                files.claim_claude_code(&said, &json!({ "kind": "bg" }));
            }
            (Agent::QwenCode, Form::Registry) => {
                let word = if kind == Kind::Host { "daemon" } else { "tui" };
                files.claim_qwen_code(&said, word);
            }
            (Agent::QwenCode, Form::Sidecar) => files.sidecar_qwen_code(&said),
            (Agent::QwenCode, Form::Lock) => files.lock_qwen_code(&said),
            (Agent::KimiCli | Agent::Codex, _) => files.sidecar_kimi_cli(&said),
        }
    }

    /// When a claim was made. What had the PID before made it before the process
    /// that has it now began.
    fn said_at_ms(&self, claim: &ClaimSpec, process: Option<&whosup_process::Process>) -> i64 {
        let said_at_ms = self.now_ms - claim.at_minutes_ago * MINUTE_MS;
        let began = process.and_then(|process| process.began_at_ms.clone().ok());
        match (&claim.who, began) {
            (Who::Predecessor(_), Some(began)) => said_at_ms.min(began - MINUTE_MS),
            _ => said_at_ms,
        }
    }

    /// Lets a process of Codex hold what it does of a thread.
    fn hold(
        &mut self,
        spec: &Spec,
        session: &SessionSpec,
        files: &Session<'_>,
        claim: &ClaimSpec,
        rollout: Option<&Path>,
    ) {
        let holder = match claim.who {
            Who::Process(_) => self.named(spec, session, claim),
            Who::Predecessor(_) | Who::Gone(_) => None,
        };
        let mut held = Vec::new();
        if claim.form != Form::Sidecar {
            let lock = LockKind::Flock { is_exclusive: true };
            held.push((files.lock_codex(), vec![lock]));
        }
        if claim.form != Form::Lock {
            held.extend(rollout.map(|path| (path.to_owned(), Vec::new())));
        }
        let Some(at) = holder else { return };
        for (path, locks) in held {
            let file = file_id(&path);
            // A thread has one holder at a time.
            let is_held = self.processes.iter().any(|process| {
                let open = process.open_files.as_ref();
                open.is_ok_and(|open| open.iter().any(|holder| holder.file == file))
            });
            if !is_held {
                let process = self.processes[at].clone();
                self.processes[at] = process.holds(file, Access::ReadWrite, locks);
            }
        }
    }

    fn machine(&self) -> Machine {
        let view = View {
            booted_at_ms: Ok(self.now_ms - UPTIME_MS),
            uid: Ok(rustix::process::geteuid().as_raw()),
            ..whosup_process::Backend::view(&Recorded::initial())
        };
        let mut table = Recorded::initial().with_view(view);
        for process in &self.processes {
            table = table.with(process.clone());
        }
        Machine::new(
            Environment::new(Some(self.home.clone()), Some(self.home.clone()), []),
            self.now_ms,
            ProcessTable::look(Arc::new(table)),
            Mounts::parse(b"27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"),
            Arc::new(NoCommands),
        )
    }

    /// What is said of every session of a look, by session.
    pub fn said(&self, depth: Depth) -> BTreeMap<SessionKey, Said> {
        let scope = Scope {
            depth,
            ..Scope::default()
        };
        let machine = self.machine();
        let snapshot = scan(&machine, &scope).snapshot;
        let said = |session: &whosup_core::sessions::session::Session| {
            let is_its = |process: &&Unattributed| {
                process.process.agent == session.key.agent
                    && process.candidates.contains(&session.key.session)
            };
            let may_serve = snapshot.unattributed.iter().filter(is_its);
            Said {
                verdict: format!("{:?}", session.verdict),
                evidence: format!("{:?}", session.evidence),
                may_be_served_by: may_serve.map(|one| one.process.process.pid.get()).collect(),
            }
        };
        let sessions = snapshot.sessions.iter();
        sessions
            .map(|session| (session.key.clone(), said(session)))
            .collect()
    }

    /// Every session of a look at everything, and the same where nothing is settled
    /// before everything was looked at.
    pub fn settled_early_and_at_once(&self) -> [String; 2] {
        let scope = Scope {
            depth: Depth::All,
            ..Scope::default()
        };
        let machine = self.machine();
        let looks = [scan(&machine, &scope), scan_at_once(&machine, &scope)];
        looks.map(|scanned| format!("{:#?}", scanned.snapshot.sessions))
    }

    /// The live sessions of a look.
    pub fn live_rows(&self, depth: Depth) -> Vec<LiveRow> {
        let scope = Scope {
            depth,
            ..Scope::default()
        };
        let machine = self.machine();
        let scanned = scan(&machine, &scope);
        let sessions = scanned.snapshot.sessions.iter();
        let live = sessions.filter(|session| session.liveness() == Liveness::Live);
        let mut rows: Vec<LiveRow> = live
            .map(|session| LiveRow {
                agent: session.key.agent.to_string(),
                session: session.key.session.to_string(),
                home: session.key.home.to_path_buf(),
                verdict: format!("{:?}", session.verdict),
                owner: session.owner.as_ref().map(|owner| owner.pid.get()),
            })
            .collect();
        rows.sort();
        rows
    }
}

/// qwen-code's folders change with what comes into them. All files of a world
/// come at once, so the folders are dated as if they had come when they say:
/// those where a record and the newest sidecar agree, with that sidecar; the
/// others in the past.
fn date_chats(home: &Path) {
    let entries = |path: &Path| -> Vec<PathBuf> {
        let listed = std::fs::read_dir(path).into_iter().flatten();
        listed.map(|entry| entry.unwrap().path()).collect()
    };
    let read = |path: &Path| -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    };
    let records: Vec<_> = entries(&home.join("sessions"))
        .iter()
        .map(|path| read(path))
        .collect();
    for project in entries(&home.join("projects")) {
        let chats = project.join("chats");
        let sidecars = entries(&chats).into_iter();
        let sidecars = sidecars.filter(|path| path.to_string_lossy().ends_with(".runtime.json"));
        let mut said: Vec<_> = sidecars.map(|path| (read(&path), path)).collect();
        said.sort_by_key(|(sidecar, _)| (sidecar["started_at"].as_f64().unwrap() * 1000.0) as i64);
        let dates = said.iter().rev().map(|(sidecar, _)| &sidecar["started_at"]);
        let is_one_newest = dates
            .take(2)
            .collect::<std::collections::HashSet<_>>()
            .len()
            == 2;
        let newest = said.last().filter(|(sidecar, _)| {
            (is_one_newest || said.len() == 1)
                && records.iter().any(|record| {
                    record["pid"] == sidecar["pid"] && record["sessionId"] == sidecar["session_id"]
                })
        });
        let at_ms = newest.map_or(0, |(_, path)| {
            use std::os::unix::fs::MetadataExt as _;
            let changed = std::fs::metadata(path).unwrap();
            changed.ctime() * 1000 + changed.ctime_nsec() / 1_000_000
        });
        if chats.is_dir() {
            set_modified(&chats, at_ms);
        }
    }
}

fn id(session: &SessionSpec, number: usize, now_ms: i64) -> String {
    match session.agent {
        Agent::Codex => codex_id(now_ms - session.born_minutes_ago * MINUTE_MS, number),
        Agent::ClaudeCode | Agent::QwenCode | Agent::KimiCli => uuid(number + 1),
    }
}

/// The session that a process is to take up: any of its agent's, whether
/// it can be found from there or not.
fn named_by_arguments<'a>(
    spec: &Spec,
    process: &ProcessSpec,
    ids: &'a [String],
) -> Option<&'a str> {
    let its: Vec<&String> = spec
        .sessions
        .iter()
        .zip(ids)
        .filter(|(session, _)| session.agent == process.agent)
        .map(|(_, id)| id)
        .collect();
    let index = process.names.filter(|_| !its.is_empty())?;
    Some(its[index.index(its.len())])
}

pub fn work_dir(home: &Path, number: usize) -> PathBuf {
    home.join(format!("src/app{number}"))
}

/// The first home is where the agent has it by default; the others are known
/// only to processes that are given them.
pub fn agent_home(home: &Path, agent: Agent, number: usize) -> PathBuf {
    assert!(number < HOMES);
    let name = match agent {
        Agent::ClaudeCode => ".claude",
        Agent::Codex => ".codex",
        Agent::QwenCode => ".qwen",
        Agent::KimiCli => ".kimi",
    };
    if number == 0 {
        home.join(name)
    } else {
        home.join(format!("other{number}")).join(name)
    }
}

fn file_id(path: &Path) -> FileId {
    use std::os::unix::fs::MetadataExt as _;
    let metadata = std::fs::metadata(path).unwrap();
    FileId {
        device: metadata.dev(),
        inode: metadata.ino(),
    }
}
