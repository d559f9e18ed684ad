//! Keys of this machine's user, made when they are first asked for.
//!
//! One file for each identity, readable by its owner only: the secret seed of an Ed25519 key, its self-signed certificate, and
//! the certificate that somebody else issued for it, if one was installed; as JSON with hexadecimal octets.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use namecast_apps::trust::ExchangeSecret;
use namecast_packet::signature::{Ed25519Signer, KeyPair};
use namecast_packet::{Certificate, Data, KeyLocator, Name, Signer, Validity};
use namecast_units::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::Clock;
use crate::private::{data_directory, make_private_directory, new_private_file};

/// What the files say they are.
const FORMAT: &str = "namecast key, version 1";
/// Largest file that is read, in octets; a key takes about one thousand.
const MAX_FILE_SIZE: u64 = 64 * 1024;
/// Files that are searched for a key.
const MAX_FILES: usize = 10_000;

/// A directory of keys.
#[derive(Clone, Debug)]
pub struct KeyStore {
    directory: PathBuf,
}

/// A key and what it is called.
pub struct Identity {
    /// Signs with the key; its KeyLocator is the key's name.
    pub signer: Box<dyn Signer + Send>,
    /// The key's certificate, for verifiers to fetch.
    pub certificate: Data,
}

impl Identity {
    /// Name of the key: `/<identity>/KEY/<key-id>`.
    pub fn key_name(&self) -> Name {
        let name = self.certificate.name();
        name.prefix(name.len().saturating_sub(2))
    }
}

impl core::fmt::Debug for Identity {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Identity")
            .field("certificate", self.certificate.name())
            .finish_non_exhaustive()
    }
}

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyStoreError {
    /// The system refused.
    #[error("cannot use {}: {source}; check its permissions, or name another directory for keys", path.display())]
    Io {
        /// File or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is damaged. It is left as it is, in case it can be mended.
    #[error("the key file {} is damaged ({problem}); restore it from a copy, or move it away to have a new key made, which watchers will not know", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The store has no key of a certificate.
    #[error(
        "the key of certificate {0} is not in this key store: install the certificate where it was requested"
    )]
    OtherKey(Name),
    /// There is neither `XDG_DATA_HOME` nor `HOME`.
    #[error("no directory for keys: neither XDG_DATA_HOME nor HOME is set; name one")]
    NoDirectory,
}

#[derive(Serialize, Deserialize)]
struct KeyFile {
    format: String,
    identity: String,
    algorithm: String,
    /// The secret: 32 octets.
    seed: String,
    certificate: String,
    /// The newest certificate that somebody else issued for the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    issued: Option<String>,
}

/// Content of a key file, checked.
struct Contents {
    seed: [u8; 32],
    certificate: Certificate,
    issued: Option<Certificate>,
}

impl KeyStore {
    /// The store in `directory`, which is made if it is not there.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn open(directory: impl Into<PathBuf>) -> Result<Self, KeyStoreError> {
        let directory = directory.into();
        make_private_directory(&directory).map_err(io_error(&directory))?;
        Ok(Self { directory })
    }

    /// The store in the user's [data directory](data_directory).
    ///
    /// # Errors
    /// If there is no such directory, or it cannot be made.
    pub fn open_default() -> Result<Self, KeyStoreError> {
        let data = data_directory().ok_or(KeyStoreError::NoDirectory)?;
        Self::open(data.join("keys"))
    }

    /// The file that holds the key of `name`.
    pub fn path_of(&self, name: &Name) -> PathBuf {
        // Names may be longer than file names, and hold any octets.
        let digest = Sha256::digest(name.value());
        self.directory.join(format!("{}.json", hex(&digest[..16])))
    }

    /// The key of `name`, which is made if there is none.
    ///
    /// # Errors
    /// If its file cannot be read or written, or is damaged.
    pub fn identity(&self, name: &Name) -> Result<Identity, KeyStoreError> {
        let path = self.path_of(name);
        match read_file(&path) {
            Ok(text) => load(&path, name, &text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.make(name, &path),
            Err(source) => Err(KeyStoreError::Io { path, source }),
        }
    }

    /// The key of `name` under its own certificate, as a trust anchor has it: its KeyLocator is the certificate's whole name. It is made if
    /// there is none.
    ///
    /// # Errors
    /// If its file cannot be read or written, or is damaged.
    pub fn anchor(&self, name: &Name) -> Result<Identity, KeyStoreError> {
        self.identity(name)?;
        let path = self.path_of(name);
        let text = read_file(&path).map_err(io_error(&path))?;
        let contents = check(&path, parse(name, &text))?;
        Ok(under(contents.seed, &contents.certificate))
    }

    /// The key of `name`, or else of its longest prefix, under the certificate that was [installed](Self::install) for it; its KeyLocator is
    /// the certificate's whole name. `None` if there is none.
    ///
    /// # Errors
    /// If a file cannot be read, or is damaged.
    pub fn certified(&self, name: &Name) -> Result<Option<Identity>, KeyStoreError> {
        let mut prefixes = (0..=name.len()).rev().map(|length| name.prefix(length));
        let found = prefixes.find_map(|prefix| self.certified_exactly(&prefix).transpose());
        found.transpose()
    }

    fn certified_exactly(&self, name: &Name) -> Result<Option<Identity>, KeyStoreError> {
        let path = self.path_of(name);
        let text = match read_file(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(KeyStoreError::Io { path, source }),
        };
        let contents = check(&path, parse(name, &text))?;
        let issued = contents.issued;
        Ok(issued.map(|issued| under(contents.seed, &issued)))
    }

    /// The X25519 secret that belongs to the key of `name`, which is made if there is none.
    ///
    /// # Errors
    /// If its file cannot be read or written, or is damaged.
    pub fn exchange_secret(&self, name: &Name) -> Result<ExchangeSecret, KeyStoreError> {
        self.identity(name)?;
        let path = self.path_of(name);
        let text = read_file(&path).map_err(io_error(&path))?;
        let contents = check(&path, parse(name, &text))?;
        Ok(ExchangeSecret::of_seed(&contents.seed))
    }

    /// The X25519 secrets of the keys for which certificates of names under `root` were [installed](Self::install): those of a reader.
    ///
    /// # Errors
    /// If the directory cannot be read. Files that cannot are passed over.
    pub fn reader_secrets(&self, root: &Name) -> Result<Vec<ExchangeSecret>, KeyStoreError> {
        let directory = &self.directory;
        let files = fs::read_dir(directory).map_err(io_error(directory))?;
        let paths = files.flatten().map(|file| file.path());
        let paths = paths.filter(|path| path.extension().is_some_and(|it| it == "json"));
        let secrets = paths.take(MAX_FILES).filter_map(|path| {
            let text = read_file(&path).ok()?;
            let file: KeyFile = serde_json::from_str(&text).ok()?;
            let identity: Name = file.identity.parse().ok()?;
            let contents = parse(&identity, &text).ok()?;
            let is_member = contents.issued.is_some() && root.is_prefix_of(&identity);
            is_member.then(|| ExchangeSecret::of_seed(&contents.seed))
        });
        Ok(secrets.collect())
    }

    /// Keeps a certificate that somebody issued for a key of this store, in place of the one before. The key may have been made under
    /// another name than the certificate's identity.
    ///
    /// # Errors
    /// If the store does not have the key, or a file cannot be read or written, or is damaged.
    pub fn install(&self, certificate: &Certificate) -> Result<(), KeyStoreError> {
        let identity = certificate.identity();
        let seed = self.seed_of(certificate)?;
        let path = self.path_of(&identity);
        let own = match read_file(&path) {
            Ok(text) => check(&path, parse(&identity, &text))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Contents {
                seed,
                certificate: self_signed(
                    &identity,
                    certificate.key_id().value,
                    Clock::new().wall(),
                    &Ed25519Signer::from_seed(seed, KeyLocator::Name(identity.clone())),
                ),
                issued: None,
            },
            Err(source) => return Err(KeyStoreError::Io { path, source }),
        };
        if own.seed != seed {
            return Err(KeyStoreError::OtherKey(certificate.name().clone()));
        }
        let issued = Some(certificate.clone());
        let text = Contents { issued, ..own }.text(&identity);
        self.write_over(&path, &text).map_err(io_error(&path))
    }

    /// The seed of the key that `certificate` is of.
    fn seed_of(&self, certificate: &Certificate) -> Result<[u8; 32], KeyStoreError> {
        let unknown = || KeyStoreError::OtherKey(certificate.name().clone());
        let key = certificate.public_key().map_err(|_| unknown())?;
        let directory = &self.directory;
        let files = fs::read_dir(directory).map_err(io_error(directory))?;
        let own = self.path_of(&certificate.identity());
        // The likely one first.
        let others = files.flatten().map(|file| file.path());
        for path in core::iter::once(own).chain(others).take(MAX_FILES) {
            let is_key = path.extension().is_some_and(|it| it == "json");
            let text = is_key.then(|| read_file(&path).ok()).flatten();
            let file = text.and_then(|it| serde_json::from_str::<KeyFile>(&it).ok());
            let seed = file.and_then(|file| seed_in(&file));
            let pair = |seed| Ed25519Signer::from_seed(seed, KeyLocator::Name(Name::root()));
            if let Some(seed) = seed.filter(|seed| pair(*seed).public_key() == key) {
                return Ok(seed);
            }
        }
        Err(unknown())
    }

    fn make(&self, name: &Name, path: &Path) -> Result<Identity, KeyStoreError> {
        let now = Clock::new().wall();
        let seed: [u8; 32] = random();
        let key_id: [u8; 8] = random();
        let certificate = {
            // The locator is replaced in the certificate, which names its own key.
            let pair = Ed25519Signer::from_seed(seed, KeyLocator::Name(name.clone()));
            self_signed(name, &key_id, now, &pair)
        };
        let contents = Contents {
            seed,
            certificate,
            issued: None,
        };
        let text = contents.text(name);
        if self.write_new(path, &text).map_err(io_error(path))? {
            tracing::info!(identity = %name, file = %path.display(), "made a key");
        }
        // Another process may have been first; then its key is the one.
        let text = read_file(path).map_err(io_error(path))?;
        load(path, name, &text)
    }

    /// Writes a file whole, in place of the one before.
    fn write_over(&self, path: &Path, text: &str) -> io::Result<()> {
        let draft = self.directory.join(format!(".{}.new", hex(&random::<8>())));
        let written = new_private_file().open(&draft).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        });
        written
            .and_then(|()| fs::rename(&draft, path))
            .inspect_err(|_| drop(fs::remove_file(&draft)))
    }

    /// Writes a file whole or not at all; false if there is one already.
    fn write_new(&self, path: &Path, text: &str) -> io::Result<bool> {
        let draft = self.directory.join(format!(".{}.new", hex(&random::<8>())));
        let written = new_private_file()
            .open(&draft)
            .and_then(|mut file| {
                file.write_all(text.as_bytes())?;
                file.sync_all()
            })
            // Unlike renaming, this fails if the file is there.
            .and_then(|()| fs::hard_link(&draft, path));
        let _ = fs::remove_file(&draft);
        match written {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// The key of `seed`, which names `certificate` whole.
fn under(seed: [u8; 32], certificate: &Certificate) -> Identity {
    let locator = KeyLocator::Name(certificate.name().clone());
    Identity {
        signer: Box::new(Ed25519Signer::from_seed(seed, locator)),
        certificate: certificate.data().clone(),
    }
}

impl Contents {
    /// The file of `identity` with this.
    fn text(&self, identity: &Name) -> String {
        let octets = |certificate: &Certificate| hex(certificate.data().wire());
        let file = KeyFile {
            format: FORMAT.to_owned(),
            identity: identity.to_string(),
            algorithm: "ed25519".to_owned(),
            seed: hex(&self.seed),
            certificate: octets(&self.certificate),
            issued: self.issued.as_ref().map(octets),
        };
        serde_json::to_string_pretty(&file).expect("strings make JSON")
    }
}

fn self_signed(name: &Name, key_id: &[u8], now: Timestamp, pair: &dyn KeyPair) -> Certificate {
    let validity = Validity::of_own_key(now);
    Certificate::self_signed(name, key_id, now.as_micros() / 1_000, validity, pair)
}

fn load(path: &Path, name: &Name, text: &str) -> Result<Identity, KeyStoreError> {
    let contents = check(path, parse(name, text))?;
    let locator = KeyLocator::Name(contents.certificate.key_name());
    Ok(Identity {
        signer: Box::new(Ed25519Signer::from_seed(contents.seed, locator)),
        certificate: contents.certificate.data().clone(),
    })
}

fn check<T>(path: &Path, parsed: Result<T, String>) -> Result<T, KeyStoreError> {
    parsed.map_err(|problem| KeyStoreError::Corrupt {
        path: path.to_owned(),
        problem,
    })
}

fn seed_in(file: &KeyFile) -> Option<[u8; 32]> {
    <[u8; 32]>::try_from(unhex(&file.seed)?).ok()
}

fn certificate_in(text: &str) -> Result<Certificate, String> {
    let octets = unhex(text).ok_or("the certificate is not hexadecimal")?;
    let certificate = Data::decode(Bytes::from(octets)).and_then(Certificate::decode);
    certificate.map_err(|error| format!("the certificate is malformed: {error}"))
}

/// What a key file holds. Everything in it is checked against everything else, so that a flipped bit is found here
/// and not by a watcher far away.
fn parse(name: &Name, text: &str) -> Result<Contents, String> {
    let file: KeyFile = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if file.format != FORMAT {
        return Err(format!("its format is {:?}, not {FORMAT:?}", file.format));
    }
    if file.algorithm != "ed25519" {
        return Err(format!("its algorithm {:?} is not known", file.algorithm));
    }
    let seed = seed_in(&file).ok_or("the seed is not 32 octets in hexadecimal")?;
    let certificate = certificate_in(&file.certificate)?;
    if certificate.identity() != *name || file.identity != name.to_string() {
        return Err(format!("it belongs to {}", certificate.identity()));
    }
    let key_name = certificate.key_name();
    let signer = Ed25519Signer::from_seed(seed, KeyLocator::Name(key_name));
    certificate
        .data()
        .verify(&signer.public_key())
        .map_err(|_| "the seed and the certificate do not belong together")?;
    let issued = file.issued.as_deref().map(certificate_in).transpose()?;
    let is_own = |issued: &Certificate| {
        issued.identity() == *name
            && issued
                .public_key()
                .is_ok_and(|it| it == signer.public_key())
    };
    if issued.as_ref().is_some_and(|issued| !is_own(issued)) {
        return Err("the issued certificate is of another key or name".to_owned());
    }
    Ok(Contents {
        seed,
        certificate,
        issued,
    })
}

fn read_file(path: &Path) -> io::Result<String> {
    let mut octets = Vec::new();
    File::open(path)?
        .take(MAX_FILE_SIZE)
        .read_to_end(&mut octets)?;
    // Octets that are no text are found to be no key file either.
    Ok(String::from_utf8_lossy(&octets).into_owned())
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> KeyStoreError + use<> {
    let path = path.to_owned();
    move |source| KeyStoreError::Io { path, source }
}

/// Octets that nobody can guess.
///
/// # Panics
/// If the operating system has no randomness: nothing safe can be done then.
pub fn random<const N: usize>() -> [u8; N] {
    let mut octets = [0; N];
    getrandom::fill(&mut octets).expect("the operating system provides randomness");
    octets
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok())
        .collect()
}
