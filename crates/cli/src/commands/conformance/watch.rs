//! Waits for events of a directory (inotify(7)).

use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

/// How many bytes of events are read at once.
const EVENTS_BYTES_MAX: usize = 65_536;

/// One event.
#[derive(Debug, Clone)]
pub(super) struct Happened {
    pub(super) flags: ReadFlags,
    pub(super) name: String,
    /// The same number in both events of a rename.
    pub(super) cookie: u32,
}

/// A directory that is watched.
pub(super) struct Watch {
    descriptor: OwnedFd,
    read: VecDeque<Happened>,
}

impl Watch {
    /// Watches what changes in `directory` from now on.
    pub(super) fn of(directory: &Path) -> Result<Self, String> {
        Self::with(directory, WatchFlags::empty())
    }

    /// The same, with an event when a file is read.
    pub(super) fn with_reads(directory: &Path) -> Result<Self, String> {
        Self::with(directory, WatchFlags::CLOSE_NOWRITE)
    }

    fn with(directory: &Path, more: WatchFlags) -> Result<Self, String> {
        let failed = |errno| format!("cannot watch `{}`: {errno}", directory.display());
        let flags = CreateFlags::NONBLOCK | CreateFlags::CLOEXEC;
        let descriptor = inotify::init(flags).map_err(failed)?;
        let wanted = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MODIFY
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | more;
        inotify::add_watch(&descriptor, directory, wanted).map_err(failed)?;
        let read = VecDeque::new();
        Ok(Self { descriptor, read })
    }

    /// The events since the last call.
    pub(super) fn happened(&mut self) -> Vec<Happened> {
        self.read_more();
        self.read.drain(..).collect()
    }

    /// Waits for the next event, up to a time limit.
    pub(super) fn next(&mut self, timeout: Duration) -> Option<Happened> {
        let until = Instant::now() + timeout;
        loop {
            self.read_more();
            if let Some(happened) = self.read.pop_front() {
                return Some(happened);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            let left = Timespec::try_from(left).ok()?;
            poll(
                &mut [PollFd::new(&self.descriptor, PollFlags::IN)],
                Some(&left),
            )
            .ok();
        }
    }

    fn read_more(&mut self) {
        let mut buffer = [MaybeUninit::uninit(); EVENTS_BYTES_MAX];
        let mut reader = inotify::Reader::new(&self.descriptor, &mut buffer);
        while let Ok(event) = reader.next() {
            let name = event.file_name().and_then(|name| name.to_str().ok());
            self.read.push_back(Happened {
                flags: event.events(),
                name: name.unwrap_or_default().to_owned(),
                cookie: event.cookie(),
            });
        }
    }
}
