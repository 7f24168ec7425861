//! Finds a session by ID.

use std::path::{Path, PathBuf};

use whosup_sidecar::{AgentId, AgentIdError, SessionId, SessionIdError};

use super::code::Candidate;
use super::condition::{Condition, Wording};
use super::hidden::hides;
use super::{Reach, Reader};
use crate::adapter::Depth;
use crate::machine::Environment;
use crate::machine::mounts::Mounts;
use crate::machine::problem::Problem;
use crate::sessions::scan::Scanned;
use crate::sessions::session::{Session, Snapshot};
use crate::sources::agents::{self, AGENTS};
use crate::sources::common_place::has_agent;

/// How many candidates an ambiguous id names.
const CANDIDATES_MAX: usize = 20;

/// The session to find.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdQuery {
    /// The session ID or a unique prefix, optionally after its agent and a colon:
    /// `0a022b20`, `codex:01a2`.
    pub id: String,
    /// The agent's home, if several have the session. A relative path counts from the current
    /// directory.
    pub home: Option<PathBuf>,
}

impl From<&str> for IdQuery {
    fn from(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            home: None,
        }
    }
}

/// Why no session was found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IdError {
    /// It can't be a prefix of an ID.
    #[error("cannot look for the session `{text}`")]
    Malformed {
        /// What was typed.
        text: String,
        /// Which rule it breaks.
        source: SessionIdError,
    },
    /// The part before the colon is no agent.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// Everything was searched, and it does not exist.
    #[error("no session{} has an ID that begins with `{text}`", of_home(home.as_deref()))]
    NotFound {
        /// What was typed.
        text: String,
        /// The home that the session was looked for in, if one was given.
        home: Option<PathBuf>,
    },
    /// It was not found, and not everything could be searched.
    #[error(
        "cannot determine whether a session{} has an ID that begins with `{text}`: {unseen} could not be read",
        of_home(home.as_deref())
    )]
    NotSeen {
        /// What was typed.
        text: String,
        /// The home that the session was looked for in, if one was given.
        home: Option<PathBuf>,
        /// How many places.
        unseen: String,
    },
    /// Several sessions match.
    #[error("{count} sessions have an ID that begins with `{text}`{}", lines(candidates, *count))]
    Ambiguous {
        /// What was typed.
        text: String,
        /// How many.
        count: usize,
        /// The first of them.
        candidates: Vec<Candidate>,
    },
}

/// Why no agent was found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// It can't be an agent's name.
    #[error("cannot look for sessions of `{agent}`")]
    Malformed {
        /// What was given.
        agent: String,
        /// Which rule it breaks.
        source: AgentIdError,
    },
    /// It has no adapter, and has published nothing in the common place.
    #[error(
        "cannot look for sessions of `{agent}`: it is not supported and has published no session; the supported agents are {supported}"
    )]
    Unsupported {
        /// The name that was given.
        agent: String,
        /// The supported agents.
        supported: String,
    },
}

/// The typed text, parsed.
#[derive(Debug)]
struct Wanted<'a> {
    text: &'a str,
    agent: Option<AgentId>,
    beginning: &'a str,
    home: Option<PathBuf>,
    mounts: &'a Mounts,
}

impl<'a> Wanted<'a> {
    fn parse(
        query: &'a IdQuery,
        environment: &Environment,
        mounts: &'a Mounts,
    ) -> Result<Self, IdError> {
        let text = query.id.as_str();
        let (agent, beginning) = match text.split_once(':') {
            Some((agent, beginning)) => (Some(parse_agent(agent, environment)?), beginning),
            None => (None, text),
        };
        check_beginning(beginning).map_err(|source| IdError::Malformed {
            text: text.to_owned(),
            source,
        })?;
        // Without a current directory it stays relative, and no session is there.
        let absolute = |home: &Path| std::path::absolute(home).unwrap_or_else(|_| home.to_owned());
        let home = query.home.as_deref().map(absolute);
        if let Some(home) = &home {
            mounts.rely_on(home);
        }
        Ok(Self {
            text,
            agent,
            beginning,
            home: home.map(|home| mounts.real_path(&home)),
            mounts,
        })
    }

    fn reach(&self, depth: Depth) -> Reach {
        Reach {
            depth,
            agents: self.agent.clone().map(|agent| [agent].into()),
            ..Reach::default()
        }
    }

    fn may_mean(&self, session: &Session) -> bool {
        let is_of_agent = self
            .agent
            .as_ref()
            .is_none_or(|agent| *agent == session.key.agent);
        let is_of_home = self
            .home
            .as_ref()
            .is_none_or(|home| *home == self.mounts.real_path(&session.key.home));
        session.key.session.as_str().starts_with(self.beginning) && is_of_agent && is_of_home
    }

    /// A session that has what was typed as its whole ID, to which no process leads, where only
    /// others were found whose IDs begin so.
    fn whole_besides<'r>(&self, reader: Reader<'r>, found: &Scanned<'r>) -> Option<Scanned<'r>> {
        let id = SessionId::parse(self.beginning).ok()?;
        let has_it = |scanned: &Scanned<'_>| {
            let mut sessions = scanned.snapshot.sessions.iter();
            sessions.any(|session| session.key.session == id && self.may_mean(session))
        };
        if has_it(found) {
            return None;
        }
        let whole = reader.scan(&self.reach(Depth::Sessions([id.clone()].into())));
        has_it(&whole).then_some(whole)
    }

    /// The matching sessions: a full ID wins over prefixes.
    fn among<'s>(&self, sessions: &'s [Session]) -> Vec<&'s Session> {
        let begin = || sessions.iter().filter(|session| self.may_mean(session));
        let is_whole = |session: &&Session| session.key.session.as_str() == self.beginning;
        let whole: Vec<&Session> = begin().filter(is_whole).collect();
        if whole.is_empty() {
            begin().collect()
        } else {
            whole
        }
    }
}

/// The agent of a name: one with an adapter, or one that has published something.
///
/// # Errors
///
/// [`AgentError`] if there is none of that name.
pub fn parse_agent(name: &str, environment: &Environment) -> Result<AgentId, AgentError> {
    let agent = AgentId::parse(name).map_err(|source| AgentError::Malformed {
        agent: name.to_owned(),
        source,
    })?;
    if agents::adapter(&agent).is_none() && !has_agent(environment, &agent) {
        let known: Vec<&str> = AGENTS.iter().map(|adapter| adapter.profile().id).collect();
        return Err(AgentError::Unsupported {
            agent: agent.to_string(),
            supported: known.join(", "),
        });
    }
    Ok(agent)
}

/// A prefix may end where a whole ID can't: `v1.` of `v1.2`.
fn check_beginning(text: &str) -> Result<(), SessionIdError> {
    let whole = SessionId::parse(text);
    match whole {
        Ok(_) => Ok(()),
        Err(SessionIdError::Empty) => Err(SessionIdError::Empty),
        Err(error) => SessionId::parse(&format!("{text}x"))
            .map(|_| ())
            .map_err(|_| error),
    }
}

/// Finds the matching session: among those that processes lead to, else on all of the disk.
pub(super) fn find<'a>(
    reader: Reader<'a>,
    query: &IdQuery,
) -> Result<(Session, Scanned<'a>), IdError> {
    let environment = reader.machine().environment();
    let wanted = Wanted::parse(query, environment, reader.machine().mounts())?;
    let mut scanned = reader.scan(&wanted.reach(Depth::Live));
    if wanted.among(&scanned.snapshot.sessions).is_empty() {
        scanned = reader.scan(&wanted.reach(Depth::All));
    } else if let Some(whole) = wanted.whole_besides(reader, &scanned) {
        scanned = whole;
    }
    match wanted.among(&scanned.snapshot.sessions).as_slice() {
        [] => {}
        [session] => return Ok(((*session).clone(), scanned)),
        several => return Err(ambiguous(environment, &wanted, several)),
    }
    let Snapshot {
        problems, sessions, ..
    } = &scanned.snapshot;
    let hides = |problem: &&Problem| hides(problem, wanted.beginning, sessions, reader.machine());
    let unseen = problems.iter().filter(hides);
    let unseen = unseen.count() + usize::from(environment.home().is_none());
    let (text, home) = (wanted.text.to_owned(), wanted.home);
    let unseen = match unseen {
        0 => return Err(IdError::NotFound { text, home }),
        1 => "1 place".to_owned(),
        more => format!("{more} places"),
    };
    Err(IdError::NotSeen { text, home, unseen })
}

fn of_home(home: Option<&Path>) -> String {
    home.map(|home| format!(" of the home `{}`", home.display()))
        .unwrap_or_default()
}

fn ambiguous(environment: &Environment, wanted: &Wanted<'_>, sessions: &[&Session]) -> IdError {
    let home = environment.home();
    let candidate = |session: &&Session| {
        let work_dir = session.work_dir();
        let place = work_dir.map(|dir| short_path(dir, home));
        let line = format!(
            "{}:{}  {}  {}  in {}",
            session.key.agent,
            session.key.session,
            Condition::of(session).words(Wording::Full),
            place.unwrap_or_else(|| "-".to_owned()),
            short_path(&session.key.home, home),
        );
        Candidate {
            key: session.key.clone(),
            liveness: session.liveness(),
            work_dir: work_dir.map(Path::to_owned),
            line,
        }
    };
    IdError::Ambiguous {
        text: wanted.text.to_owned(),
        count: sessions.len(),
        candidates: sessions
            .iter()
            .take(CANDIDATES_MAX)
            .map(candidate)
            .collect(),
    }
}

/// The candidates of an ambiguous id, each on a line of its own.
fn lines(candidates: &[Candidate], count: usize) -> String {
    let mut lines: String = candidates
        .iter()
        .map(|one| format!("\n  {}", one.line))
        .collect();
    match count.saturating_sub(candidates.len()) {
        0 => {}
        more => lines += &format!("\n  and {more} more"),
    }
    lines
}

/// A path with home as `~`, on one line.
fn short_path(path: &Path, home: Option<&Path>) -> String {
    let shown = match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{}", rest.to_string_lossy()),
        None => path.to_string_lossy().into_owned(),
    };
    shown.replace(char::is_control, "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::{Environment, Mounts, Wanted, check_beginning};
    use crate::views::reader::in_full;

    #[track_caller]
    fn check_refused(id: &str, cause: &str) {
        let query = id.into();
        let error = Wanted::parse(&query, &Environment::default(), &Mounts::default()).unwrap_err();
        assert!(in_full(&error).contains(cause), "{error:?}");
    }

    #[test]
    fn a_malformed_id_says_why() {
        check_refused("", "must not be empty");
        check_refused("codex:", "must not be empty");
        check_refused("../../x", "must not contain `/`");
        check_refused("a\nb", "control character");
        check_refused(&"a".repeat(129), "must not be longer than 128 bytes");
        check_refused("Codex:01a2", "must begin with a lower-case letter");
        check_refused("aider:01a2", "the supported agents are claude-code, codex");
    }

    #[test]
    fn a_beginning_may_end_where_an_id_must_not() {
        for beginning in ["v1.", "a ", ".", "con", &"a".repeat(128)] {
            assert_eq!(check_beginning(beginning), Ok(()), "{beginning:?}");
        }
    }
}
