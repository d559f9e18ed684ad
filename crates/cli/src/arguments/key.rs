//! Keys: one's own, and those of others.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use namecast_packet::Name;

use super::Keys;

/// Whose signature counts.
#[derive(Clone, Debug, Args)]
pub struct Trusted {
    /// Accept only this key, or what it certified: the digest that the publisher prints, 64 hexadecimal digits, or a certificate
    /// file. Without it, the key that is met first is remembered, and another one refused from then on; see namecast key --help.
    #[arg(long, value_name = "DIGEST|CERTIFICATE-FILE")]
    pub key: Option<String>,
    /// Where keys are remembered.
    #[command(flatten)]
    pub known: KnownKeysFile,
}

/// Where keys of streams are remembered.
#[derive(Clone, Debug, Args)]
pub struct KnownKeysFile {
    /// File of remembered keys, a line each; without it: namecast/known_keys in the user's data directory.
    #[arg(long, value_name = "FILE")]
    pub known_keys: Option<PathBuf>,
}

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
