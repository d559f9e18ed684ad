//! Journal of a device: the identity of each executed cue, one a line, on the disk before the cue is executed.

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use anyhow::Context;
use namecast_apps::cues::CueId;

/// Identities that are read: of a longer file, the last ones.
const MAX_READ: usize = 100_000;

/// What a journal is written to.
pub(super) trait Disk {
    /// Appends octets, and returns once the disk has them.
    fn append(&mut self, octets: &[u8]) -> std::io::Result<()>;

    /// Removes all octets behind the first `length`.
    fn cut(&mut self, length: u64) -> std::io::Result<()>;
}

impl Disk for File {
    fn append(&mut self, octets: &[u8]) -> std::io::Result<()> {
        self.write_all(octets)?;
        self.sync_data()
    }

    fn cut(&mut self, length: u64) -> std::io::Result<()> {
        self.set_len(length)?;
        self.seek(SeekFrom::Start(length)).map(drop)
    }
}

/// An open journal.
#[derive(Debug)]
pub(super) struct Journal<D = File> {
    disk: D,
    /// Octets of whole lines.
    length: u64,
}

impl Journal {
    /// Opens the journal at `path`, or makes it. Returns its identities, too. A last line that was not written whole is dropped.
    pub(super) fn open(path: &Path) -> anyhow::Result<(Self, Vec<CueId>)> {
        let shown = path.display();
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error).with_context(|| format!("cannot read {shown}")),
        };
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let lines = text[..whole].lines().enumerate();
        let executed = lines.map(|(number, line)| {
            let id = line.parse::<CueId>();
            id.with_context(|| format!("{shown}:{}: no journal of a device", number + 1))
        });
        let mut executed = executed.collect::<anyhow::Result<Vec<_>>>()?;
        executed.drain(..executed.len().saturating_sub(MAX_READ));
        let options = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path);
        let mut file = options.with_context(|| format!("cannot write {shown}"))?;
        let length = whole as u64;
        file.cut(length)?;
        Ok((Self { disk: file, length }, executed))
    }
}

impl<D: Disk> Journal<D> {
    /// Writes an identity, and returns once the disk has it. A line that was not written whole is removed, before the next one at the latest.
    ///
    /// # Errors
    /// If the disk does not take it: the cue must not be executed.
    pub(super) fn write(&mut self, id: CueId) -> anyhow::Result<()> {
        let line = format!("{id}\n");
        // What a failure left, if removing it failed, too.
        let cut = self.disk.cut(self.length);
        let written = cut.and_then(|()| self.disk.append(line.as_bytes()));
        match written {
            Ok(()) => {
                self.length += line.len() as u64;
                Ok(())
            }
            Err(error) => {
                let _ = self.disk.cut(self.length);
                Err(error).context("cannot write the journal: the cue is not executed")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk with room for so many octets, some of which it takes before it fails.
    struct Full {
        octets: Vec<u8>,
        room: usize,
    }

    impl Disk for Full {
        fn append(&mut self, octets: &[u8]) -> std::io::Result<()> {
            let taken = octets.len().min(self.room - self.octets.len());
            self.octets.extend_from_slice(&octets[..taken]);
            match taken == octets.len() {
                true => Ok(()),
                false => Err(std::io::ErrorKind::StorageFull.into()),
            }
        }

        fn cut(&mut self, length: u64) -> std::io::Result<()> {
            self.octets.truncate(usize::try_from(length).unwrap());
            Ok(())
        }
    }

    /// 33 octets a line: of the second, seven fit. It is refused and leaves nothing; once there is room, the journal has whole lines.
    #[test]
    fn a_full_disk_leaves_no_half_line() {
        let disk = Full {
            octets: Vec::new(),
            room: 40,
        };
        let mut journal = Journal { disk, length: 0 };
        journal.write(CueId([1; 16])).unwrap();
        let refused = journal.write(CueId([2; 16])).unwrap_err();
        assert!(refused.to_string().contains("the cue is not executed"));
        assert_eq!(journal.disk.octets.len(), 33);
        journal.disk.room = 66;
        journal.write(CueId([3; 16])).unwrap();
        let whole = format!("{}\n{}\n", CueId([1; 16]), CueId([3; 16]));
        assert_eq!(journal.disk.octets, whole.as_bytes());
    }

    #[test]
    fn what_was_executed_is_read_again_and_half_a_line_is_dropped() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        let (mut journal, executed) = Journal::open(&path).unwrap();
        assert!(executed.is_empty());
        journal.write(CueId([1; 16])).unwrap();
        journal.write(CueId([2; 16])).unwrap();
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, [&whole[..], b"030303"].concat()).unwrap();
        let (mut journal, executed) = Journal::open(&path).unwrap();
        assert_eq!(executed, [CueId([1; 16]), CueId([2; 16])]);
        journal.write(CueId([3; 16])).unwrap();
        let (_, executed) = Journal::open(&path).unwrap();
        assert_eq!(executed.len(), 3);
        std::fs::write(&path, "hello\n").unwrap();
        let refused = format!("{:#}", Journal::open(&path).unwrap_err());
        assert!(
            refused.contains("journal:1: no journal of a device"),
            "{refused}"
        );
    }
}
