//! A list of mounts, whatever is in it, places every path somewhere.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use whosup_core::machine::mounts::Mounts;

fuzz_target!(|bytes: &[u8]| {
    let mounts = Mounts::parse(bytes);
    for path in ["/", "/home/dev/.claude", "relative", "/mnt/a b"] {
        let _ = mounts.placement_of(Path::new(path));
        let _ = mounts.has_modes(Path::new(path));
    }
});
