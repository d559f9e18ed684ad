//! What the file says of commands, and of what becomes of the routes that they make.

use std::path::PathBuf;

use namecast_net::{ManagementConfig, ReadvertiseConfig};
use namecast_units::Duration;
use serde::Deserialize;
use toml::Spanned;

use super::file::Reading;

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
