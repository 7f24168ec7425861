//! Tables kept as data, and looks at them.
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use whosup_process::{
    Absent, Access, Among, Backend, Details, ExitWatch, Field, FileId, Holders, Listing, LockKind,
    OpenFile, Pid, PidNamespace, PidScope, ProbeError, Process, ProcessTable, Recorded,
    RecordedProcess, RunState, StartStamp, Still, Tty, View,
};

const BEGAN_AT_MS: i64 = 1_790_000_081_230;

fn pid(raw: i64) -> Pid {
    Pid::new(raw).unwrap()
}

fn node(number: i32) -> RecordedProcess {
    RecordedProcess::new(number, 8123, BEGAN_AT_MS).comm("node")
}

#[test]
fn a_recorded_process_has_sane_defaults() {
    let world = Recorded::initial().with(RecordedProcess::new(4711, 8123, BEGAN_AT_MS));
    let process = world.probe(pid(4711)).unwrap().unwrap();
    assert_eq!(process.stamp, StartStamp::LinuxTicks(8123));
    assert_eq!(process.began_at_ms, Ok(BEGAN_AT_MS));
    assert_eq!(process.ppid, Some(pid(1)));
    assert_eq!(process.run_state, RunState::Sleeping);
    assert!(!process.is_exited && !process.is_kernel_thread);
    let details = world.details(&process);
    assert_eq!(details.uid, Ok(0));
    assert_eq!(details.inner_pids, Ok(vec![pid(4711)]));
    assert_eq!(details.pid_namespace, Ok(PidNamespace::INITIAL));
    assert_eq!(world.environment(&process, &["HOME"]), Ok(vec![]));
    assert_eq!(world.scope().host.unwrap().0, "devbox");
    assert!(world.scope().boot.is_ok());
    assert_eq!(world.view().is_proc_ours, Ok(true));
}

#[test]
fn a_recorded_process_reports_what_was_recorded() {
    let process = node(4711)
        .argv(&["node", "agent.js"])
        .exe("/usr/bin/node")
        .exe_deleted()
        .cwd("/home/dev")
        .ppid(0)
        .tty(136, 2)
        .uid(1000)
        .rss_bytes(5)
        .cpu_ms(70)
        .threads(11)
        .run_state(RunState::Running)
        .env(&[("HOME", "/home/dev"), ("SECRET", "x")])
        .inner_pids(&[7, 1])
        .pid_namespace(4_026_532_000);
    let world = Recorded::initial().with(process);
    let process = world.probe(pid(4711)).unwrap().unwrap();
    assert_eq!(process.comm, b"node");
    assert_eq!(process.ppid, None);
    let tty = Tty {
        major: 136,
        minor: 2,
    };
    assert_eq!(process.tty, Some(tty));
    assert_eq!(process.foreground_group, process.process_group);
    assert_eq!(process.rss_bytes, Ok(5));
    assert_eq!(process.cpu_ms, Ok(70));
    assert_eq!(process.threads, 11);
    assert_eq!(process.run_state, RunState::Running);
    let details = world.details(&process);
    assert_eq!(details.argv.clone().unwrap(), ["node", "agent.js"]);
    assert!(details.is_exe_deleted);
    assert_eq!(details.uid, Ok(1000));
    assert_eq!(details.inner_pids, Ok(vec![pid(4711), pid(7), pid(1)]));
    assert_eq!(details.innermost_pid(), Some(pid(1)));
    assert_eq!(details.pid_namespace, Ok(PidNamespace(4_026_532_000)));
    let environment = world.environment(&process, &["HOME", "MISSING"]);
    assert_eq!(
        environment,
        Ok(vec![("HOME".to_owned(), OsString::from("/home/dev"))])
    );
    let titled = node(1).title("an agent").details;
    assert_eq!(titled.title, Ok(Some("an agent".into())));
}

#[test]
fn what_cannot_be_looked_at_is_an_error_and_what_is_not_there_is_none() {
    let refused = ProbeError::Process {
        pid: pid(13),
        reason: Absent::PermissionDenied,
    };
    let world = Recorded::initial()
        .with(node(10))
        .hidden(11)
        .with_unreadable(12, Absent::PermissionDenied)
        .with(node(13))
        .with_probe_error(13, refused.clone())
        .with_thread(14);
    assert!(world.probe(pid(10)).unwrap().is_some());
    assert_eq!(
        world.probe(pid(11)),
        Err(ProbeError::Hidden { pid: pid(11) })
    );
    assert!(world.probe(pid(12)).is_err());
    assert_eq!(world.probe(pid(13)), Err(refused.clone()));
    assert_eq!(world.is_thread(pid(13)), Err(refused));
    assert_eq!(world.probe(pid(14)), Ok(None));
    assert_eq!(world.is_thread(pid(14)), Ok(true));
    assert_eq!(world.probe(pid(15)), Ok(None));
    assert_eq!(world.is_thread(pid(15)), Ok(false));
    let (listed, unreadable) = world.processes().unwrap();
    let listed: Vec<i32> = listed.iter().map(|process| process.pid.get()).collect();
    assert_eq!(listed, [10, 13]);
    assert_eq!(unreadable, [(pid(12), Absent::PermissionDenied)]);
}

#[test]
fn a_recorded_table_that_is_not_ours_has_no_processes() {
    let world = Recorded::initial().with(node(10));
    let mut view = world.view();
    view.is_proc_ours = Ok(false);
    let foreign = world.clone().with_view(view.clone());
    let expected = ProbeError::NotOurs {
        root: "/proc".into(),
    };
    assert_eq!(foreign.probe(pid(10)), Err(expected.clone()));
    assert_eq!(foreign.processes(), Err(expected));
    view.is_proc_ours = Err(Absent::PermissionDenied);
    assert!(world.clone().with_view(view).processes().is_err());
    let broken = world.with_table_error(ProbeError::Unsupported);
    assert_eq!(broken.probe(pid(10)), Err(ProbeError::Unsupported));
}

#[test]
fn a_recorded_process_is_still_itself_by_its_stamp_and_while_it_runs() {
    let world = Recorded::initial()
        .with(node(10))
        .with(node(11).zombie())
        .with(node(12).zombie_leader(2))
        .hidden(13);
    let stamp = StartStamp::LinuxTicks(8123);
    let other = StartStamp::LinuxTicks(8124);
    assert_eq!(world.is_still(pid(10), &stamp), Ok(Still::Running));
    assert_eq!(world.is_still(pid(10), &other), Ok(Still::Exited));
    assert!(
        world
            .is_still(pid(10), &StartStamp::Filetime(8123))
            .is_err()
    );
    assert_eq!(world.is_still(pid(11), &stamp), Ok(Still::Exited));
    assert_eq!(world.is_still(pid(12), &stamp), Ok(Still::Running));
    assert!(world.is_still(pid(13), &stamp).is_err());
    assert_eq!(world.is_still(pid(14), &stamp), Ok(Still::Exited));
    let watch = world.watch_exit(pid(10), &stamp);
    assert!(matches!(watch, Err(ProbeError::Unsupported)));
}

#[test]
fn a_recorded_process_whose_pid_was_reused_has_vanished() {
    let old = node(10).process;
    let new = RecordedProcess::new(10, 9999, BEGAN_AT_MS + 60_000);
    let world = Recorded::initial().with(new);
    assert_eq!(world.details(&old), Details::absent(Absent::Vanished));
    assert_eq!(world.environment(&old, &["HOME"]), Err(Absent::Vanished));
}

#[test]
fn recorded_holders_are_found_and_those_who_cannot_be_asked_are_named() {
    let file = FileId {
        device: 5,
        inode: 7,
    };
    let other = FileId {
        device: 5,
        inode: 8,
    };
    let lock = LockKind::Flock { is_exclusive: true };
    let world = Recorded::initial()
        .with(node(10).holds(other, Access::Read, vec![]).holds(
            file,
            Access::ReadWrite,
            vec![lock],
        ))
        .with(node(11).foreign())
        .with(node(12).zombie())
        .with(node(13).kernel_thread())
        .with_unreadable(14, Absent::PermissionDenied)
        .hidden(15);
    let all = world.holders(&[file], Among::All).unwrap();
    assert_eq!(all.found.len(), 1);
    let holder = all.of(file).next().unwrap();
    assert_eq!((holder.pid, holder.descriptor), (pid(10), 4));
    assert!(holder.access.is_writer());
    assert_eq!(holder.locks, [lock]);
    let refused = |number| (pid(number), Absent::PermissionDenied);
    assert_eq!(all.unreadable, [refused(11), refused(14)]);
    assert_eq!(all.of(other).count(), 0);
    let asked = [pid(10), pid(12), pid(15), pid(99)];
    let some = world.holders(&[file, other], Among::These(&asked)).unwrap();
    assert_eq!(some.found.len(), 2);
    assert_eq!(some.unreadable, [refused(15)]);
}

#[test]
fn open_files_of_a_record_have_the_recorded_paths() {
    let file = FileId {
        device: 1,
        inode: 2,
    };
    let path = std::path::Path::new("/w/logs/log");
    let process = node(10).holds_at(path, file, Access::Write, Vec::new());
    let table = Recorded::initial().with(process.clone());
    let open = OpenFile {
        path: path.to_owned(),
        file,
    };
    assert_eq!(table.open_files(&process.process), Ok(vec![open]));
    let holders = table.holders(&[file], Among::All).unwrap();
    assert_eq!(holders.found.len(), 1);
    let foreign = node(11).foreign();
    let table = Recorded::initial().with(foreign.clone());
    let opened = table.open_files(&foreign.process);
    assert_eq!(opened, Err(Absent::PermissionDenied));
}

#[test]
fn kernel_threads_and_zombies_of_a_record_have_reasons_for_absent_fields() {
    let zombie = node(10).zombie();
    assert!(zombie.process.is_exited);
    assert_eq!(zombie.details.exe, Err(Absent::Exited));
    assert_eq!(zombie.environment, Err(Absent::Exited));
    let kernel_thread = node(10).kernel_thread();
    assert_eq!(kernel_thread.details.argv, Err(Absent::KernelThread));
    assert_eq!(kernel_thread.process.rss_bytes, Err(Absent::KernelThread));
}

fn look(world: Recorded) -> ProcessTable {
    ProcessTable::look(Arc::new(world))
}

#[test]
fn ancestors_are_the_parents_in_order_and_end_at_a_reused_pid() {
    let process =
        |number, ppid, began_at_ms| RecordedProcess::new(number, 1, began_at_ms).ppid(ppid);
    let world = Recorded::initial()
        .with(process(1, 0, 0))
        .with(process(50, 1, 100))
        .with(process(40, 50, 200))
        .with(process(60, 40, 300));
    let table = look(world.clone());
    let parents = |table: &ProcessTable| -> Vec<i32> {
        let child = table.seen(pid(60)).unwrap();
        table
            .ancestors(child)
            .map(|parent| parent.pid.get())
            .collect()
    };
    assert_eq!(parents(&table), [40, 50, 1]);
    // PID 40 was handed out again after its child began.
    let reused = look(world.clone().with(process(40, 50, 301)));
    assert_eq!(parents(&reused), [0; 0]);
    // A loop, which no kernel makes, ends.
    let looped = look(
        world
            .with(process(50, 60, 100))
            .with(process(60, 40, 100))
            .with(process(40, 50, 100)),
    );
    assert!(parents(&looped).len() <= 64);
}

#[test]
fn nested_namespaces_are_noticed_by_the_inner_pids_of_any_process() {
    let world = Recorded::initial()
        .with(node(10))
        .with(node(11).kernel_thread());
    assert!(!look(world.clone()).has_nested_namespaces());
    let nested = world.with(node(12).inner_pids(&[1]));
    assert!(look(nested).has_nested_namespaces());
}

#[test]
fn a_look_lists_by_pid_and_reports_what_it_could_not_read() {
    let table = look(
        Recorded::initial()
            .with(node(30))
            .with(node(10))
            .with_unreadable(20, Absent::PermissionDenied),
    );
    let listed: Vec<i32> = table
        .processes()
        .unwrap()
        .iter()
        .map(|process| process.pid.get())
        .collect();
    assert_eq!(listed, [10, 30]);
    assert_eq!(table.unreadable(), [(pid(20), Absent::PermissionDenied)]);
    assert!(table.seen(pid(20)).is_none());
    assert!(table.seen(pid(30)).is_some());
    assert!(table.probe(pid(20)).is_err());
    assert_eq!(table.scope(), &table.backend().scope());
    assert_eq!(table.view(), &table.backend().view());
}

/// A table that counts how often details are read.
#[derive(Debug)]
struct Counting {
    world: Recorded,
    reads: AtomicUsize,
}

impl Backend for Counting {
    fn scope(&self) -> PidScope {
        self.world.scope()
    }
    fn view(&self) -> View {
        self.world.view()
    }
    fn processes(&self) -> Result<Listing, ProbeError> {
        self.world.processes()
    }
    fn probe(&self, pid: Pid) -> Result<Option<Process>, ProbeError> {
        self.world.probe(pid)
    }
    fn is_thread(&self, pid: Pid) -> Result<bool, ProbeError> {
        self.world.is_thread(pid)
    }
    fn details(&self, process: &Process) -> Details {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.world.details(process)
    }
    fn environment(&self, process: &Process, names: &[&str]) -> Field<Vec<(String, OsString)>> {
        self.world.environment(process, names)
    }
    fn holders(&self, files: &[FileId], among: Among<'_>) -> Result<Holders, ProbeError> {
        self.world.holders(files, among)
    }
    fn is_still(&self, pid: Pid, stamp: &StartStamp) -> Result<Still, ProbeError> {
        self.world.is_still(pid, stamp)
    }
    fn watch_exit(&self, pid: Pid, stamp: &StartStamp) -> Result<Option<ExitWatch>, ProbeError> {
        self.world.watch_exit(pid, stamp)
    }
}

#[test]
fn details_are_read_once_per_process() {
    let counting = Arc::new(Counting {
        world: Recorded::initial().with(node(10)),
        reads: AtomicUsize::new(0),
    });
    let table = ProcessTable::look(Arc::clone(&counting) as Arc<dyn Backend>);
    let process = table.seen(pid(10)).unwrap();
    let first = table.details(process);
    assert!(Arc::ptr_eq(&first, &table.details(process)));
    assert_eq!(counting.reads.load(Ordering::Relaxed), 1);
    // The same PID with another stamp is another process.
    let other = RecordedProcess::new(10, 9, 9).process;
    assert_eq!(*table.details(&other), Details::absent(Absent::Vanished));
    assert_eq!(counting.reads.load(Ordering::Relaxed), 2);
}
