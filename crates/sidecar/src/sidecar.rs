//! The sidecar, schema 1: bytes in, a claim or the reason why not out.

use std::path::PathBuf;

use whosup_process::{BootId, Pid, PidNamespace, StampKind, StartStamp};

use crate::{AgentId, FieldError, JsonError, SessionId, SessionIdError, SidecarPid, StrictObject};

/// The schema version that this crate reads. The number rises only on a
/// breaking change; fields that are merely new do not raise it.
pub const SIDECAR_SCHEMA: i64 = 1;

/// How long a sidecar may be, in bytes. Real ones have 200 to 700.
pub const SIDECAR_BYTES_MAX: u64 = 64 * 1024;

/// The latest `started_at`, in seconds since 1970: the beginning of the year
/// 9999. Dates in milliseconds, a usual mistake, all lie beyond it.
pub const STARTED_AT_S_MAX: f64 = 253_370_764_800.0;

/// The contents of one `runtime.json`: which process serves which session.
///
/// Seen in qwen-code 0.24.4, 2026-11; proposed in kimi-cli#2082. The fields
/// from `process_start` on are optional additions that other readers ignore.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sidecar {
    /// The process, or that there is none any more.
    pub pid: SidecarPid,
    /// The session.
    pub session_id: SessionId,
    /// The directory that the session works in. Never empty.
    pub work_dir: PathBuf,
    /// The host that the PID means something on. Empty where the agent did not
    /// know it: then it names no host.
    pub hostname: String,
    /// When this process took up the session, in milliseconds since 1970. The
    /// process itself began before that.
    pub started_at_ms: i64,
    /// The agent's name, from the key `NAME_version` with hyphens for
    /// underscores. qwen-code writes `qwen` here: a name, not always an
    /// agent's id. Absent if no key, or more than one, has that form.
    pub agent_name: Option<String>,
    /// The agent's version.
    pub agent_version: Option<String>,
    /// When the process began, raw; absent also where the kind or the form is
    /// one that this crate does not know.
    pub process_start: Option<StartStamp>,
    /// The kind of stamp that it names, with or without a stamp; absent where this crate does
    /// not know it.
    pub process_start_kind: Option<StampKind>,
    /// `process_start` and its kind as they stand in the file, for display.
    pub process_start_text: Option<String>,
    /// The run of the kernel that the PID means something in.
    pub boot_id: Option<BootId>,
    /// The PID namespace that the PID means something in.
    pub pid_namespace: Option<PidNamespace>,
    /// The process's program.
    pub executable: Option<PathBuf>,
    /// How many sessions the process serves at once; absent also where the word is one
    /// that this crate does not know.
    pub serves: Option<Serves>,
    /// What the conversation was doing when this was written, in the agent's words.
    pub phase: Option<String>,
    /// What it was waiting for, in the agent's words.
    pub waiting_for: Option<String>,
    /// The session's transcript.
    pub transcript: Option<PathBuf>,
    /// The process that has the terminal, where it is another one.
    pub client_pid: Option<Pid>,
    /// How to resume the session. To be shown, never to be run: anybody may
    /// have written it.
    pub resume: Option<Resume>,
    /// Where the process listens: a socket's path or a URL.
    pub endpoint: Option<String>,
}

/// How many sessions a process serves at once.
///
/// Without it, several whole sidecars of one living process are all current: an agent may
/// run several sessions in one process, and nothing shows that it left any of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Serves {
    /// One: with a newer sidecar that reads the same, the process has left this session.
    One,
    /// Many, as a daemon does. The daemon's terminal shows none of them.
    Many,
}

impl Serves {
    /// The word for `serves` in a sidecar.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::One => "one",
            Self::Many => "many",
        }
    }

    /// Reads the word; `None` if it is another one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let mut all = [Self::One, Self::Many].into_iter();
        all.find(|serves| serves.name() == name)
    }
}

/// A command as it stands in a sidecar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resume {
    /// A program and its arguments.
    Argv(Vec<String>),
    /// One line of shell.
    Line(String),
}

/// Why bytes are no sidecar. The text is a reason that goes after the file's
/// path; it names the field and what was found there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SidecarError {
    /// It is longer than a sidecar may be.
    #[error("it is larger than {SIDECAR_BYTES_MAX} bytes: it has {bytes}")]
    TooLarge {
        /// How many bytes it has.
        bytes: usize,
    },
    /// It is no JSON object.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// It has a version of the schema that this crate can't read.
    #[error("`schema_version` is `{found}`, and only `{SIDECAR_SCHEMA}` can be read")]
    SchemaVersion {
        /// The version that it has.
        found: i64,
    },
    /// A field is missing, repeated, or not what it should be.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// The session id can't be one.
    #[error("`session_id` cannot be used: {0}")]
    SessionId(SessionIdError),
}

/// Parses the bytes of a sidecar.
///
/// Strict: no type is converted, repeated fields are refused, and an optional
/// field of a wrong type is an error too. Unknown fields are ignored.
///
/// # Errors
///
/// [`SidecarError`] names the field and what is wrong with it.
pub fn parse_sidecar(bytes: &[u8]) -> Result<Sidecar, SidecarError> {
    if bytes.len() as u64 > SIDECAR_BYTES_MAX {
        return Err(SidecarError::TooLarge { bytes: bytes.len() });
    }
    let object = StrictObject::parse(bytes)?;
    let schema = object.integer("schema_version")?;
    if schema != SIDECAR_SCHEMA {
        return Err(SidecarError::SchemaVersion { found: schema });
    }
    let (agent_name, agent_version) = parse_agent(&object)?;
    let process_start_kind = parse_stamp_kind(&object)?;
    let (process_start, process_start_text) = parse_process_start(&object)?;
    Ok(Sidecar {
        pid: object.pid_or_zero("pid")?,
        session_id: SessionId::parse(object.string("session_id")?)
            .map_err(SidecarError::SessionId)?,
        work_dir: parse_work_dir(&object)?,
        hostname: object.string("hostname")?.to_owned(),
        started_at_ms: parse_started_at(&object)?,
        agent_name,
        agent_version,
        process_start,
        process_start_kind,
        process_start_text,
        boot_id: parse_boot_id(&object)?,
        pid_namespace: parse_pid_namespace(&object)?,
        executable: parse_opt_path(&object, "executable")?,
        serves: object.opt_string("serves")?.and_then(Serves::from_name),
        phase: owned(object.opt_string("phase")?),
        waiting_for: owned(object.opt_string("waiting_for")?),
        transcript: parse_opt_path(&object, "transcript")?,
        client_pid: object.opt_pid("client_pid")?,
        resume: parse_resume(&object)?,
        endpoint: owned(object.opt_string("endpoint")?),
    })
}

fn owned(text: Option<&str>) -> Option<String> {
    text.map(str::to_owned)
}

/// Finds the one key `NAME_version` and its value: a string or null.
fn parse_agent(object: &StrictObject<'_>) -> Result<(Option<String>, Option<String>), FieldError> {
    let mut named = object.keys().filter_map(|key| {
        let name = key
            .strip_suffix("_version")
            .filter(|name| *name != "schema")?;
        let name = name.replace('_', "-");
        AgentId::is_valid(&name).then_some((key, name))
    });
    match (named.next(), named.next()) {
        (Some((key, name)), None) => Ok((Some(name), owned(object.opt_string(key)?))),
        // More than one: which one names the agent would be a guess.
        (None, _) | (Some(_), Some(_)) => Ok((None, None)),
    }
}

fn parse_started_at(object: &StrictObject<'_>) -> Result<i64, FieldError> {
    let seconds = object.number("started_at")?;
    if !(1.0..=STARTED_AT_S_MAX).contains(&seconds) {
        let expected = "a date in seconds since 1970";
        return Err(object.out_of_range("started_at", expected, &seconds.to_string()));
    }
    // Exact enough: a double represents milliseconds until long after year 9999.
    #[expect(clippy::cast_possible_truncation, reason = "checked just above")]
    Ok((seconds * 1000.0).round() as i64)
}

fn parse_path(object: &StrictObject<'_>, key: &str, text: &str) -> Result<PathBuf, FieldError> {
    if text.is_empty() || text.contains('\0') {
        return Err(object.out_of_range(key, "a path", text));
    }
    Ok(PathBuf::from(text))
}

/// A relative directory would be one of the reader's. A reader of one platform may find the
/// sidecar of another, so the forms of all are absolute.
fn parse_work_dir(object: &StrictObject<'_>) -> Result<PathBuf, FieldError> {
    let text = object.string("work_dir")?;
    let path = parse_path(object, "work_dir", text)?;
    let is_absolute = match text.as_bytes() {
        [b'/', ..] | [b'\\', b'\\', ..] => true,
        [drive, b':', b'/' | b'\\', ..] => drive.is_ascii_alphabetic(),
        _ => false,
    };
    if !is_absolute {
        return Err(object.out_of_range("work_dir", "an absolute path", text));
    }
    Ok(path)
}

fn parse_opt_path(object: &StrictObject<'_>, key: &str) -> Result<Option<PathBuf>, FieldError> {
    let text = object.opt_string(key)?;
    text.map(|text| parse_path(object, key, text)).transpose()
}

fn parse_boot_id(object: &StrictObject<'_>) -> Result<Option<BootId>, FieldError> {
    let Some(text) = object.opt_string("boot_id")? else {
        return Ok(None);
    };
    let malformed = || object.out_of_range("boot_id", "a UUID", text);
    BootId::parse(text).map(Some).ok_or_else(malformed)
}

fn parse_pid_namespace(object: &StrictObject<'_>) -> Result<Option<PidNamespace>, FieldError> {
    let Some(raw) = object.opt_integer("pid_namespace")? else {
        return Ok(None);
    };
    match u64::try_from(raw) {
        Ok(inode) if inode > 0 => Ok(Some(PidNamespace(inode))),
        _ => Err(object.out_of_range("pid_namespace", "an inode number", &raw.to_string())),
    }
}

fn parse_stamp_kind(object: &StrictObject<'_>) -> Result<Option<StampKind>, FieldError> {
    let name = object.opt_string("process_start_kind")?;
    Ok(name.and_then(StampKind::from_name))
}

/// Reads `process_start` by its kind. A kind or a form that is not known is no
/// stamp (a newer writer, another platform), and is kept as text.
fn parse_process_start(
    object: &StrictObject<'_>,
) -> Result<(Option<StartStamp>, Option<String>), FieldError> {
    let kind = object.opt_string("process_start_kind")?;
    let Some(text) = object.opt_string("process_start")? else {
        return Ok((None, None));
    };
    let stamp = kind
        .and_then(StampKind::from_name)
        .and_then(|kind| StartStamp::parse(kind, text).ok());
    let shown = match kind {
        Some(kind) => format!("{kind} {text}"),
        None => text.to_owned(),
    };
    Ok((stamp, Some(shown)))
}

/// Nothing is no command.
fn parse_resume(object: &StrictObject<'_>) -> Result<Option<Resume>, FieldError> {
    if object.is_string("resume")? {
        let line = object.opt_string("resume")?;
        let line = line.filter(|line| !line.trim().is_empty());
        return Ok(line.map(|line| Resume::Line(line.to_owned())));
    }
    let argv = object.opt_strings("resume")?;
    let argv = argv.filter(|argv| !argv.is_empty());
    Ok(argv.map(|argv| Resume::Argv(argv.into_iter().map(str::to_owned).collect())))
}
