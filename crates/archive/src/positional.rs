//! Reads and writes at a place in a file, wherever its cursor is.

use std::fs::File;
use std::io;

#[cfg(unix)]
use std::os::unix::fs::FileExt;
#[cfg(windows)]
use std::os::windows::fs::FileExt;

/// Fills `octets` from `offset` on.
#[cfg(unix)]
pub(crate) fn read_exact_at(file: &File, octets: &mut [u8], offset: u64) -> io::Result<()> {
    file.read_exact_at(octets, offset)
}

/// Writes all `octets` from `offset` on.
#[cfg(unix)]
pub(crate) fn write_all_at(file: &File, octets: &[u8], offset: u64) -> io::Result<()> {
    file.write_all_at(octets, offset)
}

/// Fills `octets` from `offset` on.
#[cfg(windows)]
pub(crate) fn read_exact_at(file: &File, mut octets: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !octets.is_empty() {
        match file.seek_read(octets, offset)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => {
                octets = &mut octets[count..];
                offset += count as u64;
            }
        }
    }
    Ok(())
}

/// Writes all `octets` from `offset` on.
#[cfg(windows)]
pub(crate) fn write_all_at(file: &File, mut octets: &[u8], mut offset: u64) -> io::Result<()> {
    while !octets.is_empty() {
        match file.seek_write(octets, offset)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            count => {
                octets = &octets[count..];
                offset += count as u64;
            }
        }
    }
    Ok(())
}
