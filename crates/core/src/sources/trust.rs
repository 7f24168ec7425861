//! Who may have written a claim's file.

use whosup_sidecar::file::FileFacts;

use crate::adapter::Home;
use crate::adapter::claim::Trust;
use crate::machine::Machine;

/// Everyone may write (`S_IWOTH`, inode(7)).
const WORLD_WRITABLE: u32 = 0o002;

/// Judges a file by its owner and mode: trusted if it belongs to the owner of the agent's
/// home, to root or to the user, and is not world-writable.
///
/// Where a platform or file system has no owners and modes, there is nothing
/// to distrust.
#[must_use]
pub fn trust_of(facts: &FileFacts, home: &Home, machine: &Machine) -> Trust {
    match reason_to_distrust(facts, home, machine) {
        // Asked last: it is the same for all files of a home.
        Some(because) if machine.mounts().has_modes(&home.root) => Trust::Untrusted { because },
        _ => Trust::Trusted,
    }
}

fn reason_to_distrust(facts: &FileFacts, home: &Home, machine: &Machine) -> Option<String> {
    if let Some(mode) = facts.mode
        && mode & WORLD_WRITABLE != 0
    {
        return Some("everybody may write this file".to_owned());
    }
    let uid = facts.uid?;
    let ours = machine.table().view().uid.as_ref().ok().copied();
    if uid == 0 || Some(uid) == home.owner_uid || Some(uid) == ours {
        return None;
    }
    Some(format!(
        "it belongs to user {uid}, who does not own `{}`",
        home.root.display()
    ))
}
