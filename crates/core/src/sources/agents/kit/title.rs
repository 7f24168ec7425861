//! Makes a title of a text.

/// How long a title is, in characters, that an adapter makes of a prompt.
const TITLE_CHARACTERS_MAX: usize = 200;

/// Puts a text on one line and cuts it to a title's length; `None` if it is blank.
pub(crate) fn one_line(text: &str) -> Option<String> {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() >= 4 * TITLE_CHARACTERS_MAX {
            break;
        }
    }
    let line: String = line.chars().take(TITLE_CHARACTERS_MAX).collect();
    (!line.is_empty()).then_some(line)
}

/// Reports whether an agent made `title` by cutting off `prompt`.
pub(crate) fn is_cut_from(title: &str, prompt: &str) -> bool {
    prompt.starts_with(title.trim_end_matches(['…', '.']).trim_end())
}

#[cfg(test)]
mod tests {
    use super::{is_cut_from, one_line};

    #[test]
    fn a_title_may_be_a_prompt_that_was_cut() {
        assert!(is_cut_from("fix the …", "fix the build"));
        assert!(is_cut_from("fix the build", "fix the build"));
        assert!(!is_cut_from("the build", "fix the build"));
    }

    #[test]
    fn a_title_is_one_line() {
        assert_eq!(one_line(" a\n\tb  c ").as_deref(), Some("a b c"));
        assert_eq!(one_line(" \n"), None);
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let title = one_line(&"é ".repeat(10_000)).expect("a title");
        assert_eq!(title.chars().count(), 200);
        let title = one_line(&"é".repeat(10_000)).expect("a title");
        assert_eq!(title.chars().count(), 200);
    }
}
