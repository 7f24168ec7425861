//! The owner of a session in files, by its full identity.

use std::path::{Path, PathBuf};

use serde::Serialize;
use whosup_process::{BootId, Pid, PidNamespace, StampKind, StartStamp};
use whosup_sidecar::StrictObject;

use super::format::{RecordError, wrong};

/// The owner of a session, by its identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedOwner {
    /// Its PID.
    pub pid: Pid,
    /// When it began, raw.
    pub stamp: Option<StartStamp>,
    /// The host.
    pub host: Option<String>,
    /// The boot of the kernel.
    pub boot: Option<BootId>,
    /// The PID namespace.
    pub pid_namespace: Option<PidNamespace>,
    /// The program.
    pub executable: Option<PathBuf>,
    /// It runs many sessions.
    pub is_shared: bool,
    /// No adapter recognizes it: it is the nearest process above a hook that is neither shell nor
    /// launcher.
    pub is_unrecognized: bool,
}

impl RecordedOwner {
    /// Whether both name one process: all fields that both have are equal.
    #[must_use]
    pub fn is_same_process(&self, other: &Self) -> bool {
        fn agree<T: PartialEq>(one: Option<&T>, other: Option<&T>) -> bool {
            one.zip(other).is_none_or(|(one, other)| one == other)
        }
        self.pid == other.pid
            && agree(self.stamp.as_ref(), other.stamp.as_ref())
            && agree(self.boot.as_ref(), other.boot.as_ref())
            && agree(self.pid_namespace.as_ref(), other.pid_namespace.as_ref())
    }
}

/// Reads the start stamp of a process.
pub(super) fn parse_stamp(object: &StrictObject<'_>) -> Result<Option<StartStamp>, RecordError> {
    let (Some(kind), Some(text)) = (
        object.opt_string("start_stamp_kind")?,
        object.opt_string("start_stamp")?,
    ) else {
        return Ok(None);
    };
    let kind = StampKind::from_name(kind).ok_or_else(|| {
        wrong(
            "start_stamp_kind",
            "kind of start stamp",
            format!("`{kind}`"),
        )
    })?;
    let stamp = StartStamp::parse(kind, text);
    stamp
        .map(Some)
        .map_err(|error| wrong("start_stamp", "start stamp", error))
}

pub(super) fn parse_owner(object: StrictObject<'_>) -> Result<RecordedOwner, RecordError> {
    let stamp = parse_stamp(&object)?;
    let boot = object
        .opt_string("boot_id")?
        .map(|text| {
            BootId::parse(text).ok_or_else(|| wrong("boot_id", "boot id", format!("`{text}`")))
        })
        .transpose()?;
    let pid_namespace = object
        .opt_integer("pid_namespace")?
        .map(|inode| {
            u64::try_from(inode)
                .map(PidNamespace)
                .map_err(|error| wrong("pid_namespace", "PID namespace", error))
        })
        .transpose()?;
    Ok(RecordedOwner {
        pid: object.pid("pid")?,
        stamp,
        boot,
        pid_namespace,
        host: object.opt_string("hostname")?.map(str::to_owned),
        executable: object.opt_string("executable")?.map(PathBuf::from),
        is_shared: object.opt_bool("shared")?.unwrap_or(false),
        is_unrecognized: object.opt_bool("unrecognized")?.unwrap_or(false),
    })
}

/// The form in which an owner is written.
#[derive(Debug, Serialize)]
pub(super) struct WrittenOwner<'a> {
    pid: i32,
    start_stamp: Option<String>,
    start_stamp_kind: Option<&'static str>,
    hostname: Option<&'a str>,
    boot_id: Option<&'a str>,
    pid_namespace: Option<u64>,
    executable: Option<String>,
    shared: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    unrecognized: bool,
}

/// The kind of a start stamp, as it is written.
pub(super) fn written_stamp(stamp: Option<&StartStamp>) -> Option<&'static str> {
    stamp.map(|stamp| stamp.kind().name())
}

/// A path as it is written.
pub(super) fn written_path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

impl<'a> WrittenOwner<'a> {
    pub(super) fn new(owner: &'a RecordedOwner) -> Self {
        Self {
            pid: owner.pid.get(),
            start_stamp: owner.stamp.as_ref().map(ToString::to_string),
            start_stamp_kind: written_stamp(owner.stamp.as_ref()),
            hostname: owner.host.as_deref(),
            boot_id: owner.boot.as_ref().map(BootId::as_str),
            pid_namespace: owner.pid_namespace.map(|namespace| namespace.0),
            executable: owner.executable.as_deref().map(written_path),
            shared: owner.is_shared,
            unrecognized: owner.is_unrecognized,
        }
    }
}
