//! The session-writer locks: `tmp/session-writer-locks/SESSION.lock`.
//!
//! Files with an owner's name in them, not kernel locks. ACP and daemon
//! processes take one for each session; *sealed* means closed cleanly.

use std::path::PathBuf;

use jiff::Timestamp;
use whosup_process::{BootId, Pid, PidNamespace, StampKind, StartStamp};
use whosup_sidecar::file::{FileFacts, Links, read_regular};
use whosup_sidecar::{FieldError, SessionId, StrictObject};

use super::home::Runtime;
use super::malformed::{Malformed, pid_namespace};
use super::reading::Reading;
use super::registry::start_in_words;
use crate::adapter::claim::{
    Claim, ClaimedScope, Evidence, EvidenceKind, Exclusivity, Serving, Subject,
};

/// The schemas that can be read.
const SCHEMAS: std::ops::RangeInclusive<i64> = 1..=3;
/// How long a lock may be.
const LOCK_BYTES_MAX: u64 = 64 * 1024;
/// How many locks are looked at.
const ENTRIES_MAX: usize = 50_000;
/// How the names of locks end.
const SUFFIX: &str = ".lock";
/// Windows counts the ticks of `win32:` from the year 1 and a FILETIME from
/// 1601, both in units of 100 ns.
const TICKS_BEFORE_1601: u64 = 504_911_232_000_000_000;

/// Facts in a lock file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Lock {
    session: SessionId,
    pid: Pid,
    is_sealed: bool,
    boot: Option<BootId>,
    stamp: Option<StartStamp>,
    pid_namespace: Option<PidNamespace>,
    host: String,
    process_kind: String,
    acquired_at_ms: i64,
    version: Option<String>,
}

/// Reads every lock below a runtime directory.
pub(super) fn read(reading: &mut Reading<'_>, runtime: &Runtime) {
    let directory = runtime.path.join("tmp").join("session-writer-locks");
    let names = reading.scan.names(&directory, ENTRIES_MAX).names;
    for name in &names {
        let text = name.to_string_lossy();
        let Some(stem) = text.strip_suffix(SUFFIX) else {
            // A lock at the instant at which it changes hands, or a file that some release
            // adds.
            continue;
        };
        let path = directory.join(name);
        let file = read_regular(&path, LOCK_BYTES_MAX, Links::Refuse);
        // There is none if it was released since the directory was listed.
        let Some(file) = reading.scan.read_or_report(&path, file) else {
            continue;
        };
        match parse(&file.bytes, stem) {
            Ok(lock) if runtime.is_for(&reading.scan, Some(lock.pid)) => {
                add_claim(reading, lock, path, &file.facts);
            }
            Ok(_) => {}
            Err(error) => reading.scan.problem(&path, error),
        }
    }
}

fn parse(bytes: &[u8], file_stem: &str) -> Result<Lock, Malformed> {
    let object = StrictObject::parse(bytes)?;
    let schema = object.integer("schema_version")?;
    if !SCHEMAS.contains(&schema) {
        return Err(Malformed::Unusable(format!(
            "`schema_version` is `{schema}`, and only `1` to `3` can be read"
        )));
    }
    let session = SessionId::parse(object.string("session_id")?)
        .map_err(|error| Malformed::Unusable(format!("`session_id` cannot be used: {error}")))?;
    // In a name, what is no letter or digit may be escaped: `%20`.
    if file_stem != session.as_str() && !file_stem.contains('%') {
        return Err(Malformed::Unusable(format!(
            "`session_id` is `{session}`, and the file's name says another one"
        )));
    }
    let identity = object.opt_string("process_start_identity")?;
    let (boot, stamp) = identity.map_or((None, None), parse_identity);
    Ok(Lock {
        pid: object.pid("pid")?,
        // In any other state, a process writes or may write.
        is_sealed: object.opt_string("state")? == Some("sealed"),
        boot,
        stamp,
        pid_namespace: pid_namespace(&object, "pid_namespace_id")?,
        host: object.string("hostname")?.to_owned(),
        process_kind: object.string("process_kind")?.to_owned(),
        acquired_at_ms: parse_date(&object, "acquired_at")?,
        version: object.opt_string("qwen_version")?.map(str::to_owned),
        session,
    })
}

fn parse_date(object: &StrictObject<'_>, key: &str) -> Result<i64, FieldError> {
    let text = object.string(key)?;
    let malformed = |_| object.out_of_range(key, "a date (RFC 3339)", text);
    let date: Timestamp = text.parse().map_err(malformed)?;
    Ok(date.as_millisecond())
}

/// `linux:BOOT:TICKS`, `darwin:DATE` (as `ps -o lstart=` prints it in UTC) or
/// `win32:TICKS` (since the year 1). Any other form is no stamp.
fn parse_identity(text: &str) -> (Option<BootId>, Option<StartStamp>) {
    let Some((platform, rest)) = text.split_once(':') else {
        return (None, None);
    };
    match platform {
        "linux" => {
            let Some((boot, ticks)) = rest.split_once(':') else {
                return (None, None);
            };
            let stamp = StartStamp::parse(StampKind::LinuxTicks, ticks).ok();
            (BootId::parse(boot), stamp)
        }
        "darwin" => (None, StartStamp::parse(StampKind::DarwinDate, rest).ok()),
        "win32" => {
            let ticks = rest.parse::<u64>().ok();
            let filetime = ticks.and_then(|ticks| ticks.checked_sub(TICKS_BEFORE_1601));
            (None, filetime.map(StartStamp::Filetime))
        }
        _ => (None, None),
    }
}

fn add_claim(reading: &mut Reading<'_>, lock: Lock, path: PathBuf, facts: &FileFacts) {
    let is_interactive = lock.process_kind == "interactive";
    if !lock.is_sealed {
        reading.note_removed_on_exit(&lock.session, lock.pid, lock.acquired_at_ms);
    }
    let sketch = reading.sketch(&lock.session);
    if sketch.agent_version.is_none() {
        sketch.agent_version.clone_from(&lock.version);
    }
    if sketch.is_headless.is_none() && lock.process_kind != "unknown" {
        sketch.is_headless = Some(!is_interactive);
    }
    let (subject, state) = if lock.is_sealed {
        (Subject::Released, "sealed, ")
    } else {
        (Subject::Process(lock.pid), "")
    };
    let start = start_in_words(lock.stamp.as_ref());
    let says = format!("{state}pid {}, {start}, {}", lock.pid, lock.process_kind);
    let evidence = Evidence::new(EvidenceKind::LockFile, path, says);
    reading.scan.claim(Claim {
        scope: ClaimedScope {
            host: Some(lock.host).filter(|host| !host.is_empty()),
            boot: lock.boot,
            pid_namespace: lock.pid_namespace,
            platform: None,
        },
        stamp: lock.stamp,
        dated_at_ms: Some(lock.acquired_at_ms),
        exclusivity: Exclusivity::Exclusive,
        serving: if is_interactive {
            Serving::One
        } else {
            Serving::Many
        },
        ..reading
            .scan
            .claim_by_file(&lock.session, subject, evidence, facts)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACTIVE: &str = r#"{
        "schema_version": 2, "state": "active", "session_id": "s-1", "owner_id": "o",
        "pid": 4711, "pid_namespace_id": 4026531836,
        "process_start_identity": "linux:19c1d8ff-a55f-47c0-82a1-b0f1bc43623a:8123",
        "hostname": "devbox", "process_kind": "acp",
        "acquired_at": "2026-11-27T20:53:04.482Z", "qwen_version": "0.24.4"
    }"#;

    #[track_caller]
    fn check_error(from: &str, to: &str, right: &str) {
        let text = ACTIVE.replace(from, to);
        assert_ne!(text, ACTIVE);
        let error = parse(text.as_bytes(), "s-1").expect_err("an error");
        assert_eq!(error.to_string(), right);
    }

    #[test]
    fn an_active_lock_names_the_process_and_its_start() {
        let lock = parse(ACTIVE.as_bytes(), "s-1").expect("a lock");
        assert_eq!(lock.pid.get(), 4711);
        assert!(!lock.is_sealed);
        assert_eq!(lock.stamp, Some(StartStamp::LinuxTicks(8123)));
        assert!(lock.boot.is_some());
        assert_eq!(lock.acquired_at_ms, 1_795_812_784_482);
    }

    #[test]
    fn a_sealed_lock_is_released_and_one_without_a_state_is_not() {
        let sealed = ACTIVE.replace("\"active\"", "\"sealed\"");
        assert!(parse(sealed.as_bytes(), "s-1").expect("a lock").is_sealed);
        let first_schema = ACTIVE
            .replace("\"schema_version\": 2", "\"schema_version\": 1")
            .replace("\"state\": \"active\",", "");
        assert!(
            !parse(first_schema.as_bytes(), "s-1")
                .expect("a lock")
                .is_sealed
        );
    }

    #[test]
    fn identities_of_other_platforms_are_stamps_of_their_kind() {
        let darwin = parse_identity("darwin:Fri Nov 27 20:53:04 2026").1;
        let right = StartStamp::DarwinDate("Fri Nov 27 20:53:04 2026".to_owned());
        assert_eq!(darwin, Some(right));
        // 2026-11-27T20:53:04Z in both counts.
        let windows = parse_identity("win32:639314095840000000").1;
        assert_eq!(windows, Some(StartStamp::Filetime(134_402_863_840_000_000)));
        for unknown in [
            "", "linux", "linux:x", "plan9:1", "win32:x", "win32:7", "8123",
        ] {
            assert_eq!(parse_identity(unknown), (None, None), "{unknown}");
        }
    }

    #[test]
    fn a_name_is_the_session_id_with_percent_escapes() {
        let text = ACTIVE.replace("\"s-1\"", "\"s 1é\"");
        let lock = parse(text.as_bytes(), "s%201%C3%A9").expect("a lock");
        assert_eq!(lock.session.as_str(), "s 1é");
    }

    #[test]
    fn a_wrong_field_is_named() {
        check_error(
            "\"schema_version\": 2",
            "\"schema_version\": 4",
            "`schema_version` is `4`, and only `1` to `3` can be read",
        );
        check_error(
            "\"pid\": 4711",
            "\"pid\": 0",
            "`pid` is not a process id (1 to 2147483647): found `0`",
        );
        check_error(
            "\"s-1\"",
            "\"s-2\"",
            "`session_id` is `s-2`, and the file's name says another one",
        );
        check_error(
            "2026-11-27T20:53:04.482Z",
            "yesterday",
            "`acquired_at` is not a date (RFC 3339): found `yesterday`",
        );
    }
}
