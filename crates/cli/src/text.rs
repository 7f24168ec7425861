//! Makes foreign text safe for a terminal, and measures its width.

use std::path::Path;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};
use whosup_core::sources::usage::{Sums, Usage};

/// How many characters a table cell may show. Titles are made by models and may be of
/// any length.
pub(crate) const CELL_CHARS_MAX: usize = 512;

const ELLIPSIS: char = '…';
const JOINER: char = '\u{200D}';

/// Whether a character could steer the terminal or mislead the reader: controls and
/// escapes, bidirectional controls, line separators, and invisible characters. Joiners
/// and variation selectors stay: emoji and several scripts need them.
pub(crate) fn is_steering(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{00AD}'
                | '\u{034F}'
                | '\u{061C}'
                | '\u{115F}'..='\u{1160}'
                | '\u{17B4}'..='\u{17B5}'
                | '\u{180B}'..='\u{180F}'
                | '\u{200B}'
                | '\u{200E}'..='\u{200F}'
                | '\u{2028}'..='\u{202E}'
                | '\u{2060}'..='\u{206F}'
                | '\u{3164}'
                | '\u{FEFF}'
                | '\u{FFA0}'
                | '\u{FFF9}'..='\u{FFFB}'
                | '\u{1BCA0}'..='\u{1BCA3}'
                | '\u{1D173}'..='\u{1D17A}'
                | '\u{E0000}'..='\u{E00FF}'
                | '\u{E01F0}'..='\u{E0FFF}'
        )
}

/// Text with everything that could steer a terminal written as escapes.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if is_steering(character) {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// A text as one line for a table: white space is folded, steering characters are removed,
/// and the text is cut at [`CELL_CHARS_MAX`].
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::new();
    let mut is_after_space = true;
    for (at, character) in text.chars().enumerate() {
        if at == CELL_CHARS_MAX {
            line.push(ELLIPSIS);
            break;
        }
        if character.is_whitespace() {
            if !is_after_space {
                line.push(' ');
            }
            is_after_space = true;
        } else if !is_steering(character) {
            line.push(character);
            is_after_space = false;
        }
    }
    line.truncate(line.trim_end().len());
    line
}

/// A text as lines: tabs become spaces, other steering characters escapes.
pub(crate) fn lines(text: &str) -> Vec<String> {
    text.lines()
        .map(|line| visible(&line.replace('\t', "    ")))
        .collect()
}

/// A path for people: home as `~`.
pub(crate) fn path(path: &Path, home: Option<&Path>) -> String {
    let shown = match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{}", rest.to_string_lossy()),
        None => path.to_string_lossy().into_owned(),
    };
    visible(&shown)
}

/// How many columns a text takes in a terminal.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// Cuts a text to at most `width_max` columns, never within a grapheme cluster, and marks
/// the cut.
pub(crate) fn cut(text: &str, width_max: usize) -> String {
    if width(text) <= width_max {
        return text.to_owned();
    }
    let mut kept = "";
    for (at, character) in text.char_indices() {
        let head = text.get(..at).unwrap_or_default();
        if width(head).saturating_add(1) > width_max {
            break;
        }
        let joins = character.width().unwrap_or(0) == 0 || head.ends_with(JOINER);
        if !joins {
            kept = head;
        }
    }
    let mut cut = kept.trim_end().to_owned();
    if width_max > 0 {
        cut.push(ELLIPSIS);
    }
    cut
}

/// A local time, `2026-11-28 10:00:05`. `None` if no calendar has it.
pub(crate) fn local_time(at_ms: i64, zone: &TimeZone) -> Option<String> {
    let at = Timestamp::from_millisecond(at_ms).ok()?;
    let shown = zone.to_datetime(at);
    Some(shown.strftime("%F %T").to_string())
}

/// The age in its largest unit; `now` also for an instant in the future, after the clock
/// was set.
pub(crate) fn age(now_ms: i64, at_ms: i64) -> String {
    let seconds = now_ms.saturating_sub(at_ms) / 1_000;
    match seconds {
        ..=0 => "now".to_owned(),
        1..=59 => format!("{seconds}s"),
        60..=3_599 => format!("{}m", seconds / 60),
        3_600..=86_399 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// `1 thing`, `2 things`.
pub(crate) fn count(number: usize, singular: &str, plural: &str) -> String {
    let noun = if number == 1 { singular } else { plural };
    format!("{number} {noun}")
}

/// The cost: `$0.42`; a lower bound if some of it has no price.
pub(crate) fn cost(usage: &Usage) -> Option<String> {
    let dollars = usage.cost.dollars()?;
    let at_least = if usage.cost.tokens_without_price > 0 {
        ">"
    } else {
        ""
    };
    // Less than a cent is not nothing.
    let digits = if dollars > 0.0 && dollars < 0.01 {
        4
    } else {
        2
    };
    Some(format!("{at_least}${dollars:.digits$}"))
}

/// A number of bytes in decimal units, with about three digits: `223M`.
pub(crate) fn bytes(number: u64) -> String {
    tokens(number)
}

/// A number of tokens in a sum, if the agent counts them.
pub(crate) fn known_tokens(sums: &Sums, number: impl Fn(&Sums) -> u64) -> Option<String> {
    sums.are_tokens_known().then(|| tokens(number(sums)))
}

/// A number of tokens, with about three digits: `999`, `51.2k`, `1.05M`.
pub(crate) fn tokens(number: u64) -> String {
    const UNITS: [(u64, &str); 4] = [
        (1_000_000_000_000, "T"),
        (1_000_000_000, "G"),
        (1_000_000, "M"),
        (1_000, "k"),
    ];
    let Some((size, unit)) = UNITS.into_iter().find(|(size, _)| number >= *size) else {
        return number.to_string();
    };
    let (whole, rest) = (number / size, number % size);
    // Rounded down.
    let hundredths = rest / (size / 100);
    let digits = match whole {
        100.. => String::new(),
        10.. => format!(".{}", hundredths / 10),
        _ => format!(".{hundredths:02}"),
    };
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    format!("{whole}{digits}{unit}")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use jiff::tz::TimeZone;

    use super::{
        CELL_CHARS_MAX, age, cut, lines, local_time, one_line, path, tokens, visible, width,
    };

    #[test]
    fn controls_escapes_and_bidi_never_reach_the_terminal() {
        let foreign = "a\u{1b}[31mb\u{202e}c\u{9b}d\u{200b}e\u{2066}f\u{e0041}g";
        assert_eq!(
            visible(foreign),
            "a\\u{1b}[31mb\\u{202e}c\\u{9b}d\\u{200b}e\\u{2066}f\\u{e0041}g"
        );
        assert_eq!(one_line(foreign), "a[31mbcdefg");
    }

    #[test]
    fn a_title_of_several_lines_becomes_one() {
        assert_eq!(one_line("  Fix\r\n\tthe  test \n"), "Fix the test");
        assert_eq!(one_line("\u{2028}\n"), "");
    }

    #[test]
    fn a_title_of_any_length_is_bounded() {
        let long = one_line(&"x".repeat(100_000));
        assert_eq!(long.chars().count(), CELL_CHARS_MAX + 1);
        assert!(long.ends_with('…'));
    }

    #[test]
    fn messages_keep_their_lines() {
        assert_eq!(lines("a\n\tb\r\n\u{7}c"), ["a", "    b", "\\u{7}c"]);
    }

    #[test]
    fn wide_and_combined_characters_are_counted_as_terminals_show_them() {
        for (text, columns) in [
            ("abc", 3),
            ("会话", 4),
            ("e\u{301}", 1),
            ("👩‍👩‍👧", 2),
            ("❤️", 2),
            ("🦀", 2),
        ] {
            assert_eq!(width(text), columns, "{text:?}");
        }
    }

    #[test]
    fn a_cut_never_splits_a_character_and_never_exceeds_the_width() {
        let texts = [
            "Fix the flaky login test",
            "会话恢复测试会话",
            "e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}",
            "a👩‍👩‍👧b👩‍👩‍👧c",
            "❤️❤️❤️",
        ];
        for text in texts {
            for width_max in 0..=width(text) {
                let cut = cut(text, width_max);
                assert!(width(&cut) <= width_max, "{cut:?} in {width_max}");
                assert!(!cut.ends_with("\u{200d}…"), "{cut:?}");
            }
        }
        assert_eq!(cut("会话恢复", 5), "会话…");
        assert_eq!(cut("会话恢复", 8), "会话恢复");
        assert_eq!(cut("e\u{301}e\u{301}e\u{301}", 2), "e\u{301}…");
        assert_eq!(cut("a👩‍👩‍👧b", 3), "a…");
    }

    #[test]
    fn home_is_a_tilde() {
        let home = Some(Path::new("/home/dev"));
        assert_eq!(path(Path::new("/home/dev/src/shop"), home), "~/src/shop");
        assert_eq!(path(Path::new("/home/dev"), home), "~");
        assert_eq!(path(Path::new("/home/developer"), home), "/home/developer");
        assert_eq!(path(Path::new("/srv/\u{1b}x"), None), "/srv/\\u{1b}x");
    }

    #[test]
    fn ages_have_one_unit() {
        let now = 1_000_000_000_000;
        for (seconds, expected) in [
            (-5, "now"),
            (0, "now"),
            (59, "59s"),
            (60, "1m"),
            (3_599, "59m"),
            (3_600, "1h"),
            (86_399, "23h"),
            (86_400 * 400, "400d"),
        ] {
            assert_eq!(age(now, now - seconds * 1_000), expected);
        }
    }

    #[test]
    fn times_are_local() {
        let east = TimeZone::fixed(jiff::tz::offset(5));
        let shown = local_time(1_795_812_300_000, &east);
        assert_eq!(shown.as_deref(), Some("2026-11-28 01:45:00"));
        assert_eq!(local_time(i64::MAX, &east), None);
    }

    #[test]
    fn tokens_have_three_digits_and_a_unit() {
        for (number, expected) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1k"),
            (1_290, "1.29k"),
            (51_234, "51.2k"),
            (200_000, "200k"),
            (999_999, "999k"),
            (1_048_576, "1.04M"),
            (u64::MAX, "18446744T"),
        ] {
            assert_eq!(tokens(number), expected);
        }
    }
}
