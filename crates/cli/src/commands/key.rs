//! `namecast key`: a key's certificate, for those who are to trust it, and the keys that are remembered of others.

use std::path::PathBuf;

use anyhow::{bail, ensure};
use clap::{Args, Subcommand};
use namecast_apps::live::watcher::Pin;
use namecast_command::report::{self, local, print, print_line, rfc3339};
use namecast_packet::Name;
use serde_json::json;

use super::key_store;
use crate::arguments::{Keys, KnownKeysFile};
use crate::certificate_file;
use crate::hexadecimal::hex;
use crate::key_check::{file_argument, parse_pin};
use crate::known_keys::{KnownKey, KnownKeys};

/// `namecast key`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Examples:
  namecast key /operator > operator.cert      for `keys` in a forwarder's configuration file
  namecast cs erase / --sign-as /operator     a command to that forwarder
  namecast key /cam > cam.cert                at the publisher, for those who watch with --key cam.cert
  namecast key list                           streams whose keys were remembered when they were first watched
  namecast key trust /cam cam.cert            accept this key from now on, before it is met
  namecast key forget /cam                    when the publisher has a new key: the next one met is remembered"
)]
pub struct Key {
    /// What to do with remembered keys.
    #[command(subcommand)]
    pub what: Option<KeyWhat>,
    /// Who holds the key whose certificate is printed.
    #[arg(required = true)]
    pub name: Option<Name>,
    /// Where keys are.
    #[command(flatten)]
    pub keys: Keys,
}

/// What to do with remembered keys.
#[derive(Debug, Subcommand)]
pub enum KeyWhat {
    /// Remember the key of a stream, in place of any other.
    Trust {
        /// Name of the stream.
        name: Name,
        /// The digest that the publisher prints, 64 hexadecimal digits, or a file with the stream's certificate.
        #[arg(value_name = "DIGEST|CERTIFICATE-FILE")]
        key: String,
        /// Where keys are remembered.
        #[command(flatten)]
        known: KnownKeysFile,
    },
    /// Show the keys that are remembered.
    List {
        /// Print one JSON array.
        #[arg(long)]
        json: bool,
        /// Where keys are remembered.
        #[command(flatten)]
        known: KnownKeysFile,
    },
    /// Forget the key of a stream: the next one that is met is remembered.
    Forget {
        /// Name of the stream.
        name: Name,
        /// Where keys are remembered.
        #[command(flatten)]
        known: KnownKeysFile,
    },
}

/// Does what is asked for.
pub(super) fn run(arguments: Key) -> anyhow::Result<()> {
    match (arguments.what, arguments.name) {
        (Some(KeyWhat::Trust { name, key, known }), _) => trust(name, &key, known.known_keys),
        (Some(KeyWhat::List { json, known }), _) => list(known.known_keys, json),
        (Some(KeyWhat::Forget { name, known }), _) => forget(&name, known.known_keys),
        (None, Some(name)) => {
            let identity = key_store(arguments.keys.keys)?.identity(&name)?;
            print(certificate_file::text(&identity.certificate))?;
            Ok(())
        }
        (None, None) => bail!("name who holds the key, as in namecast key /cam"),
    }
}

fn trust(name: Name, key: &str, file: Option<PathBuf>) -> anyhow::Result<()> {
    let digest = match parse_pin(key)? {
        Pin::Digest(digest) => digest,
        Pin::Certificate(certificate) => {
            let identity = certificate.identity();
            ensure!(
                identity == name,
                "the certificate in {key} is of {identity}, not of {name}: write namecast key trust {identity} {key}, or \
                 accept what it certified with --key {key}"
            );
            certificate.public_key()?.digest()
        }
    };
    let file = KnownKeys::new(file)?;
    let old = file.replace(KnownKey::now(name.clone(), digest))?;
    let digest = hex(&digest);
    match old {
        Some(old) => print_line(format_args!(
            "{name} must be signed by {digest} from now on, not by {} (remembered on {}) any more",
            hex(&old.digest),
            local(old.since)
        ))?,
        None => print_line(format_args!(
            "{name} must be signed by {digest} from now on"
        ))?,
    }
    Ok(())
}

fn list(file: Option<PathBuf>, as_json: bool) -> anyhow::Result<()> {
    let keys = KnownKeys::new(file)?.all()?;
    if as_json {
        let object = |key: &KnownKey| {
            json!({
                "name": key.name.to_string(),
                "key_digest": hex(&key.digest),
                "since": rfc3339(key.since),
            })
        };
        let objects: Vec<_> = keys.iter().map(object).collect();
        print_line(serde_json::to_string_pretty(&objects)?)?;
        return Ok(());
    }
    let row = |key: &KnownKey| [key.name.to_string(), hex(&key.digest), local(key.since)];
    let head = ["stream", "key", "since"];
    print(report::table(head, keys.iter().map(row)))?;
    Ok(())
}

fn forget(name: &Name, path: Option<PathBuf>) -> anyhow::Result<()> {
    let argument = file_argument(path.as_deref());
    let file = KnownKeys::new(path)?;
    let Some(old) = file.forget(name)? else {
        bail!("no key of {name} is remembered: namecast key list{argument} shows which are");
    };
    print_line(format_args!(
        "Forgot the key of {name}, {} (remembered on {}); the next one met is remembered",
        hex(&old.digest),
        local(old.since)
    ))?;
    Ok(())
}
