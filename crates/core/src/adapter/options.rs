//! Arguments as the option parsers of agents read them.

use std::ffi::OsString;

/// The name of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name<'a> {
    /// With its dashes: `--resume`.
    Long(&'a str),
    /// The letter of `-r`.
    Short(char),
}

impl Name<'_> {
    /// Whether `wanted`, which has its dashes, is this name.
    pub(super) fn is(self, wanted: &str) -> bool {
        match self {
            Self::Long(name) => name == wanted,
            Self::Short(letter) => {
                let rest = wanted.strip_prefix('-');
                rest.and_then(|rest| rest.strip_prefix(letter)) == Some("")
            }
        }
    }

    pub(super) fn is_one_of(self, wanted: &[&str]) -> bool {
        wanted.iter().any(|wanted| self.is(wanted))
    }
}

/// A part of the arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Given<'a> {
    /// Neither an option nor the value of one.
    Word(&'a str),
    /// An option, with its value if one was found.
    Option(Name<'a>, Option<&'a str>),
}

/// Reads arguments up to `--`, behind which prompts and files follow.
///
/// A value follows `=`, or is the next argument of an option that `takes_value`, unless
/// that begins with `-`. Short options may be written in one word (`-yr`), and the value of
/// the last of them may be attached (`-rID`).
pub(super) fn read<'a>(
    arguments: &'a [OsString],
    takes_value: impl Fn(Name<'_>) -> bool,
) -> Vec<Given<'a>> {
    let arguments = arguments.iter();
    let arguments = arguments.map(|argument| argument.to_str().unwrap_or_default());
    let mut arguments = arguments.take_while(|word| *word != "--").peekable();
    let mut found = Vec::new();
    while let Some(argument) = arguments.next() {
        let mut options = if argument.starts_with("--") {
            let (name, value) = match argument.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (argument, None),
            };
            vec![Given::Option(Name::Long(name), value)]
        } else if let Some(letters) = argument.strip_prefix('-') {
            short_options(letters, &takes_value)
        } else {
            vec![Given::Word(argument)]
        };
        if let Some(Given::Option(name, value @ None)) = options.last_mut()
            && takes_value(*name)
        {
            *value = arguments.next_if(|next| !next.starts_with('-'));
        }
        found.append(&mut options);
    }
    found
}

/// The options that the letters behind one dash stand for; none where other characters stand
/// among them (`-1`, `- a prompt`).
fn short_options<'a>(letters: &'a str, takes_value: impl Fn(Name<'_>) -> bool) -> Vec<Given<'a>> {
    let mut found = Vec::new();
    let mut rest = letters;
    while let Some(letter) = rest.chars().next() {
        if !letter.is_ascii_alphabetic() {
            return Vec::new();
        }
        let name = Name::Short(letter);
        rest = rest.get(1..).unwrap_or_default();
        let value = rest.strip_prefix('=');
        let value =
            value.or_else(|| Some(rest).filter(|rest| !rest.is_empty() && takes_value(name)));
        found.push(Given::Option(name, value));
        if value.is_some() {
            break;
        }
    }
    found
}

/// The value of the last of some options, as parsers take it, with the name that is wanted;
/// `None` if it is empty.
pub(super) fn value_of<'a, 'n>(
    given: &[Given<'a>],
    wanted: &[&'n str],
) -> Option<(&'n str, &'a str)> {
    let (name, value) = given.iter().rev().find_map(|given| match *given {
        Given::Option(name, value) => {
            let mut wanted = wanted.iter();
            Some((*wanted.find(|wanted| name.is(wanted))?, value))
        }
        Given::Word(_) => None,
    })?;
    Some((name, value.filter(|value| !value.is_empty())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value<'n>(command: &str, wanted: &[&'n str]) -> Option<(&'n str, String)> {
        let arguments: Vec<OsString> = command.split(' ').map(OsString::from).collect();
        let given = read(&arguments, |name| name.is_one_of(&["--resume", "-r", "-m"]));
        let (name, value) = value_of(&given, wanted)?;
        Some((name, value.to_owned()))
    }

    #[test]
    fn the_value_of_a_short_option_may_be_attached_and_other_letters_may_stand_before() {
        for (command, right) in [
            ("-r x", Some("x")),
            ("-rx", Some("x")),
            ("-r=x", Some("x")),
            ("-yr x", Some("x")),
            ("-yrx", Some("x")),
            ("-yr=x", Some("x")),
            ("-r0a-1 y", Some("0a-1")),
            ("-r", None),
            ("-r=", None),
            ("-r -y", None),
            ("-mr x", None),
            ("-m -r x", Some("x")),
            ("-1r x", None),
            ("-é", None),
            ("--r x", None),
            ("- -- -r x", None),
        ] {
            let right = right.map(|right| ("-r", right.to_owned()));
            assert_eq!(value(command, &["-r"]), right, "{command}");
        }
    }

    #[test]
    fn the_last_of_equal_options_counts_and_none_behind_two_dashes() {
        for (command, right) in [
            ("--resume a --resume b", Some(("--resume", "b"))),
            ("--resume=a -r b", Some(("-r", "b"))),
            ("-r a --resume", None),
            ("-r a --resume=", None),
            ("-r a -- -r b", Some(("-r", "a"))),
            ("-m x -- --resume a", None),
        ] {
            let right = right.map(|(name, right)| (name, right.to_owned()));
            assert_eq!(value(command, &["-r", "--resume"]), right, "{command}");
        }
    }
}
