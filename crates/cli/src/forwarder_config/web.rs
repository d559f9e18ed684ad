//! What the file says of the web server, WebSocket and WebTransport.

use std::net::IpAddr;
use std::path::PathBuf;

use namecast_net::web::{ANY_ORIGIN, WebConfig, is_origin};
use namecast_units::Duration;
use serde::Deserialize;
use toml::Spanned;

use super::file::Reading;
use crate::tls::TlsFiles;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Web {
    host_names: Vec<Spanned<String>>,
    allow_origins: Vec<Spanned<String>>,
    trusted_proxies: Vec<IpAddr>,
    websocket_local: Option<bool>,
    public_status: Option<bool>,
    frame_ancestors: Vec<Spanned<String>>,
    connections: Option<Spanned<usize>>,
    #[serde(with = "namecast_units::optional_duration")]
    header_timeout: Option<Duration>,
    header_size: Option<Spanned<usize>>,
    #[serde(with = "namecast_units::optional_duration")]
    send_timeout: Option<Duration>,
    tls_cert: Option<Spanned<PathBuf>>,
    tls_key: Option<Spanned<PathBuf>>,
}

impl Reading<'_> {
    /// The certificate that the page is served with over TLS, if the file has one.
    pub(super) fn tls(&mut self, web: &Web) -> TlsFiles {
        let files = TlsFiles {
            certificate: web.tls_cert.as_ref().map(|it| self.beside(it.get_ref())),
            key: web.tls_key.as_ref().map(|it| self.beside(it.get_ref())),
        };
        match (&web.tls_cert, &web.tls_key) {
            (Some(certificate), Some(_)) => {
                if let Err(error) = files.read() {
                    self.object(certificate.span(), format!("{error:#}"));
                }
            }
            (Some(one), None) => self.object(one.span(), "expected tls-key as well"),
            (None, Some(one)) => self.object(one.span(), "expected tls-cert as well"),
            (None, None) => {}
        }
        files
    }

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
