//! An adapter to copy: `example`, an agent that does not exist.
//!
//! It compiles only in tests. The steps are in CONTRIBUTING.md, "Adding an agent". Begin
//! the page of a real agent as here: what it leaves, version and month in which that was
//! seen, and what the files do *not* show.
//!
//! What it leaves below its home (`EXAMPLE_HOME`, `~/.example`). Seen in Example 1.0,
//! 2026-11.
//!
//! | File | Written | Shows |
//! |---|---|---|
//! | `running/PID.json` | at launch, removed at a clean exit | which session the process serves, since when |
//! | `sessions/ID.jsonl` | from the first prompt on | the conversation, one record a line |

use std::path::Path;

use serde_json::Value;
use whosup_process::Pid;
use whosup_sidecar::file::{Links, facts};
use whosup_sidecar::{AgentId, SessionId};

use crate::adapter::claim::{Claim, Evidence, EvidenceKind, Exclusivity, Subject};
use crate::adapter::phase::Phase;
use crate::adapter::{
    Adapter, AgentScan, CommandLine, Form, Home, Is, Look, Named, Profile, Role, Sketch, Watched,
};
use crate::machine::problem::Found;
use crate::sources::agents::kit::dialect::{Dialect, Record, Step, date_at, text_at, texts_in};
use crate::sources::agents::kit::document::read_document;
use crate::sources::agents::kit::one_per_session::OnePerSession;
use crate::sources::agents::kit::scan::Scan;

const AGENT: AgentId = AgentId::from_static("example");

/// Every loop over outside data has a named bound.
const ENTRIES_MAX: usize = 100_000;
const REGISTRY_BYTES_MAX: u64 = 64 << 10;

/// The adapter. Register yours in `AGENTS` (`table.rs`); this example is not registered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Example;

/// The constant facts. Facts that an agent does not record keep the default in
/// [`Profile::USUAL`].
static PROFILE: Profile = Profile {
    id: "example",
    name: "Example",
    default_home: ".example",
    home_variables: &["EXAMPLE_HOME"],
    detection: "registry file per process",
    checked_against: "1.0, 2026-11",
    has_session_at_launch: true,
    watched: &[Watched::at("running"), Watched::at("sessions")],
    programs: &PROGRAMS,
    dialect: Some(&DIALECT),
    resume: &["example", "--resume", "{id}"],
    ..Profile::USUAL
};

/// How the programs look and what their arguments mean: a table, tested with
/// `check_commands`.
static PROGRAMS: CommandLine = CommandLine {
    programs: &[
        // The script of the package starts the native program and waits for it.
        (Is::Launcher, &[Form::Script("bin/example")]),
        (Is::ByArguments, &[Form::Executable("example")]),
    ],
    commands: &[(Role::Auxiliary, &["login", "update"])],
    session: &[Named::Option(&["--resume"])],
    headless: &["--print"],
    ..CommandLine::NONE
};

/// How one record of the transcript reads. Title, messages, dates, phase and tokens
/// follow from it.
static DIALECT: Dialect = Dialect::of(record_of);

fn record_of(record: &Value) -> Record<'_> {
    let at_ms = date_at(record, "/at");
    let dated = Record {
        at_ms,
        born_at_ms: at_ms,
        ..Record::default()
    };
    match text_at(record, "/role") {
        Some("user") => Record {
            typed: texts_in(record.get("text")).collect(),
            step: Step::Shows(Some(Phase::Working)),
            ..dated
        },
        Some("assistant") => Record {
            reply: texts_in(record.get("text")).collect(),
            model: text_at(record, "/model"),
            step: Step::Shows(Some(Phase::Idle)),
            ..dated
        },
        _ => dated,
    }
}

/// Reads one registry file. It claims, and leaves it to the judge whether that is true.
fn claim_of(scan: &Scan<'_>, path: &Path) -> Result<Option<Claim>, String> {
    let Some(entry) = read_document(path, REGISTRY_BYTES_MAX)? else {
        return Ok(None);
    };
    let pid = entry.get("pid").and_then(Value::as_i64);
    let pid = Pid::new(pid.ok_or("`pid` is not an integer")?).map_err(|why| why.to_string())?;
    let id = text_at(&entry, "/session").ok_or("`session` is missing")?;
    let id = SessionId::parse(id).map_err(|why| why.to_string())?;
    let file = facts(path, Links::Follow).map_err(|why| why.reason())?;
    let says = format!("pid {pid}");
    let evidence = Evidence::new(EvidenceKind::Registry, path.to_owned(), says);
    Ok(Some(Claim {
        // The date of the claim is in the file; the date of the file is none.
        dated_at_ms: date_at(&entry, "/at"),
        // Every process that serves a session writes this file: a dead claim is a dead
        // session.
        exclusivity: Exclusivity::Exclusive,
        ..scan.claim_by_file(&id, Subject::Process(pid), evidence, &file)
    }))
}

impl Adapter for Example {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn scan(&self, look: &Look<'_>, home: &Home) -> Found<AgentScan> {
        let mut scan = Scan::new(AGENT, look, home);
        let running = home.root.join("running");
        let names = scan.names(&running, ENTRIES_MAX);
        for name in names.texts().filter(|name| name.ends_with(".json")) {
            let path = running.join(name);
            match claim_of(&scan, &path) {
                Ok(Some(claim)) => scan.claim(claim),
                // It went since the list was made.
                Ok(None) => {}
                // A bad file is a problem and hides nothing else.
                Err(why) => scan.problem(&path, why),
            }
        }
        let mut sketches = OnePerSession::new(|path| DIALECT.said(path));
        let sessions = home.root.join("sessions");
        for name in scan.names(&sessions, ENTRIES_MAX).texts() {
            let id = name.strip_suffix(".jsonl").map(SessionId::parse);
            let Some(Ok(id)) = id else { continue };
            // The default depth reads only what claims and processes name.
            let is_claimed = scan.claims.iter().any(|claim| claim.key.session == id);
            if is_claimed || look.depth.reaches(&id) {
                let sketch = Sketch {
                    transcript: Some(sessions.join(name)),
                    is_orphan_when_stale: true,
                    ..Sketch::new(scan.key(&id))
                };
                sketches.add(sketch, []);
            }
        }
        scan.finish(sketches)
    }
}

mod tests;
