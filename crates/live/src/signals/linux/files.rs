//! Files and directories: inotify(7).
//!
//! Each directory has its own watch. Directories above a path are watched for the names that
//! lead to it, so that a rename on the way is noticed.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;
use whosup_core::adapter::WatchPath;
use whosup_core::adapter::claim::Placement;
use whosup_core::machine::Machine;
use whosup_core::machine::mounts::Mounts;
use whosup_core::sessions::watch::Watch;

use crate::signals::{Happened, Watched};

/// How many directories are watched at most.
const DIRECTORIES_MAX: usize = 8_192;
/// How many obsolete watches may be left before all are made anew.
const STALE_MAX: usize = 256;
/// How many events are read in one step.
const EVENTS_MAX: usize = 65_536;
/// How many directories above a path are watched for names.
const ABOVE_MAX: usize = 8;
/// How many paths that can't be watched are named in messages.
const NAMED_MAX: usize = 8;

/// Names that appear and disappear.
const NAMES: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF);
/// The same, and writes. (Reads and opens are left out: looks cause them.)
const CONTENTS: WatchFlags = NAMES
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::CLOSE_WRITE);

/// The files that are watched.
#[derive(Debug)]
pub(super) struct Files {
    inotify: OwnedFd,
    places: HashMap<i32, Place>,
    known: HashMap<PathBuf, i32>,
    roots: BTreeMap<WatchPath, Root>,
    /// Names have changed in a way that the watches do not follow.
    is_spoilt: bool,
}

/// The watch of one place.
#[derive(Debug, Default)]
struct Place {
    path: PathBuf,
    /// It is a program, and not a directory.
    is_program: bool,
    /// All names in it matter.
    is_all: bool,
    /// New directories in it are watched too.
    is_tree: bool,
    /// Files in it that matter.
    files: BTreeSet<OsString>,
    /// Names in it that lead to other watched paths.
    ways: BTreeSet<OsString>,
}

/// Whether a path is watched.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Root {
    Watched(Option<Inode>),
    Missing,
    /// It is not, or not completely, for this reason.
    Failed(String),
    /// It is, but other machines may write there without an event.
    Shared(Option<Inode>),
}

/// The device and number of a watched directory.
type Inode = (u64, u64);

impl Files {
    /// Watches nothing yet; the error is in words.
    pub(super) fn new() -> Result<Self, String> {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK);
        Ok(Self {
            inotify: inotify.map_err(|error| words(&error))?,
            places: HashMap::new(),
            known: HashMap::new(),
            roots: BTreeMap::new(),
            is_spoilt: false,
        })
    }

    pub(super) const fn descriptor(&self) -> &OwnedFd {
        &self.inotify
    }

    /// Whether all watches have to be made anew.
    pub(super) const fn is_spoilt(&self) -> bool {
        self.is_spoilt
    }

    /// Whether a watched path leads to another directory than when it was watched: no event
    /// reports every link that changes or file system that is mounted on the way to it.
    pub(super) fn has_moved(&self, machine: &Machine, watch: &Watch) -> bool {
        watch.paths.iter().any(|root| match self.roots.get(root) {
            Some(Root::Watched(inode) | Root::Shared(inode)) => {
                *inode != inode_of(machine, &root.path)
            }
            _ => false,
        })
    }

    /// Watches what is not watched yet.
    pub(super) fn watch(&mut self, machine: &Machine, watch: &Watch, watched: &mut Watched) {
        let before = self.size();
        let stale = self
            .roots
            .keys()
            .filter(|root| !watch.paths.contains(*root));
        if stale.count() > STALE_MAX {
            self.is_spoilt = true;
        }
        for root in &watch.paths {
            if matches!(
                self.roots.get(root),
                Some(Root::Watched(_) | Root::Shared(_))
            ) {
                continue;
            }
            let state = match self.watch_root(machine, root) {
                Ok(state) => state,
                Err(error) => Root::Failed(words(&error)),
            };
            self.roots.insert(root.clone(), state);
        }
        for program in &watch.programs {
            if !self.known.contains_key(program) {
                // A new program there is found by the next look.
                self.watch_program(program).ok();
            }
        }
        watched.is_more |= self.size() != before;
        self.name_the_failed(watch, watched);
    }

    fn size(&self) -> (usize, usize) {
        let names = self.places.values();
        let names = names.map(|place| place.files.len() + place.ways.len());
        (self.places.len(), names.sum())
    }

    fn name_the_failed(&self, watch: &Watch, watched: &mut Watched) {
        let failed = watch.paths.iter().filter_map(|root| {
            let why = match self.roots.get(root)? {
                Root::Watched(_) | Root::Missing => return None,
                Root::Failed(why) => why.as_str(),
                Root::Shared(_) => "its file system is shared, and reports no changes by others",
            };
            Some(format!("cannot watch `{}`: {why}", root.path.display()))
        });
        for why in failed.take(NAMED_MAX) {
            watched.fail(why);
        }
    }

    fn watch_root(&mut self, machine: &Machine, root: &WatchPath) -> Result<Root, Errno> {
        let path = root.path.as_path();
        let mounts = machine.mounts();
        let checked = match mounts.touchable(path) {
            Ok(checked) => checked,
            Err(why) => return Ok(Root::Failed(why.to_string())),
        };
        let inode = inode_of(machine, path);
        self.watch_above(machine, path)?;
        for behind in behind_links(mounts, path) {
            self.watch_above(machine, &behind)?;
        }
        if checked.is_dir() {
            let is_whole = self.watch_directory(path, root.is_recursive)?;
            if !is_whole {
                let why = format!("there are more than {DIRECTORIES_MAX} directories");
                return Ok(Root::Failed(why));
            }
        } else if let (Some(parent), Some(name)) = (path.parent(), path.file_name())
            && mounts.touchable(parent).is_ok_and(|parent| parent.is_dir())
        {
            let name = name.to_owned();
            self.add(parent, CONTENTS, |place| {
                place.files.insert(name);
            })?;
            if !checked.exists() {
                return Ok(Root::Missing);
            }
        } else {
            return Ok(Root::Missing);
        }
        Ok(match mounts.placement_of(path) {
            Placement::SharedByMachines => Root::Shared(inode),
            Placement::Local | Placement::ThisContainer => Root::Watched(inode),
        })
    }

    /// Watches the directories above a path for the names that lead to it, up to the user's home or
    /// as far as they exist.
    fn watch_above(&mut self, machine: &Machine, path: &Path) -> Result<(), Errno> {
        let home = machine.environment().home();
        let mut is_found = false;
        for (below, above) in path
            .ancestors()
            .zip(path.ancestors().skip(1))
            .take(ABOVE_MAX)
        {
            let touchable = machine.mounts().touchable(above);
            if let Some(name) = below.file_name()
                && touchable.is_ok_and(|above| above.is_dir())
            {
                let name = name.to_owned();
                self.add(above, NAMES, |place| {
                    place.ways.insert(name);
                })?;
                is_found = true;
            }
            let is_outside = home.is_none_or(|home| !above.starts_with(home));
            if is_found && (is_outside || home == Some(above)) {
                break;
            }
        }
        Ok(())
    }

    /// Watches a directory, and those below it if it is a tree. Returns whether all are watched.
    fn watch_directory(&mut self, path: &Path, is_tree: bool) -> Result<bool, Errno> {
        let mut waiting = VecDeque::from([path.to_owned()]);
        while let Some(directory) = waiting.pop_front() {
            if self.places.len() >= DIRECTORIES_MAX {
                return Ok(false);
            }
            let added = self.add(&directory, CONTENTS, |place| {
                place.is_all = true;
                place.is_tree |= is_tree;
            });
            match added {
                Ok(()) if is_tree => waiting.extend(directories_in(&directory)),
                Ok(()) => {}
                // It was removed just now, or is not ours to read.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) if directory != path => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    fn watch_program(&mut self, program: &Path) -> Result<(), Errno> {
        let wd = inotify::add_watch(&self.inotify, program, WatchFlags::OPEN)?;
        self.known.insert(program.to_owned(), wd);
        self.places.entry(wd).or_insert_with(|| Place {
            path: program.to_owned(),
            is_program: true,
            ..Place::default()
        });
        Ok(())
    }

    fn add(
        &mut self,
        path: &Path,
        flags: WatchFlags,
        change: impl FnOnce(&mut Place),
    ) -> Result<(), Errno> {
        let has_contents = |place: &Place| place.is_all || !place.files.is_empty();
        let known = self.known.get(path).and_then(|wd| self.places.get_mut(wd));
        if let Some(place) = known
            && (flags == NAMES || has_contents(place))
        {
            change(place);
            return Ok(());
        }
        // A directory under two names has one watch, with the last flags.
        let flags = flags | WatchFlags::ONLYDIR | WatchFlags::MASK_ADD;
        let wd = inotify::add_watch(&self.inotify, path, flags)?;
        let place = self.places.entry(wd).or_default();
        place.path = path.to_owned();
        change(place);
        self.known.insert(path.to_owned(), wd);
        Ok(())
    }

    /// Reads the events.
    pub(super) fn read(&mut self, happened: &mut Happened) {
        let mut buffer = [MaybeUninit::uninit(); 8_192];
        let mut made = Vec::new();
        let Ok(inotify) = self.inotify.try_clone() else {
            // No descriptor is left: everything is looked at, and the queue is read then.
            happened.is_anything = true;
            return;
        };
        let mut reader = Reader::new(inotify, &mut buffer);
        for _ in 0..EVENTS_MAX {
            let Ok(event) = reader.next() else {
                break;
            };
            let name = event
                .file_name()
                .map(|name| OsStr::from_bytes(name.to_bytes()));
            if let Some(directory) = self.take(event.wd(), event.events(), name, happened) {
                made.push(directory);
            }
        }
        for directory in made {
            // A look follows in any case, and reports what can't be watched.
            if !matches!(self.watch_directory(&directory, true), Ok(true)) {
                self.is_spoilt = true;
            }
        }
    }

    /// Handles one event. Returns a new directory in a tree, if there is one.
    fn take(
        &mut self,
        wd: i32,
        events: ReadFlags,
        name: Option<&OsStr>,
        happened: &mut Happened,
    ) -> Option<PathBuf> {
        if events.contains(ReadFlags::QUEUE_OVERFLOW) {
            self.is_spoilt = true;
            happened.is_anything = true;
            return None;
        }
        if events.contains(ReadFlags::IGNORED) {
            self.forget(wd, happened);
            return None;
        }
        let place = self.places.get(&wd)?;
        if place.is_program {
            happened.is_launch = true;
            happened.is_anything = true;
            return None;
        }
        if events.contains(ReadFlags::MOVE_SELF) {
            self.is_spoilt = true;
            happened.is_anything = true;
            return None;
        }
        let name = name?;
        let names = ReadFlags::CREATE | ReadFlags::DELETE | ReadFlags::MOVED_FROM;
        let names = names | ReadFlags::MOVED_TO;
        let is_way = place.ways.contains(name) && events.intersects(names);
        let is_renamed = events.intersects(ReadFlags::MOVED_FROM | ReadFlags::MOVED_TO);
        if place.is_all || place.files.contains(name) || is_way {
            let is_closed = events.difference(ReadFlags::ISDIR) == ReadFlags::CLOSE_WRITE;
            happened.is_closed |= is_closed;
            happened.is_in_place |= events == ReadFlags::MOVED_TO;
            happened.is_anything |= !is_closed;
        }
        let is_directory = events.contains(ReadFlags::ISDIR);
        let is_made = is_directory && events.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO);
        let made = (place.is_tree && is_made).then(|| place.path.join(name));
        self.is_spoilt |= is_way && is_directory && is_renamed;
        made
    }

    /// A watched file or directory is gone.
    fn forget(&mut self, wd: i32, happened: &mut Happened) {
        let Some(place) = self.places.remove(&wd) else {
            return;
        };
        self.known.retain(|_, known| *known != wd);
        self.roots
            .retain(|root, _| !root.path.starts_with(&place.path));
        happened.is_anything = true;
    }
}

/// The links on the way to a path, and where they lead, also while nothing is there.
fn behind_links(mounts: &Mounts, path: &Path) -> Vec<PathBuf> {
    match mounts.way_to(path) {
        Some(way) => way.links.into_iter().chain([way.directory]).collect(),
        None => vec![mounts.real_path(path)],
    }
}

/// The directory that is watched for a path: the path itself, or the directory of a file.
fn inode_of(machine: &Machine, path: &Path) -> Option<Inode> {
    let of_directory = |path: &Path| {
        let checked = machine.mounts().touchable(path).ok()?;
        let seen = std::fs::metadata(checked).ok()?;
        seen.is_dir().then(|| (seen.dev(), seen.ino()))
    };
    of_directory(path).or_else(|| of_directory(path.parent()?))
}

/// The subdirectories of a directory; none if it can't be read.
fn directories_in(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return Vec::new();
    };
    let entries = entries.take(DIRECTORIES_MAX).flatten();
    let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    directories.map(|entry| entry.path()).collect()
}

fn words(error: &Errno) -> String {
    match *error {
        Errno::NOSPC => {
            "no watches are left; `sysctl fs.inotify.max_user_watches` sets how many there are"
                .to_owned()
        }
        Errno::MFILE => {
            "no inotify instances or descriptors are left; `sysctl fs.inotify.max_user_instances` and \
             `ulimit -n` set how many there are"
                .to_owned()
        }
        other => io::Error::from(other).to_string(),
    }
}
