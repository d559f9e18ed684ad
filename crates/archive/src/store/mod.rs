//! The archive of one root: what is kept where, and what went wrong.

mod keeper;
mod lookup;
mod reader;
mod recovery;
mod writer;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use core::fmt;
use core::time::Duration;

use namecast_packet::Name;
use namecast_units::{ByteSize, Instant, Timestamp};
use object_store::path::Path;

use crate::chunk::{ChunkId, Local, Sealed};
use crate::index::ChunkIndex;
use crate::location::{Location, LocationError, Opened};
use crate::record::RecordError;
use crate::retention::{Moment, Retention, RetentionConfig};

use lookup::RungChunks;
pub use reader::{FoundRung, FoundSample};
pub use writer::Writer;

/// What to keep, where and for how long.
#[derive(Clone, Debug)]
pub struct Config {
    /// Name of what is kept, such as `/demo`.
    pub root: Name,
    /// Where.
    pub location: Location,
    /// Number of the writer; random, so that no two that share a bucket have the same.
    pub writer: u32,
    /// Chunks all of which is older are deleted.
    pub retention: RetentionConfig,
    /// Oldest chunks beyond this are deleted.
    pub keep_size: Option<ByteSize>,
    /// A chunk is sealed once it is this large,
    pub chunk_size: ByteSize,
    /// or this old.
    pub chunk_age: Duration,
    /// Sealed chunks known at a time, each with a summary in memory; the oldest are deleted beyond it.
    pub max_chunks: usize,
    /// Indexes of sealed chunks in memory: some 100 kB each.
    pub max_indexes: usize,
}

impl Config {
    /// Keeps `root` at `location` for ever.
    pub fn new(root: Name, location: Location, writer: u32) -> Self {
        Self {
            root,
            location,
            writer,
            retention: RetentionConfig::default(),
            keep_size: None,
            chunk_size: ByteSize::mebibytes(8),
            chunk_age: Duration::from_secs(10),
            max_chunks: 1 << 18,
            max_indexes: 64,
        }
    }
}

/// What an archive has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Records written.
    pub records: u64,
    /// Octets of them.
    pub octets: u64,
    /// Records that could not be written: the disk is full, for instance.
    pub write_failures: u64,
    /// Chunks sealed.
    pub sealed: u64,
    /// Chunks deleted by age and size.
    pub deleted: u64,
    /// Of those, deleted by age.
    pub expired: u64,
    /// Times that the directory or bucket refused something; it is tried again.
    pub store_failures: u64,
    /// Damaged records that were met; [`Damage`] says where.
    pub damaged: u64,
    /// Octets that a crash left unfinished.
    pub torn: u64,
    /// Indexes that were made anew from their chunk.
    pub rebuilt: u64,
}

/// How much there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Chunks, sealed or not.
    pub chunks: u64,
    /// Octets in them.
    pub octets: u64,
    /// When the oldest was begun.
    pub since: Option<Timestamp>,
}

/// A record, or something that should be one, that is not what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// File or object.
    pub file: String,
    /// Octets of it before the damage.
    pub offset: u64,
    /// What is wrong.
    pub error: RecordError,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            offset,
            error,
        } = self;
        write!(f, "{file}: damaged record at offset {offset}: {error}")
    }
}

/// Why an archive cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The location is of no use.
    #[error(transparent)]
    Location(#[from] LocationError),
    /// The directory or bucket refused something.
    #[error(transparent)]
    Store(#[from] object_store::Error),
    /// A local file could not be read or written.
    #[error("{0}: {1}")]
    File(PathBuf, std::io::Error),
    /// A record is too large.
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// Damages remembered until somebody asks.
const MAX_DAMAGES: usize = 256;

/// How the names of chunks end that are not sealed.
const OPEN: &str = "open";

/// What several tasks share.
#[derive(Debug)]
struct Shared {
    config: Config,
    place: Opened,
    tables: Mutex<Tables>,
}

#[derive(Debug)]
struct Tables {
    retention: Retention,
    local: BTreeMap<ChunkId, Local>,
    sealed: BTreeMap<ChunkId, Sealed>,
    /// Sealed chunks that hold something of a rung, by what they hold.
    by_rung: BTreeMap<Name, RungChunks>,
    /// Sealed chunks that hold an object.
    by_object: BTreeMap<Name, BTreeSet<ChunkId>>,
    /// Indexes of sealed chunks, the one used last at the end.
    loaded: VecDeque<(ChunkId, Arc<ChunkIndex>)>,
    damages: VecDeque<Damage>,
    counters: Counters,
}

impl Tables {
    fn new(retention: Retention) -> Self {
        Self {
            retention,
            local: BTreeMap::new(),
            sealed: BTreeMap::new(),
            by_rung: BTreeMap::new(),
            by_object: BTreeMap::new(),
            loaded: VecDeque::new(),
            damages: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// Returns the name of a chunk that `writer` begins now.
    fn name(&self, now: Instant, writer: u32) -> ChunkId {
        let newest = [
            self.local.keys().next_back(),
            self.sealed.keys().next_back(),
        ];
        let newest = newest.into_iter().flatten().map(|id| id.begun_at).max();
        ChunkId {
            begun_at: self.retention.stamp(now, newest),
            writer,
        }
    }

    fn report(&mut self, damage: Damage) {
        tracing::warn!(%damage, "archive");
        self.counters.damaged += 1;
        if self.damages.len() < MAX_DAMAGES {
            self.damages.push_back(damage);
        }
    }

    /// Keeps the index of a sealed chunk in memory, and of all no more than `most`.
    fn load(&mut self, id: ChunkId, index: Arc<ChunkIndex>, most: usize) {
        self.loaded.retain(|(loaded, _)| *loaded != id);
        self.loaded.push_back((id, index));
        if self.loaded.len() > most.max(1) {
            self.loaded.pop_front();
        }
    }

    /// Records a sealed chunk, unless it is known.
    fn insert_sealed(&mut self, id: ChunkId, sealed: Sealed) {
        if self.sealed.contains_key(&id) {
            return;
        }
        for name in &sealed.summary.objects {
            self.by_object.entry(name.clone()).or_default().insert(id);
        }
        for (rung, span) in &sealed.summary.rungs {
            self.by_rung
                .entry(rung.clone())
                .or_default()
                .insert(id, span);
        }
        self.sealed.insert(id, sealed);
    }

    fn forget(&mut self, id: ChunkId) {
        let Some(sealed) = self.sealed.remove(&id) else {
            return;
        };
        for name in &sealed.summary.objects {
            if let Some(chunks) = self.by_object.get_mut(name)
                && chunks.remove(&id)
                && chunks.is_empty()
            {
                self.by_object.remove(name);
            }
        }
        for (rung, span) in &sealed.summary.rungs {
            if let Some(chunks) = self.by_rung.get_mut(rung) {
                chunks.remove(id, span);
                if chunks.is_empty() {
                    self.by_rung.remove(rung);
                }
            }
        }
        self.loaded.retain(|(loaded, _)| *loaded != id);
    }
}

impl Shared {
    fn tables(&self) -> MutexGuard<'_, Tables> {
        // Each change of the tables is whole, so they are good after a panic elsewhere.
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open_path(&self, id: ChunkId) -> PathBuf {
        self.place.open.join(format!("{id}.{OPEN}"))
    }

    fn chunk_path(&self, id: ChunkId) -> Path {
        self.place.prefix.clone().join(format!("{id}.chunk"))
    }

    fn index_path(&self, id: ChunkId) -> Path {
        self.place.prefix.clone().join(format!("{id}.index"))
    }
}

/// The archive of one root. Clones are the same archive.
#[derive(Clone, Debug)]
pub struct Archive {
    shared: Arc<Shared>,
}

impl Archive {
    /// Opens an archive, after a crash too: chunks that were being written are read, and lose at most what was not synced.
    /// Sealed chunks are not read.
    ///
    /// # Errors
    /// If its location cannot be used.
    pub async fn open(config: Config, now: Moment) -> Result<Self, Error> {
        let place = config.location.open(&config.root)?;
        let shared = Arc::new(Shared {
            place,
            tables: Mutex::new(Tables::new(Retention::new(now, config.retention.clone()))),
            config,
        });
        let archive = Self { shared };
        archive.recover().await?;
        archive.list(None).await?;
        let mut tables = archive.shared.tables();
        let found = tables.local.keys().chain(tables.sealed.keys());
        let found: Vec<ChunkId> = found.copied().collect();
        for id in found {
            tables.retention.on_found(id);
        }
        drop(tables);
        Ok(archive)
    }

    /// Returns what it counted.
    pub fn counters(&self) -> Counters {
        self.shared.tables().counters
    }

    /// Returns how much there is.
    pub fn figures(&self) -> Figures {
        let tables = self.shared.tables();
        let local = tables.local.values().map(|local| local.length);
        let sealed = tables.sealed.values().map(|sealed| sealed.length);
        let first = [tables.local.keys().next(), tables.sealed.keys().next()];
        Figures {
            chunks: (tables.local.len() + tables.sealed.len()) as u64,
            octets: local.chain(sealed).sum(),
            since: first.into_iter().flatten().map(|id| id.begun_at).min(),
        }
    }

    /// Streams of which something is kept: `/<root>/<stream>`.
    pub fn streams(&self) -> BTreeSet<Name> {
        let tables = self.shared.tables();
        let local = tables.local.values().flat_map(|l| l.index.rungs());
        tables
            .by_rung
            .keys()
            .chain(local)
            .map(Name::parent)
            .collect()
    }

    /// Each rung of which something is kept, with the last numbers of its key samples and delta samples.
    pub fn newest(&self) -> BTreeMap<Name, [Option<u64>; 2]> {
        let tables = self.shared.tables();
        let local = tables.local.values().flat_map(|l| l.index.rungs());
        let rungs = tables.by_rung.keys().chain(local);
        rungs
            .map(|rung| (rung.clone(), tables.newest(rung)))
            .collect()
    }

    /// Returns the next damage that was met and not told of yet.
    pub fn poll_damage(&self) -> Option<Damage> {
        self.shared.tables().damages.pop_front()
    }
}

#[cfg(test)]
mod tests;
