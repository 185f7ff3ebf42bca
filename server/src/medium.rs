//! Where a store lies, as far as it matters for forgetting.
//!
//! A key is erased by overwriting its block. On a file system that writes a changed block elsewhere, the old one
//! stays until its place is used again: `doctor` says so. What a drive does beneath its file system can't be seen.

use std::path::Path;

/// What is known of the file system at `path`, for its owner to read.
pub fn described(path: &Path) -> String {
    match kind(path) {
        Some((name, Overwrites::InPlace)) => {
            format!("on {name}, which overwrites blocks in place")
        }
        Some((name, Overwrites::Elsewhere)) => format!(
            "on {name}, which writes a changed block elsewhere: a key that was erased may lie beneath until its place \
             is used again. Keep the data directory on another file system, or on an encrypted disk (docs/deletion.md)"
        ),
        Some((name, Overwrites::Unknown)) => format!(
            "on {name}: whether an overwritten block is gone depends on what lies beneath (docs/deletion.md)"
        ),
        None => {
            "on a file system that is not known here: whether an overwritten block is gone depends on it \
                 (docs/deletion.md)"
                .to_owned()
        }
    }
}

/// Where an overwritten block goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Overwrites {
    InPlace,
    Elsewhere,
    Unknown,
}

/// The numbers are those of `statfs(2)`.
#[cfg(target_os = "linux")]
fn kind(path: &Path) -> Option<(&'static str, Overwrites)> {
    const KNOWN: [(u64, &str, Overwrites); 15] = [
        (0xEF53, "ext4", Overwrites::InPlace),
        (0x5846_5342, "xfs", Overwrites::InPlace),
        (0x0102_1994, "tmpfs", Overwrites::InPlace),
        (0x4D44, "FAT", Overwrites::InPlace),
        (0x2011_BAB0, "exFAT", Overwrites::InPlace),
        (0x9123_683E, "btrfs", Overwrites::Elsewhere),
        (0x2FC1_2FC1, "ZFS", Overwrites::Elsewhere),
        (0xCA45_1A4E, "bcachefs", Overwrites::Elsewhere),
        (0xF2F5_2010, "F2FS", Overwrites::Elsewhere),
        (0x3434, "NILFS", Overwrites::Elsewhere),
        (0x794C_7630, "overlayfs", Overwrites::Unknown),
        (0x6969, "NFS", Overwrites::Unknown),
        (0xFF53_4D42, "CIFS", Overwrites::Unknown),
        (0xFE53_4D42, "SMB", Overwrites::Unknown),
        (0x6573_5546, "FUSE", Overwrites::Unknown),
    ];
    let found = rustix::fs::statfs(path).ok()?.f_type as u64 & 0xFFFF_FFFF;
    KNOWN.iter().find(|(number, ..)| *number == found).map(|(_, name, overwrites)| (*name, *overwrites))
}

#[cfg(not(target_os = "linux"))]
fn kind(_path: &Path) -> Option<(&'static str, Overwrites)> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_that_is_known_is_named_and_one_that_is_not_there_is_not() {
        if Path::new("/dev/shm").is_dir() {
            assert_eq!(kind(Path::new("/dev/shm")), Some(("tmpfs", Overwrites::InPlace)));
        }
        assert_eq!(kind(Path::new("/nowhere/at/all")), None);
        assert!(described(Path::new("/nowhere/at/all")).contains("docs/deletion.md"));
    }
}
