//! The first line of a rollout: what the thread is.
//!
//! Seen in Codex 0.171.0, 2026-11: `{"timestamp", "ordinal", "type":
//! "session_meta", "payload": {"session_id", "id", "forked_from_id",
//! "timestamp", "cwd", "originator", "cli_version", "source", …,
//! "base_instructions", "history_base", "git"}}`. `id` names the thread;
//! `session_id` is another one's in threads of sub-agents (codex#32035). The
//! line's own time is that of the first prompt, the payload's that of the
//! thread's birth. The instructions make the line long; what matters most
//! comes before them, so a line that is cut off is read as far as it goes.
//!
//! Until September 2025 the line was the header itself: `{"id", "timestamp",
//! "instructions", "git"}`. The directory stands in a message near it then, and
//! in the earliest rollouts nowhere. Taken from public descriptions and examples
//! of such rollouts, 2026-11.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use whosup_sidecar::file::{Links, OpenFile, ReadFileError};

use super::record::DIALECT;
use crate::sources::agents::kit::dialect::{date_at, find_first, text_at, value_at};
use crate::sources::transcript::{HeadBounds, TranscriptFile};

/// How long a header may be, in bytes.
const HEADER_BYTES_MAX: usize = 1 << 20;
/// How many bytes of a rollout are read in each step, until the header is complete enough.
/// The part before the instructions fits into the first step.
const STEPS: &[usize] = &[8 << 10, 64 << 10, HEADER_BYTES_MAX];
/// How much of a rollout is read for the directory that a header of 2025 lacks:
/// instructions come before it.
const WORK_DIR_BOUNDS: HeadBounds = HeadBounds {
    bytes_max: 1 << 20,
    lines_max: 8,
};

/// The facts in the header of a rollout.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Header {
    /// The thread.
    pub(super) id: Option<String>,
    /// The session that it belongs to: itself, or the session that started it.
    pub(super) session_id: Option<String>,
    /// The thread whose history was copied into it.
    pub(super) forked_from: Option<String>,
    /// It continues the history of another rollout.
    pub(super) has_history_base: bool,
    /// When the thread was born, in milliseconds since 1970.
    pub(super) born_at_ms: Option<i64>,
    /// The directory that it began in.
    pub(super) work_dir: Option<PathBuf>,
    /// The version that wrote it.
    pub(super) version: Option<String>,
    /// The branch that it began on.
    pub(super) git_branch: Option<String>,
    /// Who started it.
    pub(super) origin: Option<Origin>,
    /// The thread that started it, by a field of its own.
    parent_thread: Option<String>,
    /// It is of 2025: the line itself, without a type and a payload.
    is_bare: bool,
    /// The header is cut off, by our bound or by an unfinished write: absent facts are
    /// unknown.
    pub(super) is_cut: bool,
}

/// Who started a thread (`source`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Origin {
    /// A program without a person at a terminal: `codex exec`, an MCP client.
    Headless,
    /// Another thread started it. The id of that thread may be known.
    SubAgent {
        /// The thread that started it.
        parent: Option<String>,
    },
    /// A terminal interface, an IDE, or something unknown.
    Other,
}

/// How much of a header the caller needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// The part before the instructions.
    Beginning,
    /// All of it; the branch comes last.
    Whole,
}

impl Header {
    /// Reads the header of the rollout at `path`. An empty rollout has an empty header.
    ///
    /// # Errors
    ///
    /// Why not, without its path.
    pub(super) fn read(path: &Path, part: Part) -> Result<Self, String> {
        let why = |error: ReadFileError| error.reason();
        let file = OpenFile::open(path, Links::Follow).map_err(why)?;
        let mut bytes = Vec::new();
        let mut header = Self::default();
        for step in STEPS {
            let before = bytes.len();
            bytes.resize(*step, 0);
            let count = file.read_at(&mut bytes[before..], before as u64);
            bytes.truncate(before.saturating_add(count.map_err(why)?));
            let is_all = bytes.len() < *step || bytes[before..].contains(&b'\n');
            header = Self::parse(&bytes)?;
            if is_all || (part == Part::Beginning && header.has_beginning()) {
                break;
            }
        }
        if header.is_bare {
            header.work_dir = first_work_dir(path);
        }
        Ok(header)
    }

    /// Parses the beginning of a rollout, as far as it goes.
    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let mut lines = bytes.split(|byte| *byte == b'\n');
        let line = lines.next().unwrap_or_default();
        let mut header = Self::default();
        if line.trim_ascii().is_empty() {
            return Ok(header);
        }
        let mut json = serde_json::Deserializer::from_slice(line);
        let seed = Seed {
            header: &mut header,
            is_payload: false,
        };
        match seed.deserialize(&mut json) {
            Ok(()) => Ok(header),
            // Cut off by our bound or by an unfinished write.
            Err(error) if error.is_eof() => {
                header.is_cut = true;
                Ok(header)
            }
            Err(error) => Err(format!("its first line is no `session_meta`: {error}")),
        }
    }

    fn has_beginning(&self) -> bool {
        self.id.is_some() && self.work_dir.is_some() && self.origin.is_some()
    }

    /// The header names the parent of a sub-agent, or shows that the thread is no sub-agent.
    pub(super) fn shows_parent(&self) -> bool {
        self.id.is_some() && (self.origin.is_some() || !self.is_cut)
    }

    /// The thread whose sub-agent this thread is.
    pub(super) fn parent(&self) -> Option<&str> {
        let Some(Origin::SubAgent { parent }) = &self.origin else {
            return None;
        };
        let by_session = self.session_id.as_ref();
        let by_session = by_session.filter(|session| Some(*session) != self.id.as_ref());
        let parent = parent.as_ref().or(self.parent_thread.as_ref());
        parent.or(by_session).map(String::as_str)
    }

    fn set(&mut self, key: &str, value: &Value) {
        let id = || value.as_str().map(str::to_ascii_lowercase);
        match key {
            "id" => self.id = id(),
            "session_id" => self.session_id = id(),
            "forked_from_id" => self.forked_from = id(),
            "parent_thread_id" => self.parent_thread = id(),
            "history_base" => self.has_history_base = value.is_object(),
            "timestamp" => self.born_at_ms = date_at(value, ""),
            "cwd" => self.work_dir = text_at(value, "").map(PathBuf::from),
            "cli_version" => self.version = text_at(value, "").map(str::to_owned),
            "source" => self.origin = Some(Origin::of(value)),
            "git" => self.git_branch = text_at(value, "/branch").map(str::to_owned),
            _ => {}
        }
    }
}

impl Origin {
    /// `"cli"`, `"exec"`, `{"subagent": {"thread_spawn": {"parent_thread_id": …}}}`, …
    pub(super) fn of(source: &Value) -> Self {
        if let Some(sub_agent) = source.get("subagent").or_else(|| source.get("sub_agent")) {
            let parent = value_at(sub_agent, "/thread_spawn/parent_thread_id");
            let parent = parent.and_then(Value::as_str).map(str::to_ascii_lowercase);
            return Self::SubAgent { parent };
        }
        match source.as_str() {
            Some("exec" | "mcp") => Self::Headless,
            Some("subagent") => Self::SubAgent { parent: None },
            _ => Self::Other,
        }
    }
}

/// The directory that the first messages name. If the file has become unreadable, reading
/// the rest of the file reports the problem.
fn first_work_dir(path: &Path) -> Option<PathBuf> {
    let work_dir = |record: &Value| (DIALECT.record)(record).work_dir.map(PathBuf::from);
    let file = TranscriptFile::open(path).ok()?;
    find_first(&file, WORK_DIR_BOUNDS, work_dir).ok()?
}

/// The fields of the payload that are read; the others are passed over.
const FIELDS: &[&str] = &[
    "cli_version",
    "cwd",
    "forked_from_id",
    "git",
    "history_base",
    "id",
    "parent_thread_id",
    "session_id",
    "source",
    "timestamp",
];
/// Those of them that a line of 2025 has itself.
const BARE_FIELDS: &[&str] = &["git", "id", "timestamp"];

/// Fills a header from a line or from the payload in it, and keeps what was read when the
/// line ends early.
struct Seed<'h> {
    header: &'h mut Header,
    is_payload: bool,
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let header = self.header;
        let mut wanted = if self.is_payload { FIELDS } else { BARE_FIELDS };
        while let Some(key) = fields.next_key::<String>()? {
            match key.as_str() {
                "type" if !self.is_payload => {
                    // The fields are those of the payload.
                    wanted = &[];
                    let kind: Value = fields.next_value()?;
                    if kind != "session_meta" {
                        let other = format!("its type is `{kind}`");
                        return Err(serde::de::Error::custom(other));
                    }
                }
                "payload" if !self.is_payload => {
                    // The line's own time is not that of the birth.
                    header.born_at_ms = None;
                    fields.next_value_seed(Seed {
                        header: &mut *header,
                        is_payload: true,
                    })?;
                }
                field if wanted.contains(&field) => {
                    header.is_bare |= !self.is_payload && field == "id";
                    header.set(field, &fields.next_value()?);
                }
                _ => {
                    fields.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests {
    use super::*;

    const CHILD: &str = "01a21ed1-b911-7843-8e55-72aa03e0116c";
    const ROOT: &str = "01a21ecc-2bd5-7f30-b93d-89bcac6028bb";

    fn line(fields: &str) -> String {
        format!(
            r#"{{"timestamp":"2026-11-27T21:03:27.599Z","ordinal":0,"type":"session_meta","payload":{{{fields}}}}}"#
        )
    }

    fn parse(fields: &str) -> Header {
        Header::parse(line(fields).as_bytes()).unwrap()
    }

    #[test]
    fn the_payload_tells_what_the_thread_is() {
        let header = parse(&format!(
            r#""session_id":"{ROOT}","id":"{ROOT}","timestamp":"2026-11-27T20:57:06.830Z","cwd":"/home/dev/app","cli_version":"0.171.0","source":"cli","base_instructions":{{"text":"x"}},"git":{{"branch":"main"}}"#
        ));
        assert_eq!(header.id.as_deref(), Some(ROOT));
        assert_eq!(header.born_at_ms, Some(1_795_813_026_830));
        assert_eq!(header.work_dir.as_deref(), Some(Path::new("/home/dev/app")));
        assert_eq!(header.version.as_deref(), Some("0.171.0"));
        assert_eq!(header.git_branch.as_deref(), Some("main"));
        assert_eq!(header.origin, Some(Origin::Other));
        assert_eq!(header.parent(), None);
    }

    #[test]
    fn a_line_that_is_cut_off_tells_what_came_before() {
        let whole = line(&format!(
            r#""id":"{ROOT}","cwd":"/w","source":"exec","base_instructions":{{"text":"{}"}}"#,
            "x".repeat(1000)
        ));
        for cut in 0..whole.len() {
            let header = Header::parse(&whole.as_bytes()[..cut]).unwrap();
            let is_past = |what: &str| cut >= whole.find(what).unwrap();
            assert_eq!(header.id.is_some(), is_past(r#","cwd""#), "{cut}");
            assert_eq!(header.origin.is_some(), is_past(r#","base"#), "{cut}");
        }
    }

    #[test]
    fn who_started_it_is_read_in_every_form() {
        for (source, right) in [
            (r#""cli""#, Origin::Other),
            (r#""vscode""#, Origin::Other),
            (r#"{"custom":"x"}"#, Origin::Other),
            ("7", Origin::Other),
            (r#""exec""#, Origin::Headless),
            (r#""mcp""#, Origin::Headless),
            (
                r#"{"subagent":"review"}"#,
                Origin::SubAgent { parent: None },
            ),
            (
                r#"{"subagent":{"other":"guardian"}}"#,
                Origin::SubAgent { parent: None },
            ),
        ] {
            let header = parse(&format!(r#""id":"{CHILD}","source":{source}"#));
            assert_eq!(header.origin, Some(right), "{source}");
        }
    }

    #[test]
    fn a_sub_agent_names_its_parent_by_its_source_or_else_by_its_session() {
        let spawned = format!(
            r#""id":"{CHILD}","source":{{"subagent":{{"thread_spawn":{{"parent_thread_id":"{ROOT}","depth":1}}}}}}"#
        );
        assert_eq!(parse(&spawned).parent(), Some(ROOT));
        let review =
            format!(r#""id":"{CHILD}","session_id":"{ROOT}","source":{{"subagent":"review"}}"#);
        assert_eq!(parse(&review).parent(), Some(ROOT));
        let of_itself =
            format!(r#""id":"{CHILD}","session_id":"{CHILD}","source":{{"subagent":"review"}}"#);
        assert_eq!(parse(&of_itself).parent(), None);
        let no_sub_agent = format!(r#""id":"{CHILD}","session_id":"{ROOT}","source":"cli""#);
        assert_eq!(parse(&no_sub_agent).parent(), None);
    }

    #[test]
    fn a_header_of_2025_is_the_line_itself_and_the_first_messages_name_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.jsonl");
        let read = |context: &str| {
            let header = format!(
                r#"{{"id":"{ROOT}","timestamp":"2025-08-18T01:16:13.522Z","instructions":"x","git":{{"branch":"main"}}}}"#
            );
            let state = r#"{"record_type":"state"}"#;
            let part = serde_json::json!([{"type": "input_text", "text": context}]);
            let message =
                serde_json::json!({"type": "message", "id": null, "role": "user", "content": part});
            std::fs::write(&path, format!("{header}\n{state}\n{message}\n")).unwrap();
            Header::read(&path, Part::Beginning).unwrap()
        };
        let element = "<environment_context>\n  <cwd>/home/dev/app</cwd>\n</environment_context>";
        let header = read(element);
        assert_eq!(header.id.as_deref(), Some(ROOT));
        assert_eq!(header.born_at_ms, Some(1_755_479_773_522));
        assert_eq!(header.git_branch.as_deref(), Some("main"));
        assert_eq!(header.work_dir.as_deref(), Some(Path::new("/home/dev/app")));
        let line = "<environment_context>\nCurrent working directory: /home/dev/app\nApproval policy: never\n</environment_context>";
        assert_eq!(read(line).work_dir, header.work_dir);
        assert_eq!(read("fix it in <cwd>/w</cwd>").work_dir, None);
    }

    #[test]
    fn another_first_line_is_an_error_and_an_empty_file_is_not() {
        assert_eq!(Header::parse(b"").unwrap(), Header::default());
        assert_eq!(Header::parse(b"\n").unwrap(), Header::default());
        for bytes in [
            &br#"{"type":"event_msg","payload":{}}"#[..],
            b"[1]",
            b"\0\0\0",
            b"{\"type\":\"session_meta\",\"payload\":7}",
            b"hello\n",
        ] {
            assert!(Header::parse(bytes).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn instructions_of_any_length_are_read_past() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.jsonl");
        let long = "x".repeat(300_000);
        let before = format!(
            r#""base_instructions":{{"text":"{long}"}},"id":"{ROOT}","cwd":"/w","source":"cli","git":{{"branch":"b"}}"#
        );
        std::fs::write(&path, line(&before)).unwrap();
        let header = Header::read(&path, Part::Beginning).unwrap();
        assert_eq!(header.work_dir.as_deref(), Some(Path::new("/w")));
        let after = format!(
            r#""id":"{ROOT}","cwd":"/w","source":"cli","base_instructions":{{"text":"{long}"}},"git":{{"branch":"b"}}"#
        );
        std::fs::write(&path, line(&after)).unwrap();
        let header = Header::read(&path, Part::Beginning).unwrap();
        assert_eq!(
            (header.id.as_deref(), header.git_branch),
            (Some(ROOT), None)
        );
        let header = Header::read(&path, Part::Whole).unwrap();
        assert_eq!(header.git_branch.as_deref(), Some("b"));
    }
}
