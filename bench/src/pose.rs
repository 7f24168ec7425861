//! What a process does that poses as an agent: nothing.

use std::io::Read as _;
use std::process::ExitCode;

/// Set for a posing process.
pub(crate) const POSE: &str = "WHOSUP_BENCH_POSE";

/// Waits until standard input ends, if this process is to pose.
pub(crate) fn run_if_posing() -> Option<ExitCode> {
    std::env::var_os(POSE)?;
    let end = std::io::stdin().read_to_end(&mut Vec::new());
    Some(ExitCode::from(u8::from(end.is_err())))
}
