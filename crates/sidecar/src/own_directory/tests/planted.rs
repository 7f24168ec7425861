//! Links, FIFOs and directories of others, where we write.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use tempfile::TempDir;

use crate::own_directory::{Access, Durable, OwnDirectory};

/// A user ID that no user of this test has.
const ANOTHER: u32 = 12_345;
/// How long something may take that must not wait.
const PATIENCE: Duration = Duration::from_secs(60);

struct World {
    root: TempDir,
}

impl World {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("own")).unwrap();
        fs::write(root.path().join("prey"), "mine").unwrap();
        Self { root }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn open(&self) -> OwnDirectory {
        OwnDirectory::open(&self.at("own"), 1).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.at("own")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[track_caller]
    fn check_prey(&self) {
        assert_eq!(fs::read_to_string(self.at("prey")).unwrap(), "mine");
    }
}

fn name(text: &str) -> &OsStr {
    text.as_ref()
}

/// Does something that must not wait.
#[track_caller]
fn at_once<T: Send + 'static>(what: impl FnOnce() -> T + Send + 'static) -> T {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || send.send(what()));
    receive.recv_timeout(PATIENCE).expect("no answer: it waits")
}

fn make_fifo(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

#[test]
fn a_planted_link_is_never_followed() {
    let world = World::new();
    symlink(world.at("prey"), world.at("own/log")).unwrap();
    symlink(world.at("nothing"), world.at("own/lock")).unwrap();
    let own = world.open();
    for file in ["log", "lock"] {
        for access in [Access::Append, Access::Write, Access::Read] {
            let error = own.open_or_make_file(name(file), access).unwrap_err();
            assert!(error.to_string().contains("is a link"), "{error}");
        }
    }
    let error = own.make_new(name("lock"), b"new").unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    assert!(!world.at("nothing").exists());
    // What replaces a link takes the place of the link.
    own.replace(name("log"), b"new", Durable::Later, None)
        .unwrap();
    assert!(!world.at("own/log").is_symlink());
    assert_eq!(fs::read(world.at("own/log")).unwrap(), b"new");
    world.check_prey();
}

#[test]
fn a_planted_fifo_is_never_waited_for() {
    let world = World::new();
    make_fifo(&world.at("own/log"));
    for access in [Access::Append, Access::Write, Access::Read] {
        let own = world.open();
        let opened = at_once(move || own.open_or_make_file(name("log"), access).map(drop));
        let error = opened.unwrap_err();
        assert!(error.to_string().contains("no regular file"), "{error}");
    }
    // Nor a FIFO with a reader.
    let reader = fs::File::options()
        .read(true)
        .write(true)
        .open(world.at("own/log"))
        .unwrap();
    let own = world.open();
    let opened = at_once(move || own.open_or_make_file(name("log"), Access::Append).map(drop));
    assert!(opened.is_err());
    drop(reader);
    let own = world.open();
    at_once(move || own.replace(name("log"), b"new", Durable::Now, None)).unwrap();
    assert_eq!(fs::read(world.at("own/log")).unwrap(), b"new");
}

#[test]
fn a_planted_directory_is_an_error() {
    let world = World::new();
    fs::create_dir(world.at("own/log")).unwrap();
    let own = world.open();
    for access in [Access::Append, Access::Write, Access::Read] {
        assert!(own.open_or_make_file(name("log"), access).is_err());
    }
    let replaced = own.replace(name("log"), b"new", Durable::Now, None);
    assert!(replaced.is_err());
    assert_eq!(world.names(), ["log"], "no temporary file stays");
}

#[test]
fn what_is_written_is_its_owner_s_alone() {
    let world = World::new();
    let own = world.open();
    own.open_or_make_file(name("log"), Access::Append)
        .and_then(|mut log| log.write_all(b"1"))
        .unwrap();
    own.open_or_make_file(name("log"), Access::Append)
        .and_then(|mut log| log.write_all(b"2"))
        .unwrap();
    own.make_new(name("new"), b"new").unwrap();
    own.replace(name("record"), b"record", Durable::Now, None)
        .unwrap();
    let deep = world.at("own/deep/er");
    OwnDirectory::make(&deep, 2).unwrap();
    assert_eq!(world.names(), ["deep", "log", "new", "record"]);
    let mode = |path: &str| fs::metadata(world.at(path)).unwrap().mode() & 0o777;
    for file in ["own/log", "own/new", "own/record"] {
        assert_eq!(mode(file), 0o600, "{file}");
    }
    assert_eq!((mode("own/deep"), mode("own/deep/er")), (0o700, 0o700));
    let mut text = String::new();
    let mut log = own.open_file(name("log"), Access::Read).unwrap();
    log.read_to_string(&mut text).unwrap();
    assert_eq!(text, "12");
}

#[test]
fn a_replacement_file_has_an_unpredictable_name() {
    let world = World::new();
    // Whatever is planted under a name that can be known stays as it is.
    for planted in ["record.whosup~", "record.new", ".record.tmp"] {
        symlink(world.at("prey"), world.at("own").join(planted)).unwrap();
    }
    let own = world.open();
    own.replace(name("record"), b"new", Durable::Now, None)
        .unwrap();
    for planted in ["record.whosup~", "record.new", ".record.tmp"] {
        assert!(world.at("own").join(planted).is_symlink());
    }
    world.check_prey();
}

#[test]
fn a_directory_that_everybody_may_write_is_refused_and_named() {
    let world = World::new();
    let set = |path: &str, mode| {
        fs::set_permissions(world.at(path), fs::Permissions::from_mode(mode)).unwrap();
    };
    fs::create_dir(world.at("own/deep")).unwrap();
    for mode in [0o777, 0o1777, 0o702] {
        set("own/deep", mode);
        let error = OwnDirectory::make(&world.at("own/deep"), 1).unwrap_err();
        let text = error.to_string();
        let named = format!("everybody may write `{}`", world.at("own/deep").display());
        assert!(text.starts_with(&named), "{mode:o}: {text}");
    }
    set("own/deep", 0o775);
    set("own", 0o777);
    let error = OwnDirectory::open(&world.at("own/deep"), 2).unwrap_err();
    assert!(error.to_string().contains("/own`"), "{error}");
    // In the directory above ours no other user can move it; higher ones are not checked.
    set("own", 0o1777);
    OwnDirectory::open(&world.at("own/deep"), 2).unwrap();
    set("own", 0o777);
    OwnDirectory::open(&world.at("own/deep"), 1).unwrap();
}

/// Only root can give files to another user.
fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("skipped: only root can give files to another user");
    }
    is_root
}

#[test]
fn a_directory_of_another_user_is_refused_and_named() {
    if !is_root() {
        return;
    }
    let world = World::new();
    fs::create_dir(world.at("own/deep")).unwrap();
    chown(world.at("own"), Some(ANOTHER), None).unwrap();
    let refused = format!("`{}` belongs to user {ANOTHER}", world.at("own").display());
    for error in [
        OwnDirectory::open(&world.at("own"), 1).unwrap_err(),
        OwnDirectory::open(&world.at("own/deep"), 2).unwrap_err(),
        // Nor is anything made there.
        OwnDirectory::make(&world.at("own/new"), 1).unwrap_err(),
    ] {
        assert!(error.to_string().starts_with(&refused), "{error}");
    }
    assert!(!world.at("own/new").exists());
}

#[test]
fn a_file_of_another_user_is_refused() {
    if !is_root() {
        return;
    }
    let world = World::new();
    fs::write(world.at("own/log"), "theirs").unwrap();
    chown(world.at("own/log"), Some(ANOTHER), None).unwrap();
    let own = world.open();
    let opened = own.open_or_make_file(name("log"), Access::Append);
    assert!(opened.unwrap_err().to_string().contains("belongs to user"));
}

#[test]
fn a_link_on_the_way_is_followed_if_it_is_ours() {
    let world = World::new();
    symlink("own", world.at("link")).unwrap();
    symlink(world.at("link"), world.at("again")).unwrap();
    symlink("round", world.at("round")).unwrap();
    let own = OwnDirectory::open(&world.at("again"), 1).unwrap();
    own.make_new(name("new"), b"new").unwrap();
    assert_eq!(world.names(), ["new"]);
    OwnDirectory::make(&world.at("link/deep/.."), 1).unwrap();
    assert!(OwnDirectory::open(&world.at("round"), 1).is_err());
    assert!(OwnDirectory::open(&world.at("prey"), 1).is_err());
    if is_root() {
        std::os::unix::fs::lchown(world.at("again"), Some(ANOTHER), None).unwrap();
        let error = OwnDirectory::open(&world.at("again"), 1).unwrap_err();
        let named = format!("`{}` belongs to", world.at("again").display());
        assert!(error.to_string().starts_with(&named), "{error}");
    }
}

#[test]
fn the_levels_of_a_link_are_those_of_what_it_leads_to() {
    let world = World::new();
    fs::create_dir_all(world.at("open/deep")).unwrap();
    let everybody = fs::Permissions::from_mode(0o777);
    fs::set_permissions(world.at("open"), everybody).unwrap();
    symlink(world.at("open"), world.at("own/link")).unwrap();
    assert!(OwnDirectory::open(&world.at("own/link"), 1).is_err());
    assert!(OwnDirectory::open(&world.at("own/link/deep"), 2).is_err());
    OwnDirectory::open(&world.at("own/link/deep"), 1).unwrap();
}

#[test]
fn a_linked_file_is_replaced_where_it_lies() {
    let world = World::new();
    fs::create_dir(world.at("own/dotfiles")).unwrap();
    fs::write(world.at("own/dotfiles/settings"), "old").unwrap();
    fs::create_dir(world.at("home")).unwrap();
    symlink("../own/dotfiles/settings", world.at("home/one")).unwrap();
    symlink("one", world.at("home/two")).unwrap();
    symlink("three", world.at("home/three")).unwrap();
    let (directory, file) = OwnDirectory::of_linked(&world.at("home/two"), None).unwrap();
    assert_eq!(file, "settings");
    let old = directory.open_file(&file, Access::Read).unwrap();
    directory
        .replace(&file, b"new", Durable::Now, Some(&old))
        .unwrap();
    assert!(world.at("home/two").is_symlink() && world.at("home/one").is_symlink());
    assert_eq!(fs::read(world.at("own/dotfiles/settings")).unwrap(), b"new");
    assert!(OwnDirectory::of_linked(&world.at("home/three"), None).is_err());
}

#[test]
fn root_in_the_home_of_a_user_touches_only_what_is_that_user_s() {
    if !is_root() {
        return;
    }
    let world = World::new();
    let give = |path: &str| {
        std::os::unix::fs::lchown(world.at(path), Some(ANOTHER), Some(ANOTHER)).unwrap();
    };
    let of_linked = |path: &str| OwnDirectory::of_linked(&world.at(path), Some(ANOTHER));
    fs::create_dir(world.at("home")).unwrap();
    give("home");
    // Their own settings, and new ones, stay or become theirs.
    fs::write(world.at("home/settings"), "old").unwrap();
    give("home/settings");
    let (directory, file) = of_linked("home/settings").unwrap();
    let old = directory.open_file(&file, Access::Read).unwrap();
    directory
        .replace(&file, b"new", Durable::Now, Some(&old))
        .unwrap();
    let (directory, file) = of_linked("home/fresh").unwrap();
    directory
        .replace(&file, b"new", Durable::Now, None)
        .unwrap();
    for path in ["home/settings", "home/fresh"] {
        let facts = fs::metadata(world.at(path)).unwrap();
        assert_eq!((facts.uid(), facts.gid()), (ANOTHER, ANOTHER), "{path}");
    }
    // A link of theirs to what is root's.
    symlink(world.at("prey"), world.at("home/link")).unwrap();
    give("home/link");
    let error = of_linked("home/link").unwrap_err();
    assert!(error.to_string().contains("belongs to user 0"), "{error}");
    // A link of theirs to a directory of root's.
    symlink(world.at("own"), world.at("home/deep")).unwrap();
    give("home/deep");
    assert!(of_linked("home/deep/settings").is_err());
    // A second name of what is root's.
    fs::hard_link(world.at("prey"), world.at("home/second")).unwrap();
    let (directory, file) = of_linked("home/second").unwrap();
    let error = directory.open_file(&file, Access::Read).unwrap_err();
    assert!(error.to_string().contains("belongs to user 0"), "{error}");
    world.check_prey();
    assert_eq!(fs::metadata(world.at("prey")).unwrap().uid(), 0);
}
