//! What an agent's hook says is understood or refused with a reason.

#![no_main]

use libfuzzer_sys::fuzz_target;
use whosup_core::sources::agents::AGENTS;

fuzz_target!(|bytes: &[u8]| {
    for adapter in AGENTS {
        let Some(hooks) = adapter.profile().hooks else { continue };
        for named in [None, hooks.events.first().copied()] {
            if let Err(error) = hooks.parse(bytes, named) {
                assert!(!error.to_string().is_empty());
            }
        }
    }
});
