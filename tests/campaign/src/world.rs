//! A world: a home, directories, processes that pose as agents, and their
//! sessions, as somebody would know them who had watched all of it.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use serde_json::{Value, json};

use crate::actor::{Actor, Setting, start};
use crate::agents::{Agent, Task};
use crate::chance::Chance;

/// How many directories a world has to work in.
pub(crate) const DIRECTORIES: usize = 3;

/// One world.
pub(crate) struct World {
    pub(crate) chance: Chance,
    /// Everything of this world lies below it.
    pub(crate) root: PathBuf,
    /// The home, as processes and files name it.
    pub(crate) home: PathBuf,
    /// Other names of the same home.
    pub(crate) other_homes: Vec<PathBuf>,
    pub(crate) directories: Vec<WorkDir>,
    pub(crate) processes: Vec<Process>,
    pub(crate) sessions: Vec<Session>,
    /// Hooks that are still under way.
    pub(crate) late: Vec<Late>,
    /// The hook of a start that the next one overtakes.
    pub(crate) overtaken: Option<Late>,
    /// The agents that have hooks set.
    pub(crate) hooked: Vec<&'static str>,
    pub(crate) whosup: PathBuf,
    /// Which process wrote a file that says what it serves.
    pub(crate) claims: BTreeMap<String, usize>,
    /// Files were damaged: problems are expected.
    pub(crate) is_damaged: bool,
    pub(crate) host: String,
    pub(crate) boot: String,
    /// What has happened, for a reader.
    pub(crate) story: Vec<String>,
}

/// A directory to work in.
#[derive(Debug, Clone)]
pub(crate) struct WorkDir {
    /// Where it was made.
    pub(crate) path: PathBuf,
    /// When it was made.
    pub(crate) made_ms: i64,
    /// Where it is now, if anywhere.
    pub(crate) now: Option<PathBuf>,
    /// It was renamed, deleted or made again.
    pub(crate) is_moved: bool,
}

/// Whether a process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Running,
    Stopped,
    /// It executes another program now.
    Another,
    Zombie,
    Gone,
}

/// A process that poses as an agent, with those above it.
pub(crate) struct Process {
    pub(crate) agent: &'static dyn Agent,
    pub(crate) actors: Vec<Actor>,
    pub(crate) directory: usize,
    pub(crate) work_dir: PathBuf,
    pub(crate) state: State,
    pub(crate) began_ms: i64,
    /// The session that it serves.
    pub(crate) current: Option<usize>,
    pub(crate) is_headless: bool,
    /// What its hooks said last that it serves.
    pub(crate) heard: Option<usize>,
    /// What its arguments show, until it leaves that.
    pub(crate) named: Option<usize>,
    /// What its arguments show, also once it has left that.
    pub(crate) argument: Option<usize>,
    /// It changed sessions and left no trace of that yet: nobody can know.
    pub(crate) is_silent: bool,
    /// The sessions that it left since it last left a trace of what it serves.
    pub(crate) left: Vec<usize>,
    /// It has yet to write what its agent writes at launch.
    pub(crate) is_settling: bool,
    /// The file by which its session is known was damaged.
    pub(crate) is_damaged: bool,
    pub(crate) is_nested: bool,
    /// What the agent remembers.
    pub(crate) notes: BTreeMap<&'static str, String>,
}

/// A session.
pub(crate) struct Session {
    pub(crate) agent: &'static dyn Agent,
    pub(crate) id: String,
    pub(crate) directory: usize,
    pub(crate) work_dir: PathBuf,
    pub(crate) born_ms: i64,
    /// When something was last written of it.
    pub(crate) last_ms: i64,
    /// Something on disk names it.
    pub(crate) is_on_disk: bool,
    pub(crate) prompts: usize,
    /// What it is served by is on another machine, or was before a reboot.
    pub(crate) elsewhere: Option<Elsewhere>,
    /// A process in another PID namespace served it once.
    pub(crate) was_nested: bool,
}

/// Where a session is served that no process here ever served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Elsewhere {
    AnotherHost,
    AnotherBoot,
}

/// A hook that has yet to run.
pub(crate) struct Late {
    pub(crate) process: usize,
    pub(crate) session: usize,
    pub(crate) command: String,
    pub(crate) payload: String,
}

/// When a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It says that the process has taken up the session.
    Start,
    /// It says that the session is left.
    End,
    /// It may come late: a turn or a tool has ended.
    Trailing,
    Other,
}

impl Process {
    pub(crate) fn pid(&self) -> i32 {
        self.actors.last().map_or(0, |actor| actor.pid)
    }

    pub(crate) const fn is_alive(&self) -> bool {
        matches!(self.state, State::Running | State::Stopped)
    }

    pub(crate) fn order(&mut self, order: &Value) -> anyhow::Result<Value> {
        let actor = self.actors.last_mut().context("a process was started")?;
        actor.order(order)
    }

    pub(crate) fn main(&self) -> anyhow::Result<&Actor> {
        self.actors.last().context("a process was started")
    }
}

impl World {
    /// Makes the home and the directories below `root`.
    pub(crate) fn make(root: &Path, whosup: &Path) -> anyhow::Result<Self> {
        let root = root.canonicalize()?;
        let home = root.join("home");
        fs::create_dir_all(&home)?;
        let mut directories = Vec::new();
        for number in 0..DIRECTORIES {
            let path = root.join(format!("work/app_{number}.v1"));
            fs::create_dir_all(&path)?;
            directories.push(WorkDir {
                now: Some(path.clone()),
                path,
                made_ms: now_ms(),
                is_moved: false,
            });
        }
        install(&root.join("init"), &root)?;
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
        let host = fs::read_to_string("/proc/sys/kernel/hostname")?;
        Ok(Self {
            chance: Chance::new(&[]),
            home,
            other_homes: Vec::new(),
            directories,
            processes: Vec::new(),
            sessions: Vec::new(),
            late: Vec::new(),
            overtaken: None,
            hooked: Vec::new(),
            whosup: whosup.to_owned(),
            claims: BTreeMap::new(),
            is_damaged: false,
            host: host.trim().to_owned(),
            boot: boot.trim().to_owned(),
            story: Vec::new(),
            root,
        })
    }

    /// Starts a process of an agent, and lets it do what the agent does first.
    pub(crate) fn start(
        &mut self,
        agent: &'static dyn Agent,
        directory: usize,
        task: &Task,
        has_terminal: bool,
        nested: Option<Option<String>>,
    ) -> anyhow::Result<usize> {
        let place = self.directories.get(directory).context("a directory")?;
        let work_dir = place.now.clone().context("a directory that is there")?;
        let programs = agent.programs(&self.tools(), task, self);
        for program in &programs {
            install(&program.executable, &self.root)?;
        }
        let setting = Setting {
            home: self.home.clone(),
            work_dir: work_dir.clone(),
            has_terminal,
            nested: nested.clone(),
        };
        let actors = start(&programs, &setting, &self.root)?;
        let at = self.processes.len();
        let named = if agent.habits().hides_arguments {
            None
        } else {
            task.named()
        };
        self.processes.push(Process {
            agent,
            actors,
            directory,
            work_dir,
            state: State::Running,
            began_ms: now_ms(),
            current: task.named(),
            is_headless: task.is_headless(),
            heard: None,
            named,
            argument: named,
            is_silent: false,
            left: Vec::new(),
            is_settling: false,
            is_damaged: false,
            is_nested: nested.is_some(),
            notes: BTreeMap::new(),
        });
        agent.launch(self, at, task)?;
        Ok(at)
    }

    /// A new session of a process, which leaves the one it had.
    pub(crate) fn bear(&mut self, process: usize, id: String) -> anyhow::Result<usize> {
        let at = self.sessions.len();
        let owner = self.process(process)?;
        owner.current = Some(at);
        if owner.named != Some(at) {
            owner.named = None;
        }
        let (agent, directory) = (owner.agent, owner.directory);
        let was_nested = owner.is_nested;
        let work_dir = owner.work_dir.clone();
        self.sessions.push(Session {
            agent,
            id,
            directory,
            work_dir,
            born_ms: now_ms(),
            last_ms: now_ms(),
            is_on_disk: false,
            prompts: 0,
            elsewhere: None,
            was_nested,
        });
        Ok(at)
    }

    pub(crate) fn process(&mut self, at: usize) -> anyhow::Result<&mut Process> {
        self.processes
            .get_mut(at)
            .context("a process of this world")
    }

    pub(crate) fn session(&mut self, at: usize) -> anyhow::Result<&mut Session> {
        self.sessions.get_mut(at).context("a session of this world")
    }

    /// What an agent needs to write about the session that a process serves.
    pub(crate) fn scene(&mut self, process: usize) -> anyhow::Result<Scene> {
        let owner = self.process(process)?;
        let actor = owner.main()?;
        let (pid, stamp, namespace) = (actor.own_pid, actor.stamp, actor.pid_namespace);
        let (is_headless, began_ms) = (owner.is_headless, owner.began_ms);
        let current = owner.current.context("it serves a session")?;
        let session = self.session(current)?;
        Ok(Scene {
            session: current,
            id: session.id.clone(),
            work_dir: text(&session.work_dir),
            born_ms: session.born_ms,
            is_first_prompt: session.prompts == 0,
            prompts: session.prompts,
            pid,
            stamp,
            namespace,
            is_headless,
            began_ms,
            now_ms: now_ms(),
        })
    }

    /// Counts a prompt; from now on the session is on disk.
    pub(crate) fn prompted(&mut self, process: usize) -> anyhow::Result<()> {
        let owner = self.process(process)?;
        owner.is_silent = false;
        let current = owner.current.context("it serves a session")?;
        owner.main()?.type_key()?;
        let session = self.session(current)?;
        session.prompts += 1;
        session.last_ms = now_ms();
        session.is_on_disk = true;
        Ok(())
    }

    /// Runs a hook of a process, or keeps it for later.
    pub(crate) fn tell(
        &mut self,
        process: usize,
        session: usize,
        kind: Kind,
        event: &str,
        extra: &Value,
    ) -> anyhow::Result<()> {
        let home = self.home.clone();
        let owner = self.process(process)?;
        let agent = owner.agent;
        let cwd = owner.work_dir.clone();
        let is_running = owner.state == State::Running;
        if !self.hooked.contains(&agent.id()) || !is_running {
            return Ok(());
        }
        let session_of = self.session(session)?;
        let id = session_of.id.clone();
        let (argument, mut payload) = agent.hook(&home, &id, event, &text(&cwd));
        for (key, value) in extra.as_object().into_iter().flatten() {
            payload[key] = value.clone();
        }
        let command = format!("{} hook {} {argument}", self.whosup.display(), agent.id());
        let hook = Late {
            process,
            session,
            command,
            payload: payload.to_string(),
        };
        if kind == Kind::Trailing && self.chance.percent(25) {
            self.story.push(format!("  (late: {event} of {id})"));
            self.late.push(hook);
            return Ok(());
        }
        if kind == Kind::End && self.chance.percent(8) {
            self.story.push(format!("  (never run: {event} of {id})"));
            return Ok(());
        }
        let is_first = self.overtaken.is_none();
        self.catch_up(&hook, kind)?;
        if kind == Kind::Start && is_first && self.chance.percent(16) {
            self.story.push(format!("  (overtaken: {event} of {id})"));
            self.overtaken = Some(hook);
            return self.trail_behind(process);
        }
        self.run_hook(&hook)?;
        if self.chance.percent(6) {
            self.run_hook(&hook)?;
        }
        self.hear(process, session, kind)
    }

    /// Runs the late hooks of a process, as often as not: they then come after the end of its
    /// session and before anything of the next one.
    fn trail_behind(&mut self, process: usize) -> anyhow::Result<()> {
        if self.chance.percent(50) {
            return Ok(());
        }
        for hook in self
            .late
            .extract_if(.., |hook| hook.process == process)
            .collect::<Vec<_>>()
        {
            self.story.push(format!("  (at last: {})", hook.payload));
            self.run_hook(&hook)?;
        }
        Ok(())
    }

    /// Runs the hook that was overtaken: after this one if that is of the same
    /// session, else before it.
    fn catch_up(&mut self, next: &Late, kind: Kind) -> anyhow::Result<()> {
        let Some(held) = self.overtaken.take_if(|held| held.process == next.process) else {
            return Ok(());
        };
        if kind == Kind::Other && held.session == next.session {
            self.run_hook(next)?;
        }
        self.run_hook(&held)?;
        self.hear(held.process, held.session, Kind::Start)
    }

    /// What hooks have said of a process.
    fn hear(&mut self, process: usize, session: usize, kind: Kind) -> anyhow::Result<()> {
        let owner = self.process(process)?;
        match kind {
            Kind::Start => {
                owner.heard = Some(session);
                owner.is_silent = false;
            }
            Kind::End if owner.heard == Some(session) => owner.heard = None,
            _ => {}
        }
        self.session(session)?.is_on_disk = true;
        Ok(())
    }

    /// Runs a hook below its process, if that still runs.
    pub(crate) fn run_hook(&mut self, hook: &Late) -> anyhow::Result<()> {
        let home = self.home_by_some_name();
        let owner = self.process(hook.process)?;
        if owner.state != State::Running {
            return Ok(());
        }
        owner.order(&json!({
            "do": "hook", "command": hook.command, "payload": hook.payload, "home": home,
        }))?;
        Ok(())
    }

    /// The home, by one of its names.
    pub(crate) fn home_by_some_name(&mut self) -> PathBuf {
        let mut names = vec![self.home.clone()];
        names.extend(self.other_homes.iter().cloned());
        self.chance.pick(&names).cloned().unwrap_or_default()
    }

    /// Where programs are installed.
    pub(crate) fn tools(&self) -> PathBuf {
        self.root.join("tools")
    }

    /// Writes a file below the home, by renaming as agents do.
    pub(crate) fn write(&self, below_home: &str, content: &str) -> anyhow::Result<()> {
        let path = self.home.join(below_home);
        write(&path, content)
    }

    /// Appends records to a file below the home.
    pub(crate) fn append(&self, below_home: &str, records: &[Value]) -> anyhow::Result<()> {
        append(&self.home.join(below_home), records)
    }

    /// Writes the file that says what a process serves. Whose file it was, with
    /// the same PID in another PID namespace, has none any more.
    pub(crate) fn claim(
        &mut self,
        process: usize,
        below_home: &str,
        content: &str,
    ) -> anyhow::Result<()> {
        self.write(below_home, content)?;
        let before = self.claims.insert(below_home.to_owned(), process);
        if let Some(before) = before.filter(|before| *before != process) {
            self.process(before)?.is_damaged = true;
        }
        let owner = self.process(process)?;
        owner.is_damaged = false;
        if let Some(current) = owner.current {
            self.session(current)?.last_ms = now_ms();
        }
        Ok(())
    }

    /// Removes the file of a process, whoever wrote it last.
    pub(crate) fn unclaim(&mut self, process: usize, below_home: &str) -> anyhow::Result<()> {
        self.remove(below_home);
        let before = self.claims.remove(below_home);
        if let Some(before) = before.filter(|before| *before != process) {
            self.process(before)?.is_damaged = true;
        }
        Ok(())
    }

    pub(crate) fn remove(&self, below_home: &str) {
        fs::remove_file(self.home.join(below_home)).ok();
    }
}

/// What an agent needs to write about a session.
#[derive(Debug, Clone)]
pub(crate) struct Scene {
    pub(crate) session: usize,
    pub(crate) id: String,
    pub(crate) work_dir: String,
    pub(crate) born_ms: i64,
    pub(crate) is_first_prompt: bool,
    pub(crate) prompts: usize,
    /// As the process knows itself.
    pub(crate) pid: i32,
    pub(crate) stamp: u64,
    pub(crate) namespace: u64,
    pub(crate) is_headless: bool,
    pub(crate) began_ms: i64,
    pub(crate) now_ms: i64,
}

/// Writes a file beside its place and moves it there.
pub(crate) fn write(path: &Path, content: &str) -> anyhow::Result<()> {
    let folder = path.parent().context("a file lies in a folder")?;
    fs::create_dir_all(folder)?;
    let beside = path.with_extension("0123456789ab.tmp");
    fs::write(&beside, content)?;
    fs::rename(&beside, path).with_context(|| format!("cannot write {}", path.display()))
}

/// Appends records, one on each line.
pub(crate) fn append(path: &Path, records: &[Value]) -> anyhow::Result<()> {
    let folder = path.parent().context("a file lies in a folder")?;
    fs::create_dir_all(folder)?;
    let mut file = OpenOptions::new().append(true).create(true).open(path)?;
    let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
    file.write_all(lines.as_bytes())?;
    Ok(())
}

/// This program under another name.
fn install(executable: &Path, root: &Path) -> anyhow::Result<()> {
    let original = root.join("program");
    if !original.exists() {
        fs::copy("/proc/self/exe", &original)?;
    }
    if !executable.exists() {
        let folder = executable.parent().context("a program lies in a folder")?;
        fs::create_dir_all(folder)?;
        fs::hard_link(&original, executable)?;
    }
    Ok(())
}

pub(crate) fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Now, in milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(0))
}

/// A date as agents write it.
pub(crate) fn date(at_ms: i64) -> String {
    let at = jiff::Timestamp::from_millisecond(at_ms).unwrap_or_default();
    format!("{at:.3}")
}
