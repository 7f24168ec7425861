//! A home with dead and live sessions of four agents, in one or two sizes.
//!
//! Claude Code and qwen-code keep the sessions of a project in one folder,
//! kimi-cli and Copilot CLI have a folder for each session.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, anyhow};
use serde_json::json;
use tempfile::TempDir;
use whosup_process::{Pid, Process, system_backend};

use crate::copilot;
use crate::disk::{Claim, Session, kimi_cli_logged, uuid};
use crate::pose::{Pose, Poses};
use crate::setting::Setting;

/// How many directories have been worked in.
const DIRECTORIES: usize = 200;
/// Where the numbers of live sessions begin.
const FIRST_LIVE: usize = 0x7000_0000;
/// The PIDs that dead sessions had, each its own, begin here: no kernel gives out so
/// large ones (`PID_MAX_LIMIT`).
const FIRST_DEAD_PID: i32 = 5_000_000;
/// How long ago dead sessions were, in milliseconds: three days.
const LONG_AGO_MS: i64 = 3 * 24 * 60 * 60 * 1000;

/// The agents, by the places of their numbers in a [`Plan`].
const AGENTS: [Agent; 4] = [
    Agent::ClaudeCode,
    Agent::QwenCode,
    Agent::KimiCli,
    Agent::Copilot,
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Agent {
    ClaudeCode,
    QwenCode,
    KimiCli,
    Copilot,
}

impl Agent {
    const fn home(self) -> &'static str {
        match self {
            Self::ClaudeCode => ".claude",
            Self::QwenCode => ".qwen",
            Self::KimiCli => ".kimi",
            Self::Copilot => ".copilot",
        }
    }

    /// Where its program lies, how it is called, and the name that it takes.
    const fn program(self) -> (&'static str, &'static [&'static str], Option<&'static str>) {
        match self {
            Self::ClaudeCode => (
                "opt/@anthropic-ai/claude-code/bin/claude.exe",
                &["claude"],
                Some("claude"),
            ),
            Self::QwenCode => (
                "opt/node/bin/node",
                &["node", "/usr/lib/node_modules/@qwen-code/qwen-code/cli.js"],
                None,
            ),
            Self::KimiCli => (
                "opt/python/bin/python3.13",
                &["python3.13", "/usr/local/bin/kimi"],
                None,
            ),
            Self::Copilot => (
                "opt/@github/copilot-linux-x64/copilot",
                &["copilot"],
                Some("MainThread"),
            ),
        }
    }
}

/// What a world is made of; numbers by agent.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// The dead sessions of each size.
    pub(crate) sizes: Vec<[usize; 4]>,
    /// The live sessions.
    pub(crate) live: [usize; 4],
    /// Dead sessions have transcripts, not only sidecars.
    pub(crate) has_transcripts: bool,
    /// Live sessions work where dead ones did.
    pub(crate) is_beside: bool,
}

/// A home whose dead sessions are exchanged while its live ones stay.
#[derive(Debug)]
pub(crate) struct World {
    directory: TempDir,
    root: PathBuf,
    plan: Plan,
    /// The size that is in place.
    shown: Option<usize>,
    processes: Poses,
    live: BTreeMap<String, i32>,
    setting: Setting,
}

impl World {
    /// Makes all sizes, and starts the processes. Shows the first size.
    pub(crate) fn make(setting: &Setting, plan: Plan) -> anyhow::Result<Self> {
        let directory = tempfile::Builder::new().prefix("whosup-bench-").tempdir()?;
        let root = directory.path().canonicalize()?;
        let mut world = Self {
            directory,
            root,
            plan: plan.clone(),
            shown: None,
            processes: Poses::default(),
            live: BTreeMap::new(),
            setting: setting.clone(),
        };
        fs::create_dir(world.home())?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
        let now_ms = i64::try_from(now.as_millis())?;
        for (size, counts) in plan.sizes.iter().enumerate() {
            for agent in AGENTS {
                fs::create_dir_all(world.agent_home(size, agent))?;
            }
            world.write_dead(size, counts, now_ms)?;
        }
        let mut number = 0;
        for (agent, count) in AGENTS.into_iter().zip(plan.live) {
            for _ in 0..count {
                world.start(agent, number)?;
                number += 1;
            }
        }
        world.show(0)?;
        Ok(world)
    }

    /// The temporary directory.
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The user's home.
    pub(crate) fn home(&self) -> PathBuf {
        self.root.join("dev")
    }

    /// The live sessions and their processes.
    pub(crate) fn live(&self) -> &BTreeMap<String, i32> {
        &self.live
    }

    /// The processes of the live sessions, in the order in which they were started.
    pub(crate) fn take_processes(&mut self) -> Poses {
        std::mem::take(&mut self.processes)
    }

    /// The records of the live sessions of Claude Code.
    pub(crate) fn claude_records(&self) -> anyhow::Result<Vec<(String, PathBuf)>> {
        let folder = self.home().join(".claude/sessions");
        let records = self.live.iter().map(|(id, pid)| {
            let path = folder.join(format!("{pid}.json"));
            (id.clone(), path)
        });
        let records: Vec<_> = records.filter(|(_, path)| path.exists()).collect();
        anyhow::ensure!(!records.is_empty(), "no live session has a record");
        Ok(records)
    }

    /// Puts one size in place.
    pub(crate) fn show(&mut self, size: usize) -> anyhow::Result<()> {
        self.setting.go_on()?;
        if self.shown == Some(size) {
            return Ok(());
        }
        for agent in AGENTS {
            let here = self.home().join(agent.home());
            if let Some(shown) = self.shown {
                fs::rename(&here, self.agent_home(shown, agent))?;
            }
            fs::rename(self.agent_home(size, agent), &here)?;
        }
        self.shown = Some(size);
        Ok(())
    }

    /// Where an agent's home of one size lies while it is not in place.
    fn agent_home(&self, size: usize, agent: Agent) -> PathBuf {
        self.root.join(format!("size{size}")).join(agent.home())
    }

    fn work_dir(&self, number: usize) -> PathBuf {
        self.root.join(format!("work/project{number:03}"))
    }

    /// Dead sessions: each has its transcript and, where that stays behind,
    /// its sidecar.
    fn write_dead(&self, size: usize, counts: &[usize; 4], now_ms: i64) -> anyhow::Result<()> {
        let born_at_ms = now_ms - LONG_AGO_MS;
        let host = system_backend().scope().host;
        let host = host.map(|host| host.0).unwrap_or_default();
        let mut number = 0;
        for (agent, count) in AGENTS.into_iter().zip(counts) {
            let home = self.agent_home(size, agent);
            for of_agent in 0..*count {
                self.setting.go_on()?;
                let session = Session {
                    home: &home,
                    id: &uuid(number),
                    work_dir: &self.work_dir(of_agent % DIRECTORIES),
                    born_at_ms,
                    last_at_ms: born_at_ms + 60_000,
                };
                let claim = Claim {
                    host: &host,
                    ..claim(FIRST_DEAD_PID + i32::try_from(number)?, None, born_at_ms)
                };
                number += 1;
                if self.plan.has_transcripts {
                    write_transcript(agent, &session);
                }
                match agent {
                    Agent::ClaudeCode | Agent::Copilot => {}
                    Agent::QwenCode => session.sidecar_qwen_code(&claim),
                    Agent::KimiCli => session.sidecar_kimi_cli(&claim),
                }
            }
        }
        Ok(())
    }

    /// Starts a process that poses as an agent, and writes its session into
    /// every size.
    fn start(&mut self, agent: Agent, number: usize) -> anyhow::Result<()> {
        let place = if self.plan.is_beside {
            number
        } else {
            DIRECTORIES + number
        };
        let work_dir = self.work_dir(place);
        fs::create_dir_all(&work_dir)?;
        let id = uuid(FIRST_LIVE + number);
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
        let now_ms = i64::try_from(now.as_millis())?;
        let mut holds = Vec::new();
        if agent == Agent::Copilot {
            for size in 0..self.plan.sizes.len() {
                let home = self.agent_home(size, agent);
                let folder = copilot::folder(&home, &id);
                fs::create_dir_all(&folder)?;
                fs::create_dir_all(home.join("logs"))?;
                holds.push(folder.join("inuse.{pid}.hold"));
                holds.push(copilot::log(&home, now_ms));
            }
        }
        let (program, argv, name) = agent.program();
        let child = Pose {
            program: &self.root.join(program),
            argv,
            work_dir: &work_dir,
            home: &self.home(),
            name,
            holds: &holds,
        }
        .start()?;
        let process = process_of(child.id());
        self.processes.0.push(child);
        let process = process?;
        let began_at_ms = process.began_at_ms.clone();
        let began_at_ms =
            began_at_ms.map_err(|reason| anyhow!("cannot tell the time: {reason}"))?;
        let pid = process.pid.get();
        self.live.insert(id.clone(), pid);
        for size in 0..self.plan.sizes.len() {
            let session = Session {
                home: &self.agent_home(size, agent),
                id: &id,
                work_dir: &work_dir,
                born_at_ms: began_at_ms,
                last_at_ms: began_at_ms,
            };
            write_transcript(agent, &session);
            if agent == Agent::KimiCli {
                log_kimi_cli(&session)?;
            }
            if agent == Agent::Copilot {
                copilot::claim(&session, pid, now_ms);
                let open: Vec<String> = self.live.keys().cloned().collect();
                copilot::write_open(session.home, &open, now_ms);
            } else {
                write_claims(agent, &session, &process, began_at_ms)?;
            }
        }
        Ok(())
    }
}

fn write_transcript(agent: Agent, session: &Session<'_>) {
    match agent {
        Agent::ClaudeCode => session.write_claude_code(),
        Agent::QwenCode => session.write_qwen_code(),
        Agent::KimiCli => session.write_kimi_cli(),
        Agent::Copilot => copilot::write_session(session),
    }
}

/// Adds what kimi-cli logs when it makes a session.
fn log_kimi_cli(session: &Session<'_>) -> anyhow::Result<()> {
    let logs = session.home.join("logs");
    fs::create_dir_all(&logs)?;
    let mut log = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(logs.join("kimi.log"))?;
    let line = kimi_cli_logged(session.born_at_ms, "Created new", session.id);
    log.write_all(line.as_bytes())?;
    Ok(())
}

/// Writes what a running process says of itself.
fn write_claims(
    agent: Agent,
    session: &Session<'_>,
    process: &Process,
    began_at_ms: i64,
) -> anyhow::Result<()> {
    let stamp: u64 = process.stamp.to_string().parse()?;
    let scope = system_backend().scope();
    let host = scope.host.map(|host| host.0).unwrap_or_default();
    let boot = scope.boot.map(|boot| boot.as_str().to_owned());
    let boot = boot.map_err(|reason| anyhow!("cannot tell this boot: {reason}"))?;
    let namespace = scope.pid_namespace;
    let namespace = namespace.map_err(|reason| anyhow!("cannot tell whose PIDs: {reason}"))?;
    let said = Claim {
        host: &host,
        boot: &boot,
        pid_namespace: namespace.0,
        ..claim(process.pid.get(), Some(stamp), began_at_ms)
    };
    match agent {
        Agent::ClaudeCode => session.claim_claude_code(&said, &json!({})),
        Agent::QwenCode => {
            session.claim_qwen_code(&said, "tui");
            session.sidecar_qwen_code(&said);
        }
        Agent::KimiCli => session.sidecar_kimi_cli(&said),
        Agent::Copilot => {}
    }
    Ok(())
}

fn process_of(pid: u32) -> anyhow::Result<Process> {
    let pid = Pid::new(i64::from(pid))?;
    let process = system_backend().probe(pid)?;
    process.with_context(|| format!("process {pid} has ended"))
}

fn claim(pid: i32, ticks: Option<u64>, at_ms: i64) -> Claim<'static> {
    Claim {
        pid,
        ticks,
        boot: "",
        pid_namespace: 0,
        host: "",
        at_ms,
    }
}
