//! A line that is too long to be held, with its long texts cut.

use super::{LINE_BYTES_MAX, Line, LineContent, STEP_BYTES, TranscriptError, TranscriptFile};

/// How much of each text of such a line is kept, in bytes. Ids, names, dates and paths are
/// shorter; longer texts are messages, images and the output of tools.
const TEXT_BYTES_MAX: usize = 4 * 1024;

impl TranscriptFile {
    /// Reads a line that is too long again without holding it: its texts are cut at
    /// [`TEXT_BYTES_MAX`] bytes, and of consecutive NUL bytes one is kept. A line that is still too
    /// long, or has changed, stays as it is.
    ///
    /// # Errors
    ///
    /// [`TranscriptError::File`] if the file can't be read.
    pub(crate) fn shortened(&self, line: Line) -> Result<Line, TranscriptError> {
        let LineContent::TooLong { bytes, .. } = line.content else {
            return Ok(line);
        };
        let shortened = self.shorten(line.offset, bytes)?;
        Ok(match shortened {
            Some(Line { content, .. }) => Line { content, ..line },
            None => line,
        })
    }

    /// Reads the line that begins at an offset, shortened in the same way. `None` if it does not
    /// end within `bytes_max`, or is still too long.
    ///
    /// # Errors
    ///
    /// [`TranscriptError::File`] if the file can't be read.
    pub(crate) fn shortened_at(
        &self,
        offset: u64,
        bytes_max: u64,
    ) -> Result<Option<Line>, TranscriptError> {
        let shortened = self.shorten(offset, bytes_max)?;
        Ok(shortened.filter(|line| !line.is_torn))
    }

    /// Shortens what stands from an offset on: a whole line, or `bytes_max` of a torn one.
    fn shorten(&self, offset: u64, bytes_max: u64) -> Result<Option<Line>, TranscriptError> {
        let mut shortener = Shortener::default();
        let mut buffer = vec![0; STEP_BYTES];
        let end = offset.saturating_add(bytes_max);
        let mut at = offset;
        let mut line_end = None;
        while at < end && line_end.is_none() {
            let left = usize::try_from(end - at).unwrap_or(usize::MAX);
            let wanted = left.min(buffer.len());
            let count = self.open.read_at(&mut buffer[..wanted], at)?;
            let newline = memchr::memchr(b'\n', &buffer[..count]);
            if count == 0 || !shortener.push(&buffer[..newline.unwrap_or(count)]) {
                return Ok(None);
            }
            line_end = newline.map(|newline| at + newline as u64 + 1);
            at += count as u64;
        }
        Ok(Some(Line {
            offset,
            end: line_end.unwrap_or(at),
            is_torn: line_end.is_none(),
            content: LineContent::Whole(shortener.kept),
        }))
    }
}

/// Copies JSON, with each text cut at the bound.
#[derive(Default)]
struct Shortener {
    kept: Vec<u8>,
    is_in_text: bool,
    /// How much of this text was kept.
    text_bytes: usize,
    /// The text is being cut.
    is_cut: bool,
    /// How many bytes of an escape are still to come.
    escape: u8,
    /// The byte before began an escape.
    is_escape_begun: bool,
}

impl Shortener {
    /// Takes the next bytes; false if too much is kept.
    fn push(&mut self, bytes: &[u8]) -> bool {
        for byte in bytes {
            self.take(*byte);
        }
        self.kept.len() <= LINE_BYTES_MAX
    }

    fn take(&mut self, byte: u8) {
        if !self.is_in_text {
            if byte == 0 && self.kept.last() == Some(&0) {
                return;
            }
            self.kept.push(byte);
            if byte == b'"' {
                self.is_in_text = true;
                self.text_bytes = 0;
                self.is_cut = false;
            }
            return;
        }
        let is_within = self.is_escape_begun || self.escape > 0 || (0x80..0xC0).contains(&byte);
        if !is_within && byte == b'"' {
            self.is_in_text = false;
            self.kept.push(byte);
            return;
        }
        // Cut only between two characters.
        self.is_cut |= !is_within && self.text_bytes >= TEXT_BYTES_MAX;
        if self.is_escape_begun {
            self.is_escape_begun = false;
            self.escape = if byte == b'u' { 4 } else { 0 };
        } else if self.escape > 0 {
            self.escape -= 1;
        } else {
            self.is_escape_begun = byte == b'\\';
        }
        if !self.is_cut {
            self.text_bytes += 1;
            self.kept.push(byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn shortened(json: &str, step: usize) -> Vec<u8> {
        let mut shortener = Shortener::default();
        for bytes in json.as_bytes().chunks(step.max(1)) {
            assert!(shortener.push(bytes));
        }
        shortener.kept
    }

    #[test]
    fn only_long_texts_are_cut_and_never_within_a_character() {
        for unit in ["x", "é", "\\n", "\\\"", "\\u00e9", "\u{1F600}", "\\\\"] {
            let long = unit.repeat(TEXT_BYTES_MAX);
            let json = format!(r#"{{"a":"{long}","b":"\"\\","c":[1,{{"d":"é"}}]}}"#);
            let found: Value = serde_json::from_slice(&shortened(&json, 7)).unwrap();
            assert_eq!(found["b"], json!("\"\\"));
            assert_eq!(found["c"], json!([1, {"d": "é"}]));
            let kept = found["a"].as_str().unwrap();
            assert!(
                !kept.is_empty() && kept.len() <= TEXT_BYTES_MAX + 4,
                "{unit}"
            );
        }
    }

    proptest! {
        #[test]
        fn what_is_short_stays_as_it_is(texts in prop::collection::vec(".*", 0..9), step in 1..64_usize) {
            let json = Value::from(texts).to_string();
            prop_assert_eq!(shortened(&json, step), json.into_bytes());
        }
    }
}
