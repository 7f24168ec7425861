//! The vocabulary of all sources.
//!
//! The folder of each agent implements [`Adapter`]. Adapters and the other sources return a
//! [`Sketch`] of each session, with [claims](claim) ("process P serves session S"),
//! [clues](Clue) about pairs of both, and dated facts of the [phase]. Hooks report
//! [hook events](hook_event).

mod account_limit;
mod agent_process;
pub mod claim;
mod clue;
mod command_line;
mod description;
pub mod hook_event;
mod hooks;
mod live_time;
mod look;
mod matcher;
pub(crate) mod names;
mod options;
pub mod phase;
mod program;
mod runtime;
mod sketch;
mod watched;

use std::path::{Path, PathBuf};

use serde_json::Value;
use whosup_process::{Pid, StartStamp};
use whosup_sidecar::{AgentId, SessionId};

pub use self::account_limit::{AccountLimit, LimitRecord};
pub(crate) use self::agent_process::is_prefix_of;
pub use self::agent_process::{AgentProcess, LaunchedIn, Role};
pub use self::clue::{Clue, ClueKind, Switch, Unclaimed, Visit};
pub use self::command_line::CommandLine;
pub(crate) use self::command_line::{Form, Is, Named};
pub use self::description::{Context, Description, Message, MessageRole, TurnTokens};
pub use self::hooks::{HookCommand, HookTrust, Hooks, SettingsFile, SettingsForm, SettingsPlace};
pub(crate) use self::hooks::{no_session_by_path, session_by_file_stem, started};
pub use self::live_time::LiveTime;
pub use self::look::{AgentScan, Depth, Home, Look};
pub use self::matcher::{LoggedRun, Opening, PlacedRuns, RunStart, Terminal};
pub use self::program::Program;
pub(crate) use self::program::is_cut;
pub use self::runtime::is_runtime_name;
pub(crate) use self::runtime::{NODE_MAIN_THREAD, Run, Runtime};
pub use self::sketch::{KnownClient, Sketch};
pub use self::watched::{WatchPath, Watched};
use crate::adapter::phase::PhaseFact;
use crate::machine::problem::{Found, Problem};
use crate::machine::{Environment, Machine};
use crate::sources::agents::kit::dialect::Dialect;
use crate::sources::usage::Counting;

/// Knows one agent: how to recognize its processes, where its files are, and what they
/// claim.
///
/// Adapters make claims; they never judge. They read, and write nothing.
pub trait Adapter: Send + Sync {
    /// The constants of the agent.
    fn profile(&self) -> &'static Profile;

    /// The session that the agent itself publishes for one of its processes, by PID; `None` if
    /// there is none, or it can't be read.
    fn published_session(&self, _home: &Path, _pid: Pid, _stamp: &StartStamp) -> Option<SessionId> {
        None
    }

    /// The session that this process forked, if the hooks report the original session at its
    /// start; `None` if they don't, or if it forked nothing.
    fn session_forked_by(&self, _home: &Path, _program: &Program<'_>) -> Option<Forked> {
        None
    }

    /// The homes (configuration roots) of a program of this agent that is started with
    /// `environment`, which is ours or a process's. Empty variables count as unset.
    ///
    /// For most agents: what their first variable leads to, else the default place.
    fn homes(&self, environment: &Environment) -> Vec<PathBuf> {
        let profile = self.profile();
        let in_users_home = |user: &Path| user.join(profile.default_home);
        let moved = profile.home_variables.first();
        let moved = moved.map_or_else(Vec::new, |name| environment.readings(name));
        if moved.is_empty() {
            return environment.home().map(in_users_home).into_iter().collect();
        }
        match profile.moves_users_home {
            true => moved.iter().map(|user| in_users_home(user)).collect(),
            false => moved,
        }
    }

    /// The homes that the arguments of a process name; they win over the environment.
    fn homes_named_by(&self, program: &Program<'_>, environment: &Environment) -> Vec<PathBuf> {
        let _ = program;
        self.homes(environment)
    }

    /// The home of a process of this agent that has the file `path` open, if all its processes
    /// keep such a file open. For processes that have blanked their environment.
    fn home_of_open_file(&self, path: &Path) -> Option<PathBuf> {
        let _ = path;
        None
    }

    /// The session that the arguments of a process name: an ID or a prefix. Anything newer wins:
    /// the arguments stay when the process moves on.
    fn session_named_by<'a>(&self, program: &Program<'a>) -> Option<&'a str> {
        self.profile().programs.session(program)
    }

    /// The working directory that the arguments of a process name, where the process may not
    /// have changed to it.
    fn work_dir_named_by(&self, program: &Program<'_>) -> Option<PathBuf> {
        self.profile().programs.directory(program)
    }

    /// The phase that the title of a terminal shows for its session; `None` if it shows none.
    /// The word of the fact stays the same as long as the phase does, whatever moves in the
    /// title. A fact without a phase means that the sign of a turn is missing.
    fn phase_in_title(&self, title: &str) -> Option<PhaseFact> {
        let _ = title;
        None
    }

    /// A terminal's title without the signs of the phase: the name of the session, and what
    /// follows it.
    fn name_in_title<'a>(&self, title: &'a str) -> &'a str {
        title
    }

    /// Reads the claims of one home.
    ///
    /// With [`Depth::Live`] it starts from the processes and from what is keyed
    /// by PID or held, and reads only what these lead to; with [`Depth::All`]
    /// it walks every session on disk.
    ///
    /// For most agents a function does it ([`Profile::scan`]).
    fn scan(&self, look: &Look<'_>, home: &Home) -> Found<AgentScan> {
        (self.profile().scan)(look, home)
    }

    /// Reads a session's title, model and so on from the session's own files.
    /// Called only for sessions that are to be shown.
    ///
    /// For most agents these are in the transcript (the dialect of its profile), or the scan has read
    /// them ([`Sketch::described`]).
    fn describe(&self, sketch: &Sketch) -> Found<Description> {
        let Some(dialect) = self.profile().dialect else {
            return Found::clean(sketch.described.as_deref().cloned().unwrap_or_default());
        };
        let agent = AgentId::from_static(self.profile().id);
        let path = sketch.transcript.as_deref();
        let described = path.and_then(|path| dialect.describe(&agent, path));
        described.unwrap_or_default()
    }

    /// The transcripts that record the usage of a session; for [`Self::counted_records`] all
    /// files of which one changes with the records. What it counts is not kept without these.
    fn counted_files(&self, sketch: &Sketch) -> Vec<PathBuf> {
        sketch.transcript.iter().cloned().collect()
    }

    /// Reads the usage records of sessions from a database, or from a document that is rewritten
    /// at each step: calls `each` with the index of a session in `sketches` and all of its
    /// records, but not for a session without records. `None` if transcripts have the records
    /// ([`Self::counted_files`]).
    fn counted_records(
        &self,
        sketches: &[&Sketch],
        each: &mut dyn FnMut(usize, &[Value]),
    ) -> Option<Vec<Problem>> {
        let _ = (sketches, each);
        None
    }

    /// The account limits that a session recorded last; `None` if it records none.
    fn account_limits(&self, sketch: &Sketch) -> Option<LimitRecord> {
        let _ = sketch;
        None
    }

    /// The last messages of a session, oldest first, at most `messages_max`.
    ///
    /// For most agents these are in the transcript (the dialect of its profile).
    fn messages(&self, sketch: &Sketch, messages_max: usize) -> Found<Vec<Message>> {
        let agent = AgentId::from_static(self.profile().id);
        let dialect = self.profile().dialect;
        let messages = dialect
            .map(|dialect| dialect.messages(&agent, sketch.transcript.as_deref(), messages_max));
        messages.unwrap_or_default()
    }

    /// The command that resumes the session once it is not live, in its home and, if that is
    /// elsewhere, its directory.
    ///
    /// For most agents it is constant ([`Profile::resume`]).
    fn resume(&self, sketch: &Sketch, is_default_home: bool) -> Option<Invocation> {
        self.profile().resume_of(sketch, is_default_home)
    }

    /// The paths whose changes can change what a scan of this home finds.
    ///
    /// For most agents they are constant ([`Profile::watched`]).
    fn watch_paths(&self, machine: &Machine, home: &Home) -> Vec<WatchPath> {
        let _ = machine;
        let watched = self.profile().watched.iter();
        watched.map(|watched| watched.below(&home.root)).collect()
    }

    /// The agent's own command that shows a live session which no terminal shows; `None` if
    /// there is none.
    fn attach(&self, sketch: &Sketch, is_default_home: bool) -> Option<Invocation> {
        let _ = (sketch, is_default_home);
        None
    }
}

/// Finds the adapter of an agent among `adapters`.
#[must_use]
pub fn adapter_of(
    adapters: &[&'static dyn Adapter],
    agent: &AgentId,
) -> Option<&'static dyn Adapter> {
    let mut adapters = adapters.iter().copied();
    adapters.find(|adapter| adapter.profile().id == agent.as_str())
}

impl std::fmt::Debug for dyn Adapter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Adapter").field(&self.profile().id).finish()
    }
}

/// The constants of an agent.
#[derive(Debug)]
pub struct Profile {
    /// Its id, as in `--agent`.
    pub id: &'static str,
    /// Its name for people.
    pub name: &'static str,
    /// The default home, below the user's home.
    pub default_home: &'static str,
    /// The variables that move its home; the first one wins.
    pub home_variables: &'static [&'static str],
    /// The first variable stands for the user's home, and the agent's home is below that.
    pub moves_users_home: bool,
    /// How a live session is found, in a few words, for `agents` and the README.
    pub detection: &'static str,
    /// The version this was checked against, and when.
    pub checked_against: &'static str,
    /// It has a session from launch on, before any prompt.
    pub has_session_at_launch: bool,
    /// How long after its launch a process has made or resumed its first session, in
    /// milliseconds, if the agent records when. `None` if it does not.
    pub launch_window_ms: Option<i64>,
    /// How long after its launch a process claims the session that its arguments name, in
    /// milliseconds. `None` if it may serve that session and never claim it.
    pub announces_within_ms: Option<i64>,
    /// It draws nothing in its terminal while nothing happens.
    pub is_quiet_when_idle: bool,
    /// The variable in which the agent passes its own PID to what it runs, hooks included.
    pub pid_variable: Option<&'static str>,
    /// The title of its terminal names the session shown there at once, even before anything
    /// else records that a person chose it; and a new process does not keep the title of an
    /// earlier process.
    pub shows_title_at_once: bool,
    /// Its arguments may name a session of any directory. Otherwise the agent does not find
    /// sessions of other directories, and so does not serve them.
    pub resumes_from_anywhere: bool,
    /// Its processes may resume a session without announcing it, so that a stale claim excludes
    /// no process that can't be inspected.
    pub resumes_in_silence: bool,
    /// Its shared hosts leave a lock or a record for each session that they have: what their
    /// hooks reported shows nothing more.
    pub hosts_claim: bool,
    /// The paths that change with its sessions; see [`Adapter::watch_paths`].
    pub watched: &'static [Watched],
    /// How its programs are recognized, and what their arguments mean.
    pub programs: &'static CommandLine,
    /// Reads the claims of one home; see [`Adapter::scan`].
    pub scan: fn(&Look<'_>, &Home) -> Found<AgentScan>,
    /// The format and settings of its hooks; `None` for an agent without hooks.
    pub hooks: Option<&'static Hooks>,
    /// How usage is counted; `None` if the agent records none.
    pub counting: Option<&'static Counting>,
    /// How its transcripts read, if a session has a file with one record a line.
    pub(crate) dialect: Option<&'static Dialect>,
    /// The words of the command that resumes a session, with `{id}` for its id; empty where
    /// [`Adapter::resume`] makes it.
    pub resume: &'static [&'static str],
}

impl Profile {
    /// The values of most agents.
    pub const USUAL: Self = Self {
        id: "",
        name: "",
        default_home: "",
        home_variables: &[],
        moves_users_home: false,
        detection: "",
        checked_against: "",
        has_session_at_launch: false,
        launch_window_ms: None,
        announces_within_ms: None,
        is_quiet_when_idle: false,
        pid_variable: None,
        shows_title_at_once: false,
        resumes_from_anywhere: true,
        resumes_in_silence: false,
        hosts_claim: false,
        watched: &[],
        programs: &CommandLine::NONE,
        scan: |_, _| Found::default(),
        hooks: None,
        counting: None,
        dialect: None,
        resume: &[],
    };

    /// The command of [`Self::resume`] for a session, in its home; `None` if there is none.
    pub(crate) fn resume_of(&self, sketch: &Sketch, is_default_home: bool) -> Option<Invocation> {
        let id = sketch.key.session.as_str();
        let words = self.resume.iter().map(|word| word.replace("{id}", id));
        let argv: Vec<String> = words.collect();
        let command = (!argv.is_empty()).then_some(Invocation::new(argv))?;
        self.in_home_of(sketch, is_default_home, command)
    }

    /// A command in the home of a session; `None` if no variable leads there.
    pub(crate) fn in_home_of(
        &self,
        sketch: &Sketch,
        is_default_home: bool,
        command: Invocation,
    ) -> Option<Invocation> {
        if is_default_home {
            return Some(command);
        }
        let home: &Path = &sketch.key.home;
        let place = if self.moves_users_home {
            home.ends_with(self.default_home).then(|| home.parent())??
        } else {
            home
        };
        Some(command.with(self.home_variables.first()?, place))
    }
}

/// A session that a process forked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forked {
    /// The new session, as the agent publishes it.
    pub session: SessionId,
    /// The original session; `None` if the arguments do not name it.
    pub parent: Option<SessionId>,
}

/// A command for the user to run: whosup shows it, and never runs it unasked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// The directory to run it in, if not the session's current directory.
    pub directory: Option<PathBuf>,
    /// Variables to set.
    pub environment: Vec<(String, PathBuf)>,
}

impl Invocation {
    /// A command that needs no variable.
    #[must_use]
    pub fn new(argv: impl IntoIterator<Item: Into<String>>) -> Self {
        Self {
            argv: argv.into_iter().map(Into::into).collect(),
            directory: None,
            environment: Vec::new(),
        }
    }

    /// The same in another directory, if it is known.
    #[must_use]
    pub fn run_in(mut self, directory: Option<&Path>) -> Self {
        self.directory = directory.map(Path::to_owned);
        self
    }

    /// The same with a variable set.
    #[must_use]
    pub fn with(mut self, variable: &str, path: &Path) -> Self {
        self.environment
            .push((variable.to_owned(), path.to_owned()));
        self
    }
}
