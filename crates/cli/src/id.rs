//! Finds the session that an id on the command line means.

use std::path::{Path, PathBuf};

use clap::Args;
use whosup_core::agents::{self, AGENTS, Depth};
use whosup_core::common_place::has_agent;
use whosup_core::machine::Environment;
use whosup_core::problem::Problem;
use whosup_core::scan::Scanned;
use whosup_core::session::Session;
use whosup_core::sidecar::file::{Links, OpenFile};
use whosup_core::sidecar::{AgentId, AgentIdError, SessionId, SessionIdError};

use crate::app::{Reach, World};
use crate::condition::{Condition, Wording};
use crate::text;

/// How many candidates an ambiguous id lists.
const CANDIDATES_MAX: usize = 20;

/// Which session a command is about.
#[derive(Debug, Clone, Args)]
pub(crate) struct IdArgs {
    /// The session: its id or a beginning of it that no other has, such as
    /// `0a022b20` or `codex:01a2`
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// The agent's home that the session is in, where several have it
    #[arg(long, value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
}

/// Why an id means no session.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum IdError {
    /// It can't be the beginning of an id.
    #[error("cannot look for the session `{text}`")]
    Malformed {
        /// What was typed.
        text: String,
        /// Which rule it breaks.
        source: SessionIdError,
    },
    /// What stands before the colon can't be an agent.
    #[error("cannot look for the session `{text}`")]
    Agent {
        /// What was typed.
        text: String,
        /// Which rule it breaks.
        source: AgentIdError,
    },
    /// What stands before the colon is an agent that has no adapter.
    #[error("cannot look for sessions of `{agent}`: the supported agents are {supported}")]
    Unsupported {
        /// The agent.
        agent: String,
        /// Those that are.
        supported: String,
    },
    /// Everything was looked at, and it is not there.
    #[error("cannot find a session `{text}`: no session id begins so")]
    NotFound {
        /// What was typed.
        text: String,
    },
    /// It was not found, and not everything could be looked at.
    #[error("cannot tell whether there is a session `{text}`: {unseen} could not be looked at")]
    NotSeen {
        /// What was typed.
        text: String,
        /// How many places.
        unseen: String,
    },
    /// Several sessions are meant.
    #[error("cannot choose a session: `{text}` is the beginning of {count} ids\n{candidates}")]
    Ambiguous {
        /// What was typed.
        text: String,
        /// How many.
        count: usize,
        /// One a line.
        candidates: String,
    },
}

/// What was typed, understood.
#[derive(Debug)]
struct Wanted<'a> {
    text: &'a str,
    agent: Option<AgentId>,
    beginning: &'a str,
    home: Option<PathBuf>,
}

impl<'a> Wanted<'a> {
    fn parse(arguments: &'a IdArgs, environment: &Environment) -> Result<Self, IdError> {
        let text = arguments.id.as_str();
        let (agent, beginning) = match text.split_once(':') {
            Some((agent, beginning)) => (Some(parse_agent(agent, text, environment)?), beginning),
            None => (None, text),
        };
        check_beginning(beginning).map_err(|source| IdError::Malformed {
            text: text.to_owned(),
            source,
        })?;
        let home = arguments.home.as_deref();
        Ok(Self {
            text,
            agent,
            beginning,
            home: home.map(real_path),
        })
    }

    fn may_mean(&self, session: &Session) -> bool {
        let is_of_agent = self
            .agent
            .as_ref()
            .is_none_or(|agent| *agent == session.key.agent);
        let is_of_home = self
            .home
            .as_ref()
            .is_none_or(|home| *home == real_path(&session.key.home));
        session.key.session.as_str().starts_with(self.beginning) && is_of_agent && is_of_home
    }

    /// The sessions that are meant: one whose id is typed in full beats those
    /// that only begin so.
    fn among(&self, sessions: &[Session]) -> Vec<usize> {
        let places = || {
            sessions
                .iter()
                .enumerate()
                .filter(|(_, session)| self.may_mean(session))
        };
        let is_whole = |session: &Session| session.key.session.as_str() == self.beginning;
        let whole: Vec<usize> = places()
            .filter(|(_, session)| is_whole(session))
            .map(|(at, _)| at)
            .collect();
        if whole.is_empty() {
            places().map(|(at, _)| at).collect()
        } else {
            whole
        }
    }
}

fn parse_agent(agent: &str, text: &str, environment: &Environment) -> Result<AgentId, IdError> {
    let agent = AgentId::parse(agent).map_err(|source| IdError::Agent {
        text: text.to_owned(),
        source,
    })?;
    if agents::adapter(&agent).is_none() && !has_agent(environment, &agent) {
        let known: Vec<&str> = AGENTS.iter().map(|adapter| adapter.profile().id).collect();
        return Err(IdError::Unsupported {
            agent: agent.to_string(),
            supported: known.join(", "),
        });
    }
    Ok(agent)
}

/// A beginning may end where a whole id must not: `v1.` of `v1.2`.
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

fn real_path(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// A look that has the session that was meant.
pub(crate) struct Found<'a> {
    /// The look.
    pub(crate) scanned: Scanned<'a>,
    /// Where in it.
    at: usize,
}

impl Found<'_> {
    /// The session that was meant.
    pub(crate) fn session(&self) -> &Session {
        // `find` chose the place, and nobody changes the list.
        &self.scanned.snapshot.sessions[self.at]
    }
}

/// Finds the session that is meant: among what processes lead to, else among
/// every session on disk.
///
/// # Errors
///
/// [`IdError`] if none or several are meant, or the id can't be one.
pub(crate) fn find<'a>(world: &'a World, arguments: &IdArgs) -> anyhow::Result<Found<'a>> {
    let wanted = Wanted::parse(arguments, world.machine().environment())?;
    let mut problems = Vec::new();
    for depth in [Depth::Live, Depth::All] {
        let reach = Reach {
            depth,
            agents: wanted.agent.clone().map(|agent| [agent].into()),
            ..Reach::default()
        };
        let scanned = world.scan(&reach)?;
        match wanted.among(&scanned.snapshot.sessions).as_slice() {
            [] => problems = scanned.snapshot.problems,
            [at] => return Ok(Found { at: *at, scanned }),
            several => return Err(ambiguous(world, &wanted, &scanned, several).into()),
        }
    }
    let unseen = problems
        .iter()
        .filter(|problem| hides_sessions(problem))
        .count();
    let text = wanted.text.to_owned();
    Err(if unseen == 0 {
        IdError::NotFound { text }.into()
    } else {
        let unseen = text::count(unseen, "place", "places");
        IdError::NotSeen { text, unseen }.into()
    })
}

fn ambiguous(
    world: &World,
    wanted: &Wanted<'_>,
    scanned: &Scanned<'_>,
    places: &[usize],
) -> IdError {
    let sessions = &scanned.snapshot.sessions;
    let home = world.home();
    let mut lines: Vec<String> = places
        .iter()
        .filter_map(|at| sessions.get(*at))
        .take(CANDIDATES_MAX)
        .map(|session| {
            let place = session.work_dir().map(|dir| text::path(dir, home));
            format!(
                "  {}:{}  {}  {}  in {}",
                session.key.agent,
                session.key.session,
                Condition::of(session).words(Wording::Full),
                place.unwrap_or_else(|| "-".to_owned()),
                text::path(&session.key.home, home),
            )
        })
        .collect();
    if places.len() > CANDIDATES_MAX {
        lines.push(format!("  and {} more", places.len() - CANDIDATES_MAX));
    }
    IdError::Ambiguous {
        text: wanted.text.to_owned(),
        count: places.len(),
        candidates: lines.join("\n"),
    }
}

/// A problem that sessions may be hidden behind: a place that could not be
/// looked at, rather than a file that was and made no sense.
fn hides_sessions(problem: &Problem) -> bool {
    let Some(path) = &problem.path else {
        return problem.agent.is_some();
    };
    match std::fs::metadata(path) {
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
        Ok(metadata) if metadata.is_dir() => std::fs::read_dir(path).is_err(),
        Ok(metadata) if metadata.is_file() => OpenFile::open(path, Links::Follow).is_err(),
        Ok(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{Environment, IdArgs, Wanted, check_beginning};

    #[track_caller]
    fn check_refused(id: &str, cause: &str) {
        let arguments = IdArgs {
            id: id.to_owned(),
            home: None,
        };
        let error =
            anyhow::Error::new(Wanted::parse(&arguments, &Environment::default()).unwrap_err());
        assert!(format!("{error:#}").contains(cause), "{error:#}");
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
