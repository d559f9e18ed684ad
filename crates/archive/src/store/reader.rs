//! Finds records by name and by time.

use std::collections::BTreeSet;
use std::fs::File;
use std::sync::Arc;

use bytes::Bytes;
use namecast_packet::{Data, Name};
use namecast_stream::SampleClass;
use namecast_units::Timestamp;
use object_store::ObjectStoreExt;

use super::lookup::{Candidate, Choice, MAX_CONSIDERED};
use super::{Archive, Damage, Error, Tables};
use crate::chunk::{ChunkId, read_at};
use crate::index::{ChunkIndex, Place, SampleEntry, SampleKey};
use crate::record::{self, RecordError};

/// A sample that was found by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundSample {
    /// Key or delta.
    pub class: SampleClass,
    /// Number in its class.
    pub sequence: u64,
    /// The rest.
    pub entry: SampleEntry,
}

impl FoundSample {
    const fn new(((class, sequence), entry): (SampleKey, SampleEntry)) -> Self {
        Self {
            class,
            sequence,
            entry,
        }
    }
}

/// What a rung has at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundRung {
    /// Name of the rung.
    pub rung: Name,
    /// The sample at the time or before it.
    pub sample: FoundSample,
    /// The key sample at the time or before it.
    pub key: FoundSample,
    /// The first key sample after the time.
    pub next_key: Option<FoundSample>,
    /// Last numbers that there are, key and delta.
    pub newest: [Option<u64>; 2],
}

/// Where a chunk can be read.
#[derive(Clone, Debug)]
enum Source {
    Local(Arc<File>, String),
    Sealed(ChunkId),
}

impl Archive {
    /// Returns all packets kept of a sample, its lead first. A damaged record is reported, and counts as not there.
    ///
    /// # Errors
    /// If the directory or bucket cannot be read.
    pub async fn sample(
        &self,
        rung: &Name,
        class: SampleClass,
        sequence: u64,
    ) -> Result<Option<Vec<Data>>, Error> {
        let key = (class, sequence);
        let (found, candidates) = self.shared.tables().places_of(rung, key);
        for (source, place) in found {
            if let Some(packets) = self.read(&source, place).await? {
                return Ok(Some(packets));
            }
        }
        for id in candidates {
            let index = self.index(id).await?;
            if let Some(place) = index.and_then(|index| index.sample(rung, key))
                && let Some(packets) = self.read(&Source::Sealed(id), place).await?
            {
                return Ok(Some(packets));
            }
        }
        Ok(None)
    }

    /// Returns the newest object whose name starts with `prefix`.
    ///
    /// # Errors
    /// If the directory or bucket cannot be read.
    pub async fn object(&self, prefix: &Name) -> Result<Option<Data>, Error> {
        let (found, candidates) = self.shared.tables().objects_under(prefix);
        for (source, place) in found {
            if let Some(packets) = self.read(&source, place).await? {
                return Ok(packets.into_iter().next());
            }
        }
        for id in candidates {
            let index = self.index(id).await?;
            let place = index.and_then(|index| index.object(prefix).map(|(_, place)| place));
            if let Some(place) = place
                && let Some(packets) = self.read(&Source::Sealed(id), place).await?
            {
                return Ok(packets.into_iter().next());
            }
        }
        Ok(None)
    }

    /// Returns what each rung of `stream` (`/<root>/<stream>`) has at `time`, the publisher's clock at capture; rungs that have
    /// nothing so early are left out.
    ///
    /// # Errors
    /// If the directory or bucket cannot be read.
    pub async fn find(&self, stream: &Name, time: Timestamp) -> Result<Vec<FoundRung>, Error> {
        let rungs = self.shared.tables().rungs_of(stream);
        let mut found = Vec::new();
        for rung in rungs {
            found.extend(self.find_rung(rung, time).await?);
        }
        Ok(found)
    }

    /// Returns when the oldest key sample of `stream` that is kept was captured.
    ///
    /// # Errors
    /// If the directory or bucket cannot be read.
    pub async fn since(&self, stream: &Name) -> Result<Option<Timestamp>, Error> {
        let rungs = self.shared.tables().rungs_of(stream);
        let mut since: Option<Timestamp> = None;
        for rung in rungs {
            let first = self.next_key(&rung, Timestamp::default()).await?;
            let times = [since, first.map(|first| first.entry.captured_at)];
            since = times.into_iter().flatten().min();
        }
        Ok(since)
    }

    async fn find_rung(&self, rung: Name, time: Timestamp) -> Result<Option<FoundRung>, Error> {
        let (mut sample, mut key): (Option<FoundSample>, Option<FoundSample>) = (None, None);
        let before = self.shared.tables().chunks_before(&rung, time);
        let mut choice = Choice::default();
        for candidate in before {
            // Chunks of several archives overlap; what lies behind those ends earlier than what was found.
            let Candidate { id, last, .. } = candidate;
            let is_later = |found: FoundSample| last <= found.entry.captured_at;
            if key.is_some_and(is_later) {
                break;
            }
            let is_useless = !candidate.has_keys && sample.is_some_and(is_later);
            if is_useless || !choice.wants(&candidate, key.is_some()) {
                continue;
            }
            let index = self.any_index(id).await?;
            let later = |a: Option<FoundSample>, b: Option<FoundSample>| {
                let found = [a, b].into_iter().flatten();
                found.max_by_key(|found| (found.entry.captured_at, found.entry.position))
            };
            let is_key = |class| class == SampleClass::Key;
            let any = index.at_or_before(&rung, time, |_| true);
            sample = later(sample, any.map(FoundSample::new));
            key = later(
                key,
                index
                    .at_or_before(&rung, time, is_key)
                    .map(FoundSample::new),
            );
        }
        let Some((sample, key)) = sample.zip(key) else {
            return Ok(None);
        };
        let next_key = self.next_key(&rung, time).await?;
        let newest = self.shared.tables().newest(&rung);
        Ok(Some(FoundRung {
            rung,
            sample,
            key,
            next_key,
            newest,
        }))
    }

    async fn next_key(&self, rung: &Name, time: Timestamp) -> Result<Option<FoundSample>, Error> {
        let mut next: Option<FoundSample> = None;
        let after = self.shared.tables().chunks_after(rung, time);
        let mut choice = Choice::default();
        for candidate in after.iter().filter(|candidate| candidate.has_keys) {
            if next.is_some_and(|next| candidate.first >= next.entry.captured_at) {
                break;
            }
            if !choice.wants(candidate, next.is_some()) {
                continue;
            }
            let index = self.any_index(candidate.id).await?;
            let key = index.key_after(rung, time);
            let key = key.map(|(n, entry)| FoundSample::new(((SampleClass::Key, n), entry)));
            let found = [next, key].into_iter().flatten();
            next = found.min_by_key(|found| found.entry.captured_at);
        }
        Ok(next)
    }

    /// Returns the index of a chunk, local or sealed; an empty one if it is gone.
    async fn any_index(&self, id: ChunkId) -> Result<Arc<ChunkIndex>, Error> {
        let local = {
            let tables = self.shared.tables();
            tables.local.get(&id).map(|local| local.index.clone())
        };
        match local {
            Some(index) => Ok(index),
            None => Ok(self.index(id).await?.unwrap_or_default()),
        }
    }

    /// Returns the index of a sealed chunk; made anew from the chunk if it is missing or damaged. `None` if the chunk is gone.
    pub(super) async fn index(&self, id: ChunkId) -> Result<Option<Arc<ChunkIndex>>, Error> {
        if let Some(index) = self.shared.tables().use_loaded(id) {
            return Ok(Some(index));
        }
        // Whatever keeps an index from being read, the chunk can be.
        let octets = self.get(&self.shared.index_path(id)).await.ok();
        let read = octets.flatten();
        let read = read.and_then(|octets| ChunkIndex::decode(&octets));
        let index = match read {
            Some(index) => Some(index),
            None => self.rebuild(id).await?,
        };
        let Some(index) = index.map(Arc::new) else {
            self.shared.tables().forget(id);
            return Ok(None);
        };
        let most = self.shared.config.max_indexes;
        self.shared.tables().load(id, index.clone(), most);
        Ok(Some(index))
    }

    /// Reads a whole chunk to know what it holds.
    pub(super) async fn rebuild(&self, id: ChunkId) -> Result<Option<ChunkIndex>, Error> {
        let path = self.shared.chunk_path(id);
        let Some(octets) = self.get(&path).await? else {
            return Ok(None);
        };
        let (index, wrong) = ChunkIndex::of_chunk(&octets);
        let mut tables = self.shared.tables();
        tables.counters.rebuilt += 1;
        for scanned in wrong {
            let (offset, error) = match scanned {
                record::Scanned::Damaged { offset, error, .. } => (offset, error),
                record::Scanned::Torn { offset, .. } => (offset, RecordError::CutOff),
                record::Scanned::Record { .. } => continue,
            };
            tables.report(Damage {
                file: path.to_string(),
                offset: offset as u64,
                error,
            });
        }
        Ok(Some(index))
    }

    /// Returns a whole object; `None` if there is none.
    async fn get(&self, path: &object_store::path::Path) -> Result<Option<Bytes>, Error> {
        match self.shared.place.store.get(path).await {
            Ok(found) => Ok(Some(found.bytes().await?)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns whether an object ends before `end`, which stores tell by an error like any other.
    async fn is_cut_off(&self, path: &object_store::path::Path, end: u64) -> bool {
        let head = self.shared.place.store.head(path).await;
        head.is_ok_and(|object| object.size < end)
    }

    /// Returns the packets at `place`; `None` if they are gone or damaged, which is reported.
    async fn read(&self, source: &Source, place: Place) -> Result<Option<Vec<Data>>, Error> {
        let (octets, file) = match source {
            Source::Local(file, path) => {
                let file = file.clone();
                let read = tokio::task::spawn_blocking(move || read_at(&file, place)).await;
                let octets = read.expect("reading does not panic");
                (octets.unwrap_or_default(), path.clone())
            }
            Source::Sealed(id) => {
                let path = self.shared.chunk_path(*id);
                let range = place.offset..place.offset + u64::from(place.length);
                let octets = match self
                    .shared
                    .place
                    .store
                    .get_range(&path, range.clone())
                    .await
                {
                    Ok(octets) => octets,
                    Err(object_store::Error::NotFound { .. }) => {
                        self.shared.tables().forget(*id);
                        return Ok(None);
                    }
                    Err(_) if self.is_cut_off(&path, range.end).await => Bytes::new(),
                    Err(error) => return Err(error.into()),
                };
                (octets, path.to_string())
            }
        };
        match record::decode(&octets) {
            Ok((packets, _)) => Ok(Some(packets)),
            Err(error) => {
                let offset = place.offset;
                self.shared.tables().report(Damage {
                    file,
                    offset,
                    error,
                });
                Ok(None)
            }
        }
    }
}

impl Tables {
    /// Places of a sample in chunks whose index is in memory, newest first, and other chunks that may have it.
    fn places_of(&self, rung: &Name, key: SampleKey) -> (Vec<(Source, Place)>, Vec<ChunkId>) {
        let found = self.places(|index| index.sample(rung, key));
        let (class, sequence) = key;
        let chunks = self.by_rung.get(rung);
        let mut candidates =
            chunks.map_or_else(Vec::new, |chunks| chunks.with_sample(class, sequence));
        candidates.retain(|id| !self.is_loaded(*id));
        (found, candidates)
    }

    /// Objects under `prefix` in chunks of ours, and other chunks that hold any, newest first.
    fn objects_under(&self, prefix: &Name) -> (Vec<(Source, Place)>, Vec<ChunkId>) {
        let local = self.local.values().rev().filter_map(|local| {
            let source = Source::Local(local.file.clone(), local.path.display().to_string());
            Some((source, local.index.object(prefix)?.1))
        });
        let below = self.by_object.range(prefix..);
        let mut below = below.take_while(|(name, _)| prefix.is_prefix_of(name));
        // Every chunk begins with certificate and catalogue, so that of names with many versions one of the newest chunks
        // has some; of others, the few versions are looked through.
        let few: Vec<_> = below.by_ref().take(MAX_CONSIDERED).collect();
        let candidates: BTreeSet<ChunkId> = match below.next() {
            None => few
                .into_iter()
                .flat_map(|(_, ids)| ids.iter().rev().take(MAX_CONSIDERED))
                .copied()
                .collect(),
            Some(_) => {
                let mut newest = self.sealed.iter().rev();
                let holding = newest.find(|(_, sealed)| sealed.holds(prefix));
                holding.map(|(id, _)| *id).into_iter().collect()
            }
        };
        (local.collect(), candidates.into_iter().rev().collect())
    }

    /// Places that `find` finds in indexes in memory, newest first.
    fn places(&self, find: impl Fn(&ChunkIndex) -> Option<Place>) -> Vec<(Source, Place)> {
        let local = self.local.values().rev().filter_map(|local| {
            let source = Source::Local(local.file.clone(), local.path.display().to_string());
            Some((source, find(&local.index)?))
        });
        let loaded = self.loaded.iter().rev();
        let loaded = loaded.filter_map(|(id, index)| Some((Source::Sealed(*id), find(index)?)));
        local.chain(loaded).collect()
    }

    fn is_loaded(&self, id: ChunkId) -> bool {
        self.loaded.iter().any(|(loaded, _)| *loaded == id)
    }

    fn use_loaded(&mut self, id: ChunkId) -> Option<Arc<ChunkIndex>> {
        let at = self.loaded.iter().position(|(loaded, _)| *loaded == id)?;
        let used = self.loaded.remove(at)?;
        let index = used.1.clone();
        self.loaded.push_back(used);
        Some(index)
    }

    /// Chunks of ours that have samples of `rung`.
    fn local_candidates(&self, rung: &Name) -> impl Iterator<Item = Candidate> {
        self.local.iter().filter_map(move |(id, local)| {
            let captured = local.index.captured(rung)?;
            Some(Candidate {
                id: *id,
                first: *captured.start(),
                last: *captured.end(),
                has_keys: local.index.last(rung, SampleClass::Key).is_some(),
            })
        })
    }

    /// Chunks with samples at or before `time`, the latest first.
    fn chunks_before(&self, rung: &Name, time: Timestamp) -> Vec<Candidate> {
        let sealed = self.by_rung.get(rung);
        let mut candidates = sealed.map_or_else(Vec::new, |chunks| chunks.before(time));
        let local = self.local_candidates(rung);
        candidates.extend(local.filter(|candidate| candidate.first <= time));
        candidates.sort_by_key(|candidate| core::cmp::Reverse(candidate.first));
        candidates
    }

    /// Chunks with samples after `time`, the earliest first.
    fn chunks_after(&self, rung: &Name, time: Timestamp) -> Vec<Candidate> {
        let sealed = self.by_rung.get(rung);
        let mut candidates = sealed.map_or_else(Vec::new, |chunks| chunks.after(time));
        let local = self.local_candidates(rung);
        candidates.extend(local.filter(|candidate| candidate.last > time));
        candidates.sort_by_key(|candidate| candidate.first);
        candidates
    }

    fn rungs_of(&self, stream: &Name) -> BTreeSet<Name> {
        let below = self.by_rung.range(stream..).map(|(rung, _)| rung);
        let below = below.take_while(|rung| stream.is_prefix_of(rung));
        let local = self.local.values().flat_map(|l| l.index.rungs());
        let is_in = |rung: &&Name| rung.len() == stream.len() + 1 && stream.is_prefix_of(rung);
        let rungs: BTreeSet<&Name> = below.chain(local).filter(is_in).collect();
        rungs.into_iter().cloned().collect()
    }

    /// Last numbers of a rung: those of the chunk that was begun last and has any.
    pub(super) fn newest(&self, rung: &Name) -> [Option<u64>; 2] {
        let last_of = |class: SampleClass| {
            let mut local = self.local.iter().rev();
            let local = local.find_map(|(id, local)| Some((*id, local.index.last(rung, class)?)));
            let sealed = self.by_rung.get(rung);
            let sealed = sealed.and_then(|chunks| chunks.newest(class));
            let last = [local, sealed].into_iter().flatten();
            last.max_by_key(|(id, _)| *id).map(|(_, last)| last)
        };
        SampleClass::ALL.map(last_of)
    }
}
