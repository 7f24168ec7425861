//! Standard input of a hook on systems where it can't be polled: a thread waits for it.

use std::io::Read as _;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use whosup_core::adapter::hook_event::PAYLOAD_BYTES_MAX;

use super::is_whole;

/// How long to wait for standard input.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long standard input must be quiet after a whole event to count as ended.
const QUIET: Duration = Duration::from_millis(20);
/// The size of one read, in bytes.
const CHUNK_BYTES: usize = 64 * 1024;
/// How many chunks the channel holds.
const CHUNKS_WAITING_MAX: usize = 4;

/// Reads standard input to its end, for a second at most.
pub(super) fn read() -> anyhow::Result<Vec<u8>> {
    let (sender, chunks) = sync_channel(CHUNKS_WAITING_MAX);
    let wait = move || {
        let mut stdin = std::io::stdin().lock();
        let mut chunk = vec![0; CHUNK_BYTES];
        // Ends with the input, or when the receiver is gone.
        while let Ok(len) = stdin.read(&mut chunk) {
            if sender.send(chunk[..len].to_vec()).is_err() || len == 0 {
                break;
            }
        }
    };
    // It may block for ever: it is never joined.
    std::thread::Builder::new().spawn(wait)?;
    collect(&chunks)
}

fn collect(chunks: &Receiver<Vec<u8>>) -> anyhow::Result<Vec<u8>> {
    let until = Instant::now() + PATIENCE;
    let mut input = Vec::new();
    loop {
        let left = until.saturating_duration_since(Instant::now());
        match chunks.recv_timeout(left.min(QUIET)) {
            Ok(chunk) if chunk.is_empty() => return Ok(input),
            Ok(chunk) => input.extend(chunk),
            Err(RecvTimeoutError::Disconnected) => return Ok(input),
            Err(RecvTimeoutError::Timeout) if is_whole(&input) => return Ok(input),
            Err(RecvTimeoutError::Timeout) if left.is_zero() => {
                anyhow::bail!("standard input did not end within a second");
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        if input.len() > PAYLOAD_BYTES_MAX {
            anyhow::bail!("the event is longer than {PAYLOAD_BYTES_MAX} bytes");
        }
    }
}
