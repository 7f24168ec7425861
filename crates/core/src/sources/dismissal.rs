//! Sessions that a person has hidden from default views.
//!
//! One file for each session, `dismissed/AGENT/ID.json` beside the session records, which
//! `whosup-track` writes. A live session is never hidden, nor is a session with activity
//! since.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use whosup_sidecar::file::{Links, read_regular};
use whosup_sidecar::{AgentId, SessionId, StrictObject};

use crate::adapter::claim::SessionKey;
use crate::machine::Environment;
use crate::machine::problem::{Found, Problem};
use crate::sources::agents::kit::folder::list_outside_homes;
use crate::sources::record::records_root_of;
use crate::views::wire::timestamp;

/// The version of the file.
const SCHEMA: i64 = 1;
/// How long a file may be, in bytes.
pub const DISMISSAL_BYTES_MAX: u64 = 64 * 1024;
/// How many agents' files are read.
const AGENTS_MAX: usize = 256;
/// How many files of one agent are read.
const FILES_MAX: usize = 100_000;

/// When the session of one id was dismissed, by home.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Dismissal {
    /// The homes, and when, in milliseconds since 1970.
    pub homes: Vec<(PathBuf, i64)>,
}

/// Every dismissal of one user.
#[derive(Debug, Clone, Default)]
pub struct Dismissals {
    at_ms: HashMap<SessionKey, i64>,
}

/// Where dismissals are in an environment.
#[must_use]
pub fn dismissals_root_of(environment: &Environment) -> Option<PathBuf> {
    let records = records_root_of(environment)?;
    Some(records.parent()?.join("dismissed"))
}

impl Dismissal {
    /// Parses a file.
    ///
    /// # Errors
    ///
    /// What is wrong with it, in words.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let object = StrictObject::parse(bytes).map_err(|error| error.to_string())?;
        let version = object
            .integer("schema_version")
            .map_err(|error| error.to_string())?;
        if version != SCHEMA {
            return Err(format!(
                "`schema_version` is {version}, this program reads {SCHEMA}"
            ));
        }
        let homes = object.array("homes").map_err(|error| error.to_string())?;
        let parse = |value| {
            let one = StrictObject::from_value(value).map_err(|error| error.to_string())?;
            let home = one.string("home").map_err(|error| error.to_string())?;
            let at = one
                .string("dismissed_at")
                .map_err(|error| error.to_string())?;
            let at: jiff::Timestamp = at.parse().map_err(|_| format!("`{at}` is no time"))?;
            Ok((PathBuf::from(home), at.as_millisecond()))
        };
        Ok(Self {
            homes: homes.iter().map(parse).collect::<Result<_, String>>()?,
        })
    }

    /// The text of the file.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        let homes = self.homes.iter().map(|(home, at_ms)| {
            serde_json::json!({
                "home": home.to_string_lossy(),
                "dismissed_at": timestamp(*at_ms),
            })
        });
        serde_json::json!({ "schema_version": SCHEMA, "homes": homes.collect::<Vec<_>>() })
    }
}

impl Dismissals {
    /// Reads every dismissal of the agents that are wanted.
    #[must_use]
    pub fn read(environment: &Environment, is_wanted: impl Fn(&AgentId) -> bool) -> Found<Self> {
        let mut found: Found<Self> = Found::default();
        let Some(root) = dismissals_root_of(environment) else {
            return found;
        };
        for name in list_outside_homes(None, &root, AGENTS_MAX, &mut found.problems) {
            let Ok(agent) = AgentId::parse(&name) else {
                continue;
            };
            if !is_wanted(&agent) {
                continue;
            }
            let directory = root.join(&name);
            for file in list_outside_homes(None, &directory, FILES_MAX, &mut found.problems) {
                let id = file.strip_suffix(".json").map(SessionId::parse);
                if let Some(Ok(session)) = id {
                    add(&mut found, &agent, session, &directory.join(&file));
                }
            }
        }
        found
    }

    /// Whether a session that was last active at `last_ms` is hidden from default views.
    #[must_use]
    pub fn hide(&self, key: &SessionKey, last_ms: Option<i64>) -> bool {
        let at_ms = self.at_ms.get(key);
        at_ms.is_some_and(|at_ms| last_ms.is_none_or(|last_ms| last_ms <= *at_ms))
    }
}

fn add(found: &mut Found<Dismissals>, agent: &AgentId, session: SessionId, path: &Path) {
    let read = read_regular(path, DISMISSAL_BYTES_MAX, Links::Refuse);
    let parsed = read
        .map_err(|error| error.reason())
        .and_then(|file| Dismissal::parse(&file.bytes));
    match parsed {
        Ok(dismissal) => {
            for (home, at_ms) in dismissal.homes {
                let key = SessionKey {
                    agent: agent.clone(),
                    session: session.clone(),
                    home: home.into(),
                };
                found.found.at_ms.insert(key, at_ms);
            }
        }
        Err(message) => found.problems.push(Problem {
            agent: Some(agent.clone()),
            path: Some(path.to_owned()),
            message,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::{Dismissal, Dismissals, SessionKey};

    #[test]
    fn a_file_is_read_as_it_is_written() {
        let dismissal = Dismissal {
            homes: vec![("/home/dev/.codex".into(), 1_795_812_774_007)],
        };
        let text = dismissal.to_json().to_string();
        assert_eq!(Dismissal::parse(text.as_bytes()), Ok(dismissal));
    }

    #[test]
    fn what_is_no_dismissal_says_why() {
        for (text, named) in [
            ("", "empty"),
            ("{\"schema_version\":2,\"homes\":[]}", "schema_version"),
            ("{\"schema_version\":1}", "homes"),
            (
                "{\"schema_version\":1,\"homes\":[{\"home\":\"/h\",\"dismissed_at\":\"now\"}]}",
                "`now` is no time",
            ),
        ] {
            let error = Dismissal::parse(text.as_bytes()).unwrap_err();
            assert!(error.contains(named), "{text}: {error}");
        }
    }

    #[test]
    fn something_heard_since_brings_a_session_back() {
        let key = SessionKey {
            agent: whosup_sidecar::AgentId::parse("codex").unwrap(),
            session: whosup_sidecar::SessionId::parse("s1").unwrap(),
            home: std::path::Path::new("/home/dev/.codex").into(),
        };
        let dismissals = Dismissals {
            at_ms: [(key.clone(), 1_000)].into(),
        };
        assert!(dismissals.hide(&key, Some(1_000)) && dismissals.hide(&key, None));
        assert!(!dismissals.hide(&key, Some(1_001)));
        let elsewhere = SessionKey {
            home: std::path::Path::new("/elsewhere").into(),
            ..key
        };
        assert!(!dismissals.hide(&elsewhere, Some(1)));
    }
}
