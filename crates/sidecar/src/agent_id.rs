//! Agent ids: which coding-agent product.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use crate::shown::shown;

/// How long an agent id may be, in bytes.
pub const AGENT_ID_BYTES_MAX: usize = 64;

/// Names a coding-agent product: `claude-code`, `codex`, `qwen-code`.
///
/// Open: an agent that is unknown to this crate is still an agent. Lower-case
/// ASCII letters, digits and hyphens, a letter first, so that an id can be a
/// directory, a word on a command line and a class on a page.
///
/// ```
/// use whosup_sidecar::AgentId;
///
/// const CODEX: AgentId = AgentId::from_static("codex");
/// assert_eq!(AgentId::parse("codex")?, CODEX);
/// assert!(AgentId::parse("Codex").is_err());
/// # Ok::<(), whosup_sidecar::AgentIdError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentId(Cow<'static, str>);

/// Why a text is no [`AgentId`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AgentIdError {
    /// There is no text.
    #[error("an agent id must not be empty")]
    Empty,
    /// It has more than [`AGENT_ID_BYTES_MAX`] bytes.
    #[error("an agent id must not be longer than {AGENT_ID_BYTES_MAX} bytes, this one has {bytes}")]
    TooLong {
        /// How many it has.
        bytes: usize,
    },
    /// It does not begin with a lower-case ASCII letter.
    #[error("an agent id must begin with a lower-case letter: `{0}`")]
    FirstCharacter(String),
    /// It has something else than lower-case ASCII letters, digits and hyphens.
    #[error("an agent id must have lower-case letters, digits and hyphens alone: `{0}`")]
    Character(String),
}

/// The rule that a text breaks, without the text: `const` code can't own one.
#[derive(Clone, Copy)]
enum Broken {
    Empty,
    TooLong,
    FirstCharacter,
    Character,
}

const fn broken_rule(text: &str) -> Option<Broken> {
    let bytes = text.as_bytes();
    if bytes.is_empty() {
        return Some(Broken::Empty);
    }
    if bytes.len() > AGENT_ID_BYTES_MAX {
        return Some(Broken::TooLong);
    }
    if !bytes[0].is_ascii_lowercase() {
        return Some(Broken::FirstCharacter);
    }
    let mut at = 1;
    while at < bytes.len() {
        if !matches!(bytes[at], b'a'..=b'z' | b'0'..=b'9' | b'-') {
            return Some(Broken::Character);
        }
        at += 1;
    }
    None
}

impl AgentId {
    /// Checks that `text` can be an agent id.
    ///
    /// # Errors
    ///
    /// [`AgentIdError`] names the rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, AgentIdError> {
        match broken_rule(text) {
            None => Ok(Self(Cow::Owned(text.to_owned()))),
            Some(Broken::Empty) => Err(AgentIdError::Empty),
            Some(Broken::TooLong) => Err(AgentIdError::TooLong { bytes: text.len() }),
            Some(Broken::FirstCharacter) => Err(AgentIdError::FirstCharacter(shown(text))),
            Some(Broken::Character) => Err(AgentIdError::Character(shown(text))),
        }
    }

    /// Returns whether `text` can be an agent id.
    pub(crate) const fn is_valid(text: &str) -> bool {
        broken_rule(text).is_none()
    }

    /// An agent id that the program itself knows, for constants.
    ///
    /// # Panics
    ///
    /// If `text` is no agent id; in a constant that is an error of compilation.
    #[must_use]
    pub const fn from_static(text: &'static str) -> Self {
        assert!(broken_rule(text).is_none(), "this is not an agent id");
        Self(Cow::Borrowed(text))
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Tables align agent ids, so width and the like must count.
        f.pad(&self.0)
    }
}

impl AsRef<str> for AgentId {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl FromStr for AgentId {
    type Err = AgentIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl TryFrom<&str> for AgentId {
    type Error = AgentIdError;

    fn try_from(text: &str) -> Result<Self, Self::Error> {
        Self::parse(text)
    }
}

impl TryFrom<String> for AgentId {
    type Error = AgentIdError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::{AgentId, AgentIdError};

    #[test]
    fn an_unknown_agent_is_an_agent() {
        for text in ["codex", "claude-code", "a", "agent2", &"a".repeat(64)] {
            assert_eq!(AgentId::parse(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn a_constant_and_a_parsed_id_are_equal() {
        const QWEN: AgentId = AgentId::from_static("qwen-code");
        assert_eq!(AgentId::parse("qwen-code").unwrap(), QWEN);
        assert_eq!(QWEN.to_string(), "qwen-code");
        assert_eq!(format!("{QWEN:<10}|"), "qwen-code |");
    }

    #[test]
    fn other_text_is_refused_with_the_rule_that_it_breaks() {
        let first = |text: &str| AgentIdError::FirstCharacter(text.to_owned());
        let character = |text: &str| AgentIdError::Character(text.to_owned());
        let cases = [
            ("", AgentIdError::Empty),
            ("Codex", first("Codex")),
            ("2agent", first("2agent")),
            ("-agent", first("-agent")),
            ("..", first("..")),
            ("éclair", first("éclair")),
            ("a_b", character("a_b")),
            ("a/b", character("a/b")),
            ("aB", character("aB")),
            ("a b", character("a b")),
            ("a\u{200b}", character("a\\u{200b}")),
        ];
        for (text, expected) in cases {
            assert_eq!(AgentId::parse(text), Err(expected));
        }
        let too_long = "a".repeat(65);
        assert_eq!(
            AgentId::parse(&too_long),
            Err(AgentIdError::TooLong { bytes: 65 })
        );
    }
}
