//! What the file says of self-learning.

use core::num::NonZeroU32;
use std::path::PathBuf;

use namecast_forward::LearningConfig;
use namecast_units::Duration;
use serde::Deserialize;
use toml::Spanned;

use super::file::Reading;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Learning {
    routes: Option<Spanned<usize>>,
    #[serde(with = "namecast_units::optional_duration")]
    route_lifetime: Option<Duration>,
    max_timeouts: Option<NonZeroU32>,
    keys: Vec<Spanned<PathBuf>>,
}

impl Reading<'_> {
    pub(super) fn learning(&mut self, config: &mut LearningConfig, learning: Learning) {
        self.set(&mut config.max_routes, learning.routes, 0);
        let lifetime = learning.route_lifetime;
        config.route_lifetime = lifetime.unwrap_or(config.route_lifetime);
        let timeouts = learning.max_timeouts.map(NonZeroU32::get);
        config.max_timeouts = timeouts.unwrap_or(config.max_timeouts);
        for path in learning.keys {
            let certificate = self.certificate(path.get_ref());
            let key = certificate.and_then(|it| it.public_key().map_err(|error| error.to_string()));
            match key {
                Ok(key) => config.keys.push(key),
                Err(message) => self.object(path.span(), message),
            }
        }
    }
}
