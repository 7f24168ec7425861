use std::path::PathBuf;
use std::sync::Arc;

use whosup_process::{ProbeError, ProcessTable, Recorded, RecordedProcess};
use whosup_sidecar::{AgentId, SessionId};

use super::*;
use crate::machine::Environment;
use crate::machine::command::SystemCommands;
use crate::machine::mounts::Mounts;

const T: i64 = 1_795_800_000_000;
const MB: u64 = 1_000_000;

fn process(pid: i32, ppid: i32, cpu_ms: u64) -> RecordedProcess {
    let began_at_ms = T + i64::from(pid);
    let process = RecordedProcess::new(pid, 1_000, began_at_ms).ppid(ppid);
    process.cpu_ms(cpu_ms).rss_bytes(MB)
}

fn key(session: &str) -> SessionKey {
    SessionKey {
        agent: AgentId::parse("codex").unwrap(),
        session: SessionId::parse(session).unwrap(),
        home: PathBuf::from("/h").into(),
    }
}

fn metered(session: &str, pid: i32) -> Metered {
    let process = process(pid, 1, 0).process;
    Metered {
        key: key(session),
        pid: process.pid,
        stamp: process.stamp,
        is_shared: false,
    }
}

fn machine(table: Recorded, at_ms: i64) -> Machine {
    let table = ProcessTable::look(Arc::new(table));
    let mounts = Mounts::parse(b"27 1 254:0 / / rw - ext4 /dev/vda rw\n");
    let environment = Environment::new(None, None, []);
    Machine::new(
        environment,
        T + at_ms,
        table,
        mounts,
        Arc::new(SystemCommands),
    )
}

fn sample(at_ms: i64, processes: impl IntoIterator<Item = RecordedProcess>) -> Sample {
    let table = processes
        .into_iter()
        .fold(Recorded::initial(), Recorded::with);
    Sample::take(&machine(table, at_ms), &[], Detail::Table).unwrap()
}

/// Processes, percent, milliseconds and megabytes of a tree.
#[track_caller]
fn check_tree(resources: &Resources, expected: (usize, Option<f64>, u64, u64)) {
    let tree = resources.tree.unwrap();
    let found = (
        tree.processes,
        tree.cpu_percent,
        u64::try_from(tree.cpu.unwrap().as_millis()).unwrap(),
        tree.rss_bytes.unwrap() / MB,
    );
    assert_eq!(found, expected);
}

#[test]
fn processor_time_between_two_looks_is_a_percentage_and_in_one_look_none() {
    let before = sample(10_000, [process(10, 1, 500), process(11, 10, 100)]);
    let now = sample(12_000, [process(10, 1, 1_500), process(11, 10, 3_100)]);
    let sessions = [metered("a", 10)];
    let first = &used(None, &before, &sessions)[&key("a")];
    check_tree(first, (2, None, 600, 2));
    assert_eq!(first.owner.cpu_percent, None);
    let second = &used(Some(&before), &now, &sessions)[&key("a")];
    assert_eq!(second.owner.cpu_percent, Some(50.0));
    check_tree(second, (2, Some(200.0), 4_600, 2));
}

#[test]
fn a_process_that_began_since_counts_whole_and_one_with_a_reused_pid_too() {
    let reused = RecordedProcess::new(11, 999, T + 11)
        .ppid(10)
        .cpu_ms(90_000);
    let before = sample(10_000, [process(10, 1, 0), reused]);
    let now = sample(
        11_000,
        [
            process(10, 1, 0),
            process(11, 10, 100),
            process(12, 11, 200),
        ],
    );
    let resources = &used(Some(&before), &now, &[metered("a", 10)])[&key("a")];
    check_tree(resources, (3, Some(30.0), 300, 3));
}

#[test]
fn a_process_counts_for_the_nearest_owner_only() {
    let processes = || [(10, 1), (11, 10), (12, 11), (13, 12), (14, 10)];
    let now = sample(0, processes().map(|(pid, ppid)| process(pid, ppid, 1)));
    let found = used(None, &now, &[metered("outer", 10), metered("inner", 12)]);
    check_tree(&found[&key("outer")], (3, None, 3, 3));
    check_tree(&found[&key("inner")], (2, None, 2, 2));
}

#[test]
fn what_a_shared_daemon_uses_belongs_to_none_of_its_sessions() {
    let now = sample(0, [process(10, 1, 7), process(11, 10, 1)]);
    let declared = Metered {
        is_shared: true,
        ..metered("a", 10)
    };
    for sessions in [vec![declared], vec![metered("a", 10), metered("b", 10)]] {
        for resources in used(None, &now, &sessions).values() {
            assert!(resources.is_shared);
            assert_eq!(resources.tree, None);
            assert_eq!(resources.owner.cpu, Some(Duration::from_millis(7)));
        }
    }
}

#[test]
fn what_cannot_be_read_is_none_and_never_zero() {
    let mut unreadable = process(11, 10, 5);
    unreadable.process.rss_bytes = Err(Absent::PermissionDenied);
    unreadable.process.cpu_ms = Err(Absent::PermissionDenied);
    let before = Recorded::initial().with(process(10, 1, 0));
    let before = before.with_unreadable(12, Absent::PermissionDenied);
    let before = Sample::take(&machine(before, 0), &[], Detail::Table).unwrap();
    let now = sample(1_000, [process(10, 1, 100), unreadable]);
    let tree = used(Some(&before), &now, &[metered("a", 10)])[&key("a")]
        .tree
        .unwrap();
    assert_eq!(
        (tree.cpu_percent, tree.cpu, tree.rss_bytes),
        (None, None, None)
    );
    // What it used before is not known.
    let now = sample(1_000, [process(10, 1, 100), process(12, 10, 9_000)]);
    let tree = used(Some(&before), &now, &[metered("a", 10)])[&key("a")]
        .tree
        .unwrap();
    assert_eq!(tree.cpu_percent, None);
    assert_eq!(tree.cpu, Some(Duration::from_millis(9_100)));
    // A process that was not reaped has no memory, which is known.
    let now = sample(1_000, [process(10, 1, 100), process(13, 10, 10).zombie()]);
    let resources = &used(Some(&before), &now, &[metered("a", 10)])[&key("a")];
    check_tree(resources, (2, Some(11.0), 110, 1));
}

#[test]
fn a_session_whose_process_is_gone_or_another_one_has_no_numbers() {
    let now = sample(0, [process(10, 1, 7), process(11, 1, 1).zombie()]);
    let reused = Metered {
        stamp: StartStamp::LinuxTicks(5),
        ..metered("a", 10)
    };
    assert!(used(None, &now, &[reused, metered("b", 11), metered("c", 12)]).is_empty());
    let broken = Recorded::initial().with_table_error(ProbeError::Unsupported);
    let mut meter = Meter::default();
    let found = meter.measure(&machine(broken, 0), &[metered("a", 10)], Detail::Owners);
    assert!(found.is_empty());
}

#[test]
fn a_clock_that_stands_still_or_runs_backwards_gives_no_percentage() {
    let before = sample(10_000, [process(10, 1, 500)]);
    for at_ms in [10_000, 9_000] {
        let now = sample(at_ms, [process(10, 1, 600)]);
        let resources = &used(Some(&before), &now, &[metered("a", 10)])[&key("a")];
        check_tree(resources, (1, None, 600, 1));
    }
}

#[test]
fn parents_that_are_younger_or_in_a_ring_do_no_harm() {
    // Process 20 got the PID of the parent that 11 had.
    let now = sample(0, [process(20, 1, 1), process(11, 20, 1)]);
    check_tree(
        &used(None, &now, &[metered("a", 20)])[&key("a")],
        (1, None, 1, 1),
    );
    let at_once = |pid, ppid| RecordedProcess::new(pid, 1_000, T).ppid(ppid);
    let ring = sample(0, [at_once(10, 11), at_once(11, 10)]);
    let tree = used(None, &ring, &[metered("a", 11)])[&key("a")].tree;
    assert_eq!(tree.unwrap().processes, 2);
}
