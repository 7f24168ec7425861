//! Reads the output of a command on systems where a pipe can't be polled: a thread waits for
//! each pipe, and is never joined.

use std::io::{self, Read};
use std::process::{ChildStderr, ChildStdout};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

use super::COMMAND_OUTPUT_BYTES_MAX;

/// How long to wait for the rest of a command's output after its exit.
const REST_PATIENCE: Duration = Duration::from_millis(50);
/// How much is read at once, in bytes.
const CHUNK_BYTES: usize = 64 << 10;

/// One end of a pipe that a command writes to.
pub(super) struct Pipe(Box<dyn Read + Send>);

impl From<ChildStdout> for Pipe {
    fn from(pipe: ChildStdout) -> Self {
        Self(Box::new(pipe))
    }
}

impl From<ChildStderr> for Pipe {
    fn from(pipe: ChildStderr) -> Self {
        Self(Box::new(pipe))
    }
}

/// What a command has written so far.
#[derive(Debug)]
pub(super) struct Outputs([Output; 2]);

#[derive(Debug, Default)]
struct Output {
    chunks: Option<Receiver<Vec<u8>>>,
    bytes: Vec<u8>,
}

impl Outputs {
    pub(super) fn new(pipes: [Option<Pipe>; 2]) -> io::Result<Self> {
        let [stdout, stderr] = pipes;
        Ok(Self([Output::new(stdout)?, Output::new(stderr)?]))
    }

    /// Takes what is there now.
    pub(super) fn read(&mut self) {
        for output in &mut self.0 {
            output.read();
        }
    }

    /// Waits until there may be more.
    pub(super) fn wait(&self, time_max: Duration) {
        std::thread::sleep(time_max);
    }

    pub(super) fn into_bytes(mut self) -> [Vec<u8>; 2] {
        for output in &mut self.0 {
            while let Some(chunks) = &output.chunks {
                match chunks.recv_timeout(REST_PATIENCE) {
                    Ok(chunk) => output.bytes.extend(chunk),
                    Err(_) => output.chunks = None,
                }
            }
        }
        self.0.map(|output| output.bytes)
    }
}

impl Output {
    fn new(pipe: Option<Pipe>) -> io::Result<Self> {
        let Some(Pipe(pipe)) = pipe else {
            return Ok(Self::default());
        };
        let (sender, chunks) = channel();
        let read = move || {
            let mut pipe = pipe.take(COMMAND_OUTPUT_BYTES_MAX as u64);
            let mut chunk = vec![0; CHUNK_BYTES];
            while let Ok(count @ 1..) = pipe.read(&mut chunk) {
                if sender.send(chunk[..count].to_vec()).is_err() {
                    break;
                }
            }
        };
        std::thread::Builder::new().spawn(read)?;
        Ok(Self {
            chunks: Some(chunks),
            bytes: Vec::new(),
        })
    }

    fn read(&mut self) {
        let Some(chunks) = &self.chunks else { return };
        loop {
            match chunks.try_recv() {
                Ok(chunk) => self.bytes.extend(chunk),
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => {
                    self.chunks = None;
                    return;
                }
            }
        }
    }
}
