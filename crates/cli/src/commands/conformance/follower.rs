//! Follows every name that comes and goes in a directory, in order, so that
//! nothing which a reader could have seen is missed.

#[cfg(target_os = "linux")]
pub(super) use linux::Follower;
#[cfg(not(target_os = "linux"))]
pub(super) use other::Follower;

/// What was seen.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// At some moment there was no sidecar.
    pub(super) was_missing: bool,
    /// The most sidecars that there were at one moment.
    pub(super) most: usize,
    /// A sidecar that was written under its own name.
    pub(super) written_in_place: Option<String>,
    /// There was more than could be followed.
    pub(super) is_incomplete: bool,
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeSet;
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::path::Path;

    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

    use super::Seen;
    use crate::commands::conformance::arena::is_sidecar_name;

    /// How many bytes of events are read at once.
    const EVENTS_BYTES_MAX: usize = 65_536;

    /// Follows one directory.
    pub(in crate::commands::conformance) struct Follower {
        descriptor: OwnedFd,
        names: BTreeSet<String>,
        seen: Seen,
    }

    impl Follower {
        /// Follows `directory` from now on, where there are the sidecars `names`.
        pub(in crate::commands::conformance) fn of(
            directory: &Path,
            names: impl IntoIterator<Item = String>,
        ) -> Result<Self, String> {
            let failed = |errno| format!("cannot watch `{}`: {errno}", directory.display());
            let flags = CreateFlags::NONBLOCK | CreateFlags::CLOEXEC;
            let descriptor = inotify::init(flags).map_err(failed)?;
            let wanted = WatchFlags::CREATE
                | WatchFlags::DELETE
                | WatchFlags::MODIFY
                | WatchFlags::MOVED_FROM
                | WatchFlags::MOVED_TO;
            inotify::add_watch(&descriptor, directory, wanted).map_err(failed)?;
            let names: BTreeSet<String> = names.into_iter().collect();
            let seen = Seen {
                most: names.len(),
                ..Seen::default()
            };
            Ok(Self {
                descriptor,
                names,
                seen,
            })
        }

        /// Takes in what has happened since.
        pub(in crate::commands::conformance) fn follow(&mut self) {
            let mut buffer = [MaybeUninit::uninit(); EVENTS_BYTES_MAX];
            let mut reader = inotify::Reader::new(&self.descriptor, &mut buffer);
            while let Ok(event) = reader.next() {
                let flags = event.events();
                self.seen.is_incomplete |= flags.contains(ReadFlags::QUEUE_OVERFLOW);
                let name = event.file_name().and_then(|name| name.to_str().ok());
                let Some(name) = name.filter(|name| is_sidecar_name(name)) else {
                    continue;
                };
                if flags.contains(ReadFlags::MODIFY) {
                    self.seen.written_in_place = Some(name.to_owned());
                } else if flags.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO) {
                    self.names.insert(name.to_owned());
                } else if flags.intersects(ReadFlags::DELETE | ReadFlags::MOVED_FROM) {
                    self.names.remove(name);
                }
                self.seen.was_missing |= self.names.is_empty();
                self.seen.most = self.seen.most.max(self.names.len());
            }
        }

        /// What was seen until now.
        pub(in crate::commands::conformance) fn seen(mut self) -> Seen {
            self.follow();
            self.seen
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    use std::path::Path;

    use super::Seen;

    /// Nothing is followed here: what is seen is incomplete.
    pub(in crate::commands::conformance) struct Follower;

    impl Follower {
        #[expect(
            clippy::unnecessary_wraps,
            reason = "the same signature on every system"
        )]
        pub(in crate::commands::conformance) fn of(
            _: &Path,
            _: impl IntoIterator<Item = String>,
        ) -> Result<Self, String> {
            Ok(Self)
        }

        pub(in crate::commands::conformance) fn follow(&mut self) {}

        pub(in crate::commands::conformance) fn seen(self) -> Seen {
            Seen {
                is_incomplete: true,
                ..Seen::default()
            }
        }
    }
}
