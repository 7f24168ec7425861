//! An event log folds to a record whatever is in it, the same twice, and the
//! record is read again as it was written.

#![no_main]

use libfuzzer_sys::fuzz_target;
use whosup_core::sources::record::{fold, parse_line, parse_record};
use whosup_sidecar::{AgentId, SessionId};

fuzz_target!(|bytes: &[u8]| {
    let agent = AgentId::from_static("codex");
    let session = SessionId::parse("s-1").expect("an id");
    let folded = fold(&agent, &session, bytes);
    let again = fold(&agent, &session, bytes);
    assert_eq!(folded.record, again.record);
    if let Some(record) = &folded.record {
        let text = record.to_json().to_string();
        let read = parse_record(text.as_bytes()).expect("what was written is read");
        assert_eq!(&read, record);
    }
    // Twice is the same as once.
    let mut doubled = bytes.to_vec();
    doubled.push(b'\n');
    let once = fold(&agent, &session, &doubled);
    doubled.extend_from_within(..);
    let twice = fold(&agent, &session, &doubled);
    let phase = |folded: &whosup_core::sources::record::Folded| {
        folded.record.as_ref().map(|record| (record.phase, record.heard.turns))
    };
    if once.last_ids.len() < 64 {
        assert_eq!(phase(&once), phase(&twice));
    }
    for line in bytes.split(|byte| *byte == b'\n') {
        let _ = parse_line(line);
    }
    let _ = parse_record(bytes);
});
