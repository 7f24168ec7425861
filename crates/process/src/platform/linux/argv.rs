//! `/proc/PID/cmdline`: arguments, or the text that a process put over them.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

/// How many arguments are kept.
const ARGUMENTS_MAX: usize = 4096;

/// What a command line turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CommandLine {
    pub(super) argv: Vec<OsString>,
    /// More arguments follow.
    pub(super) is_cut: bool,
    pub(super) title: Option<OsString>,
}

/// Splits a command line at its NULs (proc_pid_cmdline(5)).
///
/// A process may write over its arguments. The kernel then shows the text and
/// whatever is behind it: NULs if the text was shorter (Node's
/// `process.title`, `setproctitle`), blanks (sendmail's habit), or a text whose
/// size is not that of the arguments, `argument_bytes`, where that is known.
/// Empty arguments behind a title are left out.
pub(super) fn parse_command_line(bytes: &[u8], argument_bytes: Option<u64>) -> CommandLine {
    let text_end = bytes.iter().rposition(|byte| *byte != 0);
    let text_end = text_end.map_or(0, |last| last.saturating_add(1));
    let (text, nuls) = bytes.split_at(text_end);
    let is_one_text = !text.is_empty() && !text.contains(&0);
    let is_of_other_size = argument_bytes
        .is_some_and(|size| size != 0 && u64::try_from(bytes.len()).is_ok_and(|len| len != size));
    let is_title = is_one_text && (nuls.len() > 1 || text.ends_with(b" ") || is_of_other_size);
    if is_title {
        let title = OsString::from_vec(text.trim_ascii_end().to_vec());
        return CommandLine {
            argv: vec![title.clone()],
            is_cut: false,
            title: Some(title),
        };
    }
    let mut argv = split_terminated(bytes);
    let is_cut = argv.len() > ARGUMENTS_MAX;
    argv.truncate(ARGUMENTS_MAX);
    CommandLine {
        argv,
        is_cut,
        title: None,
    }
}

/// Splits what is terminated by NULs; the last terminator may be missing.
fn split_terminated(bytes: &[u8]) -> Vec<OsString> {
    if bytes.is_empty() {
        return Vec::new();
    }
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    let arguments = bytes.split(|byte| *byte == 0);
    arguments
        .map(|argument| OsString::from_vec(argument.to_vec()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], argument_bytes: Option<u64>, argv: &[&str], title: Option<&str>) {
        let line = parse_command_line(bytes, argument_bytes);
        assert_eq!(line.argv, argv);
        assert_eq!(line.title, title.map(OsString::from));
    }

    #[test]
    fn arguments_keep_their_blanks_newlines_and_empty_ones() {
        check(b"", None, &[], None);
        check(b"node\0", Some(5), &["node"], None);
        check(b"a\0\0b c\n\0", None, &["a", "", "b c\n"], None);
        check(b"a\0b\0\0", None, &["a", "b", ""], None);
        check(b"a\0b  \0", None, &["a", "b  "], None);
        check(b"\0", None, &[""], None);
        check(b"unterminated", None, &["unterminated"], None);
    }

    #[test]
    fn of_very_many_arguments_the_first_are_kept() {
        let line = parse_command_line(&b"a\0".repeat(ARGUMENTS_MAX), None);
        assert_eq!((line.argv.len(), line.is_cut), (ARGUMENTS_MAX, false));
        let line = parse_command_line(&b"a\0".repeat(ARGUMENTS_MAX + 1), None);
        assert_eq!((line.argv.len(), line.is_cut), (ARGUMENTS_MAX, true));
    }

    #[test]
    fn arguments_that_are_not_utf8_stay_as_they_are() {
        let line = parse_command_line(b"\xFF\xFE\0\x80\0", None);
        let bytes: Vec<Vec<u8>> = line.argv.into_iter().map(OsStringExt::into_vec).collect();
        assert_eq!(bytes, [vec![0xFF, 0xFE], vec![0x80]]);
    }

    #[test]
    fn one_text_followed_by_nuls_or_blanks_is_a_title() {
        check(b"agent\0\0\0\0\0", None, &["agent"], Some("agent"));
        check(b"a title\0\0\0", Some(10), &["a title"], Some("a title"));
        check(b"a title    \0", None, &["a title"], Some("a title"));
        check(b"a title    ", None, &["a title"], Some("a title"));
    }

    #[test]
    fn one_text_that_has_not_the_size_of_the_arguments_is_a_title() {
        check(
            b"longer than before\0",
            Some(9),
            &["longer than before"],
            Some("longer than before"),
        );
        check(b"as long\0", Some(8), &["as long"], None);
        check(b"as long\0", Some(0), &["as long"], None);
    }
}
