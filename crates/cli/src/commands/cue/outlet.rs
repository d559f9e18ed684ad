//! Publishes messages, and appends each to the log as it was signed.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use anyhow::Context;
use namecast::Publication;
use namecast_command::report::print_error;
use namecast_packet::Data;

/// Messages of this desk or device.
pub(super) struct Outlet {
    publication: Publication,
    log: Option<LogFile>,
}

/// A log: packets, one behind another.
#[derive(Debug)]
struct LogFile {
    file: File,
    /// Whether the last packets could not be appended, which was printed.
    fails: bool,
}

impl Outlet {
    /// Appends to the log at `path`, if there is one.
    ///
    /// # Errors
    /// If the log cannot be opened.
    pub(super) fn new(publication: Publication, path: Option<&Path>) -> anyhow::Result<Self> {
        let mut log = path.map(LogFile::open).transpose()?;
        if let Some(log) = &mut log {
            log.append(&[publication.certificate().data().clone()]);
        }
        Ok(Self { publication, log })
    }

    /// Publishes a message of `stream`.
    ///
    /// # Errors
    /// If it is too large, or the node has stopped.
    pub(super) async fn send(&mut self, stream: &str, message: Vec<u8>) -> anyhow::Result<()> {
        self.publication.send(stream, message).await?;
        if let Some(log) = &mut self.log {
            log.append(&self.publication.newest_sample(stream).await?);
        }
        Ok(())
    }
}

impl LogFile {
    fn open(path: &Path) -> anyhow::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path);
        let file = file.with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { file, fails: false })
    }

    /// A show does not end with its log: a failure is printed, once until it is over.
    fn append(&mut self, packets: &[Data]) {
        let octets: Vec<u8> = packets
            .iter()
            .flat_map(|data| &data.wire()[..])
            .copied()
            .collect();
        let written = self.file.write_all(&octets);
        if let Err(error) = &written
            && !self.fails
        {
            print_error(format_args!("the log is not written: {error}"));
        }
        self.fails = written.is_err();
    }
}
