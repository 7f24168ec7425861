//! Foreign text as it may stand in an error.

use crate::invisible::is_invisible;

/// How much of a foreign value an error repeats, in characters.
const SHOWN_CHARS_MAX: usize = 48;

/// Cuts foreign text to a length that fits in an error, and writes what could
/// not be seen, or could steer a terminal, as escapes.
pub(crate) fn shown(text: &str) -> String {
    let mut shown = String::new();
    for (at, character) in text.chars().enumerate() {
        if at == SHOWN_CHARS_MAX {
            shown.push('…');
            break;
        }
        if character.is_control() || is_invisible(character) {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn long_text_is_cut_between_characters() {
        let long = "é".repeat(50);
        assert_eq!(shown(&long), format!("{}…", "é".repeat(48)));
        assert_eq!(shown(&"x".repeat(48)), "x".repeat(48));
    }

    #[test]
    fn text_that_steers_a_terminal_is_written_as_escapes() {
        assert_eq!(shown("\x1b[31m\u{202e}a"), "\\u{1b}[31m\\u{202e}a");
        assert_eq!(shown("a\u{9b}b\u{200b}"), "a\\u{9b}b\\u{200b}");
    }
}
