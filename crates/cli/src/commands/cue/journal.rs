//! Journal of a device: the identity of each executed cue, one a line, on the disk before the cue is executed.

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use anyhow::Context;
use namecast_apps::cues::CueId;

/// Identities that are read: of a longer file, the last ones.
const MAX_READ: usize = 100_000;

/// An open journal.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
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
        file.set_len(whole as u64)?;
        file.seek(SeekFrom::End(0))?;
        Ok((Self { file }, executed))
    }

    /// Writes an identity, and returns once the disk has it.
    ///
    /// # Errors
    /// If the disk does not take it: the cue must not be executed.
    pub(super) fn write(&mut self, id: CueId) -> anyhow::Result<()> {
        let line = format!("{id}\n");
        let written = self.file.write_all(line.as_bytes());
        let written = written.and_then(|()| self.file.sync_data());
        written.context("cannot write the journal: the cue is not executed")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
