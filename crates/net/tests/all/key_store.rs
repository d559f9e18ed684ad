//! Keys are made once, kept safe, and damage is found.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use bytes::Bytes;
use namecast_net::{Clock, Identity, KeyStore, KeyStoreError};
use namecast_packet::{Certificate, Data, KeyLocator, Name};

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

/// A packet that only the identity's key can sign.
fn signed_by(identity: &Identity) -> Data {
    let data = Data::builder(name("/x")).content(Bytes::from_static(b"hello"));
    data.sign(&*identity.signer)
}

fn problem(result: Result<Identity, KeyStoreError>, path: &Path) -> String {
    match result {
        Err(KeyStoreError::Corrupt { path: at, problem }) => {
            assert_eq!(at, path);
            problem
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_key_outlives_the_process_and_its_certificate_vouches_for_it() {
    let directory = tempfile::tempdir().unwrap();
    let first = KeyStore::open(directory.path())
        .unwrap()
        .identity(&name("/alice"))
        .unwrap();
    let again = KeyStore::open(directory.path())
        .unwrap()
        .identity(&name("/alice"))
        .unwrap();
    assert_eq!(first.certificate, again.certificate);
    let certificate = Certificate::decode(first.certificate.clone()).unwrap();
    assert_eq!(certificate.identity(), name("/alice"));
    assert_eq!(certificate.key_name(), first.key_name());
    assert!(certificate.is_valid_at(Clock::new().wall()));
    let data = signed_by(&again);
    assert_eq!(data.verify(&certificate.public_key().unwrap()), Ok(()));
    let locator = data.signature_info().key_locator;
    assert_eq!(locator, Some(KeyLocator::Name(first.key_name())));
}

#[test]
fn each_identity_has_a_key_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let store = KeyStore::open(directory.path()).unwrap();
    let alice = store.identity(&name("/alice")).unwrap();
    let bob = store.identity(&name("/bob")).unwrap();
    let key_of_bob = Certificate::decode(bob.certificate)
        .unwrap()
        .public_key()
        .unwrap();
    assert!(signed_by(&alice).verify(&key_of_bob).is_err());
}

#[test]
fn secrets_are_for_their_owner_only() {
    let directory = tempfile::tempdir().unwrap();
    let keys = directory.path().join("a/b");
    let store = KeyStore::open(&keys).unwrap();
    store.identity(&name("/alice")).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&store.path_of(&name("/alice"))), 0o600);
    assert_eq!(mode(&keys), 0o700);
    let files = fs::read_dir(&keys).unwrap().count();
    assert_eq!(files, 1, "no draft is left behind");
}

/// Each damage is found, the message says where and what to do, and the file is left as it was.
#[test]
fn a_damaged_file_is_reported_and_kept() {
    let directory = tempfile::tempdir().unwrap();
    let store = KeyStore::open(directory.path()).unwrap();
    store.identity(&name("/alice")).unwrap();
    store.identity(&name("/bob")).unwrap();
    let path = store.path_of(&name("/alice"));
    let intact = fs::read_to_string(&path).unwrap();
    let bobs = fs::read_to_string(store.path_of(&name("/bob"))).unwrap();
    let field = |key: &str| {
        let start = intact.find(&format!("\"{key}\": \"")).unwrap() + key.len() + 5;
        (start, intact.as_bytes()[start])
    };
    let changed = |key: &str| {
        let (at, before) = field(key);
        let mut octets = intact.clone().into_bytes();
        octets[at] = if before == b'0' { b'1' } else { b'0' };
        String::from_utf8(octets).unwrap()
    };
    for (damaged, expected) in [
        (String::new(), "EOF"),
        (intact[..intact.len() / 2].to_owned(), "EOF"),
        (changed("seed"), "do not belong together"),
        (changed("certificate"), "malformed"),
        (changed("algorithm"), "algorithm"),
        (changed("format"), "format"),
        (intact.replace("\"seed\": \"", "\"seed\": \"é"), "32 octets"),
        (bobs, "/bob"),
    ] {
        fs::write(&path, &damaged).unwrap();
        let found = problem(store.identity(&name("/alice")), &path);
        assert!(
            found.contains(expected),
            "{found:?} does not say {expected:?}"
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), damaged);
    }
    let message = store.identity(&name("/alice")).unwrap_err().to_string();
    assert!(message.contains(path.to_str().unwrap()) && message.contains("move it away"));
    fs::remove_file(&path).unwrap();
    store.identity(&name("/alice")).unwrap();
}

/// Every flipped bit in what matters is found: the seed, and the certificate's octets.
#[test]
fn no_flipped_bit_goes_unnoticed() {
    let directory = tempfile::tempdir().unwrap();
    let store = KeyStore::open(directory.path()).unwrap();
    store.identity(&name("/alice")).unwrap();
    let path = store.path_of(&name("/alice"));
    let intact = fs::read_to_string(&path).unwrap();
    let seed = intact.find("\"seed\"").unwrap() + 9;
    let certificate = intact.find("\"certificate\"").unwrap() + 16;
    let digits = (seed..seed + 64).chain(certificate..intact.rfind('"').unwrap());
    for at in digits {
        let mut octets = intact.clone().into_bytes();
        let digit = char::from(octets[at])
            .to_digit(16)
            .expect("a hexadecimal digit");
        octets[at] = char::from_digit(digit ^ 1, 16).unwrap() as u8;
        fs::write(&path, octets).unwrap();
        assert!(store.identity(&name("/alice")).is_err(), "octet {at}");
    }
}

#[test]
fn whoever_comes_at_the_same_time_gets_the_same_key() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let make = || {
        KeyStore::open(path)
            .unwrap()
            .identity(&name("/alice"))
            .unwrap()
    };
    let certificates: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(make)).collect();
        let identities = threads.into_iter().map(|thread| thread.join().unwrap());
        identities.map(|identity| identity.certificate).collect()
    });
    assert!(
        certificates
            .iter()
            .all(|certificate| *certificate == certificates[0])
    );
}

#[test]
fn a_directory_that_cannot_be_had_is_named() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = KeyStore::open(file.path().join("keys")).unwrap_err();
    assert!(matches!(error, KeyStoreError::Io { .. }));
    assert!(
        error.to_string().contains(file.path().to_str().unwrap()),
        "{error}"
    );
}

/// The certificate of an anchor for the key that `store` has under `made_as`, as `identity`.
fn issued(store: &KeyStore, made_as: &Name, identity: &Name) -> Certificate {
    let own = store.identity(made_as).unwrap();
    let own = Certificate::decode(own.certificate).unwrap();
    let anchor = store.anchor(&"/calls/fox".parse().unwrap()).unwrap();
    let name = identity.builder().generic("KEY").component(own.key_id());
    let name = name.generic("fox").version(7).finish();
    let key = own.public_key().unwrap();
    Certificate::issue(name, &key, own.validity(), &[], &*anchor.signer).unwrap()
}

/// Under its own name and under another one; the self-signed key stays what it was.
#[test]
fn an_installed_certificate_signs_under_its_whole_name() {
    let directory = tempfile::tempdir().unwrap();
    let store = KeyStore::open(directory.path()).unwrap();
    for identity in ["/calls/fox/ann", "/calls/fox/guest"] {
        let (made_as, identity) = ("/calls/fox/ann".parse().unwrap(), identity.parse().unwrap());
        let before = store.identity(&made_as).unwrap();
        assert!(store.certified(&identity).unwrap().is_none());
        let certificate = issued(&store, &made_as, &identity);
        store.install(&certificate).unwrap();
        let certified = store.certified(&identity).unwrap().unwrap();
        assert_eq!(certified.certificate, *certificate.data());
        let data = Data::builder("/x".parse().unwrap()).sign(&*certified.signer);
        assert_eq!(data.verify(&certificate.public_key().unwrap()), Ok(()));
        let locator = data.signature_info().key_locator;
        assert_eq!(locator, Some(KeyLocator::Name(certificate.name().clone())));
        let after = store.identity(&made_as).unwrap();
        assert_eq!(after.certificate, before.certificate);
        let exchange = [&made_as, &identity].map(|it| store.exchange_secret(it).unwrap().public());
        assert_eq!(exchange[0], exchange[1], "of one key");
    }
}

#[test]
fn a_certificate_of_another_key_is_not_installed() {
    let [own, other] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let [own, other] = [&own, &other].map(|it| KeyStore::open(it.path()).unwrap());
    let name: Name = "/calls/fox/ann".parse().unwrap();
    own.identity(&name).unwrap();
    let certificate = issued(&other, &name, &name);
    let error = own.install(&certificate).unwrap_err();
    assert!(
        error.to_string().contains("is not in this key store"),
        "{error}"
    );
    assert!(own.certified(&name).unwrap().is_none());
    // A second key must not take the name of the first.
    let second: Name = "/second".parse().unwrap();
    let certificate = issued(&own, &second, &name);
    assert!(own.install(&certificate).is_err());
    let exchange = [&name, &second].map(|it| own.exchange_secret(it).unwrap().public());
    assert_ne!(exchange[0], exchange[1]);
}
