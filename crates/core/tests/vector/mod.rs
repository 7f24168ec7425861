//! Makes the world of a vector of the sidecar's conformance kit: its file in the
//! common place of a temporary home, and a recorded process table around it.
//!
//! `docs/conformance.md` describes the vectors.

// Two programs use this module, each a part of it.
#![allow(dead_code, missing_docs, unreachable_pub)]

use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use serde_json::Value;
use tempfile::TempDir;
use whosup_core::machine::command::NoCommands;
use whosup_core::machine::mounts::Mounts;
use whosup_core::machine::{Environment, Machine};
use whosup_core::process::{
    Absent, BootId, HostName, PidNamespace, PidScope, ProbeError, ProcessTable, Recorded,
    RecordedProcess, View,
};
use whosup_core::reader::{ListQuery, Reader, Wish};
use whosup_core::sources::common_place::root;
use whosup_core::sources::config::Config;

/// The world of a vector. Its file goes when it is dropped.
#[derive(Debug)]
pub struct World {
    vector: Value,
    home: PathBuf,
    _directory: TempDir,
}

impl World {
    /// Makes it; `None` if its file can't be made on this machine.
    pub fn of(vector: &Value) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().canonicalize().unwrap();
        let world = Self {
            vector: vector.clone(),
            home,
            _directory: directory,
        };
        let path = root(&world.environment())
            .unwrap()
            .join("some-agent/s1.runtime.json");
        write_file(&path, vector).then_some(world)
    }

    fn environment(&self) -> Environment {
        Environment::new(Some(self.home.clone()), None, [])
    }

    /// The machine that a reader looks at.
    pub fn machine(&self) -> Machine {
        let machine = &self.vector["machine"];
        let processes = self.vector["processes"].as_array().unwrap();
        Machine::new(
            self.environment(),
            milliseconds(&machine["now"]),
            ProcessTable::look(Arc::new(table(machine, processes))),
            mounts(&self.home, text(&self.vector["file"]["file_system"])),
            Arc::new(NoCommands),
        )
    }
}

/// What a reader lists there, all of it, as the wire format has it.
pub fn list(machine: &Machine) -> Value {
    let config = Config::default();
    let query = ListQuery {
        wish: Wish {
            is_all: true,
            ..Wish::default()
        },
        ..ListQuery::default()
    };
    let answer = Reader::new(machine, &config).list_sessions(&query);
    serde_json::to_value(answer.unwrap()).unwrap()
}

fn milliseconds(seconds: &Value) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "dates of this century")]
    let whole = (seconds.as_f64().unwrap() * 1000.0).round() as i64;
    whole
}

fn number(value: &Value) -> i32 {
    i32::try_from(value.as_i64().unwrap()).unwrap()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn table(machine: &Value, processes: &[Value]) -> Recorded {
    let scope = PidScope {
        host: Ok(HostName(text(&machine["hostname"]).to_owned())),
        boot: Ok(BootId::parse(text(&machine["boot_id"])).unwrap()),
        pid_namespace: Ok(PidNamespace(machine["pid_namespace"].as_u64().unwrap())),
    };
    let is = |key: &str| machine[key].as_bool().unwrap();
    let view = View {
        is_proc_ours: Ok(machine["process_table"] == "ours"),
        hide_pid: Err(Absent::Unsupported),
        is_everything_shown: Ok(is("is_everything_visible")),
        is_initial_pid_namespace: Ok(is("is_initial_pid_namespace")),
        is_initial_time_namespace: Ok(is("is_initial_time_namespace")),
        is_root: is("is_root"),
        uid: Ok(rustix::process::geteuid().as_raw()),
        booted_at_ms: Ok(milliseconds(&machine["booted_at"])),
    };
    processes
        .iter()
        .fold(Recorded::new(scope, view), with_process)
}

fn with_process(table: Recorded, process: &Value) -> Recorded {
    let pid = number(&process["pid"]);
    let ticks = text(&process["process_start"]).parse().unwrap();
    let argv = process["argv"].as_array().unwrap();
    let argv: Vec<&str> = argv.iter().map(text).collect();
    let inner = process["inner_pids"].as_array().unwrap();
    let inner: Vec<i32> = inner.iter().skip(1).map(number).collect();
    let mut recorded = RecordedProcess::new(pid, ticks, milliseconds(&process["began_at"]))
        .comm(argv[0])
        .argv(&argv)
        .cwd(text(&process["work_dir"]))
        .inner_pids(&inner)
        .pid_namespace(process["pid_namespace"].as_u64().unwrap());
    match process["executable"].as_str() {
        Some(executable) => recorded = recorded.exe(executable),
        None => recorded.details.exe = Err(Absent::PermissionDenied),
    }
    let path = PathBuf::from(format!("/proc/{pid}/stat"));
    match text(&process["state"]) {
        "running" => table.with(recorded),
        "zombie" => table.with(recorded.zombie()),
        "kernel-thread" => table.with(recorded.kernel_thread()),
        "thread" => table.with_thread(pid),
        "hidden" => table.hidden(pid),
        "unreadable" => table.with(recorded).with_probe_error(
            pid,
            ProbeError::File {
                path,
                reason: Absent::PermissionDenied,
            },
        ),
        other => panic!("what is a process that is {other}?"),
    }
}

fn mounts(place: &Path, file_system: &str) -> Mounts {
    let kind = match file_system {
        "local" => "ext4",
        "container" => "overlay",
        "shared" => "nfs4",
        other => panic!("what is a file system that is {other}?"),
    };
    let place = place.display();
    Mounts::parse(format!("27 1 254:0 / {place} rw - {kind} none rw\n").as_bytes())
}

/// Writes the file of a vector; `false` if it can't be made on this machine.
fn write_file(path: &Path, vector: &Value) -> bool {
    let mut bytes = match vector["text"].as_str() {
        Some(text) => text.to_owned(),
        None => vector["sidecar"].to_string(),
    };
    if let Some(length) = vector["padded_to"].as_u64() {
        bytes += &" ".repeat(usize::try_from(length).unwrap() - bytes.len());
    }
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
    let about = &vector["file"];
    let mode = u32::from_str_radix(text(&about["mode"]), 8).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    let modified = u64::try_from(milliseconds(&about["modified_at"])).unwrap();
    let file = std::fs::File::options().read(true).open(path).unwrap();
    file.set_modified(UNIX_EPOCH + Duration::from_millis(modified))
        .unwrap();
    match text(&about["owner"]) {
        "self" => true,
        "root" => chown(path, Some(0), None).is_ok(),
        "other" => chown(path, Some(12_345), None).is_ok(),
        other => panic!("who is the owner {other}?"),
    }
}
