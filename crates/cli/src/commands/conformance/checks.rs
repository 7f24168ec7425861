//! The checks, in the order in which they run.

mod claims;
mod ending;
#[cfg(target_os = "linux")]
mod events;
#[cfg(not(target_os = "linux"))]
#[path = "checks/events/other.rs"]
mod events;
mod fields;
mod left_overs;
mod odd;
mod place;
mod several;
mod surroundings;

use super::burst;
use super::check::Check;

/// Every check. A test compares the list with `docs/conformance.md`.
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
        id: "odd-name",
        name: "a program with an odd name is named right",
        run: surroundings::odd_name,
    },
    Check {
        id: "other-clock",
        name: "in a time namespace it leaves out its start",
        run: surroundings::other_clock,
    },
    Check {
        id: "name",
        name: "the file has a name that readers look for",
        run: place::name,
    },
    Check {
        id: "mode",
        name: "only its owner may read file and directory",
        run: place::mode,
    },
    Check {
        id: "place",
        name: "the common place is where it should be",
        run: place::common_place,
    },
    Check {
        id: "temporary",
        name: "temporary files have names that others clear",
        run: events::temporary,
    },
    Check {
        id: "unlocked",
        name: "no lock outlasts a call",
        run: place::unlocked,
    },
    Check {
        id: "switch",
        name: "a switch leaves the new session's file alone",
        run: fields::switch,
    },
    Check {
        id: "same",
        name: "a switch to the same session keeps its file",
        run: fields::same,
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
        id: "left",
        name: "a claim that may hold is left where it is",
        run: claims::left,
    },
    Check {
        id: "planted",
        name: "a claim that others may have written is left",
        run: claims::planted,
    },
    Check {
        id: "other-user",
        name: "another user's process counts as living",
        run: claims::other_user,
    },
    Check {
        id: "no-sidecar",
        name: "what is no sidecar is left and not waited for",
        run: claims::no_sidecar,
    },
    Check {
        id: "gone",
        name: "a claim whose process is gone is taken over",
        run: claims::gone,
    },
    Check {
        id: "own",
        name: "a process knows its own claim",
        run: claims::own,
    },
    Check {
        id: "swapped",
        name: "a file that another one wrote is left",
        run: claims::swapped,
    },
    Check {
        id: "takeover-changed",
        name: "a claim that changes before a takeover is left",
        run: events::taken_over,
    },
    Check {
        id: "name-taken",
        name: "a name that is taken meanwhile is left",
        run: events::name_taken,
    },
    Check {
        id: "left-overs",
        name: "what dead writers left goes, and nothing else",
        run: left_overs::cleared,
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
        id: "full",
        name: "a switch that can't be written ends the old file",
        run: surroundings::full_disk,
    },
    Check {
        id: "no-unicode",
        name: "a directory that is no Unicode is refused",
        run: surroundings::no_unicode,
    },
    Check {
        id: "phase",
        name: "a phase is written whole (optional)",
        run: ending::phase,
    },
    Check {
        id: "fork",
        name: "a forked child is refused (optional)",
        run: ending::fork,
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
            let row = format!("\n| {} | `{}` | ", check.name, check.id);
            assert!(text.contains(&row), "{row}");
        }
    }
}
