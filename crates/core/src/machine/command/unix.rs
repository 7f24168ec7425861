//! Reads the output of a command without waiting for other holders of its pipes.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::process::{ChildStderr, ChildStdout};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use super::COMMAND_OUTPUT_BYTES_MAX;

/// The size of one read, in bytes: the capacity of a pipe.
const CHUNK_BYTES: usize = 64 << 10;

/// One end of a pipe that a command writes to.
#[derive(Debug)]
pub(super) struct Pipe(OwnedFd);

impl From<ChildStdout> for Pipe {
    fn from(pipe: ChildStdout) -> Self {
        Self(pipe.into())
    }
}

impl From<ChildStderr> for Pipe {
    fn from(pipe: ChildStderr) -> Self {
        Self(pipe.into())
    }
}

/// What a command has written so far.
#[derive(Debug)]
pub(super) struct Outputs([Output; 2]);

#[derive(Debug, Default)]
struct Output {
    /// Closed at its end or once enough was read.
    pipe: Option<File>,
    bytes: Vec<u8>,
}

impl Outputs {
    pub(super) fn new(pipes: [Option<Pipe>; 2]) -> io::Result<Self> {
        let [stdout, stderr] = pipes;
        Ok(Self([Output::new(stdout)?, Output::new(stderr)?]))
    }

    /// Reads what is there now.
    pub(super) fn read(&mut self) {
        for output in &mut self.0 {
            output.read();
        }
    }

    /// Waits until there is more, for `time_max` at most.
    pub(super) fn wait(&self, time_max: Duration) {
        let pipes = self.0.iter().filter_map(|output| output.pipe.as_ref());
        let mut pipes: Vec<PollFd<'_>> =
            pipes.map(|pipe| PollFd::new(pipe, PollFlags::IN)).collect();
        if pipes.is_empty() {
            std::thread::sleep(time_max);
            return;
        }
        // A signal, or a failure, only makes the next look come sooner.
        let time_max = Timespec::try_from(time_max).ok();
        poll(&mut pipes, time_max.as_ref()).ok();
    }

    pub(super) fn into_bytes(self) -> [Vec<u8>; 2] {
        self.0.map(|output| output.bytes)
    }
}

impl Output {
    fn new(pipe: Option<Pipe>) -> io::Result<Self> {
        let pipe = pipe.map(|pipe| -> io::Result<File> {
            fcntl_setfl(&pipe.0, fcntl_getfl(&pipe.0)? | OFlags::NONBLOCK)?;
            Ok(File::from(pipe.0))
        });
        Ok(Self {
            pipe: pipe.transpose()?,
            bytes: Vec::new(),
        })
    }

    /// Reads what is there now. Ends after at most [`COMMAND_OUTPUT_BYTES_MAX`], even if
    /// writing continues.
    fn read(&mut self) {
        let Some(mut pipe) = self.pipe.as_ref() else {
            return;
        };
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let left = COMMAND_OUTPUT_BYTES_MAX - self.bytes.len();
            let room = chunk.len().min(left);
            match pipe.read(&mut chunk[..room]) {
                Ok(count @ 1..) => self.bytes.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // It has ended, or is full, or can't be read.
                Ok(0) | Err(_) => {
                    self.pipe = None;
                    return;
                }
            }
        }
    }
}
