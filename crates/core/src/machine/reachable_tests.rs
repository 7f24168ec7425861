use std::fs;
use std::os::unix::fs::symlink;

use super::*;

/// A directory, and a table of mounts in it.
struct World {
    root: PathBuf,
    _folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for directory in ["app", "net/dev/w", "a/b/c", "home/dev"] {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        Self {
            root,
            _folder: folder,
        }
    }

    fn at(&self, below: &str) -> PathBuf {
        self.root.join(below)
    }

    /// Mounts with their numbers, those that they were mounted on, places and kinds.
    fn mounts(&self, mounts: &[(u64, u64, &str, &str)]) -> Mounts {
        let root = "27 1 254:0 / / rw - ext4 /dev/vda rw\n".to_owned();
        let text = mounts.iter().fold(root, |text, (id, parent, at, kind)| {
            let at = self.at(at);
            format!(
                "{text}{id} {parent} 0:{id} / {} rw - {kind} x rw\n",
                at.display()
            )
        });
        Mounts::parse(text.as_bytes())
    }

    #[track_caller]
    fn check(&self, mounts: &Mounts, below: &str, is_touchable: bool) {
        let found = mounts.touchable(&self.at(below));
        assert_eq!(found.is_ok(), is_touchable, "{below}: {found:?}");
    }
}

#[test]
fn nothing_is_touched_on_a_mount_that_may_hang_by_whatever_way() {
    let world = World::new();
    symlink("net/dev", world.at("link")).unwrap();
    symlink(world.at("link"), world.at("app/far")).unwrap();
    symlink("../app", world.at("home/near")).unwrap();
    let mounts = world.mounts(&[(30, 27, "net", "fuse.sshfs")]);
    for barred in [
        "net",
        "net/dev/w",
        "link",
        "link/w",
        "app/far",
        "app/../net/dev",
    ] {
        world.check(&mounts, barred, false);
    }
    for local in ["", "app", "network", "gone/x", "home/near", "home/near/x"] {
        world.check(&mounts, local, true);
    }
    let why = mounts.touchable(&world.at("link/w")).unwrap_err();
    let at = world.at("net");
    let kind = "fuse.sshfs".to_owned();
    assert_eq!(why, WhyNot::Mount { at, kind });
    // It is compared as text, without the links that could be followed.
    assert_eq!(
        mounts.real_path(&world.at("app/far/x/y")),
        world.at("net/dev/x/y")
    );
    assert!(mounts.leads_to(&world.at("link/w"), &world.at("net/dev/w")));
    assert_eq!(mounts.real_path(&world.at("home/near")), world.at("app"));
    // By no table, every path is touched.
    assert!(Mounts::default().touchable(&world.at("net/dev")).is_ok());
}

#[test]
fn what_is_mounted_last_counts() {
    let world = World::new();
    let covered = world.mounts(&[(30, 27, "net", "nfs4"), (31, 30, "net", "tmpfs")]);
    world.check(&covered, "net/dev", true);
    let covering = world.mounts(&[(30, 27, "net", "tmpfs"), (31, 30, "net", "nfs4")]);
    world.check(&covering, "net/dev", false);
    // What lies below a mount that covers it is not reached.
    let hidden = world.mounts(&[(30, 27, "a/b", "nfs4"), (31, 27, "a", "tmpfs")]);
    world.check(&hidden, "a/b/c", true);
    let inside = world.mounts(&[(31, 27, "a", "tmpfs"), (32, 31, "a/b", "nfs4")]);
    world.check(&inside, "a/b/c", false);
    world.check(&inside, "a/x", true);
    // A local file system on one that may hang is reached through that one.
    let above = world.mounts(&[(30, 27, "a", "nfs4"), (31, 30, "a/b", "ext4")]);
    world.check(&above, "a/b/c", false);
}

#[test]
fn what_the_user_relies_on_is_touched_and_no_automount_is_started() {
    let world = World::new();
    let table = [
        (30, 27, "home", "autofs"),
        (31, 30, "home/dev", "nfs4"),
        (32, 27, "net", "nfs4"),
    ];
    let mounts = world.mounts(&table);
    world.check(&mounts, "home/dev/src", false);
    mounts.rely_on(&world.at("home/dev"));
    world.check(&mounts, "home/dev/src", true);
    world.check(&mounts, "home/other", false);
    world.check(&mounts, "net/dev", false);
}

#[test]
fn what_can_not_be_walked_is_not_touched() {
    let world = World::new();
    symlink("loop", world.at("loop")).unwrap();
    let mounts = world.mounts(&[]);
    assert_eq!(mounts.touchable(&world.at("loop")), Err(WhyNot::TooLong));
    assert_eq!(mounts.touchable(Path::new("app")), Err(WhyNot::Relative));
    let long = world.at(&"x/".repeat(NAMES_MAX + 8));
    assert_eq!(mounts.touchable(&long), Err(WhyNot::TooLong));
    // Nothing is remembered of a path that no file can have.
    let endless = PathBuf::from("/x".repeat(PATH_BYTES_MAX));
    assert_eq!(mounts.touchable(&endless), Err(WhyNot::TooLong));
    assert!(!mounts.known().directories.contains_key(endless.as_os_str()));
    if Path::new("/proc/self/cwd").exists() {
        // The kernel follows it wherever it leads, and its text may mean another place.
        let here = Mounts::of_this_machine().touchable(Path::new("/proc/1/cwd/x"));
        let is_link = matches!(here, Err(WhyNot::ProcLink { .. }));
        // It may not be shown to us.
        assert!(is_link || here.is_ok(), "{here:?}");
        let own = Mounts::of_this_machine().touchable(Path::new("/proc/self/cwd"));
        assert!(matches!(own, Err(WhyNot::ProcLink { .. })), "{own:?}");
    }
}

#[test]
fn a_way_names_the_links_and_leads_over_local_mounts_alone() {
    let world = World::new();
    symlink("app", world.at("link")).unwrap();
    symlink(world.at("link"), world.at("far")).unwrap();
    let mounts = world.mounts(&[(30, 27, "net", "nfs4")]);
    mounts.rely_on(&world.at("net/dev"));
    let way = mounts.way_to(&world.at("far")).unwrap();
    assert_eq!(way.directory, world.at("app"));
    assert_eq!(way.links, [world.at("far"), world.at("link")]);
    assert_eq!(mounts.way_to(&world.at("gone")), None);
    assert!(mounts.touchable(&world.at("net/dev")).is_ok());
    assert_eq!(mounts.way_to(&world.at("net/dev")), None);
}
