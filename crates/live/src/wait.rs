//! Waits until sessions reach a given state.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use whosup_core::adapter::claim::SessionKey;
use whosup_core::machine::Environment;
use whosup_core::reader::{
    ErrorCode, IdError, IdQuery, ReadError, Reader, in_full, parse_agent, real_directory,
};
use whosup_core::sources::config::ConfigError;
use whosup_core::views::wire::{self, WireError, WireSession};

use crate::change::Change;
use crate::engine::{Engine, EngineError};
use crate::filter::Filter;
use crate::rows::Rows;
use crate::subscription::{Message, Received, Subscription};
use crate::until::{Outcome, Until, is_same_phase};
use crate::world::World;

/// A wait: sessions and target.
#[derive(Debug, Clone)]
pub struct Wait {
    /// The sessions.
    pub whom: Whom,
    /// The target.
    pub until: Until,
    /// Sessions that are at the target already do not count.
    pub is_next: bool,
    /// The filter of [`Whom::Any`] and [`Whom::Every`]. It chooses sessions by what they are at the
    /// start; any session counts also once it comes to match.
    pub filter: Filter,
}

/// The sessions to wait for.
#[derive(Debug, Clone)]
pub enum Whom {
    /// This session.
    One(IdQuery),
    /// Any session.
    Any,
    /// Every session that exists at the start.
    Every,
}

/// A session in its wire form.
pub type SessionFields = Map<String, Value>;

/// The result of a wait.
#[derive(Debug, Clone, PartialEq)]
pub enum Waited {
    /// These sessions have reached the target.
    Reached(Vec<SessionFields>),
    /// This session exited before.
    Exited(SessionFields),
    /// This session is unknown, and no running process can change that.
    Unknown(SessionFields),
    /// There is no session to wait for.
    NoSession,
}

/// Why a watch or wait failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// The configuration can't be used.
    #[error(transparent)]
    Config(ConfigError),
    /// The session, the agents or the directory can't be found.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The system provides no events.
    #[error(transparent)]
    Engine(EngineError),
    /// The engine has ended.
    #[error("cannot wait any longer: {0}")]
    Over(String),
}

impl From<EngineError> for WatchError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::World(error) => Self::Config(error.0),
            error => Self::Engine(error),
        }
    }
}

impl From<IdError> for WatchError {
    fn from(error: IdError) -> Self {
        Self::Read(error.into())
    }
}

impl From<&WatchError> for WireError {
    fn from(error: &WatchError) -> Self {
        let (code, message) = match error {
            WatchError::Read(error) => return error.into(),
            WatchError::Config(error) => (ErrorCode::BadConfig, in_full(error)),
            error => (ErrorCode::Unreadable, in_full(error)),
        };
        Self {
            code: code.name(),
            message,
            candidates: Vec::new(),
        }
    }
}

impl Filter {
    /// Sessions of these agents, in a directory or below.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if there is no such agent or directory.
    pub fn of(agents: &[String], directory: Option<&Path>) -> Result<Self, ReadError> {
        let environment = Environment::here();
        let agents = agents
            .iter()
            .map(|name| Ok(parse_agent(name, &environment)?.to_string()));
        Ok(Self {
            agents: agents.collect::<Result<_, ReadError>>()?,
            directory: directory.map(real_directory).transpose()?,
            ..Self::default()
        })
    }
}

/// A running wait.
#[derive(Debug)]
pub struct Waiting {
    wait: Wait,
    world: Box<dyn World>,
    changes: Subscription,
    engine: Engine,
    known: Known,
    /// The sessions to wait for; `None` until the first message.
    meant: Option<Meant>,
    /// The date of the look whose messages are being read, and that is not judged yet.
    look_ms: Option<i64>,
}

#[derive(Debug)]
enum Meant {
    One(SessionKey),
    /// Those that have matched the filter so far.
    Any(BTreeSet<SessionKey>),
    Every(Vec<SessionKey>),
}

/// The known sessions.
#[derive(Debug, Default)]
struct Known {
    /// The current sessions.
    sessions: BTreeMap<SessionKey, SessionFields>,
    /// The sessions at the start, which do not count as they are; `None` until the first message.
    first: Option<BTreeMap<SessionKey, SessionFields>>,
    unattributed: Vec<Value>,
}

impl Waiting {
    /// Starts a wait.
    ///
    /// # Errors
    ///
    /// [`WatchError`] if the session is not found or nothing can be watched.
    pub fn begin<W: World + Clone + 'static>(mut world: W, wait: Wait) -> Result<Self, WatchError> {
        let mut known = Known::default();
        let meant = match &wait.whom {
            Whom::One(id) => Some(Meant::One(known.find(&mut world, id)?)),
            Whom::Any | Whom::Every => None,
        };
        let engine = Engine::start(world.clone())?;
        // To wait for one phase, changes to all others are needed too.
        let filter = Filter {
            phases: [].into(),
            liveness: [].into(),
            ..wait.filter.clone()
        };
        Ok(Self {
            changes: engine.subscribe(filter, None),
            world: Box::new(world),
            wait,
            engine,
            known,
            meant,
            look_ms: None,
        })
    }

    /// The engine, for a caller that waits for other events too.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Reads all messages, or waits for one, up to `timeout`. `None` if the target is not reached.
    ///
    /// # Errors
    ///
    /// [`WatchError`] if the wait can't end any more.
    pub fn next(&mut self, timeout: Duration) -> Result<Option<Waited>, WatchError> {
        let mut timeout = timeout;
        loop {
            let received = self.changes.next(timeout);
            let look_ms = match &received {
                Received::Message(message) => Some(message.as_of_ms()),
                Received::Nothing | Received::Over(_) => None,
            };
            // What one look shows is judged as a whole: its messages come together.
            if self.look_ms != look_ms
                && self.look_ms.take().is_some()
                && let Some(waited) = self.known.step(&self.wait, &mut self.meant)
            {
                return Ok(Some(waited));
            }
            match received {
                Received::Message(message) => self.hear(&message)?,
                Received::Nothing => return Ok(None),
                Received::Over(why) => return Err(WatchError::Over(why)),
            }
            self.look_ms = look_ms;
            timeout = Duration::ZERO;
        }
    }

    fn hear(&mut self, message: &Message) -> Result<(), WatchError> {
        self.known.take(message);
        if let Whom::One(id) = &self.wait.whom
            && !is_in(message, self.meant.as_ref())
        {
            // It may have exited since it was found, and is not in the view then.
            self.known.find(self.world.as_mut(), id)?;
        }
        Ok(())
    }
}

/// False for a snapshot without the session that is waited for.
fn is_in(message: &Message, meant: Option<&Meant>) -> bool {
    match (message, meant) {
        (Message::Snapshot { rows, .. }, Some(Meant::One(key))) => rows.sessions.contains_key(key),
        _ => true,
    }
}

impl Known {
    fn find(&mut self, world: &mut dyn World, id: &IdQuery) -> Result<SessionKey, WatchError> {
        let (machine, config) = world.now();
        let config = config.map_err(|error| WatchError::Config(error.0))?;
        let session = Reader::new(&machine, &config).find(id)?;
        let wire: WireSession = wire::session(&machine, &session);
        if let Value::Object(fields) = json!(wire) {
            self.sessions.insert(session.key.clone(), fields);
        }
        Ok(session.key)
    }

    fn take(&mut self, message: &Message) {
        match message {
            Message::Snapshot { rows, .. } => self.take_all(rows),
            Message::Change(place) => match place.change() {
                Change::Added { key, row }
                | Change::Changed {
                    key, after: row, ..
                }
                | Change::Removed { key, row, .. } => {
                    self.sessions.insert(key.clone(), row.session.clone());
                }
                Change::Unattributed { after, .. } => self.unattributed.clone_from(after),
                Change::Problems { .. } => {}
            },
        }
    }

    fn take_all(&mut self, rows: &Arc<Rows>) {
        let sessions = rows.sessions.iter();
        let sessions = sessions.map(|(key, row)| (key.clone(), row.session.clone()));
        self.sessions.extend(sessions);
        self.unattributed.clone_from(&rows.unattributed);
    }

    /// The sessions to wait for, by those that exist at the start.
    fn begin(&self, wait: &Wait) -> Meant {
        if matches!(wait.whom, Whom::Any) {
            return Meant::Any(BTreeSet::new());
        }
        let wanted = self.matching(&wait.filter).filter(|key| {
            let session = &self.sessions[key];
            session["parent_session_id"].is_null() && session["liveness"] != "exited"
        });
        Meant::Every(wanted.collect())
    }

    /// The sessions that match the filter now.
    fn matching(&self, filter: &Filter) -> impl Iterator<Item = SessionKey> {
        let sessions = self.sessions.iter().filter(|(_, session)| {
            let has = |names: &BTreeSet<String>, field: &str| {
                names.is_empty() || session[field].as_str().is_some_and(|is| names.contains(is))
            };
            has(&filter.liveness, "liveness") && has(&filter.phases, "phase")
        });
        sessions.map(|(key, _)| key.clone())
    }

    /// Chooses the sessions to wait for, and returns the result, if the wait is over.
    fn step(&mut self, wait: &Wait, meant: &mut Option<Meant>) -> Option<Waited> {
        let meant = meant.get_or_insert_with(|| self.begin(wait));
        if let Meant::Any(keys) = meant {
            keys.extend(self.matching(&wait.filter));
        }
        let waited = self.judge(wait, meant);
        if waited.is_none() && wait.is_next && self.first.is_none() {
            self.first = Some(self.sessions.clone());
        }
        waited
    }

    /// The result, if the wait is over.
    fn judge(&self, wait: &Wait, meant: &Meant) -> Option<Waited> {
        let keys: Vec<&SessionKey> = match meant {
            Meant::One(key) => vec![key],
            Meant::Every(keys) if keys.is_empty() => return Some(Waited::NoSession),
            Meant::Every(keys) => keys.iter().collect(),
            Meant::Any(keys) => keys.iter().collect(),
        };
        let is_any = matches!(meant, Meant::Any(_));
        let outcomes = keys.iter().filter_map(|key| {
            let session = self.sessions.get(*key)?;
            Some((session, self.outcome(wait, key, session)))
        });
        let outcomes: Vec<_> = outcomes.collect();
        let reached = outcomes
            .iter()
            .filter(|(_, outcome)| *outcome == Outcome::Reached);
        let mut reached: Vec<_> = reached.map(|(session, _)| (*session).clone()).collect();
        if is_any {
            reached.truncate(1);
            return (!reached.is_empty()).then_some(Waited::Reached(reached));
        }
        if reached.len() == keys.len() {
            return Some(Waited::Reached(reached));
        }
        outcomes
            .into_iter()
            .find_map(|(session, outcome)| match outcome {
                Outcome::Reached | Outcome::NotYet => None,
                Outcome::Exited => Some(Waited::Exited(session.clone())),
                Outcome::Unknown => Some(Waited::Unknown(session.clone())),
            })
    }

    fn outcome(&self, wait: &Wait, key: &SessionKey, session: &SessionFields) -> Outcome {
        let outcome = wait.until.judge(session, &self.unattributed);
        let is_first = || match &self.first {
            // A session that was not there at the start is new.
            Some(first) => first
                .get(key)
                .is_some_and(|first| is_same_phase(first, session)),
            None => true,
        };
        if outcome == Outcome::Reached && wait.is_next && is_first() {
            return Outcome::NotYet;
        }
        outcome
    }
}

impl Waited {
    /// The name of the result, with its sessions.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let (outcome, sessions) = match self {
            Self::Reached(sessions) => ("reached", json!(sessions)),
            Self::Exited(session) => ("exited", json!([session])),
            Self::Unknown(session) => ("unknown", json!([session])),
            Self::NoSession => ("none", json!([])),
        };
        json!({ "outcome": outcome, "sessions": sessions })
    }
}

#[cfg(test)]
mod tests;
