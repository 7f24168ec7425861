//! Processes of other users, as an ordinary user sees them.

use whosup_process::{Backend as _, View};

use super::*;

const US: u32 = 1000;
const OTHER: u32 = 4711;
const ID: &str = "0a022b20-6f7a-4d8e-9d4e-52b2ad0c3d47";

/// What is left of these processes for a user with this home.
fn left(home: &Path, processes: Vec<RecordedProcess>) -> AgentProcesses {
    let processes = processes.into_iter();
    let recorded = processes.fold(Recorded::initial(), Recorded::with);
    let view = View {
        is_root: false,
        uid: Ok(US),
        ..Recorded::initial().view()
    };
    let machine = Machine::new(
        Environment::new(Some(home.to_owned()), None, []),
        0,
        ProcessTable::look(Arc::new(recorded.with_view(view))),
        Mounts::parse(b"27 1 254:0 / / rw - ext4 /dev/vda rw\n"),
        Arc::new(NoCommands),
    );
    let mut found = find_agent_processes(&machine, AGENTS, &mut Vec::new());
    leave_out_others(&machine, &[], &mut found);
    found
}

fn of_user(uid: u32, process: RecordedProcess, home: Option<&Path>) -> RecordedProcess {
    let mut process = process.uid(uid);
    match home {
        Some(home) => process.env(&[("HOME", home.to_str().unwrap())]),
        None => {
            process.environment = Err(Absent::PermissionDenied);
            process.details.cwd = Err(Absent::PermissionDenied);
            process
        }
    }
}

fn claude(pid: i32) -> RecordedProcess {
    process(pid, "claude", CLAUDE, &["claude"])
}

/// It may be claude, and no adapter recognizes it.
fn perhaps(pid: i32) -> RecordedProcess {
    process(pid, "claude", CLAUDE, &["other-name"])
}

#[test]
fn the_home_of_another_users_process_decides() {
    let directory = tempfile::tempdir().unwrap();
    let real = directory.path().canonicalize().unwrap();
    let (ours, link) = (real.join("us"), real.join("link"));
    std::fs::create_dir(&ours).unwrap();
    std::os::unix::fs::symlink(&ours, &link).unwrap();
    let theirs = real.join("other");
    let found = left(
        &ours,
        vec![
            of_user(US, claude(10), Some(&theirs)),
            of_user(0, claude(11), Some(&ours)),
            of_user(OTHER, claude(12), Some(&link)),
            of_user(OTHER, claude(13), Some(&real.join("third"))),
            // A home that a process of ours uses is ours.
            of_user(OTHER, claude(14), Some(&theirs)),
            of_user(0, perhaps(15), Some(&ours)),
            of_user(OTHER, perhaps(16), Some(&theirs)),
        ],
    );
    let pids: Vec<i32> = recognized(&found).iter().map(|one| one.0).collect();
    assert_eq!(pids, [10, 11, 12, 14]);
    assert_eq!(possible(&found), [(15, vec!["claude-code"])]);
}

/// Two hundred users with an agent each raise no doubt about our sessions.
#[test]
fn a_home_that_can_not_be_read_is_ours_only_if_something_connects_it() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    let resuming = process(12, "claude", CLAUDE, &["claude", "--resume", ID]);
    let found = left(
        home,
        vec![
            of_user(US, process(20, "bash", "/bin/bash", &["bash"]), None),
            of_user(0, process(21, "sudo", "/bin/sudo", &["sudo"]), None).ppid(20),
            of_user(0, claude(10), None).ppid(21),
            of_user(OTHER, claude(11), None),
            of_user(OTHER, resuming, None),
            of_user(0, claude(13), None),
        ],
    );
    assert_eq!(recognized(&found), [(10, "claude-code")]);
    assert_eq!(found.recognized[0].homes, <[PathBuf; 0]>::default());
    let named: Vec<_> = found.named_by_others.iter().collect();
    let [((agent, session), pid)] = named.as_slice() else {
        panic!("{named:?}");
    };
    assert_eq!(
        (agent.as_str(), session.as_str(), pid.get()),
        ("claude-code", ID, 12)
    );
}

#[test]
fn the_owner_of_a_home_may_use_it() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap().join(".claude");
    std::fs::create_dir(&root).unwrap();
    let owner = whosup_sidecar::file::owner_of(&root).unwrap();
    assert_ne!(owner, US, "a test of another user");
    let found = left(
        directory.path(),
        vec![
            of_user(owner, claude(10), None),
            of_user(OTHER, claude(11), None),
        ],
    );
    assert_eq!(recognized(&found), [(10, "claude-code")]);
    assert_eq!(found.recognized[0].homes, [root]);
}
