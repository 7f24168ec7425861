//! The lines of a transcript are the same from either end, and each is within
//! its bound.

#![no_main]

use std::cell::RefCell;

use libfuzzer_sys::fuzz_target;
use tempfile::NamedTempFile;
use whosup_core::sources::transcript::{HeadBounds, TailBounds, TranscriptFile};

thread_local! {
    static FILE: RefCell<NamedTempFile> = RefCell::new(NamedTempFile::new().expect("a file"));
}

fuzz_target!(|bytes: &[u8]| {
    FILE.with_borrow(|file| {
        std::fs::write(file.path(), bytes).expect("a file");
        let transcript = TranscriptFile::open(file.path()).expect("a transcript");
        let wide = 1 << 30;
        let head = transcript
            .head(HeadBounds { bytes_max: wide, lines_max: usize::MAX })
            .expect("its head");
        let tail = transcript.backwards(TailBounds { bytes_max: wide }).expect("its tail");
        let mut tail: Vec<_> = tail.map(|line| line.expect("a line")).collect();
        tail.reverse();
        let text = |line: &whosup_core::sources::transcript::Line| {
            (line.offset, line.bytes().to_vec(), line.is_torn)
        };
        let forwards: Vec<_> = head.lines.iter().map(text).collect();
        let backwards: Vec<_> = tail.iter().map(text).collect();
        assert_eq!(forwards, backwards);
        for line in &tail {
            let _ = line.json();
        }
    });
});
