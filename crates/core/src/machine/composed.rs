//! Paths in one Unicode form, for comparing what an agent wrote with what the
//! kernel reports.
//!
//! A file system may store a name in the decomposed form while an agent writes the composed
//! form, or the other way round, and find the name in either form. A byte-wise comparison
//! would hide such sessions (notebook-intelligence#171).

use std::path::{Path, PathBuf};

use unicode_normalization::{UnicodeNormalization, is_nfc};

/// The path in the composed form (NFC), unchanged if it is not UTF-8.
#[must_use]
pub fn composed(path: PathBuf) -> PathBuf {
    let is_other_form = |text: &&str| !text.is_ascii() && !is_nfc(text);
    match path.to_str().filter(is_other_form) {
        Some(text) => PathBuf::from(text.nfc().collect::<String>()),
        None => path,
    }
}

/// Whether two paths are the same in any form.
pub(crate) fn is_same(one: &Path, other: &Path) -> bool {
    one == other || composed(one.to_owned()) == composed(other.to_owned())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::is_same;

    #[test]
    fn paths_are_the_same_in_both_unicode_forms() {
        let same = |one: &str, other: &str| is_same(Path::new(one), Path::new(other));
        assert!(same("/w/caf\u{e9}", "/w/cafe\u{301}"));
        assert!(same("/w/cafe\u{301}/a", "/w/cafe\u{301}/a"));
        assert!(!same("/w/cafe", "/w/cafe\u{301}"));
        assert!(!same("/w/\u{ff21}", "/w/A"));
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_text_is_itself_alone() {
        use std::os::unix::ffi::OsStrExt as _;
        let bytes = |bytes| Path::new(std::ffi::OsStr::from_bytes(bytes));
        assert!(is_same(bytes(b"/w/\xff"), bytes(b"/w/\xff")));
        assert!(!is_same(bytes(b"/w/\xff"), bytes(b"/w/\xfe")));
    }
}
