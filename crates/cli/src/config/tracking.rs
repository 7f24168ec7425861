//! The configuration of session records and of their end.

use std::path::PathBuf;
use std::time::Duration;

use toml::Spanned;
use whosup_core::machine::Environment;
use whosup_track::KEEP_ENDED;

use crate::since::parse_span;
use whosup_core::sources::config::Wrong;

/// How many commands may run at the end of a session.
const COMMANDS_MAX: usize = 8;

/// The configuration of session records and of their end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tracking {
    /// How long the records of ended sessions are kept.
    pub(crate) keep_ended: Duration,
    /// How long an unknown session must be silent to be ended; `None`: it is never ended
    /// for that.
    pub(crate) end_unknown_after: Option<Duration>,
    /// The commands for ended sessions: each a program and its arguments.
    pub(crate) on_end: Vec<Vec<String>>,
}

impl Default for Tracking {
    fn default() -> Self {
        Self {
            keep_ended: KEEP_ENDED,
            end_unknown_after: None,
            on_end: Vec::new(),
        }
    }
}

impl Tracking {
    /// Parses the keys of the file.
    pub(super) fn of(
        keep_ended: Option<&Spanned<String>>,
        end_unknown_after: Option<&Spanned<String>>,
        on_end: Vec<Spanned<Vec<String>>>,
        environment: &Environment,
    ) -> Result<Self, Wrong> {
        let default = Self::default();
        let keep_ended = keep_ended.map(span_of).transpose()?;
        let end_unknown_after = end_unknown_after
            .filter(|text| text.get_ref() != "never")
            .map(span_of)
            .transpose()?;
        if let Some(first_over) = on_end.get(COMMANDS_MAX) {
            return Err(Wrong {
                at: first_over.span().start,
                reason: format!("`on_end` has more than {COMMANDS_MAX} commands"),
            });
        }
        let on_end = on_end
            .into_iter()
            .map(|command| command_of("on_end", command, environment))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            keep_ended: keep_ended.unwrap_or(default.keep_ended),
            end_unknown_after,
            on_end,
        })
    }
}

fn span_of(text: &Spanned<String>) -> Result<Duration, Wrong> {
    parse_span(text.get_ref()).ok_or_else(|| Wrong {
        at: text.span().start,
        reason: format!(
            "`{}` is no span of time, expected a number with a unit (s, m, h, d, w) such as `30d`",
            text.get_ref()
        ),
    })
}

/// A program and its arguments. A path may begin with `~/`; other programs are found as in
/// a shell.
pub(super) fn command_of(
    key: &str,
    command: Spanned<Vec<String>>,
    environment: &Environment,
) -> Result<Vec<String>, Wrong> {
    let at = command.span().start;
    let mut words = command.into_inner();
    let program = words.first_mut().filter(|program| !program.is_empty());
    let Some(program) = program else {
        return Err(Wrong {
            at,
            reason: format!(
                "a command of `{key}` is a program and its arguments, and this has none"
            ),
        });
    };
    if program.starts_with("~/") {
        let path = environment.resolve(&PathBuf::from(&*program));
        let path = path.and_then(|path| path.into_os_string().into_string().ok());
        *program = path.ok_or_else(|| Wrong {
            at,
            reason: format!("`{program}` hangs from a home that is not known"),
        })?;
    } else if program.contains('/') && !program.starts_with('/') {
        return Err(Wrong {
            at,
            reason: format!("`{program}` must be absolute, begin with `~/`, or be a name alone"),
        });
    }
    Ok(words)
}
