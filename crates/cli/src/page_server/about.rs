//! Title, picture and link preview of a stream.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{ConnectInfo, Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use namecast_net::web::{self, Purpose, Scheme, WebRequest};
use namecast_packet::Name;
use namecast_units::Timestamp;
use serde::Deserialize;
use serde_json::json;

use super::files::{file, text};
use super::glance::{Glance, Moment, NoGlance};
use super::{Shared, json_response};

/// Name of the page's file, and where its head ends.
const INDEX: &str = "index.html";
const END_OF_HEAD: &str = "</head>";
const TITLE: &str = "<title>Namecast</title>";

/// Query of what is about one stream.
#[derive(Deserialize)]
pub(super) struct Named {
    name: String,
    /// Time of capture by the publisher's clock, in milliseconds since 1970; without it: now.
    at: Option<u64>,
}

type Refusal = (StatusCode, String);

impl From<NoGlance> for Refusal {
    fn from(why: NoGlance) -> Self {
        let status = match why {
            NoGlance::Nothing => StatusCode::NOT_FOUND,
            NoGlance::Full => StatusCode::TOO_MANY_REQUESTS,
        };
        (status, format!("{why}\n"))
    }
}

impl Named {
    /// Returns title and picture of the stream, for a visitor at `address`.
    async fn glance(
        self,
        shared: &Shared,
        address: Option<IpAddr>,
    ) -> Result<Arc<Glance>, Refusal> {
        let name = parse(&self.name).ok_or_else(|| {
            let text = "name: no name of a stream\n".to_owned();
            (StatusCode::BAD_REQUEST, text)
        })?;
        let at = self
            .at
            .map(|millis| Timestamp::from_micros(millis.saturating_mul(1_000)));
        Ok(shared.glances.at(&Moment { name, at }, address).await?)
    }
}

/// Title and kinds of a stream, and the key that signs it.
pub(super) async fn about_json(
    State(shared): State<Shared>,
    Query(named): Query<Named>,
    request: Request,
) -> Result<Response, Refusal> {
    let address = address(&shared, &request);
    let glance = named.glance(&shared, address).await?;
    Ok(json_response(&json!({
        "title": glance.title,
        "kinds": glance.kinds,
        "key": glance.key,
        "picture": glance.picture.is_some(),
    })))
}

/// A key frame of a stream as a JPEG: the newest, or the one that was shown at a time.
pub(super) async fn thumbnail(
    State(shared): State<Shared>,
    Query(named): Query<Named>,
    request: Request,
) -> Result<Response, Refusal> {
    let address = address(&shared, &request);
    let glance = named.glance(&shared, address).await?;
    let picture = glance.picture.clone().ok_or_else(|| {
        let text = "There is no picture of this stream.\n".to_owned();
        (StatusCode::NOT_FOUND, text)
    })?;
    let headers = [
        (header::CONTENT_TYPE, "image/jpeg"),
        (header::CACHE_CONTROL, "max-age=10"),
    ];
    Ok((headers, picture).into_response())
}

/// The page. Who makes a preview of a link to a stream gets it with title and picture; browsers, which make none, wait for nothing.
pub(super) async fn index(shared: &Shared, scheme: Scheme, request: Request) -> Response {
    let headers = request.headers().clone();
    let linked = match is_browser(&headers) {
        true => None,
        false => Linked::new(shared, scheme, &request),
    };
    let preview = match linked {
        Some(linked) => linked.preview(shared).await,
        None => None,
    };
    preview.unwrap_or_else(|| file(INDEX, &headers))
}

/// Whether a browser opens it (Fetch Metadata Request Headers, section 2).
fn is_browser(headers: &HeaderMap) -> bool {
    headers.contains_key("sec-fetch-mode")
}

/// A link to a stream that somebody wants to preview.
struct Linked {
    name: Name,
    /// Digest of the key that the link names.
    key: Option<String>,
    /// Origin of the page.
    origin: String,
    /// Where the request came from.
    address: Option<IpAddr>,
}

impl Linked {
    /// Reads the stream that `request` links to; `None` if it names no stream.
    fn new(shared: &Shared, scheme: Scheme, request: &Request) -> Option<Self> {
        #[derive(Deserialize)]
        struct Pinned {
            name: String,
            key: Option<String>,
        }
        let Query(pinned) = Query::<Pinned>::try_from_uri(request.uri()).ok()?;
        let origin = shared.web.config().page_origin(&WebRequest {
            peer: peer(request),
            scheme,
            authority: web::authority(request.uri(), request.headers()),
            headers: request.headers(),
            purpose: Purpose::Read,
        });
        Some(Self {
            name: parse(&pinned.name)?,
            key: pinned.key,
            origin: origin?,
            address: address(shared, request),
        })
    }

    /// The page with what the preview shows; `None` if nothing is known of the stream.
    async fn preview(self, shared: &Shared) -> Option<Response> {
        let page = text(INDEX)?;
        let moment = Moment {
            name: self.name,
            at: None,
        };
        let glance = shared.glances.at(&moment, self.address).await.ok()?;
        // A link that names another key leads to no picture of this one.
        let is_pinned = (self.key).is_none_or(|key| key.eq_ignore_ascii_case(&glance.key));
        is_pinned.then(|| {
            let page = with_preview(&page, &glance, &moment.name.to_string(), &self.origin);
            let headers = [
                (header::CONTENT_TYPE, "text/html; charset=utf-8"),
                (header::CACHE_CONTROL, "no-cache"),
            ];
            (headers, page).into_response()
        })
    }
}

/// Returns `page` with the title of a stream, and what the Open Graph protocol says of it (<https://ogp.me>).
fn with_preview(page: &str, glance: &Glance, name: &str, origin: &str) -> String {
    let title = escaped(glance.title.as_deref().unwrap_or(name));
    let query = escaped(&in_query(name));
    let link = format!("{}/?name={query}", escaped(origin));
    let mut tags = format!(
        r#"<meta property="og:type" content="video.other" /><meta property="og:site_name" content="Namecast" />
<meta property="og:title" content="{title}" /><meta property="og:url" content="{link}" />
<meta property="og:description" content="{}, live by name" />
"#,
        escaped(name)
    );
    if glance.picture.is_some() {
        let picture = format!("{}/thumbnail.jpg?name={query}", escaped(origin));
        tags.push_str(&format!(
            r#"<meta property="og:image" content="{picture}" /><meta property="og:image:type" content="image/jpeg" />
<meta name="twitter:card" content="summary_large_image" />
"#
        ));
    }
    tags.push_str(END_OF_HEAD);
    page.replacen(TITLE, &format!("<title>{title} · Namecast</title>"), 1)
        .replacen(END_OF_HEAD, &tags, 1)
}

/// Returns `text` as HTML has it in content and in quoted attributes.
fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            other => html.push(other),
        }
    }
    html
}

/// Returns the URI of a name as a query has it: its percent signs are escaped once more.
fn in_query(name: &str) -> String {
    let mut query = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' | b'=' => query.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => query.push(char::from(byte)),
            byte => query.push_str(&format!("%{byte:02X}")),
        }
    }
    query
}

/// The name of a stream; the root is none.
fn parse(text: &str) -> Option<Name> {
    text.parse().ok().filter(|name| *name != Name::root())
}

/// Where a request came from, as far as it is known.
fn address(shared: &Shared, request: &Request) -> Option<IpAddr> {
    let config = shared.web.config();
    config.address(peer(request), request.headers())
}

fn peer(request: &Request) -> Option<IpAddr> {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    peer.map(|ConnectInfo(peer)| peer.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "<html><head><title>Namecast</title></head><body></body></html>";

    /// Whatever a publisher calls its stream stays text.
    #[test]
    fn titles_are_text_in_the_preview_of_a_link() {
        let glance = Glance {
            title: Some(r#""><script>alert('&')</script>"#.to_owned()),
            picture: Some(Default::default()),
            ..Glance::default()
        };
        let page = with_preview(PAGE, &glance, "/a%20b/c", "https://node.example:8443");
        assert!(!page.contains("<script>"), "{page}");
        let title = "&quot;&gt;&lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script&gt;";
        let tags = [
            format!("<title>{title} · Namecast</title>"),
            format!(r#"property="og:title" content="{title}""#),
            r#"property="og:url" content="https://node.example:8443/?name=/a%2520b/c""#.to_owned(),
            r#"property="og:image" content="https://node.example:8443/thumbnail.jpg?name=/a%2520b/c""#
                .to_owned(),
        ];
        for tag in tags {
            assert!(page.contains(&tag), "{tag}: {page}");
        }
        assert!(page.ends_with("</head><body></body></html>"));
    }

    #[test]
    fn a_stream_without_title_and_picture_is_called_by_its_name() {
        let page = with_preview(PAGE, &Glance::default(), "/cam", "http://localhost:8080");
        assert!(page.contains("<title>/cam · Namecast</title>"), "{page}");
        assert!(!page.contains("og:image"), "{page}");
    }
}
