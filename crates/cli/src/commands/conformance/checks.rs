//! The checks, in the order in which they are made.

mod ending;
mod fields;
mod odd;
mod several;

use super::burst;
use super::check::Check;

/// Every check. `docs/conformance.md` describes each one, which a test holds.
pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "fields",
        name: "a session has one sidecar, with every field",
        run: fields::fields,
    },
    Check {
        id: "identity",
        name: "the process is named so that no other can be meant",
        run: fields::identity,
    },
    Check {
        id: "name",
        name: "the file has a name that readers look for",
        run: fields::name,
    },
    Check {
        id: "mode",
        name: "only its owner may read the file",
        run: fields::mode,
    },
    Check {
        id: "switch",
        name: "a switch leaves the new session's file alone",
        run: fields::switch,
    },
    Check {
        id: "burst",
        name: "in a burst every file is whole and one is there",
        run: burst::whole_and_never_missing,
    },
    Check {
        id: "strays",
        name: "a burst leaves no temporary file",
        run: burst::no_stray_files,
    },
    Check {
        id: "second",
        name: "a second process leaves the first one's file alone",
        run: several::second_process,
    },
    Check {
        id: "second-end",
        name: "a second process's end leaves the first one's file",
        run: several::second_ends,
    },
    Check {
        id: "takeover",
        name: "a dead process's claim is taken over",
        run: several::taken_over,
    },
    Check {
        id: "takeover-at-once",
        name: "of several that take it over at once each has one",
        run: several::taken_over_at_once,
    },
    Check {
        id: "exit",
        name: "an end leaves nothing that is not whole",
        run: ending::exit,
    },
    Check {
        id: "crash",
        name: "a crash leaves nothing that is not whole",
        run: ending::crash,
    },
    Check {
        id: "kill",
        name: "a kill at any point leaves nothing for the next one",
        run: ending::killed,
    },
    Check {
        id: "ids",
        name: "odd ids and directories are written as they are",
        run: odd::odd_ids,
    },
    Check {
        id: "refused-ids",
        name: "ids that could leave their directory are refused",
        run: odd::refused_ids,
    },
    Check {
        id: "read-only",
        name: "a directory that may not be written is survived",
        run: odd::read_only,
    },
    Check {
        id: "phase",
        name: "a phase is written whole (optional)",
        run: ending::phase,
    },
    Check {
        id: "release",
        name: "a release removes the file (optional)",
        run: ending::release,
    },
];

#[cfg(test)]
mod tests {
    use super::CHECKS;

    #[test]
    fn every_check_is_described() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/conformance.md");
        let text = std::fs::read_to_string(path).unwrap();
        for check in CHECKS {
            assert!(
                text.contains(&format!("\n| {} | ", check.name)),
                "{}",
                check.name
            );
        }
    }
}
