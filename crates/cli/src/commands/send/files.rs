//! Files that are sent: their table of contents, and their content, a segment at a time.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use namecast_apps::object::transfer::{
    Coding, Contents, FileEntry, SEGMENT_SIZE, Shards, Source, SourceError,
};
use sha2::{Digest, Sha256};

use crate::hexadecimal::hex;

/// Octets of which a checksum is kept, so that nothing is signed that was not read when the table was made.
const BLOCK: u64 = 1 << 18;
/// Blocks that are kept in memory.
const MAX_CACHED: usize = 32;
/// Files that are sent at most.
const MAX_FILES: usize = 100_000;
/// Directories below one another.
const MAX_DEPTH: usize = 100;
/// Content up to which there is parity, which may take three times as much room in the directory of temporary files.
const MAX_CODED: u64 = 1 << 30;

/// A file, and where its content begins in the object.
#[derive(Clone, Debug)]
struct Place {
    path: PathBuf,
    start: u64,
    size: u64,
}

/// All files of an object.
#[derive(Clone, Debug)]
pub(super) struct Files {
    pub(super) contents: Contents,
    places: Arc<[Place]>,
    checksums: Arc<[u64]>,
    parity: Parity,
}

/// Parity in a file without a name, once it is made.
#[derive(Clone, Debug, Default)]
struct Parity(Arc<Mutex<Option<File>>>);

impl Files {
    /// Reads files, and all files below directories.
    ///
    /// # Errors
    /// If one cannot be read, or is none; if two would have one path.
    pub(super) fn read(paths: &[PathBuf], is_coded: bool) -> anyhow::Result<Self> {
        let mut found = Vec::new();
        for path in paths {
            let name = path.file_name().and_then(|name| name.to_str());
            let name = match name {
                Some(name) => name.to_owned(),
                // Of `.` and `..`, the name of the directory that they lead to.
                None => name_of(&path.canonicalize()?)?,
            };
            let about = fs::metadata(path);
            let about = about.with_context(|| format!("cannot open {}", path.display()))?;
            match about.is_dir() {
                true => walk(path, &name, &mut found)?,
                false => found.push((name, path.clone())),
            }
        }
        ensure!(!found.is_empty(), "there is no file in what is to be sent");
        let mut reading = Reading::default();
        for (path, place) in found {
            reading.add(path, place)?;
        }
        reading.finish(is_coded)
    }

    /// Makes all parity.
    ///
    /// # Errors
    /// If a file has changed, or there is no room.
    pub(super) fn make_parity(&self) -> anyhow::Result<()> {
        let Some(coding) = self.contents.coding else {
            return Ok(());
        };
        let file = tempfile::tempfile().context("cannot make a file for parity")?;
        let segments = self.contents.segments();
        let mut shards = Encoding {
            content: self.source(),
            file,
            segments,
        };
        for index in 0..coding.blocks(segments) {
            let block = coding.block(segments, index);
            coding
                .encode(block, self.contents.segment_size as usize, &mut shards)
                .with_context(|| {
                    format!("cannot write parity to {}", std::env::temp_dir().display())
                })?;
        }
        *self.parity.lock() = Some(shards.file);
        Ok(())
    }

    /// Files that a sender reads.
    pub(super) fn source(&self) -> Content {
        Content {
            files: self.clone(),
            open: None,
            cached: VecDeque::new(),
        }
    }
}

impl Parity {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<File>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn name_of(path: &Path) -> anyhow::Result<String> {
    let name = path.file_name().and_then(|name| name.to_str());
    let name =
        name.with_context(|| format!("{} has no name that is text: rename it", path.display()))?;
    Ok(name.to_owned())
}

/// Finds all files below a directory, in the order of their names.
fn walk(top: &Path, name: &str, found: &mut Vec<(String, PathBuf)>) -> anyhow::Result<()> {
    let mut left = vec![(top.to_owned(), name.to_owned(), 0)];
    while let Some((directory, name, depth)) = left.pop() {
        let shown = directory.display();
        ensure!(
            depth < MAX_DEPTH,
            "{shown} lies too deep: send a part of it"
        );
        let entries = fs::read_dir(&directory).with_context(|| format!("cannot read {shown}"))?;
        let mut entries: Vec<_> = entries.collect::<Result<_, _>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let path = entry.path();
            let name = format!("{name}/{}", name_of(&path)?);
            let kind = entry.file_type()?;
            if kind.is_symlink() {
                bail!(
                    "{} is a link, which would lead elsewhere at receivers: put what it leads to in its place, or remove it",
                    path.display()
                );
            }
            match kind.is_dir() {
                true => left.push((path, name, depth + 1)),
                false => found.push((name, path)),
            }
            ensure!(
                found.len() <= MAX_FILES,
                "there are more than {MAX_FILES} files in {}: send a part of it, or an archive",
                top.display()
            );
        }
    }
    Ok(())
}

/// Makes the table while files are read.
#[derive(Default)]
struct Reading {
    entries: Vec<FileEntry>,
    places: Vec<Place>,
    checksums: Vec<u64>,
    /// Content since the last checksum.
    block: Vec<u8>,
    size: u64,
}

impl Reading {
    fn add(&mut self, name: String, path: PathBuf) -> anyhow::Result<()> {
        let shown = path.display();
        // To open a pipe would wait for whoever writes into it.
        let about = fs::metadata(&path).with_context(|| format!("cannot open {shown}"))?;
        ensure!(
            about.is_file(),
            "{shown} is no file: name files or directories to send"
        );
        let file = File::open(&path).with_context(|| format!("cannot open {shown}"))?;
        let start = self.size;
        let mut digest = Sha256::new();
        loop {
            let room = BLOCK - self.block.len() as u64;
            let before = self.block.len();
            let count = (&file).take(room).read_to_end(&mut self.block);
            let count = count.with_context(|| format!("cannot read {shown}"))?;
            if count == 0 {
                break;
            }
            digest.update(&self.block[before..]);
            self.size += count as u64;
            if self.block.len() as u64 == BLOCK {
                self.end_block();
            }
        }
        let size = self.size - start;
        self.entries.push(FileEntry {
            path: name,
            size,
            sha256: hex(&digest.finalize()),
        });
        self.places.push(Place { path, start, size });
        Ok(())
    }

    fn end_block(&mut self) {
        self.checksums.push(checksum(&self.block));
        self.block.clear();
    }

    fn finish(mut self, is_coded: bool) -> anyhow::Result<Files> {
        if !self.block.is_empty() {
            self.end_block();
        }
        let mut contents = Contents {
            version: 0,
            segment_size: SEGMENT_SIZE,
            coding: None,
            files: self.entries,
        };
        if is_coded && self.size <= MAX_CODED {
            contents.coding = Some(Coding::of(contents.segments(), 3));
        }
        Ok(Files {
            contents,
            places: self.places.into(),
            checksums: self.checksums.into(),
            parity: Parity::default(),
        })
    }
}

/// Detects changes by accident; whoever changes a file on purpose is its owner.
fn checksum(octets: &[u8]) -> u64 {
    let digest = Sha256::digest(octets);
    digest
        .as_chunks::<8>()
        .0
        .first()
        .map_or(0, |first| u64::from_le_bytes(*first))
}

/// Reads segments of files.
pub(super) struct Content {
    files: Files,
    open: Option<(usize, File)>,
    /// Blocks that were read last, the newest last.
    cached: VecDeque<(u64, Bytes)>,
}

impl Content {
    /// Reads octets of the object, which lie in as many blocks as it takes.
    fn at(&mut self, offset: u64, length: usize) -> Result<Bytes, SourceError> {
        let mut octets = Vec::with_capacity(length);
        while octets.len() < length {
            let from = offset + octets.len() as u64;
            let block = self.block(from / BLOCK)?;
            let skipped = (from % BLOCK) as usize;
            let left = block.get(skipped..).unwrap_or_default();
            if left.is_empty() {
                return Err(SourceError("the table does not fit the files".to_owned()));
            }
            let count = left.len().min(length - octets.len());
            octets.extend_from_slice(&left[..count]);
        }
        Ok(octets.into())
    }

    fn block(&mut self, index: u64) -> Result<Bytes, SourceError> {
        if let Some((_, block)) = self.cached.iter().find(|(it, _)| *it == index) {
            return Ok(block.clone());
        }
        let start = index * BLOCK;
        let end = (start + BLOCK).min(self.files.contents.size());
        let mut block = Vec::with_capacity((end - start) as usize);
        let places = Arc::clone(&self.files.places);
        let first = places.partition_point(|place| place.start + place.size <= start);
        let mut last = first;
        for (number, place) in places.iter().enumerate().skip(first) {
            let from = start + block.len() as u64;
            if from >= end {
                break;
            }
            let count = (place.start + place.size).min(end) - from;
            self.read(number, (from - place.start, count), &mut block)
                .map_err(|error| {
                    SourceError(format!(
                        "cannot read {} any more: {error}; send it again",
                        place.path.display()
                    ))
                })?;
            last = number;
        }
        if self.files.checksums.get(index as usize) != Some(&checksum(&block)) {
            let path = places
                .get(last)
                .map(|place| place.path.display().to_string());
            return Err(SourceError(format!(
                "{} has changed while it was sent: send it again, under the same name",
                path.unwrap_or_default()
            )));
        }
        let block = Bytes::from(block);
        if self.cached.len() >= MAX_CACHED {
            self.cached.pop_front();
        }
        self.cached.push_back((index, block.clone()));
        Ok(block)
    }

    fn read(
        &mut self,
        number: usize,
        (offset, count): (u64, u64),
        block: &mut Vec<u8>,
    ) -> io::Result<()> {
        let file = match &mut self.open {
            Some((open, file)) if *open == number => file,
            open => {
                let file = File::open(&self.files.places[number].path)?;
                &mut open.insert((number, file)).1
            }
        };
        file.seek(SeekFrom::Start(offset))?;
        (&*file).take(count).read_to_end(block)?;
        Ok(())
    }
}

impl Source for Content {
    fn read(&mut self, number: u64) -> Result<Bytes, SourceError> {
        let (offset, length) = self.files.contents.span(number);
        let Some(parity) = number.checked_sub(self.files.contents.segments()) else {
            return self.at(offset, length);
        };
        let mut octets = vec![0; length];
        let mut file = self.files.parity.lock();
        let read = file.as_mut().map(|file| {
            file.seek(SeekFrom::Start(parity * length as u64))?;
            file.read_exact(&mut octets)
        });
        match read {
            Some(Ok(())) => Ok(octets.into()),
            Some(Err(error)) => Err(SourceError(format!("cannot read parity: {error}"))),
            None => Err(SourceError("parity is not made".to_owned())),
        }
    }
}

/// Content that is read, and parity that is written.
struct Encoding {
    content: Content,
    file: File,
    segments: u64,
}

impl Shards for Encoding {
    fn read(&mut self, number: u64, from: usize, octets: &mut [u8]) -> io::Result<()> {
        let (offset, length) = self.content.files.contents.span(number);
        let count = length.saturating_sub(from).min(octets.len());
        octets[count..].fill(0);
        if count > 0 {
            let read = self.content.at(offset + from as u64, count);
            octets[..count].copy_from_slice(&read.map_err(io::Error::other)?);
        }
        Ok(())
    }

    fn write(&mut self, number: u64, from: usize, octets: &[u8]) -> io::Result<()> {
        let size = u64::from(self.content.files.contents.segment_size);
        let offset = (number - self.segments) * size + from as u64;
        self.file.seek(SeekFrom::Start(offset))?;
        self.file.write_all(octets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path().join("top");
        fs::create_dir_all(top.join("b")).unwrap();
        fs::write(top.join("z"), vec![1; 300_000]).unwrap();
        fs::write(top.join("b/a"), vec![2; 300_000]).unwrap();
        fs::write(top.join("empty"), b"").unwrap();
        directory
    }

    #[test]
    fn a_directory_is_one_object() {
        let directory = tree();
        let files = Files::read(&[directory.path().join("top")], true).unwrap();
        let paths: Vec<_> = files
            .contents
            .files
            .iter()
            .map(|it| it.path.as_str())
            .collect();
        assert_eq!(paths, ["top/empty", "top/z", "top/b/a"]);
        assert_eq!(files.contents.size(), 600_000);
        let mut source = files.source();
        // 300 000 = 79 · 3776 + 1696.
        let between = Source::read(&mut source, 79).unwrap();
        assert!(between[..1_696].iter().all(|it| *it == 1));
        assert!(between[1_696..].iter().all(|it| *it == 2));
        assert_eq!(between.len(), 3_776);
        let last = Source::read(&mut source, 158).unwrap();
        assert_eq!(last.len(), 600_000 - 158 * 3_776);
        assert!(Source::read(&mut source, 159).is_err(), "no parity yet");
        files.make_parity().unwrap();
        assert_eq!(Source::read(&mut source, 159 + 476).unwrap().len(), 3_776);
    }

    #[test]
    fn a_file_that_changes_is_not_sent() {
        let directory = tree();
        let top = directory.path().join("top");
        for change in [
            |path: &Path| fs::write(path, vec![3; 300_000]),
            |path: &Path| fs::write(path, b"short"),
        ] {
            fs::write(top.join("b/a"), vec![2; 300_000]).unwrap();
            let files = Files::read(std::slice::from_ref(&top), false).unwrap();
            let mut source = files.source();
            assert!(Source::read(&mut source, 158).is_ok());
            change(&top.join("b/a")).unwrap();
            let mut source = files.source();
            let error = Source::read(&mut source, 158).unwrap_err().to_string();
            assert!(error.contains("b/a has changed"), "{error}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_pipes_and_equal_names_are_refused() {
        let directory = tree();
        let top = directory.path().join("top");
        let twice = Files::read(&[top.join("z"), top.join("z")], false).unwrap();
        assert!(twice.contents.encode().is_err());
        std::os::unix::fs::symlink("/etc/passwd", top.join("link")).unwrap();
        let error = Files::read(std::slice::from_ref(&top), false)
            .unwrap_err()
            .to_string();
        assert!(error.contains("is a link"), "{error}");
        let error = Files::read(&["/dev/null".into()], false)
            .unwrap_err()
            .to_string();
        assert!(error.contains("is no file"), "{error}");
        let error = Files::read(&[top.join("absent")], false)
            .unwrap_err()
            .to_string();
        assert!(error.contains("cannot open"), "{error}");
    }
}
