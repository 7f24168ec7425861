//! What is mounted where, and so whom a file may come from.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use whosup_sidecar::file::FileFacts;

use crate::claim::Placement;

/// How many directories are kept in mind.
const DIRECTORIES_MAX: usize = 10_000;
/// How many directories above one are looked at one by one.
const DEPTH_MAX: usize = 64;
/// How many mounts are read.
const MOUNTS_MAX: usize = 20_000;
/// How much of the mount table is read, in bytes.
const MOUNT_TABLE_BYTES_MAX: u64 = 8 << 20;
/// How long it mostly is at most.
const MOUNT_TABLE_BYTES_USUAL: usize = 16 << 10;

/// File systems that other machines may write to as well.
const SHARED_TYPES: &[&str] = &[
    "9p",
    "afs",
    "beegfs",
    "ceph",
    "cifs",
    "coda",
    "drvfs",
    "gfs2",
    "glusterfs",
    "gpfs",
    "lustre",
    "ncpfs",
    "nfs",
    "nfs4",
    "ocfs2",
    "orangefs",
    "pvfs2",
    "smb3",
    "smbfs",
    "vboxsf",
    "virtiofs",
];

/// File systems without owners and modes of their own: what `stat` shows there
/// was made up at mount time and says nothing about who wrote a file.
const MODELESS_TYPES: &[&str] = &["drvfs", "exfat", "msdos", "ntfs", "ntfs3", "vboxsf", "vfat"];

/// File systems that a container has to itself when their root is mounted.
const CONTAINER_TYPES: &[&str] = &["aufs", "fuse.fuse-overlayfs", "overlay", "tmpfs"];

/// What is mounted where, as `/proc/self/mountinfo` tells it
/// (proc_pid_mountinfo(5)).
#[derive(Debug)]
pub struct Mounts {
    /// Read once somebody asks; `None` if it could not be.
    table: OnceLock<Option<Table>>,
    /// Where directories really are, looked up once each.
    real: Mutex<KnownDirectories>,
}

/// Directories by their paths. Names of the same in other words (`a//b`) stand apart: to
/// compare paths part by part takes long.
type KnownDirectories = HashMap<OsString, Arc<RealDirectory>>;

/// What is mounted, in the order of mounting.
#[derive(Debug)]
struct Table {
    mounts: Vec<Mount>,
    /// The directories that mount points lie in.
    directories: HashSet<PathBuf>,
}

/// Where a directory really is.
#[derive(Debug)]
struct RealDirectory {
    path: PathBuf,
    /// The mount that it lies on, by its place in the table.
    mount: Option<usize>,
    /// Something in it is a mount point.
    has_mount_points: bool,
}

#[derive(Debug, Clone)]
struct Mount {
    /// Its number.
    id: u64,
    /// The directory of the file system that is mounted.
    root: PathBuf,
    /// Where.
    at: PathBuf,
    /// What.
    kind: String,
}

impl Mounts {
    /// The mounts of this process, read once somebody asks for them.
    #[must_use]
    pub fn of_this_machine() -> Self {
        Self {
            table: OnceLock::new(),
            real: Mutex::default(),
        }
    }

    /// Mounts from the text of a `mountinfo`.
    #[must_use]
    pub fn parse(text: &[u8]) -> Self {
        Self {
            table: OnceLock::from(Some(Table::parse(text))),
            real: Mutex::default(),
        }
    }

    fn table(&self) -> Option<&Table> {
        self.table.get_or_init(Table::read).as_ref()
    }

    /// What kind of file system `path` lies on. Where the table can't be read,
    /// a file is taken to be local, as it is on platforms without such a table.
    #[must_use]
    pub fn placement_of(&self, path: &Path) -> Placement {
        self.mount_of(path)
            .map_or(Placement::Local, Mount::placement)
    }

    /// The same for a file that was looked at, whose mount the kernel may have named.
    #[must_use]
    pub fn placement_of_file(&self, path: &Path, facts: &FileFacts) -> Placement {
        let mounts = self.table().map(|table| &table.mounts);
        let mut mounts = mounts.into_iter().flatten();
        // What was mounted since the table was read is not in it.
        let named = facts.mount.and_then(|id| mounts.find(|one| one.id == id));
        named.map_or_else(|| self.placement_of(path), Mount::placement)
    }

    /// Tells whether owners and modes mean something where `path` lies.
    #[must_use]
    pub fn has_modes(&self, path: &Path) -> bool {
        self.mount_of(path)
            .is_none_or(|mount| !MODELESS_TYPES.contains(&mount.kind.as_str()))
    }

    /// The mount that `path` lies on: the deepest mount point above it, and of
    /// several at one place the last.
    fn mount_of(&self, path: &Path) -> Option<&Mount> {
        let table = self.table()?;
        let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
            return table.mounts.get(table.deepest(path)?);
        };
        let mut real = self.real.lock().unwrap_or_else(PoisonError::into_inner);
        let directory = table.look_up(&mut real, directory, 0);
        let mount = if directory.has_mount_points {
            table.deepest(&directory.path.join(name))
        } else {
            directory.mount
        };
        table.mounts.get(mount?)
    }
}

impl Mount {
    fn placement(&self) -> Placement {
        let is_fuse = self.kind.starts_with("fuse.") || self.kind == "fuse";
        let is_whole = self.root == Path::new("/");
        if CONTAINER_TYPES.contains(&self.kind.as_str()) && is_whole {
            Placement::ThisContainer
        } else if SHARED_TYPES.contains(&self.kind.as_str()) || is_fuse {
            Placement::SharedByMachines
        } else {
            Placement::Local
        }
    }
}

impl Default for Mounts {
    /// Mounts of which nothing is known.
    fn default() -> Self {
        Self {
            table: OnceLock::from(None),
            real: Mutex::default(),
        }
    }
}

impl Table {
    fn read() -> Option<Self> {
        use std::io::Read as _;
        // Without room from the start it would be read in bits.
        let mut text = Vec::with_capacity(MOUNT_TABLE_BYTES_USUAL);
        let file = std::fs::File::open("/proc/self/mountinfo").ok()?;
        let read = file.take(MOUNT_TABLE_BYTES_MAX).read_to_end(&mut text);
        read.ok().map(|_| Self::parse(&text))
    }

    fn parse(text: &[u8]) -> Self {
        let mounts = parse_mounts(text);
        let points = mounts.iter().map(|mount| mount.at.as_path());
        let directories = points.filter_map(Path::parent).map(Path::to_owned);
        Self {
            directories: directories.collect(),
            mounts,
        }
    }

    /// Finds out where a directory really is, and keeps that: it is asked for
    /// every file in it. One that is no link lies in the one above it, and on
    /// its mount.
    fn look_up(
        &self,
        known: &mut KnownDirectories,
        directory: &Path,
        depth: usize,
    ) -> Arc<RealDirectory> {
        if let Some(known) = known.get(directory.as_os_str()) {
            return Arc::clone(known);
        }
        let above = match (directory.parent(), directory.file_name()) {
            (Some(above), Some(name)) if depth < DEPTH_MAX => Some((above, name)),
            _ => None,
        };
        let (path, mount) = match above {
            Some((above, name)) if std::fs::read_link(directory).is_err() => {
                let above = self.look_up(known, above, depth + 1);
                let path = above.path.join(name);
                let mount = if above.has_mount_points {
                    self.deepest(&path)
                } else {
                    above.mount
                };
                (path, mount)
            }
            _ => {
                let path = real_directory(directory);
                let mount = self.deepest(&path);
                (path, mount)
            }
        };
        let found = Arc::new(RealDirectory {
            has_mount_points: self.directories.contains(&path),
            mount,
            path,
        });
        if known.len() < DIRECTORIES_MAX {
            known.insert(directory.as_os_str().to_owned(), Arc::clone(&found));
        }
        found
    }

    /// The deepest mount point above a path, and of several at one place the
    /// last.
    fn deepest(&self, path: &Path) -> Option<usize> {
        let above = self.mounts.iter().enumerate();
        above
            .filter(|(_, mount)| path.starts_with(&mount.at))
            .max_by_key(|(_, mount)| mount.at.components().count())
            .map(|(place, _)| place)
    }
}

fn real_directory(directory: &Path) -> PathBuf {
    // What isn't there lies where the nearest directory above it is.
    let resolved = directory.ancestors().find_map(|ancestor| {
        let rest = directory.strip_prefix(ancestor).ok()?;
        Some(ancestor.canonicalize().ok()?.join(rest))
    });
    resolved.unwrap_or_else(|| directory.to_owned())
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
    let id = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    let root = unescape(fields.nth(2)?);
    let at = unescape(fields.next()?);
    let kind = fields.skip_while(|field| *field != b"-").nth(1)?;
    Some(Mount {
        id,
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

/// No other platform has such a table.
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
        // Mounted since, or not told: as the path says.
        assert_eq!(on(Some(99)), Placement::SharedByMachines);
        assert_eq!(on(None), Placement::SharedByMachines);
        // What the kernel says of this file and what its path says is the same.
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
