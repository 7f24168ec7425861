//! What tmux prints is a list of panes, or a problem.

#![no_main]

use std::cell::RefCell;
use std::ffi::OsString;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;
use whosup_core::machine::command::{CommandError, CommandOutput, Commands};
use whosup_core::machine::{Environment, Machine};
use whosup_core::machine::mounts::Mounts;
use whosup_core::sources::panes::Panes;
use whosup_process::{ProcessTable, Recorded, RecordedProcess};

#[derive(Debug)]
struct Says(Vec<u8>);

impl Commands for Says {
    fn run(&self, _: &str, _: &[OsString], _: Instant) -> Result<CommandOutput, CommandError> {
        Ok(CommandOutput {
            is_success: !self.0.starts_with(b"!"),
            stdout: self.0.clone(),
            stderr: self.0.clone(),
        })
    }

    fn deadline(&self) -> Instant {
        Instant::now() + Duration::from_secs(2)
    }
}

thread_local! {
    static PLACE: RefCell<(TempDir, UnixListener)> = RefCell::new({
        let directory = tempfile::tempdir().expect("a directory");
        let socket = UnixListener::bind(directory.path().join("s")).expect("a socket");
        (directory, socket)
    });
}

fuzz_target!(|bytes: &[u8]| {
    PLACE.with_borrow(|(directory, _)| {
        let socket = directory.path().join("s");
        let server = RecordedProcess::new(900, 77, 0)
            .comm("tmux: server")
            .argv(&["tmux", "-S", socket.to_str().expect("UTF-8"), "new-session"])
            .exe("/usr/bin/tmux")
            .uid(rustix::process::geteuid().as_raw());
        let machine = Machine::new(
            Environment::default(),
            1_000_000,
            ProcessTable::look(Arc::new(Recorded::initial().with(server))),
            Mounts::default(),
            Arc::new(Says(bytes.to_vec())),
        );
        let _ = Panes::ask(&machine);
    });
});
