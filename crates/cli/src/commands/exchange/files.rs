//! Files that are given and taken; what came of one stays until it is whole.

use std::fs::{self, File, OpenOptions};
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use namecast_apps::session::exchange::Offer;
use namecast_command::report::is_harmful;
use sha2::{Digest, Sha256};

use crate::commands::disk::{BLOCK, digest, free_space};
use crate::hexadecimal::hex;

/// Digits of the digest in the name of what is not whole yet.
const SHOWN_DIGITS: usize = 16;
/// Files of one name, the first included.
const MAX_NUMBERED: u32 = 1_000;

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
        // To open a pipe would wait for whoever writes into it.
        let about = fs::metadata(path).with_context(|| format!("cannot open {shown}"))?;
        ensure!(about.is_file(), "{shown} is no file: name one to give");
        let file = File::open(path).with_context(|| format!("cannot open {shown}"))?;
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

/// What is accepted of the other side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Largest file, in octets.
    pub(super) max_size: u64,
    /// Its key was known before: it may learn that its file is here already, whole or in part.
    pub(super) is_known: bool,
}

impl Incoming {
    /// Goes on with what came of the same file before, if the other side is known.
    ///
    /// # Errors
    /// If the file is too large, or cannot be written. The text is for people here: it says what there is on this machine.
    pub(super) fn open(into: &Path, offer: Offer, rules: Rules) -> anyhow::Result<Self> {
        let size = offer.size;
        ensure!(
            size <= rules.max_size,
            "the file has {size} bytes, more than {} are not taken: allow more with --max-size",
            rules.max_size
        );
        let name = name_here(&offer.name);
        let digits = hex(&offer.digest);
        let part = into.join(format!("{name}.{}.part", &digits[..SHOWN_DIGITS]));
        let path = match free_or_same(into, &name, &offer, rules)? {
            Place::Free(path) => path,
            Place::Same(path, digest) => {
                return Ok(Self {
                    received: size,
                    offer,
                    path,
                    part,
                    file: None,
                    digest,
                });
            }
        };
        ensure!(
            is_file_or_none(&part),
            "{} is no file: move it away",
            part.display()
        );
        let open = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(&part);
        let mut file = open.with_context(|| format!("cannot write {}", part.display()))?;
        let (mut found, mut received) = digest(&mut file)?;
        if received > size || !rules.is_known {
            file.set_len(0)?;
            (found, received) = (Sha256::new(), 0);
        }
        if let Some(free) = free_space(into).filter(|free| size - received > *free) {
            if received == 0 {
                fs::remove_file(&part)?;
            }
            bail!(
                "the file has {size} bytes, and {free} are free here: choose another directory with --into"
            );
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

/// Where a file is put.
enum Place {
    Free(PathBuf),
    /// It is there already, with this digest.
    Same(PathBuf, Sha256),
}

/// Returns the path of `name`, or of `name (2)` and so on where other files have it. Strangers never learn that their file is here.
fn free_or_same(into: &Path, name: &str, offer: &Offer, rules: Rules) -> anyhow::Result<Place> {
    let (stem, extension) = match name.rsplit_once('.') {
        Some((stem, extension)) => (stem, format!(".{extension}")),
        None => (name, String::new()),
    };
    for number in 1..=MAX_NUMBERED {
        let path = match number {
            1 => into.join(name),
            number => into.join(format!("{stem} ({number}){extension}")),
        };
        let Ok(about) = fs::symlink_metadata(&path) else {
            return Ok(Place::Free(path));
        };
        if rules.is_known && about.is_file() && about.len() == offer.size {
            let (digest, _) = digest(&mut File::open(&path)?)?;
            if <[u8; 32]>::from(digest.clone().finalize()) == offer.digest {
                return Ok(Place::Same(path, digest));
            }
        }
    }
    bail!("there are {MAX_NUMBERED} files of this name: choose another directory with --into")
}

/// Returns a file's name as it can be on any machine: what is reserved, invisible or turns the direction of writing becomes `_`.
fn name_here(name: &str) -> String {
    let is_reserved = |character: char| r#"<>:"|?*/\"#.contains(character);
    let replace = |character| match is_harmful(character) || is_reserved(character) {
        true => '_',
        false => character,
    };
    let mut here: String = name.chars().map(replace).collect();
    if here.ends_with(['.', ' ']) {
        here.pop();
        here.push('_');
    }
    let stem = here.split('.').next().unwrap_or_default();
    let stem = stem.trim_end().to_ascii_uppercase();
    let is_numbered = |device: &str| {
        let number = stem.strip_prefix(device);
        number.is_some_and(|it| it.len() == 1 && it.bytes().all(|it| it.is_ascii_digit()))
    };
    let is_device =
        ["CON", "PRN", "AUX", "NUL"].contains(&&*stem) || is_numbered("COM") || is_numbered("LPT");
    if is_device {
        here.insert(0, '_');
    }
    here
}

fn is_file_or_none(path: &Path) -> bool {
    fs::symlink_metadata(path).map_or(true, |about| about.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: Rules = Rules {
        max_size: 1 << 20,
        is_known: true,
    };

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
        let mut first = Incoming::open(to.path(), offer.clone(), KNOWN).unwrap();
        outgoing.go_to(0).unwrap();
        first.write(&outgoing.read(70_000).unwrap()).unwrap();
        drop(first);
        let mut second = Incoming::open(to.path(), offer.clone(), KNOWN).unwrap();
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
        let again = Incoming::open(to.path(), offer, KNOWN).unwrap();
        assert!(again.is_complete() && again.finish().is_ok());
    }

    #[test]
    fn another_file_is_neither_kept_nor_overwritten() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let offer = give(from.path(), b"right").offer;
        let mut incoming = Incoming::open(to.path(), offer.clone(), KNOWN).unwrap();
        incoming.write(b"wrong").unwrap();
        assert!(incoming.is_complete());
        let error = incoming.finish().unwrap_err().to_string();
        assert!(error.contains("SHA-256"), "{error}");
        assert_eq!(fs::read_dir(to.path()).unwrap().count(), 0);
        fs::write(to.path().join("a.bin"), "mine").unwrap();
        for expected in ["a (2).bin", "a (2).bin"] {
            let mut incoming = Incoming::open(to.path(), offer.clone(), KNOWN).unwrap();
            if !incoming.is_complete() {
                incoming.write(b"right").unwrap();
            }
            assert_eq!(incoming.finish().unwrap(), to.path().join(expected));
        }
        assert_eq!(fs::read(to.path().join("a.bin")).unwrap(), b"mine");
    }

    /// To a stranger, neither what is whole nor what is there in part shows.
    #[test]
    fn strangers_do_not_learn_what_is_here() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let offer = give(from.path(), b"right").offer;
        let stranger = Rules {
            is_known: false,
            ..KNOWN
        };
        let mut part = Incoming::open(to.path(), offer.clone(), KNOWN).unwrap();
        part.write(b"rig").unwrap();
        drop(part);
        let mut incoming = Incoming::open(to.path(), offer.clone(), stranger).unwrap();
        assert_eq!(incoming.received(), 0);
        incoming.write(b"right").unwrap();
        assert_eq!(incoming.finish().unwrap(), to.path().join("a.bin"));
        let again = Incoming::open(to.path(), offer, stranger).unwrap();
        assert_eq!(again.received(), 0);
    }

    #[test]
    fn files_that_are_too_large_are_refused() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut offer = give(from.path(), b"right").offer;
        for (size, max_size, why) in [
            (KNOWN.max_size + 1, KNOWN.max_size, "--max-size"),
            (1 << 60, u64::MAX, "are free here"),
        ] {
            offer.size = size;
            let rules = Rules { max_size, ..KNOWN };
            let error = Incoming::open(to.path(), offer.clone(), rules);
            let error = error.err().unwrap().to_string();
            assert!(error.contains(why), "{error}");
            assert_eq!(fs::read_dir(to.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn names_are_replaced_where_they_would_harm() {
        for (name, here) in [
            ("holiday 1.jpg", "holiday 1.jpg"),
            ("a\u{1b}[2J\n.txt", "a_[2J_.txt"),
            ("\u{202e}fdp.exe", "_fdp.exe"),
            ("a:b?.txt", "a_b_.txt"),
            ("a. ", "a._"),
            ("con.txt", "_con.txt"),
            ("COM1", "_COM1"),
            ("COM10", "COM10"),
            ("contract.pdf", "contract.pdf"),
        ] {
            assert_eq!(name_here(name), here);
        }
    }

    /// To open a pipe for reading would wait for ever.
    #[cfg(unix)]
    #[test]
    fn only_files_are_given() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let folder = directory.path().join("folder");
        fs::create_dir(&folder).unwrap();
        for path in [pipe, folder, PathBuf::from("/dev/null")] {
            let error = Outgoing::open(&path).err().unwrap().to_string();
            assert!(error.contains("is no file"), "{error}");
        }
    }
}
