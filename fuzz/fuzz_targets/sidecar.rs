//! A sidecar is parsed or refused with a reason, and what is parsed is sound.

#![no_main]

use libfuzzer_sys::fuzz_target;
use whosup_sidecar::{SessionId, SidecarPid, StrictObject, parse_sidecar};

fuzz_target!(|bytes: &[u8]| {
    match parse_sidecar(bytes) {
        Ok(sidecar) => {
            assert!(SessionId::parse(sidecar.session_id.as_str()).is_ok());
            if let SidecarPid::Process(pid) = sidecar.pid {
                assert!(pid.get() > 0);
            }
            assert!(std::str::from_utf8(bytes).is_ok(), "no UTF-8, and read");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    if let Ok(object) = StrictObject::parse(bytes) {
        for key in object.keys() {
            let _ = object.opt_string(key);
            let _ = object.opt_integer(key);
            let _ = object.opt_number(key);
            let _ = object.opt_pid_or_zero(key);
            let _ = object.opt_strings(key);
            let _ = object.opt_object(key);
        }
    }
});
