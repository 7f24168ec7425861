//! Exit statuses of commands, and error messages for people.

use std::io::{self, IsTerminal as _, Write};

use clap::error::{ContextKind, ContextValue};
use whosup_serve::ServeError;
use whosup_track::TrackError;

use crate::colour;
use crate::config::ConfigError;
use crate::text::{is_steering, visible};
use whosup_core::reader::{AgentError, FilterError, IdError, reasons};

/// The exit status of a command; the values mean the same for every command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExitStatus {
    /// Done; asked about a session: it is live.
    Done,
    /// The session has exited.
    Exited,
    /// Something is wrong, and was reported.
    Findings,
    /// The command line was wrong, or the command itself failed.
    Failed,
    /// It is unknown whether the session is live.
    Unknown,
    /// There is no such session.
    NoSuchSession,
    /// What was waited for did not happen in time.
    TimedOut,
    /// The exit status of the program that was run.
    OfProgram(u8),
}

impl ExitStatus {
    /// The number of the exit status.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Exited | Self::Findings => 1,
            Self::Failed => 2,
            Self::Unknown => 3,
            Self::NoSuchSession => 4,
            Self::TimedOut => 124,
            Self::OfProgram(code) => code,
        }
    }

    /// The same, unless the reader of the output has gone.
    pub(crate) fn unless_pipe_closed(self, written: &io::Result<()>) -> Self {
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Self::Done,
            _ => self,
        }
    }
}

/// Prints an error with its causes and hints, and returns the exit status.
pub(crate) fn report(error: &anyhow::Error, err: &mut dyn Write) -> ExitStatus {
    if is_broken_pipe(error) {
        return ExitStatus::Done;
    }
    // A failed write to standard error can't be reported anywhere.
    for (at, reason) in reasons(error.as_ref()).iter().enumerate() {
        let label = if at == 0 { "error" } else { "cause" };
        writeln!(err, "{label}: {}", lines_of(reason)).ok();
    }
    if let Some(hint) = hint(error) {
        writeln!(err, "hint: {hint}").ok();
    }
    status(error)
}

/// Shows clap's output: help, version, or a usage error.
pub(crate) fn report_usage(mut error: clap::Error) -> ExitStatus {
    let text = without_foreign_text(&mut error);
    if error.use_stderr() {
        let text = text.unwrap_or_else(|| rendered(&error, io::stderr().is_terminal()));
        // A failed write to standard error can't be reported anywhere.
        io::stderr().write_all(text.as_bytes()).ok();
        return ExitStatus::Failed;
    }
    let mut out = io::stdout().lock();
    let text = rendered(&error, out.is_terminal());
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => ExitStatus::Done,
        Err(error) => report(&error.into(), &mut io::stderr()),
    }
}

fn rendered(error: &clap::Error, is_terminal: bool) -> String {
    let choice = colour::asked_for(std::env::args_os());
    let text = error.render();
    if colour::is_wanted(choice, is_terminal, |name| std::env::var_os(name)) {
        text.ansi().to_string()
    } else {
        text.to_string()
    }
}

/// A usage error about an argument that would steer the terminal: the argument escaped,
/// and no colours. `None` if there is no such argument.
fn without_foreign_text(error: &mut clap::Error) -> Option<String> {
    let steers = |text: &str| text.contains(is_steering);
    let foreign: Vec<(ContextKind, String)> = error
        .context()
        .filter_map(|(kind, value)| match value {
            ContextValue::String(text) if steers(text) => Some((kind, visible(text))),
            _ => None,
        })
        .collect();
    let cause = std::error::Error::source(error).map(ToString::to_string);
    if foreign.is_empty() && !cause.is_some_and(|cause| steers(&cause)) {
        return None;
    }
    for (kind, text) in foreign {
        error.insert(kind, ContextValue::String(text));
    }
    // A suggestion repeats the word it is for.
    error.insert(ContextKind::Suggested, ContextValue::None);
    Some(format!("{}\n", lines_of(&error.render().to_string())))
}

/// The reader of the output has closed the pipe, as `head` does: no failure.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    })
}

pub(crate) fn status(error: &anyhow::Error) -> ExitStatus {
    match error.downcast_ref::<IdError>() {
        Some(IdError::NotFound { .. } | IdError::Agent(AgentError::Unsupported { .. })) => {
            ExitStatus::NoSuchSession
        }
        Some(IdError::NotSeen { .. }) => ExitStatus::Unknown,
        _ => ExitStatus::Failed,
    }
}

fn hint(error: &anyhow::Error) -> Option<String> {
    let of_id = error.downcast_ref::<IdError>().and_then(|error| match error {
        IdError::NotFound { home: Some(_), .. } => {
            Some("`whosup agents` shows the homes; without `--home`, all of them are searched")
        }
        IdError::NotFound { .. } => Some("`whosup list --all` shows every session on disk"),
        IdError::NotSeen { .. } => Some("`whosup list --all --problems` shows what could not be read"),
        IdError::Ambiguous { .. } => Some("type more of the ID, or the agent before it: `codex:01a2`; `--home DIR` chooses between homes that have the same ID"),
        IdError::Agent(_) => Some("`whosup agents` shows every agent that is supported"),
        _ => None,
    });
    let of_config = error
        .downcast_ref::<ConfigError>()
        .and_then(|error| match error {
            ConfigError::Parse { .. } => {
                Some("every key is optional; docs/config.md describes them all")
            }
            _ => None,
        });
    let of_filter = error.downcast_ref::<FilterError>().and_then(|error| match error {
        FilterError::Directory { .. } => Some(
            "`--cwd` needs an existing directory; `whosup list --all` shows the directories of all sessions",
        ),
        _ => None,
    });
    let of_track = error
        .downcast_ref::<TrackError>()
        .and_then(|error| match error {
            TrackError::OwnHost { .. } => Some("`whosup end ID` ends a session by hand"),
            _ => None,
        });
    let of_serve = error
        .downcast_ref::<ServeError>()
        .and_then(|error| match error {
            ServeError::InTheClear { .. } => Some(
                "give `--tls-cert` and `--tls-key`, or `--insecure` to serve without TLS in a network that you trust",
            ),
            ServeError::Listen { .. } => Some("`--listen 127.0.0.1:0` takes any free port"),
            _ => None,
        });
    of_id
        .or(of_serve)
        .or(of_config)
        .or(of_filter)
        .or(of_track)
        .map(str::to_owned)
}

/// Foreign text in an error can't steer the terminal; its lines stay lines.
fn lines_of(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(visible).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::{ExitStatus, report};

    #[track_caller]
    fn check_report(error: &anyhow::Error, expected: &str, status: ExitStatus) {
        let mut err = Vec::new();
        assert_eq!(report(error, &mut err), status);
        assert_eq!(String::from_utf8(err).unwrap(), expected);
    }

    #[test]
    fn a_failure_names_its_causes() {
        let cause = std::io::Error::other("no space left on device");
        let error = anyhow::Error::new(cause).context("cannot write the output");
        let expected = "error: cannot write the output\ncause: no space left on device\n";
        check_report(&error, expected, ExitStatus::Failed);
    }

    #[test]
    fn a_reader_that_has_gone_is_no_failure() {
        let error = std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        check_report(&anyhow::Error::new(error), "", ExitStatus::Done);
    }

    #[test]
    fn foreign_text_in_a_failure_is_shown_as_escapes() {
        let error = anyhow::anyhow!("cannot read `\u{1b}[2J`");
        let expected = "error: cannot read `\\u{1b}[2J`\n";
        check_report(&error, expected, ExitStatus::Failed);
    }
}
