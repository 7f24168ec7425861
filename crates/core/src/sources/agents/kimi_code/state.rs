//! A session's `state.json`.

use std::path::{Path, PathBuf};

use whosup_sidecar::{FieldError, StrictObject};

use crate::sources::agents::kit::document::from_object;

/// How long it may be: it has the whole last prompt.
const STATE_BYTES_MAX: u64 = 16 << 20;
/// The value for a title that is the first prompt, until a better title is found.
const TITLE_IS_A_PROMPT: &str = "replaceable";

/// The title of a session without a title, in releases before 0.33.
const UNTITLED: &str = "New Session";

/// Facts in the state file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct State {
    pub(super) work_dir: Option<PathBuf>,
    pub(super) created_at_ms: Option<i64>,
    /// The unchanged title.
    pub(super) title: Option<String>,
    /// The title is the first prompt: no person set it.
    pub(super) is_title_a_prompt: bool,
}

/// Reads the state of `session`; `None` if it has no file.
///
/// # Errors
///
/// Why the file cannot be read, or that it belongs to another session.
pub(super) fn read(path: &Path, session: &str) -> Result<Option<State>, String> {
    let state = from_object(path, STATE_BYTES_MAX, |object| {
        Ok(match object.opt_string("id")? {
            Some(other) if other != session => Err(format!(
                "`id` is `{other}`, and its directory is another one's"
            )),
            _ => Ok(parse(object)?),
        })
    });
    state?.transpose()
}

fn parse(object: &StrictObject<'_>) -> Result<State, FieldError> {
    let is_blank = |text: &&str| text.trim().is_empty();
    let title = object.opt_string("title")?.filter(|title| !is_blank(title));
    let kind = object.opt_string("titleKind")?;
    let work_dir = match object.opt_string("cwd")? {
        Some(work_dir) => Some(work_dir),
        None => object.opt_string("workDir")?,
    };
    let is_custom = object.opt_bool("isCustomTitle").unwrap_or_default();
    Ok(State {
        work_dir: work_dir.filter(|text| !is_blank(text)).map(PathBuf::from),
        created_at_ms: created_at_ms(object)?,
        title: title.map(str::to_owned).filter(|title| title != UNTITLED),
        is_title_a_prompt: match kind {
            Some(kind) => kind == TITLE_IS_A_PROMPT,
            None => is_custom == Some(false),
        },
    })
}

/// Milliseconds; releases before 0.33 wrote the date as text.
fn created_at_ms(object: &StrictObject<'_>) -> Result<Option<i64>, FieldError> {
    let is_date = |at: &i64| *at > 0;
    match object.opt_integer("createdAt") {
        Ok(at) => Ok(at.filter(is_date)),
        Err(error) => {
            let text = object.opt_string("createdAt").ok().flatten();
            let at: Option<jiff::Timestamp> = text.and_then(|text| text.parse().ok());
            let at = at.ok_or(error)?.as_millisecond();
            Ok(Some(at).filter(is_date))
        }
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, right: Result<State, &str>) {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("state.json");
        std::fs::write(&path, text).expect("a file");
        let state = read(&path, "session_1").map(|state| state.expect("a state"));
        assert_eq!(state, right.map_err(str::to_owned));
    }

    #[test]
    fn a_state_is_read() {
        let right = State {
            work_dir: Some(PathBuf::from("/home/dev/app")),
            created_at_ms: Some(1_795_813_270_966),
            title: Some("fix it".to_owned()),
            is_title_a_prompt: true,
        };
        check(
            r#"{"id":"session_1","version":2,"cwd":"/home/dev/app","createdAt":1795813270966,
                "title":"fix it","titleKind":"replaceable","isCustomTitle":false,"new":[1]}"#,
            Ok(right.clone()),
        );
        check(
            r#"{"id":"session_1","cwd":"/home/dev/app","createdAt":1795813270966,"title":"fix it","titleKind":"custom"}"#,
            Ok(State {
                is_title_a_prompt: false,
                ..right
            }),
        );
    }

    /// As releases before 0.33 wrote it, without an id.
    #[test]
    fn an_older_state_is_read() {
        let right = State {
            work_dir: Some(PathBuf::from("/home/dev/app")),
            created_at_ms: Some(1_795_813_270_966),
            title: Some("fix it".to_owned()),
            is_title_a_prompt: true,
        };
        check(
            r#"{"workDir":"/home/dev/app","createdAt":"2026-11-27T21:01:10.966Z","updatedAt":"2026-11-27T21:02:00.000Z",
                "title":"fix it","isCustomTitle":false,"agents":{},"custom":{}}"#,
            Ok(right.clone()),
        );
        check(
            r#"{"workDir":"/home/dev/app","createdAt":"2026-11-27T21:01:10.966Z","title":"New Session","isCustomTitle":false}"#,
            Ok(State {
                title: None,
                ..right
            }),
        );
    }

    #[test]
    fn before_the_first_prompt_there_is_no_title() {
        check(r#"{"title":" "}"#, Ok(State::default()));
        check("{}", Ok(State::default()));
    }

    #[test]
    fn what_is_wrong_is_said() {
        check(
            r#"{"createdAt":"2026"}"#,
            Err("`createdAt` is not an integer: found the string `2026`"),
        );
        check(
            r#"{"id":"session_2"}"#,
            Err("`id` is `session_2`, and its directory is another one's"),
        );
        let none = read(Path::new("/nonexistent/state.json"), "session_1");
        assert_eq!(none, Ok(None));
    }
}
