//! The command line: what may be typed.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Args, Parser};
use whosup_core::sidecar::AgentId;
use whosup_core::sources::agents::AGENTS;

use crate::colour::ColourChoice;
use crate::commands::Command;

/// How wide help texts get, in columns.
const HELP_WIDTH_MAX: usize = 100;

const EXAMPLES: &str = "\
Examples:
  whosup                     What is live, what waits for you, what died today
  whosup list --all          Every session on disk
  whosup why 0a022b20        The evidence for an answer
  whosup check 0a022b20      For scripts: exit status 0 live, 1 exited, 3 unknown
  whosup demo                Try whosup on made-up sessions

Exit status: 0 done or live, 1 exited, 2 usage error or failure, 3 unknown, 4 no such session.";

/// Show which coding-agent sessions are live, in which process and terminal
/// pane, what they are doing, and what became of the others.
///
/// Every answer is live, exited or unknown, with a reason. Looking changes
/// nothing. Without a command, whosup lists sessions.
#[derive(Debug, Parser)]
#[command(
    name = "whosup",
    version,
    after_help = EXAMPLES,
    max_term_width = HELP_WIDTH_MAX,
    subcommand_value_name = "COMMAND",
    disable_help_subcommand = true
)]
pub(crate) struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub(crate) globals: Globals,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Options of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Globals {
    /// When to use colours; `auto`: on a terminal, unless `NO_COLOR` or `CLICOLOR=0` is set
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColourChoice,
    /// Read this configuration instead of `~/.config/whosup/config.toml`
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Report on standard error what is looked at and how long it takes
    #[arg(long, short, global = true)]
    pub(crate) verbose: bool,
}

/// Reads the command line.
///
/// Options without a command are those of `list`: `whosup --json`.
///
/// # Errors
///
/// [`clap::Error`], which also stands for `--help` and `--version`.
pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    let parsed = Cli::try_parse_from(&arguments);
    let has_leading_option = arguments
        .get(1)
        .is_some_and(|first| first.as_encoded_bytes().starts_with(b"-"));
    match parsed {
        Err(error) if error.kind() == ErrorKind::UnknownArgument && has_leading_option => {
            arguments.insert(1, OsStr::new("list").to_owned());
            Cli::try_parse_from(&arguments)
        }
        parsed => parsed,
    }
}

/// Reads the id of a supported agent.
pub(crate) fn supported_agent_parser() -> impl TypedValueParser<Value = AgentId> {
    supported_agents().try_map(|id| AgentId::parse(&id))
}

fn supported_agents() -> PossibleValuesParser {
    PossibleValuesParser::new(AGENTS.iter().map(|adapter| adapter.profile().id))
}

/// Reads the id of any agent, also of one that has not published anything yet.
pub(crate) fn agent_parser() -> impl TypedValueParser<Value = AgentId> {
    AgentParser(supported_agents())
}

/// See [`agent_parser`]. What completion offers are the supported ones.
#[derive(Clone)]
struct AgentParser(PossibleValuesParser);

impl TypedValueParser for AgentParser {
    type Value = AgentId;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<AgentId, clap::Error> {
        let parse = |name: String| AgentId::parse(&name);
        let any = StringValueParser::new().try_map(parse);
        any.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        self.0.possible_values()
    }
}

/// Reads a name out of a closed list of named values.
pub(crate) fn name_parser<T: Clone + Send + Sync + 'static>(
    names: impl IntoIterator<Item = &'static str>,
    find: impl Fn(&str) -> Option<T> + Clone + Send + Sync + 'static,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(names).try_map(move |name| {
        // Only the names that `find` knows get here.
        find(&name).ok_or("no such name")
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::{Cli, parse};
    use crate::commands::Command;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn options_without_a_command_are_those_of_list() {
        for line in [
            "whosup --json",
            "whosup --color never --all",
            "whosup list --json",
        ] {
            let cli = parse(line.split(' ').map(Into::into)).unwrap();
            assert!(matches!(cli.command, Some(Command::List(_))), "{line}");
        }
        let cli = parse(["whosup".into()]).unwrap();
        assert!(cli.command.is_none());
    }

    #[test]
    fn an_option_that_no_command_has_is_an_error() {
        let error = parse(["whosup".into(), "--jsn".into()]).unwrap_err();
        assert!(error.to_string().contains("--json"), "{error}");
    }
}
