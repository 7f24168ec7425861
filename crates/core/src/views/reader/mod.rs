//! The interface for editors and session managers: which sessions there are, and whether a
//! session is live.
//!
//! [`list_sessions`], [`session`], [`liveness`] and [`why`] scan this computer once, by the
//! user's configuration, and return what the command line prints as JSON (`whosup list
//! --json`, `show --json`, `why --json`). A [`Reader`] does the same for a given machine and
//! configuration.
//!
//! ```
//! use whosup_core::reader::{ListQuery, list_sessions, liveness};
//!
//! for session in list_sessions(&ListQuery::default())?.sessions {
//!     println!("{} {} {}", session.agent, session.session_id, session.liveness);
//! }
//! assert_eq!(liveness(&"no-such-session".into())?, None);
//! # Ok::<(), whosup_core::reader::ReadError>(())
//! ```

mod candidates;
mod code;
mod condition;
mod filter;
mod find;
mod hidden;
mod order;
mod reasons;
mod selection;

use std::collections::BTreeSet;

use whosup_sidecar::AgentId;

use self::candidates::{Candidates, take_titles};
pub use self::code::{Candidate, ErrorCode};
pub use self::condition::{Condition, Wording};
pub use self::filter::{
    Filter, FilterError, Wish, parent_key, real_directory, sub_agents_of, wants_exited,
};
pub use self::find::{AgentError, IdError, IdQuery, parse_agent};
pub use self::order::{Direction, Order, shown_pid};
pub use self::reasons::{in_full, reasons};
pub use self::selection::{Chosen, Form, ListQuery, Shown, SubAgents};
use crate::adapter::{Depth, Message};
use crate::judging::verdict::Liveness;
use crate::machine::Machine;
use crate::machine::problem::Found;
use crate::sessions::resources::{Detail, Metered, Sample, used};
use crate::sessions::scan::{Describer, Scanned, Scope, scan, scan_each, untouched_transcript};
use crate::sessions::session::{Session, Snapshot};
use crate::sources::agents;
use crate::sources::config::{Config, ConfigError, Prompts};
use crate::sources::recognize::Users;
use crate::views::explain::explain;
use crate::views::wire::{self, WireExplained, WireSession, WireSnapshot};

/// The reach of one scan.
#[derive(Debug, Clone)]
pub struct Reach {
    /// Processes and what they lead to, or all.
    pub depth: Depth,
    /// These agents only; all of them if `None`.
    pub agents: Option<BTreeSet<AgentId>>,
    /// Whose processes.
    pub users: Users,
    /// Whether [`Scanned::judged`] is wanted.
    pub is_judged_again: bool,
}

impl Default for Reach {
    fn default() -> Self {
        Self {
            depth: Depth::Live,
            agents: None,
            users: Users::Own,
            is_judged_again: false,
        }
    }
}

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The configuration can't be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// No session was found.
    #[error(transparent)]
    Id(#[from] IdError),
    /// No agent was found.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// The filter can't be used.
    #[error(transparent)]
    Filter(#[from] FilterError),
}

/// Reads one machine, by one configuration.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    machine: &'a Machine,
    config: &'a Config,
}

/// A snapshot of one session, described from its own files.
#[derive(Debug)]
pub struct Single {
    /// The snapshot: this session, and no process without one.
    pub snapshot: Snapshot,
    /// The session.
    pub session: Session,
    /// How many sub-agents it has.
    pub sub_agents: usize,
    /// The live sessions of the same scan.
    metered: Vec<Metered>,
}

impl Single {
    /// Measures the resources of the session's processes in one scan: without percentages.
    pub fn measure(&mut self, machine: &Machine) {
        let key = &self.session.key;
        let own: Vec<Metered> = Metered::of(&self.session).into_iter().collect();
        let sample = Sample::take(machine, &own, Detail::Owners);
        let used = sample.map(|sample| used(None, &sample, &self.metered));
        self.session.resources = used.and_then(|mut used| used.remove(key));
        for session in &mut self.snapshot.sessions {
            session.resources.clone_from(&self.session.resources);
        }
    }
}

/// Lists sessions, as `whosup list --json`.
///
/// # Errors
///
/// [`ReadError`] if the configuration can't be understood, or a requested directory does not
/// exist.
pub fn list_sessions(query: &ListQuery) -> Result<WireSnapshot, ReadError> {
    on_this_machine(|reader| Ok(reader.list_sessions(query)?))
}

/// Describes one session, as `whosup show ID --json`.
///
/// # Errors
///
/// [`ReadError`] if the id is malformed or matches no session or several, if the session
/// was not found and some places could not be searched, or if the configuration cannot be
/// understood. [`ReadError::code`] says which.
pub fn session(query: &IdQuery) -> Result<WireSnapshot, ReadError> {
    on_this_machine(|reader| Ok(reader.session(query)?))
}

/// Reports whether a session is live. `None` if there is no such session; where that
/// cannot be decided, because some places could not be searched, it is
/// [`Liveness::Unknown`].
///
/// # Errors
///
/// [`ReadError`] if the id is malformed or matches several sessions, or if the
/// configuration cannot be understood.
pub fn liveness(query: &IdQuery) -> Result<Option<Liveness>, ReadError> {
    on_this_machine(|reader| Ok(reader.liveness(query)?))
}

/// Explains the answer about one session, as `whosup why ID --json`.
///
/// # Errors
///
/// As [`session`].
pub fn why(query: &IdQuery) -> Result<WireExplained, ReadError> {
    on_this_machine(|reader| Ok(reader.why(query)?))
}

fn on_this_machine<T>(
    ask: impl FnOnce(Reader<'_>) -> Result<T, ReadError>,
) -> Result<T, ReadError> {
    let machine = Machine::here();
    let config = Config::read_default(machine.environment())?;
    ask(Reader::new(&machine, &config))
}

impl<'a> Reader<'a> {
    /// A reader of this machine, by this configuration.
    #[must_use]
    pub fn new(machine: &'a Machine, config: &'a Config) -> Self {
        Self { machine, config }
    }

    /// What it looks at.
    #[must_use]
    pub fn machine(self) -> &'a Machine {
        self.machine
    }

    /// Scans once.
    #[must_use]
    pub fn scan(self, reach: &Reach) -> Scanned<'a> {
        let mut scanned = scan(self.machine, &self.scope(reach));
        let problem = self.config.problem.clone();
        scanned.snapshot.problems.extend(problem);
        scanned
    }

    /// Scans once, and passes on each session as soon as all is known of it; the rest is in the
    /// return value.
    pub fn scan_each(
        self,
        reach: &Reach,
        settled: &mut dyn FnMut(Session, Describer<'_>),
    ) -> Scanned<'a> {
        let mut scanned = scan_each(self.machine, &self.scope(reach), settled);
        let problem = self.config.problem.clone();
        scanned.snapshot.problems.extend(problem);
        scanned
    }

    fn scope(self, reach: &Reach) -> Scope {
        Scope {
            depth: reach.depth.clone(),
            agents: reach.agents.clone(),
            users: reach.users,
            extra_homes: self.config.homes.clone(),
            is_judged_again: reach.is_judged_again,
        }
    }

    /// Describes the sessions that pass `wanted` from their own files, except those that the
    /// configuration excludes; and reads the titles of the sessions that the processes
    /// without a known session may be serving.
    ///
    /// A caller that does not show such processes removes them from the snapshot first.
    pub fn describe(self, scanned: &mut Scanned<'_>, wanted: impl Fn(&Session) -> bool) {
        let candidates = Candidates::of(&scanned.snapshot.unattributed);
        scanned.describe(|session| wanted(session) || candidates.include(session));
        for session in &mut scanned.snapshot.sessions {
            self.keep_out(session);
        }
        take_titles(&mut scanned.snapshot);
    }

    /// Removes the parts of a session that the configuration hides.
    fn keep_out(self, session: &mut Session) {
        if self.config.prompts == Prompts::Hide {
            hide_prompt(session);
        }
    }

    /// Finds a session.
    ///
    /// # Errors
    ///
    /// [`IdError`] if no session or several match, or the ID is invalid.
    pub fn find(self, query: &IdQuery) -> Result<Session, IdError> {
        find::find(self, query).map(|(session, _)| session)
    }

    /// Finds a session and reads its files.
    ///
    /// # Errors
    ///
    /// [`IdError`] if no session or several match, or the ID is invalid.
    pub fn single(self, query: &IdQuery) -> Result<Single, IdError> {
        let (Session { key, .. }, mut scanned) = find::find(self, query)?;
        scanned.snapshot.unattributed.clear();
        self.describe(&mut scanned, |session| session.key == key);
        let links = scanned.snapshot.sessions.iter();
        let links = links.map(|session| (&session.key, parent_key(session)));
        let sub_agents = sub_agents_of(links, &[key.clone()].into());
        let mut snapshot = scanned.snapshot;
        let metered = snapshot.sessions.iter().filter_map(Metered::of).collect();
        snapshot.sessions.retain(|session| session.key == key);
        snapshot.problems.retain(|problem| {
            problem
                .agent
                .as_ref()
                .is_none_or(|agent| *agent == key.agent)
        });
        let session = snapshot.sessions.first().cloned();
        Ok(Single {
            // The key comes from this very list.
            session: session.ok_or_else(|| IdError::NotFound {
                text: query.id.clone(),
                home: query.home.clone(),
            })?,
            sub_agents: sub_agents.len(),
            metered,
            snapshot,
        })
    }

    /// Reads the last messages of a session that [`Reader::single`] found, oldest first.
    #[must_use]
    pub fn messages(self, session: &Session, messages_max: usize) -> Found<Vec<Message>> {
        let Some(adapter) = agents::adapter(&session.key.agent) else {
            return Found::default();
        };
        let mut sketch = session.sketch.clone();
        if let Some(transcript) = &session.description.transcript {
            sketch.transcript = Some(transcript.clone());
        }
        match untouched_transcript(self.machine, &sketch) {
            Some(problem) => Found {
                found: Vec::new(),
                problems: vec![problem],
            },
            None => adapter.messages(&sketch, messages_max),
        }
    }

    /// Scans, and selects the sessions of a list. Each session is turned into its row as soon as
    /// all is known of it.
    ///
    /// # Errors
    ///
    /// [`FilterError`] if a requested directory does not exist.
    pub fn choose<F: Form>(
        self,
        query: &ListQuery,
        form: &mut F,
    ) -> Result<Chosen<F::Row>, FilterError> {
        let filter = Filter::new(query.wish.clone(), self.machine)?;
        Ok(selection::choose(self, query, &filter, form))
    }

    /// Lists sessions; see [`list_sessions`].
    ///
    /// # Errors
    ///
    /// [`FilterError`] if a requested directory does not exist.
    pub fn list_sessions(self, query: &ListQuery) -> Result<WireSnapshot, FilterError> {
        let chosen = self.choose(query, &mut OnTheWire(self.machine))?;
        let sessions = chosen.shown.into_iter().map(|shown| shown.row);
        Ok(WireSnapshot {
            sessions: sessions.collect(),
            ..wire::snapshot(self.machine, &chosen.rest)
        })
    }

    /// Describes one session; see [`session`].
    ///
    /// # Errors
    ///
    /// [`IdError`] if no session or several match, or the ID is invalid.
    pub fn session(self, query: &IdQuery) -> Result<WireSnapshot, IdError> {
        let mut single = self.single(query)?;
        single.measure(self.machine);
        Ok(wire::snapshot(self.machine, &single.snapshot))
    }

    /// Reports whether a session is live; see [`liveness`].
    ///
    /// # Errors
    ///
    /// [`IdError`] if several sessions match, or the ID is invalid.
    pub fn liveness(self, query: &IdQuery) -> Result<Option<Liveness>, IdError> {
        match self.find(query) {
            Ok(session) => Ok(Some(session.liveness())),
            Err(IdError::NotSeen { .. }) => Ok(Some(Liveness::Unknown)),
            Err(IdError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Explains; see [`why`].
    ///
    /// # Errors
    ///
    /// [`IdError`] if no session or several match, or the ID is invalid.
    pub fn why(self, query: &IdQuery) -> Result<WireExplained, IdError> {
        let single = self.single(query)?;
        Ok(WireExplained {
            snapshot: wire::snapshot(self.machine, &single.snapshot),
            explanation: explain(&single.session, self.machine.environment().home()).into_lines(),
        })
    }
}

/// Sessions as the wire format has them.
struct OnTheWire<'a>(&'a Machine);

impl Form for OnTheWire<'_> {
    type Row = WireSession;
    const NEEDS_IDS: bool = false;

    fn row(&mut self, session: &Session) -> WireSession {
        wire::session(self.0, session)
    }
}

/// Removes a title that is a prompt, also where it does not come from the session's own
/// files.
fn hide_prompt(session: &mut Session) {
    if session.description.is_title_a_prompt {
        let prompt = session.description.title.take();
        session
            .sketch
            .title
            .take_if(|title| Some(&*title) == prompt.as_ref());
    }
}
