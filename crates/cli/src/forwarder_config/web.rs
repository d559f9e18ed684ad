//! What the file says of the web server, WebSocket and WebTransport.

use std::net::IpAddr;

use namecast_net::web::{ANY_ORIGIN, WebConfig, is_origin};
use namecast_units::Duration;
use serde::Deserialize;
use toml::Spanned;

use super::file::Reading;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Web {
    host_names: Vec<Spanned<String>>,
    allow_origins: Vec<Spanned<String>>,
    trusted_proxies: Vec<IpAddr>,
    websocket_local: Option<bool>,
    own_page_places: Option<Spanned<usize>>,
    public_status: Option<bool>,
    frame_ancestors: Vec<Spanned<String>>,
    connections: Option<Spanned<usize>>,
    #[serde(with = "namecast_units::optional_duration")]
    header_timeout: Option<Duration>,
    header_size: Option<Spanned<usize>>,
    #[serde(with = "namecast_units::optional_duration")]
    send_timeout: Option<Duration>,
}

impl Reading<'_> {
    pub(super) fn web(&mut self, config: &mut WebConfig, web: Web) {
        let is_name = |text: &str| !text.is_empty() && !text.contains([':', '/', '*', ' ']);
        let expected = "expected a name without scheme and port, as in cam.example";
        let names = self.texts(web.host_names, is_name, expected);
        config.host_names = names.iter().map(|name| name.to_lowercase()).collect();
        let is_allowable = |text: &str| text == ANY_ORIGIN || is_origin(text);
        let expected = "expected an origin without a path, as in https://watch.example, or *";
        config.allow_origins = self.texts(web.allow_origins, is_allowable, expected);
        let is_source = |text: &str| !text.is_empty() && !text.contains([';', ',', ' ', '\n']);
        let expected = "expected a source, as in https://portal.example or 'self'";
        config.frame_ancestors = self.texts(web.frame_ancestors, is_source, expected);
        config.trusted_proxies = (web.trusted_proxies.into_iter())
            .map(|proxy| proxy.to_canonical())
            .collect();
        config.websocket_local = web.websocket_local.unwrap_or(config.websocket_local);
        config.public_status = web.public_status.unwrap_or(config.public_status);
        self.set(&mut config.own_page_places, web.own_page_places, 0);
        self.set(&mut config.max_connections, web.connections, 1);
        self.set(&mut config.max_header_size, web.header_size, 8_192);
        config.header_timeout = web.header_timeout.unwrap_or(config.header_timeout);
        config.send_timeout = web.send_timeout.unwrap_or(config.send_timeout);
    }

    fn texts(
        &mut self,
        written: Vec<Spanned<String>>,
        is_right: impl Fn(&str) -> bool,
        expected: &str,
    ) -> Vec<String> {
        let mut texts = Vec::new();
        for text in written {
            match is_right(text.get_ref()) {
                true => texts.push(text.into_inner()),
                false => self.object(text.span(), format!("'{}': {expected}", text.get_ref())),
            }
        }
        texts
    }
}
