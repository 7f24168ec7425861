//! Start stamps and the identity they complete.

use std::fmt;

use crate::{Pid, PidScope};

/// An operating system, as far as it decides what a start stamp means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Platform {
    /// Linux, any distribution, WSL included.
    Linux,
    /// macOS.
    Darwin,
    /// Windows.
    Windows,
}

impl Platform {
    /// The platform that this program was built for, if it is one of them.
    #[must_use]
    pub const fn current() -> Option<Self> {
        if cfg!(target_os = "linux") {
            Some(Self::Linux)
        } else if cfg!(target_os = "macos") {
            Some(Self::Darwin)
        } else if cfg!(windows) {
            Some(Self::Windows)
        } else {
            None
        }
    }
}

/// When a process began, in the kernel's own unit, kept raw.
///
/// Compare for equality only, within one kind and one PID scope: the unit
/// differs per platform, and Linux counts anew at each boot.
///
/// | Kind | Unit | Source |
/// |---|---|---|
/// | `linux-ticks` | clock ticks since boot | `/proc/PID/stat`, field 22, proc_pid_stat(5) |
/// | `darwin-tv` | seconds and microseconds since 1970 | `pbi_start_tvsec`, `pbi_start_tvusec`, libproc |
/// | `darwin-date` | a UTC date in whole seconds, as text | what some agents write on macOS |
/// | `filetime` | 100 ns since 1601-01-01 | `GetProcessTimes`, creation time |
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StartStamp {
    /// Clock ticks since boot.
    LinuxTicks(u64),
    /// Seconds and microseconds since 1970-01-01.
    DarwinTv {
        /// Whole seconds.
        seconds: u64,
        /// The rest, in microseconds.
        microseconds: u32,
    },
    /// A date as an agent wrote it.
    DarwinDate(String),
    /// 100 ns since 1601-01-01.
    Filetime(u64),
}

/// The kind of a [`StartStamp`]; only stamps of one kind are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StampKind {
    /// `linux-ticks`
    LinuxTicks,
    /// `darwin-tv`
    DarwinTv,
    /// `darwin-date`
    DarwinDate,
    /// `filetime`
    Filetime,
}

impl StampKind {
    /// The name used in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::LinuxTicks => "linux-ticks",
            Self::DarwinTv => "darwin-tv",
            Self::DarwinDate => "darwin-date",
            Self::Filetime => "filetime",
        }
    }

    /// Finds a kind by the name used in files.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [
            Self::LinuxTicks,
            Self::DarwinTv,
            Self::DarwinDate,
            Self::Filetime,
        ]
        .into_iter()
        .find(|kind| kind.name() == name)
    }

    /// The platform whose kernels give such stamps.
    #[must_use]
    pub const fn platform(self) -> Platform {
        match self {
            Self::LinuxTicks => Platform::Linux,
            Self::DarwinTv | Self::DarwinDate => Platform::Darwin,
            Self::Filetime => Platform::Windows,
        }
    }
}

impl fmt::Display for StampKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a text is no start stamp of the kind that was named.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a {kind} start stamp")]
pub struct ParseStampError {
    /// The kind that was asked for.
    pub kind: StampKind,
    /// The text that did not fit.
    pub text: String,
}

impl StartStamp {
    /// Reads a stamp of `kind` from the text that [`StartStamp`] displays as.
    ///
    /// # Errors
    ///
    /// [`ParseStampError`] if the text is not of that kind's form.
    pub fn parse(kind: StampKind, text: &str) -> Result<Self, ParseStampError> {
        let wrong = || ParseStampError {
            kind,
            text: text.chars().take(64).collect(),
        };
        let digits = |text: &str| {
            let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            is_plain.then(|| text.parse::<u64>().ok()).flatten()
        };
        match kind {
            StampKind::LinuxTicks => digits(text).map(Self::LinuxTicks).ok_or_else(wrong),
            StampKind::Filetime => digits(text).map(Self::Filetime).ok_or_else(wrong),
            StampKind::DarwinTv => {
                let (seconds, microseconds) = text.split_once('.').ok_or_else(wrong)?;
                let seconds = digits(seconds).ok_or_else(wrong)?;
                let microseconds = digits(microseconds)
                    .filter(|_| microseconds.len() == 6)
                    .and_then(|value| u32::try_from(value).ok())
                    .ok_or_else(wrong)?;
                Ok(Self::DarwinTv {
                    seconds,
                    microseconds,
                })
            }
            StampKind::DarwinDate if text.trim().is_empty() => Err(wrong()),
            StampKind::DarwinDate => Ok(Self::DarwinDate(text.trim().to_owned())),
        }
    }

    /// The kind of this stamp.
    #[must_use]
    pub const fn kind(&self) -> StampKind {
        match self {
            Self::LinuxTicks(_) => StampKind::LinuxTicks,
            Self::DarwinTv { .. } => StampKind::DarwinTv,
            Self::DarwinDate(_) => StampKind::DarwinDate,
            Self::Filetime(_) => StampKind::Filetime,
        }
    }

    /// Returns whether two stamps are equal: `None` if their kinds differ, for
    /// then there is nothing to compare.
    #[must_use]
    pub fn is_same_as(&self, other: &Self) -> Option<bool> {
        (self.kind() == other.kind()).then(|| self == other)
    }
}

impl fmt::Display for StartStamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LinuxTicks(ticks) => ticks.fmt(f),
            Self::DarwinTv {
                seconds,
                microseconds,
            } => write!(f, "{seconds}.{microseconds:06}"),
            Self::DarwinDate(date) => f.write_str(date),
            Self::Filetime(units) => units.fmt(f),
        }
    }
}

/// Names one process for ever: PID scope, PID and start stamp.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessIdentity {
    /// Where the PID means something.
    pub scope: PidScope,
    /// The PID.
    pub pid: Pid,
    /// When the process began, raw.
    pub stamp: StartStamp,
}

/// The answer to "is this still that process?".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Still {
    /// It is, and it ran when it was asked.
    Running,
    /// That process has exited: the PID is free, or a zombie or another process has it.
    Exited,
}
