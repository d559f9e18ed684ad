//! The files of the page, as the build made them.

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// Answer of a binary without the page.
const NO_PAGE: &str =
    "The page is not part of this binary: run `cargo xtask web`, then build again.\n";

/// Encodings that the build made of files beside them, the smallest first: their names in HTTP, and what the files end in.
const ENCODINGS: [(&str, &str); 2] = [("br", ".br"), ("gzip", ".gz")];

/// The built page: part of the binary, but read from disk in debug builds.
#[derive(rust_embed::RustEmbed)]
#[folder = "../../web/dist"]
#[allow_missing = true]
struct Page;

/// Digests of the scripts within the page's own files, as a policy names what it allows; each after a space.
pub(super) fn inline_scripts() -> String {
    let mut digests = String::new();
    for name in Page::iter().filter(|name| name.ends_with(".html")) {
        let Some(file) = Page::get(&name) else {
            continue;
        };
        let text = String::from_utf8_lossy(&file.data);
        for script in text.split("<script>").skip(1) {
            let script = script.split_once("</script>").map_or(script, |it| it.0);
            let digest = STANDARD.encode(Sha256::digest(script.as_bytes()));
            digests.push_str(&format!(" 'sha256-{digest}'"));
        }
    }
    digests
}

/// Returns a file of the page as text; `None` where the page was not built.
pub(super) fn text(path: &str) -> Option<String> {
    let file = Page::get(path)?;
    Some(String::from_utf8_lossy(&file.data).into_owned())
}

/// One file of the page, compressed if the build did that and the browser takes it. Names under `assets/` carry a digest of
/// their content, so they may be kept for ever.
pub(super) fn file(path: &str, request: &HeaderMap) -> Response {
    let Some(file) = Page::get(path) else {
        let text = if path == "index.html" {
            NO_PAGE
        } else {
            "There is no such file.\n"
        };
        return (StatusCode::NOT_FOUND, text).into_response();
    };
    let keep = if path.starts_with("assets/") {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    let headers = [
        (header::CONTENT_TYPE, file.metadata.mimetype().to_owned()),
        (header::CACHE_CONTROL, keep.to_owned()),
        (header::VARY, "accept-encoding".to_owned()),
    ];
    let encoded = ENCODINGS.iter().find_map(|(encoding, ending)| {
        let encoded = Page::get(&format!("{path}{ending}"))?;
        accepts(request, encoding).then_some((*encoding, encoded.data))
    });
    match encoded {
        Some((encoding, data)) => {
            (headers, [(header::CONTENT_ENCODING, encoding)], data).into_response()
        }
        None => (headers, file.data).into_response(),
    }
}

/// Whether a request takes a response in this encoding (RFC 9110, section 12.5.3). `*` counts for nothing: nobody who cares
/// sends it.
fn accepts(request: &HeaderMap, encoding: &str) -> bool {
    let values = request.get_all(header::ACCEPT_ENCODING).into_iter();
    let texts = values.filter_map(|value| value.to_str().ok());
    texts.flat_map(|text| text.split(',')).any(|item| {
        let (name, weight) = item.split_once(';').unwrap_or((item, ""));
        let weight = weight.trim().strip_prefix("q=");
        let weight = weight.and_then(|weight| weight.parse::<f32>().ok());
        name.trim().eq_ignore_ascii_case(encoding) && weight.unwrap_or(1.0) > 0.0
    })
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn an_encoding_counts_as_the_browser_says() {
        let request = |text: &'static str| {
            HeaderMap::from_iter([(header::ACCEPT_ENCODING, HeaderValue::from_static(text))])
        };
        assert!(accepts(&request("gzip, deflate, br;q=0.5"), "br"));
        assert!(accepts(&request("GZIP"), "gzip"));
        for refused in ["gzip", "br;q=0, gzip", "br; q=0.000", "*", ""] {
            assert!(!accepts(&request(refused), "br"), "{refused}");
        }
        assert!(!accepts(&HeaderMap::new(), "br"));
    }
}
