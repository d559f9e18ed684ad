//! Files on this machine's disks.

use std::io::Read;
use std::path::Path;

use sha2::{Digest, Sha256};

/// Octets read at a time.
pub(super) const BLOCK: usize = 1 << 16;

/// Reads to the end. Returns the digest of what was read, and how much it was.
pub(super) fn digest(file: &mut impl Read) -> std::io::Result<(Sha256, u64)> {
    let mut digest = Sha256::new();
    let mut size = 0;
    let mut block = vec![0; BLOCK];
    loop {
        let count = file.read(&mut block)?;
        if count == 0 {
            return Ok((digest, size));
        }
        digest.update(&block[..count]);
        size += count as u64;
    }
}

/// Returns the octets that this user may still write into a directory, where the system says so.
#[cfg(unix)]
pub(super) fn free_space(directory: &Path) -> Option<u64> {
    let space = rustix::fs::statvfs(directory).ok()?;
    Some(space.f_bavail.saturating_mul(space.f_frsize))
}
#[cfg(not(unix))]
pub(super) const fn free_space(_: &Path) -> Option<u64> {
    None
}
