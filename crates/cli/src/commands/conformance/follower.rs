//! Follows every name that appears and disappears in a directory, in order, so that nothing
//! that a reader could have seen is missed.

#[cfg(target_os = "linux")]
pub(super) use linux::Follower;
#[cfg(not(target_os = "linux"))]
pub(super) use other::Follower;

/// What was seen.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// At some moment there was no sidecar.
    pub(super) was_missing: bool,
    /// The highest number of sidecars at one moment.
    pub(super) most: usize,
    /// A sidecar that was written under its own name.
    pub(super) written_in_place: Option<String>,
    /// Events were lost.
    pub(super) is_incomplete: bool,
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeSet;
    use std::path::Path;

    use rustix::fs::inotify::ReadFlags;

    use super::Seen;
    use crate::commands::conformance::arena::is_sidecar_name;
    use crate::commands::conformance::watch::Watch;

    /// Follows one directory.
    pub(in crate::commands::conformance) struct Follower {
        watch: Watch,
        names: BTreeSet<String>,
        seen: Seen,
    }

    impl Follower {
        /// Follows `directory` from now on, where there are the sidecars `names`.
        pub(in crate::commands::conformance) fn of(
            directory: &Path,
            names: impl IntoIterator<Item = String>,
        ) -> Result<Self, String> {
            let watch = Watch::of(directory)?;
            let names: BTreeSet<String> = names.into_iter().collect();
            let seen = Seen {
                most: names.len(),
                ..Seen::default()
            };
            Ok(Self { watch, names, seen })
        }

        /// Reads the events since the last call.
        pub(in crate::commands::conformance) fn follow(&mut self) {
            for happened in self.watch.happened() {
                let flags = happened.flags;
                self.seen.is_incomplete |= flags.contains(ReadFlags::QUEUE_OVERFLOW);
                let name = happened.name;
                if !is_sidecar_name(&name) {
                    continue;
                }
                if flags.contains(ReadFlags::MODIFY) {
                    self.seen.written_in_place = Some(name);
                } else if flags.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO) {
                    self.names.insert(name);
                } else if flags.intersects(ReadFlags::DELETE | ReadFlags::MOVED_FROM) {
                    self.names.remove(&name);
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

    /// Without events nothing can be followed: the result is incomplete.
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
