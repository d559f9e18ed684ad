//! Seals chunks, learns of those of others, and deletes what is too old or too much.

use std::collections::BTreeSet;
use std::fs;

use bytes::Bytes;
use futures_util::StreamExt;
use namecast_units::{ByteSize, Instant};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};

use super::{Archive, Error};
use crate::chunk::{ChunkId, Sealed};
use crate::index::{FIRST_READ, Summary};
use crate::location::sync_directory;
use crate::retention::Moment;

/// Summaries read at a time.
const AT_ONCE: usize = 16;

impl Archive {
    /// Seals chunks that were written, and applies the limits of age and size. What fails is tried again the next time.
    ///
    /// # Errors
    /// If the directory or bucket refuses something.
    pub async fn maintain(&self, now: Moment) -> Result<(), Error> {
        self.shared.tables().retention.handle_time(now);
        let done = async {
            self.seal_finished().await?;
            self.delete_surplus(now.monotonic).await
        };
        let done = done.await;
        self.shared.tables().counters.store_failures += u64::from(done.is_err());
        done
    }

    async fn seal_finished(&self) -> Result<(), Error> {
        let finished: Vec<ChunkId> = {
            let tables = self.shared.tables();
            let finished = tables.local.iter().filter(|(_, local)| local.is_finished);
            finished.map(|(id, _)| *id).collect()
        };
        for id in finished {
            self.seal(id).await?;
        }
        Ok(())
    }

    /// Moves a chunk to where it stays: first its packets, then its index, which can be made from them.
    async fn seal(&self, id: ChunkId) -> Result<(), Error> {
        let received_at;
        let (path, index, length) = {
            let tables = self.shared.tables();
            let Some(local) = tables.local.get(&id) else {
                return Ok(());
            };
            received_at = local.received_at;
            (local.path.clone(), local.index.clone(), local.length)
        };
        let store = &self.shared.place.store;
        let index_path = self.shared.index_path(id);
        let put_index = store.put(&index_path, index.encode().into());
        let target = self.shared.place.sealed.as_ref();
        match target.map(|directory| directory.join(format!("{id}.chunk"))) {
            Some(target) => {
                // It is there already if only the index failed the last time.
                if let Err(error) = fs::rename(&path, &target)
                    && !target.exists()
                {
                    return Err(Error::File(path, error));
                }
                sync_directory(&self.shared.place.open)
                    .map_err(|error| Error::File(target, error))?;
                put_index.await?;
            }
            None => {
                let read = path.clone();
                let read = tokio::task::spawn_blocking(move || fs::read(read)).await;
                let octets = read.expect("reading does not panic");
                let octets = octets.map_err(|error| Error::File(path.clone(), error))?;
                let octets = Bytes::from(octets);
                store
                    .put(&self.shared.chunk_path(id), octets.into())
                    .await?;
                put_index.await?;
                fs::remove_file(&path).map_err(|error| Error::File(path.clone(), error))?;
            }
        }
        let summary = index.summary();
        let mut tables = self.shared.tables();
        let sealed = Sealed {
            summary,
            length,
            received_at,
        };
        tables.insert_sealed(id, sealed);
        tables.load(id, index, self.shared.config.max_indexes);
        tables.local.remove(&id);
        tables.counters.sealed += 1;
        Ok(())
    }

    /// Learns which sealed chunks there are: other archives may write to the same bucket.
    ///
    /// # Errors
    /// If the directory or bucket cannot be read.
    pub async fn refresh(&self, now: Moment) -> Result<(), Error> {
        self.list(Some(now.monotonic)).await
    }

    /// Learns which sealed chunks there are; new ones came at `received_at`, or before this archive was opened.
    pub(super) async fn list(&self, received_at: Option<Instant>) -> Result<(), Error> {
        let before: Vec<ChunkId> = self.shared.tables().sealed.keys().copied().collect();
        let store = &self.shared.place.store;
        let listed = store.list_with_delimiter(Some(&self.shared.place.prefix));
        let objects = listed.await?.objects;
        let chunks: Vec<(ChunkId, u64)> = objects
            .iter()
            .filter_map(|object| Some((chunk_id(&object.location)?, object.size)))
            .collect();
        let is_new = |id: &ChunkId| before.binary_search(id).is_err();
        let new: Vec<_> = chunks
            .iter()
            .filter(|(id, _)| is_new(id))
            .copied()
            .collect();
        let mut summaries = futures_util::stream::iter(new)
            .map(|(id, length)| async move { (id, length, self.read_summary(id).await) })
            .buffer_unordered(AT_ONCE);
        while let Some((id, length, summary)) = summaries.next().await {
            match summary {
                Ok(Some(summary)) => {
                    let sealed = Sealed {
                        summary,
                        length,
                        received_at,
                    };
                    self.shared.tables().insert_sealed(id, sealed);
                }
                Ok(None) => {}
                // One chunk that cannot be read keeps nobody from the others. It is tried again at the next listing.
                Err(error) => {
                    tracing::warn!(%id, %error, "archive");
                    self.shared.tables().counters.store_failures += 1;
                }
            }
        }
        drop(summaries);
        let listed: BTreeSet<ChunkId> = chunks.iter().map(|(id, _)| *id).collect();
        let mut tables = self.shared.tables();
        for id in before {
            if !listed.contains(&id) {
                tables.forget(id);
            }
        }
        Ok(())
    }

    async fn read_summary(&self, id: ChunkId) -> Result<Option<Summary>, Error> {
        let path = self.shared.index_path(id);
        let mut length = FIRST_READ;
        loop {
            let octets = match self.shared.place.store.get_range(&path, 0..length).await {
                Ok(octets) => octets,
                // Missing, empty, unreadable: it is made anew, unless the chunk cannot be read either.
                Err(_) => break,
            };
            match Summary::decode(&octets) {
                Some(Ok(summary)) => return Ok(Some(summary)),
                Some(Err(needed)) if needed > length && octets.len() as u64 == length => {
                    length = needed;
                }
                _ => break,
            }
        }
        let Some(rebuilt) = self.rebuild(id).await? else {
            return Ok(None);
        };
        // So that it need not be made again. Whoever may not write here goes on without.
        let put = self.shared.place.store.put(&path, rebuilt.encode().into());
        if let Err(error) = put.await {
            tracing::warn!(%path, %error, "archive");
        }
        Ok(Some(rebuilt.summary()))
    }

    async fn delete_surplus(&self, now: Instant) -> Result<(), Error> {
        for (id, is_expired) in self.surplus(now) {
            let store = &self.shared.place.store;
            // The index last: a chunk without one could still be read, an index without chunk is nothing.
            for path in [self.shared.chunk_path(id), self.shared.index_path(id)] {
                match store.delete(&path).await {
                    // Another archive was faster.
                    Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            let mut tables = self.shared.tables();
            tables.forget(id);
            tables.counters.deleted += 1;
            if is_expired {
                tables.retention.on_deleted();
                tables.counters.expired += 1;
            }
        }
        Ok(())
    }

    /// Sealed chunks that are beyond the limits, oldest first, and whether that is by age.
    fn surplus(&self, now: Instant) -> Vec<(ChunkId, bool)> {
        let config = &self.shared.config;
        let mut tables = self.shared.tables();
        let allowance = tables.retention.allowance(now);
        let is_expired = |id: &ChunkId, sealed: &Sealed| {
            let age = tables.retention.age(now, *id, sealed.received_at);
            tables.retention.is_expired(age, config.chunk_age)
        };
        let expired = tables.sealed.iter().filter(|(id, it)| is_expired(id, it));
        let expired = expired.take(allowance).map(|(id, _)| *id);
        let mut surplus: Vec<(ChunkId, bool)> = expired.map(|id| (id, true)).collect();

        let local = tables.local.values().map(|local| local.length);
        let sealed = tables.sealed.values().map(|sealed| sealed.length);
        let mut octets: u64 = local.chain(sealed).sum();
        for (id, _) in &surplus {
            octets -= tables.sealed.get(id).map_or(0, |sealed| sealed.length);
        }
        let mut chunks = tables.sealed.len() - surplus.len();
        let too_much = |octets, chunks| {
            let most = config.keep_size.map_or(u64::MAX, ByteSize::as_bytes);
            octets > most || chunks > config.max_chunks
        };
        if too_much(octets, chunks) {
            // Those found at opening came before all others, whatever their names say.
            let mut by_age: Vec<_> = tables.sealed.iter().collect();
            by_age.sort_by_key(|(id, sealed)| (sealed.received_at, **id));
            for (id, sealed) in by_age {
                if !too_much(octets, chunks) {
                    break;
                }
                if !surplus.contains(&(*id, true)) {
                    octets -= sealed.length;
                    chunks -= 1;
                    surplus.push((*id, false));
                }
            }
        }
        surplus
    }
}

fn chunk_id(path: &Path) -> Option<ChunkId> {
    path.filename()?.strip_suffix(".chunk")?.parse().ok()
}
