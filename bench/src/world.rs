//! A home with dead and live sessions, in two sizes.

use std::collections::HashSet;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, anyhow, bail};
use serde_json::json;
use tempfile::TempDir;
use whosup_process::{Pid, Process, system_backend};

use crate::Place;
use crate::disk::{Claim, Session, uuid};
use crate::pose::POSE;

/// How many directories have been worked in.
const DIRECTORIES: usize = 200;
/// How many live sessions there are of each agent.
const LIVE_PER_AGENT: usize = 10;
/// The agents' homes.
const AGENT_HOMES: [&str; 2] = [".claude", ".qwen"];
/// Where the numbers of live sessions begin.
const FIRST_LIVE: usize = 0x7000_0000;
/// The PID that dead sessions had.
const DEAD_PID: i32 = i32::MAX - 7;
/// How long ago dead sessions were, in milliseconds: three days.
const LONG_AGO_MS: i64 = 3 * 24 * 60 * 60 * 1000;

/// A home whose dead sessions are exchanged while its live ones stay.
#[derive(Debug)]
pub(crate) struct World {
    directory: TempDir,
    root: PathBuf,
    /// The size that is in place.
    shown: Option<usize>,
    processes: Vec<Child>,
    live: HashSet<String>,
    is_interrupted: Arc<AtomicBool>,
}

impl World {
    /// Makes both sizes, and starts the processes.
    pub(crate) fn make(
        counts: [usize; 2],
        place: Place,
        is_interrupted: Arc<AtomicBool>,
    ) -> anyhow::Result<Self> {
        let directory = tempfile::Builder::new().prefix("whosup-bench-").tempdir()?;
        let root = directory.path().canonicalize()?;
        let mut world = Self {
            directory,
            root,
            shown: None,
            processes: Vec::new(),
            live: HashSet::new(),
            is_interrupted,
        };
        fs::create_dir(world.home())?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
        let now_ms = i64::try_from(now.as_millis())?;
        for (size, count) in counts.into_iter().enumerate() {
            world.write_dead(size, count, now_ms)?;
        }
        for number in 0..2 * LIVE_PER_AGENT {
            world.start(number, place)?;
        }
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

    /// How many sessions are live.
    pub(crate) fn live_count(&self) -> usize {
        self.live.len()
    }

    /// Tells whether a session is one of the live ones.
    pub(crate) fn is_live(&self, id: &str) -> bool {
        self.live.contains(id)
    }

    /// Puts one size in place.
    pub(crate) fn show(&mut self, size: usize) -> anyhow::Result<()> {
        self.go_on()?;
        if self.shown == Some(size) {
            return Ok(());
        }
        for name in AGENT_HOMES {
            let here = self.home().join(name);
            if let Some(shown) = self.shown {
                fs::rename(&here, self.agent_home(shown, name))?;
            }
            fs::rename(self.agent_home(size, name), &here)?;
        }
        self.shown = Some(size);
        Ok(())
    }

    /// Where an agent's home of one size lies while it is not in place.
    fn agent_home(&self, size: usize, name: &str) -> PathBuf {
        self.root.join(format!("size{size}")).join(name)
    }

    fn work_dir(&self, number: usize) -> PathBuf {
        self.root.join(format!("work/project{number:03}"))
    }

    /// Half of them are Claude Code's, with a transcript; half are qwen-code's,
    /// with a transcript and the sidecar that stays behind.
    fn write_dead(&self, size: usize, count: usize, now_ms: i64) -> anyhow::Result<()> {
        let homes = AGENT_HOMES.map(|name| self.agent_home(size, name));
        let born_at_ms = now_ms - LONG_AGO_MS;
        let host = system_backend().scope().host;
        let host = host.map(|host| host.0).unwrap_or_default();
        for number in 0..count {
            self.go_on()?;
            let [claude_code, qwen_code] = &homes;
            let is_claude_code = number.is_multiple_of(2);
            let session = Session {
                home: if is_claude_code {
                    claude_code
                } else {
                    qwen_code
                },
                id: &uuid(number),
                work_dir: &self.work_dir(number / 2 % DIRECTORIES),
                born_at_ms,
                last_at_ms: born_at_ms + 60_000,
            };
            if is_claude_code {
                session.write_claude_code();
            } else {
                session.write_qwen_code();
                session.sidecar_qwen_code(&Claim {
                    host: &host,
                    ..claim(DEAD_PID, None, born_at_ms)
                });
            }
        }
        Ok(())
    }

    /// Fails once a signal has come.
    fn go_on(&self) -> anyhow::Result<()> {
        if self.is_interrupted.load(Ordering::Relaxed) {
            bail!("interrupted");
        }
        Ok(())
    }

    /// Starts a process that poses as an agent, and writes its session into
    /// both sizes.
    fn start(&mut self, number: usize, place: Place) -> anyhow::Result<()> {
        let is_claude_code = number.is_multiple_of(2);
        let work_dir = match place {
            Place::Beside => self.work_dir(number),
            Place::Apart => self.work_dir(DIRECTORIES + number),
        };
        fs::create_dir_all(&work_dir)?;
        let (program, argv) = if is_claude_code {
            let program = "opt/@anthropic-ai/claude-code/bin/claude.exe";
            (program, &["claude"][..])
        } else {
            let script = "/usr/lib/node_modules/@qwen-code/qwen-code/cli.js";
            ("opt/node/bin/node", &["node", script][..])
        };
        let process = self.pose(&self.root.join(program), argv, &work_dir)?;
        let id = uuid(FIRST_LIVE + number);
        let stamp: u64 = process.stamp.to_string().parse()?;
        let began_at_ms = process.began_at_ms;
        let began_at_ms =
            began_at_ms.map_err(|reason| anyhow!("cannot tell the time: {reason}"))?;
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
        for size in 0..2 {
            let name = AGENT_HOMES[usize::from(!is_claude_code)];
            let home = self.agent_home(size, name);
            let session = Session {
                home: &home,
                id: &id,
                work_dir: &work_dir,
                born_at_ms: began_at_ms,
                last_at_ms: began_at_ms,
            };
            if is_claude_code {
                session.write_claude_code();
                session.claim_claude_code(&said, &json!({}));
            } else {
                session.write_qwen_code();
                session.claim_qwen_code(&said, "tui");
                session.sidecar_qwen_code(&said);
            }
        }
        self.live.insert(id);
        Ok(())
    }

    fn pose(&mut self, program: &Path, argv: &[&str], work_dir: &Path) -> anyhow::Result<Process> {
        if !program.exists() {
            fs::create_dir_all(program.parent().context("no folder")?)?;
            fs::copy(std::env::current_exe()?, program)?;
        }
        let mut command = Command::new(program);
        command
            .arg0(argv[0])
            .args(&argv[1..])
            .current_dir(work_dir)
            .env_clear()
            .env("HOME", self.home())
            .env(POSE, "1")
            .stdin(Stdio::piped());
        let child = command
            .spawn()
            .with_context(|| format!("cannot run `{}`", program.display()))?;
        let pid = Pid::new(i64::from(child.id()))?;
        self.processes.push(child);
        let process = system_backend().probe(pid)?;
        process.with_context(|| format!("process {pid} has ended"))
    }
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

impl Drop for World {
    fn drop(&mut self) {
        for process in &mut self.processes {
            // One that has ended already is none to end.
            process.kill().ok();
            process.wait().ok();
        }
    }
}
