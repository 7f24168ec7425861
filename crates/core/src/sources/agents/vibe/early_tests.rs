use std::time::UNIX_EPOCH;

use serde_json::json;

use super::*;

const ID: &str = "5a1b2c3d-0000-4000-8000-000000000001";

fn texts(transcript: &Path, messages_max: usize) -> Vec<String> {
    let messages = messages(transcript, messages_max).unwrap();
    messages.into_iter().map(|message| message.text).collect()
}

fn conversation() -> Vec<Value> {
    let call =
        json!({"id": "c", "function": {"name": "bash", "arguments": "{}"}, "type": "function"});
    vec![
        json!({"role": "system", "content": "You are Vibe."}),
        json!({"role": "user", "content": "<remember>", "injected": true}),
        json!({"role": "user", "content": "fix the build"}),
        json!({"role": "assistant", "content": "I try.", "tool_calls": [call]}),
        json!({"role": "tool", "content": "ok", "name": "bash", "tool_call_id": "c"}),
        json!({"role": "assistant", "content": "It builds."}),
    ]
}

#[test]
fn both_forms_are_listed_by_their_names_and_nothing_else_is() {
    let dir = tempfile::tempdir().unwrap();
    let names = [
        "session_20251210_140322_5a1b2c3d.json",
        "mine_2_20260301_090000_6a1b2c3d",
        "session_20251210_140322_5a1b2c3d.json.tmp",
        "session_20251210_140322.json",
        "active",
        "unified",
    ];
    for name in names {
        std::fs::write(dir.path().join(name), "").unwrap();
    }
    let named = named_in(dir.path(), |message| panic!("{message}"));
    let right = |id: &str, path: &str| Named {
        id_begins: id.to_owned(),
        transcript: dir.path().join(path),
    };
    let directory = right("6a1b2c3d", &format!("{}/messages.jsonl", names[1]));
    assert!(directory.is_directory());
    assert_eq!(named, [right("5a1b2c3d", names[0]), directory]);
}

#[test]
fn what_was_said_is_read_in_both_forms() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("session_20251210_140322_5a1b2c3d.json");
    let whole = json!({"metadata": {"session_id": ID}, "messages": conversation()});
    std::fs::write(&file, whole.to_string()).unwrap();
    let lines = dir.path().join(MESSAGES);
    let text: Vec<String> = conversation().iter().map(Value::to_string).collect();
    std::fs::write(&lines, text.join("\n") + "\n").unwrap();
    for transcript in [file, lines] {
        assert!(is_early(&transcript));
        let all = ["fix the build", "I try.", "bash", "It builds."];
        assert_eq!(texts(&transcript, 100), all);
        assert_eq!(texts(&transcript, 2), all[2..]);
        let prompt = first_prompt(&transcript).unwrap();
        assert_eq!(prompt.as_deref(), Some("fix the build"));
    }
    assert!(!is_early(&dir.path().join("unified").join(ID)));
}

#[test]
fn a_local_time_counts_where_the_file_shows_its_zone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("meta.json");
    let transcript = dir.path().join(MESSAGES);
    let read = |start: &str, end: &str, written: &str| {
        let meta = json!({"session_id": ID, "start_time": start, "end_time": end});
        std::fs::write(&path, meta.to_string()).unwrap();
        let written: jiff::Timestamp = written.parse().unwrap();
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        let since_epoch = written
            .duration_since(jiff::Timestamp::UNIX_EPOCH)
            .unsigned_abs();
        file.set_modified(UNIX_EPOCH + since_epoch).unwrap();
        let meta = read_meta(&transcript).unwrap();
        let text = |at_ms| {
            jiff::Timestamp::from_millisecond(at_ms)
                .unwrap()
                .to_string()
        };
        (meta.started_at_ms.map(text), meta.last_at_ms.map(text))
    };
    let (start, end) = ("2025-12-10T14:03:22.123456", "2025-12-10T14:33:22.500000");
    let of = |start: &str, end: &str| (Some(start.to_owned()), Some(end.to_owned()));
    assert_eq!(
        read(start, end, "2025-12-10T13:33:22.520Z"),
        of("2025-12-10T13:03:22.123Z", "2025-12-10T13:33:22.5Z")
    );
    assert_eq!(
        read(start, end, "2025-12-10T09:03:23Z"),
        of("2025-12-10T08:33:22.123Z", "2025-12-10T09:03:22.5Z")
    );
    // A copy: written at another time, in any zone.
    assert_eq!(read(start, end, "2025-12-10T13:40:00Z"), (None, None));
    assert_eq!(read(start, end, "2026-12-10T13:33:22.520Z"), (None, None));
    // With a zone the file's date is of no interest.
    assert_eq!(
        read(
            "2026-03-01T09:00:00+00:00",
            "2026-03-01T09:05:00+00:00",
            "2026-12-10T13:33:22Z"
        ),
        of("2026-03-01T09:00:00Z", "2026-03-01T09:05:00Z")
    );
}

#[test]
fn what_is_no_session_is_an_error_that_names_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("session_20251210_140322_5a1b2c3d.json");
    for text in ["{", "[]", r#"{"metadata":7}"#] {
        std::fs::write(&file, text).unwrap();
        let problem = read_meta(&file).unwrap_err();
        assert_eq!(problem.path.as_ref(), Some(&file));
        assert!(!problem.message.is_empty());
        assert!(messages(&file, 10).is_err(), "{text}");
    }
    let problem = read_meta(&dir.path().join(MESSAGES)).unwrap_err();
    assert_eq!(problem.path, Some(dir.path().join("meta.json")));
}
