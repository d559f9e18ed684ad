//! Who a request to a node's web server comes from, and what it may do.
//!
//! Any page in the world can make its visitors' browsers send requests to their own machines and networks. A browser tells
//! the truth about two things: the host that it accepts to talk to (Host, RFC 9110 section 7.2) and the page that asks
//! (Origin, RFC 6454 section 7). The first unmasks a foreign name that was rebound to this machine, the second a foreign
//! page. Programs can write anything there, so neither makes a program local that comes from elsewhere.
//!
//! ```text
//!   Host ours? ──no──▶ 421    Origin ours? ──yes──▶ OwnPage ── from this machine, without a proxy ──▶ Local
//!      └──yes──────────────────▶ ├─ allowed, or none ──▶ Stranger
//!                                └─ foreign ──▶ 403
//! ```

use core::fmt;
use core::str::FromStr;
use std::net::IpAddr;

use axum::http::{HeaderMap, StatusCode, header};
use namecast_forward::Scope;
use namecast_units::Duration;
use smart_default::SmartDefault;

/// In [`WebConfig::allow_origins`]: any page.
pub const ANY_ORIGIN: &str = "*";

/// Headers beside `X-Forwarded-*` with which a proxy tells of itself (RFC 7239, RFC 9110 section 7.6.3).
const FORWARDING: [&str; 3] = ["forwarded", "via", "x-real-ip"];

/// How a node's web server, WebSocket and WebTransport treat those who come.
#[derive(Clone, Debug, PartialEq, Eq, SmartDefault)]
pub struct WebConfig {
    /// Names of this node beside `localhost` and addresses, in lower case. Requests to others are refused (421).
    pub host_names: Vec<String>,
    /// Pages from elsewhere that may use the node, as strangers, such as `https://watch.example`. [`ANY_ORIGIN`] stands for all
    /// pages, but only of browsers that reach this node by a name of it or a public address: a page must not find its visitors'
    /// own machines and networks.
    pub allow_origins: Vec<String>,
    /// Proxies whose visitors count as this node's own pages if Host and Origin are its own. They are never local.
    pub trusted_proxies: Vec<IpAddr>,
    /// Whether programs on this machine that name no origin are local over WebSocket, and may command. Meant for tests.
    pub websocket_local: bool,
    /// Whether everybody may read `/status.json` and `/metrics`; else only this machine.
    pub public_status: bool,
    /// Who may show the page inside of another one, as sources of the Content Security Policy's `frame-ancestors` (CSP level 3,
    /// section 6.4.2); none: nobody.
    pub frame_ancestors: Vec<String>,
    /// Connections that one listener of the web server serves at a time, WebSockets included.
    #[default(512)]
    pub max_connections: usize,
    /// Time that a client may take for the TLS handshake and for the header of each request, pauses between two included.
    #[default(Duration::from_secs(10))]
    pub header_timeout: Duration,
    /// Octets that the header of a request may have.
    #[default(16 * 1024)]
    pub max_header_size: usize,
    /// Time without progress in sending after which a connection ends.
    #[default(Duration::from_secs(30))]
    pub send_timeout: Duration,
}

/// How a request came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// In the clear.
    Http,
    /// Over TLS or QUIC.
    Https,
}

impl Scheme {
    /// The port that is left out.
    const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// Where pages of this node come from: the scheme and port of one of its web servers.
pub type PageSource = (Scheme, u16);

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To read, which browsers let only the asking page do.
    Read,
    /// A connection that becomes a face.
    Face,
}

/// What is known of a request.
#[derive(Clone, Copy, Debug)]
pub struct WebRequest<'a> {
    /// The address it came from, if known.
    pub peer: Option<IpAddr>,
    /// How it came.
    pub scheme: Scheme,
    /// Whom it is for, `host[:port]`: Host, or `:authority` of HTTP/3.
    pub authority: Option<&'a str>,
    /// All headers.
    pub headers: &'a HeaderMap,
    /// What it is for.
    pub purpose: Purpose,
}

/// Who a request comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Visitor {
    /// Anybody: a page that is allowed, or a program.
    Stranger,
    /// A page of this node, as far as can be told.
    OwnPage,
    /// A page of this node that is open on this machine. Its face may command.
    Local,
}

impl Visitor {
    /// Scope of the face that a visitor gets.
    pub(crate) const fn scope(self) -> Scope {
        match self {
            Self::Local => Scope::Local,
            Self::OwnPage | Self::Stranger => Scope::NonLocal,
        }
    }
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It does not say, or contradicts itself about, whom it is for.
    #[error("the request must have one Host")]
    NoHost,
    /// It is for another host, whose name leads here.
    #[error(
        "this node is not called '{0}'; if that is one of its names, add it to host-names in [web] of the configuration file"
    )]
    ForeignHost(String),
    /// It comes from a page of another site.
    #[error(
        "pages of '{0}' may not use this node; to let them, add \"{0}\" to allow-origins in [web] of the configuration file. If it is \
         the page of this node behind a proxy, add the proxy's address to trusted-proxies"
    )]
    ForeignOrigin(String),
}

impl Refusal {
    /// Status of the response.
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::NoHost => StatusCode::BAD_REQUEST,
            Self::ForeignHost(_) => StatusCode::MISDIRECTED_REQUEST,
            Self::ForeignOrigin(_) => StatusCode::FORBIDDEN,
        }
    }
}

impl WebConfig {
    /// Tells who sent a request to a node whose own pages come from `pages`.
    ///
    /// # Errors
    /// If it is to be refused.
    pub fn judge(
        &self,
        pages: &[PageSource],
        request: &WebRequest<'_>,
    ) -> Result<Visitor, Refusal> {
        let by_proxy = self.is_trusted_proxy(request.peer);
        let target = self.target(request, by_proxy)?;
        let is_forwarded = is_forwarded(request.headers);
        let origin = single(request.headers, &header::ORIGIN);
        let is_own = match origin {
            Ok(None) => self.is_own_without_origin(request),
            Ok(Some(origin)) => match self.is_own_origin(origin, &target, pages) {
                true => true,
                false if self.allows(origin, &target.authority) => false,
                false => return Err(Refusal::ForeignOrigin(origin.to_owned())),
            },
            Err(()) => return Err(Refusal::ForeignOrigin("?".to_owned())),
        };
        let is_here = (request.peer).is_some_and(|peer| peer.to_canonical().is_loopback());
        Ok(match is_own && (by_proxy || !is_forwarded) {
            true if is_here && !by_proxy && !is_forwarded => Visitor::Local,
            true => Visitor::OwnPage,
            false => Visitor::Stranger,
        })
    }

    /// Returns the address that a request of `peer` with `headers` comes from. A trusted proxy says it: it appends the address of its
    /// own peer to `X-Forwarded-For`.
    pub fn address(&self, peer: Option<IpAddr>, headers: &HeaderMap) -> Option<IpAddr> {
        let peer = peer?;
        if !self.is_trusted_proxy(Some(peer)) {
            return Some(peer);
        }
        let told = headers.get_all("x-forwarded-for").iter();
        let told = told.filter_map(|value| value.to_str().ok());
        let told: Vec<_> = told.flat_map(|value| value.split(',')).collect();
        for address in told.into_iter().rev() {
            match address.trim().parse() {
                Ok(address) if self.is_trusted_proxy(Some(address)) => {}
                Ok(address) => return Some(address),
                Err(_) => break,
            }
        }
        Some(peer)
    }

    /// The page that may read a response in spite of being from elsewhere, by its Origin (Fetch, CORS protocol).
    pub fn reader<'a>(&self, request: &WebRequest<'a>) -> Option<&'a str> {
        let origin = single(request.headers, &header::ORIGIN).ok()??;
        let by_proxy = self.is_trusted_proxy(request.peer);
        let target = self.target(request, by_proxy).ok()?;
        self.allows(origin, &target.authority).then_some(origin)
    }

    /// Returns the origin of the page that a request is for, as its browser has it; `None` if that is none of this node.
    pub fn page_origin(&self, request: &WebRequest<'_>) -> Option<String> {
        let by_proxy = self.is_trusted_proxy(request.peer);
        let Target { authority, scheme } = self.target(request, by_proxy).ok()?;
        let host = match authority.host {
            Host::Address(IpAddr::V6(address)) => format!("[{address}]"),
            host => host.to_string(),
        };
        let port = authority.port.filter(|&port| port != scheme.default_port());
        let port = port.map_or_else(String::new, |port| format!(":{port}"));
        let scheme = match scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
        };
        Some(format!("{scheme}://{host}{port}"))
    }

    fn is_trusted_proxy(&self, peer: Option<IpAddr>) -> bool {
        let peer = peer.map(|peer| peer.to_canonical());
        peer.is_some_and(|peer| self.trusted_proxies.contains(&peer))
    }

    /// Whom the request is for, as its browser has it: a trusted proxy tells.
    fn target(&self, request: &WebRequest<'_>, by_proxy: bool) -> Result<Target, Refusal> {
        let told = |name: &str| {
            let told = request.headers.get(name).filter(|_| by_proxy);
            told.and_then(|value| value.to_str().ok())
        };
        let authority = told("x-forwarded-host").or(request.authority);
        let written = authority.ok_or(Refusal::NoHost)?;
        let authority: Authority = written.parse().map_err(|()| Refusal::NoHost)?;
        if !self.is_own_host(&authority.host) {
            return Err(Refusal::ForeignHost(authority.host.to_string()));
        }
        let scheme = match told("x-forwarded-proto") {
            Some("https") => Scheme::Https,
            Some("http") => Scheme::Http,
            _ => request.scheme,
        };
        Ok(Target { authority, scheme })
    }

    fn is_own_host(&self, host: &Host) -> bool {
        match host {
            Host::Address(_) => true,
            Host::Name(name) => name == "localhost" || self.host_names.contains(name),
        }
    }

    /// Whether a request without an origin may count as one of an own page.
    fn is_own_without_origin(&self, request: &WebRequest<'_>) -> bool {
        match request.purpose {
            // Browsers name no origin where a page reads from its own; pages from elsewhere cannot read the response.
            Purpose::Read => match request.headers.get("sec-fetch-site") {
                None => true,
                Some(site) => site == "same-origin" || site == "none",
            },
            Purpose::Face => {
                let is_here = (request.peer).is_some_and(|peer| peer.to_canonical().is_loopback());
                self.websocket_local && is_here
            }
        }
    }

    /// Whether a page is this node's: from just where the request is for, or, as with WebTransport, from a web server of this
    /// node beside it.
    fn is_own_origin(&self, origin: &str, target: &Target, pages: &[PageSource]) -> bool {
        let Some((scheme, page)) = parse_origin(origin) else {
            return false;
        };
        let port = page.port_or(scheme);
        let is_same = page.host == target.authority.host
            && scheme == target.scheme
            && port == target.authority.port_or(target.scheme);
        let is_same_host = page.host == target.authority.host
            || (page.host.is_loopback() && target.authority.host.is_loopback());
        let is_ours = is_same_host && pages.contains(&(scheme, port));
        let is_ours_by_name = matches!(&page.host, Host::Name(name) if self.host_names.contains(name))
            && page.host == target.authority.host
            && port == scheme.default_port();
        is_same || is_ours || (is_ours_by_name && scheme == Scheme::Https)
    }

    fn allows(&self, origin: &str, target: &Authority) -> bool {
        let is_named =
            |allowed: &String| allowed != ANY_ORIGIN && allowed.eq_ignore_ascii_case(origin);
        let any = self
            .allow_origins
            .iter()
            .any(|allowed| allowed == ANY_ORIGIN);
        self.allow_origins.iter().any(is_named) || (any && target.host.is_public())
    }
}

/// Whom a request is for.
struct Target {
    authority: Authority,
    scheme: Scheme,
}

/// `host[:port]` (RFC 3986, section 3.2).
#[derive(Clone, Debug, PartialEq, Eq)]
struct Authority {
    host: Host,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Host {
    Address(IpAddr),
    /// In lower case.
    Name(String),
}

impl Authority {
    fn port_or(&self, scheme: Scheme) -> u16 {
        self.port.unwrap_or(scheme.default_port())
    }
}

impl FromStr for Authority {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => rest.split_once(']').ok_or(())?,
            None => match text.split_once(':') {
                Some((host, _)) => (host, &text[host.len()..]),
                None => (text, ""),
            },
        };
        let port = match port.strip_prefix(':') {
            None if port.is_empty() => None,
            None => return Err(()),
            Some("") => None,
            Some(port) => Some(port.parse().map_err(|_| ())?),
        };
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        let host = match host.parse::<IpAddr>() {
            Ok(address) if text.starts_with('[') == address.is_ipv6() => {
                Host::Address(address.to_canonical())
            }
            Err(_) if !text.starts_with('[') && !host.is_empty() && host.bytes().all(is_name) => {
                Host::Name(host.to_ascii_lowercase())
            }
            _ => return Err(()),
        };
        Ok(Self { host, port })
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Name(name) => name.fmt(f),
        }
    }
}

impl Host {
    fn is_loopback(&self) -> bool {
        match self {
            Self::Address(address) => address.is_loopback(),
            Self::Name(name) => name == "localhost",
        }
    }

    /// Whether it may be reached from anywhere: names of the configuration, and addresses that are neither of this machine nor
    /// of a private network (RFC 1918, 3927, 4193, 4291, 6598).
    fn is_public(&self) -> bool {
        match self {
            Self::Name(name) => name != "localhost",
            Self::Address(IpAddr::V4(address)) => {
                let [first, second, ..] = address.octets();
                let is_shared = first == 100 && (64..128).contains(&second);
                !(address.is_loopback()
                    || address.is_private()
                    || address.is_link_local()
                    || first == 0
                    || is_shared)
            }
            Self::Address(IpAddr::V6(address)) => {
                !(address.is_loopback()
                    || address.is_unspecified()
                    || address.is_unique_local()
                    || address.is_unicast_link_local())
            }
        }
    }
}

/// Scheme and authority of an origin; `None` for those of no web server, such as `null`.
fn parse_origin(origin: &str) -> Option<(Scheme, Authority)> {
    let (scheme, authority) = origin.split_once("://")?;
    let scheme = match scheme {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        _ => return None,
    };
    Some((scheme, authority.parse().ok()?))
}

/// Whether a text is an origin as browsers write it, and so one that can be allowed.
pub fn is_origin(text: &str) -> bool {
    text == "null" || parse_origin(text).is_some()
}

/// Whether somebody in between passed the request on.
fn is_forwarded(headers: &HeaderMap) -> bool {
    let tells = |name: &str| FORWARDING.contains(&name) || name.starts_with("x-forwarded-");
    headers.keys().any(|name| tells(name.as_str()))
}

/// The only value of a header, if it is there.
fn single<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> Result<Option<&'a str>, ()> {
    let mut values = headers.get_all(name).into_iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| ()),
        (Some(_), Some(_)) => Err(()),
    }
}

/// Whom an HTTP/1.1 request is for, if it says so once (RFC 9112, section 3.2).
pub fn authority<'a>(uri: &'a axum::http::Uri, headers: &'a HeaderMap) -> Option<&'a str> {
    let host = single(headers, &header::HOST).ok()?;
    match (uri.authority(), host) {
        (None, host) => host,
        (Some(authority), Some(host)) if authority.as_str() != host => None,
        (Some(authority), _) => Some(authority.as_str()),
    }
}

#[cfg(test)]
#[path = "web_tests.rs"]
mod tests;
