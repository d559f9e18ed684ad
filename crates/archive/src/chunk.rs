//! Chunks: how they are called, and those that are still files of ours.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use core::fmt;
use core::str::FromStr;

use bytes::Bytes;
use namecast_packet::Name;
use namecast_units::{Instant, Timestamp};

use crate::index::{ChunkIndex, Place, Summary};
use crate::positional::read_exact_at;

/// Name of a chunk: when it was begun, and by whom, so that several archives may share a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChunkId {
    /// Wall clock when it was begun, as far as that was known, and later than that of every chunk known then.
    pub begun_at: Timestamp,
    /// Number of the writer; writers choose theirs at random.
    pub writer: u32,
}

impl fmt::Display for ChunkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}-{:08x}", self.begun_at.as_micros(), self.writer)
    }
}

impl FromStr for ChunkId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (begun_at, writer) = text.split_once('-').ok_or(())?;
        let id = Self {
            begun_at: Timestamp::from_micros(u64::from_str_radix(begun_at, 16).map_err(drop)?),
            writer: u32::from_str_radix(writer, 16).map_err(drop)?,
        };
        // One spelling each, so that no two files are the same chunk.
        (id.to_string() == text).then_some(id).ok_or(())
    }
}

/// A chunk that is a file of ours: being written, or written and not sealed yet.
#[derive(Debug)]
pub(crate) struct Local {
    /// Open as long as anybody reads, wherever the file goes meanwhile.
    pub file: Arc<File>,
    pub path: PathBuf,
    /// What was synced.
    pub index: Arc<ChunkIndex>,
    pub length: u64,
    /// When it was begun, by the monotonic clock; `None` if it was found at opening.
    pub received_at: Option<Instant>,
    /// Nobody writes to it any more.
    pub is_finished: bool,
}

/// A chunk in the directory or bucket.
#[derive(Debug)]
pub(crate) struct Sealed {
    pub summary: Summary,
    pub length: u64,
    /// When it was begun or first seen, by the monotonic clock; `None` if it was found at opening.
    pub received_at: Option<Instant>,
}

impl Sealed {
    /// Returns whether it holds an object whose name starts with `prefix`.
    pub(crate) fn holds(&self, prefix: &Name) -> bool {
        let mut names = self.summary.objects.iter();
        names.any(|name| prefix.is_prefix_of(name))
    }
}

/// Returns the octets of a record in a local chunk.
pub(crate) fn read_at(file: &File, place: Place) -> io::Result<Bytes> {
    let mut octets = vec![0; place.length as usize];
    read_exact_at(file, &mut octets, place.offset)?;
    Ok(octets.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_sort_by_time_and_have_one_spelling() {
        let id = |micros, writer| ChunkId {
            begun_at: Timestamp::from_micros(micros),
            writer,
        };
        assert_eq!(id(0xab, 5).to_string(), "00000000000000ab-00000005");
        assert_eq!("00000000000000ab-00000005".parse(), Ok(id(0xab, 5)));
        for wrong in ["", "ab-5", "00000000000000AB-00000005", "x-y"] {
            assert_eq!(wrong.parse::<ChunkId>(), Err(()), "{wrong}");
        }
        assert!(id(9, 7) < id(10, 0));
        assert!(id(9, 7).to_string() < id(10, 0).to_string());
    }
}
