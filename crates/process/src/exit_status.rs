//! How a process ended.

/// How a process ended, as the kernel reports it to the parent process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExitStatus {
    /// It exited with this status.
    Code(u8),
    /// This signal ended it.
    Signal(u8),
}

impl ExitStatus {
    /// Reads the status that `wait` gives (wait(2)); `None` if it is not that of an end.
    #[must_use]
    pub const fn of_wait(status: i32) -> Option<Self> {
        let [low, code, ..] = status.to_le_bytes();
        // The highest bit marks a core dump.
        match low & 0x7F {
            0 if low == 0 => Some(Self::Code(code)),
            0 | 0x7F => None,
            signal => Some(Self::Signal(signal)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ExitStatus;

    #[test]
    fn a_wait_status_is_an_exit_code_or_a_signal_and_a_stop_is_neither() {
        let read = ExitStatus::of_wait;
        assert_eq!(read(0), Some(ExitStatus::Code(0)));
        assert_eq!(read(3 << 8), Some(ExitStatus::Code(3)));
        assert_eq!(read(255 << 8), Some(ExitStatus::Code(255)));
        assert_eq!(read(9), Some(ExitStatus::Signal(9)));
        assert_eq!(read(11 | 0x80), Some(ExitStatus::Signal(11)), "with a core");
        assert_eq!(read((19 << 8) | 0x7F), None, "stopped");
        assert_eq!(read(0xFFFF), None, "continued");
    }
}
