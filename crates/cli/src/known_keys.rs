//! Keys that streams were signed with when they were first met: a text file that people can read and edit, as `known_hosts`.
//!
//! ```text
//! # name, SHA-256 of the public key, when it was first seen
//! /cam b1946ac92492d2347c6235b4d2611184b1946ac92492d2347c6235b4d2611184 2026-05-01T12:00:00Z
//! ```
//!
//! Whoever changes it holds a lock, reads it again, and puts a whole new file in its place: no other process sees half of it,
//! and none undoes what another has added.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use namecast_archive::sync_directory;
use namecast_command::report::rfc3339;
use namecast_net::Clock;
use namecast_packet::Name;
use namecast_units::Timestamp;

use crate::hexadecimal::hex;
use crate::places;

/// Largest file that is read or written, in bytes: a line takes about one hundred.
const MAX_FILE_SIZE: u64 = 1 << 20;
/// Keys that are remembered at most.
const MAX_KEYS: usize = 5_000;
/// First lines of a new file.
const HEAD: &str = "# Keys of streams, remembered when they were first met. See `namecast key --help`.\n\
                    # name, SHA-256 of the public key, when it was first seen\n";

/// The key of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KnownKey {
    /// Name of the stream.
    pub name: Name,
    /// SHA-256 of the public key's SubjectPublicKeyInfo.
    pub digest: [u8; 32],
    /// When it was remembered.
    pub since: Timestamp,
}

impl KnownKey {
    /// The key of `name` as it is seen now.
    pub(crate) fn now(name: Name, digest: [u8; 32]) -> Self {
        Self {
            name,
            digest,
            since: Clock::new().wall(),
        }
    }

    fn line(&self) -> String {
        format!(
            "{} {} {}",
            self.name,
            hex(&self.digest),
            rfc3339(self.since)
        )
    }

    /// Reads a line, or says what is wrong with it.
    fn parse(line: &str) -> Result<Self, &'static str> {
        let fields: Vec<_> = line.split_ascii_whitespace().collect();
        let [name, digest, since] = fields[..] else {
            return Err("it does not have three fields: NAME DIGEST DATE");
        };
        Ok(Self {
            name: name
                .parse()
                .map_err(|_| "the first field is no name, such as /cam")?,
            digest: parse_digest(digest)
                .ok_or("the second field is no digest of 64 hexadecimal digits")?,
            since: parse_since(since)
                .ok_or("the third field is no date, such as 2026-05-01T12:00:00Z")?,
        })
    }
}

/// A time to the second, or the beginning of a day.
fn parse_since(text: &str) -> Option<Timestamp> {
    let day = || {
        let day: NaiveDate = text.parse().ok()?;
        Some(day.and_time(NaiveTime::MIN).and_utc())
    };
    let time = DateTime::parse_from_rfc3339(text).map(|time| time.to_utc());
    let time: DateTime<Utc> = time.ok().or_else(day)?;
    let micros = u64::try_from(time.timestamp_micros()).ok()?;
    Some(Timestamp::from_micros(micros))
}

/// A digest of 64 hexadecimal digits.
pub(crate) fn parse_digest(text: &str) -> Option<[u8; 32]> {
    let is_digest = text.len() == 64 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
    let mut digest = [0; 32];
    for (octet, at) in digest.iter_mut().zip((0..64).step_by(2)) {
        *octet = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
    }
    is_digest.then_some(digest)
}

/// The file of remembered keys.
#[derive(Clone, Debug)]
pub(crate) struct KnownKeys {
    path: PathBuf,
}

impl KnownKeys {
    /// The file at `path`, which need not exist; without one, `known_keys` beside the directory of the user's own keys.
    ///
    /// # Errors
    /// If there is no directory for the user's data.
    pub(crate) fn new(path: Option<PathBuf>) -> anyhow::Result<Self> {
        let default = || {
            let directory = places::data_directory();
            let directory = directory.context("name a file for known keys with --known-keys");
            Ok::<_, anyhow::Error>(directory?.join("known_keys"))
        };
        let path = path.map_or_else(default, Ok)?;
        // What a link leads to is replaced, not the link.
        let path = fs::canonicalize(&path).unwrap_or(path);
        Ok(Self { path })
    }

    /// The file's path, for people.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// All keys, in the order of the file.
    ///
    /// # Errors
    /// If the file cannot be read, or a line of it is malformed.
    pub(crate) fn all(&self) -> anyhow::Result<Vec<KnownKey>> {
        let lines = self.read()?;
        Ok(lines.into_iter().filter_map(|line| line.key).collect())
    }

    /// The key of `name`, if one is remembered.
    ///
    /// # Errors
    /// As [`all`](Self::all).
    pub(crate) fn find(&self, name: &Name) -> anyhow::Result<Option<KnownKey>> {
        Ok(self.all()?.into_iter().find(|key| key.name == *name))
    }

    /// Remembers `key` unless there is one of its name already. Returns the one that is remembered from now on.
    ///
    /// # Errors
    /// If the file is malformed or full, or cannot be written. It is as it was then.
    pub(crate) fn remember(&self, key: KnownKey) -> anyhow::Result<KnownKey> {
        self.change(|lines| {
            let mut known = lines.iter().filter_map(|line| line.key.as_ref());
            if let Some(known) = known.find(|known| known.name == key.name) {
                return Ok((known.clone(), false));
            }
            lines.push(Line::of(key.clone()));
            Ok((key, true))
        })
    }

    /// Remembers `key` in place of any other of its name, which is returned.
    ///
    /// # Errors
    /// As [`remember`](Self::remember).
    pub(crate) fn replace(&self, key: KnownKey) -> anyhow::Result<Option<KnownKey>> {
        self.change(|lines| {
            let place = lines.iter().position(|line| line.is_of(&key.name));
            let line = Line::of(key);
            let old = match place {
                Some(place) => core::mem::replace(&mut lines[place], line).key,
                None => {
                    lines.push(line);
                    None
                }
            };
            Ok((old, true))
        })
    }

    /// Forgets the key of `name`, which is returned.
    ///
    /// # Errors
    /// As [`remember`](Self::remember).
    pub(crate) fn forget(&self, name: &Name) -> anyhow::Result<Option<KnownKey>> {
        self.change(|lines| {
            let place = lines.iter().position(|line| line.is_of(name));
            let old = place.and_then(|place| lines.remove(place).key);
            let is_changed = old.is_some();
            Ok((old, is_changed))
        })
    }

    /// Reads, changes and writes the file while no other process does; `change` says whether there is something to write.
    fn change<T>(
        &self,
        change: impl FnOnce(&mut Vec<Line>) -> anyhow::Result<(T, bool)>,
    ) -> anyhow::Result<T> {
        let shown = self.path.display();
        let _lock = self.lock().with_context(|| {
            format!("cannot lock {shown}: check the permissions of its directory, or name another file with --known-keys")
        })?;
        let mut lines = self.read()?;
        let (result, is_changed) = change(&mut lines)?;
        if is_changed {
            let count = lines.iter().filter(|line| line.key.is_some()).count();
            ensure!(
                count <= MAX_KEYS,
                "{shown} is full with {MAX_KEYS} keys: remove some with namecast key forget NAME"
            );
            let written = self.write(&lines);
            written.with_context(|| format!("cannot write {shown}"))?;
        }
        Ok(result)
    }

    /// Waits for a lock that ends when the file is dropped. It is on a file of its own, since the other one is replaced.
    fn lock(&self) -> io::Result<File> {
        if let Some(directory) = self.path.parent() {
            fs::create_dir_all(directory)?;
        }
        let mut path = self.path.clone().into_os_string();
        path.push(".lock");
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        file.lock()?;
        Ok(file)
    }

    fn read(&self) -> anyhow::Result<Vec<Line>> {
        let shown = self.path.display();
        let mut text = String::new();
        match File::open(&self.path) {
            Ok(file) => file
                .take(MAX_FILE_SIZE + 1)
                .read_to_string(&mut text)
                .with_context(|| format!("cannot read {shown}"))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(error).with_context(|| format!("cannot read {shown}")),
        };
        ensure!(
            text.len() as u64 <= MAX_FILE_SIZE,
            "{shown} is larger than {MAX_FILE_SIZE} bytes, so it is not a file of known keys"
        );
        parse(&text).map_err(|(line, problem)| {
            anyhow::anyhow!("{shown}, line {line}: {problem}; correct or remove the line")
        })
    }

    fn write(&self, lines: &[Line]) -> anyhow::Result<()> {
        let mut text = match fs::exists(&self.path)? {
            true => String::new(),
            false => HEAD.to_owned(),
        };
        for line in lines {
            text.push_str(&line.text);
            text.push('\n');
        }
        if text.len() as u64 > MAX_FILE_SIZE {
            bail!("it would be larger than {MAX_FILE_SIZE} bytes");
        }
        let directory = self
            .path
            .parent()
            .filter(|path| !path.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new("."));
        let mut draft = tempfile::NamedTempFile::new_in(directory)?;
        draft.write_all(text.as_bytes())?;
        draft.as_file().sync_all()?;
        draft.persist(&self.path)?;
        // The new name must survive a power cut too.
        sync_directory(directory)?;
        Ok(())
    }
}

/// A line of the file: a key, a comment, or nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    text: String,
    key: Option<KnownKey>,
}

impl Line {
    fn of(key: KnownKey) -> Self {
        Self {
            text: key.line(),
            key: Some(key),
        }
    }

    fn is_of(&self, name: &Name) -> bool {
        self.key.as_ref().is_some_and(|key| key.name == *name)
    }
}

/// The lines of a file, or the number of the first bad one and what is wrong with it.
fn parse(text: &str) -> Result<Vec<Line>, (usize, String)> {
    let mut lines: Vec<Line> = Vec::new();
    let mut places = std::collections::BTreeMap::new();
    for (number, text) in (1..).zip(text.lines()) {
        let content = text.trim();
        let key = match content.is_empty() || content.starts_with('#') {
            true => None,
            false => {
                Some(KnownKey::parse(content).map_err(|problem| (number, problem.to_owned()))?)
            }
        };
        let name = key.as_ref().map(|key| key.name.clone());
        if let Some(first) = name.and_then(|name| places.insert(name, number)) {
            return Err((number, format!("line {first} has a key of this name too")));
        }
        lines.push(Line {
            text: text.to_owned(),
            key,
        });
    }
    Ok(lines)
}

#[cfg(test)]
#[path = "known_keys_tests.rs"]
mod tests;
