//! Tables at another place: copies in a folder, right and wrong ones.
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
#![cfg(target_os = "linux")]

mod world;

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use tempfile::TempDir;
use whosup_process::linux::Proc;
use whosup_process::{
    Absent, Access, Among, AtPid, Backend, FileId, HidePid, Pid, ProbeError, Process, RunState,
    StartStamp, Still, Tty,
};
use world::pid;

/// The text of a `stat`: name, state, flags, threads, start.
fn stat(pid: i64, name: &str, letter: char, flags: u32, threads: u32, start: u64) -> String {
    format!(
        "{pid} ({name}) {letter} 1 {pid} {pid} 34818 {pid} {flags} 9 0 0 0 5 6 0 0 20 0 {threads} 0 \
         {start} 1048576 256 18446744073709551615 1 1 0 0 0 0 0 0 65536 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
    )
}

/// A copy of a table in which PID 100 looks.
struct Copy {
    folder: TempDir,
}

impl Copy {
    fn new() -> Self {
        // In memory where that is possible, for there are very many files.
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        let folder = folder.unwrap();
        let copy = Self { folder };
        copy.process(100, "looker", 500);
        symlink("100", copy.path("self")).unwrap();
        copy.write("stat", "cpu 1 2 3\nbtime 1790000000\n");
        copy.write("sys/kernel/hostname", "devbox\n");
        let boot_id = "19C1D8FF-A55F-47C0-82A1-B0F1BC43623A\n";
        copy.write("sys/kernel/random/boot_id", boot_id);
        let mounts = "22 27 0:21 / /proc rw - proc proc rw,hidepid=invisible\n";
        copy.write("100/mountinfo", mounts);
        copy.link("100/ns/pid", "pid:[4026531836]");
        copy.link("100/ns/time", "time:[4026531834]");
        copy.link("100/ns/user", "user:[4026531837]");
        copy
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        std::fs::write(self.path(name), text).unwrap();
    }

    fn link(&self, name: &str, target: &str) {
        std::fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        symlink(target, self.path(name)).unwrap();
    }

    fn process(&self, number: i64, name: &str, start: u64) {
        self.write(
            &format!("{number}/stat"),
            stat(number, name, 'S', 4_194_304, 1, start),
        );
        let status = format!(
            "Name:\t{name}\nTgid:\t{number}\nPid:\t{number}\nUid:\t7\t8\t9\t9\n\
             NSpid:\t{number}\t3\nCapEff:\t0000000000000000\n"
        );
        self.write(&format!("{number}/status"), status);
        self.write(&format!("{number}/cmdline"), format!("{name}\0--flag\0"));
        self.write(&format!("{number}/environ"), format!("NAME={name}\0"));
        self.link(&format!("{number}/exe"), &format!("/usr/bin/{name}"));
        self.link(&format!("{number}/cwd"), "/home/dev");
    }

    fn table(&self) -> Proc {
        Proc::at(self.folder.path().to_path_buf())
    }
}

#[track_caller]
fn probe(copy: &Copy, number: i64) -> Process {
    copy.table().probe(pid(number)).unwrap().unwrap()
}

#[test]
fn a_copy_of_a_table_is_read_by_its_files_alone() {
    let copy = Copy::new();
    copy.process(4711, "node", 8123);
    let table = copy.table();
    let process = probe(&copy, 4711);
    assert_eq!(process.stamp, StartStamp::LinuxTicks(8123));
    let ticks_per_second = i64::try_from(rustix::param::clock_ticks_per_second()).unwrap();
    let began_at_ms = 1_790_000_000_000 + 8_123_000 / ticks_per_second;
    assert_eq!(process.began_at_ms, Ok(began_at_ms));
    assert_eq!(process.ppid, Some(pid(1)));
    assert_eq!(process.run_state, RunState::Sleeping);
    let tty = Tty {
        major: 136,
        minor: 2,
    };
    assert_eq!(process.tty, Some(tty));
    assert_eq!(process.foreground_group, 4711);
    let details = table.details(&process);
    assert_eq!(details.argv.unwrap(), ["node", "--flag"]);
    assert_eq!(details.exe.as_deref(), Ok(Path::new("/usr/bin/node")));
    assert_eq!(details.cwd.as_deref(), Ok(Path::new("/home/dev")));
    assert_eq!(details.uid, Ok(8));
    assert_eq!(details.inner_pids, Ok(vec![pid(4711), pid(3)]));
    assert_eq!(details.pid_namespace, Err(Absent::Unsupported));
    let environment = table.environment(&process, &["NAME"]).unwrap();
    assert_eq!(environment, [("NAME".to_owned(), "node".into())]);
    assert_eq!(table.probe(pid(4712)), Ok(None));
    let still = table.is_still(pid(4711), &StartStamp::LinuxTicks(8123));
    assert_eq!(still, Ok(Still::Running));
}

#[test]
fn a_copy_has_its_own_scope_and_view() {
    let copy = Copy::new();
    let scope = copy.table().scope();
    assert_eq!(scope.host.unwrap().0, "devbox");
    let boot = scope.boot.unwrap();
    assert_eq!(boot.as_str(), "19c1d8ff-a55f-47c0-82a1-b0f1bc43623a");
    assert_eq!(scope.pid_namespace.unwrap().0, 4_026_531_836);
    let view = copy.table().view();
    assert_eq!(view.is_proc_ours, Ok(true));
    assert_eq!(view.hide_pid, Ok(HidePid::Invisible));
    assert_eq!(view.is_initial_pid_namespace, Ok(true));
    assert_eq!(view.is_initial_time_namespace, Ok(true));
    assert_eq!(view.booted_at_ms, Ok(1_790_000_000_000));
}

#[test]
fn what_a_kernel_does_not_report_is_absent_and_never_made_up() {
    let copy = Copy::new();
    copy.write("sys/kernel/random/boot_id", "none\n");
    copy.write("stat", "cpu 1 2 3\n");
    std::fs::remove_file(copy.path("sys/kernel/hostname")).unwrap();
    std::fs::remove_file(copy.path("100/mountinfo")).unwrap();
    std::fs::remove_dir_all(copy.path("100/ns")).unwrap();
    let scope = copy.table().scope();
    assert_eq!(scope.host, Err(Absent::Unsupported));
    assert!(matches!(scope.boot, Err(Absent::Malformed(_))));
    assert!(scope.pid_namespace.is_err());
    let view = copy.table().view();
    assert_eq!(view.hide_pid, Err(Absent::Unsupported));
    assert_eq!(view.is_everything_shown, Err(Absent::Unsupported));
    assert!(view.is_initial_pid_namespace.is_err());
    assert!(view.is_initial_time_namespace.is_err());
    assert!(matches!(view.booted_at_ms, Err(Absent::Malformed(_))));
    let looker = probe(&copy, 100);
    assert!(matches!(looker.began_at_ms, Err(Absent::Malformed(_))));
}

#[test]
fn a_kernel_before_time_namespaces_has_the_first_one() {
    let copy = Copy::new();
    std::fs::remove_file(copy.path("100/ns/time")).unwrap();
    copy.link("100/ns/uts", "uts:[4026531838]");
    assert_eq!(copy.table().view().is_initial_time_namespace, Ok(true));
}

#[test]
fn one_bad_process_hides_no_other() {
    let copy = Copy::new();
    copy.process(4711, "good", 8123);
    copy.write("4712/stat", "garbage");
    copy.write("4713/stat", stat(9, "not me", 'S', 0, 1, 1));
    copy.write("4714/stat", "x".repeat(100_000));
    copy.write("4715/stat", "");
    std::fs::create_dir(copy.path("4716")).unwrap();
    std::fs::create_dir_all(copy.path("4717/stat")).unwrap();
    assert!(world::can(&["mkfifo", copy.path("4718").to_str().unwrap()]));
    std::fs::create_dir(copy.path("4719")).unwrap();
    let fifo = copy.path("4719/stat");
    assert!(world::can(&["mkfifo", fifo.to_str().unwrap()]));
    copy.write("notes.txt", "no process");
    copy.write("007/stat", stat(7, "padded", 'S', 0, 1, 1));
    let began = Instant::now();
    let (listed, unreadable) = copy.table().processes().unwrap();
    assert!(began.elapsed().as_secs() < 10, "a FIFO blocked the look");
    let pids: Vec<i32> = listed.iter().map(|process| process.pid.get()).collect();
    assert!(
        pids.contains(&4711) && pids.contains(&100) && pids.len() == 2,
        "{pids:?}"
    );
    let mut bad: Vec<i32> = unreadable.iter().map(|(pid, _)| pid.get()).collect();
    bad.sort_unstable();
    assert_eq!(bad, [4712, 4713, 4714, 4715, 4717, 4718, 4719]);
    for number in bad {
        assert!(copy.table().probe(pid(i64::from(number))).is_err());
    }
    // A directory without a `stat` is a process on its way out, when listed.
    assert!(copy.table().probe(pid(4716)).is_err());
}

#[test]
fn zombies_of_a_copy_are_judged_by_their_threads() {
    let copy = Copy::new();
    copy.write("50/stat", stat(50, "all gone", 'Z', 4_194_308, 1, 9));
    copy.write("51/stat", stat(51, "leader gone", 'Z', 4_194_308, 3, 9));
    copy.write("52/stat", stat(52, "going", 'X', 4_194_308, 0, 9));
    copy.write("53/stat", stat(53, "kthreadd", 'S', 2_129_984, 1, 9));
    copy.write("54/stat", stat(54, "new letter", 'q', 0, 1, 9));
    let (listed, unreadable) = copy.table().processes().unwrap();
    assert_eq!(unreadable, []);
    let find = |number: i64| {
        let mut found = listed.iter().filter(|process| process.pid == pid(number));
        found.next().unwrap()
    };
    assert!(find(50).is_exited);
    assert!(!find(51).is_exited);
    assert!(find(52).is_exited);
    assert!(find(53).is_kernel_thread);
    assert!(!find(50).is_kernel_thread);
    assert_eq!(find(54).run_state, RunState::Other(b'q'));
}

#[test]
fn a_thread_of_a_copy_is_recognized_by_its_status() {
    let copy = Copy::new();
    copy.process(4711, "node", 8123);
    copy.write("4712/stat", stat(4712, "worker", 'S', 0, 2, 8124));
    copy.write("4712/status", "Name:\tworker\nTgid:\t4711\nPid:\t4712\n");
    assert_eq!(copy.table().probe(pid(4712)), Ok(None));
    assert_eq!(copy.table().is_thread(pid(4712)), Ok(true));
    assert_eq!(copy.table().at_pid(pid(4712)), Ok(AtPid::Thread));
    assert_eq!(copy.table().at_pid(pid(9)), Ok(AtPid::Nothing));
    assert_eq!(copy.table().is_thread(pid(4711)), Ok(false));
    assert_eq!(copy.table().is_thread(pid(9)), Ok(false));
}

#[test]
fn a_process_that_was_replaced_between_two_reads_has_vanished() {
    let copy = Copy::new();
    copy.process(4711, "first", 8123);
    let first = probe(&copy, 4711);
    std::fs::remove_dir_all(copy.path("4711")).unwrap();
    copy.process(4711, "second", 9000);
    let details = copy.table().details(&first);
    assert_eq!(details.argv, Err(Absent::Vanished));
    assert_eq!(details.exe, Err(Absent::Vanished));
    assert_eq!(details.uid, Err(Absent::Vanished));
    let environment = copy.table().environment(&first, &["NAME"]);
    assert_eq!(environment, Err(Absent::Vanished));
    let still = copy.table().is_still(first.pid, &first.stamp);
    assert_eq!(still, Ok(Still::Exited));
}

/// Ends the other thread, also when an assertion fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn what_is_read_while_a_process_is_replaced_is_of_one_process_or_absent() {
    let copy = Copy::new();
    copy.process(4711, "first", 8123);
    let first = probe(&copy, 4711);
    let other = Copy::new();
    other.process(4711, "second", 9000);
    let spare = copy.path("spare");
    std::fs::rename(other.path("4711"), &spare).unwrap();
    let is_over = AtomicBool::new(false);
    let mut seen = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // The two change places, over and over.
            while !is_over.load(Ordering::Relaxed) {
                let (old, new) = (copy.path("4711"), copy.path("old"));
                std::fs::rename(&old, &new).unwrap();
                std::fs::rename(&spare, &old).unwrap();
                std::fs::rename(&new, &spare).unwrap();
            }
        });
        let _over = Over(&is_over);
        let began = Instant::now();
        while (seen.0 < 50 || seen.1 < 50) && began.elapsed().as_secs() < 60 {
            let details = copy.table().details(&first);
            match (details.argv, details.cwd) {
                (Ok(argv), Ok(_)) => {
                    assert_eq!(argv[0], "first");
                    seen.0 += 1;
                }
                (Err(Absent::Vanished), Err(Absent::Vanished)) => seen.1 += 1,
                mixed => panic!("{mixed:?}"),
            }
        }
    });
    assert!(seen.0 > 0 && seen.1 > 0, "{seen:?}");
}

#[test]
fn files_of_two_processes_are_never_mixed() {
    let mut kept = 0;
    for round in 0..300_u32 {
        let copy = Copy::new();
        copy.process(4711, "first", 8123);
        let first = probe(&copy, 4711);
        copy.process(9, "second", 9000);
        let replace = |file: &str| {
            let old = copy.path(&format!("4711/{file}"));
            std::fs::rename(copy.path(&format!("9/{file}")), old).unwrap();
        };
        copy.write("9/stat", stat(4711, "second", 'S', 0, 1, 9000));
        let table = copy.table();
        let together = std::sync::Barrier::new(2);
        let (details, environment) = std::thread::scope(|scope| {
            scope.spawn(|| {
                together.wait();
                (0..round).for_each(|_| std::hint::spin_loop());
                // The stamp goes first, as it does when a PID is reused.
                ["stat", "cmdline", "environ"].into_iter().for_each(replace);
            });
            together.wait();
            (table.details(&first), table.environment(&first, &["NAME"]))
        });
        if let Ok(argv) = details.argv {
            assert_eq!(argv[0], "first");
            kept += 1;
        }
        if let Ok(environment) = environment {
            assert_eq!(environment[0].1, "first");
        }
    }
    assert!(kept < 300, "the two never met");
}

#[test]
fn more_descriptors_than_the_bound_are_reported_and_what_was_found_is_kept() {
    let copy = Copy::new();
    copy.process(4711, "many", 8123);
    let file = copy.path("held");
    std::fs::write(&file, "").unwrap();
    std::fs::create_dir(copy.path("4711/fd")).unwrap();
    for descriptor in 0..65_600 {
        symlink(&file, copy.path(&format!("4711/fd/{descriptor}"))).unwrap();
    }
    copy.write("4711/fdinfo/5", "pos:\t0\nflags:\t0100001\n");
    let held = std::fs::metadata(&file).unwrap();
    let held = FileId {
        device: std::os::unix::fs::MetadataExt::dev(&held),
        inode: std::os::unix::fs::MetadataExt::ino(&held),
    };
    let asked = [pid(4711)];
    let holders = copy.table().holders(&[held], Among::These(&asked)).unwrap();
    let cut = Absent::TooMany {
        entries_max: 65_536,
    };
    assert_eq!(holders.unreadable, [(pid(4711), cut)]);
    assert!(holders.found.len() <= 1);
    assert!(
        holders
            .found
            .iter()
            .all(|found| found.access == Access::Write)
    );
}

#[test]
fn a_copy_whose_self_leads_nowhere_is_not_ours() {
    let copy = Copy::new();
    std::fs::remove_dir_all(copy.path("100")).unwrap();
    copy.process(4711, "node", 8123);
    assert_eq!(copy.table().view().is_proc_ours, Ok(false));
    assert!(matches!(
        copy.table().probe(pid(4711)),
        Err(ProbeError::NotOurs { .. })
    ));
    let file = copy.path("file");
    std::fs::write(&file, "").unwrap();
    let table = Proc::at(file);
    assert!(matches!(table.processes(), Err(ProbeError::NotOurs { .. })));
}

#[test]
fn a_mount_of_proc_elsewhere_is_read_like_the_first_one() {
    let elsewhere = Proc::at("/proc/self/root/proc".into());
    let (listed, _) = elsewhere.processes().unwrap();
    assert!(listed.iter().any(|process| process.pid == Pid::own()));
    let own = elsewhere.probe(Pid::own()).unwrap().unwrap();
    assert_eq!(own.stamp, world::process(Pid::own()).stamp);
    let view = elsewhere.view();
    assert_eq!(view.hide_pid, Proc::system().view().hide_pid);
}
