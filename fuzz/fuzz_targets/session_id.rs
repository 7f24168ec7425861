//! An id that is let through is the name of a file in its directory, and of no other.

#![no_main]

use std::path::{Component, Path};

use libfuzzer_sys::fuzz_target;
use whosup_sidecar::{AgentId, SessionId};

fuzz_target!(|text: &str| {
    if let Ok(id) = SessionId::parse(text) {
        assert_eq!(id.as_str(), text);
        is_plain_name(text);
        is_plain_name(&format!("{text}.json"));
    }
    if let Ok(agent) = AgentId::parse(text) {
        assert_eq!(agent.as_str(), text);
        is_plain_name(text);
    }
});

fn is_plain_name(text: &str) {
    let mut parts = Path::new(text).components();
    assert!(matches!(parts.next(), Some(Component::Normal(name)) if name == text));
    assert!(parts.next().is_none());
    assert!(!text.contains(['/', '\\', '\0']) && text.len() <= 255);
}
