//! The table of contents of an object of files, which the sender signs.
//!
//! ```json
//! {"version": 81985529216486895, "segment_size": 3776, "coding": {"block": 16384, "parity": 49152},
//!  "files": [{"path": "photos/a.jpg", "size": 183421, "sha256": "9f86…"}, …]}
//! ```
//!
//! The content of the object is that of all files, one after the other. Paths come from strangers: they are relative, without `..`, links
//! and equal names, so that whoever writes them below a directory writes nowhere else.

use std::collections::BTreeSet;

use namecast_packet::hex_decode;
use serde::{Deserialize, Serialize};

use super::coding::{Coding, MAX_BLOCK, MAX_PARITY, SHARD_UNIT};

/// Largest table, in octets.
pub(super) const MAX_TABLE: usize = 16 << 20;
/// Most segments of an object, parity included: the bits for each take 1 GiB.
const MAX_SEGMENTS: u64 = 1 << 33;
/// Largest content of a segment, in octets.
const MAX_SEGMENT_SIZE: u32 = 8_000;
/// Octets of the longest path, and of the longest name in it: what file systems take.
const MAX_PATH: usize = 4_000;
const MAX_PART: usize = 255;

/// One file of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Where it belongs, parts separated by `/`.
    pub path: String,
    /// Its size in octets.
    pub size: u64,
    /// SHA-256 of its content, in 64 hexadecimal digits.
    pub sha256: String,
}

/// The table of contents of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents {
    /// Version of the object, which follows from its content.
    pub version: u64,
    /// Content of each segment but the last, in octets.
    pub segment_size: u32,
    /// Parity that is available; `None`: none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coding: Option<Coding>,
    /// The files, in the order in which their content follows.
    pub files: Vec<FileEntry>,
}

/// Why a table of contents is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContentsError {
    /// It is no such table.
    #[error("the table of contents is damaged: {0}")]
    Malformed(String),
    /// A path leads elsewhere, or is none.
    #[error(
        "the path {0:?} is refused: expected a relative path without '..', links or control characters"
    )]
    Path(String),
    /// Two files have one path, or a file is where another has a directory.
    #[error("the path {0:?} is in the table twice")]
    Twice(String),
    /// A number is out of bounds.
    #[error("the table of contents names a wrong {0}")]
    Number(&'static str),
}

impl Contents {
    /// Reads a table.
    ///
    /// # Errors
    /// If it is none, or its files cannot be written without harm.
    pub fn decode(octets: &[u8]) -> Result<Self, ContentsError> {
        if octets.len() > MAX_TABLE {
            return Err(ContentsError::Number("size of itself"));
        }
        let contents: Self = serde_json::from_slice(octets)
            .map_err(|error| ContentsError::Malformed(error.to_string()))?;
        contents.check()?;
        Ok(contents)
    }

    /// Returns the table as it is sent.
    ///
    /// # Errors
    /// If a reader would refuse it.
    pub fn encode(&self) -> Result<Vec<u8>, ContentsError> {
        self.check()?;
        let octets = serde_json::to_vec(self)
            .map_err(|error| ContentsError::Malformed(error.to_string()))?;
        match octets.len() > MAX_TABLE {
            true => Err(ContentsError::Number("size of itself: send fewer files")),
            false => Ok(octets),
        }
    }

    fn check(&self) -> Result<(), ContentsError> {
        if !(1..=MAX_SEGMENT_SIZE).contains(&self.segment_size) {
            return Err(ContentsError::Number("segment size"));
        }
        let mut sizes = self.files.iter().map(|file| file.size);
        let size = sizes.try_fold(0_u64, |sum, size| sum.checked_add(size));
        let segments = size.map(|size| size.div_ceil(u64::from(self.segment_size)));
        if segments.is_none_or(|segments| segments > MAX_SEGMENTS / 4) {
            return Err(ContentsError::Number("size"));
        }
        if let Some(coding) = &self.coding {
            let is_sound = (1..=MAX_BLOCK).contains(&coding.block)
                && (1..=MAX_PARITY).contains(&coding.parity)
                && (self.segment_size as usize).is_multiple_of(SHARD_UNIT)
                && self.total() <= MAX_SEGMENTS
                && coding.is_supported();
            if !is_sound {
                return Err(ContentsError::Number("block or parity"));
            }
        }
        self.check_files()
    }

    fn check_files(&self) -> Result<(), ContentsError> {
        if self.files.is_empty() {
            return Err(ContentsError::Number("count of files"));
        }
        let mut files = BTreeSet::new();
        let mut directories = BTreeSet::new();
        for FileEntry { path, sha256, .. } in &self.files {
            if !is_harmless(path) {
                return Err(ContentsError::Path(path.clone()));
            }
            if hex_decode(sha256).is_none_or(|digest| digest.len() != 32) {
                return Err(ContentsError::Number("SHA-256"));
            }
            let parents = path.match_indices('/').map(|(at, _)| &path[..at]);
            directories.extend(parents);
            if !files.insert(path.as_str()) {
                return Err(ContentsError::Twice(path.clone()));
            }
        }
        match files.intersection(&directories).next() {
            Some(path) => Err(ContentsError::Twice((*path).to_owned())),
            None => Ok(()),
        }
    }

    /// Returns the octets of all files.
    pub fn size(&self) -> u64 {
        self.files.iter().map(|file| file.size).sum()
    }

    /// Returns the number of segments with content: at least 1.
    pub fn segments(&self) -> u64 {
        self.size().div_ceil(u64::from(self.segment_size)).max(1)
    }

    /// Returns the number of segments, parity included.
    pub fn total(&self) -> u64 {
        let segments = self.segments();
        let parity = self
            .coding
            .map(|it| it.blocks(segments) * u64::from(it.parity));
        segments + parity.unwrap_or(0)
    }

    /// Returns where the content of segment `number` begins, and how many octets it has. Parity has whole segments.
    pub fn span(&self, number: u64) -> (u64, usize) {
        let size = u64::from(self.segment_size);
        let offset = number.saturating_mul(size);
        let length = match number < self.segments() {
            true => self.size().saturating_sub(offset).min(size),
            false => size,
        };
        (offset, usize::try_from(length).unwrap_or(0))
    }
}

/// Whether a path can be written below any directory without harm: in what it names, and in what a terminal shows.
fn is_harmless(path: &str) -> bool {
    let is_part = |part: &str| {
        let is_name = !part.is_empty() && part != "." && part != "..";
        is_name && part.len() <= MAX_PART && !part.contains(['\\', ':'])
    };
    path.len() <= MAX_PATH && path.split('/').all(is_part) && !path.chars().any(char::is_control)
}

#[cfg(test)]
pub(super) mod tests {
    use namecast_units::Random;

    use super::*;

    pub(in crate::object::transfer) fn contents(files: &[(&str, u64)]) -> Contents {
        let files = files.iter().map(|&(path, size)| FileEntry {
            path: path.to_owned(),
            size,
            sha256: "ab".repeat(32),
        });
        Contents {
            version: 7,
            segment_size: 3_776,
            coding: None,
            files: files.collect(),
        }
    }

    #[test]
    fn a_table_comes_back_as_it_was() {
        let mut table = contents(&[("a/b.txt", 4_000), ("a/c", 0), ("d", 3_600)]);
        table.coding = Some(Coding {
            block: 2,
            parity: 6,
        });
        let octets = table.encode().unwrap();
        assert_eq!(Contents::decode(&octets).unwrap(), table);
        // 7600 octets: segments of 3776, 3776 and 48; two blocks of parity.
        assert_eq!(
            (table.size(), table.segments(), table.total()),
            (7_600, 3, 15)
        );
        assert_eq!(table.span(2), (7_552, 48));
        assert_eq!(table.span(3).1, 3_776);
    }

    /// Tables with some octets changed at random are refused, or are harmless and can be sent.
    #[test]
    fn damaged_tables_are_refused_or_harmless() {
        let table = contents(&[("a/b.txt", 9_000), ("a/c", 0), ("d", 77)]);
        let octets = table.encode().unwrap();
        let mut read = 0;
        for seed in 0..20_000 {
            let mut random = Random::from_seed(seed);
            let mut damaged = octets.clone();
            for _ in 0..=random.below(3) {
                let at = random.below(damaged.len() as u64) as usize;
                damaged[at] = b"0123456789/.\"{}[]:,\\ \n\0a"[random.below(24) as usize];
            }
            let Ok(contents) = Contents::decode(&damaged) else {
                continue;
            };
            read += 1;
            assert!(contents.files.iter().all(|it| is_harmless(&it.path)));
            assert!(contents.encode().is_ok() && contents.total() <= MAX_SEGMENTS);
            let last = contents.segments() - 1;
            let (offset, length) = contents.span(last);
            assert_eq!(offset + length as u64, contents.size(), "seed {seed}");
        }
        assert!((1..20_000).contains(&read), "{read}");
    }

    #[test]
    fn an_empty_file_has_one_segment() {
        let table = contents(&[("empty", 0)]);
        assert_eq!((table.segments(), table.span(0)), (1, (0, 0)));
    }

    #[test]
    fn paths_that_lead_elsewhere_are_refused() {
        for path in [
            "",
            "/etc/passwd",
            "..",
            "a/../b",
            "a//b",
            "./a",
            "a/",
            "c:\\x",
            "a\\b",
            "a\u{1b}[2J",
            "a\nb",
            &"a".repeat(256),
            &"a/".repeat(2_001),
        ] {
            let error = contents(&[(path, 1)]).encode().unwrap_err();
            assert_eq!(error, ContentsError::Path(path.to_owned()));
        }
        for twice in [["a", "a"], ["a", "a/b"], ["a/b/c", "a/b"]] {
            let files = twice.map(|path| (path, 1));
            let error = contents(&files).encode().unwrap_err();
            assert!(matches!(error, ContentsError::Twice(_)), "{error}");
        }
    }

    #[test]
    fn numbers_out_of_bounds_are_refused() {
        let refused = |change: fn(&mut Contents)| {
            let mut table = contents(&[("a", 100)]);
            change(&mut table);
            let octets = serde_json::to_vec(&table).unwrap();
            Contents::decode(&octets).unwrap_err()
        };
        let wrong: [fn(&mut Contents); 7] = [
            |it| it.segment_size = 0,
            |it| it.segment_size = 8_001,
            |it| it.files[0].size = u64::MAX,
            |it| it.files.clear(),
            |it| it.files[0].sha256 = "ab".to_owned(),
            |it| {
                it.coding = Some(Coding {
                    block: 16_385,
                    parity: 1,
                })
            },
            |it| {
                it.coding = Some(Coding {
                    block: 1,
                    parity: 65_536,
                })
            },
        ];
        for change in wrong {
            let error = refused(change);
            assert!(matches!(error, ContentsError::Number(_)), "{error}");
        }
        let two = contents(&[("a", u64::MAX), ("b", 2)]);
        let octets = serde_json::to_vec(&two).unwrap();
        assert_eq!(
            Contents::decode(&octets),
            Err(ContentsError::Number("size"))
        );
        assert!(Contents::decode(b"[]").is_err());
    }
}
