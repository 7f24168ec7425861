//! What real processes use.
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
#![cfg(target_os = "linux")]

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use whosup_core::adapter::claim::SessionKey;
use whosup_core::machine::Machine;
use whosup_core::process::Pid;
use whosup_core::sessions::resources::{Detail, Meter, Metered, Resources};
use whosup_core::sidecar::{AgentId, SessionId};

/// Set for the process that works.
const PART: &str = "WHOSUP_TEST_WORKER";
const ALLOCATED_BYTES: usize = 64 * 1024 * 1024;
const WAIT_MAX: Duration = Duration::from_secs(60);

/// A process that ends with the test.
struct Worker(Child);

impl Drop for Worker {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// This program again, as a process that works until its standard input ends.
fn worker(part: &str) -> Worker {
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new(program);
    command.args([
        "--exact",
        "a_worker_and_what_it_starts_are_measured",
        "--nocapture",
    ]);
    let child = command
        .env(PART, part)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn();
    Worker(child.unwrap())
}

fn burn() {
    let mut number = 1_u64;
    loop {
        number = std::hint::black_box(number.wrapping_mul(3));
    }
}

/// Works: `outer` has a child, memory, threads and bytes written; `inner` only burns.
fn work(part: &str) {
    let inner = (part == "outer").then(|| worker("inner"));
    let mut memory = vec![0_u8; if part == "outer" { ALLOCATED_BYTES } else { 1 }];
    memory.iter_mut().step_by(512).for_each(|byte| *byte = 1);
    for _ in 0..3 {
        std::thread::spawn(|| std::thread::sleep(WAIT_MAX));
    }
    std::thread::spawn(burn);
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(std::hint::black_box(&memory)).unwrap();
    file.sync_all().unwrap();
    let mut input = Vec::new();
    std::io::stdin().read_to_end(&mut input).unwrap();
    drop((inner, memory));
}

fn metered(worker: &Worker, machine: &Machine) -> Metered {
    let pid = Pid::new(worker.0.id().into()).unwrap();
    Metered {
        key: SessionKey {
            agent: AgentId::parse("worker").unwrap(),
            session: SessionId::parse("a").unwrap(),
            home: PathBuf::from("/h").into(),
        },
        pid,
        stamp: machine.table().seen(pid).unwrap().stamp.clone(),
        is_shared: false,
    }
}

/// Measures until the numbers are as expected.
fn measure_until(worker: &Worker, holds: impl Fn(&Resources) -> bool) -> Resources {
    let until = Instant::now() + WAIT_MAX;
    let machine = Machine::here();
    let metered = [metered(worker, &machine)];
    let mut meter = Meter::default();
    loop {
        let found = meter.measure(&Machine::here(), &metered, Detail::Owners);
        let found = found.into_values().next().unwrap();
        if holds(&found) {
            return found;
        }
        assert!(Instant::now() < until, "{found:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_worker_and_what_it_starts_are_measured() {
    if let Ok(part) = std::env::var(PART) {
        return work(&part);
    }
    let allocated = u64::try_from(ALLOCATED_BYTES).unwrap();
    let worker = worker("outer");
    let found = measure_until(&worker, |found| {
        let tree = found.tree.unwrap();
        let is_busy = |percent: Option<f64>| percent.is_some_and(|percent| percent > 1.0);
        let owner = &found.owner;
        tree.processes == 2
            && is_busy(owner.cpu_percent)
            && tree.cpu_percent > owner.cpu_percent
            && owner.rss_bytes > Some(allocated)
            && owner.pss_bytes > Some(allocated)
            && owner.storage.is_some()
            && owner.threads >= 5
    });
    let (owner, tree) = (found.owner, found.tree.unwrap());
    assert!(
        tree.cpu > owner.cpu && owner.cpu > Some(Duration::ZERO),
        "{found:?}"
    );
    assert!(tree.rss_bytes > owner.rss_bytes, "{found:?}");
    assert!(
        owner.pss_bytes <= owner.rss_bytes.map(|rss| rss + allocated / 8),
        "{found:?}"
    );
    // Two processes on this machine can't use more than all of it.
    let processors = std::thread::available_parallelism().unwrap().get();
    let most = 100.0 * f64::from(u32::try_from(processors).unwrap()) * 1.5;
    assert!(tree.cpu_percent < Some(most), "{found:?}");
}
