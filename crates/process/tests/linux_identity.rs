//! Names, threads, kernel threads and stamps of real processes.
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
#![cfg(target_os = "linux")]

mod world;

use std::time::Duration;

use whosup_process::linux::Proc;
use whosup_process::{
    Absent, Among, AtPid, Backend, ExitWatch, FileId, Pid, ProbeError, RunState, StartStamp, Still,
};
use world::{Running, pid, process, skip, wait_until};

/// A root that is the kernel's table and does not look like it: no pidfd is used.
fn table_without_pidfd() -> Proc {
    Proc::at("/proc/../proc".into())
}

#[track_caller]
fn check_comm(shell_text: &str, expected: &[u8]) {
    let script = format!("printf '{shell_text}' > /proc/self/comm; echo ready; read line");
    let named = Running::shell(&script, &[]);
    let process = named.process();
    assert_eq!(process.comm, expected);
    assert_eq!(process.pid, named.pid());
    assert_eq!(process.ppid, Some(Pid::own()));
    assert!(!process.is_exited);
    assert_eq!(process.threads, 1);
    let (listed, _) = Proc::system().processes().unwrap();
    let listed = listed.iter().find(|listed| listed.pid == named.pid());
    assert_eq!(listed.unwrap().stamp, process.stamp);
}

#[test]
fn a_name_may_hold_spaces_parentheses_newlines_and_bytes_that_are_not_utf8() {
    check_comm("tmux: server", b"tmux: server");
    check_comm("a) S 1 (b", b"a) S 1 (b");
    check_comm(") R 1 1 1 1", b") R 1 1 1 1");
    check_comm("two\\nlines)", b"two\nlines)");
    check_comm("\\377\\376(", b"\xFF\xFE(");
    check_comm("((((", b"((((");
}

#[test]
fn our_own_process_is_seen_with_its_parent_its_group_and_its_date() {
    let own = process(Pid::own());
    assert_eq!(own.ppid.map(Pid::get), Some(parent_id()));
    assert!(own.threads >= 2, "the test runs in a thread of its own");
    assert!(!own.is_kernel_thread);
    assert!(own.rss_bytes.clone().unwrap() > 100_000);
    wait_until("the kernel has counted a tick of it", || {
        // Looking is work, too.
        process(Pid::own()).cpu_ms.unwrap() > own.cpu_ms.clone().unwrap()
    });
    assert_eq!(
        own.process_group,
        rustix::process::getpgrp().as_raw_nonzero().get()
    );
    let age_ms = now_ms() - own.began_at_ms.clone().unwrap();
    assert!((-100..120_000).contains(&age_ms), "{age_ms} ms");
}

fn parent_id() -> i32 {
    i32::try_from(std::os::unix::process::parent_id()).unwrap()
}

fn now_ms() -> i64 {
    let now = std::time::SystemTime::now();
    let since = now.duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

#[test]
fn a_new_process_began_between_the_moments_before_and_after_its_start() {
    let before_ms = now_ms();
    let sleeper = Running::sleeper();
    let after_ms = now_ms();
    let began_at_ms = sleeper.process().began_at_ms.unwrap();
    // The kernel counts in ticks of 10 ms and more, and rounds down.
    let span = (before_ms - 30)..=(after_ms + 30);
    assert!(span.contains(&began_at_ms), "{began_at_ms} not in {span:?}");
}

#[test]
fn the_id_of_a_thread_names_no_process() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let running = std::thread::spawn(move || {
        sender
            .send(std::fs::read_link("/proc/thread-self").unwrap())
            .unwrap();
        let _ = ended.recv();
    });
    let link = receiver.recv().unwrap();
    let thread = pid(link.file_name().unwrap().to_str().unwrap().parse().unwrap());
    assert_ne!(thread, Pid::own());
    for table in [Proc::system(), table_without_pidfd()] {
        assert_eq!(table.probe(thread), Ok(None));
        assert_eq!(table.is_thread(thread), Ok(true));
        assert_eq!(table.is_thread(Pid::own()), Ok(false));
        assert_eq!(table.at_pid(thread), Ok(AtPid::Thread));
        let own = table.at_pid(Pid::own());
        assert!(matches!(own, Ok(AtPid::Process(own)) if own.pid == Pid::own()));
        let own_stamp = process(Pid::own()).stamp;
        assert_eq!(table.is_still(thread, &own_stamp), Ok(Still::Exited));
        let (listed, _) = table.processes().unwrap();
        assert!(listed.iter().all(|process| process.pid != thread));
    }
    let stamp = process(Pid::own()).stamp;
    assert!(matches!(
        Proc::system().watch_exit(thread, &stamp),
        Ok(None)
    ));
    let own_files = FileId {
        device: 0,
        inode: 0,
    };
    let holders = Proc::system().holders(&[own_files], Among::These(&[thread]));
    assert_eq!(holders.unwrap().unreadable, []);
    drop(end);
    running.join().unwrap();
}

#[test]
fn a_kernel_thread_is_recognized_by_its_flag_and_has_no_arguments() {
    let table = Proc::system();
    let kernel_threads: Vec<_> = match table.probe(pid(2)) {
        Ok(Some(second)) if second.comm == b"kthreadd" => vec![second],
        _ => return skip("PID 2 is not kthreadd in this PID namespace"),
    };
    let kernel_thread = &kernel_threads[0];
    assert!(kernel_thread.is_kernel_thread);
    assert_eq!(kernel_thread.rss_bytes, Err(Absent::KernelThread));
    let details = table.details(kernel_thread);
    assert_eq!(details.argv, Err(Absent::KernelThread));
    assert_eq!(details.title, Err(Absent::KernelThread));
    assert_eq!(details.exe, Err(Absent::KernelThread));
    assert_eq!(details.cwd, Err(Absent::KernelThread));
    assert_eq!(details.uid, Ok(0));
    assert_eq!(
        table.environment(kernel_thread, &["PATH"]),
        Err(Absent::KernelThread)
    );
}

#[test]
fn only_what_the_kernel_runs_for_itself_is_left_out_of_the_list() {
    let table = Proc::system();
    let mut sleeper = Running::sleeper();
    let shown: Vec<_> = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok())
        .map(pid)
        .collect();
    let (listed, _) = table.processes().unwrap();
    let is_listed = |pid| listed.iter().any(|process| process.pid == pid);
    assert!(is_listed(sleeper.pid()) && is_listed(Pid::own()));
    let left_out: Vec<_> = shown.into_iter().filter(|pid| !is_listed(*pid)).collect();
    let began = |process: &whosup_process::Process| process.began_at_ms.clone().unwrap();
    for pid in &left_out {
        let now = table.probe(*pid).unwrap();
        // Others begin and end meanwhile.
        let is_of_kernel = now.as_ref().is_none_or(|process| {
            process.is_kernel_thread || began(process) > began(&sleeper.process())
        });
        assert!(is_of_kernel, "{now:?}");
    }
    sleeper.end();
    if std::path::Path::new("/proc/2/task/2/children").exists()
        && matches!(table.probe(pid(2)), Ok(Some(second)) if second.comm == b"kthreadd")
    {
        assert!(!left_out.is_empty());
    } else {
        skip("that threads of the kernel are left out: PID 2 is not kthreadd, or has no list");
    }
}

#[test]
fn a_free_pid_is_no_process_and_no_error() {
    // Another process may get the PID of an exited process at any time.
    for table in [Proc::system(), table_without_pidfd()] {
        wait_until("a number stays free for as long as it is looked at", || {
            let mut sleeper = Running::sleeper();
            let gone = sleeper.pid();
            sleeper.end();
            let answers = (table.probe(gone), table.is_thread(gone), table.at_pid(gone));
            answers == (Ok(None), Ok(false), Ok(AtPid::Nothing))
        });
    }
}

#[test]
fn an_exited_process_stays_exited_when_its_pid_is_reused() {
    let mut sleeper = Running::sleeper();
    let gone = sleeper.process();
    sleeper.end();
    for table in [Proc::system(), table_without_pidfd()] {
        assert_eq!(table.is_still(gone.pid, &gone.stamp), Ok(Still::Exited));
        assert_eq!(table.probe(pid(i64::from(i32::MAX))), Ok(None));
        let details = table.details(&gone);
        assert_eq!(details.argv, Err(Absent::Vanished));
        assert_eq!(details.uid, Err(Absent::Vanished));
        let environment = table.environment(&gone, &["PATH"]);
        assert_eq!(environment, Err(Absent::Vanished));
    }
    let watch = Proc::system().watch_exit(gone.pid, &gone.stamp);
    assert!(matches!(watch, Ok(None)));
}

#[test]
fn a_process_is_still_itself_until_it_exits_reaped_or_not() {
    let mut sleeper = Running::sleeper();
    let process = sleeper.process();
    let (pid, stamp) = (process.pid, &process.stamp);
    let tables = [Proc::system(), table_without_pidfd()];
    for table in &tables {
        assert_eq!(table.is_still(pid, stamp), Ok(Still::Running));
    }
    sleeper.kill();
    for table in &tables {
        wait_until("the zombie is seen", || {
            table.is_still(pid, stamp) == Ok(Still::Exited)
        });
    }
    sleeper.reap();
    for table in &tables {
        assert_eq!(table.is_still(pid, stamp), Ok(Still::Exited));
    }
}

#[test]
fn another_stamp_is_another_process_and_another_kind_cannot_be_compared() {
    let sleeper = Running::sleeper();
    let process = sleeper.process();
    let StartStamp::LinuxTicks(ticks) = process.stamp else {
        panic!("{:?} is no stamp of Linux", process.stamp);
    };
    for table in [Proc::system(), table_without_pidfd()] {
        let other = StartStamp::LinuxTicks(ticks - 1);
        assert_eq!(table.is_still(process.pid, &other), Ok(Still::Exited));
        let foreign = StartStamp::Filetime(ticks);
        let compared = table.is_still(process.pid, &foreign);
        assert!(matches!(
            compared,
            Err(ProbeError::Process {
                reason: Absent::Unsupported,
                ..
            })
        ));
    }
    let other = StartStamp::LinuxTicks(ticks + 1);
    let watch = Proc::system().watch_exit(process.pid, &other);
    assert!(matches!(watch, Ok(None)));
}

fn watch(running: &Running) -> ExitWatch {
    let process = running.process();
    let watch = Proc::system().watch_exit(process.pid, &process.stamp);
    watch.unwrap().expect("it runs")
}

#[test]
fn an_exit_watch_waits_for_the_exit_and_no_longer() {
    let mut sleeper = Running::sleeper();
    let watch = watch(&sleeper);
    assert_eq!(watch.pid(), sleeper.pid());
    assert_eq!(watch.wait(Some(Duration::ZERO)), Ok(false));
    assert_eq!(watch.wait(Some(Duration::from_millis(20))), Ok(false));
    sleeper.close_stdin();
    assert_eq!(watch.wait(None), Ok(true));
    sleeper.reap();
    assert_eq!(watch.wait(Some(Duration::ZERO)), Ok(true));
}

#[test]
fn a_stopped_process_has_not_exited() {
    let sleeper = Running::sleeper();
    let watch = watch(&sleeper);
    let raw = rustix::process::Pid::from_raw(sleeper.pid().get()).unwrap();
    rustix::process::kill_process(raw, rustix::process::Signal::STOP).unwrap();
    wait_until("it is stopped", || {
        sleeper.process().run_state == RunState::Stopped
    });
    let process = sleeper.process();
    assert!(!process.is_exited);
    let still = Proc::system().is_still(process.pid, &process.stamp);
    assert_eq!(still, Ok(Still::Running));
    assert_eq!(watch.wait(Some(Duration::ZERO)), Ok(false));
}

#[test]
fn a_table_elsewhere_gives_no_exit_watch() {
    let sleeper = Running::sleeper();
    let process = sleeper.process();
    let watch = table_without_pidfd().watch_exit(process.pid, &process.stamp);
    assert!(matches!(watch, Err(ProbeError::Unsupported)));
}

/// The program of a process stayed the one before execve(2) (sysinfo#840).
#[test]
fn a_program_that_execs_another_keeps_its_stamp_and_shows_the_new_program() {
    let mut shell = Running::shell("echo ready; read line; exec sleep 1000", &[]);
    let before = shell.process();
    shell.send_line("go");
    wait_until("it sleeps", || shell.process().comm == b"sleep");
    let after = shell.process();
    assert_eq!(after.stamp, before.stamp);
    wait_until("its arguments are there", || {
        let argv = Proc::system().details(&before).argv;
        argv.is_ok_and(|argv| argv == ["sleep", "1000"])
    });
}

#[test]
fn running_out_of_descriptors_is_no_fact_about_a_process() {
    const TEST: &str = "running_out_of_descriptors_is_no_fact_about_a_process";
    if world::part().is_none() {
        return world::require_pass(&mut world::again_here(&[], TEST, "exhausted"));
    }
    let sleeper = Running::sleeper();
    let process = sleeper.process();
    let table = Proc::system();
    let mut taken = Vec::new();
    let mut limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current = Some(64);
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).unwrap();
    while let Ok(file) = std::fs::File::open("/dev/null") {
        taken.push(file);
    }
    // Every number of free descriptors, from none to enough for all.
    for _ in 0..6 {
        let still = table.is_still(process.pid, &process.stamp);
        assert!(matches!(still, Ok(Still::Running) | Err(_)), "{still:?}");
        let probe = table.probe(process.pid);
        assert!(matches!(probe, Ok(Some(_)) | Err(_)), "{probe:?}");
        let watch = table.watch_exit(process.pid, &process.stamp);
        assert!(matches!(watch, Ok(Some(_)) | Err(_)), "{watch:?}");
        let details = table.details(&process);
        assert!(!matches!(
            details.argv,
            Err(Absent::Vanished | Absent::Exited)
        ));
        drop(watch);
        taken.pop();
    }
    let still = table.is_still(process.pid, &process.stamp);
    assert_eq!(still, Ok(Still::Running));
}
