//! Whose signature a command accepts: what its arguments pin, or else the key that is remembered for the name.

use std::path::Path;

use anyhow::{Context, bail};
use namecast_apps::live::watcher::{Pin, Refusal, Signer, Trust, Verdict};
use namecast_apps::trust::SharedChains;
use namecast_command::report::{local, rfc3339};
use namecast_packet::Name;

use crate::arguments::Trusted;
use crate::certificate_file;
use crate::hexadecimal::hex;
use crate::known_keys::{KnownKey, KnownKeys, parse_digest};

/// Digits of a digest that are shown where all of them would only hide the sentence.
const SHOWN_DIGITS: usize = 16;

/// Follows the signers of one stream, and remembers the first one.
#[derive(Debug)]
pub(crate) struct KeyCheck {
    name: Name,
    trust: Trust,
    file: Option<KnownKeys>,
    /// Adds the file to a command that people are to type, if it is not the default.
    file_argument: String,
    remembered: Option<KnownKey>,
    /// The digest of a key that is seen for the first time, until something is here that it signed.
    candidate: Option<[u8; 32]>,
}

impl KeyCheck {
    /// What `arguments` say about the signer of `name`.
    ///
    /// # Errors
    /// If what is to be pinned cannot be read, or the file of known keys.
    pub(crate) fn new(name: Name, arguments: &Trusted) -> anyhow::Result<Self> {
        if let Some(key) = &arguments.key {
            return Ok(Self::pinned(name, parse_pin(key)?));
        }
        let path = &arguments.known.known_keys;
        let file = KnownKeys::new(path.clone())?;
        let remembered = file.find(&name)?;
        let trust = remembered.as_ref().map(|key| Trust::Remembered(key.digest));
        Ok(Self {
            name,
            trust: trust.unwrap_or_default(),
            file: Some(file),
            file_argument: file_argument(path.as_deref()),
            remembered,
            candidate: None,
        })
    }

    /// Accepts what `pin` vouches for, and remembers nothing.
    pub(crate) const fn pinned(name: Name, pin: Pin) -> Self {
        Self {
            name,
            trust: Trust::Pinned(pin),
            file: None,
            file_argument: String::new(),
            remembered: None,
            candidate: None,
        }
    }

    /// Accepts keys that a chain of certificates leads from to the anchor, and remembers nothing.
    pub(crate) const fn certified(name: Name, chains: SharedChains) -> Self {
        Self {
            name,
            trust: Trust::Schema(chains),
            file: None,
            file_argument: String::new(),
            remembered: None,
            candidate: None,
        }
    }

    /// What a watcher or recorder of the stream is to accept.
    pub(crate) fn trust(&self) -> Trust {
        self.trust.clone()
    }

    /// When the key that counts was remembered, if it was.
    pub(crate) fn remembered_since(&self) -> Option<String> {
        self.remembered.as_ref().map(|key| rfc3339(key.since))
    }

    /// Takes a signer. Returns what people should know of it.
    pub(crate) fn on_signer(&mut self, signer: &Signer) -> String {
        self.candidate = (signer.verdict == Verdict::FirstUse).then_some(signer.key_digest);
        let short = &hex(&signer.key_digest)[..SHOWN_DIGITS];
        let (name, verdict) = (&signer.key_name, &signer.verdict);
        match (verdict, &self.remembered) {
            (Verdict::Refused(Refusal::ChangedKey), Some(known)) => self.changed(known, short),
            (Verdict::Remembered, Some(known)) => {
                format!(
                    "signed by {name} (remembered since {}), key {short}…",
                    local(known.since)
                )
            }
            _ => format!("signed by {name} ({verdict}), key {short}…"),
        }
    }

    /// Records that something is here that the signer named last has signed: if it is new, it is remembered. Returns what
    /// people should know, if anything.
    ///
    /// # Errors
    /// If another key was remembered for the name meanwhile: what this one signed must not be used.
    pub(crate) fn on_verified(&mut self) -> anyhow::Result<Option<String>> {
        let Some((digest, file)) = self.candidate.take().zip(self.file.as_ref()) else {
            return Ok(None);
        };
        let name = &self.name;
        let known = match file.remember(KnownKey::now(name.clone(), digest)) {
            Ok(known) => known,
            // Watching on without it is no worse than the first use is.
            Err(error) => {
                return Ok(Some(format!(
                    "The key of {name} is not remembered: {error:#}"
                )));
            }
        };
        let digits = hex(&digest);
        if known.digest != digest {
            bail!(self.changed(&known, &digits[..SHOWN_DIGITS]));
        }
        let file = file.path().display();
        self.remembered = Some(known);
        Ok(Some(format!(
            "Remembered the key of {name} in {file}; another one will be refused. Compare it with the publisher's: {digits}"
        )))
    }

    fn changed(&self, known: &KnownKey, short: &str) -> String {
        let (name, file) = (&self.name, &self.file_argument);
        format!(
            "{name} is signed by another key ({short}…) than the one remembered on {}; if the publisher really has a new key, \
             run: namecast key forget {name}{file}",
            local(known.since)
        )
    }
}

/// How a file of known keys is named in a command; empty for the default.
pub(crate) fn file_argument(path: Option<&Path>) -> String {
    path.map_or_else(String::new, |path| {
        format!(" --known-keys {}", path.display())
    })
}

/// What `--key` pins: a digest of 64 hexadecimal digits, or a certificate in a file.
///
/// # Errors
/// If it is neither, with what to write instead.
pub(crate) fn parse_pin(text: &str) -> anyhow::Result<Pin> {
    if let Some(digest) = parse_digest(text) {
        return Ok(Pin::Digest(digest));
    }
    let path = Path::new(text);
    if !path.exists() {
        bail!(
            "'{text}' is neither the digest of a key nor a certificate file: write the 64 hexadecimal digits that the publisher \
             prints, or a file that namecast key NAME > FILE made there. The name of a key would pin nothing: anybody can make \
             a key of that name"
        );
    }
    let certificate = certificate_file::read(path).context("no key to accept")?;
    Ok(Pin::Certificate(Box::new(certificate)))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::arguments::KnownKeysFile;

    fn check(path: &Path) -> KeyCheck {
        let known = KnownKeysFile {
            known_keys: Some(path.to_owned()),
        };
        let trusted = Trusted { key: None, known };
        KeyCheck::new("/cam".parse().unwrap(), &trusted).unwrap()
    }

    fn signer(digest: u8, verdict: Verdict) -> Signer {
        Signer {
            key_name: "/cam/KEY/1".parse().unwrap(),
            key_digest: [digest; 32],
            verdict,
        }
    }

    fn path() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("known");
        (directory, path)
    }

    #[test]
    fn a_key_is_remembered_once_it_has_signed_something() {
        let (_directory, path) = path();
        let mut first = check(&path);
        assert_eq!(first.trust(), Trust::FirstUse);
        assert_eq!(first.on_verified().unwrap(), None);
        first.on_signer(&signer(1, Verdict::FirstUse));
        // A forger's certificate: what comes with it does not verify.
        first.on_signer(&signer(1, Verdict::Refused(Refusal::NotSigner)));
        assert_eq!(first.on_verified().unwrap(), None);
        assert_eq!(check(&path).trust(), Trust::FirstUse);

        first.on_signer(&signer(2, Verdict::FirstUse));
        let said = first.on_verified().unwrap().unwrap();
        assert!(said.contains(&hex(&[2; 32])), "{said}");
        assert_eq!(first.on_verified().unwrap(), None, "once");
        assert_eq!(check(&path).trust(), Trust::Remembered([2; 32]));
        let said = check(&path).on_signer(&signer(2, Verdict::Remembered));
        assert!(said.contains("(remembered since 2"), "{said}");
    }

    #[test]
    fn a_changed_key_is_refused_with_the_command_that_forgets_the_old_one() {
        let (_directory, path) = path();
        let (mut early, mut late) = (check(&path), check(&path));
        early.on_signer(&signer(1, Verdict::FirstUse));
        early.on_verified().unwrap();
        let command = format!(
            "run: namecast key forget /cam --known-keys {}",
            path.display()
        );
        let changed = signer(2, Verdict::Refused(Refusal::ChangedKey));
        for mut check in [early, check(&path)] {
            let said = check.on_signer(&changed);
            assert!(said.contains("than the one remembered on 2"), "{said}");
            assert!(said.ends_with(&command), "{said}");
        }
        // Who saw nothing remembered when it began, and was given another key.
        late.on_signer(&signer(2, Verdict::FirstUse));
        let error = late.on_verified().unwrap_err().to_string();
        assert!(error.ends_with(&command), "{error}");
        assert_eq!(check(&path).trust(), Trust::Remembered([1; 32]));
    }

    #[test]
    fn a_file_that_cannot_be_written_is_said_and_not_fatal() {
        let (_directory, path) = path();
        std::fs::create_dir(path.with_extension("lock")).unwrap();
        let mut check = check(&path);
        check.on_signer(&signer(1, Verdict::FirstUse));
        let said = check.on_verified().unwrap().unwrap();
        assert!(said.contains("not remembered"), "{said}");
    }

    #[test]
    fn only_digests_and_certificates_pin() {
        let digest = "00ff".repeat(16);
        let Ok(Pin::Digest(octets)) = parse_pin(&digest) else {
            panic!("64 digits");
        };
        assert_eq!(octets[..4], [0, 255, 0, 255]);
        for wrong in ["12", "/demo/KEY/1", &"é".repeat(32), &"+f".repeat(32)] {
            let error = parse_pin(wrong).unwrap_err().to_string();
            assert!(error.contains("64 hexadecimal digits"), "{error}");
            assert!(error.contains("anybody can make"), "{error}");
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cam.cert");
        let store = namecast_net::KeyStore::open(directory.path()).unwrap();
        let identity = store.identity(&"/cam".parse().unwrap()).unwrap();
        let text = certificate_file::text(&identity.certificate);
        std::fs::write(&path, text).unwrap();
        let Ok(Pin::Certificate(read)) = parse_pin(path.to_str().unwrap()) else {
            panic!("a certificate");
        };
        assert_eq!(*read.data(), identity.certificate);
        std::fs::write(&path, "hello").unwrap();
        assert!(parse_pin(path.to_str().unwrap()).is_err());
    }
}
