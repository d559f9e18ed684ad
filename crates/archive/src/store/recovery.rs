//! What a crash left behind: chunks that were being written.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Archive, Damage, Error, OPEN};
use crate::chunk::{ChunkId, Local};
use crate::index::ChunkIndex;
use crate::record::Scanned;

/// A chunk that somebody was writing.
struct Left {
    id: ChunkId,
    local: Local,
    wrong: Vec<Scanned>,
}

impl Archive {
    /// Takes over the open chunks of writers that are gone.
    pub(super) async fn recover(&self) -> Result<(), Error> {
        let directory = self.shared.place.open.clone();
        let read = tokio::task::spawn_blocking(move || {
            let read = left_behind(&directory);
            read.map_err(|error| Error::File(directory, error))
        });
        let left = read.await.expect("reading does not panic")?;
        let mut tables = self.shared.tables();
        for Left { id, local, wrong } in left {
            for scanned in wrong {
                match scanned {
                    Scanned::Damaged { offset, error, .. } => tables.report(Damage {
                        file: local.path.display().to_string(),
                        offset: offset as u64,
                        error,
                    }),
                    Scanned::Torn { length, .. } => tables.counters.torn += length as u64,
                    Scanned::Record { .. } => {}
                }
            }
            tables.local.insert(id, local);
        }
        Ok(())
    }
}

fn left_behind(directory: &Path) -> io::Result<Vec<Left>> {
    let mut left = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_none_or(|found| found != OPEN) {
            continue;
        }
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let Some(id) = stem.and_then(|stem| stem.parse().ok()) else {
            continue;
        };
        // One file that cannot be read keeps nobody from recording.
        match take_over(path.clone(), id) {
            Ok(taken) => left.extend(taken),
            Err(error) => tracing::warn!(path = %path.display(), %error, "archive"),
        }
    }
    Ok(left)
}

/// Takes one chunk over; `None` if its writer lives, or it holds nothing.
fn take_over(path: PathBuf, id: ChunkId) -> io::Result<Option<Left>> {
    let file = File::options().read(true).write(true).open(&path)?;
    if file.try_lock().is_err() {
        return Ok(None);
    }
    let octets = fs::read(&path)?.into();
    let (index, wrong) = ChunkIndex::of_chunk(&octets);
    if index.len() == 0 {
        fs::remove_file(&path)?;
        return Ok(None);
    }
    let torn = wrong.iter().find_map(|scanned| match scanned {
        Scanned::Torn { offset, .. } => Some(*offset as u64),
        _ => None,
    });
    let length = torn.unwrap_or(octets.len() as u64);
    file.set_len(length)?;
    file.sync_all()?;
    let local = Local {
        file: Arc::new(file),
        path,
        index: Arc::new(index),
        length,
        received_at: None,
        is_finished: true,
    };
    Ok(Some(Left { id, local, wrong }))
}
