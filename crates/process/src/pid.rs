//! Process ids, checked before any probe.

use std::fmt;

/// A process id that can name a process: `1 ..= i32::MAX`.
///
/// Zero and negative numbers have other meanings for `kill(2)` (a process
/// group, everybody), so no such number ever becomes a `Pid`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pid(i32);

/// Why a number is no [`Pid`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a process id (1 to 2147483647)")]
pub struct PidError(pub i64);

impl Pid {
    /// Checks that `raw` can name a process.
    ///
    /// # Errors
    ///
    /// [`PidError`] if it is below 1 or above `i32::MAX`.
    pub fn new(raw: i64) -> Result<Self, PidError> {
        match i32::try_from(raw) {
            Ok(pid) if pid >= 1 => Ok(Self(pid)),
            _ => Err(PidError(raw)),
        }
    }

    /// The id of the process that asks.
    #[must_use]
    pub fn own() -> Self {
        // The kernel gives every running process an id from 1 to i32::MAX; an
        // id beyond that (no platform has one) would name nothing probeable.
        Self(i32::try_from(std::process::id()).unwrap_or(i32::MAX))
    }

    /// The nearest number that can name a process, for tables made up as data.
    pub(crate) const fn nearest(raw: i32) -> Self {
        Self(if raw < 1 { 1 } else { raw })
    }

    /// The number itself.
    #[must_use]
    pub const fn get(self) -> i32 {
        self.0
    }
}

impl fmt::Display for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl TryFrom<i64> for Pid {
    type Error = PidError;

    fn try_from(raw: i64) -> Result<Self, Self::Error> {
        Self::new(raw)
    }
}
