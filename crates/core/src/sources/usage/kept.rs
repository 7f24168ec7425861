//! What a cache keeps of counted transcripts, as JSON.
//!
//! Anything that is wrong with it is a reason to count again, and no error.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use whosup_sidecar::parse_json;

use super::tally::Open;
use super::{Counted, Slot, Sums, Tally};
use crate::sources::transcript::Cursor;

/// The version of the format and of what counting means. What another version kept is
/// counted again.
const VERSION: u32 = 3;

/// What was counted of the files of one folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shelf {
    /// Transcripts, by the name of each.
    pub transcripts: BTreeMap<String, Kept>,
    /// Sessions whose records are read as a whole, by their ids.
    pub sessions: BTreeMap<String, KeptSession>,
}

/// A session that was counted, and the files that it was counted from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptSession {
    /// The name of the first of these files.
    pub file: String,
    /// A hash of what these files were: another one shows that some file has changed.
    pub state: u64,
    /// What was counted.
    pub tally: Tally,
}

/// One transcript that was counted, and the file that it was then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// How long the file was, in bytes.
    pub len: u64,
    /// When it was modified, in milliseconds since 1970.
    pub modified_ms: Option<i64>,
    /// What was counted, and where to count on.
    pub counted: Counted,
}

#[derive(Serialize, Deserialize)]
struct ShelfFile {
    version: u32,
    files: BTreeMap<String, KeptFile>,
    sessions: BTreeMap<String, KeptSessionFile>,
}

#[derive(Serialize, Deserialize)]
struct KeptSessionFile {
    file: String,
    state: u64,
    sums: Vec<(SlotFile, SumsFile)>,
    lost_lines: u64,
}

#[derive(Serialize, Deserialize)]
struct KeptFile {
    len: u64,
    modified_ms: Option<i64>,
    device: u64,
    inode: u64,
    offset: u64,
    fingerprint: u64,
    long_line_start: Option<u64>,
    sums: Vec<(SlotFile, SumsFile)>,
    lost_lines: u64,
    model: Option<String>,
    branch: Option<String>,
    directory: Option<String>,
    total: Option<SumsFile>,
    born_at_ms: Option<i64>,
    copied_until_ms: Option<i64>,
    open: Vec<(u64, SlotFile, SumsFile)>,
    /// Eight bytes each, the lowest first, in base64.
    requests: String,
}

/// Quarter, model, branch, directory, tier, whether the agent recorded a cost.
type SlotFile = (
    Option<i64>,
    Option<String>,
    Option<String>,
    Option<String>,
    u16,
    bool,
);
/// Input, cached input, cache writes, those for an hour, output, reasoning, cost, requests.
type SumsFile = (u64, u64, u64, u64, u64, Option<u64>, u64, u64);

fn slot_file(slot: Slot) -> SlotFile {
    let Slot {
        quarter,
        model,
        branch,
        directory,
        tier,
        has_cost,
    } = slot;
    (quarter, model, branch, directory, tier, has_cost)
}

fn slot_of(file: SlotFile) -> Slot {
    let (quarter, model, branch, directory, tier, has_cost) = file;
    Slot {
        quarter,
        model,
        branch,
        directory,
        tier,
        has_cost,
    }
}

const fn sums_file(sums: &Sums) -> SumsFile {
    (
        sums.input,
        sums.cached_input,
        sums.cache_writes,
        sums.long_cache_writes,
        sums.output,
        sums.reasoning,
        sums.cost_nano,
        sums.requests,
    )
}

const fn sums_of(file: SumsFile) -> Sums {
    Sums {
        input: file.0,
        cached_input: file.1,
        cache_writes: file.2,
        long_cache_writes: file.3,
        output: file.4,
        reasoning: file.5,
        cost_nano: file.6,
        requests: file.7,
    }
}

fn files_of(sums: BTreeMap<Slot, Sums>) -> Vec<(SlotFile, SumsFile)> {
    let sums = sums.into_iter();
    sums.map(|(slot, sums)| (slot_file(slot), sums_file(&sums)))
        .collect()
}

fn sums_in(files: Vec<(SlotFile, SumsFile)>) -> BTreeMap<Slot, Sums> {
    let files = files.into_iter();
    files
        .map(|(slot, sums)| (slot_of(slot), sums_of(sums)))
        .collect()
}

impl Shelf {
    /// Reads what was kept; nothing if that is damaged or of another version.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Self {
        let read = parse_json::<ShelfFile>(bytes).ok();
        let Some(read) = read.filter(|read| read.version == VERSION) else {
            return Self::default();
        };
        let (files, sessions) = (read.files.into_iter(), read.sessions.into_iter());
        Self {
            transcripts: files
                .filter_map(|(name, file)| Some((name, file.into_kept()?)))
                .collect(),
            sessions: sessions
                .map(|(id, session)| (id, session.into_kept()))
                .collect(),
        }
    }

    /// Writes it.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let (transcripts, sessions) = (self.transcripts.iter(), self.sessions.iter());
        let file = ShelfFile {
            version: VERSION,
            files: transcripts
                .map(|(name, kept)| (name.clone(), KeptFile::of(kept)))
                .collect(),
            sessions: sessions
                .map(|(id, kept)| (id.clone(), KeptSessionFile::of(kept)))
                .collect(),
        };
        // Maps have texts for keys, and numbers are whole: there is nothing to fail.
        serde_json::to_vec(&file).unwrap_or_default()
    }
}

impl KeptSessionFile {
    fn of(kept: &KeptSession) -> Self {
        Self {
            file: kept.file.clone(),
            state: kept.state,
            sums: files_of(kept.tally.sums.clone()),
            lost_lines: kept.tally.lost_lines,
        }
    }

    fn into_kept(self) -> KeptSession {
        KeptSession {
            file: self.file,
            state: self.state,
            tally: Tally {
                sums: sums_in(self.sums),
                lost_lines: self.lost_lines,
                ..Tally::default()
            },
        }
    }
}

impl KeptFile {
    fn of(kept: &Kept) -> Self {
        let Counted { cursor, tally } = kept.counted.clone();
        let mut requests: Vec<u64> = tally.requests.into_iter().collect();
        requests.sort_unstable();
        let requests: Vec<u8> = requests.into_iter().flat_map(u64::to_le_bytes).collect();
        let open = tally.open.into_iter();
        Self {
            len: kept.len,
            modified_ms: kept.modified_ms,
            device: cursor.device,
            inode: cursor.inode,
            offset: cursor.offset,
            fingerprint: cursor.fingerprint,
            long_line_start: cursor.long_line_start,
            sums: files_of(tally.sums),
            lost_lines: tally.lost_lines,
            model: tally.model,
            branch: tally.branch,
            directory: tally.directory,
            total: tally.total.as_ref().map(sums_file),
            born_at_ms: tally.born_at_ms,
            copied_until_ms: tally.copied_until_ms,
            open: open
                .map(|open| (open.request, slot_file(open.slot), sums_file(&open.sums)))
                .collect(),
            requests: STANDARD.encode(requests),
        }
    }

    fn into_kept(self) -> Option<Kept> {
        let requests = STANDARD.decode(&self.requests).ok()?;
        let (requests, rest) = requests.as_chunks::<8>();
        if !rest.is_empty() {
            return None;
        }
        let open = self.open.into_iter();
        let cursor = Cursor {
            device: self.device,
            inode: self.inode,
            offset: self.offset,
            fingerprint: self.fingerprint,
            long_line_start: self.long_line_start,
        };
        let tally = Tally {
            sums: sums_in(self.sums),
            lost_lines: self.lost_lines,
            model: self.model,
            branch: self.branch,
            directory: self.directory,
            total: self.total.map(sums_of),
            born_at_ms: self.born_at_ms,
            copied_until_ms: self.copied_until_ms,
            open: open
                .map(|(request, slot, sums)| Open {
                    request,
                    slot: slot_of(slot),
                    sums: sums_of(sums),
                })
                .collect(),
            requests: requests
                .iter()
                .map(|bytes| u64::from_le_bytes(*bytes))
                .collect(),
        };
        Some(Kept {
            len: self.len,
            modified_ms: self.modified_ms,
            counted: Counted { cursor, tally },
        })
    }
}
