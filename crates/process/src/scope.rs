//! Where a PID means something.

use std::fmt;

use crate::Field;

/// The name of a computer as the kernel gives it (`uname -n`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostName(pub String);

impl HostName {
    /// Returns whether two names mean one host: first label, case folded.
    ///
    /// `box.local` and `BOX` are the same; the rest of the name depends on the
    /// network that the host happens to be in.
    #[must_use]
    pub fn is_same_host(&self, other: &str) -> bool {
        let label = |name| str::split(name, '.').next().unwrap_or("");
        let (ours, other) = (label(&self.0), label(other));
        // Without a copy of both where that does, as it nearly always does.
        let is_same = ours == other || ours.to_lowercase() == other.to_lowercase();
        !ours.is_empty() && is_same
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One run of a kernel: `/proc/sys/kernel/random/boot_id` on Linux, lower case.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BootId(String);

impl BootId {
    /// Reads a boot id: a UUID in its usual form, any case.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let is_uuid = text.len() == 36
            && text.bytes().enumerate().all(|(at, byte)| match at {
                8 | 13 | 18 | 23 => byte == b'-',
                _ => byte.is_ascii_hexdigit(),
            });
        is_uuid.then(|| Self(text.to_ascii_lowercase()))
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BootId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A PID namespace, by the inode of `/proc/PID/ns/pid` (pid_namespaces(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PidNamespace(pub u64);

impl PidNamespace {
    /// The namespace that the kernel starts with (`PROC_PID_INIT_INO`).
    pub const INITIAL: Self = Self(0xEFFF_FFFC);
}

impl fmt::Display for PidNamespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Where a PID means something: host, boot and PID namespace.
///
/// Each part is absent, with a reason, where the system does not report it. An
/// absent part never counts as different from another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PidScope {
    /// The host's name. It changes under running processes (DHCP, a rename).
    pub host: Field<HostName>,
    /// The run of the kernel.
    pub boot: Field<BootId>,
    /// The PID namespace of the process that looks.
    pub pid_namespace: Field<PidNamespace>,
}
