//! Files that are given and taken; what came of one stays until it is whole.

use std::fs::{self, File, OpenOptions};
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use namecast_apps::session::exchange::Offer;
use sha2::{Digest, Sha256};

use crate::page_server::hex;

/// Octets read at a time.
const BLOCK: usize = 1 << 16;
/// Digits of the digest in the name of what is not whole yet.
const SHOWN_DIGITS: usize = 16;

/// A file that is given.
pub(super) struct Outgoing {
    pub(super) offer: Offer,
    file: BufReader<File>,
}

impl Outgoing {
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.with_context(|| format!("{shown} is no file: name one to give"))?;
        ensure!(
            !name.starts_with('.'),
            "{shown} begins with a period, which the other side refuses: give it under another name"
        );
        let file = File::open(path).with_context(|| format!("cannot open {shown}"))?;
        ensure!(
            file.metadata()?.is_file(),
            "{shown} is no file: name one to give"
        );
        let mut file = BufReader::with_capacity(BLOCK, file);
        let (digest, size) = digest(&mut file).with_context(|| format!("cannot read {shown}"))?;
        Ok(Self {
            offer: Offer {
                name: name.to_owned(),
                size,
                digest: digest.finalize().into(),
            },
            file,
        })
    }

    pub(super) fn go_to(&mut self, offset: u64) -> anyhow::Result<()> {
        self.file.seek(SeekFrom::Start(offset))?;
        Ok(())
    }

    /// The next octets, `count` at most.
    pub(super) fn read(&mut self, count: usize) -> anyhow::Result<Vec<u8>> {
        let mut octets = Vec::with_capacity(count);
        let part = self.file.by_ref().take(count as u64);
        { part }.read_to_end(&mut octets)?;
        if octets.is_empty() {
            bail!("the file has become shorter while it was sent: run the same command again");
        }
        Ok(octets)
    }
}

/// Reads a file to its end.
fn digest(file: &mut impl Read) -> std::io::Result<(Sha256, u64)> {
    let mut digest = Sha256::new();
    let mut size = 0;
    let mut block = vec![0; BLOCK];
    loop {
        let count = file.read(&mut block)?;
        if count == 0 {
            return Ok((digest, size));
        }
        digest.update(&block[..count]);
        size += count as u64;
    }
}

/// A file that comes.
pub(super) struct Incoming {
    offer: Offer,
    path: PathBuf,
    part: PathBuf,
    /// `None`: it is here already.
    file: Option<BufWriter<File>>,
    digest: Sha256,
    received: u64,
}

impl Incoming {
    /// Goes on with what came of the same file before.
    pub(super) fn open(into: &Path, offer: Offer) -> anyhow::Result<Self> {
        let path = into.join(&offer.name);
        let digits = hex(&offer.digest);
        let part = into.join(format!("{}.{}.part", offer.name, &digits[..SHOWN_DIGITS]));
        let shown = path.display();
        if path.exists() {
            let (digest, size) = digest(&mut File::open(&path)?)?;
            let is_same = <[u8; 32]>::from(digest.clone().finalize()) == offer.digest;
            ensure!(
                is_same,
                "{shown} exists and is another file: move it away, or choose another directory with --into"
            );
            return Ok(Self {
                offer,
                path,
                part,
                file: None,
                digest,
                received: size,
            });
        }
        let open = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(&part);
        let mut file = open.with_context(|| format!("cannot write {}", part.display()))?;
        let (mut found, mut received) = digest(&mut file)?;
        if received > offer.size {
            file.set_len(0)?;
            (found, received) = (Sha256::new(), 0);
        }
        Ok(Self {
            offer,
            path,
            part,
            file: Some(BufWriter::with_capacity(BLOCK, file)),
            digest: found,
            received,
        })
    }

    pub(super) const fn offer(&self) -> &Offer {
        &self.offer
    }

    pub(super) const fn received(&self) -> u64 {
        self.received
    }

    pub(super) const fn is_complete(&self) -> bool {
        self.received == self.offer.size
    }

    pub(super) fn write(&mut self, octets: &[u8]) -> anyhow::Result<()> {
        if let Some(file) = &mut self.file {
            file.write_all(octets)
                .with_context(|| format!("cannot write {}", self.part.display()))?;
        }
        self.digest.update(octets);
        self.received += octets.len() as u64;
        Ok(())
    }

    /// Gives the file its name, if it is what was offered; else nothing of it stays.
    pub(super) fn finish(self) -> anyhow::Result<PathBuf> {
        let is_right = <[u8; 32]>::from(self.digest.finalize()) == self.offer.digest;
        let Some(file) = self.file else {
            return Ok(self.path);
        };
        let file = file.into_inner().map_err(|error| error.into_error())?;
        file.sync_all()?;
        if !is_right {
            fs::remove_file(&self.part)?;
            bail!("its SHA-256 is not what was announced: run the same command again");
        }
        // Fails where a file of this name was made meanwhile.
        fs::hard_link(&self.part, &self.path)
            .with_context(|| format!("cannot name the file {}", self.path.display()))?;
        fs::remove_file(&self.part)?;
        Ok(self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn give(directory: &Path, content: &[u8]) -> Outgoing {
        let path = directory.join("a.bin");
        fs::write(&path, content).unwrap();
        Outgoing::open(&path).unwrap()
    }

    #[test]
    fn a_file_goes_on_where_it_stopped() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let content: Vec<u8> = (0..200_000_u32).map(|at| (at / 3) as u8).collect();
        let mut outgoing = give(from.path(), &content);
        let offer = outgoing.offer.clone();
        let mut first = Incoming::open(to.path(), offer.clone()).unwrap();
        outgoing.go_to(0).unwrap();
        first.write(&outgoing.read(70_000).unwrap()).unwrap();
        drop(first);
        let mut second = Incoming::open(to.path(), offer.clone()).unwrap();
        assert_eq!(second.received(), 70_000);
        outgoing.go_to(second.received()).unwrap();
        while !second.is_complete() {
            second.write(&outgoing.read(1_000).unwrap()).unwrap();
        }
        let path = second.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), content);
        assert_eq!(
            fs::read_dir(to.path()).unwrap().count(),
            1,
            "no part is left"
        );
        // Once more: it is here.
        let again = Incoming::open(to.path(), offer).unwrap();
        assert!(again.is_complete() && again.finish().is_ok());
    }

    #[test]
    fn another_file_is_neither_kept_nor_overwritten() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let offer = give(from.path(), b"right").offer;
        let mut incoming = Incoming::open(to.path(), offer.clone()).unwrap();
        incoming.write(b"wrong").unwrap();
        assert!(incoming.is_complete());
        let error = incoming.finish().unwrap_err().to_string();
        assert!(error.contains("SHA-256"), "{error}");
        assert_eq!(fs::read_dir(to.path()).unwrap().count(), 0);
        fs::write(to.path().join("a.bin"), "mine").unwrap();
        let error = Incoming::open(to.path(), offer).err().unwrap().to_string();
        assert!(error.contains("--into"), "{error}");
        assert_eq!(fs::read(to.path().join("a.bin")).unwrap(), b"mine");
    }
}
