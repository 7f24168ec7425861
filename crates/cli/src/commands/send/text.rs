//! Prepares a text for typing.

/// Replaces a tab, which would complete or move the focus.
const TAB: &str = "    ";

/// A text without what a terminal, or the program in it, takes for a key or a command:
/// complete escape sequences (such as `ESC[201~`, which ends a bracketed paste) and control
/// characters are removed. Line breaks stay, as LF, except the last: piped input ends
/// with one that was not typed.
pub(super) fn cleaned(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '\r' => {
                characters.next_if_eq(&'\n');
                cleaned.push('\n');
            }
            '\n' => cleaned.push('\n'),
            '\t' => cleaned.push_str(TAB),
            // CSI in 7-bit or 8-bit form: parameters and intermediates, then a final byte.
            '\u{1b}' if characters.next_if_eq(&'[').is_some() => skip_sequence(&mut characters),
            '\u{9b}' => skip_sequence(&mut characters),
            c if c.is_control() => {}
            c => cleaned.push(c),
        }
    }
    cleaned.truncate(cleaned.trim_end_matches('\n').len());
    cleaned
}

/// Skips a control sequence after CSI (ECMA-48, 5.4).
fn skip_sequence(characters: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    while characters.next_if(|c| matches!(c, ' '..='?')).is_some() {}
    characters.next_if(|c| matches!(c, '@'..='~'));
}

#[cfg(test)]
mod tests {
    use super::cleaned;

    #[test]
    fn what_would_be_a_key_is_removed() {
        for (text, expected) in [
            ("run the tests", "run the tests"),
            ("two\nlines\r\nand\rmore\n", "two\nlines\nand\nmore"),
            ("a\u{1b}[201~b", "ab"),
            ("a\u{9b}201~b", "ab"),
            ("a\u{1b}\u{1b}[201~b", "ab"),
            ("a\u{1b}[1;2", "a"),
            ("\u{3}stop\u{4}\u{1a}\u{7f}\0", "stop"),
            ("if x:\n\treturn", "if x:\n    return"),
            ("日本 🦀", "日本 🦀"),
            ("\u{1b}", ""),
        ] {
            assert_eq!(cleaned(text), expected, "{text:?}");
        }
    }

    #[test]
    fn no_control_character_is_left_of_any_text() {
        let all: String = ('\0'..='\u{ff}').collect();
        for text in [all.clone(), format!("\u{1b}{all}"), format!("\u{1b}[{all}")] {
            let cleaned = cleaned(&text);
            assert!(
                cleaned.chars().all(|c| c == '\n' || !c.is_control()),
                "{cleaned:?}"
            );
        }
    }
}
