//! Session ids: text of an agent's that may become part of a file name.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::invisible::is_invisible;

/// How long a session id may be, in bytes.
///
/// `ID.runtime.json` must fit in a file name where names are shortest: 143
/// bytes, on eCryptfs.
pub const SESSION_ID_BYTES_MAX: usize = 128;

/// How long the name of a device is at most, in bytes: `CONOUT$`.
const DEVICE_NAME_BYTES_MAX: usize = 7;

/// The id that an agent gave to one of its sessions, safe as part of a file
/// name on every platform.
///
/// [`SessionId::parse`] is the only way to one.
///
/// ```
/// use whosup_sidecar::{SessionId, SessionIdError};
///
/// let id: SessionId = "ses_4f82a09910ea".parse()?;
/// assert_eq!(id.as_str(), "ses_4f82a09910ea");
/// assert_eq!(SessionId::parse("../../x"), Err(SessionIdError::Separator('/')));
/// # Ok::<(), SessionIdError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(Arc<str>);

/// Why a text is no [`SessionId`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SessionIdError {
    /// There is no text.
    #[error("a session id must not be empty")]
    Empty,
    /// It has more than [`SESSION_ID_BYTES_MAX`] bytes.
    #[error(
        "a session id must not be longer than {SESSION_ID_BYTES_MAX} bytes, this one has {bytes}"
    )]
    TooLong {
        /// How many it has.
        bytes: usize,
    },
    /// It begins with a hyphen: to the agent that is to resume it, it would be an option.
    #[error("a session id must not begin with a hyphen, as options do: `{0}`")]
    LeadingHyphen(String),
    /// It has a character that separates the parts of a path.
    #[error("a session id must not contain `{0}`, which separates the parts of a path")]
    Separator(char),
    /// It has a control character.
    #[error("a session id must not contain the control character `{}`", .0.escape_unicode())]
    Control(char),
    /// It has a character that is not seen but steers how others are shown.
    #[error("a session id must not contain the invisible character `{}`", .0.escape_unicode())]
    Invisible(char),
    /// It has a character that no file name may have on Windows.
    #[error("a session id must not contain `{0}`, which Windows refuses in file names")]
    RefusedByWindows(char),
    /// It is made of dots alone, which name directories.
    #[error("a session id must not be made of dots alone: `{0}`")]
    DotsAlone(String),
    /// It begins or ends with a space.
    #[error("a session id must not begin or end with a space: `{0}`")]
    OuterSpace(String),
    /// It ends with a dot, which Windows drops from file names.
    #[error("a session id must not end with a dot, which Windows drops: `{0}`")]
    FinalDot(String),
    /// It is the name of a device on Windows, alone or with an extension.
    #[error("a session id must not be the name of a Windows device: `{0}`")]
    DeviceName(String),
}

impl SessionId {
    /// Checks that `text` can be a session id.
    ///
    /// # Errors
    ///
    /// [`SessionIdError`] names the first rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, SessionIdError> {
        if text.is_empty() {
            return Err(SessionIdError::Empty);
        }
        if text.len() > SESSION_ID_BYTES_MAX {
            return Err(SessionIdError::TooLong { bytes: text.len() });
        }
        // Most ids are made of these alone, which need no closer look. (Each byte is
        // looked at: so it is done with many at a time.)
        let is_plain_byte = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        let is_plain = text
            .bytes()
            .fold(true, |all, byte| all & is_plain_byte(byte));
        if !is_plain {
            check_characters(text)?;
        }
        // A plain one has no extension either.
        if (!is_plain || text.len() <= DEVICE_NAME_BYTES_MAX) && is_device_name(text) {
            return Err(SessionIdError::DeviceName(text.to_owned()));
        }
        if text.starts_with('-') {
            return Err(SessionIdError::LeadingHyphen(text.to_owned()));
        }
        Ok(Self(Arc::from(text)))
    }

    /// The id as the agent wrote it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn check_characters(text: &str) -> Result<(), SessionIdError> {
    text.chars().try_for_each(check_character)?;
    if text.bytes().all(|byte| byte == b'.') {
        return Err(SessionIdError::DotsAlone(text.to_owned()));
    }
    if text.starts_with(char::is_whitespace) || text.ends_with(char::is_whitespace) {
        return Err(SessionIdError::OuterSpace(text.to_owned()));
    }
    if text.ends_with('.') {
        return Err(SessionIdError::FinalDot(text.to_owned()));
    }
    Ok(())
}

fn check_character(character: char) -> Result<(), SessionIdError> {
    match character {
        '/' | '\\' => Err(SessionIdError::Separator(character)),
        '<' | '>' | ':' | '"' | '|' | '?' | '*' => Err(SessionIdError::RefusedByWindows(character)),
        _ if character.is_control() => Err(SessionIdError::Control(character)),
        _ if is_invisible(character) => Err(SessionIdError::Invisible(character)),
        _ => Ok(()),
    }
}

/// Returns whether Windows takes a file name for a device: the part before the
/// first dot counts, in any case, without spaces at its end.
///
/// From "Naming Files, Paths, and Namespaces" of the Windows documentation,
/// which also lists the superscript digits 1 to 3.
fn is_device_name(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name).trim_end();
    if stem.len() > DEVICE_NAME_BYTES_MAX {
        return false;
    }
    let stem = stem.to_ascii_uppercase();
    let is_port = |prefix: &str| {
        let number = stem.strip_prefix(prefix).unwrap_or("");
        let mut digits = number.chars();
        matches!(digits.next(), Some('0'..='9' | '¹' | '²' | '³')) && digits.next().is_none()
    };
    matches!(
        stem.as_str(),
        "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$"
    ) || is_port("COM")
        || is_port("LPT")
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Tables align ids, so width and the like must count.
        f.pad(&self.0)
    }
}

impl AsRef<str> for SessionId {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl FromStr for SessionId {
    type Err = SessionIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl TryFrom<&str> for SessionId {
    type Error = SessionIdError;

    fn try_from(text: &str) -> Result<Self, Self::Error> {
        Self::parse(text)
    }
}

impl TryFrom<String> for SessionId {
    type Error = SessionIdError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::{SessionId, SessionIdError};

    #[track_caller]
    fn check_accepted(text: &str) {
        assert_eq!(SessionId::parse(text).unwrap().as_str(), text);
    }

    #[track_caller]
    fn check_refused(text: &str, expected: &SessionIdError) {
        assert_eq!(SessionId::parse(text).as_ref(), Err(expected), "{text:?}");
    }

    #[test]
    fn ids_of_the_known_agents_are_accepted() {
        check_accepted("0a0cf238-8b66-4429-9815-234560ccc5d1");
        check_accepted("01a21ec8-c5bb-78f0-959a-e72776985ddc");
        check_accepted("ses_4f82a09910ea");
        check_accepted("session_893950d4-f3c8-42cf-ab40-ae96ce6c48b0");
        check_accepted("1795813652966_5ypul");
    }

    #[test]
    fn letters_of_every_script_and_inner_dots_and_spaces_are_accepted() {
        check_accepted("séance-会話-разговор");
        check_accepted("a b");
        check_accepted(".hidden");
        check_accepted("v1..v2");
        check_accepted("console");
        check_accepted("com10");
        check_accepted("com");
        check_accepted("x.con");
        check_accepted(&"a".repeat(128));
    }

    #[test]
    fn an_empty_or_too_long_id_is_refused() {
        check_refused("", &SessionIdError::Empty);
        check_refused(&"a".repeat(129), &SessionIdError::TooLong { bytes: 129 });
        check_refused(&"é".repeat(65), &SessionIdError::TooLong { bytes: 130 });
    }

    #[test]
    fn an_id_cannot_leave_its_directory() {
        check_refused("../../x", &SessionIdError::Separator('/'));
        check_refused("..\\x", &SessionIdError::Separator('\\'));
        for dots in [".", "..", "..."] {
            check_refused(dots, &SessionIdError::DotsAlone(dots.to_owned()));
        }
    }

    #[test]
    fn an_id_is_never_an_option() {
        for option in [
            "-",
            "--",
            "-c",
            "--yolo",
            "--dangerously-skip-permissions",
            "-é",
        ] {
            check_refused(option, &SessionIdError::LeadingHyphen(option.to_owned()));
        }
        check_accepted("a-b-");
        check_accepted("_-x");
    }

    #[test]
    fn control_and_invisible_characters_are_refused() {
        for control in ['\0', '\n', '\u{1b}', '\u{7f}', '\u{9b}'] {
            check_refused(&format!("a{control}b"), &SessionIdError::Control(control));
        }
        for invisible in [
            '\u{200b}',
            '\u{200d}',
            '\u{202e}',
            '\u{2066}',
            '\u{2028}',
            '\u{feff}',
            '\u{ad}',
            '\u{61c}',
            '\u{e0041}',
            '\u{3164}',
        ] {
            let error = SessionIdError::Invisible(invisible);
            check_refused(&format!("a{invisible}b"), &error);
        }
    }

    #[test]
    fn outer_spaces_and_a_final_dot_are_refused() {
        for text in [" a", "a ", "\u{a0}a", "a\u{3000}", " "] {
            check_refused(text, &SessionIdError::OuterSpace(text.to_owned()));
        }
        check_refused("a.", &SessionIdError::FinalDot("a.".to_owned()));
    }

    #[test]
    fn what_windows_refuses_is_refused() {
        for refused in ['<', '>', ':', '"', '|', '?', '*'] {
            let error = SessionIdError::RefusedByWindows(refused);
            check_refused(&format!("a{refused}b"), &error);
        }
        for name in [
            "CON",
            "con",
            "NUL",
            "nul.json",
            "Aux.tar.gz",
            "prn",
            "COM1",
            "lpt9.x",
            "com0",
            "COM²",
            "CONIN$",
            "conout$",
            "nul .txt",
        ] {
            check_refused(name, &SessionIdError::DeviceName(name.to_owned()));
        }
    }

    #[test]
    fn every_error_says_what_is_wrong() {
        let texts = [
            ("", "a session id must not be empty"),
            (
                "a/b",
                "a session id must not contain `/`, which separates the parts of a path",
            ),
            (
                "a\nb",
                "a session id must not contain the control character `\\u{a}`",
            ),
            (
                "a\u{202e}b",
                "a session id must not contain the invisible character `\\u{202e}`",
            ),
            (
                "a?b",
                "a session id must not contain `?`, which Windows refuses in file names",
            ),
            ("..", "a session id must not be made of dots alone: `..`"),
            (
                " a",
                "a session id must not begin or end with a space: ` a`",
            ),
            (
                "a.",
                "a session id must not end with a dot, which Windows drops: `a.`",
            ),
            (
                "-c",
                "a session id must not begin with a hyphen, as options do: `-c`",
            ),
            (
                "nul",
                "a session id must not be the name of a Windows device: `nul`",
            ),
        ];
        for (text, expected) in texts {
            assert_eq!(SessionId::parse(text).unwrap_err().to_string(), expected);
        }
        assert_eq!(
            SessionId::parse(&"a".repeat(200)).unwrap_err().to_string(),
            "a session id must not be longer than 128 bytes, this one has 200"
        );
    }
}
