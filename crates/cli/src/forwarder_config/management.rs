//! What the file says of commands, and of what becomes of the routes that they make.

use std::path::{Path, PathBuf};

use namecast_apps::trust::Anchor;
use namecast_net::rights::{Rights, TrustRoot};
use namecast_net::{ManagementConfig, ReadvertiseConfig};
use namecast_units::Duration;
use serde::Deserialize;
use toml::Spanned;

use super::file::Reading;
use crate::known_keys::parse_digest;

/// Modules of management that can be open to anybody.
const MODULES: [&str; 5] = ["faces", "fib", "rib", "cs", "strategy-choice"];

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Management {
    localhop: Option<bool>,
    keys: Vec<Spanned<PathBuf>>,
    open: Option<Vec<Spanned<String>>>,
    #[serde(with = "namecast_units::optional_duration")]
    time_grace: Option<Duration>,
    nonces: Option<Spanned<usize>>,
}

/// A root whose members may register its names.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Trust {
    root: Spanned<String>,
    anchor: Spanned<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Rib {
    readvertise_nlsr: bool,
}

impl Rib {
    pub(super) fn apply(self, config: &mut ManagementConfig) {
        config.readvertise = self.readvertise_nlsr.then(ReadvertiseConfig::default);
    }
}

impl Reading<'_> {
    /// Reads the roots whose members may register names.
    pub(super) fn rights(&mut self, config: &mut ManagementConfig, written: Vec<Trust>) {
        let mut roots: Vec<TrustRoot> = Vec::new();
        for trust in written {
            let (root, anchor) = (self.prefix(&trust.root), self.anchor(&trust.anchor));
            let (Some(root), Some(anchor)) = (root, anchor) else {
                continue;
            };
            match roots.iter().any(|known| known.root == root) {
                true => {
                    let message = format!("{root} has an anchor already: keep one");
                    self.object(trust.root.span(), message);
                }
                false => roots.push(TrustRoot { root, anchor }),
            }
        }
        if !roots.is_empty() {
            config.rights = Rights::new(roots);
        }
    }

    /// Reads an anchor: the digest of its key, or a certificate file.
    fn anchor(&mut self, written: &Spanned<String>) -> Option<Anchor> {
        let text = written.get_ref();
        if let Some(digest) = parse_digest(text) {
            return Some(Anchor::Digest(digest));
        }
        match self.certificate(Path::new(text)) {
            Ok(certificate) => Some(Anchor::Certificate(Box::new(certificate))),
            Err(why) => {
                let expected = "expected the 64 digits that `namecast trust init` printed, or a certificate file";
                self.object(written.span(), format!("{why}: {expected}"));
                None
            }
        }
    }

    pub(super) fn management(&mut self, config: &mut ManagementConfig, management: Management) {
        config.allow_localhop = management.localhop.unwrap_or(config.allow_localhop);
        config.time_grace = management.time_grace.unwrap_or(config.time_grace);
        self.set(&mut config.max_nonces, management.nonces, 1);
        for path in management.keys {
            match self.certificate(path.get_ref()) {
                Ok(certificate) => config.keys.push(certificate),
                Err(message) => self.object(path.span(), message),
            }
        }
        if let Some(open) = management.open {
            for module in &open {
                if !MODULES.contains(&module.get_ref().as_str()) {
                    let known = MODULES.join("', '");
                    let message = format!("'{}': expected '{known}'", module.get_ref());
                    self.object(module.span(), message);
                }
            }
            config.open_modules = open.into_iter().map(Spanned::into_inner).collect();
        }
    }
}
