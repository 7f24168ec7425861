//! Characters that change how text is shown without being seen themselves.

/// Returns whether a character is invisible and steers its neighbours: zero
/// width, bidirectional controls, invisible letters, separators of lines.
///
/// Such characters make two different names look alike, or a name look like
/// other text. From the Unicode Character Database: `Default_Ignorable_Code_Point`
/// and the general categories Cf, Zl and Zp, without the signs among them that
/// have a shape of their own (U+0600 and its like).
pub(crate) const fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{00AD}'
            | '\u{034F}'
            | '\u{061C}'
            | '\u{115F}'..='\u{1160}'
            | '\u{17B4}'..='\u{17B5}'
            | '\u{180B}'..='\u{180F}'
            | '\u{200B}'..='\u{200F}'
            | '\u{2028}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}'
            | '\u{3164}'
            | '\u{FE00}'..='\u{FE0F}'
            | '\u{FEFF}'
            | '\u{FFA0}'
            | '\u{FFF9}'..='\u{FFFB}'
            | '\u{13430}'..='\u{1343F}'
            | '\u{1BCA0}'..='\u{1BCA3}'
            | '\u{1D173}'..='\u{1D17A}'
            | '\u{E0000}'..='\u{E0FFF}'
    )
}

#[cfg(test)]
mod tests {
    use super::is_invisible;

    #[test]
    fn controls_of_direction_and_zero_width_are_invisible() {
        for character in [
            '\u{200b}', '\u{200e}', '\u{202a}', '\u{2069}', '\u{2060}', '\u{feff}',
        ] {
            assert!(is_invisible(character), "{}", character.escape_unicode());
        }
    }

    #[test]
    fn letters_marks_and_spaces_are_visible() {
        for character in [
            'a', 'é', '\u{301}', '会', '🦀', ' ', '\u{a0}', '\u{600}', '-',
        ] {
            assert!(!is_invisible(character), "{}", character.escape_unicode());
        }
    }
}
