//! The mounts: which file system a file lies on, and so who may have written it.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use whosup_process::file_system;
use whosup_sidecar::file::FileFacts;

use crate::adapter::claim::Placement;
use crate::machine::reachable::Known;

/// How many mounts at one place are followed down.
const STACKED_MAX: usize = 64;
/// How many mounts are read.
const MOUNTS_MAX: usize = 20_000;
/// How much of the mount table is read, in bytes.
const MOUNT_TABLE_BYTES_MAX: u64 = 8 << 20;
/// The usual maximum.
const MOUNT_TABLE_BYTES_USUAL: usize = 16 << 10;

/// File systems without owners and modes of their own: `stat` shows values of the mount, not
/// who wrote a file.
const MODELESS_TYPES: &[&str] = &["drvfs", "exfat", "msdos", "ntfs", "ntfs3", "vboxsf", "vfat"];

/// File systems that a container has to itself when their root is mounted.
const CONTAINER_TYPES: &[&str] = &["aufs", "fuse.fuse-overlayfs", "overlay", "tmpfs"];

/// What is mounted where, as `/proc/self/mountinfo` shows it
/// (proc_pid_mountinfo(5)).
#[derive(Debug)]
pub struct Mounts {
    /// Read on first use; `None` if it could not be read.
    table: OnceLock<Option<Table>>,
    /// Known directories, each looked up once.
    known: Mutex<Known>,
    /// Known directories whose paths have no links, where no mount is relied on.
    local: Mutex<Known>,
}

/// What is mounted, in the order of mounting.
#[derive(Debug, Default)]
pub(crate) struct Table {
    mounts: Vec<Mount>,
    /// The mounts at a place, the last one last.
    at: HashMap<PathBuf, Vec<usize>>,
    /// The directories that mount points lie in.
    directories: HashSet<PathBuf>,
}

#[derive(Debug, Clone)]
pub(crate) struct Mount {
    /// Its number.
    id: u64,
    /// The number of the mount that it was mounted on.
    parent: u64,
    /// The mounted directory of the file system.
    root: PathBuf,
    /// The mount point.
    pub(crate) at: PathBuf,
    /// The type of the file system.
    pub(crate) kind: String,
}

impl Mounts {
    /// The mounts of this process, read on first use.
    #[must_use]
    pub fn of_this_machine() -> Self {
        Self {
            table: OnceLock::new(),
            known: Mutex::default(),
            local: Mutex::default(),
        }
    }

    /// Mounts from the text of a `mountinfo`.
    #[must_use]
    pub fn parse(text: &[u8]) -> Self {
        Self {
            table: OnceLock::from(Some(Table::parse(text))),
            known: Mutex::default(),
            local: Mutex::default(),
        }
    }

    pub(crate) fn table(&self) -> Option<&Table> {
        self.table.get_or_init(Table::read).as_ref()
    }

    pub(crate) fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn local(&self) -> MutexGuard<'_, Known> {
        self.local.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file system that `path` lies on. Without a table, as on some platforms, a file counts
    /// as local. The last name is not followed: whether a path can be touched is for
    /// [`Mounts::touchable`].
    #[must_use]
    pub fn placement_of(&self, path: &Path) -> Placement {
        self.mount_of(path)
            .map_or(Placement::Local, Mount::placement)
    }

    /// The same for an opened file whose mount the kernel may have named.
    #[must_use]
    pub fn placement_of_file(&self, path: &Path, facts: &FileFacts) -> Placement {
        let mounts = self.table().map(|table| &table.mounts);
        let mut mounts = mounts.into_iter().flatten();
        // A mount that is newer than the table is not in it.
        let named = facts.mount.and_then(|id| mounts.find(|one| one.id == id));
        named.map_or_else(|| self.placement_of(path), Mount::placement)
    }

    /// Whether owners and modes have a meaning at `path`.
    #[must_use]
    pub fn has_modes(&self, path: &Path) -> bool {
        self.mount_of(path)
            .is_none_or(|mount| !MODELESS_TYPES.contains(&mount.kind.as_str()))
    }

    /// The mount that `path` lies on: the deepest mount point above it, and of
    /// several at one place the last.
    fn mount_of(&self, path: &Path) -> Option<&Mount> {
        let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
            let walked = self.walk(path)?;
            return self.table()?.mounts.get(walked.mount?);
        };
        let directory = self.walk(directory)?;
        let table = self.table()?;
        let itself = directory
            .has_mount_points
            .then(|| table.mounted_at(&directory.path.join(name), directory.mount))
            .flatten();
        table.mounts.get(itself.or(directory.mount)?)
    }
}

impl Mount {
    fn placement(&self) -> Placement {
        let is_whole = self.root == Path::new("/");
        if CONTAINER_TYPES.contains(&self.kind.as_str()) && is_whole {
            Placement::ThisContainer
        } else if file_system::is_network(&self.kind) || file_system::is_fuse(&self.kind) {
            Placement::SharedByMachines
        } else {
            Placement::Local
        }
    }

    /// Access to a file on it may block for ever.
    pub(crate) fn may_hang(&self) -> bool {
        file_system::may_hang(&self.kind)
    }

    /// Access to a name in it mounts something there first.
    pub(crate) fn is_automount(&self) -> bool {
        file_system::is_automount(&self.kind)
    }
}

impl Default for Mounts {
    /// Mounts of which nothing is known.
    fn default() -> Self {
        Self {
            table: OnceLock::from(None),
            known: Mutex::default(),
            local: Mutex::default(),
        }
    }
}

impl Table {
    fn read() -> Option<Self> {
        use std::io::Read as _;
        // Without initial capacity it would be read in small pieces.
        let mut text = Vec::with_capacity(MOUNT_TABLE_BYTES_USUAL);
        let file = std::fs::File::open("/proc/self/mountinfo").ok()?;
        let read = file.take(MOUNT_TABLE_BYTES_MAX).read_to_end(&mut text);
        read.ok().map(|_| Self::parse(&text))
    }

    fn parse(text: &[u8]) -> Self {
        let mounts = parse_mounts(text);
        let points = mounts.iter().map(|mount| mount.at.as_path());
        let directories = points.filter_map(Path::parent).map(Path::to_owned);
        let directories = directories.collect();
        let mut at: HashMap<PathBuf, Vec<usize>> = HashMap::new();
        for (number, mount) in mounts.iter().enumerate() {
            at.entry(mount.at.clone()).or_default().push(number);
        }
        Self {
            mounts,
            at,
            directories,
        }
    }

    pub(crate) fn mount(&self, number: usize) -> Option<&Mount> {
        self.mounts.get(number)
    }

    /// Something in this directory is a mount point.
    pub(crate) fn has_mount_points_in(&self, directory: &Path) -> bool {
        self.directories.contains(directory)
    }

    /// The mount at a place that is reached on the mount `on`; of several, the last. A mount that
    /// another mount covers can't be reached.
    pub(crate) fn mounted_at(&self, place: &Path, on: Option<usize>) -> Option<usize> {
        let here = self.at.get(place)?;
        let on = on.and_then(|number| self.mounts.get(number));
        let is_reached = |number: &&usize| {
            let bottom = self.bottom_of_stack(**number);
            let is_parent = |mount: &Mount| Some(mount.id) == bottom;
            match on {
                Some(on) => is_parent(on) || !self.mounts.iter().any(is_parent),
                None => true,
            }
        };
        here.iter().rev().find(is_reached).copied()
    }

    /// The number of the mount below all that are mounted at one place on each other.
    fn bottom_of_stack(&self, number: usize) -> Option<u64> {
        let mut mount = self.mounts.get(number)?;
        for _ in 0..STACKED_MAX {
            let mut here = self.at.get(&mount.at)?.iter();
            let below = here.find_map(|other| {
                let other = self.mounts.get(*other)?;
                (other.id == mount.parent && other.id != mount.id).then_some(other)
            });
            let Some(below) = below else {
                break;
            };
            mount = below;
        }
        Some(mount.parent)
    }
}

fn parse_mounts(text: &[u8]) -> Vec<Mount> {
    text.split(|byte| *byte == b'\n')
        .take(MOUNTS_MAX)
        .filter_map(parse_mount)
        .collect()
}

/// Parses `36 35 98:0 /root /mnt rw,noatime master:1 - ext3 /dev/root rw`.
fn parse_mount(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let number = |field| std::str::from_utf8(field).ok()?.parse().ok();
    let id = number(fields.next()?)?;
    let parent = number(fields.next()?)?;
    let root = unescape(fields.nth(1)?);
    let at = unescape(fields.next()?);
    let kind = fields.skip_while(|field| *field != b"-").nth(1)?;
    Some(Mount {
        id,
        parent,
        root,
        at,
        kind: String::from_utf8_lossy(kind).into_owned(),
    })
}

/// Undoes the octal escapes of mountinfo (`\040` is a space).
fn unescape(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, tail @ ..] = rest {
        let octal = (*first == b'\\')
            .then(|| tail.get(..3))
            .flatten()
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match octal {
            Some(byte) => {
                bytes.push(byte);
                rest = tail.get(3..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    path_of(&bytes)
}

#[cfg(unix)]
fn path_of(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt as _;

    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

/// Other platforms have no such table.
#[cfg(not(unix))]
fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[u8] = b"27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n\
        30 27 0:40 / /nonexistent/net rw shared:7 master:2 - nfs4 server:/x rw\n\
        31 27 0:41 / /nonexistent/a\\040b rw - fuse.sshfs host: rw\n\
        32 27 0:42 / /nonexistent/box rw - overlay overlay rw\n\
        33 32 254:0 /home/dev /nonexistent/box/home rw - ext4 /dev/vda rw\n\
        34 27 0:43 / /nonexistent/c rw - vfat /dev/sdb rw\n";

    #[track_caller]
    fn check_placement(path: &str, right: Placement) {
        let mounts = Mounts::parse(TABLE);
        assert_eq!(mounts.placement_of(Path::new(path)), right, "{path}");
    }

    #[test]
    fn a_path_lies_on_the_deepest_mount_above_it() {
        check_placement("/nonexistent/x", Placement::Local);
        check_placement("/nonexistent/net/x", Placement::SharedByMachines);
        check_placement("/nonexistent/network", Placement::Local);
        check_placement("/nonexistent/a b/x", Placement::SharedByMachines);
        check_placement("/nonexistent/box/tmp/x", Placement::ThisContainer);
        check_placement("/nonexistent/box/home/x", Placement::Local);
    }

    #[test]
    fn a_file_lies_on_the_mount_that_the_kernel_names() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let facts =
            whosup_sidecar::file::facts(file.path(), whosup_sidecar::file::Links::Refuse).unwrap();
        let mounts = Mounts::parse(TABLE);
        let path = Path::new("/nonexistent/net/x");
        let on = |mount| mounts.placement_of_file(path, &FileFacts { mount, ..facts });
        assert_eq!(on(Some(27)), Placement::Local);
        assert_eq!(on(Some(32)), Placement::ThisContainer);
        // Mounted since, or not reported: the path decides.
        assert_eq!(on(Some(99)), Placement::SharedByMachines);
        assert_eq!(on(None), Placement::SharedByMachines);
        // The kernel and the path give the same answer for this file.
        if facts.mount.is_some() {
            let mounts = Mounts::of_this_machine();
            assert_eq!(
                mounts.placement_of_file(file.path(), &facts),
                mounts.placement_of(file.path())
            );
        }
    }

    #[test]
    fn a_file_system_without_modes_says_nothing_of_owners() {
        let mounts = Mounts::parse(TABLE);
        assert!(!mounts.has_modes(Path::new("/nonexistent/c/x")));
        assert!(mounts.has_modes(Path::new("/nonexistent/box/home/x")));
    }

    #[test]
    fn an_unreadable_table_leaves_files_local_and_torn_lines_are_skipped() {
        let path = Path::new("/nonexistent/x");
        assert_eq!(Mounts::default().placement_of(path), Placement::Local);
        assert_eq!(
            Mounts::parse(b"1 2 3\n\n").placement_of(path),
            Placement::Local
        );
    }
}
