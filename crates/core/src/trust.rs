//! Who may have written a claim's file.

use whosup_sidecar::file::FileFacts;

use crate::agents::Home;
use crate::claim::Trust;
use crate::machine::Machine;

/// Everybody may write (`S_IWOTH`, inode(7)).
const WRITABLE_BY_EVERYBODY: u32 = 0o002;

/// Judges a file by its owner and mode: trusted if it belongs to the owner of
/// the agent's home, to root or to ourselves, and not everybody may write it.
///
/// Where a platform or file system has no owners and modes, there is nothing
/// to distrust.
#[must_use]
pub fn trust_of(facts: &FileFacts, home: &Home, machine: &Machine) -> Trust {
    if !machine.mounts().has_modes(&home.root) {
        return Trust::Trusted;
    }
    if let Some(mode) = facts.mode
        && mode & WRITABLE_BY_EVERYBODY != 0
    {
        return Trust::Untrusted {
            because: "everybody may write this file".to_owned(),
        };
    }
    let Some(uid) = facts.uid else {
        return Trust::Trusted;
    };
    let ours = machine.table().view().uid.as_ref().ok().copied();
    if uid == 0 || Some(uid) == home.owner_uid || Some(uid) == ours {
        return Trust::Trusted;
    }
    Trust::Untrusted {
        because: format!(
            "it belongs to user {uid}, who does not own `{}`",
            home.root.display()
        ),
    }
}
