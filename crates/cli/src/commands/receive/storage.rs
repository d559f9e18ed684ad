//! Files that are received: in a directory of their own until all are whole.
//!
//! ```text
//!  DIR/.namecast-00d5…/0 … n   content of each file, as far as it is here
//!                     /parity  parity, as long as it is needed
//!                     /signatures   of each segment that came, for neighbours
//!                     /here    which segments are here: written now and then, for whoever goes on after this process
//!                     /lock    held by the process that writes here
//! ```

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use namecast_apps::object::transfer::{Contents, KeptSegments, SegmentSet, Shards, identity};
use sha2::Digest;

use crate::commands::disk::{digest, free_space};
use crate::hexadecimal::hex;

/// Where parity and signatures are, instead of the number of a file.
const PARITY: usize = usize::MAX;
const SIGNATURES: usize = usize::MAX - 1;
/// Room for a signature and its length. Longer ones are not kept, so that neighbours do not get their segments.
const SIGNATURE_ROOM: usize = 96;

/// Content of an object that is being received.
#[derive(Debug)]
pub(super) struct Storage {
    /// Where files belong, in the order of the table.
    targets: Vec<PathBuf>,
    pieces: Pieces,
    here: SegmentSet,
    /// Octets of the object that were read in order.
    read: u64,
    _lock: File,
}

/// The files that are being received. One of them is open, and the file of signatures, which each segment needs, too.
#[derive(Debug)]
pub(super) struct Pieces {
    contents: Contents,
    directory: PathBuf,
    /// Where the content of each file begins.
    starts: Vec<u64>,
    open: Option<(usize, File)>,
    open_signatures: Option<(usize, File)>,
}

impl Storage {
    /// Opens what is here of an object, whose files belong below `into`; or of a single one, at `into` itself if `is_file`.
    ///
    /// # Errors
    /// If other files are where these belong, there is no room, or nothing can be written.
    pub(super) fn open(contents: Contents, into: &Path, is_file: bool) -> anyhow::Result<Self> {
        let (parent, targets) = places(&contents, into, is_file)?;
        ensure!(
            parent.is_dir(),
            "{} is no directory: write --into DIRECTORY for what comes",
            parent.display()
        );
        for target in &targets {
            check_target(&parent, target)?;
        }
        let identity = identity(&contents);
        let directory = directory_of(&contents, &parent);
        let starts = contents.files.iter().scan(0, |next, file| {
            let start = *next;
            *next += file.size;
            Some(start)
        });
        check_room(&contents, &directory, &parent)?;
        fs::create_dir_all(&directory)
            .with_context(|| format!("cannot make {}", directory.display()))?;
        let mut storage = Self {
            targets,
            here: SegmentSet::new(0),
            read: 0,
            _lock: lock(&directory)?,
            pieces: Pieces {
                starts: starts.collect(),
                open: None,
                open_signatures: None,
                directory,
                contents,
            },
        };
        let total = storage.contents().total();
        storage.here = storage
            .read_here(&identity)
            .unwrap_or_else(|| SegmentSet::new(total));
        Ok(storage)
    }

    fn read_here(&self, identity: &[u8; 32]) -> Option<SegmentSet> {
        let octets = fs::read(self.pieces.directory.join("here")).ok()?;
        let (found, set) = octets.split_first_chunk()?;
        let set = SegmentSet::decode(self.contents().total(), set);
        set.filter(|_| found == identity)
    }

    /// Writes down what is here, for whoever goes on.
    ///
    /// # Errors
    /// Error of the system.
    pub(super) fn save(&self) -> anyhow::Result<()> {
        let octets = [&identity(self.contents())[..], &self.here.encode()].concat();
        let directory = &self.pieces.directory;
        let (path, new) = (directory.join("here"), directory.join("here.new"));
        let written = fs::write(&new, octets).and_then(|()| fs::rename(&new, &path));
        written.with_context(|| format!("cannot write {}", path.display()))
    }

    pub(super) const fn here(&self) -> &SegmentSet {
        &self.here
    }

    pub(super) const fn contents(&self) -> &Contents {
        &self.pieces.contents
    }

    /// Returns what reads segments that are here, for neighbours.
    pub(super) fn pieces(&self) -> Pieces {
        Pieces {
            contents: self.contents().clone(),
            directory: self.pieces.directory.clone(),
            starts: self.pieces.starts.clone(),
            open: None,
            open_signatures: None,
        }
    }

    /// Keeps a segment and its signature.
    ///
    /// # Errors
    /// Error of the system, and advice.
    pub(super) fn keep(
        &mut self,
        number: u64,
        content: &[u8],
        signature: &[u8],
    ) -> anyhow::Result<()> {
        let pieces = &mut self.pieces;
        let written = pieces.write(number, 0, content);
        let written = written.and_then(|()| pieces.write_signature(number, signature));
        written.with_context(|| {
            let shown = pieces.directory.display();
            format!(
                "cannot write to {shown}; once there is room, the same command goes on from here"
            )
        })?;
        self.here.insert(number);
        Ok(())
    }

    /// Makes from parity what is missing of each block of which enough is here.
    fn decode(&mut self) -> anyhow::Result<()> {
        let Some(coding) = self.contents().coding else {
            return Ok(());
        };
        let segments = self.contents().segments();
        for index in 0..coding.blocks(segments) {
            let block = coding.block(segments, index);
            let own = block.first..block.first + u64::from(block.count);
            if self.here.next_missing(own.start, own.end).is_none() {
                continue;
            }
            let shard = self.contents().segment_size as usize;
            coding
                .decode(block, shard, (&self.here, &mut self.pieces))
                .context("cannot make the rest from parity")?;
            own.for_each(|number| {
                self.here.insert(number);
            });
        }
        Ok(())
    }

    /// Reads what is here in order and was not read before, a part at most.
    ///
    /// # Errors
    /// Error of the system.
    pub(super) fn read_on(&mut self) -> anyhow::Result<Vec<u8>> {
        const PART: u64 = 1 << 20;
        let contents = self.contents();
        let size = u64::from(contents.segment_size);
        let segments = contents.segments();
        let first = self.read / size;
        let end = self.here.next_missing(first, segments).unwrap_or(segments);
        let end = (end * size).min(contents.size()).min(self.read + PART);
        let mut octets = vec![0; end.saturating_sub(self.read) as usize];
        self.pieces.at(self.read, &mut octets, Direction::Read)?;
        self.read = end.max(self.read);
        Ok(octets)
    }

    /// Makes what is missing, and checks the digest of each file. What is wrong is removed.
    ///
    /// # Errors
    /// If a digest is wrong, or what the system says.
    pub(super) fn complete(&mut self) -> anyhow::Result<()> {
        self.decode()?;
        self.pieces.open = None;
        let directory = &self.pieces.directory;
        for (index, entry) in self.contents().files.iter().enumerate() {
            let path = directory.join(index.to_string());
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false);
            let file = options.open(&path);
            let mut file = file.with_context(|| format!("cannot open {}", path.display()))?;
            let (found, size) = digest(&mut file)?;
            if size != entry.size || hex(&found.finalize()) != entry.sha256 {
                fs::remove_dir_all(directory)?;
                bail!(
                    "{} is not what the sender announced: run the same command again",
                    entry.path
                );
            }
            file.sync_all()?;
        }
        Ok(())
    }

    /// Gives all files their names. Returns their paths.
    ///
    /// # Errors
    /// If another file has one of them meanwhile.
    pub(super) fn name(&self) -> anyhow::Result<Vec<PathBuf>> {
        for (index, target) in self.targets.iter().enumerate() {
            let part = self.pieces.directory.join(index.to_string());
            if let Some(parent) = target.parent() {
                fs::create_dir_all(parent)?;
            }
            if is_same(target, &self.contents().files[index].sha256) {
                continue;
            }
            // Fails where a file of this name was made meanwhile.
            fs::hard_link(&part, target)
                .with_context(|| format!("cannot name the file {}", target.display()))?;
        }
        Ok(self.targets.clone())
    }

    /// Removes what is here: all of it has its name, or was printed.
    ///
    /// # Errors
    /// Error of the system.
    pub(super) fn remove(self) -> anyhow::Result<()> {
        Ok(fs::remove_dir_all(&self.pieces.directory)?)
    }
}

impl Pieces {
    /// Keeps a signature, whose room begins with its length.
    fn write_signature(&mut self, number: u64, signature: &[u8]) -> io::Result<()> {
        if signature.len() >= SIGNATURE_ROOM {
            return Ok(());
        }
        let mut octets = [&[signature.len() as u8], signature].concat();
        let offset = number * SIGNATURE_ROOM as u64;
        self.file_at((SIGNATURES, offset), &mut octets, Direction::Write)
    }

    fn read_signature(&mut self, number: u64) -> io::Result<Bytes> {
        let offset = number * SIGNATURE_ROOM as u64;
        let mut length = [0];
        self.file_at((SIGNATURES, offset), &mut length, Direction::Read)?;
        let mut octets = vec![0; length[0].into()];
        self.file_at((SIGNATURES, offset + 1), &mut octets, Direction::Read)?;
        Ok(octets.into())
    }

    /// Reads or writes octets of the object, which lie in as many files as it takes.
    fn at(&mut self, offset: u64, octets: &mut [u8], direction: Direction) -> io::Result<()> {
        let mut done = 0;
        let mut index = self
            .starts
            .partition_point(|start| *start <= offset)
            .saturating_sub(1);
        while done < octets.len() {
            let from = offset + done as u64;
            let (Some(start), Some(entry)) =
                (self.starts.get(index), self.contents.files.get(index))
            else {
                return Err(io::Error::other("behind the end"));
            };
            let left = (start + entry.size).saturating_sub(from);
            let count = usize::try_from(left)
                .unwrap_or(usize::MAX)
                .min(octets.len() - done);
            if count > 0 {
                let place = (index, from - start);
                self.file_at(place, &mut octets[done..done + count], direction)?;
            }
            done += count;
            index += 1;
        }
        Ok(())
    }

    fn file_at(
        &mut self,
        (index, offset): (usize, u64),
        octets: &mut [u8],
        direction: Direction,
    ) -> io::Result<()> {
        let open = match index {
            SIGNATURES => &mut self.open_signatures,
            _ => &mut self.open,
        };
        let file = match open {
            Some((open, file)) if *open == index => file,
            open => {
                let name = match index {
                    PARITY => "parity".to_owned(),
                    SIGNATURES => "signatures".to_owned(),
                    index => index.to_string(),
                };
                let mut options = OpenOptions::new();
                options.read(true).write(true).create(true).truncate(false);
                let file = options.open(self.directory.join(name))?;
                &mut open.insert((index, file)).1
            }
        };
        file.seek(SeekFrom::Start(offset))?;
        match direction {
            Direction::Read => file.read_exact(octets),
            Direction::Write => file.write_all(octets),
        }
    }
}

/// Which way octets go.
#[derive(Clone, Copy, Debug)]
enum Direction {
    Read,
    Write,
}

impl Shards for Pieces {
    fn read(&mut self, number: u64, from: usize, octets: &mut [u8]) -> io::Result<()> {
        let segments = self.contents.segments();
        let (offset, length) = self.contents.span(number);
        match number.checked_sub(segments) {
            Some(parity) => {
                let offset = parity * length as u64 + from as u64;
                self.file_at((PARITY, offset), octets, Direction::Read)
            }
            None => {
                let count = length.saturating_sub(from).min(octets.len());
                octets[count..].fill(0);
                self.at(offset + from as u64, &mut octets[..count], Direction::Read)
            }
        }
    }

    fn write(&mut self, number: u64, from: usize, octets: &[u8]) -> io::Result<()> {
        let segments = self.contents.segments();
        let (offset, length) = self.contents.span(number);
        let mut octets = octets.to_vec();
        match number.checked_sub(segments) {
            Some(parity) => {
                let offset = parity * length as u64 + from as u64;
                self.file_at((PARITY, offset), &mut octets, Direction::Write)
            }
            None => {
                let count = length.saturating_sub(from).min(octets.len());
                self.at(offset + from as u64, &mut octets[..count], Direction::Write)
            }
        }
    }
}

impl KeptSegments for Pieces {
    fn read(&mut self, number: u64) -> Option<(Bytes, Bytes)> {
        let signature = self.read_signature(number).ok()?;
        let mut octets = vec![0; self.contents.span(number).1];
        Shards::read(self, number, 0, &mut octets).ok()?;
        Some((octets.into(), signature))
    }
}

fn check_room(contents: &Contents, directory: &Path, parent: &Path) -> anyhow::Result<()> {
    let size = contents.size();
    let known = fs::read_dir(directory).into_iter().flatten().flatten();
    let here: u64 = known
        .filter_map(|entry| entry.metadata().ok())
        .map(|it| it.len())
        .sum();
    match free_space(parent).filter(|free| size.saturating_sub(here) > *free) {
        Some(free) => bail!(
            "{size} bytes are to come, and {free} are free in {}: choose another directory with --into",
            parent.display()
        ),
        None => Ok(()),
    }
}

/// Keeps other processes from the directory, where the file system can.
fn lock(directory: &Path) -> anyhow::Result<File> {
    let path = directory.join("lock");
    let file = File::create(&path).with_context(|| format!("cannot make {}", path.display()))?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => bail!(
            "another process receives the same files into {}: wait for it, or choose another directory with --into",
            directory.display()
        ),
        Ok(()) | Err(TryLockError::Error(_)) => Ok(file),
    }
}

/// Returns where files are until all are whole.
fn directory_of(contents: &Contents, parent: &Path) -> PathBuf {
    parent.join(format!(".namecast-{:016x}", contents.version))
}

/// Returns the directory that files go to, and the path of each.
fn places(
    contents: &Contents,
    into: &Path,
    is_file: bool,
) -> anyhow::Result<(PathBuf, Vec<PathBuf>)> {
    if !is_file {
        let targets = contents.files.iter().map(|file| into.join(&file.path));
        return Ok((into.to_owned(), targets.collect()));
    }
    ensure!(
        contents.files.len() == 1,
        "{} files are to come: choose a directory for them with --into",
        contents.files.len()
    );
    let parent = into
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    Ok((parent.to_owned(), vec![into.to_owned()]))
}

/// Checks that a file may be written: nothing else is there, and no link on the way leads elsewhere.
fn check_target(parent: &Path, target: &Path) -> anyhow::Result<()> {
    let below = target.strip_prefix(parent).unwrap_or(target);
    let mut on_the_way = parent.to_owned();
    for part in below.parent().unwrap_or(Path::new("")).components() {
        on_the_way.push(part);
        match fs::symlink_metadata(&on_the_way) {
            Ok(about) => ensure!(
                about.is_dir(),
                "{} is in the way: move it, or choose another directory with --into",
                on_the_way.display()
            ),
            Err(_) => return Ok(()),
        }
    }
    Ok(())
}

/// Returns whether a file is there with this digest.
fn is_same(target: &Path, sha256: &str) -> bool {
    let is_file = fs::symlink_metadata(target).is_ok_and(|about| about.is_file());
    let found = is_file.then(|| File::open(target).and_then(|mut file| digest(&mut file)));
    found.is_some_and(|found| found.is_ok_and(|(found, _)| hex(&found.finalize()) == sha256))
}

/// Returns whether all files are where they belong. What was left of a command that had named them is removed then.
///
/// # Errors
/// If other files are there.
pub(super) fn are_here(contents: &Contents, into: &Path, is_file: bool) -> anyhow::Result<bool> {
    let (parent, targets) = places(contents, into, is_file)?;
    let mut count = 0;
    for (target, entry) in targets.iter().zip(&contents.files) {
        if fs::symlink_metadata(target).is_ok() {
            ensure!(
                is_same(target, &entry.sha256),
                "{} is there already, with another content: move it away, or choose another directory with --into",
                target.display()
            );
            count += 1;
        }
    }
    let are_here = count == targets.len();
    if are_here {
        match fs::remove_dir_all(directory_of(contents, &parent)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    Ok(are_here)
}

#[cfg(test)]
mod tests {
    use namecast_apps::object::transfer::{Coding, FileEntry};
    use sha2::Sha256;

    use super::*;

    const SIZES: [(&str, usize); 4] = [
        ("d/a", 5_000),
        ("d/empty", 0),
        ("d/e/b", 100),
        ("d/c", 9_000),
    ];

    /// Four files in two blocks of two segments, and their content.
    fn contents() -> (Contents, Vec<u8>) {
        let mut all = Vec::new();
        let files = SIZES.iter().map(|(path, size)| {
            let content: Vec<u8> = (0..*size).map(|at| (at / 7 + all.len()) as u8).collect();
            all.extend_from_slice(&content);
            FileEntry {
                path: (*path).to_owned(),
                size: *size as u64,
                sha256: hex(&Sha256::digest(content)),
            }
        });
        let contents = Contents {
            version: 5,
            segment_size: 3_776,
            coding: Some(Coding {
                block: 2,
                parity: 6,
            }),
            files: files.collect(),
        };
        (contents, all)
    }

    fn segment(contents: &Contents, all: &[u8], number: u64) -> Vec<u8> {
        let (offset, length) = contents.span(number);
        all[offset as usize..offset as usize + length].to_vec()
    }

    #[test]
    fn segments_become_files_whoever_goes_on() {
        let directory = tempfile::tempdir().unwrap();
        let into = directory.path();
        let (contents, all) = contents();
        for number in [2, 0, 3, 1] {
            let mut storage = Storage::open(contents.clone(), into, false).unwrap();
            storage
                .keep(
                    number,
                    &segment(&contents, &all, number),
                    &[number as u8; 64],
                )
                .unwrap();
            storage.save().unwrap();
        }
        let mut storage = Storage::open(contents.clone(), into, false).unwrap();
        let error = Storage::open(contents.clone(), into, false).unwrap_err();
        assert!(error.to_string().contains("another process"), "{error}");
        assert_eq!(storage.here().count(), 4);
        let mut read = Vec::new();
        while let part = storage.read_on().unwrap()
            && !part.is_empty()
        {
            read.extend(part);
        }
        assert_eq!(read, all);
        storage.complete().unwrap();
        assert!(!are_here(&contents, into, false).unwrap());
        let mut pieces = storage.pieces();
        let paths = storage.name().unwrap();
        // Neighbours get what came, also once it has its name.
        for number in 0..4 {
            let (content, signature) = KeptSegments::read(&mut pieces, number).unwrap();
            assert_eq!(content, segment(&contents, &all, number));
            assert_eq!(signature, vec![number as u8; 64]);
        }
        assert!(KeptSegments::read(&mut pieces, 4).is_none());
        let written: Vec<u8> = paths
            .iter()
            .flat_map(|path| fs::read(path).unwrap())
            .collect();
        assert_eq!(written, all);
        assert_eq!(fs::read_dir(into).unwrap().count(), 2);
        assert!(are_here(&contents, into, false).unwrap());
        assert_eq!(
            fs::read_dir(into).unwrap().count(),
            1,
            "nothing else is left"
        );
    }

    /// Of the first block parity is here, of the second both segments.
    #[test]
    fn parity_makes_what_is_missing() {
        let (contents, all) = contents();
        let coding = contents.coding.unwrap();
        let directory = tempfile::tempdir().unwrap();
        let [encoder, decoder] = ["encoder", "decoder"].map(|name| {
            let into = directory.path().join(name);
            fs::create_dir(&into).unwrap();
            into
        });
        let mut whole = Storage::open(contents.clone(), &encoder, false).unwrap();
        (0..4).for_each(|it| whole.keep(it, &segment(&contents, &all, it), &[]).unwrap());
        for index in 0..2 {
            coding
                .encode(coding.block(4, index), 3_776, &mut whole.pieces)
                .unwrap();
        }
        let mut storage = Storage::open(contents.clone(), &decoder, false).unwrap();
        for number in [5, 8, 2, 3] {
            let mut shard = vec![0; contents.span(number).1];
            Shards::read(&mut whole.pieces, number, 0, &mut shard).unwrap();
            storage.keep(number, &shard, &[]).unwrap();
        }
        storage.complete().unwrap();
        let paths = storage.name().unwrap();
        let written: Vec<u8> = paths
            .iter()
            .flat_map(|path| fs::read(path).unwrap())
            .collect();
        assert_eq!(written, all);
    }

    #[test]
    fn what_is_not_announced_does_not_stay() {
        let directory = tempfile::tempdir().unwrap();
        let (contents, all) = contents();
        let mut storage = Storage::open(contents.clone(), directory.path(), false).unwrap();
        for number in 0..4 {
            let mut octets = segment(&contents, &all, number);
            octets[0] ^= u8::from(number == 3);
            storage.keep(number, &octets, &[]).unwrap();
        }
        let error = storage.complete().unwrap_err().to_string();
        assert!(
            error.contains("d/c is not what the sender announced"),
            "{error}"
        );
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn other_files_and_links_are_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let into = directory.path();
        let (contents, _) = contents();
        let elsewhere = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), into.join("d")).unwrap();
        let error = Storage::open(contents.clone(), into, false)
            .unwrap_err()
            .to_string();
        assert!(error.contains("is in the way"), "{error}");
        fs::remove_file(into.join("d")).unwrap();
        fs::create_dir(into.join("d")).unwrap();
        fs::write(into.join("d/a"), "mine").unwrap();
        let error = are_here(&contents, into, false).unwrap_err().to_string();
        assert!(error.contains("is there already"), "{error}");
        let error = Storage::open(contents.clone(), &into.join("absent"), false).unwrap_err();
        assert!(error.to_string().contains("is no directory"), "{error}");
        let error = Storage::open(contents, &into.join("x"), true).unwrap_err();
        assert!(error.to_string().contains("4 files are to come"), "{error}");
    }
}
