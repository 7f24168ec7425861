//! Kinds of file systems, by the names that the kernel has for them.

/// File systems that other machines may also write to.
const NETWORK: &[&str] = &[
    "9p",
    "afs",
    "beegfs",
    "ceph",
    "cifs",
    "coda",
    "drvfs",
    "gfs2",
    "glusterfs",
    "gpfs",
    "lustre",
    "ncpfs",
    "nfs",
    "nfs4",
    "ocfs2",
    "orangefs",
    "pvfs2",
    "smb3",
    "smbfs",
    "vboxsf",
    "virtiofs",
];

/// FUSE file systems that a process of this machine serves from local disks. (Those on
/// block devices are `fuseblk`, which is no `fuse`.)
const LOCAL_FUSE: &[&str] = &["fuse.fuse-overlayfs"];

/// Returns whether other machines may write to a file system of this kind.
#[must_use]
pub fn is_network(kind: &str) -> bool {
    NETWORK.contains(&kind)
}

/// Returns whether a file system of this kind is served by a program.
#[must_use]
pub fn is_fuse(kind: &str) -> bool {
    kind == "fuse" || kind.starts_with("fuse.")
}

/// Returns whether something is mounted in a file system of this kind once a name in it is
/// touched.
#[must_use]
pub fn is_automount(kind: &str) -> bool {
    kind == "autofs"
}

/// Returns whether an access to a file on a file system of this kind may block for ever:
/// a server, a program or an automount has to answer.
#[must_use]
pub fn may_hang(kind: &str) -> bool {
    let is_remote_fuse = is_fuse(kind) && !LOCAL_FUSE.contains(&kind);
    is_network(kind) || is_automount(kind) || is_remote_fuse
}

#[cfg(test)]
mod tests {
    use super::may_hang;

    #[test]
    fn what_a_server_or_a_program_has_to_answer_for_may_hang() {
        for kind in ["nfs4", "cifs", "9p", "autofs", "fuse", "fuse.sshfs"] {
            assert!(may_hang(kind), "{kind}");
        }
        let local = [
            "ext4",
            "btrfs",
            "overlay",
            "tmpfs",
            "fuseblk",
            "fuse.fuse-overlayfs",
            "fusectl",
        ];
        for kind in local {
            assert!(!may_hang(kind), "{kind}");
        }
    }
}
