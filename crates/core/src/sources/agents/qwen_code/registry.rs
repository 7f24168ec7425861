//! The registry: `sessions/PID.json`, and `sessions/PID-XXXXXXXX.json` for each
//! session of a process that hosts several.

use std::path::PathBuf;

use whosup_process::{BootId, Pid, PidNamespace, StampKind, StartStamp};
use whosup_sidecar::file::{FileFacts, Links, read_regular};
use whosup_sidecar::{FieldError, SessionId, StrictObject};

use super::malformed::{Malformed, pid_namespace};
use super::reading::Reading;
use crate::adapter::claim::{
    Claim, ClaimedScope, Evidence, EvidenceKind, Exclusivity, Serving, Subject,
};
use crate::sources::agents::kit::hex::is_hex;

/// The newest schema that can be read.
const SCHEMA_MAX: i64 = 1;
/// How long a record may be; qwen-code itself reads no longer records.
const RECORD_BYTES_MAX: u64 = 64 * 1024;
/// How many files of the registry are looked at.
const ENTRIES_MAX: usize = 10_000;
/// How many hexadecimal digits follow the PID in the name of a record that is
/// one of several.
const SLOT_DIGITS: usize = 8;

/// Facts in a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) pid: Pid,
    pub(super) session: SessionId,
    /// The directory that the session works in now: `/cd` changes it in place.
    pub(super) work_dir: PathBuf,
    pub(super) stamp: Option<StartStamp>,
    pub(super) boot: Option<BootId>,
    pub(super) pid_namespace: Option<PidNamespace>,
    /// When the process registered. `/clear` leaves it as it is.
    pub(super) registered_at_ms: i64,
    pub(super) version: Option<String>,
    /// `tui` if the record has no kind.
    pub(super) kind: String,
    /// The socket that other sessions send messages to.
    pub(super) endpoint: Option<String>,
}

impl Record {
    /// Returns whether the process is a terminal interface, which writes a sidecar too.
    pub(super) fn is_of_terminal(&self) -> bool {
        self.kind == TUI
    }
}

/// Reads every record of a home's registry and returns the valid records.
pub(super) fn read(reading: &mut Reading<'_>) -> Vec<Record> {
    let directory = reading.scan.home.root.join("sessions");
    let names = reading.scan.names(&directory, ENTRIES_MAX);
    let mut records = Vec::new();
    for name in names.texts() {
        // Every write goes to another file first, and releases add files.
        let Some(file_name) = FileName::parse(name) else {
            continue;
        };
        let path = directory.join(name);
        let file = read_regular(&path, RECORD_BYTES_MAX, Links::Refuse);
        // There is none if its process has ended since the directory was listed.
        let Some(file) = reading.scan.read_or_report(&path, file) else {
            continue;
        };
        match parse(&file.bytes, &file_name) {
            Ok(record) => {
                add_claim(reading, &record, &file_name, path, &file.facts);
                records.push(record);
            }
            Err(error) => reading.scan.problem(&path, error),
        }
    }
    records
}

/// Facts in the name of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileName {
    pid: Pid,
    /// It is one of several records of that process.
    has_slot: bool,
}

impl FileName {
    fn parse(name: &str) -> Option<Self> {
        let stem = name.strip_suffix(".json")?;
        let (digits, slot) = match stem.split_once('-') {
            Some((digits, slot)) => (digits, Some(slot)),
            None => (stem, None),
        };
        let is_slot = slot.is_none_or(|slot| is_hex(slot, SLOT_DIGITS));
        let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
        if !is_slot || !is_plain {
            return None;
        }
        let pid = Pid::new(digits.parse().ok()?).ok()?;
        Some(Self {
            pid,
            has_slot: slot.is_some(),
        })
    }
}

/// Parses a record in either of its shapes: `procStart` as `BOOT:TICKS` with
/// `pidNs`, or, before that, `procStart` as ticks with `pidNamespace`.
///
/// `ipcToken` is a secret and never asked for.
fn parse(bytes: &[u8], file_name: &FileName) -> Result<Record, Malformed> {
    let object = StrictObject::parse(bytes)?;
    let schema = object.integer("schemaVersion")?;
    if !(0..=SCHEMA_MAX).contains(&schema) {
        return Err(Malformed::Unusable(format!(
            "`schemaVersion` is `{schema}`, and only up to `{SCHEMA_MAX}` can be read"
        )));
    }
    let pid = object.pid("pid")?;
    if pid != file_name.pid {
        let named = file_name.pid;
        return Err(Malformed::Unusable(format!(
            "`pid` is `{pid}`, and the file's name says `{named}`"
        )));
    }
    let (boot, stamp) = object
        .opt_string("procStart")?
        .map_or((None, None), parse_start);
    let owned = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(str::to_owned);
    Ok(Record {
        pid,
        session: SessionId::parse(object.string("sessionId")?)
            .map_err(|error| Malformed::Unusable(format!("`sessionId` cannot be used: {error}")))?,
        work_dir: parse_work_dir(&object)?,
        stamp,
        boot,
        pid_namespace: parse_pid_namespace(&object)?,
        registered_at_ms: object.integer("startedAt")?,
        version: owned(object.opt_string("qwenVersion")?),
        kind: owned(object.opt_string("kind")?).unwrap_or_else(|| TUI.to_owned()),
        endpoint: owned(object.opt_string("ipcPath")?),
    })
}

const TUI: &str = "tui";

fn parse_work_dir(object: &StrictObject<'_>) -> Result<PathBuf, FieldError> {
    let text = object.string("cwd")?;
    if text.is_empty() || text.contains('\0') {
        return Err(object.out_of_range("cwd", "a path", text));
    }
    Ok(PathBuf::from(text))
}

/// `BOOT:TICKS`, or `TICKS` alone. Any other form is no stamp.
fn parse_start(text: &str) -> (Option<BootId>, Option<StartStamp>) {
    let (boot, ticks) = match text.split_once(':') {
        Some((boot, ticks)) => (Some(boot), ticks),
        None => (None, text),
    };
    let stamp = StartStamp::parse(StampKind::LinuxTicks, ticks).ok();
    (boot.and_then(BootId::parse), stamp)
}

/// `pidNs` is an inode number; the older `pidNamespace` is the text of the link
/// `/proc/self/ns/pid`, or an error text if it could not be read.
fn parse_pid_namespace(object: &StrictObject<'_>) -> Result<Option<PidNamespace>, FieldError> {
    if let Some(namespace) = pid_namespace(object, "pidNs")? {
        return Ok(Some(namespace));
    }
    let text = object.opt_string("pidNamespace")?.unwrap_or_default();
    let digits = text
        .strip_prefix("pid:[")
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(text);
    Ok(digits.parse().ok().map(PidNamespace))
}

fn add_claim(
    reading: &mut Reading<'_>,
    record: &Record,
    file_name: &FileName,
    path: PathBuf,
    facts: &FileFacts,
) {
    let is_headless = match record.kind.as_str() {
        TUI => Some(false),
        "headless" => Some(true),
        _ => None,
    };
    let is_host = file_name.has_slot || record.kind != TUI;
    let sketch = reading.sketch(&record.session);
    sketch.work_dir = Some(record.work_dir.clone());
    sketch.endpoint.clone_from(&record.endpoint);
    sketch.agent_version.clone_from(&record.version);
    sketch.is_headless = is_headless;
    reading.note_removed_on_exit(&record.session, record.pid, record.registered_at_ms);
    let start = start_in_words(record.stamp.as_ref());
    let says = format!("pid {}, {start}, {}", record.pid, record.kind);
    let evidence = Evidence::new(EvidenceKind::Registry, path, says);
    let subject = Subject::Process(record.pid);
    reading.scan.claim(Claim {
        scope: ClaimedScope {
            host: None,
            boot: record.boot.clone(),
            pid_namespace: record.pid_namespace,
            platform: None,
        },
        stamp: record.stamp.clone(),
        // The session is replaced in place, and the date is that of the first session. A
        // newer sidecar of the process names the session that the process moved to.
        dated_at_ms: Some(record.registered_at_ms),
        work_dir: Some(record.work_dir.clone()),
        exclusivity: Exclusivity::Exclusive,
        serving: if is_host { Serving::Many } else { Serving::One },
        ..reading
            .scan
            .claim_by_file(&record.session, subject, evidence, facts)
    });
}

/// When a process began, in words.
pub(super) fn start_in_words(stamp: Option<&StartStamp>) -> String {
    stamp.map_or("no start stamp".to_owned(), |stamp| {
        format!("start {stamp}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CURRENT: &str = r#"{
        "schemaVersion": 1, "pid": 21775,
        "procStart": "19c1d8ff-a55f-47c0-82a1-b0f1bc43623a:54991", "pidNs": 4026531836,
        "sessionId": "0a0cf238-8b66-4429-9815-234560ccc5d1", "cwd": "/home/dev/my_app.v1",
        "name": "my_app.v1-bb", "startedAt": 1795812756254, "qwenVersion": "0.24.4",
        "kind": "tui", "ipcPath": "/run/qwen-socks-1/21775.sock", "ipcToken": "secret"
    }"#;

    fn name(text: &str) -> FileName {
        FileName::parse(text).expect("a record's name")
    }

    #[track_caller]
    fn check_error(from: &str, to: &str, right: &str) {
        let text = CURRENT.replace(from, to);
        assert_ne!(text, CURRENT);
        let error = parse(text.as_bytes(), &name("21775.json")).expect_err("an error");
        assert_eq!(error.to_string(), right);
    }

    #[test]
    fn a_record_names_process_boot_and_namespace() {
        let record = parse(CURRENT.as_bytes(), &name("21775.json")).expect("a record");
        assert_eq!(record.pid.get(), 21775);
        assert_eq!(record.stamp, Some(StartStamp::LinuxTicks(54991)));
        let boot = record.boot.expect("a boot id");
        assert_eq!(boot.as_str(), "19c1d8ff-a55f-47c0-82a1-b0f1bc43623a");
        assert_eq!(record.pid_namespace, Some(PidNamespace(4_026_531_836)));
        assert_eq!(record.registered_at_ms, 1_795_812_756_254);
        assert_eq!(
            record.endpoint.as_deref(),
            Some("/run/qwen-socks-1/21775.sock")
        );
        assert_eq!(record.kind, "tui");
    }

    #[test]
    fn the_older_shape_has_ticks_alone_and_a_namespace_as_text() {
        for (namespace, right) in [
            ("4026531836", Some(PidNamespace(4_026_531_836))),
            ("pid:[4026531836]", Some(PidNamespace(4_026_531_836))),
            ("unreadable", None),
        ] {
            let text = format!(
                r#"{{"schemaVersion":1,"pid":7,"procStart":"54991","pidNamespace":"{namespace}",
                "machineId":"0f","sessionId":"s-1","cwd":"/w","startedAt":1795812756254}}"#
            );
            let record = parse(text.as_bytes(), &name("7.json")).expect("a record");
            assert_eq!(record.stamp, Some(StartStamp::LinuxTicks(54991)));
            assert_eq!(record.boot, None);
            assert_eq!(record.pid_namespace, right, "{namespace}");
            assert_eq!(record.kind, "tui");
        }
    }

    #[test]
    fn an_unknown_form_of_start_is_no_stamp() {
        for start in [
            "",
            "x",
            "19c1d8ff:12x",
            "12.5",
            "-4",
            "99999999999999999999",
        ] {
            assert_eq!(parse_start(start), (None, None), "{start}");
        }
    }

    #[test]
    fn a_wrong_field_is_named() {
        check_error(
            "\"pid\": 21775",
            "\"pid\": \"21775\"",
            "`pid` is not an integer: found the string `21775`",
        );
        check_error(
            "\"pid\": 21775",
            "\"pid\": 21775.0",
            "`pid` is not an integer: found the number `21775.0`",
        );
        check_error(
            "\"pid\": 21775",
            "\"pid\": true",
            "`pid` is not an integer: found the bool `true`",
        );
        check_error(
            "\"pid\": 21775",
            "\"pid\": 4",
            "`pid` is `4`, and the file's name says `21775`",
        );
        check_error(
            "\"schemaVersion\": 1",
            "\"schemaVersion\": 2",
            "`schemaVersion` is `2`, and only up to `1` can be read",
        );
        check_error(
            "\"pidNs\": 4026531836",
            "\"pidNs\": 0",
            "`pidNs` is not an inode number: found `0`",
        );
        check_error(
            "\"cwd\": \"/home/dev/my_app.v1\"",
            "\"cwd\": \"\"",
            "`cwd` is not a path: found ``",
        );
    }

    #[test]
    fn a_session_id_that_leads_elsewhere_is_refused() {
        let text = CURRENT.replace("0a0cf238-8b66-4429-9815-234560ccc5d1", "../../x");
        let error = parse(text.as_bytes(), &name("21775.json")).expect_err("an error");
        assert!(error.to_string().starts_with("`sessionId` cannot be used"));
    }

    #[test]
    fn only_a_records_name_is_one() {
        assert!(!name("21775.json").has_slot);
        assert!(name("21775-0a1b2c3d.json").has_slot);
        for other in [
            "021.json",
            "0.json",
            "-1.json",
            "1-0a1b2c3.json",
            "1-0A1B2C3D.json",
            "1.json.swp",
            ".1.json",
            "1.JSON",
            "2026-planning-notes.json",
            "99999999999.json",
            "json",
            ".json",
        ] {
            assert_eq!(FileName::parse(other), None, "{other}");
        }
    }
}
