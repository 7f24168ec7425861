//! `whosup sweep`: one session to end, with few and with many dead ones on disk.

use std::cell::RefCell;
use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use serde_json::json;
use whosup_process::{Pid, StartStamp, system_backend};

use crate::measure::{Measure, Runner, answer, answer_json, interleave, run};
use crate::outcome::{Bound, Goal, Outcome};
use crate::setting::Setting;
use crate::world::{Plan, World};

/// How much processor time it may take to see that one session has to end, in
/// milliseconds.
const CPU_MS_MAX: f64 = 50.0;
const FEW: usize = 200;
const MANY: usize = 20_000;
const ROUNDS: usize = 20;
/// The session that has to end.
const SESSION: &str = "0a022b20-0000-4000-8000-000000000001";

/// Measures a sweep that has one session to end. A dry run, so that there is one to
/// end each time: it looks as often and as far.
pub(crate) fn measure(setting: &Setting) -> anyhow::Result<Outcome> {
    let (few, many) = (setting.count(FEW), setting.count(MANY));
    let world = World::make(
        setting,
        Plan {
            sizes: vec![[few, 0, 0, 0], [many, 0, 0, 0]],
            live: [0; 4],
            has_transcripts: true,
            is_beside: true,
        },
    )?;
    let world = RefCell::new(world);
    write_record(setting, &world.borrow())?;
    let home = world.borrow().home();
    let sweep = || setting.whosup(&home, &["sweep", "--dry-run"]);
    let printed = answer(&mut sweep(), world.borrow().path())?;
    let printed = String::from_utf8_lossy(&printed).into_owned();
    if !printed.starts_with(&format!(
        "would end claude-code session {SESSION} (process-gone)"
    )) {
        bail!("the sweep says: {printed}");
    }
    let of_size = |size: usize| {
        world.borrow_mut().show(size)?;
        run(&mut sweep())
    };
    let names = [few, many].map(|count| format!("`whosup sweep --dry-run`, {count} dead"));
    let runners: Vec<Runner<'_>> = vec![
        (&names[0], 1, Box::new(|| of_size(0))),
        (&names[1], 1, Box::new(|| of_size(1))),
    ];
    let series = interleave(setting, ROUNDS, runners)?;
    let goals = vec![Goal {
        text: "to see that a session has to end, with many dead ones (CPU)".to_owned(),
        measured: series[1].median(Measure::Cpu),
        bound: Bound::AtMost(CPU_MS_MAX),
        unit: "ms",
    }];
    Ok(Outcome {
        name: "sweep",
        about: format!(
            "A sweep that finds one session whose process is gone, with {few} and with {many} \
             dead sessions of Claude Code on disk. It looks a second time for all that is said of \
             that session before it ends it; here it only says that it would."
        ),
        series,
        goals,
        ..Outcome::default()
    })
}

/// Writes the record of a session whose process ran a moment ago.
fn write_record(setting: &Setting, world: &World) -> anyhow::Result<()> {
    let home = world.home();
    let list = answer_json(
        &mut setting.whosup(&home, &["list", "--json"]),
        world.path(),
    )?;
    let host = &list["host"];
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn()?;
    let process = system_backend().probe(Pid::new(child.id().into())?);
    drop(child.stdin.take());
    child.wait()?;
    let process = process?.context("the process is gone")?;
    let StartStamp::LinuxTicks(ticks) = process.stamp else {
        bail!("a stamp of another kind");
    };
    let record = json!({
        "schema_version": 1, "agent": "claude-code", "session_id": SESSION,
        "home": home.join(".claude"), "phase": "working", "work_dir": home,
        "last_event_at": "2026-01-01T00:00:00.000Z",
        "owner": {
            "pid": process.pid.get(), "start_stamp": ticks.to_string(),
            "start_stamp_kind": "linux-ticks", "hostname": host["hostname"],
            "boot_id": host["boot_id"], "pid_namespace": host["pid_namespace"],
        },
    });
    let folder = home.join(".local/state/whosup/sessions/claude-code");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(format!("{SESSION}.json")), record.to_string())?;
    Ok(())
}
