//! Files that dead writers left behind.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::commands::conformance::check::{Kit, Outcome};
use crate::commands::conformance::stage::{PLANTED, Stage, bytes_of};

/// The contents of a planted file.
#[derive(Clone, Copy)]
enum Holds {
    /// A claim of a process that has ended.
    Dead,
    /// A claim of a process that lives.
    Living,
    /// A claim of another host's process.
    Foreign,
    /// The first half of a claim.
    Half,
    Nothing,
}

use Holds::{Dead, Foreign, Half, Living, Nothing};

/// Name, contents, age in minutes, and whether the file has to be removed.
const FILES: &[(&str, Holds, u64, bool)] = &[
    (".sidecar-00000000000000a1.tmp", Dead, 0, true),
    (".sidecar-00000000000000a2.tmp", Half, 120, true),
    (".sidecar-00000000000000a3.tmp", Nothing, 120, true),
    (
        "s-planted.claim-00000000000000a4.runtime.json",
        Dead,
        0,
        true,
    ),
    (".sidecar-00000000000000b1.tmp", Living, 120, false),
    (".sidecar-00000000000000b2.tmp", Foreign, 120, false),
    (".sidecar-00000000000000b3.tmp", Half, 0, false),
    (".sidecar-00000000000000b4.tmp", Half, 40, false),
    (".sidecar-notes.tmp", Half, 120, false),
    ("notes.tmp", Dead, 120, false),
    (
        "s-planted.claim-00000000000000b5.runtime.json",
        Living,
        120,
        false,
    ),
    (
        "s-planted.claim-00000000000000b6.runtime.json",
        Foreign,
        120,
        false,
    ),
    (
        "s-another.claim-00000000000000b7.runtime.json",
        Dead,
        120,
        false,
    ),
    ("s-another.runtime.json", Dead, 120, false),
    ("s-planted.jsonl", Half, 120, false),
];

/// A starting process removes the files of dead writers, and no others.
pub(super) fn cleared(kit: &Kit) -> Result<Outcome, String> {
    let stage = Stage::new(kit)?;
    for (name, holds, minutes, _) in FILES {
        let path = stage.directory().join(name);
        stage.plant_file(&path, &content(&stage, name, *holds)?)?;
        let aged = age(&path, *minutes);
        aged.map_err(|error| format!("cannot date `{name}`: {error}"))?;
    }
    let _next = kit.start_session(&stage.arena, PLANTED)?;
    for (name, _, _, has_to_go) in FILES {
        match (stage.directory().join(name).exists(), has_to_go) {
            (true, true) => return Err(format!("`{name}` is left, though its writer is gone")),
            (false, false) => return Err(format!("it removed `{name}`, which may be in use")),
            _ => {}
        }
    }
    Ok(Outcome::Passed)
}

fn content(stage: &Stage, name: &str, holds: Holds) -> Result<Vec<u8>, String> {
    let mut fields = match holds {
        Living => stage.living()?,
        Dead | Foreign | Half | Nothing => stage.dead()?,
    };
    if name.starts_with("s-another") {
        fields.insert("session_id".to_owned(), "s-another".into());
    }
    if matches!(holds, Foreign) {
        fields.insert("hostname".to_owned(), "another-host".into());
        fields.remove("boot_id");
    }
    let mut bytes = bytes_of(&fields);
    bytes.truncate(match holds {
        Half => bytes.len() / 2,
        Nothing => 0,
        Dead | Living | Foreign => bytes.len(),
    });
    Ok(bytes)
}

fn age(path: &Path, minutes: u64) -> std::io::Result<()> {
    let then = SystemTime::now() - Duration::from_secs(minutes * 60);
    File::options().write(true).open(path)?.set_modified(then)
}
