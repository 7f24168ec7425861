//! Large transcripts of Claude Code.

use std::fs::File;
use std::io::{BufWriter, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use anyhow::Context as _;
use serde_json::{Value, json};

/// How large a usual record with the output of a tool is, in bytes.
const RECORD_BYTES: usize = 4_000;
/// Stands for the long text of a record.
const TEXT: &str = "the long text";

/// What makes a transcript large.
#[derive(Debug)]
pub(crate) enum Shape {
    /// So many bytes of usual records.
    Records { bytes: u64 },
    /// One record with so many bytes of text near its end.
    LongLine { bytes: usize },
    /// A hole of so many bytes between its beginning and its end: the file
    /// system has none of it, and whoever reads it gets NUL bytes.
    Hole { bytes: u64 },
}

/// Writes a transcript.
pub(crate) fn write_transcript(
    path: &Path,
    work_dir: &Path,
    session: &str,
    shape: &Shape,
) -> anyhow::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut file = BufWriter::new(File::create(path)?);
    let record = |kind: &str, second: u64, content: Value| {
        let at = format!(
            "2026-11-27T21:{:02}:{:02}.000Z",
            second / 60 % 60,
            second % 60
        );
        json!({
            "type": kind, "sessionId": session, "cwd": work_dir.to_string_lossy(),
            "isSidechain": false, "version": "2.1.197", "gitBranch": "main", "timestamp": at,
            "message": content,
        })
    };
    let prompt = json!({ "role": "user", "content": "make it large" });
    writeln!(file, "{}", record("user", 0, prompt))?;
    let reply = |text: &str| {
        json!({
            "role": "assistant", "model": "m", "stop_reason": "end_turn",
            "content": [{ "type": "text", "text": text }],
            "usage": { "input_tokens": 1, "output_tokens": 2,
                "cache_creation_input_tokens": 3, "cache_read_input_tokens": 4 },
        })
    };
    match shape {
        Shape::Records { bytes } => {
            let one = record("assistant", 1, reply(&"x".repeat(RECORD_BYTES))).to_string();
            for _ in 0..bytes / (one.len() as u64 + 1) {
                writeln!(file, "{one}")?;
            }
        }
        Shape::LongLine { bytes } => {
            // Written in pieces: what this process has at most counts for those
            // that it starts.
            let whole = record("assistant", 1, reply(TEXT)).to_string();
            let (before, after) = whole.split_once(TEXT).context("no text")?;
            file.write_all(before.as_bytes())?;
            let piece = "x".repeat(RECORD_BYTES);
            for _ in 0..bytes / RECORD_BYTES {
                file.write_all(piece.as_bytes())?;
            }
            writeln!(file, "{after}")?;
        }
        Shape::Hole { bytes } => {
            file.seek(SeekFrom::Current(i64::try_from(*bytes)?))?;
            writeln!(file)?;
        }
    }
    writeln!(file, "{}", record("assistant", 2, reply("done")))?;
    file.flush()?;
    Ok(())
}
