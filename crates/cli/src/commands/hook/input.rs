//! Standard input of a hook, read without a thread, since a thread can't always start.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use whosup_core::adapter::hook_event::PAYLOAD_BYTES_MAX;

use super::is_whole;

/// How long to wait for standard input.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long standard input must be quiet after a whole event to count as ended.
const QUIET: Duration = Duration::from_millis(20);
/// The size of one read, in bytes.
const CHUNK_BYTES: usize = 64 * 1024;

/// Reads standard input to its end, for a second at most.
pub(super) fn read() -> anyhow::Result<Vec<u8>> {
    let until = Instant::now() + PATIENCE;
    let stdin = std::io::stdin();
    let mut input = Vec::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let time_max = Timespec::try_from(left.min(QUIET))?;
        let mut asked = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut asked, Some(&time_max)) {
            Ok(0) if is_whole(&input) => return Ok(input),
            Ok(0) if left.is_zero() => {
                anyhow::bail!("standard input did not end within a second");
            }
            Ok(0) | Err(Errno::INTR) => continue,
            Ok(_) => {}
            Err(errno) => return Err(errno.into()),
        }
        match rustix::io::read(&stdin, &mut chunk) {
            // An unreadable or closed standard input counts as ended.
            Ok(0) => return Ok(input),
            Ok(count) => input.extend_from_slice(&chunk[..count]),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => return Ok(input),
        }
        if input.len() > PAYLOAD_BYTES_MAX {
            anyhow::bail!("the event is longer than {PAYLOAD_BYTES_MAX} bytes");
        }
        if left.is_zero() && !is_whole(&input) {
            anyhow::bail!("standard input did not end within a second");
        }
    }
}
