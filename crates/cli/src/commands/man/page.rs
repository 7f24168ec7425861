//! One manual page, from the help of a command.

use std::io::{self, Write as _};

use clap::Command;
use clap_mangen::Man;
use whosup_core::sources::agents::AGENTS;

/// The exit statuses of commands whose help names none.
const EXIT_STATUS: &str = "0 done, 2 usage error or failure.";
const FILES: &[(&str, &str)] = &[
    (
        "~/.config/whosup/config.toml",
        "The configuration. Every key is optional.",
    ),
    (
        "~/.config/whosup/prices.toml",
        "Prices of models, beside those that are shipped.",
    ),
    (
        "~/.local/state/whosup/",
        "Session records that hooks write, and the server's token.",
    ),
    (
        "~/.local/state/whosup/hook.log",
        "What went wrong in hooks.",
    ),
    (
        "~/.local/state/agent-sessions/",
        "Where agents publish sessions (runtime.json).",
    ),
    (
        "~/.cache/whosup/usage/",
        "Tokens that were counted already.",
    ),
];
const ENVIRONMENT: &[(&str, &str)] = &[
    (
        "HOME",
        "The home directory, below which agents are searched.",
    ),
    (
        "XDG_CONFIG_HOME",
        "Where the configuration is, instead of ~/.config.",
    ),
    (
        "XDG_STATE_HOME",
        "Where records are, instead of ~/.local/state.",
    ),
    (
        "XDG_CACHE_HOME",
        "Where counted tokens are kept, instead of ~/.cache.",
    ),
    (
        "NO_COLOR, CLICOLOR, CLICOLOR_FORCE",
        "Whether output has colours.",
    ),
];

/// The text below the options in the help of a command.
#[derive(Default)]
struct Below {
    examples: Vec<String>,
    exit_status: Vec<String>,
    notes: Vec<String>,
}

impl Below {
    fn of(command: &Command) -> Self {
        let text = command.get_after_help().map(ToString::to_string);
        let mut below = Self::default();
        let mut is_exit_status = false;
        for line in text.unwrap_or_default().lines() {
            if let Some(first) = line.strip_prefix("Exit status: ") {
                is_exit_status = true;
                below.exit_status.push(first.to_owned());
            } else if line.is_empty() {
                is_exit_status = false;
                below.notes.push(String::new());
            } else if is_exit_status {
                below.exit_status.push(line.to_owned());
            } else if line.starts_with("  ") {
                below.examples.push(line.to_owned());
            } else if line != "Examples:" {
                below.notes.push(line.to_owned());
            }
        }
        below
    }
}

/// Renders the page of a command that was built.
///
/// # Errors
///
/// The [`io::Error`] of the writer.
pub(super) fn render(command: &Command, all: &[Command]) -> io::Result<Vec<u8>> {
    let man = Man::new(command.clone());
    let below = Below::of(command);
    let mut page = Vec::new();
    let (name, version) = (name(command), env!("CARGO_PKG_VERSION"));
    writeln!(
        page,
        ".TH \"{}\" 1 \"\" \"whosup {version}\" \"Manual of whosup\"",
        escaped(name)
    )?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    paragraphs(&mut page, &below.notes)?;
    man.render_options_section(&mut page)?;
    let commands: Vec<(String, String)> = visible(command)
        .map(|one| (one.get_name().to_owned(), about(one)))
        .collect();
    if !commands.is_empty() {
        section(&mut page, "COMMANDS")?;
        definitions(&mut page, &commands)?;
    }
    section(&mut page, "EXIT STATUS")?;
    if below.exit_status.is_empty() {
        line(&mut page, EXIT_STATUS)?;
    }
    paragraphs(&mut page, &below.exit_status)?;
    section(&mut page, "FILES")?;
    definitions(&mut page, FILES)?;
    section(&mut page, "ENVIRONMENT")?;
    definitions(&mut page, ENVIRONMENT)?;
    definitions(
        &mut page,
        &[(agents_variables(), "Where agents have their homes.")],
    )?;
    section(&mut page, "EXAMPLES")?;
    let parent = parent(command, all).map(Below::of);
    let examples = if below.examples.is_empty() {
        // Options of the parent command.
        parent.unwrap_or_default().examples
    } else {
        below.examples
    };
    writeln!(page, ".EX")?;
    for example in &examples {
        line(&mut page, example)?;
    }
    writeln!(page, ".EE")?;
    section(&mut page, "SEE ALSO")?;
    let references = see_also(command, all);
    for (at, reference) in references.iter().enumerate() {
        let comma = if at + 1 < references.len() { "," } else { "" };
        // A literal is never hyphenated.
        writeln!(page, "\\%{}{comma}", escaped(reference))?;
    }
    Ok(page)
}

/// The name of a command's page.
pub(super) fn name(command: &Command) -> &str {
    command
        .get_display_name()
        .unwrap_or_else(|| command.get_name())
}

/// The subcommands that are not hidden.
pub(super) fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|one| !one.is_hide_set())
}

fn about(command: &Command) -> String {
    command
        .get_about()
        .map(ToString::to_string)
        .unwrap_or_default()
}

/// The parent of a command.
fn parent<'a>(command: &Command, all: &'a [Command]) -> Option<&'a Command> {
    let has_it = |one: &&Command| visible(one).any(|child| name(child) == name(command));
    all.iter().find(has_it)
}

/// The pages above and below a command.
fn see_also(command: &Command, all: &[Command]) -> Vec<String> {
    let mut names = Vec::new();
    let mut above = parent(command, all);
    while let Some(one) = above {
        names.insert(0, name(one));
        above = parent(one, all);
    }
    names.extend(visible(command).map(name));
    names.iter().map(|name| format!("{name}(1)")).collect()
}

/// The variables that move the homes of agents.
fn agents_variables() -> String {
    let variables = AGENTS.iter().flat_map(|one| one.profile().home_variables);
    let mut variables: Vec<&str> = variables.copied().collect();
    variables.sort_unstable();
    variables.dedup();
    variables.retain(|name| !ENVIRONMENT.iter().any(|(known, _)| known == name));
    variables.join(", ")
}

fn section(page: &mut Vec<u8>, name: &str) -> io::Result<()> {
    writeln!(page, ".SH \"{name}\"")
}

fn definitions(page: &mut Vec<u8>, terms: &[(impl AsRef<str>, impl AsRef<str>)]) -> io::Result<()> {
    for (term, words) in terms {
        writeln!(page, ".TP\n\\fB{}\\fR", escaped(term.as_ref()))?;
        line(page, words.as_ref())?;
    }
    Ok(())
}

/// Text as paragraphs, separated by empty lines.
fn paragraphs(page: &mut Vec<u8>, lines: &[String]) -> io::Result<()> {
    for paragraph in lines.split(String::is_empty).filter(|one| !one.is_empty()) {
        writeln!(page, ".PP")?;
        for text in paragraph {
            line(page, text)?;
        }
    }
    Ok(())
}

/// A line of text that roff does not take for a request.
fn line(page: &mut Vec<u8>, text: &str) -> io::Result<()> {
    let guard = if text.starts_with(['.', '\'']) {
        "\\&"
    } else {
        ""
    };
    writeln!(page, "{guard}{}", escaped(text))
}

/// Text escaped for roff, so that hyphens and quotes stay as they are.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '\\' => escaped.push_str("\\e"),
            '-' => escaped.push_str("\\-"),
            '\'' => escaped.push_str("\\(aq"),
            '`' => escaped.push_str("\\(ga"),
            '^' => escaped.push_str("\\(ha"),
            '~' => escaped.push_str("\\(ti"),
            other => escaped.push(other),
        }
    }
    escaped
}
