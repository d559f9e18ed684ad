//! Appends records to the open chunk.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use namecast_packet::{Data, Name};
use namecast_units::Instant;

use super::{Archive, Error};
use crate::chunk::{ChunkId, Local};
use crate::index::{ChunkIndex, Place};
use crate::location::sync_directory;
use crate::positional::write_all_at;
use crate::record::{self, Subject};
use crate::retention::Moment;

/// Objects that each chunk begins with.
const MAX_PREAMBLE: usize = 256;

/// Appends records to an archive. There is one for each writer's number.
#[derive(Debug)]
pub struct Writer {
    archive: Archive,
    active: Option<Active>,
    preamble: BTreeMap<Name, Data>,
}

/// The chunk that is being written.
#[derive(Debug)]
struct Active {
    id: ChunkId,
    file: Arc<File>,
    path: PathBuf,
    length: u64,
    begun_at: Instant,
    /// Its name survives a power cut.
    is_named: bool,
    /// Records that nobody may read yet.
    unsynced: Vec<(Place, Subject)>,
}

impl Active {
    fn append(&mut self, packets: &[Data]) -> Result<u64, Error> {
        let Some(subject) = Subject::of(packets) else {
            return Ok(0);
        };
        let record = record::encode(packets)?;
        self.write(&record)
            .map_err(|error| Error::File(self.path.clone(), error))?;
        let place = Place {
            offset: self.length,
            length: u32::try_from(record.len()).expect("records are bounded"),
        };
        self.length += record.len() as u64;
        self.unsynced.push((place, subject));
        Ok(record.len() as u64)
    }

    fn write(&self, record: &Bytes) -> io::Result<()> {
        let written = write_all_at(&self.file, record, self.length);
        if written.is_err() {
            // Half a record must not stand before the next one.
            self.file.set_len(self.length)?;
        }
        written
    }
}

impl Writer {
    /// A writer to `archive`.
    pub const fn new(archive: Archive) -> Self {
        Self {
            archive,
            active: None,
            preamble: BTreeMap::new(),
        }
    }

    /// Appends packets that belong together: a sample, its lead first, or one object. They can be read after the next
    /// [`sync`](Self::sync).
    ///
    /// # Errors
    /// If they cannot be written; what was appended before is not harmed.
    pub fn append(&mut self, now: Moment, packets: &[Data]) -> Result<(), Error> {
        let appended = self.try_append(now, packets);
        let mut tables = self.archive.shared.tables();
        match &appended {
            Ok(octets) => {
                tables.counters.records += 1;
                tables.counters.octets += octets;
            }
            Err(_) => tables.counters.write_failures += 1,
        }
        appended.map(drop)
    }

    fn try_append(&mut self, now: Moment, packets: &[Data]) -> Result<u64, Error> {
        self.finish_if_due(now);
        let mut active = match self.active.take() {
            Some(active) => active,
            None => self.begin(now)?,
        };
        let appended = active.append(packets);
        self.active = Some(active);
        appended
    }

    /// Appends `object`, and begins each later chunk with it, so that a chunk can be verified whatever becomes of others:
    /// certificate and catalogue. Objects below `replaced` that are not its siblings are not repeated any more: earlier
    /// versions of it.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub fn append_lasting(
        &mut self,
        now: Moment,
        object: &Data,
        replaced: &Name,
    ) -> Result<(), Error> {
        if self.preamble.contains_key(object.name()) {
            return Ok(());
        }
        self.append(now, core::slice::from_ref(object))?;
        let is_same = |name: &Name| name.parent() == object.name().parent();
        self.preamble
            .retain(|name, _| !replaced.is_prefix_of(name) || is_same(name));
        if self.preamble.len() < MAX_PREAMBLE {
            self.preamble
                .insert(object.name().detached(), object.clone());
        }
        Ok(())
    }

    fn begin(&mut self, now: Moment) -> Result<Active, Error> {
        let shared = &self.archive.shared;
        let id = shared.tables().name(now.monotonic, shared.config.writer);
        let path = shared.open_path(id);
        let open = || {
            let mut options = File::options();
            let file = options
                .read(true)
                .write(true)
                .create_new(true)
                .open(&path)?;
            // As long as it is open, no other process takes it for left behind.
            file.lock()?;
            Ok(file)
        };
        let file = Arc::new(open().map_err(|error| Error::File(path.clone(), error))?);
        let local = Local {
            file: file.clone(),
            path: path.clone(),
            index: Arc::new(ChunkIndex::default()),
            length: 0,
            received_at: Some(now.monotonic),
            is_finished: false,
        };
        let mut active = Active {
            id,
            file,
            path,
            length: 0,
            begun_at: now.monotonic,
            is_named: false,
            unsynced: Vec::new(),
        };
        let mut objects = self.preamble.values().map(core::slice::from_ref);
        if let Err(error) = objects.try_for_each(|object| active.append(object).map(drop)) {
            // Nothing of it could be read yet. Were it kept, a full disk would leave one more behind with each sample.
            drop(std::fs::remove_file(&active.path));
            return Err(error);
        }
        shared.tables().local.insert(id, local);
        Ok(active)
    }

    /// Makes what was appended durable, the name of its file too, then readable.
    ///
    /// # Errors
    /// If the file or its directory cannot be synced. Then what was appended since the last time is lost, and what comes
    /// goes to another file: of this one the system may have dropped what it could not write, and would say nothing of it
    /// the next time.
    pub async fn sync(&mut self, now: Moment) -> Result<(), Error> {
        if let Some(active) = &mut self.active
            && !active.unsynced.is_empty()
        {
            let file = active.file.clone();
            let unnamed = (!active.is_named).then(|| self.archive.shared.place.open.clone());
            let synced = tokio::task::spawn_blocking(move || {
                file.sync_data()?;
                unnamed.map_or(Ok(()), |directory| sync_directory(&directory))
            });
            let synced = synced.await.expect("syncing does not panic");
            if let Err(error) = synced {
                let path = active.path.clone();
                self.archive.shared.tables().counters.write_failures +=
                    active.unsynced.len() as u64;
                self.end();
                return Err(Error::File(path, error));
            }
            active.is_named = true;
            publish(&self.archive, active);
        }
        self.finish_if_due(now);
        Ok(())
    }

    /// Ends the open chunk if it is large or old enough and all of it is synced.
    fn finish_if_due(&mut self, now: Moment) {
        let config = &self.archive.shared.config;
        let is_due = |active: &Active| {
            active.length >= config.chunk_size.as_bytes()
                || now.monotonic.since(active.begun_at) >= config.chunk_age
        };
        let synced = |active: &Active| active.unsynced.is_empty();
        if self.active.as_ref().is_some_and(|a| is_due(a) && synced(a)) {
            self.end();
        }
    }

    fn end(&mut self) {
        if let Some(active) = self.active.take() {
            let mut tables = self.archive.shared.tables();
            if let Some(local) = tables.local.get_mut(&active.id) {
                local.is_finished = true;
                if local.length == 0 {
                    // Nothing of it was ever synced.
                    tables.local.remove(&active.id);
                    drop(std::fs::remove_file(&active.path));
                }
            }
        }
    }

    /// Syncs, and ends the open chunk, so that it can be sealed.
    ///
    /// # Errors
    /// As [`sync`](Self::sync).
    pub async fn finish(mut self, now: Moment) -> Result<(), Error> {
        self.sync(now).await?;
        self.end();
        Ok(())
    }
}

/// Lets everybody read what is synced.
fn publish(archive: &Archive, active: &mut Active) {
    let mut tables = archive.shared.tables();
    let Some(local) = tables.local.get_mut(&active.id) else {
        return;
    };
    let index = Arc::make_mut(&mut local.index);
    for (place, subject) in active.unsynced.drain(..) {
        index.insert(place, &subject);
    }
    local.length = active.length;
}
