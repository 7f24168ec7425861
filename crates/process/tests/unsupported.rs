//! A platform without a backend: it can't look, and never reports an empty table.
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::sync::Arc;

use whosup_process::unsupported::Unsupported;
use whosup_process::{
    Absent, Among, Backend, Details, FileId, Pid, ProbeError, ProcessTable, RecordedProcess,
    StartStamp,
};

#[test]
fn every_question_is_answered_with_cannot_look() {
    let pid = Pid::own();
    let stamp = StartStamp::LinuxTicks(1);
    let cannot = ProbeError::Unsupported;
    assert_eq!(Unsupported.processes(), Err(cannot.clone()));
    assert_eq!(Unsupported.probe(pid), Err(cannot.clone()));
    assert_eq!(Unsupported.is_thread(pid), Err(cannot.clone()));
    assert_eq!(Unsupported.is_still(pid, &stamp), Err(cannot.clone()));
    let watch = Unsupported.watch_exit(pid, &stamp);
    assert_eq!(watch.map(|_| ()), Err(cannot.clone()));
    let file = FileId {
        device: 1,
        inode: 1,
    };
    let holders = Unsupported.holders(&[file], Among::All);
    assert_eq!(holders, Err(cannot));
    let process = RecordedProcess::new(4711, 1, 0).process;
    let details = Unsupported.details(&process);
    assert_eq!(details, Details::absent(Absent::Unsupported));
    let environment = Unsupported.environment(&process, &["HOME"]);
    assert_eq!(environment, Err(Absent::Unsupported));
}

#[test]
fn nothing_is_known_of_scope_and_view() {
    let scope = Unsupported.scope();
    assert_eq!(scope.host, Err(Absent::Unsupported));
    assert_eq!(scope.boot, Err(Absent::Unsupported));
    assert_eq!(scope.pid_namespace, Err(Absent::Unsupported));
    let view = Unsupported.view();
    assert_eq!(view.is_proc_ours, Err(Absent::Unsupported));
    assert_eq!(view.is_everything_shown, Err(Absent::Unsupported));
    assert_eq!(view.is_initial_pid_namespace, Err(Absent::Unsupported));
    assert_eq!(view.uid, Err(Absent::Unsupported));
    assert!(!view.is_root);
}

#[test]
fn a_look_at_it_keeps_the_error_for_every_later_question() {
    let table = ProcessTable::look(Arc::new(Unsupported));
    assert_eq!(table.processes(), Err(ProbeError::Unsupported));
    assert_eq!(table.probe(Pid::own()), Err(ProbeError::Unsupported));
    assert_eq!(table.seen(Pid::own()), None);
    assert!(table.unreadable().is_empty());
    assert!(!table.has_nested_namespaces());
}
