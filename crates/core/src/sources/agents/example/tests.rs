//! Looks at a made-up home.
//!
//! The tests of a real agent are fixtures: whole worlds with their answers.

#![allow(clippy::disallowed_methods, reason = "tests make their own files")]

use std::fs;
use std::sync::Arc;

use whosup_process::{ProcessTable, Recorded};

use super::*;
use crate::adapter::Depth;
use crate::machine::command::NoCommands;
use crate::machine::mounts::Mounts;
use crate::machine::{Environment, Machine};
use crate::sources::agents::kit::program_tests::check_commands;

const TRANSCRIPT: &str = r#"{"role":"user","at":"2026-11-27T20:41:00Z","text":"fix\nit"}
{"role":"assistant","at":"2026-11-27T20:42:00Z","text":"Done.","model":"m-1"}
"#;

fn machine() -> Machine {
    let table = ProcessTable::look(Arc::new(Recorded::initial()));
    let mounts = Mounts::parse(b"27 1 254:0 / / rw - ext4 /dev/vda rw\n");
    Machine::new(
        Environment::default(),
        0,
        table,
        mounts,
        Arc::new(NoCommands),
    )
}

#[test]
fn a_home_has_claims_sketches_and_problems() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let entry = r#"{"pid":4711,"session":"s-1","at":"2026-11-27T20:40:00Z"}"#;
    write("running/4711.json", entry);
    write("running/4712.json", r#"{"pid":"4712","session":"s-2"}"#);
    write("sessions/s-1.jsonl", TRANSCRIPT);
    write("sessions/s-9.jsonl", TRANSCRIPT);
    let home = Home {
        root: directory.path().into(),
        is_default: true,
        owner_uid: None,
    };
    let machine = machine();
    for (depth, right) in [(Depth::Live, &["s-1"][..]), (Depth::All, &["s-1", "s-9"])] {
        let look = Look {
            machine: &machine,
            depth: &depth,
            processes: &[],
        };
        let Found { found, problems } = Example.scan(&look, &home);
        let claim = &found.claims[0];
        assert_eq!(claim.subject.pid(), Pid::new(4711).ok());
        assert_eq!(claim.dated_at_ms, Some(1_795_812_000_000));
        let ids = found.sketches.iter().map(|one| one.key.session.as_str());
        assert_eq!(ids.collect::<Vec<_>>(), right);
        let messages = problems.iter().map(|one| one.message.as_str());
        assert_eq!(messages.collect::<Vec<_>>(), ["`pid` is not an integer"]);
        let described = Example.describe(&found.sketches[0]).found;
        assert_eq!(described.title.as_deref(), Some("fix it"));
        assert_eq!(described.phase, Some(Phase::Idle));
        let said = Example.messages(&found.sketches[0], 9).found;
        assert_eq!(said.len(), 2);
    }
}

#[test]
fn commands() {
    check_commands(
        &PROGRAMS,
        "
        /usr/bin/example --resume {id}  => session names {id}
        /usr/bin/example --print fix_it => session headless
        /usr/bin/example update         => auxiliary
        node /usr/bin/example           => launcher
        /usr/bin/examples               => none
        ",
    );
}
