//! Colours: whether there are any, and which.

use std::ffi::OsString;
use std::fmt;

use anstyle::{AnsiColor, Color, Effects, Style};
use clap::ValueEnum;

/// When output has colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColourChoice {
    // Doc comments here would make the help of every command longer.
    Auto,
    Always,
    Never,
}

/// Decides whether output has colours: the option first, then `NO_COLOR`,
/// `CLICOLOR_FORCE` and `CLICOLOR`, then whether it is a terminal.
///
/// The variables are those of no-color.org and bixense.com/clicolors.
pub(crate) fn is_wanted(
    choice: ColourChoice,
    is_terminal: bool,
    variable: impl Fn(&str) -> Option<OsString>,
) -> bool {
    let value = |name| variable(name).filter(|value| !value.is_empty());
    let is_on = |name| value(name).map(|value| value != "0");
    match choice {
        ColourChoice::Always => true,
        ColourChoice::Never => false,
        ColourChoice::Auto => {
            let is_dumb = value("TERM").is_some_and(|term| term == "dumb");
            if value("NO_COLOR").is_some() {
                false
            } else if is_on("CLICOLOR_FORCE") == Some(true) {
                true
            } else {
                is_terminal && !is_dumb && is_on("CLICOLOR") != Some(false)
            }
        }
    }
}

/// What `--color` says, also on a command line that is not understood.
pub(crate) fn asked_for(arguments: impl Iterator<Item = OsString>) -> ColourChoice {
    let words: Vec<String> = arguments
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let joined = words
        .iter()
        .filter_map(|word| word.strip_prefix("--color="));
    let pairs = words.iter().zip(words.iter().skip(1));
    let apart = pairs.filter_map(|(name, value)| (name == "--color").then_some(value.as_str()));
    let mut choices = joined
        .chain(apart)
        .filter_map(|choice| ColourChoice::from_str(choice, false).ok());
    choices.next().unwrap_or(ColourChoice::Auto)
}

/// Puts a style around a text, or leaves it as it is.
pub(crate) fn paint(text: &str, style: Style, is_coloured: bool) -> String {
    if is_coloured && !style.is_plain() {
        format!("{style}{text}{style:#}")
    } else {
        text.to_owned()
    }
}

/// The words that a style in the configuration is made of.
const COLOURS: [(&str, AnsiColor); 16] = [
    ("black", AnsiColor::Black),
    ("red", AnsiColor::Red),
    ("green", AnsiColor::Green),
    ("yellow", AnsiColor::Yellow),
    ("blue", AnsiColor::Blue),
    ("magenta", AnsiColor::Magenta),
    ("cyan", AnsiColor::Cyan),
    ("white", AnsiColor::White),
    ("bright-black", AnsiColor::BrightBlack),
    ("bright-red", AnsiColor::BrightRed),
    ("bright-green", AnsiColor::BrightGreen),
    ("bright-yellow", AnsiColor::BrightYellow),
    ("bright-blue", AnsiColor::BrightBlue),
    ("bright-magenta", AnsiColor::BrightMagenta),
    ("bright-cyan", AnsiColor::BrightCyan),
    ("bright-white", AnsiColor::BrightWhite),
];

const EFFECTS: [(&str, Effects); 5] = [
    ("bold", Effects::BOLD),
    ("dimmed", Effects::DIMMED),
    ("italic", Effects::ITALIC),
    ("underline", Effects::UNDERLINE),
    ("plain", Effects::new()),
];

/// Why a text is no style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StyleError {
    word: String,
}

impl fmt::Display for StyleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let colours = COLOURS.iter().map(|(name, _)| *name);
        let effects = EFFECTS.iter().map(|(name, _)| *name);
        let names: Vec<&str> = colours.chain(effects).collect();
        write!(
            f,
            "`{}` is no colour; colours are made of {}",
            self.word,
            names.join(", ")
        )
    }
}

/// Reads a style: colours and effects by name, separated by blanks, such as
/// `bold bright-red`.
pub(crate) fn parse_style(text: &str) -> Result<Style, StyleError> {
    let mut style = Style::new();
    for word in text.split_whitespace() {
        let colour = COLOURS.iter().find(|(name, _)| *name == word);
        let effect = EFFECTS.iter().find(|(name, _)| *name == word);
        style = match (colour, effect) {
            (Some((_, colour)), _) => style.fg_color(Some(Color::Ansi(*colour))),
            (None, Some((_, effect))) => style | *effect,
            (None, None) => {
                return Err(StyleError {
                    word: word.to_owned(),
                });
            }
        };
    }
    Ok(style)
}

#[cfg(test)]
mod tests {
    use super::{ColourChoice, asked_for, is_wanted, paint, parse_style};

    #[track_caller]
    fn check_auto(is_terminal: bool, variables: &[(&str, &str)], expected: bool) {
        let wanted = is_wanted(ColourChoice::Auto, is_terminal, |name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).into())
        });
        assert_eq!(wanted, expected, "{variables:?}");
    }

    #[test]
    fn a_pipe_has_no_colours_unless_they_are_forced() {
        check_auto(false, &[], false);
        check_auto(false, &[("CLICOLOR", "1")], false);
        check_auto(false, &[("CLICOLOR_FORCE", "1")], true);
        check_auto(false, &[("CLICOLOR_FORCE", "0")], false);
    }

    #[test]
    fn a_terminal_has_colours_unless_they_are_refused() {
        check_auto(true, &[], true);
        check_auto(true, &[("NO_COLOR", "")], true);
        check_auto(true, &[("NO_COLOR", "1")], false);
        check_auto(true, &[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")], false);
        check_auto(true, &[("CLICOLOR", "0")], false);
        check_auto(true, &[("TERM", "dumb")], false);
    }

    #[test]
    fn the_option_beats_the_variables() {
        let no_color = |name: &str| (name == "NO_COLOR").then(|| "1".into());
        assert!(is_wanted(ColourChoice::Always, false, no_color));
        assert!(!is_wanted(ColourChoice::Never, true, |_| Some("1".into())));
    }

    #[test]
    fn the_option_is_found_on_any_command_line() {
        for (line, expected) in [
            ("list --bogus", ColourChoice::Auto),
            ("--color never list --bogus", ColourChoice::Never),
            ("help list --color=always", ColourChoice::Always),
            ("list --color pink", ColourChoice::Auto),
        ] {
            assert_eq!(
                asked_for(line.split(' ').map(Into::into)),
                expected,
                "{line}"
            );
        }
    }

    #[test]
    fn styles_are_read_by_name() {
        let style = parse_style("bold red").unwrap();
        assert_eq!(paint("x", style, true), "\u{1b}[1m\u{1b}[31mx\u{1b}[0m");
        assert_eq!(paint("x", style, false), "x");
        assert_eq!(paint("x", parse_style("plain").unwrap(), true), "x");
        let error = parse_style("bold purple").unwrap_err().to_string();
        assert!(error.starts_with("`purple` is no colour"), "{error}");
        assert!(error.contains("magenta"), "{error}");
    }
}
