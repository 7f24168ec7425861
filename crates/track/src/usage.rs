//! Keeps what was counted of transcripts, so that only what was appended is read again.
//!
//! One file for the transcripts of each folder, below `$XDG_CACHE_HOME/whosup/usage`. All
//! of it can be deleted at any time: it is counted again. Two that write at once lose
//! what one of them counted, and nothing else.

mod whole;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use whosup_core::machine::Environment;
use whosup_core::sidecar::file::{FileFacts, Links, facts, facts_of_any};
use whosup_core::sidecar::own_directory::Durable;
use whosup_core::sources::transcript::{TranscriptError, TranscriptFile};
use whosup_core::sources::usage::{Counting, Kept, Shelf, Tally};

use crate::TrackError;
use crate::disk::{IN_FOLDER, open_if_there, replace};

pub use whole::WholeSession;

/// How long what is kept of one folder may be, in bytes. More is counted again.
const SHELF_BYTES_MAX: u64 = 256 << 20;
/// How many threads count at most.
const THREADS_MAX: usize = 16;

/// A transcript that is to be counted.
#[derive(Debug, Clone)]
pub struct CountJob {
    /// How its agent counts.
    pub counting: &'static Counting,
    /// Where it is.
    pub path: PathBuf,
}

/// What was counted of transcripts, as far as it is kept.
#[derive(Debug)]
pub struct UsageCache {
    root: Option<PathBuf>,
    shelves: BTreeMap<PathBuf, Shelf>,
    /// Folders of which something was counted anew.
    changed: BTreeSet<PathBuf>,
}

/// What came of one job.
pub type JobResult = Result<Tally, TranscriptError>;

impl UsageCache {
    /// The cache that an environment leads to. Where that is no place, nothing is kept.
    #[must_use]
    pub fn of(environment: &Environment) -> Self {
        let directory = environment.xdg_directory("XDG_CACHE_HOME", ".cache");
        Self {
            root: directory.map(|directory| directory.join("whosup/usage")),
            shelves: BTreeMap::new(),
            changed: BTreeSet::new(),
        }
    }

    /// Counts transcripts, in the order of the jobs. `counted` hears how many are done.
    pub fn count(&mut self, jobs: &[CountJob], counted: &(dyn Fn(usize) + Sync)) -> Vec<JobResult> {
        let slots: Vec<Mutex<Slot>> = jobs.iter().map(|job| Mutex::new(self.slot(job))).collect();
        let left = largest_first(&slots);
        let (next, done) = (
            AtomicUsize::new(0),
            AtomicUsize::new(jobs.len() - left.len()),
        );
        let work = || {
            while let Some((job, slot)) = {
                let at = left.get(next.fetch_add(1, Ordering::Relaxed));
                at.and_then(|at| jobs.get(*at).zip(slots.get(*at)))
            } {
                let mut slot = slot
                    .lock()
                    .unwrap_or_else(std::sync::PoisonError::into_inner);
                slot.count(job);
                counted(done.fetch_add(1, Ordering::Relaxed) + 1);
            }
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|threads| {
            // This thread works too, and alone if no other can be started.
            for _ in 1..cores.min(THREADS_MAX).min(left.len()) {
                let builder = std::thread::Builder::new().name("whosup-count".to_owned());
                builder.spawn_scoped(threads, work).ok();
            }
            work();
        });
        let slots = slots.into_iter();
        let slots = slots.map(|slot| {
            slot.into_inner()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
        });
        self.put_back(jobs, slots.collect())
    }

    /// Takes what is kept of a transcript.
    fn slot(&mut self, job: &CountJob) -> Slot {
        let (folder, name) = place(&job.path);
        let kept = self.shelf(folder).transcripts.remove(&name);
        let facts = facts(&job.path, Links::Follow).ok();
        let is_as_kept = facts
            .zip(kept.as_ref())
            .is_some_and(|(facts, kept)| is_as_kept(kept, &facts));
        Slot {
            kept,
            left_bytes: (!is_as_kept).then(|| facts.map_or(0, |facts| facts.len)),
            is_changed: false,
            error: None,
        }
    }

    /// What is kept of the files of a folder.
    fn shelf(&mut self, folder: PathBuf) -> &mut Shelf {
        if !self.shelves.contains_key(&folder) {
            let shelf = self.shelf_file(&folder).and_then(|path| read_shelf(&path));
            self.shelves
                .insert(folder.clone(), shelf.unwrap_or_default());
        }
        self.shelves.entry(folder).or_default()
    }

    fn put_back(&mut self, jobs: &[CountJob], slots: Vec<Slot>) -> Vec<JobResult> {
        let mut results = Vec::with_capacity(jobs.len());
        for (job, slot) in jobs.iter().zip(slots) {
            let (folder, name) = place(&job.path);
            results.push(match (slot.error, &slot.kept) {
                (Some(error), _) => Err(error),
                (None, Some(kept)) => Ok(kept.counted.tally.sums_alone()),
                (None, None) => Ok(Tally::default()),
            });
            if slot.is_changed {
                self.changed.insert(folder.clone());
            }
            if let Some(kept) = slot.kept {
                self.shelf(folder).transcripts.insert(name, kept);
            }
        }
        results
    }

    /// Writes down what was counted anew. What can't be written is counted again the next
    /// time, and the counts are right nevertheless.
    ///
    /// # Errors
    ///
    /// The first thing that kept something from being written.
    pub fn save(&mut self) -> Result<(), TrackError> {
        let folders = std::mem::take(&mut self.changed).into_iter();
        let saved: Vec<_> = folders.map(|folder| self.save_folder(&folder)).collect();
        saved.into_iter().collect()
    }

    /// Writes what is kept of a folder, without the files that are gone.
    fn save_folder(&mut self, folder: &Path) -> Result<(), TrackError> {
        let Some(path) = self.shelf_file(folder) else {
            return Ok(());
        };
        let Some(shelf) = self.shelves.get_mut(folder) else {
            return Ok(());
        };
        let is_there = |name: &str| {
            let facts = facts_of_any(&folder.join(name), Links::Follow);
            !matches!(facts, Err(error) if error.kind() == io::ErrorKind::NotFound)
        };
        shelf.transcripts.retain(|name, _| is_there(name));
        shelf.sessions.retain(|_, kept| is_there(&kept.file));
        // Nothing is lost that can't be counted again.
        replace(&path, IN_FOLDER, &shelf.to_bytes(), Durable::Later)
            .map_err(TrackError::at("write", &path))
    }

    /// The file for the transcripts of a folder. Two folders with one name for it lose
    /// nothing but time: what is kept names the device and inode of each transcript.
    fn shelf_file(&self, folder: &Path) -> Option<PathBuf> {
        let bytes = folder.as_os_str().as_encoded_bytes();
        let hash = bytes.iter().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3)
        });
        Some(self.root.as_ref()?.join(format!("{hash:016x}.json")))
    }
}

/// What is kept of one transcript while it is counted.
struct Slot {
    kept: Option<Kept>,
    /// How long the transcript is; `None` if it is as it was kept.
    left_bytes: Option<u64>,
    is_changed: bool,
    error: Option<TranscriptError>,
}

impl Slot {
    fn count(&mut self, job: &CountJob) {
        let before = self.kept.take().map(|kept| kept.counted);
        let counted = TranscriptFile::open(&job.path).and_then(|file| {
            let facts = *file.facts();
            Ok((facts, job.counting.count(&file, before)?))
        });
        match counted {
            Ok((facts, counted)) => {
                self.is_changed = true;
                self.kept = Some(Kept {
                    len: facts.len,
                    modified_ms: facts.modified_ms,
                    counted,
                });
            }
            Err(error) => self.error = Some(error),
        }
    }
}

/// The places of the transcripts that are left to count, the largest first, so that in the
/// end no thread works alone on a large transcript.
fn largest_first(slots: &[Mutex<Slot>]) -> Vec<usize> {
    let slots = slots.iter().enumerate();
    let left = slots.filter_map(|(at, slot)| Some((slot.lock().ok()?.left_bytes?, at)));
    let mut left: Vec<(u64, usize)> = left.collect();
    left.sort_unstable_by_key(|(bytes, at)| (std::cmp::Reverse(*bytes), *at));
    left.into_iter().map(|(_, at)| at).collect()
}

/// Nothing was written to the transcript since it was counted.
fn is_as_kept(kept: &Kept, facts: &FileFacts) -> bool {
    let cursor = &kept.counted.cursor;
    // Without these numbers, files can't be distinguished.
    facts.inode != 0
        && (cursor.device, cursor.inode) == (facts.device, facts.inode)
        && kept.len == facts.len
        && kept.modified_ms == facts.modified_ms
        && facts.modified_ms.is_some()
}

/// The folder and the name of a transcript.
fn place(path: &Path) -> (PathBuf, String) {
    let name = path.file_name().unwrap_or_default();
    let folder = path.parent().unwrap_or(path);
    (folder.to_owned(), name.to_string_lossy().into_owned())
}

/// Reads what is kept; nothing if it can't be read.
fn read_shelf(path: &Path) -> Option<Shelf> {
    let file: File = open_if_there(path, IN_FOLDER).ok()??;
    let mut bytes = Vec::new();
    let read: io::Result<usize> = file.take(SHELF_BYTES_MAX + 1).read_to_end(&mut bytes);
    let len = u64::try_from(read.ok()?).ok()?;
    (len <= SHELF_BYTES_MAX).then(|| Shelf::parse(&bytes))
}
