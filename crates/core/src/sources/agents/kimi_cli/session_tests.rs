//! Cases that no fixture can hold: the creation date of a directory is always now.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use whosup_process::{ProcessTable, Recorded, RecordedProcess};

use super::super::KimiCli;
use super::super::work_dir::folder_of;
use crate::adapter::phase::Phase;
use crate::adapter::{Adapter, AgentProcess, AgentScan, Depth, Home, Look, Program, Unclaimed};
use crate::machine::command::SystemCommands;
use crate::machine::mounts::Mounts;
use crate::machine::problem::Found;
use crate::machine::{Environment, Machine};

const WORK_DIR: &str = "/home/dev/app";

struct World {
    home: Home,
    machine: Machine,
    processes: Vec<AgentProcess>,
    _directory: tempfile::TempDir,
}

/// A home and processes that began so many milliseconds ago. The machine is looked at
/// a minute from now, because the tests create the sessions after this call.
fn world(ages_ms: &[i64]) -> World {
    let directory = tempfile::tempdir().expect("a directory");
    let now_ms = now_ms();
    let looked_at_ms = now_ms + 60_000;
    let mut recorded = Recorded::initial();
    for (at, age_ms) in (0_i32..).zip(ages_ms) {
        let process = RecordedProcess::new(100 + at, 1, now_ms - age_ms)
            .exe("/usr/bin/python3.13")
            .title("Kimi Code")
            .cwd(WORK_DIR);
        recorded = recorded.with(process);
    }
    let machine = Machine::new(
        Environment::default(),
        looked_at_ms,
        ProcessTable::look(Arc::new(recorded)),
        Mounts::default(),
        Arc::new(SystemCommands),
    );
    let listed = machine.table().processes().expect("a table").to_vec();
    let processes = listed
        .into_iter()
        .map(|process| {
            let details = machine.table().details(&process);
            let role = KimiCli.profile().programs.recognize(&Program {
                process: &process,
                details: &details,
            });
            AgentProcess {
                agent: super::AGENT,
                adapter: &KimiCli,
                role: role.expect("a kimi-cli process"),
                process,
                details,
                homes: Vec::new(),
                launched_in: crate::adapter::LaunchedIn::There,
            }
        })
        .collect();
    World {
        home: Home {
            root: directory.path().to_owned().into(),
            is_default: true,
            owner_uid: None,
        },
        machine,
        processes,
        _directory: directory,
    }
}

fn now_ms() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("a clock");
    i64::try_from(since.as_millis()).expect("a date")
}

impl World {
    fn session_in(&self, folder: &str, id: &str) -> PathBuf {
        let path = self.home.root.join("sessions").join(folder).join(id);
        std::fs::create_dir_all(&path).expect("a directory");
        std::fs::write(path.join("context.jsonl"), "").expect("a file");
        path
    }

    fn session(&self, id: &str) -> PathBuf {
        self.session_in(&folder_of(WORK_DIR.as_ref()).expect("a folder"), id)
    }

    fn scan(&self, depth: &Depth) -> Found<AgentScan> {
        let look = Look {
            machine: &self.machine,
            depth,
            processes: &self.processes,
        };
        KimiCli.scan(&look, &self.home)
    }
}

#[test]
fn a_session_without_a_prompt_is_born_with_its_directory() {
    let world = world(&[5_000]);
    let before_ms = now_ms();
    let path = world.session("s-1");
    if std::fs::metadata(&path)
        .and_then(|metadata| metadata.created())
        .is_err()
    {
        eprintln!("skipped: this file system does not remember when a directory was made");
        return;
    }
    let found = world.scan(&Depth::Live);
    assert_eq!(found.problems, []);
    let [sketch] = found.found.sketches.as_slice() else {
        panic!("one sketch, not {:?}", found.found.sketches);
    };
    let born = sketch.born_at_ms.expect("a date");
    assert!(
        (before_ms - 1_000..=now_ms() + 1_000).contains(&born),
        "{born}"
    );
    assert_eq!(sketch.last_record_at_ms, None);
    assert_eq!(sketch.unclaimed, Unclaimed::Owner);
    assert_eq!(sketch.work_dir, Some(PathBuf::from(WORK_DIR)));
    let described = KimiCli.describe(sketch);
    assert_eq!(described.problems, []);
    assert_eq!(described.found.phase, Some(Phase::Idle));
}

#[test]
fn a_directory_that_was_copied_is_as_old_as_what_is_in_it() {
    let world = world(&[5_000]);
    let path = world.session("s-1");
    let record =
        r#"{"timestamp":1795813161.5,"message":{"type":"TurnBegin","payload":{"user_input":"x"}}}"#;
    std::fs::write(path.join("wire.jsonl"), record).expect("a file");
    let found = world.scan(&Depth::All);
    let sketch = found.found.sketches.first().expect("a sketch");
    assert_eq!(
        sketch.born_at_ms.map(|born| born.min(1_795_813_161_500)),
        sketch.born_at_ms
    );
    assert_eq!(sketch.last_record_at_ms, Some(1_795_813_161_500));
}

#[test]
fn a_transcript_that_is_a_fifo_is_a_problem_and_no_wait() {
    let world = world(&[5_000]);
    let path = world.session("s-1").join("wire.jsonl");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0)
        .expect("a FIFO");
    let found = world.scan(&Depth::All);
    let texts: Vec<_> = found
        .problems
        .iter()
        .map(|problem| &problem.message)
        .collect();
    assert_eq!(texts, ["it is a FIFO"]);
    assert_eq!(found.found.sketches.len(), 1);
}

#[test]
fn only_a_session_that_has_no_transcript_is_described_as_untouched() {
    let world = world(&[]);
    world.session("empty");
    let odd = world.session("odd");
    std::fs::create_dir(odd.join("wire.jsonl")).expect("a directory");
    let sketches = world.scan(&Depth::All).found.sketches;
    let described = |id: &str| {
        let mut sketches = sketches.iter();
        let mut sketch = sketches
            .find(|sketch| sketch.key.session.as_str() == id)
            .expect("it")
            .clone();
        sketch.work_dir = Some(WORK_DIR.into());
        KimiCli.describe(&sketch)
    };
    let empty = described("empty");
    assert_eq!(empty.found.phase, Some(Phase::Idle));
    assert_eq!(empty.problems, []);
    let odd = described("odd");
    assert_eq!((odd.found.phase, odd.problems.len()), (None, 1), "{odd:?}");
}

fn write_sidecar(session: &Path, pid: i32) {
    let id = session.file_name().expect("a name").to_string_lossy();
    let text = format!(
        r#"{{"schema_version":1,"pid":{pid},"session_id":"{id}","work_dir":"/home/dev/elsewhere","hostname":"devbox","started_at":1795813161.5}}"#
    );
    std::fs::write(session.join("runtime.json"), text).expect("a file");
}

fn claimed(found: &Found<AgentScan>) -> Vec<&str> {
    let claims = found.found.claims.iter();
    claims.map(|claim| claim.key.session.as_str()).collect()
}

#[test]
fn a_process_without_a_session_in_its_directory_is_looked_for_elsewhere() {
    let world = world(&[5_000]);
    let elsewhere = folder_of("/home/dev/elsewhere".as_ref()).expect("a folder");
    for (id, pid) in [("s-1", 100), ("s-2", 999)] {
        write_sidecar(&world.session_in(&elsewhere, id), pid);
    }
    assert_eq!(claimed(&world.scan(&Depth::Live)), ["s-1"]);
    assert_eq!(world.scan(&Depth::All).found.claims.len(), 2);
}

/// A process that resumes an old session does not change its folder.
#[test]
fn in_a_folder_from_before_the_process_only_what_the_log_names_is_looked_at() {
    let world = world(&[5_000]);
    let elsewhere = folder_of("/home/dev/elsewhere".as_ref()).expect("a folder");
    for id in ["s-1", "s-2"] {
        write_sidecar(&world.session_in(&elsewhere, id), 100);
    }
    let folder = world.home.root.join("sessions").join(&elsewhere);
    let old = SystemTime::now() - Duration::from_secs(100 * 3600);
    std::fs::File::open(&folder)
        .and_then(|folder| folder.set_modified(old))
        .expect("a date");
    // Without a log, each session may have been resumed.
    assert_eq!(claimed(&world.scan(&Depth::Live)), ["s-1", "s-2"]);
    let log =
        "2026-11-27 22:59:58.924 | INFO     | kimi_cli.cli:_run:571 |  - Resuming session: s-2\n";
    std::fs::create_dir(world.home.root.join("logs")).expect("a directory");
    std::fs::write(world.home.root.join("logs/kimi.log"), log).expect("a log");
    assert_eq!(claimed(&world.scan(&Depth::Live)), ["s-2"]);
    assert_eq!(world.scan(&Depth::All).found.claims.len(), 2);
}

#[test]
fn the_live_depth_leaves_out_what_no_process_may_serve() {
    let world = world(&[5_000]);
    let path = world.session("s-old");
    let record =
        r#"{"timestamp":1000000.5,"message":{"type":"TurnBegin","payload":{"user_input":"x"}}}"#;
    std::fs::write(path.join("wire.jsonl"), record).expect("a file");
    assert_eq!(world.scan(&Depth::Live).found.sketches, []);
    assert_eq!(world.scan(&Depth::All).found.sketches.len(), 1);
}
